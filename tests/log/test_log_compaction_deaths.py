"""A compaction that dies at any call, or fails at any: the old log or the new, and nothing between."""

from __future__ import annotations

import fcntl
import random
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from compaction_cases import assert_sound, fill, make, numbers
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk
from stepping import Stepping

from jitdb.errors import LogWriteFailed
from jitdb.log import Log
from jitdb.log.io import filenames, osfile

pytestmark = pytest.mark.slow


class Died(BaseException):
    """The process is gone."""


class Mortal(Stepping):
    """Counts the calls that change something; at number `last` the process dies: nothing is done from then on."""

    STEPS = ("pwrite", "fsync", "fdatasync", "truncate", "rename", "unlink", "open")

    def __init__(self, last: int = -1, error: OSError | None = None) -> None:
        self.calls = 0
        self.last = last
        self.error = error

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        self.locked = fd
        return super().lock(fd, shared=shared)

    def release(self) -> None:
        """As the system does when a process is gone."""
        fcntl.flock(self.locked, fcntl.LOCK_UN)

    def step(self) -> None:
        self.calls += 1
        if self.error is not None:
            if self.calls == self.last:
                raise self.error
        elif 0 <= self.last < self.calls:
            raise Died


def steps_of_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Which calls of a Mortal belong to the compaction of the log that `compacted` makes."""
    path = tmp_path / "count.log"
    make(path, 60, [0, 1, 2, 30, 59], block_size=256)
    system = Mortal()
    monkeypatch.setattr(osfile, "fs", system)
    with Log(path) as log:
        first = system.calls
        log.compact()
        last = system.calls
    monkeypatch.undo()
    return first, last


LIVE = [number for number in range(60) if number not in (0, 1, 2, 30, 59)]


def test_death_at_any_call_leaves_the_old_log_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = steps_of_a_compaction(tmp_path, monkeypatch)
    generations = []
    for call in range(first, last):
        path = tmp_path / f"{call}.log"
        make(path, 60, [0, 1, 2, 30, 59], block_size=256)
        with monkeypatch.context() as patch:
            system = Mortal(call)
            patch.setattr(osfile, "fs", system)
            log = Log(path)
            with pytest.raises(Died):
                log.compact()
            system.release()
        with Log(path, read_only=True) as reader:  # before anybody puts it in order
            assert numbers(reader) == LIVE
            generation = reader.generation
            identity = reader.identity
        with Log(path) as again:
            assert numbers(again) == LIVE
            assert (again.generation, again.identity) == (generation, identity)
            generations.append(generation)
            assert again.compact().removed == (5 if generation == 1 else 0)
            fill(again, 1, first=60)
        with Log(path) as again:
            assert numbers(again) == [*LIVE, 60]
        assert_sound(path)
    assert generations == sorted(generations)
    assert set(generations) == {1, 2}


def test_the_log_of_before_beside_a_sidecar_in_the_middle_of_the_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As who copies the log, and then its sidecar, finds them: it is the log of before, for readers and writers."""
    first, last = steps_of_a_compaction(tmp_path, monkeypatch)
    old = tmp_path / "old.log"
    make(old, 60, [0, 1, 2, 30, 59], block_size=256)
    tried = set()
    for call in range(last - 1, first, -2):
        path = tmp_path / f"{call}.log"
        sidecar = filenames.sidecar_path(path)
        shutil.copy2(old, path)
        shutil.copytree(filenames.sidecar_path(old), sidecar)
        with monkeypatch.context() as patch:
            patch.setattr(osfile, "fs", Mortal(call))
            log = Log(path)
            identity = log.identity
            with pytest.raises(Died):
                log.compact()
            with suppress(Died):
                log.close()
        if (sidecar / filenames.NEXT_LOG).exists():
            break
        shutil.copy2(old, path)
        is_known = (sidecar / filenames.NEXT_DELETIONS).exists()  # else those of before are gone
        tried.add(is_known)
        seen = set()
        for read_only in (True, True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("error" if is_known else "ignore")
                with Log(path, read_only=read_only) as again:
                    assert numbers(again) == LIVE
                    seen.add((again.generation, again.identity))
        assert len(seen) == 1
        assert (seen == {(1, identity)}) is is_known
    assert tried == {True, False}


def test_an_error_at_any_call_is_clear_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = steps_of_a_compaction(tmp_path, monkeypatch)
    went_on, generations = 0, []
    for call in range(first + 1, last + 1):
        path = tmp_path / f"{call}.log"
        make(path, 60, [0, 1, 2, 30, 59], block_size=256)
        with monkeypatch.context() as patch:
            patch.setattr(osfile, "fs", Mortal(call, OSError(28, "No space left on device")))
            log = Log(path)
            identity = log.identity
            with suppress(LogWriteFailed):
                log.compact()
            with suppress(LogWriteFailed):  # it refuses to go on after the switch has begun
                log.append(b"000060")
                log.flush()
                went_on += 1
                assert not list(log.sidecar.glob("next*"))  # the room of the copy is given back
            with suppress(LogWriteFailed):
                log.close()
        with Log(path) as again:
            assert numbers(again)[:55] == LIVE
            assert numbers(again)[55:] in ([], [60])
            assert again.identity == identity
            generations.append(again.generation)
        assert_sound(path)
    assert generations == sorted(generations)
    assert set(generations) == {1, 2}
    assert went_on > 5


def test_a_compacted_log_that_a_reader_has_seen_stays_after_a_power_failure() -> None:
    """Who compacted it died before the log's new name was on the disk: the reader sees to that."""

    def compacted(stop: int) -> tuple[Disk, Process]:
        disk = Disk()
        disk.mkdir("/disk")
        disk.sync_all()
        process = Process(disk, stop_at=stop)
        log = None
        with running(process), suppress(Stopped):
            log = Log("/disk/a.log", codec="raw", block_size=512, flush_interval=3600)
            offsets = log.append_many([b"x" * 50] * 20)
            log.flush()
            log.delete(offsets[3])
            log.compact()
        if log is not None:
            let_go(log, process)
        return disk, process

    seen = 0
    for stop in range(1, compacted(-1)[1].changes):
        disk, _ = compacted(stop)
        if disk.exists("/disk/a.log.jitdb/next") and not disk.exists("/disk/a.log.jitdb/next-log"):
            with running(Process(disk)), Log("/disk/a.log", read_only=True) as log:
                assert (log.generation, log.stats().records) == (2, 19)
            seen += 1
            for seed in range(20):
                with running(Process(disk.crash(random.Random(seed)))), Log("/disk/a.log", read_only=True) as log:
                    assert (log.generation, log.stats().records) == (2, 19)
    assert seen > 3
