"""Operators on text where questions are asked otherwise: lines in place, odd records, sets of logs, live, as text."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import EXAMPLES
from oracle import text_matches

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.engine.plan import Serving
from jitdb.engine.text_tests import Texts, matcher_of
from jitdb.errors import QueryError
from jitdb.operators import (
    contains,
    ends_with,
    equal,
    everything,
    format_expression,
    from_json,
    like,
    matches,
    not_,
    parse_expression,
    starts_with,
    to_json,
)
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.text_match import TextMatch, holds_text

TEXTS = st.text('aAbB%_é\u00dfẞ\n"\\😀\x7f\u2028 ', max_size=8)
LEAVES = st.one_of(TEXTS, st.sampled_from([None, False, 0, -1.5, [], ["ab", "é"], {}, {"b": "a"}]))
NESTED = st.dictionaries(
    st.sampled_from(["b", "b.c", "", "é"]), LEAVES | st.dictionaries(st.just("c"), LEAVES), max_size=3
)
ODD = st.fixed_dictionaries(
    {}, optional={"a": LEAVES | NESTED, "b": LEAVES, "x y": TEXTS, "n": st.integers(-(2**63), 2**63)}
)
PATHS: list[tuple[str, ...]] = [
    ("a",),
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "b.c"),
    ("a", ""),
    ("b",),
    ("x y",),
    ("none",),
]
ASKED: Any = st.builds(
    lambda make, path, text, case: make(path, text, ignore_case=case),
    st.sampled_from([contains, starts_with, ends_with, like]), st.sampled_from(PATHS), st.text("aAbé%_ßS", max_size=3),
    st.booleans(),
)  # fmt: skip


def is_true(operation: Operation, record: Any) -> bool:
    assert isinstance(operation, TextMatch)
    value = value_at(record, operation.path)
    return value is not UNDEFINED and text_matches(operation, value)


@given(records=st.lists(ODD, max_size=10), asked=st.lists(ASKED, min_size=1, max_size=4), escaped=st.booleans(),
       is_long=st.booleans())  # fmt: skip
@settings(max_examples=EXAMPLES, deadline=None)
def test_lines_of_nested_and_irregular_records(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], asked: list[Operation], escaped: bool, is_long: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.ndjson"
    with pytest.MonkeyPatch.context() as patch:
        if is_long:
            patch.setattr(Serving, "holds_long", lambda *_: True)
        first = len(records) // 2
        lines = [json.dumps(record, ensure_ascii=escaped) + "\n" for record in records]
        path.write_text("{}\n" + "".join(lines[:first]))
        with jitdb.open(path, read_only=True) as db:
            for known in (records[:first], records):
                for operation in asked:
                    found = [record for record in known if is_true(operation, record)]
                    assert db.all(operation, sort_by="arrival") == found
                    assert db.count(not_(operation)) == 1 + len(known) - len(found)
                    assert db.count(parse_expression(format_expression(operation))) == len(found)
                    assert db.count(from_json(json.loads(json.dumps(to_json(operation))))) == len(found)
                with path.open("a") as more:
                    more.write("".join(lines[first:]))
                lines = lines[:first]
                db.refresh()


@pytest.fixture(params=["a dictionary", "a scan"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By which index text is found."""
    if request.param == "a scan":
        monkeypatch.setattr(Serving, "holds_long", lambda *_: True)
    return str(request.param)


QUESTIONS: list[Operation] = [
    contains("text", "ör"), contains("text", "ÖR", ignore_case=True), starts_with("text", "W"), ends_with("text", "7"),
    starts_with("text", "wÖ", ignore_case=True), like("text", "W%_7"), like("text", "w_r%", ignore_case=True),
    contains("text", "ör") & ~contains("text", "1"), contains("day", "2") | ends_with("text", "3"),
]  # fmt: skip


def holds(operation: Operation, record: dict[str, Any]) -> bool:
    """By the plain rule, combinators too."""
    kind = operation.op
    if kind == "and":
        return all(holds(child, record) for child in operation.children())
    if kind == "or":
        return any(holds(child, record) for child in operation.children())
    if kind == "not":
        return not holds(operation.children()[0], record)
    return is_true(operation, record)


@pytest.mark.usefixtures("way")
def test_sets_of_logs_and_lines(tmp_path: Path) -> None:
    written = []
    for day in ("2026-11-01", "2026-11-22"):
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        records = [{"text": f"Wörter {number}" if number % 3 else "other", "n": number} for number in range(60)]
        (folder / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
        with Log(folder / "b.log", codec="msgpack") as log:
            log.append_many({"text": f"WÖRTER {number}"} for number in range(30))
        written += [{**record, "day": day} for record in records]
        written += [{"text": f"WÖRTER {number}", "day": day} for number in range(30)]
    with jitdb.open_many(tmp_path / "day=*" / "*") as logs:
        for operation in QUESTIONS:
            expected = sorted(record["text"] for record in written if holds(operation, record))
            assert logs.count(operation) == len(expected), operation
            assert sorted(record["text"] for record in logs.query(operation)) == expected
            counts = logs.value_counts("text", operation).as_dict()
            assert counts == {text: expected.count(text) for text in set(expected)}


@pytest.mark.usefixtures("way")
def test_live_questions(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        db = JITDB(log)
        feeds = [(operation, db.feed(operation, old=True)) for operation in QUESTIONS]
        told: dict[int, list[Any]] = {number: [] for number in range(len(QUESTIONS))}
        records: list[Any] = []
        for round_ in range(4):
            more = [{"text": f"Wört {round_}{number}", "day": str(number)} for number in range(5)] + [
                {"text": round_},
                {},
            ]
            log.append_many(more)
            log.flush()
            records += [*more, {"text": round_}, {}]
            for number, (operation, feed) in enumerate(feeds):
                while (portion := feed.read()) is not None:
                    told[number] += portion.data
                assert told[number] == [record for record in records if holds(operation, record)]
        for _, feed in feeds:
            feed.close()


def test_a_loop_gets_the_text_that_comes(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="json") as log:
        db = JITDB(log)
        found = db.live(contains("text", "STRASSE", ignore_case=True))
        records = [{"text": "Weg"}, {"text": "Straße"}]
        thread = threading.Thread(target=lambda: (log.append_many(records), log.flush()))
        thread.start()
        assert next(found) == {"text": "Straße"}
        found.close()
        thread.join()


#: Patterns that hang a matcher which goes back, and text that they are tried on.
EVIL = [
    ("(a+)+$", "a" * 5000 + "!"), ("(a|a)*b", "a" * 5000), ("(a*)*b", "a" * 5000), ("(.*)(.*)(.*)(.*)x$", "y" * 5000),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000), ("(x+x+)+y", "x" * 5000), (r"(\w+\s?)*:", "word " * 1000),
]  # fmt: skip


def test_patterns_that_hang_others_end(tmp_path: Path) -> None:
    pytest.importorskip("re2")
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"text": text} for _, text in EVIL for _ in range(3))
        log.append({"text": "aaab word: xxy"})
        log.flush()
        db = JITDB(log)
        begin = time.process_time()
        for pattern, text in EVIL:
            assert db.count(matches("text", pattern) & equal("text", text)) == 0
        assert db.count(matches("text", "(a|a)*b")) == 1
        assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    "pattern", ["(", "a{1001}", "((a{100}){100}){100}", r"(?=a)", r"(a)\1", r"(?<!a)b", "[z-a]", "\\", "*", "\udc80"]
)
def test_patterns_that_are_refused_when_they_are_made(pattern: str) -> None:
    pytest.importorskip("re2")
    with pytest.raises(QueryError):
        matches("text", pattern)
    with pytest.raises(QueryError):
        parse_expression(f"text matches {json.dumps(pattern)}")
    with pytest.raises(QueryError):
        from_json({"op": "matches", "path": ["text"], "value": pattern})


@pytest.mark.parametrize(
    ("operation", "found", "not_found"),
    [
        (contains("t", "STRASSE", ignore_case=True), ["Straße", "strasse", "in der StraßE"], ["Strase", "Straẞ"]),
        (contains("t", "ẞ", ignore_case=True), ["ß", "SS", "ẞ", "Ss"], ["s", "S s"]),
        (starts_with("t", "İ", ignore_case=True), ["İx", "i̇x"], ["ix", "Ix"]),
        (ends_with("t", "ς", ignore_case=True), ["ΟΔΟΣ", "οδος", "οδοσ"], ["οδο"]),
        (contains("t", "\u017fo", ignore_case=True), ["SO", "so", "\u017fO"], ["s", "fo"]),
        (contains("t", "K", ignore_case=True), ["\u212a", "k", "K"], ["x"]),  # of Kelvin
        (contains("t", "é"), ["é", "café!"], ["É", "e\u0301", "e"]),  # composed letters alone
        (contains("t", "é", ignore_case=True), ["É", "é"], ["e\u0301", "e"]),
        (like("t", "_"), ["a", "é", "😀", "ß", "\n"], ["", "ab", "e\u0301"]),
        (like("t", "__", ignore_case=True), ["ß", "ab", "ﬁ"], ["a", "é"]),  # of the folded text: ss, ab, fi
        (like("t", "%\\_%"), ["a_b", "_"], ["ab", ""]),
        (like("t", "s%e", ignore_case=True), ["STRASSE", "se", "\u017fe"], ["strassen", "e"]),
    ],
)
def test_case_and_letters_as_documented(
    tmp_path: Path, operation: TextMatch, found: list[str], not_found: list[str]
) -> None:
    for text in found + not_found:
        assert holds_text(operation.op, operation.value, operation.ignore_case, text) == (text in found), text
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({"t": text}) + "\n" for text in found + not_found))
    with jitdb.open(path) as db:
        if isinstance(operation, TextMatch):
            keys = Texts.of([value_key(text) for text in found + not_found])
            assert matcher_of(operation)(keys).tolist() == [True] * len(found) + [False] * len(not_found)
        assert [record["t"] for record in db.all(operation, sort_by="arrival")] == found
        assert db.count(everything() & ~operation) == len(not_found)
