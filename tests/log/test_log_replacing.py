"""Another log takes the place of one that is open: who reads it here must notice, and its writer goes on with it."""

from __future__ import annotations

import errno
import random
import threading
import warnings
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk

from jitdb.errors import CodecError, LogError, LogReadOnly, LogSuperseded, LogWriteFailed, RecordTooLarge
from jitdb.log import Log
from jitdb.log.io import osfile

OLD, NEW = 64, 256  # bytes of a block


def made(path: Path, records: list[Any], block_size: int, codec: str = "msgpack") -> Path:
    with Log(path, codec=codec, block_size=block_size) as log:
        log.append_many(records)
    return path


def replaced(log: Log, folder: Path, records: list[Any], codec: str = "msgpack") -> None:
    log.replace_with(made(folder / "fresh.log", records, NEW, codec), codec)


def values(log: Log) -> list[Any]:
    return [record.value for record in log.stream()]


def test_the_writer_goes_on_with_the_new_log(tmp_path: Path) -> None:
    path = made(tmp_path / "x.log", [{"n": 1}, {"n": 2}], OLD)
    with Log(path, codec="msgpack", block_size=OLD) as log:
        before = log.identity
        with pytest.raises(RecordTooLarge):
            log.append("x" * 100)
        replaced(log, tmp_path, ["a", "b", "c"], "bipf")
        assert (log.codec.name, log.block_size) == ("bipf", NEW)
        assert log.identity != before
        offsets = log.append_many(["x" * 100, *("y" * 50 for _ in range(20))])
        log.flush()
        assert values(log) == ["a", "b", "c", "x" * 100, *["y" * 50] * 20]
        assert log.get(offsets[-1]) == "y" * 50
        assert log.verify().ok
        assert log.repair().before.ok  # opens it again, as what it is now
        log.append("z")
        assert not (tmp_path / "fresh.log").exists()
    for read_only in (True, False):
        with Log(path, read_only=read_only) as log:
            assert len(values(log)) == 25
            assert log.verify().ok


@pytest.mark.parametrize("records", [[7, 8], [4, 5, 6]], ids=["another end", "the same end"])
def test_a_live_stream_and_observers_in_the_same_process_notice(tmp_path: Path, records: list[int]) -> None:
    path = made(tmp_path / "x.log", [1, 2, 3], OLD)
    with Log(path) as log:
        heard: list[int] = []
        log.on_since(heard.append)
        waits = threading.Event()
        failures: list[Exception] = []

        def follow() -> None:
            try:
                for record in log.stream(live=True):
                    if record.value == 3:
                        waits.set()
            except LogError as error:
                failures.append(error)

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        assert waits.wait(30)
        since = log.since
        replaced(log, tmp_path, records)
        thread.join(30)
        assert not thread.is_alive()
        assert "another log has taken its place" in str(failures[0])
        assert heard == ([log.since] if log.since != since else [])


def test_a_reader_beside_it_finds_another_log(tmp_path: Path) -> None:
    path = made(tmp_path / "x.log", [1, 2, 3], OLD)
    with Log(path) as log, Log(path, read_only=True) as reader:
        before = reader.identity
        replaced(log, tmp_path, [7, 8])
        assert values(reader) == [1, 2, 3]
        with pytest.raises(LogSuperseded):
            reader.deletions()  # as the engine asks before it answers
        assert reader.refresh()
        assert values(reader) == [7, 8]
        assert reader.identity == log.identity != before


def test_what_cannot_be_replaced_stays_as_it_is(tmp_path: Path) -> None:
    path = made(tmp_path / "x.log", [1], OLD)
    fresh = made(tmp_path / "fresh.log", [2], OLD)
    with Log(path, read_only=True) as log, pytest.raises(LogReadOnly):
        log.replace_with(fresh, "msgpack")
    with Log(path) as log:
        with pytest.raises(CodecError):
            log.replace_with(fresh, "morse")
        with pytest.raises(LogError, match="no such file"):
            log.replace_with(tmp_path / "none.log", "msgpack")
        log.append(3)
        assert [log.since, *values(log)] == [log.since, 1]
        log.flush()
        assert values(log) == [1, 3]


def test_a_change_that_is_cut_short_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(osfile.FileSystem):
        def rename(self, source: Path, target: Path) -> None:
            raise OSError(errno.EIO, "the disk is gone")

    path = made(tmp_path / "x.log", [1, 2], OLD)
    fresh = made(tmp_path / "fresh.log", [3], OLD)
    monkeypatch.setattr(osfile, "fs", Failing())
    log = Log(path)
    with pytest.raises(LogWriteFailed, match="the disk is gone"):
        log.replace_with(fresh, "msgpack")
    for _ in range(2):
        with pytest.raises(LogWriteFailed, match="another log was to take its place, and that was cut short: open"):
            log.append(3)
    log.close()
    monkeypatch.undo()
    with Log(path) as log:
        assert values(log) == [1, 2]
        log.append(3)


def test_a_power_failure_leaves_the_old_log_or_the_new() -> None:
    """Whole, as one log, with the checksums and deletions that it has."""
    old, new = [b"%03d" % number * 5 for number in range(1, 10)], [b"n%03d" % number * 20 for number in range(20)]

    whole = Disk()
    whole.mkdir("/disk")
    with running(Process(whole)):
        with Log("/disk/fresh.log", codec="raw", block_size=NEW) as fresh:
            fresh.append_many(new)
        with Log("/disk/x.log", codec="raw", block_size=OLD) as log:
            log.append_many([b"gone", *old])
            log.delete(0)
    whole.sync_all()

    def stopped_at(change: int) -> tuple[Disk, bool]:
        disk = deepcopy(whole)
        process, log = Process(disk), None
        with running(process), suppress(Stopped):
            log = Log("/disk/x.log", flush_interval=3600)
            process.stop_at = process.changes + change
            log.replace_with(Path("/disk/fresh.log"), "raw")
        assert log is not None
        stopped = process.stopped
        let_go(log, process)
        return disk.crash(random.Random(change)), stopped

    seen, change, stopped = set(), 0, True
    while stopped:
        change += 1
        disk, stopped = stopped_at(change)
        for read_only in (True, False):
            with running(Process(disk)), warnings.catch_warnings():
                warnings.simplefilter("error")
                with Log("/disk/x.log", read_only=read_only) as log:
                    found = values(log)
                    assert found in (old, new)
                    assert log.block_size == (OLD if found == old else NEW)
                    assert read_only or log.verify().ok
                    seen.add((change, found == new, log.identity, log.generation))
    assert change > 20
    assert len(seen) == change  # who opens it first does not make it another one
    assert {is_new for _, is_new, *_ in seen} == {True, False}
