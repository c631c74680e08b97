"""Log.verify(): every flipped bit is told, nothing else is; and it is no damage what others do meanwhile."""

from __future__ import annotations

import errno
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_damage import Snapshot, every_flip, make_log
from stepping import Stepping
from thoroughness import tries
from waiting import until

from jitdb.errors import DecodeError, InvalidOffset, LogClosed, LogCorrupt, LogWarning, LogWriteFailed, RecordDeleted
from jitdb.log import Log
from jitdb.log.blocks.scanner import walk_python
from jitdb.log.codecs import get_codec
from jitdb.log.io import osfile
from jitdb.log.io.osfile import FileSystem
from jitdb.log.maintenance.check_log import invalid_records
from jitdb.log.sidecar import checksums, journal

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(osfile.FileSystem, "fsync", lambda self, fd: None)  # tens of thousands of them take a minute
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        yield


def sees(shot: Snapshot) -> None:
    """The damage is told, and no wrong record comes out of a block that is known to be damaged."""
    with Log(shot.log, read_only=True) as log:
        report = log.verify()
        assert not report.ok
        assert all(finding.message and finding.remedy for finding in report.findings)
        for offset, record in shot.records.items():
            try:
                assert log.get(offset) == record
            except (LogCorrupt, InvalidOffset, RecordDeleted, DecodeError):
                assert offset // log.block_size in report.damaged_blocks


def flip_and_see(shot: Snapshot, step: int = 1) -> int:
    """For each `step`-th bit of all files; gives how many."""
    count = 0
    for _ in every_flip(shot, step, ("a.log", "commit", "checksums", "deletions")):  # meta: see test_log_repair.py
        sees(shot)
        count += 1
    return count


@pytest.mark.parametrize(
    ("codec", "step"), [("bipf", tries(113, 1)), ("msgpack", tries(167, 1)), ("raw", tries(199, 1))]
)
def test_every_flipped_bit(tmp_path: Path, codec: str, step: int) -> None:
    shot = make_log(tmp_path, codec)
    assert flip_and_see(shot, step) > 8000 // step


def test_a_sound_log(tmp_path: Path) -> None:
    shot = make_log(tmp_path, "msgpack")
    done: list[tuple[int, int]] = []
    with Log(shot.log, read_only=True) as log:
        report = log.verify(lambda at, total: done.append((at, total)))
    assert (report.ok, report.findings, report.notes, report.leftovers) == (True, (), (), ())
    size = shot.log.stat().st_size
    assert (report.blocks, report.records, report.deleted) == (size // 256, len(shot.records), len(shot.deleted))
    assert done[-1] == (size, size)
    assert "sound" in str(report)
    assert report.to_json()["ok"] is True


def test_an_empty_log(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        assert log.verify().ok
    with Log(tmp_path / "a.log", read_only=True) as log:
        assert log.verify().ok


class TestWhatIsTold:
    @pytest.fixture
    def shot(self, tmp_path: Path) -> Snapshot:
        return make_log(tmp_path, "bipf", records=30)

    def report(self, shot: Snapshot) -> Any:
        with Log(shot.log, read_only=True) as log:
            return log.verify()

    def hurt(self, shot: Snapshot, name: str, at: int, data: bytes) -> None:
        path = shot.log if name == "a.log" else shot.sidecar / name
        whole = bytearray(shot.files[path])
        whole[at : at + len(data)] = data
        shot.damage(path, bytes(whole))

    def test_which_block_and_what_it_costs(self, shot: Snapshot) -> None:
        self.hurt(shot, "a.log", 256 + 30, b"\x99\x99\x99")
        (finding,) = self.report(shot).findings
        assert (finding.what, finding.block, finding.offset, finding.bytes) == ("block", 1, 256, 256)
        assert finding.records == sum(offset // 256 == 1 for offset in shot.records)
        assert "its CRC is" in finding.message

    def test_a_length_that_leads_out_of_its_block(self, shot: Snapshot) -> None:
        self.hurt(shot, "a.log", 512, b"\xff\xff")
        (finding,) = self.report(shot).findings
        assert "the length at offset 512 leads out of the block" in finding.message

    def test_bytes_behind_the_records_of_a_block_without_checksum(self, shot: Snapshot) -> None:
        (shot.sidecar / "checksums").unlink()
        whole = bytearray(shot.files[shot.log])
        whole[255] = 7
        shot.damage(shot.log, bytes(whole))
        found = self.report(shot).findings
        assert "other bytes than zeros follow its records" in found[0].message
        assert "have no checksum, though it was written" in found[1].message

    def test_a_record_that_was_deleted_and_is_there(self, shot: Snapshot) -> None:
        offset = next(iter(shot.records))
        with Log(shot.log) as log:
            data = log.get_raw(offset)
            log.delete(offset)
        stamp = shot.log.stat().st_mtime_ns
        with open(shot.log, "r+b") as file:
            file.seek(offset + 2)
            file.write(data)
        os.utime(shot.log, ns=(stamp, stamp))
        found = self.report(shot).findings
        assert [(each.what, each.offset) for each in found if each.what == "deleted"] == [("deleted", offset)]

    def test_a_torn_end_of_a_writer_that_was_killed_is_no_damage(self, shot: Snapshot) -> None:
        path = shot.sidecar / "commit"
        entries = [entry for entry in journal.decode_all(path.read_bytes()) if entry]
        assert entries[-1].kind == journal.CLOSED
        path.write_bytes(b"".join(map(journal.encode, entries[:-2])))
        whole = bytearray(shot.files[shot.log])
        whole[entries[-1].end : entries[-1].end + 3] = b"\x09\x00x"
        shot.log.write_bytes(bytes(whole))
        report = self.report(shot)
        assert report.ok
        assert any("3 bytes behind the end of the log" in note for note in report.notes)

    def test_files_that_were_set_aside(self, shot: Snapshot) -> None:
        (shot.sidecar / "torn-5-0").write_bytes(b"abc")
        report = self.report(shot)
        assert report.ok
        assert [(each.file, each.bytes) for each in report.leftovers] == [("a.log.jitdb/torn-5-0", 3)]

    def test_a_log_without_a_sidecar(self, shot: Snapshot, tmp_path: Path) -> None:
        alone = tmp_path / "alone.log"
        alone.write_bytes(shot.files[shot.log])
        with Log(alone, read_only=True, block_size=256) as log:
            report = log.verify()
        assert report.ok
        assert report.unverified == report.blocks - 1
        assert "have no checksum" in str(report)

    def test_a_record_that_was_written_so(self, tmp_path: Path) -> None:
        path = tmp_path / "b.log"
        with Log(path, codec="bipf", block_size=64) as log:
            log.append({"a": 1})
        with Log(path, codec="raw") as log:
            log.append_many([b"no bipf at all", b"x" * 50, b"y" * 50])
        with Log(path, read_only=True) as log:
            report = log.verify()
        assert report.ok
        assert "is no valid bipf, and was written so" in report.notes[0]

    def test_checksums_of_another_generation_say_nothing(self, shot: Snapshot) -> None:
        (shot.sidecar / "checksums").write_bytes(checksums.encode_head(7, bytes(8)) + b"\x55" * 40)
        assert {finding.what for finding in self.report(shot).findings} == {"checksums"}


def test_a_newline_in_a_name_breaks_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.log"
    with Log(path, block_size=256) as log:
        log.append_many([{"n": number} for number in range(100)])
    stamp = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes().replace(b"\xa1n\x05", b"\xa1n\xc1"))
    os.utime(path, ns=(stamp, stamp))
    with Log(path) as log:
        for report in (log.verify(), log.repair()):
            first, *others = str(report).splitlines()
            assert "a\\nb.log: " in first
            assert all(line.startswith("  ") for line in others), others
            assert others


def test_while_another_log_object_writes_and_deletes(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw", block_size=128) as log, Log(path, read_only=True) as reader:
        offsets = log.append_many([b"record %03d" % number for number in range(300)])
        log.flush()
        for number in range(0, 300, 7):
            log.delete(offsets[number])
            log.append(b"another")
            if number % 2:
                log.flush()
            reader.refresh()
            assert reader.verify().ok
            assert log.verify().ok


@pytest.mark.parametrize("codec", ["bipf", "msgpack"])
def test_the_compiled_walk_agrees_with_the_codec(codec: str) -> None:
    """On records with wrong bytes: those that it accepts, the codec accepts."""
    draw = np.random.default_rng(4)
    block_size = 1 << 16
    made = get_codec(codec)
    records = []
    for number in range(700):
        record = bytearray(made.encode({"n": number, "m": {"list": [1, "two", None, 2.5]}, "t": "x" * (number % 40)}))
        for _ in range(number % 3):
            record[draw.integers(len(record))] = draw.integers(256)
        records.append(bytes(record))
    packed = b"".join(len(record).to_bytes(2, "little") + record for record in records)
    assert len(packed) < block_size
    data = np.frombuffer(packed.ljust(block_size, b"\0"), np.uint8)
    walked = walk_python(data, block_size, block_size)
    plain = invalid_records(made, data, walked, compiled=False)
    assert plain == [at for at, record in enumerate(records) if not made.is_valid(record)]
    assert invalid_records(made, data.copy(), walked, compiled=True) == plain
    assert 50 < len(plain) < 600


class Beside(Stepping):
    """Another thread does something just before the call of this number."""

    STEPS = ("pread", "fstat", "stat")

    work: Callable[[], object] | None = None
    beside = threading.Thread()
    left = 0

    def step(self) -> None:
        self.left -= 1
        if self.work is not None and not self.left:
            self.beside, self.work = threading.Thread(target=self.work), None
            self.beside.start()
            self.beside.join(0.2)  # it may wait for a lock that the caller of this holds


@pytest.mark.parametrize("read_only", [False, True])
def test_who_verifies_while_the_log_is_closed_is_told_so(
    tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    with Log(path, block_size=256) as log:
        offsets = log.append_many([{"n": number} for number in range(100)])
        log.delete(offsets[3])
    fs = Beside()
    monkeypatch.setattr(osfile, "fs", fs)
    for number in itertools.count(1):
        with Log(path, read_only=read_only) as log:
            fs.work, fs.left = log.close, number
            try:
                assert log.verify().ok
                if fs.work is not None:  # there is no call of this number
                    break
                fs.beside.join()
            except LogClosed:
                assert log.closed
    assert number > 10


class Held(Stepping):
    """Holds the call of this number that a thread makes while it closes a log."""

    STEPS = ("close", "fsync", "fdatasync", "pwrite")

    def __init__(self) -> None:
        self.closing: threading.Thread | None = None
        self.left, self.is_held, self.go_on = 0, threading.Event(), threading.Event()

    def step(self) -> None:
        if threading.current_thread() is self.closing:
            self.left -= 1
            if not self.left:
                self.is_held.set()
                self.go_on.wait()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_log_that_is_being_closed_is_closed(tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each call that closing makes: who is told that it was closed finds it closed."""
    path = tmp_path / "a.log"
    with Log(path, block_size=256) as log:
        log.append_many([{"n": number} for number in range(100)])
    calls: list[Callable[[Log], object]] = [
        lambda log: log.verify(), lambda log: log.get(0), lambda log: list(log.stream()), lambda log: log.refresh(),
        lambda log: log.stats(), lambda log: log.deletions(), lambda log: log.flush(),
    ]  # fmt: skip
    told: list[bool] = []
    for number in itertools.count(1):
        fs = Held()
        monkeypatch.setattr(osfile, "fs", fs)
        log = Log(path, read_only=read_only)
        if not read_only:
            log.append({"n": -number})
        fs.closing, fs.left = threading.Thread(target=log.close), number
        fs.closing.start()
        until(lambda fs=fs, closing=fs.closing: fs.is_held.is_set() or not closing.is_alive())
        if not fs.is_held.is_set():
            break
        assert log.closed
        callers = [threading.Thread(target=tell, args=(call, log, told)) for call in calls]
        for each in callers:
            each.start()
            each.join(0.01)  # it may wait until the log is closed
        fs.go_on.set()
        for each in (fs.closing, *callers):
            each.join()
    assert number > 2
    assert len(told) >= number
    assert all(told)


def tell(call: Callable[[Log], object], log: Log, told: list[bool]) -> None:
    """Note whether the log was closed when the caller was told so; what else goes wrong is an error of the test."""
    try:
        call(log)
    except LogClosed:
        told.append(log.closed)
    except Exception:
        told.append(False)
        raise


@pytest.mark.parametrize("read_only", [False, True])
def test_who_verifies_while_the_log_is_compacted_sees_no_damage(
    tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = Beside()
    monkeypatch.setattr(osfile, "fs", fs)
    with Log(tmp_path / "a.log", block_size=64, flush_interval=3600) as writer:
        writer.append_many([{"n": number} for number in range(20)])
        writer.flush()
        for number in itertools.count(1, 3):
            writer.delete(next(writer.stream()).offset)
            writer.append({"n": number})
            writer.flush()
            with Log(writer.path, read_only=True) as reader:
                fs.work, fs.left = writer.compact, number
                log = reader if read_only else writer
                report = log.verify()
                assert report.ok, str(report)
                assert report.records == 20
                if fs.work is not None:
                    break
                fs.beside.join()
        assert number > 10
        fs.work = None


def test_a_reader_that_knows_nothing_of_a_compaction_sees_no_damage(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log", block_size=256) as writer, Log(tmp_path / "a.log", read_only=True) as reader:
        offsets = writer.append_many([{"n": number} for number in range(100)])
        writer.flush()
        reader.refresh()
        writer.delete(offsets[3])
        writer.compact()
        assert (reader.verify().ok, reader.verify().records) == (True, 99)


def test_what_a_compaction_left_that_found_no_room_is_no_damage(tmp_path: Path) -> None:
    class Full(FileSystem):
        def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
            if os.readlink(f"/proc/self/fd/{fd}").endswith("moved-2"):
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(fd, data, offset)

    with Log(tmp_path / "a.log") as log:
        log.delete(log.append_many([{"n": 1}, {"n": 2}])[0])
        log.flush()
    osfile.fs, fs = Full(), osfile.fs
    try:
        with Log(tmp_path / "a.log") as log:
            with pytest.raises(LogWriteFailed):
                log.compact()
            assert log.verify().ok
    finally:
        osfile.fs = fs
    with Log(tmp_path / "a.log") as log:
        assert log.verify().ok
        assert log.compact().removed == 1
        assert log.verify().ok
