"""Every public function and method, called with a table of arguments that it was not made for.

Each is taken for what it is, or is a JitdbError: no bare error of Python's, no hang, nothing wrong taken in silence.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import InvalidArgument, InvalidOffset, JitdbError, QueryError
from jitdb.operators import (
    Operation,
    absent,
    and_,
    as_of,
    batch,
    contains,
    deferred,
    ends_with,
    equal,
    field,
    format_expression,
    from_db,
    from_json,
    gt,
    gte,
    includes,
    like,
    live,
    live_seqs,
    lt,
    lte,
    matches,
    not_,
    offsets,
    or_,
    paginate,
    parse_expression,
    predicate,
    query,
    seqs,
    slow_absent,
    slow_equal,
    slow_includes,
    slow_predicate,
    start_from,
    starts_with,
    to_callback,
    to_json,
    where,
)
from jitdb.operators.nodes.equal import FieldOperation
from jitdb.operators.nodes.predicate import Predicate


def nested(make: Callable[[Any], Any], levels: int = 100_000) -> Any:
    value: Any = make(None)
    for _ in range(levels):
        value = make(value)
    return value


class Unshown:
    def __repr__(self) -> str:
        raise RuntimeError("this one cannot be shown")


HUGE = 10**5000
BAD: dict[str, Any] = {
    "none": None, "true": True, "nan": math.nan, "inf": math.inf, "0.0": 0.0, "1.5": 1.5, "complex": 1j,
    "ellipsis": ...,
    "huge": HUGE, "-huge": -HUGE, "2**64": 2**64, "2**63": 2**63, "-1": -1, "-2**64": -(2**64),
    "no bytes": b"", "bytes": b"a\0b", "view": memoryview(b"abc"),
    "no text": "", "nul": "\0", "nul within": "a\0b", "lone": "\ud800", "escaped pair": "\udcc3\udca9",
    "long": "x" * 5000,
    "deep list": nested(lambda value: [value]), "deep dict": nested(lambda value: {"a": value}),
    "[]": [], "()": (), "{}": {}, "set": set(), "[None]": [None], "[nan]": [math.nan], "mixed": ["x", 1.5],
    "[huge]": [HUGE], "[[1]]": [[1]], "range": range(3), "dict": {"a": 1}, "{1:2}": {1: 2}, "lone key": ("\ud800",),
    "long path": ("a",) * 100, "array": np.array([1, 2]), "shapeless": np.array(3.5), "square": np.zeros((2, 2), int),
    "float64": np.float64(1.5), "date": np.datetime64("2020-01-01"), "object": object(), "class": object,
    "unshown": Unshown(), "f()": lambda: 1, "f(*)": lambda *arguments: "text",
}  # fmt: skip

INTEGERS = {"huge", "-huge", "2**64", "2**63", "-1", "-2**64"}
COUNTS = {"huge", "2**64", "2**63"}
NUMBERS = {*INTEGERS, "inf", "0.0", "1.5", "float64", "shapeless"}
TEXTS = {"no text", "nul", "nul within", "long"}
NAMES = {"nul", "nul within", "lone", "escaped pair", "long"}
KEYS = {"nul", "nul within", "long"}
PATHS = {*KEYS, "[None]"}
LISTS = {"[]", "()", "[None]", "[nan]", "mixed", "[huge]", "[[1]]", "long path"}
BOUNDS = {*NUMBERS, "date"}
VALUES = {*NUMBERS, *TEXTS, *LISTS, "none", "true", "nan", "no bytes", "bytes", "view", "{}", "dict", "{1:2}"}
JSON_VALUES = VALUES - {"{}", "dict", "{1:2}"}
MANY = {"[]", "()", "set", "[None]", "[nan]", "mixed", "[[1]]", "long path"}
POSITIONS = {"[]", "()", "set", "{}", "{1:2}", "range", "array", "view"}
ANY = set(BAD)


def whole(operation: Any) -> None:
    """What can be done with an operation is done; it comes back from JSON and from text."""
    repr(operation), hash(operation)
    assert operation == operation
    if isinstance(operation, Predicate) or (isinstance(operation, FieldOperation) and not operation.paths):
        return
    assert from_json(json.loads(json.dumps(to_json(operation)))) == operation
    try:
        text = format_expression(operation)
    except QueryError:
        return
    assert parse_expression(text) == operation


def operators() -> Iterator[tuple[str, Callable[[Any], object], set[str]]]:
    """What is called, how, and which of the bad arguments are none to it."""
    for make in (equal, includes, slow_equal, slow_includes):
        yield f"{make.__name__} path", lambda bad, make=make: whole(make(bad, 1)), PATHS
        yield f"{make.__name__} value", lambda bad, make=make: whole(make("a", bad)), VALUES
    for make in (equal, includes, absent):
        more = () if make is absent else (1,)
        by_type = {*PATHS, "f(*)"}
        yield f"{make.__name__} function", lambda bad, a=make, b=more: whole(a(bad, *b, index_type="t")), by_type
    yield "includes pluck", lambda bad: whole(includes("a", 1, bad)), {*PATHS, "none"}
    for option, good in {
        "prefix": {"none", "true"}, "prefix_offset": set(), "use_map": {"true"}, "index_all": {"true"},
        "index_type": {*NAMES, "none"}, "version": set(),
    }.items():  # fmt: skip
        yield f"equal {option}", lambda bad, option=option: whole(equal("a", 1, **{option: bad})), good
    yield "equal with options as in JavaScript", lambda bad: equal("a", 1, bad), set()
    yield "absent with options as in JavaScript", lambda bad: absent("a", bad), set()
    for make in (absent, slow_absent):
        yield make.__name__, lambda bad, make=make: whole(make(bad)), PATHS
    yield "starts_with path", lambda bad: whole(starts_with(bad, "x")), PATHS
    yield "starts_with", lambda bad: whole(starts_with("a", bad)), {*TEXTS, "no bytes", "bytes", "view"}
    yield "contains", lambda bad: whole(contains("a", bad)), {*TEXTS, "no bytes", "bytes", "view"} - {"long"}
    yield "ends_with", lambda bad: whole(ends_with("a", bad)), {*TEXTS, "no bytes", "bytes", "view"}
    yield "like", lambda bad: whole(like("a", bad)), TEXTS
    yield "matches", lambda bad: whole(matches("a", bad)), TEXTS
    yield "ignore_case", lambda bad: whole(contains("a", "x", ignore_case=bad)), {"true"}
    for make in (predicate, slow_predicate):
        yield f"{make.__name__} path", lambda bad, make=make: whole(make(bad, str.isupper)), PATHS
    yield "predicate function", lambda bad: predicate("a", bad, "name"), {"f(*)"}
    yield "predicate name", lambda bad: whole(predicate("a", str.isupper, bad)), {*NAMES, "none"}
    yield "predicate version", lambda bad: whole(predicate("a", str.isupper, version=bad)), set()
    for make in (gt, gte, lt, lte):
        yield f"{make.__name__} value", lambda bad, make=make: whole(make(bad, "a")), BOUNDS
        yield f"{make.__name__} index", lambda bad, make=make: whole(make(1, bad)), PATHS
    for make in (seqs, offsets):
        yield make.__name__, lambda bad, make=make: whole(make(bad)), POSITIONS
        yield f"{make.__name__} of one", lambda bad, make=make: whole(make([bad])), {"2**63"}
    single = {"no text", "nul", "nul within", "lone", "escaped pair", "long", "no bytes", "bytes", "shapeless"}
    listed = {"deep list", "deep dict", "lone key", "dict", "square", *POSITIONS, *LISTS}
    yield "live_seqs", lambda bad: live_seqs(bad), listed - single
    yield "deferred", lambda bad: deferred(bad), {"f(*)"}
    for join in (and_, where):
        yield join.__name__, lambda bad, join=join: join(bad), {"none"}
    yield "or_", lambda bad: or_(bad), set()
    yield "not_", lambda bad: not_(bad), set()
    for part in (paginate, batch, start_from):
        yield part.__name__, lambda bad, part=part: repr(query(part(bad))), COUNTS
    yield "as_of", lambda bad: repr(query(as_of(bad))), {*COUNTS, *NAMES, "-1"}
    yield "from_db", lambda bad: from_db(bad), set()
    yield "to_callback", lambda bad: to_callback(bad), {"f(*)"}
    yield "live old", lambda bad: live(bad), {"true"}
    yield "live after", lambda bad: live(True, bad), {*NAMES, "none"}
    yield "query", lambda bad: query(bad), set()
    yield "field", lambda bad: whole(field(bad) == 1), PATHS
    yield "field key", lambda bad: whole(field("a", bad) == 1), {*KEYS, "no text", "none"}
    yield "field[]", lambda bad: whole(field("a")[bad] == 1), {*KEYS, "no text"}
    yield "field ==", lambda bad: whole(field("a") == bad), {*VALUES, "date"}
    yield "field <", lambda bad: whole(field("a") < bad), BOUNDS
    yield "isin", lambda bad: whole(field("a").isin(bad)), {*LISTS, "set", "range", "array"}
    yield "isin of one", lambda bad: whole(field("a").isin([bad])), {*VALUES, "date"}
    yield "matches", lambda bad: field("a").matches(bad, "name"), {"f(*)"}
    yield "parse_expression", lambda bad: whole(parse_expression(bad)), set()
    yield "format_expression", lambda bad: format_expression(bad), set()
    yield "to_json", lambda bad: to_json(bad), set()
    yield "from_json", lambda bad: from_json(bad), set()
    for form, good in (
        ({"op": "equal", "path": ["a"]}, JSON_VALUES),
        ({"op": "starts_with", "path": ["a"]}, {*TEXTS, "no bytes", "bytes", "view"}),
        ({"op": "gt", "index": "a"}, BOUNDS),
    ):
        yield f"from_json {form['op']}", lambda bad, form=form: whole(from_json({**form, "value": bad})), good
    for tag, good in {
        "$bytes": {"no text", "no bytes", "long"}, "$float": set(), "$int": set(), "$extension": set(),
        "$map": {"no text", "no bytes", "[]", "()", "{}", "set", "square"},
    }.items():  # fmt: skip
        form = {"op": "equal", "path": ["a"]}
        yield f"from_json {tag}", lambda bad, a=form, b=tag: whole(from_json({**a, "value": {b: bad}})), good
    for key, good in {"op": set(), "path": PATHS, "options": {"{}"}, "pluck": {*PATHS, "none"}}.items():
        form = {"op": "includes", "path": ["a"], "value": 1}
        yield f"from_json {key}", lambda bad, key=key, form=form: whole(from_json({**form, key: bad})), good
    yield "from_json and", lambda bad: whole(from_json({"op": "and", "args": bad})), set()
    yield "from_json and of one", lambda bad: whole(from_json({"op": "and", "args": [bad]})), set()
    yield "from_json not", lambda bad: whole(from_json({"op": "not", "arg": bad})), set()
    yield "from_json seqs", lambda bad: whole(from_json({"op": "seqs", "seqs": bad})), {"[]"}
    yield "from_json index", lambda bad: whole(from_json({"op": "gt", "index": bad, "value": 1})), PATHS


def refused(call: Callable[[Any], object], good: set[str]) -> None:
    """Each bad argument that is not `good` is a JitdbError that says so; the others are taken."""
    for name, bad in BAD.items():
        taken = True
        try:
            call(bad)
        except JitdbError as error:
            if error.reason.endswith("RE2 is not installed"):
                raise
            taken = len(str(error)) > 6_000  # which is no message
        except BaseException as error:
            raise AssertionError(f"{name} raised {type(error).__name__}") from error
        assert taken == (name in good), name


@pytest.mark.parametrize(("call", "good"), [pytest.param(*rest, id=name) for name, *rest in operators()])
def test_operators(call: Callable[[Any], object], good: set[str]) -> None:
    refused(call, good)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JITDB]:
    with Log(tmp_path_factory.mktemp("bad") / "a.log", flush_interval=3600) as log:
        log.append_many([{"a": number, "timestamp": number} for number in range(50)])
        log.flush()
        yield JITDB(log)


FLAG, FILES = {"true"}, {"escaped pair"}
ASKED = {
    "limit": {*COUNTS, "none"},  # all in one page
    "start_from": COUNTS,
    "descending": FLAG,
    "as_offsets": FLAG,
    "sort_by": KEYS,
    "as_of": {"none", "-1"},
}


@pytest.mark.parametrize(
    "method", ["count", "all", "paginate", "pages", "explain", "prepare", "lookup", "feed", "live"]
)
def test_operations_of_a_database(db: JITDB, method: str) -> None:
    more = {"paginate": {"limit": 3}, "pages": {"limit": 3}, "lookup": {"seq": 1}}.get(method, {})
    refused(lambda bad: getattr(db, method)(bad, **more), {"none"})


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("count", ("start_from", "as_of")),
        ("all", ("start_from", "descending", "as_offsets", "sort_by", "as_of")),
        ("paginate", tuple(ASKED)),
        ("pages", tuple(ASKED)),
    ],
)
def test_options_of_a_question(db: JITDB, method: str, names: tuple[str, ...]) -> None:
    for name in names:
        more = {"limit": 3} if method in ("paginate", "pages") else {}

        def ask(bad: Any, name: str = name, more: dict[str, Any] = more) -> object:
            answer = getattr(db, method)(equal("a", 1), **{**more, name: bad})
            return list(answer) if method == "pages" else answer

        refused(ask, ASKED[name])


def test_the_other_methods_of_a_database(db: JITDB, tmp_path: Path) -> None:
    one = equal("a", 1)
    refused(lambda bad: db.feed(one, limit=bad), {*COUNTS, "none"})
    refused(lambda bad: db.feed(one, old=bad), FLAG)
    refused(lambda bad: db.feed(one, after=bad), {"none"})
    refused(lambda bad: db.feed(one, as_offsets=bad), FLAG)
    refused(lambda bad: db.live(one, old=bad).close(), FLAG)
    refused(lambda bad: db.live(one, after=bad).close(), {"none"})
    refused(lambda bad: db.lookup(one, bad), COUNTS)
    refused(lambda bad: db.reindex(bad), COUNTS)
    refused(lambda bad: db.on_ready(bad), {"none", "class", "f()", "f(*)"})
    refused(lambda bad: db.count(deferred(lambda meta: bad)), {"none"})
    for method in (db.compact, db.verify, db.repair):
        refused(lambda bad, method=method: method(progress=bad), {"none", "f(*)"})
    refused(lambda bad: db.verify(bad), {"none", *COUNTS})
    for method in (db.verify, db.repair):
        refused(lambda bad, method=method: method(operations=bad), {"[]", "()", "set", "[None]"})
    refused(lambda bad: JITDB(bad), set())
    refused(lambda bad: JITDB(db.log, bad), {"none", "escaped pair", "long"})
    refused(lambda bad: JITDB(db.log, "memory", timestamp=bad), {*KEYS, "[[1]]", "long path", "none"})
    refused(lambda bad: JITDB(db.log, "memory", time_unit=bad), set())
    refused(lambda bad: JITDB(db.log, "memory", sequence=bad), KEYS)
    refused(lambda bad: JITDB(db.log, "memory", threads=bad), COUNTS)
    refused(lambda bad: JITDB(db.log, "memory", progress=bad), {"none", "true"})


def test_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(lambda bad: Log(bad).close(), FILES)
    refused(lambda bad: Log(bad, read_only=True).close(), FILES)
    refused(lambda bad: jitdb.open(bad).close(), FILES)
    refused(lambda bad: jitdb.open(bad, create=True).close(), FILES)
    number = itertools.count()
    for name, good in {
        "codec": {"none"}, "block_size": {"none"}, "read_only": set(), "flush_interval": {"0.0", "1.5", "float64"},
    }.items():  # fmt: skip
        refused(lambda bad, name=name: Log(tmp_path / f"{next(number)}.log", **{name: bad}).close(), good)
    for name in ("read_only", "create"):
        refused(lambda bad, name=name: jitdb.open("\udcc3\udca9", **{name: bad}).close(), FLAG)


def test_methods_of_a_log(db: JITDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = db.log
    assert isinstance(log, Log)
    for method in (log.get, log.get_raw, log.delete):
        refused(method, set())
    refused(log.get_many_raw, {"[]", "()"})
    refused(lambda bad: log.get_many_raw([bad]), set())
    refused(lambda bad: log.get_many_raw([bad] * 40), set())
    refused(log.append, VALUES - {"shapeless", "huge", "-huge", "2**64", "-2**64", "[huge]"})
    refused(log.append_many, MANY)
    refused(log.append_transaction, MANY)
    refused(lambda bad: log.append_whole(bad, tmp_path / "scratch"), {"[]", "()", "set"})
    refused(lambda bad: log.append_whole([bad], tmp_path / "scratch"), {"[]"})
    refused(lambda bad: log.append_whole([[bad]], tmp_path / "scratch"), {"bytes", "view"})
    refused(lambda bad: log.append_whole([[b"\x80"]], bad), FILES)
    refused(lambda bad: log.replace_with(bad, "msgpack"), set())
    refused(lambda bad: log.replace_with(tmp_path / "none", bad), set())
    refused(lambda bad: log.on_since(bad)(), {"f(*)"})
    refused(lambda bad: log.watch(bad)(), {"class", "f()", "f(*)"})
    for bound in ("gt", "gte", "lt", "lte"):
        refused(lambda bad, bound=bound: list(log.stream(raw=True, **{bound: bad})), {*INTEGERS, "none"})
        refused(lambda bad, bound=bound: list(log.stream_batches(**{bound: bad})), {*INTEGERS, "none"})
        good = {*INTEGERS, "none"} if bound.startswith("g") else {"none"}
        refused(lambda bad, bound=bound: log.stream(live=True, **{bound: bad}).close(), good)
    refused(lambda bad: list(log.stream(raw=True, limit=bad)), {*COUNTS, "none"})
    refused(lambda bad: list(log.stream_batches(limit=bad)), {*COUNTS, "none"})
    refused(lambda bad: log.stream(live=True, limit=bad).close(), {*COUNTS, "none"})
    refused(lambda bad: list(log.stream(raw=bad)), FLAG)
    refused(lambda bad: next(iter(log.stream(live=bad))), FLAG)
    for method in (log.compact, log.verify, log.repair):
        refused(method, {"none", "f(*)"})


def test_a_record_is_not_got_by_what_only_equals_its_offset(db: JITDB) -> None:
    assert isinstance(db.log, Log)
    assert db.log.get(0)
    assert db.log.get(np.int64(0)) == db.log.get(0)
    for equal_to_it in (0.0, False, np.float64(0), -0.0):
        with pytest.raises(InvalidOffset, match="an offset is an integer"):
            db.log.get(equal_to_it)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [list, tuple, deque, frozenset, dict])
def test_what_is_nested_in_many_levels_is_named_by_its_type(kind: Any) -> None:
    """Its repr() takes seconds for an error message, where Python lets it go on till the stack is full."""
    deep = nested(lambda value: {None: value} if kind is dict else kind([value]), 300)
    with pytest.raises(QueryError, match=f"<{kind.__name__}>"):
        paginate(deep)


def test_paths_of_bytes_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"os\.fsdecode\(\)"):
        Log(bytes(tmp_path / "a.log"))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"jitdb\.open\(path\)"):
        JITDB(str(tmp_path / "a.log"))  # type: ignore[arg-type]


@pytest.mark.parametrize("find", [lambda record, start: "text", lambda record, start: 1.5])
def test_a_function_that_finds_no_position(db: JITDB, find: Any) -> None:
    with pytest.raises(QueryError, match="<lambda> finds a field's position"):
        db.count(equal(find, 1, index_type="odd"))


def test_integers_of_any_length_are_asked_shown_and_shipped(db: JITDB) -> None:
    for operation, found in ((gt(-HUGE, "a"), 50), (equal("a", HUGE), 0), (lt(HUGE, "a") & ~equal("a", [HUGE]), 50)):
        assert isinstance(operation, Operation)
        assert db.count(operation) >= found
        assert "0x" in repr(operation)
        assert "0x" in db.explain(operation)["where"]
        whole(operation)
    assert equal("a", HUGE) != equal("a", HUGE + 1)
