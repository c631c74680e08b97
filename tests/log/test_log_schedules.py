"""What must not happen between two steps of one call happens just there: another thread comes in between."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stepping import Stepping

from jitdb import Log
from jitdb.errors import InvalidOffset, LogWriteFailed, RecordDeleted
from jitdb.log.io import filenames, osfile
from jitdb.log.opening.opened import Opened
from jitdb.log.reading.record_reader import RecordReader
from jitdb.log.sidecar.checksums import ENTRY_SIZE, Checksums
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.writing.committer import Committer

LONG = 0.3  # seconds: whoever is not kept waiting is done by then


def test_two_appends_at_once_get_two_offsets(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        writer: Any = log._writer
        push = writer._push
        offsets: list[int] = []
        other = threading.Thread(target=lambda: offsets.append(log.append({"n": 2})))

        def between(record: bytes) -> None:  # the offset is chosen, the record is not yet there
            writer._push = push
            other.start()
            other.join(LONG)
            push(record)

        writer._push = between
        offsets.append(log.append({"n": 1}))
        other.join()
        log.flush()
        assert len(set(offsets)) == 2
        assert [log.get(offset)["n"] for offset in sorted(offsets)] == [1, 2]
        assert [record.value["n"] for record in log.stream()] == [1, 2]


def test_a_record_is_not_deleted_by_its_offset_in_the_log_before_a_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        offsets = log.append_many([{"n": number} for number in range(10)])
        log.delete(offsets[0])
        log.flush()
        get = RecordReader.get

        def between(reader: RecordReader, offset: int) -> bytes:  # the record is found, and not yet deleted
            found = get(reader, offset)
            monkeypatch.undo()
            log.compact()
            return found

        monkeypatch.setattr(RecordReader, "get", between)
        with pytest.raises(InvalidOffset, match="compacted meanwhile"):
            log.delete(offsets[5])
        log.flush()
        assert [record.value["n"] for record in log.stream()] == list(range(1, 10))


def test_of_two_deletions_at_once_one_is_told_that_it_was_too_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(tmp_path / "a.log", flush_interval=3600) as log:
        offsets = log.append_many([{"n": number} for number in range(10)])
        log.flush()
        record = log.get_raw(offsets[5])
        hide = RecordReader.hide
        told: list[str] = []
        other = threading.Thread(target=lambda: delete("other"))

        def delete(who: str) -> None:
            try:
                log.delete(offsets[5])
            except RecordDeleted:
                told.append(who)

        def between(reader: RecordReader, offset: int) -> None:  # it is not yet hidden
            monkeypatch.undo()
            with monkeypatch.context() as patch:
                patch.setattr(RecordReader, "get", lambda reader, offset: record)
                other.start()
                other.join(LONG)
            hide(reader, offset)

        monkeypatch.setattr(RecordReader, "hide", between)
        delete("this")
        other.join()
        assert told == ["other"]
        log.flush()
        assert log.deletions()[1].tolist() == [offsets[5]]


class Between(osfile.FileSystem):
    """In the middle of the first read of this size, another thread does something, if it is not kept waiting."""

    def __init__(self, size: int, work: Callable[[], object]) -> None:
        self._size = size
        self.other = threading.Thread(target=work)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        if size == self._size and self.other.ident is None:
            self.other.start()
            self.other.join(LONG)
        return super().read(fd, size, offset)


class Beside(Stepping):
    """Whenever something becomes durable or is cut off, another thread does something, if it is not kept waiting."""

    STEPS = ("fsync", "fdatasync", "truncate")

    def __init__(self) -> None:
        self.work: Callable[[], object] | None = None
        self.others: list[threading.Thread] = []

    def step(self) -> None:
        if self.work is not None and threading.current_thread() not in self.others:
            self.others.append(threading.Thread(target=self.work))
            self.others[-1].start()
            self.others[-1].join(LONG)


def sealed_log(path: Path) -> Log:
    log = Log(path, block_size=512, flush_interval=3600)
    log.append_many([{"n": number} for number in range(500)])
    log.flush()
    return log


def test_checksums_are_not_closed_while_they_are_read(tmp_path: Path) -> None:
    sealed_log(tmp_path / "a.log").close()
    with Log(tmp_path / "a.log", read_only=True) as log:
        path, generation, change = log.sidecar / filenames.CHECKSUMS, log.generation, log.foreign_change_token()
    fs = Between(3 * ENTRY_SIZE, lambda: checksums.rebind(b"another."))
    checksums = Checksums(fs, path, generation, change)
    expected = Checksums(osfile.fs, path, generation, change).read(0, 3)
    assert len(expected) == 3 * ENTRY_SIZE
    assert checksums.read(0, 3) == expected
    fs.other.join()
    checksums.close()


def test_two_looks_at_the_deletions_at_once_count_them_once(tmp_path: Path) -> None:
    with sealed_log(tmp_path / "a.log") as log:
        offsets = [record.offset for record in log.stream(limit=10)]
        for offset in offsets:
            log.delete(offset)
        log.flush()
        path, generation = log.sidecar / filenames.DELETIONS, log.generation
        known = DeletionReader(osfile.fs, path, generation)
        assert known.poll()
        fs = Between(known.position * 16, lambda: reader.poll())
        reader = DeletionReader(fs, path, generation)
        assert reader.poll()
        fs.other.join()
        assert reader.position == known.position
        assert reader.between(0, reader.position).tolist() == offsets
        reader.close()
        known.close()


def test_a_log_that_is_compacted_while_a_reader_looks_is_seen_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed_log(tmp_path / "a.log") as writer, Log(tmp_path / "a.log", read_only=True) as reader:
        examine = Opened.examine
        writer.append({"n": 500})
        writer.delete(0)
        writer.flush()

        def between(opened: Opened) -> Any:  # the end of the file was found, and another file takes its place
            found = examine(opened)
            monkeypatch.setattr(Opened, "examine", examine)
            writer.compact()
            return found

        monkeypatch.setattr(Opened, "examine", between)
        assert reader.refresh()
        assert (reader.generation, reader.durable_end) == (writer.generation, writer.durable_end)
        assert [record.value["n"] for record in reader.stream()] == list(range(1, 501))


def test_who_waits_while_writing_fails_writes_nothing_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[type[Exception]] = []
    steps: list[str] = []
    first = threading.Lock()

    def flush() -> None:
        try:
            log.flush()
        except LogWriteFailed as error:
            told.append(type(error))

    class Failing(osfile.FileSystem):
        def fdatasync(self, fd: int) -> None:
            with first:  # the log's and the journal's come at the same time
                failing = steps == ["armed"]
                steps.extend(["failed"] if failing else [])
            if failing:  # another thread comes, passes the first look, and waits for the files
                other.start()
                other.join(LONG)
                raise OSError(errno.EIO, "no")
            super().fdatasync(fd)

        def write(self, fd: int, data: Any, offset: int) -> None:
            if "failed" in steps:
                steps.append("written")
            super().write(fd, data, offset)

    monkeypatch.setattr(osfile, "fs", Failing())
    log = Log(tmp_path / "a.log", flush_interval=3600)
    other = threading.Thread(target=flush)
    log.append({"n": 1})
    steps.append("armed")
    flush()
    other.join()
    assert told == [LogWriteFailed, LogWriteFailed]
    assert steps == ["armed", "failed"]
    with pytest.raises(LogWriteFailed):
        log.close()


def test_a_deletion_that_comes_while_others_are_erased_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed_log(tmp_path / "a.log") as log:
        first, second = [record.offset for record in log.stream(limit=2)]
        erase = Committer.erase

        def between(committer: Committer, deletions: Any) -> None:
            erase(committer, deletions)
            monkeypatch.undo()
            log.delete(second)

        monkeypatch.setattr(Committer, "erase", between)
        log.delete(first)
        log.flush()
        for offset in (first, second):
            with pytest.raises(RecordDeleted):
                log.get(offset)


@pytest.mark.parametrize("change", ["compact", "repair", "replace_with"])
def test_the_last_block_is_read_while_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    told: list[object] = []

    def read() -> None:
        try:
            records = list(log.stream())
            told.append([record.value["n"] for record in records])
            fault = log.second_look(records[-1].offset // log.block_size)[1]
            if fault is not None:
                told.append(fault)
        except Exception as error:
            told.append(error)

    sealed_log(tmp_path / "fresh.log").close()
    fs = Beside()
    monkeypatch.setattr(osfile, "fs", fs)
    with sealed_log(tmp_path / "a.log") as log:
        log.delete(log.append({"n": 500}))
        log.flush()
        log.compact()  # nothing proves the records of the last block from here on
        log.delete(log.append({"n": 500}))
        log.flush()
        fs.work = read
        if change == "replace_with":
            log.replace_with(tmp_path / "fresh.log", "msgpack")
        else:
            getattr(log, change)()
        fs.work = None
        for other in fs.others:
            other.join()
        assert log.verify().ok
    assert told
    assert [each for each in told if each != list(range(500))] == []


class Meanwhile(osfile.FileSystem):
    """Something happens once: just behind the first opening of `path`, or just before its folder is made."""

    def __init__(self, path: Path, act: Callable[[], object]) -> None:
        self._path = path
        self._acts = [act]

    def _once(self) -> None:
        if self._acts:
            self._acts.pop()()

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:  # type: ignore[override]
        number = osfile.FileSystem.open(path, flags, mode)
        if Path(path) == self._path:
            self._once()
        return number

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        if path == self._path:
            self._once()
        super().mkdir(path, mode)


def test_a_log_that_is_compacted_when_its_old_file_was_just_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log:
        offsets = log.append_many([{"n": number} for number in range(10)])
        identity = log.identity

    def compact() -> None:
        with Log(path) as other:
            other.delete(offsets[3])
            other.compact()

    monkeypatch.setattr(osfile, "fs", Meanwhile(path, compact))
    with Log(path, read_only=True) as log:
        assert (log.identity, log.generation) == (identity, 2)
        assert [record.value["n"] for record in log.stream()] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_two_readers_of_a_log_without_a_sidecar_agree_on_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    with Log(path) as log:
        log.append({"n": 1})
    shutil.rmtree(log.sidecar)
    sooner: list[bytes] = []

    def read() -> None:
        with Log(path, read_only=True) as other:
            assert other.identity_is_stored
            sooner.append(other.identity)

    monkeypatch.setattr(osfile, "fs", Meanwhile(log.sidecar, read))
    with Log(path, read_only=True) as log:
        assert [log.identity] == sooner
    with Log(path, read_only=True) as log:
        assert [log.identity] == sooner
