"""Disks that refuse, fall short or interrupt: nothing acknowledged is lost, and nothing is written after."""

from __future__ import annotations

import errno
import os
import random
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from stepping import Stepping
from waiting import until, until_ended

from jitdb.errors import LogWarning, LogWriteFailed
from jitdb.log import Log
from jitdb.log.io import osfile

pytestmark = pytest.mark.slow


class Faulty(Stepping):
    """Raises `error` at the call number `at` of the primitives that change something."""

    STEPS = ("pwrite", "fsync", "fdatasync", "truncate", "rename")

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.at = -1
        self.calls = 0

    def step(self) -> None:
        self.calls += 1
        if self.calls == self.at and self.error is not None:
            raise self.error


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    fs = Faulty()
    monkeypatch.setattr(osfile, "fs", fs)
    return fs


class Stutter(osfile.FileSystem):
    """Moves a few bytes at a time, and is interrupted in between."""

    def __init__(self) -> None:
        self.chance = random.Random(1)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if self.chance.random() < 0.2:
            raise InterruptedError(errno.EINTR, "")
        return super().pwrite(fd, data[: self.chance.randrange(1, 50)], offset)

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        if self.chance.random() < 0.2:
            raise InterruptedError(errno.EINTR, "")
        return super().preadv(fd, buffer[: self.chance.randrange(1, 5000)], offset)

    @staticmethod
    def pread(fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        return os.pread(fd, max(1, size // 3), offset)


def test_short_reads_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osfile, "fs", Stutter())
    records = [b"%03d" % number + b"x" * number for number in range(300)]
    with Log(tmp_path / "a.log", codec="raw", block_size=1024) as log:
        offsets = log.append_many(records)
        log.flush()
        log.delete(offsets[9])
        log.flush()
        assert log.get_many_raw(offsets[:9]) == records[:9]
    with Log(tmp_path / "a.log") as log:
        assert [record.value for record in log.stream()] == records[:9] + records[10:]
        assert [log.get(offset) for offset in offsets[10:]] == records[10:]
        assert log.stats().records == 299


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_every_write_fails_once(tmp_path: Path, faulty: Faulty, code: int) -> None:
    """Whichever call it is: the error is typed, the writer stops, and all that was flushed is there afterwards."""
    number = 0
    fired = True
    while fired:
        number += 1
        path = tmp_path / str(number) / "a.log"
        path.parent.mkdir()
        log = Log(path, codec="raw", block_size=512, flush_interval=60)
        faulty.error, faulty.calls, faulty.at = OSError(code, os.strerror(code)), 0, number
        appended: list[bytes] = []
        durable: list[bytes] = []
        fired = False
        try:
            for turn in range(4):
                appended += (records := [b"%d-%d" % (turn, at) + b"x" * 90 for at in range(8)])
                log.append_many(records[:4])
                log.append_transaction(records[4:])
                log.flush()
                durable = list(appended)
                if turn == 2:
                    log.delete(0)
                    log.flush()
            log.close()
        except LogWriteFailed as error:
            fired = True
            check_refusal(log, error, len(appended) > len(durable))
        faulty.at = -1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            again = Log(path, codec="raw", block_size=512)
        with again as log:
            values = [record.value for record in log.stream()]
            assert [value for value in durable if value not in values] in ([], durable[:1])
            assert [value for value in appended if value in values] == values
            log.append(b"goes on")
        with Log(path) as log:
            assert [record.value for record in log.stream()] == [*values, b"goes on"]
    assert number > 20


def check_refusal(log: Log, error: LogWriteFailed, unsaved: bool) -> None:
    assert isinstance(error.__cause__, OSError)
    assert error.path == str(log.path)
    if log.closed:
        return
    for call in (lambda: log.append(b"refused"), log.flush, lambda: log.append_many([b"refused"] * 5)):
        with pytest.raises(LogWriteFailed):
            call()
    assert sum(1 for _ in log.stream()) == log.stats().records
    if unsaved:
        with pytest.raises(LogWriteFailed):
            log.close()
        assert log.closed
    else:
        with suppress(LogWriteFailed):
            log.close()


def test_a_failed_opening_leaves_no_lock(tmp_path: Path, faulty: Faulty) -> None:
    for number in range(1, 40):
        faulty.error, faulty.calls, faulty.at = OSError(errno.ENOSPC, "full"), 0, number
        try:
            Log(tmp_path / f"{number}.log").close()
        except LogWriteFailed:
            faulty.at = -1
            with Log(tmp_path / f"{number}.log") as log:
                log.append({"a": 1})
        else:
            break
    assert number > 3


def test_a_failure_in_the_timer_is_told_later(tmp_path: Path, faulty: Faulty) -> None:
    log = Log(tmp_path / "a.log", codec="raw", flush_interval=0.01)
    faulty.error, faulty.calls, faulty.at = OSError(errno.EIO, "bad disk"), 0, 2
    log.append(b"lost")
    until(lambda: faulty.calls >= 2)
    until_ended("jitdb flush")
    with pytest.raises(LogWriteFailed, match="bad disk"):
        log.append(b"more")
    with pytest.raises(LogWriteFailed, match="bad disk"):
        log.close()
    assert log.closed


def test_interrupted_at_every_call(tmp_path: Path, faulty: Faulty) -> None:
    """Ctrl-C in a flush: the next flush goes on, and nothing is lost or doubled."""
    number = 0
    while True:
        number += 1
        path = tmp_path / f"{number}.log"
        expected: list[bytes] = []
        with Log(path, codec="raw", block_size=512, flush_interval=60) as log:
            faulty.error, faulty.calls, faulty.at = KeyboardInterrupt(), 0, number
            interrupted = False
            for turn in range(4):
                records = [b"%d-%d" % (turn, at) + b"x" * 90 for at in range(8)]
                expected += records
                offsets = log.append_many(records)
                if turn == 2:
                    log.delete(0)
                try:
                    log.flush()
                except KeyboardInterrupt:
                    interrupted = True
                assert log.get(offsets[3]) == records[3]
            faulty.at = -1
            log.flush()
            assert [record.value for record in log.stream()] == expected[1:]
        with Log(path, read_only=True) as log:
            assert [record.value for record in log.stream()] == expected[1:]
            assert log.get_many_raw([record.offset for record in log.stream()]) == expected[1:]
        if not interrupted:
            break
    assert number > 15


def test_interrupted_append_many(tmp_path: Path, faulty: Faulty) -> None:
    """The interrupt comes while a large group is written on the way."""
    records: list[Any] = [b"%06d" % number + b"x" * 1000 for number in range(4000)]
    for number in range(1, 12):
        path = tmp_path / f"{number}.log"
        with Log(path, codec="raw", flush_interval=60) as log:
            faulty.error, faulty.calls, faulty.at = KeyboardInterrupt(), 0, number
            with pytest.raises(KeyboardInterrupt):
                log.append_many(records)
            faulty.at = -1
            log.append(b"after")
            log.flush()
            values = [record.value for record in log.stream()]
            assert values == [*records, b"after"]
        path.unlink()
