"""What a flush asks of the disk: two syncs at the same time, and bytes that overwrite zeros."""

from __future__ import annotations

import _thread
import errno
import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.writing.committer import ROOM


class Noting(osfile.FileSystem):
    """Notes the calls by which the log's file changes or becomes durable: name, and first and last byte of a write."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def _note(self, fd: int, *call: object) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("a.log"):
            self.calls.append(call)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self._note(fd, "pwrite", offset, offset + len(data))
        return super().pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        self._note(fd, "truncate", size)
        super().truncate(fd, size)

    def fsync(self, fd: int) -> None:
        self._note(fd, "fsync")
        super().fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self._note(fd, "fdatasync")
        super().fdatasync(fd)

    def taken(self) -> list[tuple[object, ...]]:
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Noting:
    fs = Noting()
    monkeypatch.setattr(osfile, "fs", fs)
    return fs


RECORD = b"x" * 998  # 1,000 bytes with its header of 2, 1,002 with one of 4


def flushed(log: Log, count: int = 1) -> None:
    log.append_many([RECORD] * count)
    log.flush()


def test_a_flush_writes_over_zeros_but_in_the_first_block(tmp_path: Path, noting: Noting) -> None:
    size = 1 << 16
    with Log(tmp_path / "a.log", codec="raw", flush_interval=3600) as log:
        noting.taken()
        flushed(log)
        assert noting.taken() == [("truncate", size), ("pwrite", 0, 1000), ("fdatasync",)]
        flushed(log)
        assert noting.taken() == [("pwrite", 1000, 2000), ("fdatasync",)]
        flushed(log, 64)  # the last one begins a block
        assert noting.taken() == [("truncate", 2 * size), ("pwrite", 2000, 2 * size), ("fdatasync",)]
        for begin in range(size + 1000, size + 65 * 1000, 1000):
            flushed(log)
            assert noting.taken() == [("pwrite", begin, begin + 1000), ("fdatasync",)]
        assert log.path.stat().st_size == 2 * size
    assert noting.taken() == [("fsync",)]  # its time, of which CLOSED tells


def test_a_large_block_gets_zeros_a_piece_at_a_time(tmp_path: Path, noting: Noting) -> None:
    size = 1 << 20
    with Log(tmp_path / "a.log", codec="raw", block_size=size, flush_interval=3600) as log:
        flushed(log, 1046)
        noting.taken()
        flushed(log)
        assert noting.taken() == [("truncate", 2 * size), ("pwrite", 1046 * 1002, size + ROOM), ("fdatasync",)]
        flushed(log, 64)
        assert noting.taken() == [("pwrite", size + 1002, size + 65 * 1002), ("fdatasync",)]
        flushed(log)
        assert noting.taken() == [("pwrite", size + 65 * 1002, size + 2 * ROOM), ("fdatasync",)]
        flushed(log, 100)  # more than would be laid out
        [(_, _, stop), _] = noting.taken()
        assert stop == size + 166 * 1002
        assert [record.value for record in log.stream()] == [RECORD] * (1046 + 166)


def test_zeros_end_no_log(tmp_path: Path, noting: Noting) -> None:
    """What is read, by who is here and who comes, by whom and after what, is as without them."""
    path = tmp_path / "a.log"
    with Log(path, codec="raw", flush_interval=3600) as log:
        flushed(log, 70)
        with Log(path, read_only=True) as reader:
            for number in range(70, 75):
                flushed(log)
                reader.refresh()
                assert [record.value for record in reader.stream()] == [RECORD] * (number + 1)
        assert log.verify().ok
    noting.taken()
    with Log(path, flush_interval=3600) as again:
        assert noting.taken() == []  # nothing is cut off
        flushed(again)
        assert again.verify().ok
    assert path.stat().st_size == 2 << 16
    assert path.read_bytes()[(1 << 16) + 11 * 1000 :].count(0) == (1 << 16) - 11 * 1000
    with Log(path, read_only=True) as reader:
        assert reader.stats().records == 76


# Two syncs at the same time


def test_both_are_called_at_the_same_time() -> None:
    meeting = threading.Barrier(2)
    met: list[int] = []
    osfile.fs.sync_both(lambda: met.append(meeting.wait(30)), lambda: met.append(meeting.wait(30)))
    assert sorted(met) == [0, 1]


@pytest.mark.parametrize("fails", ["here", "beside", "both"])
def test_what_one_raises_is_raised_when_both_have_ended(fails: str) -> None:
    ended: list[str] = []

    def sync(name: str, seconds: float) -> None:
        time.sleep(seconds)
        ended.append(name)
        if fails in (name, "both"):
            raise OSError(errno.EIO, name)

    for here, beside in ((0.0, 0.05), (0.05, 0.0)):
        ended.clear()
        with pytest.raises(OSError, match="here" if fails == "both" else fails):
            osfile.fs.sync_both(partial(sync, "here", here), partial(sync, "beside", beside))
        assert sorted(ended) == ["beside", "here"]


def test_an_interrupt_waits_for_the_other_one() -> None:
    ended: list[str] = []
    waits = threading.Event()

    def beside() -> None:
        waits.wait(30)
        time.sleep(0.1)
        _thread.interrupt_main()
        time.sleep(0.1)
        ended.append("beside")

    with pytest.raises(KeyboardInterrupt):
        osfile.fs.sync_both(waits.set, beside)
    assert ended == ["beside"]


def test_where_no_thread_can_be_had_one_follows_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(osfile, "start_new_thread", none)
    called: list[int] = []
    osfile.fs.sync_both(lambda: called.append(threading.get_ident()), lambda: called.append(threading.get_ident()))
    assert called == [threading.get_ident()] * 2
