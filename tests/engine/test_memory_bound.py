"""The bound on what the databases of a process hold in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import jitdb
from jitdb.common import memory
from jitdb.errors import InvalidArgument
from jitdb.indexes.segment import blob_cache
from jitdb.log import Log

MIB = 1 << 20


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_bound", memory.DEFAULT)


def made(path: Path, count: int) -> Path:
    with Log(path, codec="msgpack") as log:
        log.append_many([{"n": number % 1000, "m": number} for number in range(count)])
    return path


def test_it_is_given_when_a_database_is_opened(tmp_path: Path) -> None:
    path = made(tmp_path / "a.log", 10)
    with jitdb.open(path, read_only=True):
        assert memory.bound() == memory.DEFAULT
    with jitdb.open(path, read_only=True, memory=64 * MIB) as db:
        assert memory.bound() == 64 * MIB
        assert db.count("n > 3") == 6
    with jitdb.open(path, read_only=True):
        assert memory.bound() == 64 * MIB  # nobody has said another one
    with jitdb.open_many(path, memory=32 * MIB):
        assert memory.bound() == 32 * MIB
    for wrong in (0, 1000, -1, "256M", 1.5, True):
        with pytest.raises(InvalidArgument, match="memory is a number of bytes"):
            jitdb.open(path, read_only=True, memory=wrong)  # type: ignore[arg-type]
    assert memory.bound() == 32 * MIB


def test_the_shares_are_no_more_than_the_whole() -> None:
    memory.limit(64 * MIB)
    assert memory.for_blobs() + memory.for_sets() + memory.work() == 64 * MIB
    assert memory.work(5) == 5
    assert memory.work(1 << 40) == 16 * MIB


def test_answers_do_not_depend_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "a.log", 20_000)
    asked = ["n > 500", "n == 7", "m < 100 or n >= 990", "not n < 999"]
    with jitdb.open(path, indexes="memory") as db:
        expected = [(db.count(each), list(db.query(each).page(50).data)) for each in asked]
    monkeypatch.setattr(memory, "_bound", 4000)
    with jitdb.open(path) as db:
        for _ in range(2):
            assert [(db.count(each), list(db.query(each).page(50).data)) for each in asked] == expected
        evaluator = db._manager.evaluator
        assert len(evaluator._known) == 1 or memory.Held.total <= memory.for_sets()
    assert blob_cache.bytes <= 8 * 20_000  # one blob in any case


def test_sets_of_several_databases_share_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [made(tmp_path / f"{name}.log", 5000) for name in "abc"]
    databases = [jitdb.open(path, read_only=True) for path in paths]
    held = [db._manager.evaluator._held for db in databases]
    monkeypatch.setattr(memory, "for_sets", lambda: 3000 + memory.Held.total - sum(each.bytes for each in held))
    for number in range(200):
        for db in databases:
            assert db.count(f"n == {number}") == 5
    assert all(each.bytes for each in held)
    assert sum(each.bytes for each in held) <= 3000
    for db in databases:
        db.close()
    assert sum(each.bytes for each in held) == 0
