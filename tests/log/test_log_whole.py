"""Appending all or nothing: the same file as append_many makes, at every size; a torn one is cut off."""

from __future__ import annotations

import random
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk
from hypothesis import given, settings
from hypothesis import strategies as st
from thoroughness import tries

from jitdb.errors import InvalidRecord, LogReadOnly, LogWarning, LogWriteFailed
from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.sidecar.journal import ENTRY_SIZE, decode_all
from jitdb.log.writing import groups

pytestmark = pytest.mark.slow

BLOCK = 64


def records(sizes: list[int]) -> list[bytes]:
    return [bytes([1 + number % 200]) * size for number, size in enumerate(sizes)]


sizes = st.lists(st.integers(1, BLOCK - 4), max_size=60)


@settings(max_examples=tries(40, 500), deadline=None)
@given(sizes, st.lists(sizes, max_size=4), sizes)
def test_the_file_is_that_of_append_many(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], batches: list[list[int]], after: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("whole")
    with (
        Log(folder / "a.log", codec="raw", block_size=BLOCK) as whole,
        Log(folder / "b.log", codec="raw", block_size=BLOCK) as plain,
    ):
        for log in (whole, plain):
            log.append_many(records(before))
        whole.append_whole(map(records, batches), folder / "scratch")
        for batch in batches:
            plain.append_many(records(batch))
        plain.flush()
        assert (whole.since, whole.durable_end) == (plain.since, plain.durable_end)
        blocks = -(-plain.durable_end // BLOCK)
        assert whole.checksums(0, blocks).tolist() == plain.checksums(0, blocks).tolist()
        for log in (whole, plain):
            log.append_many(records(after))
            log.flush()
    assert (folder / "a.log").read_bytes() == (folder / "b.log").read_bytes()
    with Log(folder / "a.log") as log:
        assert log.verify().ok
        expected = [record for part in (before, *batches, after) for record in records(part)]
        assert [record.value for record in log.stream(raw=True)] == expected


def test_what_is_refused_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with Log(path, codec="raw", block_size=BLOCK) as log:
        log.append_many(records([5, 6]))
        with pytest.raises(InvalidRecord):
            log.append_whole([records([7]), [b""]], tmp_path / "scratch")
        log.append_many(records([8]))
        log.flush()
        assert [len(record.value) for record in log.stream()] == [5, 6, 8]
    with Log(path, read_only=True) as log, pytest.raises(LogReadOnly):
        log.append_whole([], tmp_path / "scratch")


def test_a_torn_append_is_cut_off_whole(tmp_path: Path) -> None:
    """The last block of many did not reach the disk."""
    path = tmp_path / "x.log"
    with Log(path, codec="raw", block_size=BLOCK) as log:
        log.append_many(records([5, 6]))
        log.flush()
        end = log.durable_end
        journal = log.sidecar / "commit"
        before = journal.read_bytes()
        before = before[: ENTRY_SIZE * len(decode_all(before))]  # room is laid out behind the entries
        log.append_whole([records([20] * 30)], tmp_path / "scratch")
        grown = journal.read_bytes()[: len(before) + 64]  # up to the entry of the data
        image = path.read_bytes()
    assert grown[: len(before)] == before
    for torn in (image, image[:-BLOCK] + bytes(BLOCK)):
        path.write_bytes(torn)
        journal.write_bytes(grown)
        if torn == image:
            with Log(path) as log:
                assert log.stats().records == 32
        else:
            with pytest.warns(LogWarning, match="cut off"):
                log = Log(path)
            with log:
                assert log.durable_end == end
                assert log.stats().records == 2


def test_a_scratch_file_that_cannot_be_made(tmp_path: Path) -> None:
    with Log(tmp_path / "x.log", codec="raw", block_size=BLOCK) as log:
        log.append(b"before")
        with pytest.raises(LogWriteFailed, match=r"no/such: packing the records failed \(No such file.*as it was"):
            log.append_whole([records([7])], tmp_path / "no" / "such")
        log.append(b"after")
        log.flush()
        assert [record.value for record in log.stream()] == [b"before", b"after"]


class Forgetful(osfile.FileSystem):
    """Does not give back the bytes of the scratch file at the read number `at`."""

    def __init__(self, at: int, how: str) -> None:
        self.left = at
        self.how = how
        self.scratch = -1

    def open(self, path: Any, flags: int, mode: int = 0o666) -> int:
        fd = super().open(path, flags, mode)
        if Path(path).name == "scratch":
            self.scratch = fd
        return fd

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        if fd != self.scratch:
            return data
        self.left -= 1
        if self.left:
            return data
        return data[:-1] if self.how == "short" else bytes([data[0] ^ 4]) + data[1:]


@pytest.mark.filterwarnings("ignore:.*cut off:jitdb.errors.LogWarning")
@pytest.mark.parametrize("how", ["short", "flipped"])
@pytest.mark.parametrize("before", [[5, 6], [5] * 20, [BLOCK - 4] * 3])
def test_packed_bytes_that_come_back_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[int], how: str
) -> None:
    """Whichever read it is: none of the records is in the log, and the log goes on."""
    monkeypatch.setattr(groups, "PIECE", 100)
    whole = records([20] * 30)
    for at in range(1, 100):
        path = tmp_path / f"{at}.log"
        fs = Forgetful(at, how)
        with monkeypatch.context() as patch:
            patch.setattr(osfile, "fs", fs)
            log = Log(path, codec="raw", block_size=BLOCK)
        log.append_many(records(before))
        log.flush()
        try:
            log.append_whole([whole], tmp_path / "scratch")
        except LogWriteFailed as error:
            failure = str(error)
        else:
            assert fs.left > 0  # all reads were tried
            log.close()
            break
        assert "none of these records is in the log; open it again" in failure
        with pytest.raises(LogWriteFailed):
            log.append(b"more")
        log.close()
        with Log(path) as log:
            assert [record.value for record in log.stream(raw=True)] == records(before)
            log.append_whole([whole], tmp_path / "scratch")
            assert log.verify().ok
            assert [record.value for record in log.stream(raw=True)] == records(before) + whole
    assert at > 5


class Slow(Process):
    """Bytes of the scratch file come late."""

    def pread(self, fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        scratch = "/disk/scratch"
        if self.disk.exists(scratch) and self._open[fd].node is self.disk.find(scratch):
            self.disk.now += 10**10
        return super().pread(fd, size, offset)


@pytest.mark.parametrize("how", ["append_transaction", "append_whole", "append_whole slowly"])
@pytest.mark.parametrize("power_fails", [False, True])
def test_killed_long_after_its_last_word_it_is_there_whole_or_not_at_all(how: str, power_fails: bool) -> None:
    """Who died left bytes much later than the last word that was synced: they are not another program's for that."""
    more = records([20, 21, 22] if how == "append_transaction" else [20] * 9)

    def killed(change: int, seed: int) -> tuple[Disk, Process]:
        disk = Disk(seed)
        disk.mkdir("/disk")
        disk.sync_all()
        slowly = how.endswith("slowly")
        process = (Slow if slowly else Process)(disk)
        with running(process), suppress(Stopped):
            log = Log("/disk/a.log", codec="raw", block_size=BLOCK * 2, flush_interval=3600)
            log.append(b"first")
            log.flush()
            disk.now += 0 if slowly else 10**10
            process.stop_at = process.changes + change
            if how == "append_transaction":
                log.append_transaction(more)
                log.flush()
            else:
                log.append_whole([more[:4], more[4:]], Path("/disk/scratch"))
        stopped = process.stopped
        let_go(log, process)
        return disk, stopped

    change, stopped = 1, True
    while stopped:
        for seed in range(4):
            disk, stopped = killed(change, seed)
            if power_fails:
                disk = disk.crash(random.Random(seed))
            for read_only in (True, False):
                with running(Process(disk)), warnings.catch_warnings():
                    warnings.simplefilter("ignore", LogWarning)
                    with Log("/disk/a.log", read_only=read_only) as log:
                        found = [record.value for record in log.stream(raw=True)]
                assert found in ([b"first"], [b"first", *more])
                assert stopped or len(found) > 1
        change += 1
    assert change > 6
