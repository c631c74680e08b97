"""JITDB.columns: what a loop over all live records says of their fields."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from oracle import number_in
from thoroughness import tries

import jitdb
from jitdb import JITDB
from jitdb.common.values import UNDEFINED
from jitdb.errors import QueryError
from jitdb.operators import field

NUMBERS: list[Any] = [
    0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 513, 2**64 - 1025, 2**64 - 2, 2**64 - 1, 7.0, -1, -(2**63), 0.5,
    1e300, math.inf, -math.inf, math.nan, True, "12", "-7", str(2**64 - 1), "12x", None,
]  # fmt: skip
VALUES: list[Any] = [b"12345678", "12345678", 1, 2**64 - 1, True, None, [1, {"a": b"x"}], 0.5]


@pytest.fixture
def db(tmp_path: Path):
    with jitdb.open(tmp_path / "x.log", create=True) as found:
        yield found


def made(rng: Random) -> dict[str, Any]:
    record: dict[str, Any] = {"always": 1}
    if rng.random() < 0.9:
        record["number"] = rng.choice(NUMBERS)
    if rng.random() < 0.9:
        record["a"] = {"b": rng.choice(VALUES)}
    return record


@pytest.mark.parametrize("seed", range(tries(4, 100)))
def test_it_says_what_a_loop_says(db: JITDB, seed: int) -> None:
    rng = Random(seed)
    for _ in range(3):
        offsets = db.log.append_many(made(rng) for _ in range(rng.randrange(2000)))
        db.log.flush()
        for offset in rng.sample(offsets, len(offsets) // 10):
            db.log.delete(offset)
        start = rng.choice([0, 0, rng.randrange(1, 3000)])
        rows = [record for record in db.log.stream() if record.seq >= start]
        found = db.columns(["number"], [("a", "b"), "always"], start=start)
        assert found.offsets.tolist() == [row.offset for row in rows]
        naturals, fits = found.numbers[0].naturals()
        for row, natural, fit in zip(rows, naturals.tolist(), fits.tolist(), strict=True):
            number = number_in(row.value.get("number"))
            is_natural = type(number) in (int, float) and 0 <= number < 2**64 and number == number // 1
            assert (natural, fit) == (number if is_natural else 0, is_natural)
        values = [found.values[0].values[code] for code in found.values[0].codes.tolist()]
        expected = [row.value.get("a", {}).get("b", UNDEFINED) for row in rows]
        assert list(map(repr, values)) == list(map(repr, expected))
        assert all(found.values[1].values[code] == 1 for code in found.values[1].codes.tolist())


@pytest.mark.parametrize("seed", range(tries(3, 60)))
def test_of_what_matches_it_says_the_same(db: JITDB, seed: int) -> None:
    rng = Random(seed)
    for _ in range(2):
        offsets = db.log.append_many({**made(rng), "kind": rng.randrange(4)} for _ in range(rng.randrange(1, 2000)))
        db.log.flush()
        for offset in rng.sample(offsets, len(offsets) // 10):
            db.log.delete(offset)
        kind = rng.randrange(5)
        rows = [record for record in db.log.stream() if record.value["kind"] == kind]
        found = db.columns(["number"], [("a", "b")], where=field("kind") == kind)
        assert found.offsets.tolist() == [row.offset for row in rows]
        values = [found.values[0].values[code] for code in found.values[0].codes.tolist()]
        expected = [row.value.get("a", {}).get("b", UNDEFINED) for row in rows]
        assert list(map(repr, values)) == list(map(repr, expected))
        theirs = {repr(value) for value in expected if value is not UNDEFINED}
        assert sorted(map(repr, db.distinct("a.b", field("kind") == kind))) == sorted(theirs)
        kinds = {record.value["kind"] for record in db.log.stream()}
        assert sorted(db.distinct("kind")) == sorted(kinds)


def test_distinct_values_of_no_record(db: JITDB) -> None:
    assert db.distinct("a") == []
    db.log.append({"b": 1})
    db.log.flush()
    assert db.distinct("a") == db.distinct("b", field("b") == 2) == []
    with pytest.raises(QueryError):
        db.distinct(7)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        db.distinct("b", "b = 1")


def test_many_values_are_values_still(db: JITDB) -> None:
    db.log.append_many({"a": number} for number in range(5000))
    db.log.flush()
    (column,) = db.columns(values=["a"]).values
    assert np.array(column.values)[column.codes].tolist() == list(range(5000))


def test_the_end_tells_where_to_go_on(db: JITDB) -> None:
    assert db.columns(["a"], ["a"]).end_seq == 0
    db.log.append_many({"a": number} for number in range(10))
    db.log.flush()
    assert db.columns().end_seq == 10
    assert len(db.columns(["a"], ["a"], start=10).offsets) == 0
    assert len(db.columns(["a"], ["a"], start=10**6).offsets) == 0


def test_what_is_no_field(db: JITDB) -> None:
    for wrong in ([7], [""], [[]]):
        with pytest.raises(QueryError):
            db.columns(wrong)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        db.columns(["a"], start=-1)
