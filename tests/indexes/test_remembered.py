"""What the evaluator remembers of earlier questions stays within its limits, and is right after being forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_helpers import manager_of

from jitdb import JITDB, Log
from jitdb.common import memory
from jitdb.engine.answering import candidate_filter, evaluate
from jitdb.errors import QueryError
from jitdb.operators import equal, gt, starts_with


def ask_all(db: JITDB) -> None:
    for turn in range(3):
        for number in range(40):
            assert db.count(equal("n", number)) == 25, (turn, number)
            assert db.count(gt(number, "n")) == 1000 - 25 * (number + 1)


@pytest.mark.parametrize(("count", "size"), [(1 << 12, 1 << 28), (5, 1 << 28), (1 << 12, 500), (1, 0)])
def test_remembered_sets_stay_within_their_limits(
    count: int, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "REMEMBERED", count)
    mine: list[memory.Held] = []  # beside what other tests left
    monkeypatch.setattr(memory, "for_sets", lambda: size + memory.Held.total - sum(each.bytes for each in mine))
    with Log(tmp_path / "x.log", codec="msgpack") as log:
        log.append_many([{"n": number % 40} for number in range(1000)])
        log.flush()
        db = JITDB(log)
        evaluator = manager_of(db).evaluator
        mine.append(evaluator._held)
        ask_all(db)
        known = evaluator._known
        assert evaluator._held.bytes == sum(one.bytes for one in known.values())
        assert len(known) <= count
        assert len(known) == 1 or evaluator._held.bytes <= size
        log.delete(log.append({"n": 3}))
        log.append_many([{"n": 3}] * 5)
        log.flush()
        assert db.count(equal("n", 3)) == 30
        assert evaluator._held.bytes == sum(one.bytes for one in known.values())


@pytest.mark.parametrize("limit", [1, 4096, 100_000])
def test_candidates_are_read_in_batches(limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_filter, "BATCH_BYTES", limit)
    with Log(tmp_path / "x.log", codec="bipf", block_size=1024) as log:
        log.append_many([{"k": f"same {number % 7}"} for number in range(900)])
        log.flush()
        db = JITDB(log)
        assert db.count(equal("k", "same 3", prefix=32)) == len(range(3, 900, 7))
        assert db.count(starts_with("k", "same")) == 900


def test_a_prefix_offset_that_no_file_can_hold() -> None:
    equal("k", "v", prefix=32, prefix_offset=2**31 - 1)
    with pytest.raises(QueryError, match="at most"):
        equal("k", "v", prefix=32, prefix_offset=2**31)
