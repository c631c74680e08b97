"""JITDB.finder: the records that a loop over all finds, the newest first; others only where hashes are the same."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from thoroughness import tries

import jitdb
from jitdb import JITDB
from jitdb.common.values import value_key
from jitdb.errors import QueryError
from jitdb.indexes.kinds.prefixes import hash_prefix

FEW, MANY, SPARSE = "few values", "many values", "sparse"


def values(kind: str, rng: Random, count: int) -> list[Any]:
    """What the records hold in the field; None for those that lack it."""
    if kind == FEW:
        return [rng.choice(["a", "b", 1, True, b"a"]) for _ in range(count)]
    if kind == MANY:
        return [rng.choice([rng.randrange(count), f"value {rng.randrange(count)}"]) for _ in range(count)]
    return [f"value {number}" if rng.random() < 0.01 else None for number in range(count)]


def record(value: Any) -> dict[str, Any]:
    return {"other": 1} if value is None else {"field": value}


@pytest.fixture
def db(tmp_path: Path):
    with jitdb.open(tmp_path / "x.log", create=True) as found:
        yield found


def expected(held: list[Any], deleted: set[int], value: Any, below: int) -> list[int]:
    """By a plain loop: 1 is not true, and text is not bytes."""
    return [
        seq
        for seq in reversed(range(min(below, len(held))))
        if type(held[seq]) is type(value) and held[seq] == value and seq not in deleted
    ]


@pytest.mark.parametrize("kind", [FEW, MANY, SPARSE])
@pytest.mark.parametrize("seed", range(tries(3, 30)))
def test_it_finds_what_a_loop_finds(db: JITDB, kind: str, seed: int) -> None:
    rng = Random(f"{kind} {seed}")
    held: list[Any] = []
    deleted: set[int] = set()
    offsets: list[int] = []
    for _ in range(3):  # the log grows in between, and so do the segments of its index
        fresh = values(kind, rng, rng.randrange(1, 3000))
        offsets += db.log.append_many(map(record, fresh))
        held += fresh
        for seq in rng.sample(range(len(held)), min(5, len(held))):
            if seq not in deleted:
                db.log.delete(offsets[seq])
                deleted.add(seq)
        db.log.flush()
        finder = db.finder("field")
        assert finder.end_seq == len(held)
        assert finder.offsets.tolist() == offsets
        wanted = [value for value in rng.sample(held, min(20, len(held))) if value is not None]
        for value in [*wanted, "nothing", 10**9]:
            below = rng.choice([len(held), len(held) // 2, 0])
            found = list(finder.candidates(value, below))
            assert found == sorted(found, reverse=True) == [seq for seq in reversed(finder.seqs(value)) if seq < below]
            assert not deleted & set(found)
            matching = [seq for seq in found if db.log.get(offsets[seq]) == record(held[seq]) and seq < below]
            assert matching == found
            exact = expected(held, deleted, value, below)
            assert [seq for seq in found if type(held[seq]) is type(value) and held[seq] == value] == exact


def test_of_what_comes_later_it_knows_nothing(db: JITDB) -> None:
    db.log.append({"field": "x"})
    db.log.flush()
    finder = db.finder("field")
    db.log.append({"field": "x"})
    db.log.flush()
    assert list(finder.candidates("x")) == [0]
    assert list(db.finder("field").candidates("x")) == [1, 0]


def test_of_an_empty_log(db: JITDB) -> None:
    finder = db.finder("field")
    assert finder.end_seq == 0
    assert list(finder.candidates("x")) == list(finder.seqs("x")) == []


def test_what_is_no_path_or_value(db: JITDB) -> None:
    with pytest.raises(QueryError):
        db.finder(7)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        db.finder("field").candidates({1, 2})


@pytest.mark.parametrize("values", [3, 10_000], ids=["bitmaps", "prefixes"])
def test_elements_of_lists_and_all_pairs(db: JITDB, values: int) -> None:
    rng = Random(values)
    held = [[rng.randrange(values) for _ in range(rng.randrange(4))] for _ in range(2000)]
    offsets = db.log.append_many({"field": each} for each in held)
    db.log.delete(offsets[7])
    db.log.flush()
    finder = db.finder("field", elements=True)
    for value in {0, 1, *held[7], *held[8], *held[9]}:
        found = list(finder.candidates(value))
        assert 7 not in found
        assert set(found) >= {seq for seq, each in enumerate(held) if value in each and seq != 7}
    hashes, seqs = finder.pairs()
    assert (np.diff(hashes.astype(np.int64)) >= 0).all()
    pairs = set(zip(hashes.tolist(), seqs.tolist(), strict=True))
    expected = {(hash_prefix(value_key(value)), seq) for seq, each in enumerate(held) for value in each}
    assert pairs >= {pair for pair in expected if pair[1] != 7}
    assert pairs <= expected
