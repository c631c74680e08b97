"""NaN and the infinities in a column: NaN is stored, asked for and counted, and is no number to what compares."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import manager_of
from oracle import Oracle

import jitdb
from jitdb import JITDB
from jitdb.common.values import value_key
from jitdb.engine.hinting.evidence import LogEvidence
from jitdb.operators import field
from jitdb.operators.nodes.operation import everything
from jitdb.operators.nodes.selection import sort_keys

COLUMNS = [
    [math.nan],
    [1, math.nan, -2.5, None],
    [math.inf, math.nan, -math.inf, 0],
    [math.nan, math.nan, 2**53 + 1, -(2**63)],
    [math.inf, 5, math.inf],
    [math.nan, "text", 3],
    ["2026-11-01T00:00:00Z", math.nan, "2026-10-01T00:00:00Z", None],
]


@pytest.fixture(params=COLUMNS, ids=repr)
def column(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def db(column: list[Any], tmp_path: Path) -> Any:
    with jitdb.Log(tmp_path / "log", codec="msgpack") as log:
        log.append_many([{"a": value, "timestamp": value} for value in column])
        log.flush()
        yield JITDB(log, "memory")


def keys(values: list[Any]) -> list[bytes]:
    return [value_key(value) for value in values]


def as_numbers(column: list[Any]) -> list[Any]:
    return [value for value in column if type(value) in (int, float) and value == value]


def test_ranges_and_equality(db: JITDB, column: list[Any]) -> None:
    numbers = as_numbers(column)
    for bound in [*numbers, 0, math.inf, -math.inf]:
        assert db.count(field("a") > bound) == sum(value > bound for value in numbers)
        assert db.count(field("a") <= bound) == sum(value <= bound for value in numbers)
    assert db.count(field("a") == math.nan) == sum(value != value for value in column)
    assert db.count(field("a").isin([math.nan, math.inf])) == sum(
        value != value or value == math.inf for value in column
    )


def test_counts_and_statistics(db: JITDB, column: list[Any]) -> None:
    numbers = as_numbers(column)
    assert {value_key(row.value): row.count for row in db.value_counts("a")} == {
        key: keys(column).count(key) for key in keys(column)
    }
    stats = db.stats("a")
    assert (stats.count, stats.total) == (len(numbers), len(column))
    assert (stats.min, stats.max) == (min(numbers, default=None), max(numbers, default=None))
    found = db.histogram("a", bins=3)
    finite = [value for value in numbers if math.isfinite(value)]
    assert [row.count for row in found] == [sum(row.low <= value < row.high for value in finite) for row in found]
    assert sum(found.counts) == len(finite)
    assert (found.below, found.above) == (numbers.count(-math.inf), numbers.count(math.inf))
    assert found.missing == len(column) - len(numbers)


@pytest.mark.parametrize("descending", [False, True])
def test_sorting_and_what_is_handed_over(db: JITDB, column: list[Any], descending: bool) -> None:
    oracle = Oracle([{"a": value} for value in column], range(len(column)), set())
    expected = [column[seq] for seq in oracle.sorted_by(everything(), sort_keys("", ["a"]), descending=descending)]
    for _ in range(2):  # by what the first records tell, and by what the indexes do
        found = [record["a"] for record in db.all(sort_by="a", descending=descending)]
        assert keys(found) == keys(expected)
    if not any(isinstance(value, str) for value in column):
        table = db.query().sort_by("arrival").to_arrow(["a"])
        held = [None if value is None else float(value) for value in table["a"].to_pylist()]
        assert repr(held) == repr([None if value is None else float(value) for value in column])


def test_a_declared_time_that_is_nan_is_none(db: JITDB, column: list[Any]) -> None:
    """Nothing is said of another kind, as nothing is of null."""
    page = db.query(field("timestamp") > -math.inf).page(9)
    assert page.total == sum(value > -math.inf for value in as_numbers(column))
    first = [record["timestamp"] for record in db.query().page(9).data]
    without = [value for value in column if value is None or value != value or value == "text"]
    assert sorted(keys(first)) == sorted(keys(column))
    assert sorted(keys(first[: len(without)])) == sorted(keys(without)) or not without
    asked = db.query(field("timestamp") > "2026-01-01")
    asked.count()
    remarks = "".join(LogEvidence(manager_of(db)).remarks(asked.question.operation))
    assert ("no times" in remarks) == ("text" in column)
