"""Random records, random questions, random growth and deletion: every answer is the oracle's."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Oracle
from own_codec import Masked
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.common.times import UNITS
from jitdb.log.codecs import Codec
from jitdb.operators import (
    absent,
    and_,
    anywhere,
    between,
    contains,
    ends_with,
    equal,
    fits,
    gt,
    gte,
    includes,
    isin,
    like,
    lt,
    lte,
    matches,
    not_,
    or_,
    predicate,
    seqs,
    starts_with,
)
from jitdb.operators import offsets as at_offsets
from jitdb.operators.nodes.compare import FEW
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.selection import SortKey

pytestmark = pytest.mark.slow

# Few keys and few values, so that random questions meet random records.
KEYS = ["a", "b", "type", ""]
TEXTS = ["", "post", "posted", "%abcd", "%abce", "x" * 40, "é", "1", "-1.5e0", "12ms", "Warning", "ERR", "I", "30"]
NUMBERS = [0, 1, -1, 1.0, 1.5, -0.0, 2**31, 2**40, 1e300]
WIDE = [2**53, 2**53 + 1, 2**63, 2**64 - 1, -(2**63), float("inf"), float("-inf"), float("nan")]
TIMES = ["1970-01-01", "1970-01-01T00:00:01Z", "2015-12-01T10:30:00.123456789+01:00", "9999-12-31T23:59:59Z", "soon"]
SPELLED = [
    "0",
    "1",
    "1.0",
    "-1.5",
    "1e300",
    str(2**53 + 1),
    str(2**64),
    "1700000000",
    "1700000000000000000",
    "-",
    "007",
]
SCALARS = [None, True, False, *TEXTS, b"", b"post", *NUMBERS, *SPELLED]


def may_hold(codec: str | Codec, value: Any) -> bool:
    if codec == "json":
        return not isinstance(value, bytes) and not (isinstance(value, float) and not isfinite(value))
    return codec != "bipf" or not any(value is wide for wide in WIDE)


def values(codec: str | Codec) -> st.SearchStrategy[Any]:
    scalars = st.sampled_from([value for value in SCALARS + WIDE if may_hold(codec, value)])
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    )


def records(codec: str | Codec) -> st.SearchStrategy[Any]:
    numbers = st.sampled_from([value for value in NUMBERS + WIDE if may_hold(codec, value)]) | st.integers(0, 20)
    field = values(codec)
    shape = {"a": field, "b": field, "type": st.sampled_from(TEXTS), "list": st.lists(field, max_size=3)}
    numbers |= st.sampled_from(TIMES + SPELLED)
    envelope = {
        "timestamp": numbers,
        "value": st.fixed_dictionaries({}, optional={"timestamp": numbers, "sequence": numbers}),
    }
    return st.fixed_dictionaries({}, optional={**shape, **envelope}) | field


PATHS = st.sampled_from(
    [
        ("a",), ("b",), ("type",), ("a", "b"), ("a", ""), ("list",), ("value", "sequence"), ("none",),
        ("list", 0), ("list", 1, "a"), ("a", 0), ("a", "b", 0, "type"), (0,), (0, "a"),
        ("list", None), ("list", None, "a"), ("list", 0, None), ("list", None, None), ("a", None, "b", None), (None,),
        ("value", None), (None, "type"),
    ]
)  # fmt: skip
ONE_VALUED = PATHS.filter(lambda path: None not in path)
SORT_KEYS = st.lists(
    st.builds(SortKey, ONE_VALUED, st.booleans()), min_size=1, max_size=3, unique_by=lambda key: key.path
)
OPTIONS = st.sampled_from(
    [
        {},
        {},
        {"prefix": 32},
        {"prefix": 32, "prefix_offset": 1},
        {"use_map": True},
        {"index_all": True},
        {"prefix": False},
    ]
)


def truthy(value: Any) -> bool:
    return bool(value)


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def leaves(codec: str | Codec) -> st.SearchStrategy[Operation]:
    value = values(codec)
    number = st.sampled_from([n for n in NUMBERS + WIDE if n == n]) | st.integers(-2, 20)
    places = st.lists(st.integers(0, 40), max_size=5)
    return st.one_of(
        st.builds(lambda p, v, o: equal(p, v, **o), PATHS, value, OPTIONS),
        st.builds(lambda p, v, o: equal(p, v, **o), st.just(("type",)), st.sampled_from(TEXTS), OPTIONS),
        st.builds(lambda p, v, k, o: includes(p, v, pluck=k, **o), PATHS, value, st.none() | PATHS, OPTIONS),
        st.builds(lambda p, o: absent(p, **o), PATHS, OPTIONS),
        st.builds(lambda p: predicate(p, truthy), PATHS),
        st.builds(lambda p: predicate(p, is_text), PATHS),
        st.builds(starts_with, PATHS, st.sampled_from(["", "p", "post", "%abc", "x" * 39, b"po"])),
        st.builds(
            lambda f, p, v, case: f(p, v, ignore_case=case),
            st.sampled_from([contains, starts_with, ends_with, like, matches]),
            PATHS,
            st.sampled_from(["", "P", "os", "ost", "x" * 39, "É", "p%d", "_ost%", "^%?ab", "(p|é)"]),
            st.booleans(),
        ),
        st.builds(lambda f, p: f(p, b"os"), st.sampled_from([contains, ends_with]), PATHS),
        st.builds(lambda path, some: isin(path, [*some, *range(100, 100 + FEW)]), PATHS, st.lists(value, min_size=1)),
        st.builds(fits, PATHS, st.sampled_from(["", "post", "<*>", "p%d", "x" * 39, "<num>"])),
        st.builds(
            lambda t, case: anywhere(t, ignore_case=case), st.sampled_from(["os", "É", "1", "ul"]), st.booleans()
        ),
        st.builds(
            lambda f, v, i: f(v, i),
            st.sampled_from([gt, gte, lt, lte]),
            number,
            st.sampled_from(["timestamp", "sequence", "a", ("timestamp",), "list[0]", "list[]", "a[].b", "[]"]),
        ),
        st.builds(
            lambda f, v, i: f(v, i),
            st.sampled_from([gt, gte, lt, lte]),
            st.sampled_from(TIMES[:-1]),
            st.sampled_from([("timestamp",), ("value", "timestamp"), "a", "list[]", "list[0]"]),
        ),
        st.builds(
            lambda f, v, i: f(v, i),
            st.sampled_from([gt, gte, lt, lte]),
            st.sampled_from(["trace", "Info", "notice", "warn", "ERROR", "fatal", "emerg", "W"]),
            st.sampled_from(["a", "type", "list[]", "list[0]", "value.sequence"]),
        ),
        st.builds(
            between,
            st.sampled_from(["timestamp", "sequence", "a", ("timestamp",), "list[0]", "value.sequence"]),
            number,
            number,
        ),
        st.builds(
            between,
            st.sampled_from([("timestamp",), ("value", "timestamp"), "a", "list[0]"]),
            st.sampled_from(TIMES[:-1]),
            st.sampled_from(TIMES[:-1]),
        ),
        st.builds(seqs, places),
        st.builds(at_offsets, st.lists(st.integers(0, 2000), max_size=5)),
    )


def operations(codec: str | Codec) -> st.SearchStrategy[Operation]:
    return st.recursive(
        leaves(codec),
        lambda inner: st.one_of(
            st.builds(lambda parts: and_(*parts), st.lists(inner, min_size=1, max_size=3)),
            st.builds(lambda parts: or_(*parts), st.lists(inner, min_size=1, max_size=3)),
            st.builds(not_, inner),
        ),
        max_leaves=6,
    )


def check(db: JITDB, oracle: Oracle, operation: Operation, data: st.DataObject) -> None:
    """Every way of asking gives the oracle's answer."""
    descending = data.draw(st.booleans(), "descending")
    by = data.draw(st.sampled_from(["arrival", "declared"]) | SORT_KEYS, "sort_by")
    start = data.draw(st.integers(0, 5), "start_from")
    limit = data.draw(st.integers(1, 7), "limit")
    order: dict[str, Any] = {"descending": descending, "sort_by": by}
    if isinstance(by, str):
        ordered = oracle.ordered(operation, descending=descending, arrival=by == "arrival")
    else:
        ordered = oracle.sorted_by(operation, by, descending=descending)
    expected = [oracle.offsets[seq] for seq in ordered]
    assert db.count(operation) == len(expected)
    assert db.count(operation, start_from=start) == max(0, len(expected) - start)
    assert db.all(operation, as_offsets=True, start_from=start, **order) == expected[start:]
    page = db.paginate(operation, limit=limit, start_from=start, as_offsets=True, **order)
    assert (page.data, page.total) == (expected[start : start + limit], len(expected))
    assert [o for p in db.pages(operation, limit=limit, as_offsets=True, **order) for o in p.data] == expected


@pytest.mark.parametrize("codec", ["bipf", "msgpack", "json", Masked()], ids=str)
@pytest.mark.parametrize("block_size", [512, 1 << 17])
@given(data=st.data())
@settings(max_examples=tries(6, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_are_the_oracles(
    codec: str | Codec, block_size: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("random") / "log"
    with Log(path, codec=codec, block_size=block_size) as log:
        unit = data.draw(st.sampled_from(UNITS), "time_unit")
        folder = data.draw(st.sampled_from(["memory", None]), "indexes")
        db = JITDB(log, folder, time_unit=unit, threads=data.draw(st.integers(1, 2)))
        known: list[Any] = []
        offsets: list[int] = []
        deleted: set[int] = set()
        asked: list[Operation] = []
        for _ in range(data.draw(st.integers(1, 3), "rounds")):
            fresh = [record for record in data.draw(st.lists(records(codec), max_size=15)) if storable(log, record)]
            offsets += map(int, log.append_many(fresh))
            known += fresh
            log.flush()
            for seq in data.draw(st.lists(st.integers(0, max(0, len(known) - 1)), max_size=3)):
                if known and seq not in deleted:
                    log.delete(offsets[seq])
                    deleted.add(seq)
            log.flush()
            decoded = [log.codec.decode(log.codec.encode(record)) for record in known]
            oracle = Oracle(decoded, offsets, deleted, db.declared_time, unit=unit)
            asked += data.draw(st.lists(operations(codec), min_size=1, max_size=3))
            for operation in asked:  # those of earlier rounds too: what was remembered of them must not be stale
                check(db, oracle, operation, data)
        again = JITDB(log, db.folder, time_unit=unit)  # reads the index files that the first one wrote
        decoded = [log.codec.decode(log.codec.encode(record)) for record in known]
        oracle = Oracle(decoded, offsets, deleted, again.declared_time, unit=unit)
        for operation in data.draw(st.lists(operations(codec), max_size=2)):
            check(again, oracle, operation, data)
    assert Path(path).exists()


def storable(log: Log, record: Any) -> bool:
    """Whether the log takes the record: not too large, and not all zeros, which is how a deleted one looks."""
    raw = log.codec.encode(record)
    return 0 < len(raw) <= 500 and raw.count(0) < len(raw)
