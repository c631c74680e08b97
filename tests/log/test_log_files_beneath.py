"""A log's files are removed or replaced beneath those who have them open."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from jitdb import Log
from jitdb.errors import LogWarning, LogWriteFailed
from jitdb.log.io import osfile
from jitdb.log.reading import block_reader


def replaced(path: Path) -> None:
    path.with_name("copy").write_bytes(path.read_bytes())
    os.replace(path.with_name("copy"), path)


def moved(path: Path) -> None:
    os.rename(path, path.with_name("moved"))


def another(path: Path) -> None:
    moved(path)
    if path.suffix == ".log":
        path.write_bytes(b"")
    else:
        path.mkdir()
        (path / "lock").write_bytes(b"")


def removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else os.unlink(path)


def acknowledges_nothing(path: Path, lose: Callable[[], None], work: Callable[[Log, list[int]], Any]) -> None:
    log = Log(path, flush_interval=3600)
    offsets = log.append_many([{"n": 1}, {"n": 2}])
    log.delete(offsets[1])
    log.flush()
    lose()
    end = log.durable_end
    with pytest.raises(LogWriteFailed, match="moved, removed or replaced while"):
        work(log, offsets)
    assert log.durable_end == end
    with pytest.raises(LogWriteFailed):
        log.append({"n": 4})
    with suppress(LogWriteFailed):  # where something was not written
        log.close()


def append(log: Log, offsets: list[int]) -> None:
    log.append({"n": 3})
    log.flush()


def delete(log: Log, offsets: list[int]) -> None:
    log.delete(offsets[0])
    log.flush()


def compact(log: Log, offsets: list[int]) -> None:
    log.compact()


@pytest.mark.parametrize("work", [append, delete, compact])
@pytest.mark.parametrize("lose", [removed, replaced, moved, another])
def test_a_file_that_nobody_finds_acknowledges_nothing(
    tmp_path: Path, lose: Callable[[Path], None], work: Callable[[Log, list[int]], Any]
) -> None:
    path = tmp_path / "a.log"
    acknowledges_nothing(path, lambda: lose(path), work)


@pytest.mark.parametrize("work", [append, delete, compact])
@pytest.mark.parametrize("lose", [removed, moved, another])
def test_a_sidecar_that_keeps_no_other_writer_out_acknowledges_nothing(
    tmp_path: Path, lose: Callable[[Path], None], work: Callable[[Log, list[int]], Any]
) -> None:
    path = tmp_path / "a.log"
    acknowledges_nothing(path, lambda: lose(tmp_path / "a.log.jitdb"), work)
    with Log(path) as other:
        assert [record.value for record in other.stream()] == [{"n": 1}]


def test_a_folder_that_was_moved_is_opened_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    acknowledges_nothing(tmp_path / "old/a.log", lambda: os.rename(tmp_path / "old", tmp_path / "new"), append)
    with Log(tmp_path / "new/a.log") as log:
        assert [record.value for record in log.stream()] == [{"n": 1}]


def test_a_reader_sees_deletions_in_a_journal_that_a_repair_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, block_size=256) as log:
        offsets = log.append_many([{"n": number} for number in range(100)])
        log.delete(offsets[0])
    with Log(path, read_only=True) as reader:
        position, found = reader.deletions()
        assert found.tolist() == offsets[:1]
        journal = bytearray((path.parent / "a.log.jitdb/deletions").read_bytes())
        journal[0] ^= 1
        with open(path.parent / "a.log.jitdb/deletions", "r+b") as file:
            file.write(journal)
        with Log(path) as log:
            assert log.repair().actions
            for offset in offsets[5:9]:
                log.delete(offset)
            log.flush()
            assert reader.deletions(position)[1].tolist() == offsets[5:9]


def test_a_scan_that_began_in_the_file_before_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log, Log(path, read_only=True) as reader:
        log.append_many([{"n": number} for number in range(100)])
        log.flush()
        reader.refresh()
        log.delete(0)
        log.compact()
        made: list[Any] = []
        before = block_reader.BlockReader.__init__

        def slow(self: block_reader.BlockReader, *args: Any) -> None:
            before(self, *args)
            if not made:  # another thread refreshes just now
                made.append(self)
                reader.refresh()

        monkeypatch.setattr(block_reader.BlockReader, "__init__", slow)
        assert reader.stats().deleted_records == 1
        assert reader.stats().deleted_records == 0
        assert made


def test_a_child_of_a_process_that_watches_sees_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log, Log(path, read_only=True) as reader:
        unwatch = reader.watch(lambda: None)  # a thread looks for news, which the child does not inherit
        child = os.fork()
        if not child:
            came = threading.Event()
            reader.watch(came.set)
            os._exit(0 if came.wait(20) else 1)
        codes = []

        def has_ended() -> bool:
            log.append({"n": 1})
            log.flush()
            ended, status = os.waitpid(child, os.WNOHANG)
            codes.extend([os.waitstatus_to_exitcode(status)] if ended else [])
            return bool(ended)

        until(has_ended)
        unwatch()
        assert codes == [0]


class Full(osfile.FileSystem):
    """A disk with room for a pid, and no more."""

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if len(data) <= 8:
            return super().pwrite(fd, data, offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_not_filled_with_files_that_were_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log:
        log.append({"n": 1})
    with open(path, "r+b") as file:  # what a killed process left
        file.seek(1000)
        file.write(b"\xff" * 50)
    monkeypatch.setattr(osfile, "fs", Full())
    before = sorted(os.listdir(tmp_path / "a.log.jitdb"))
    with pytest.raises(LogWriteFailed, match=r"disk is full .*No space left") as told:
        Log(path)
    assert told.value.offset == 6
    assert f"make room for 1,044 bytes and some blocks more in {tmp_path}/a.log.jitdb" in str(told.value)
    with Log(path, read_only=True) as log:
        assert len(list(log.stream())) == 1
    assert sorted(os.listdir(tmp_path / "a.log.jitdb")) == before
    monkeypatch.undo()
    with pytest.warns(LogWarning, match="torn"), Log(path) as log:
        assert [record.value for record in log.stream()] == [{"n": 1}]
    assert (tmp_path / "a.log.jitdb/torn-6-0").read_bytes().endswith(b"\xff" * 50)
