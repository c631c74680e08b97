"""Log.delete_many: all of the records are deleted or none, as if each was deleted by itself."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk
from pyroaring import BitMap64
from thoroughness import tries

from jitdb.errors import InvalidOffset, LogClosed, LogReadOnly, RecordDeleted
from jitdb.log import Log
from jitdb.log.writing import writer


def bodies(log: Log) -> list[bytes]:
    return [record.value for record in log.stream()]


def records(count: int) -> list[bytes]:
    return [b"%d " % number * (1 + number % 50) for number in range(1, count + 1)]


@pytest.fixture
def log(tmp_path: Path):
    with Log(tmp_path / "x.log", codec="raw", block_size=4096) as found:
        yield found


@pytest.mark.parametrize("count", [1, 20, 700])
def test_all_of_them_go(log: Log, count: int) -> None:
    held = records(1000)
    offsets = log.append_many(held)
    gone = Random(count).sample(range(1000), count)
    log.delete_many(offsets[number] for number in [*gone, gone[0]])  # any order, and one of them twice
    left = [body for number, body in enumerate(held) if number not in gone]
    assert bodies(log) == left
    for number in gone[:3]:
        with pytest.raises(RecordDeleted):
            log.get(offsets[number])
    log.flush()
    with Log(log.path, read_only=True) as reader:
        assert bodies(reader) == left
        assert reader.stats().deleted_records == count
    assert log.verify().ok


def test_none_goes_where_one_is_none(log: Log) -> None:
    offsets = log.append_many(records(100))
    log.flush()
    log.delete(offsets[7])
    for wrong, error in [
        ([*offsets[:5], offsets[5] + 1], InvalidOffset),
        ([offsets[0], -1], InvalidOffset),
        ([offsets[0], 1 << 70], InvalidOffset),
        ([offsets[0], log.durable_end], InvalidOffset),
        ([offsets[0], "1"], InvalidOffset),
        ([offsets[0], True], InvalidOffset),
        (5, InvalidOffset),
        (b"\0", InvalidOffset),
        (offsets[:50], RecordDeleted),
        ([offsets[7]], RecordDeleted),
    ]:
        with pytest.raises(error):
            log.delete_many(wrong)  # type: ignore[arg-type]
        log.flush()
        assert len(bodies(log)) == 99
    log.delete_many([])
    assert len(bodies(log)) == 99


def test_what_is_not_durable_yet_goes_too(log: Log) -> None:
    offsets = log.append_many(records(10))
    log.delete_many(offsets[5:])
    assert bodies(log) == records(5)


def test_who_may_not(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log", codec="raw") as log:
        (offset,) = log.append_many([b"a"])
    with pytest.raises(LogClosed):
        log.delete_many([offset])
    with Log(tmp_path / "x.log", read_only=True) as reader, pytest.raises(LogReadOnly):
        reader.delete_many([offset])


def test_in_portions_and_in_order(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_ERASED", 7)
    offsets = log.append_many(records(100))
    log.flush()
    order = [*offsets[50:70], offsets[3], offsets[99], *offsets[10:30], offsets[0]]
    log.delete_many(offsets[50:70])
    for offset in (offsets[3], offsets[99]):
        log.delete(offset)
    log.delete_many(BitMap64(offsets[10:30]))
    log.delete(offsets[0])
    with pytest.raises(RecordDeleted):
        log.delete_many(BitMap64(offsets[25:35]))
    log.flush()
    assert log.deletions()[1].tolist() == order
    left = [body for number, body in enumerate(records(100)) if offsets[number] not in order]
    assert bodies(log) == left
    assert log.verify().ok
    with Log(log.path, read_only=True) as reader:
        assert reader.deletions()[1].tolist() == order
        assert bodies(reader) == left


@pytest.mark.parametrize("portion", [1 << 16, 30])
def test_power_fails_at_any_call(portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone then stands before all that is not: they go in the order of the log."""
    monkeypatch.setattr(writer, "_ERASED", portion)
    held = records(300)
    for stop_at in range(1, 40 if portion > 100 else 70, tries(3, 1)):
        disk = Disk(stop_at)
        path = Path("/x.log")
        with running(Process(disk)), Log(path, codec="raw", block_size=4096) as log:
            offsets = log.append_many(held)
        done, log = False, None
        with running(Process(disk, stop_at=stop_at)) as process:
            try:
                log = Log(path)
                log.delete_many(offsets[50:250:2])
                log.flush()
                done = True
            except Stopped:
                pass
            if log is not None:
                let_go(log, process)
        with running(Process(disk.crash(Random(stop_at)))), Log(path) as log:
            left = bodies(log)
            gone = [number for number, body in enumerate(held) if body not in left]
            assert gone == list(range(50, 250, 2))[: len(gone)]
            assert len(gone) == 100 or not done
