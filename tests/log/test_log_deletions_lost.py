"""The journal of deletions is lost, older or shorter, or of another copy: what is deleted is known nevertheless.

What counts is the log's file: a record that is zeros there is deleted, any other one is not. Whatever stands beside it,
in whichever state, every way of asking says just that, or refuses with a typed error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from deletion_cases import BEFORE, SINCE, all_agree, ask, copied, delete, indexed, judge, put, standing
from engine_helpers import messages
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk

from jitdb import JITDB, Log
from jitdb.errors import LogSuperseded, LogWarning, LogWriteFailed, RecordDeleted
from jitdb.log.sidecar.deletions import MARK, Deletion, encode_entry, encode_head
from jitdb.log.sidecar.journal import ENTRY_SIZE, JournalPrefix, decode, encode

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return indexed(tmp_path / "a.log")


class TestTheJournalIsNotWhatItWas:
    @pytest.fixture
    def lost(self, path: Path, tmp_path: Path) -> Callable[[str], None]:
        """Makes the journal of deletions something else."""
        other = copied(path, tmp_path / "other")
        delete(other, 11, 12, 13)
        delete(path, *BEFORE)
        earlier = (path.parent / "a.log.jitdb" / "deletions").read_bytes()
        delete(path, *SINCE)
        journal = path.parent / "a.log.jitdb" / "deletions"
        whole = journal.read_bytes()

        def make(how: str) -> None:
            if how == "missing":
                journal.unlink()
            elif how == "older":
                journal.write_bytes(earlier)
            elif how == "shorter":
                journal.write_bytes(whole[:-16])
            elif how == "cut in an entry":
                journal.write_bytes(whole[:-20])
            elif how == "empty":
                journal.write_bytes(b"")
            elif how == "an entry damaged":
                journal.write_bytes(whole[:64] + bytes(16) + whole[80:])
            else:
                journal.write_bytes((other.parent / "a.log.jitdb" / "deletions").read_bytes())

        return make

    @pytest.mark.parametrize("read_only", [True, False])
    @pytest.mark.parametrize("how", ["missing", "older", "shorter", "cut in an entry", "empty", "an entry damaged"])
    def test_it_is_noticed_once_and_put_right(
        self, path: Path, lost: Callable[[str], None], how: str, read_only: bool
    ) -> None:
        lost(how)
        (told,) = ask(path, read_only=read_only)
        assert "a.log.jitdb/deletions is not the journal of deletions that the log was left with" in told
        for _ in range(2):
            assert ask(path, read_only=True) == ask(path, read_only=False) == []
        delete(path, 40, 41)
        assert ask(path, read_only=True) == []

    def test_that_of_another_copy_hides_no_live_record(self, path: Path, lost: Callable[[str], None]) -> None:
        lost("of another copy")
        told = ask(path, read_only=False)
        assert "is not the log that its sidecar tells of" in told[0]
        assert ask(path, read_only=True) == []

    @pytest.mark.parametrize("read_only", [True, False])
    def test_verify_and_repair_tell_of_it(self, path: Path, lost: Callable[[str], None], read_only: bool) -> None:
        lost("older")
        with pytest.warns(LogWarning, match=r"expected 26 entries, got 7\)"):
            log = Log(path, read_only=read_only)
        with log:
            report = log.verify()
            assert {finding.what for finding in report.findings} == {"deletions"}
            assert "expected 26 entries, got 7" in str(report)
            if not read_only:
                assert log.repair().before.findings == report.findings
                assert log.verify().ok
        assert ask(path, read_only=True) == []

    def test_a_reader_that_has_it_open(self, path: Path, lost: Callable[[str], None]) -> None:
        with Log(path, read_only=True) as log:
            db = JITDB(log)
            assert db.count() == 36
            journal = log.sidecar / "deletions"
            fresh = journal.with_name("fresh")
            fresh.write_bytes(journal.read_bytes()[:64])
            fresh.rename(journal)
            assert [finding.what for finding in log.verify().findings] == ["deletions"]
            with pytest.raises(LogSuperseded):
                log.deletions()
            with pytest.warns(LogWarning, match="is not the journal of deletions"):
                assert db.count() == 36
            all_agree(log)

    @pytest.mark.parametrize("how", ["cut short", "of other entries", "of other entries and more"])
    def test_a_reader_that_has_read_it_hears_of_another(self, tmp_path: Path, how: str) -> None:
        with Log(tmp_path / "a.log", codec="raw", block_size=256) as log:
            offsets = log.append_many([b"x" * 20] * 40)
            for offset in offsets[:6]:
                log.delete(offset)
        with Log(tmp_path / "a.log", read_only=True) as log:
            assert log.deletions()[1].tolist() == offsets[:6]
            journal = log.sidecar / "deletions"
            data = journal.read_bytes()
            if how == "cut short":
                os.truncate(journal, 16 + 5 * 16)
            else:
                other = encode_entry(Deletion(offsets[20], 20))
                fresh = journal.with_name("fresh")
                fresh.write_bytes(data[:16] + other + data[32:] + (other if how.endswith("more") else b""))
                fresh.rename(journal)
            with pytest.raises(LogSuperseded, match="another journal of deletions"):
                log.deletions()

    @pytest.mark.parametrize("read_only", [True, False])
    @pytest.mark.parametrize("more", [(), (30, 31)])
    def test_one_of_as_many_other_deletions_is_another(
        self, path: Path, tmp_path: Path, more: tuple[int, ...], read_only: bool
    ) -> None:
        """The journal of the other copy has as many entries, or goes on behind them."""
        other = copied(path, tmp_path / "other")
        delete(path, 3, 4, 5)
        delete(other, 11, 12, 13)
        delete(other, *more)
        put(other.with_name("a.log.jitdb") / "deletions", path.with_name("a.log.jitdb") / "deletions")
        told = ask(path, read_only=read_only)
        assert "this is not the log that its sidecar tells of" in told[0]

    def test_a_log_of_before_opens_as_it_did(self, path: Path, tmp_path: Path) -> None:
        """Its CRC of the entries is one with theirs, by which they are not known from others."""
        delete(path, 3, 4, 5)
        commit = path.with_name("a.log.jitdb") / "commit"
        data = commit.read_bytes()
        last = decode(data[-ENTRY_SIZE:])
        assert last is not None
        assert last.deletions is not None
        before = last._replace(
            start=JournalPrefix(last.deletions.position, crc32(MARK * last.deletions.position)).packed
        )
        commit.write_bytes(data[:-ENTRY_SIZE] + encode(before))
        assert before != last
        assert ask(path, read_only=True) == ask(path, read_only=False) == []

    @pytest.mark.parametrize("bit", range(0, 128, 9))
    def test_a_flipped_bit_names_no_other_record(self, tmp_path: Path, bit: int) -> None:
        with Log(tmp_path / "a.log", codec="raw", block_size=256) as log:
            offsets = log.append_many([b"x" * 20] * 40)
            for offset in offsets[:6]:
                log.delete(offset)
        journal = log.sidecar / "deletions"
        data = bytearray(journal.read_bytes())
        data[16 + 2 * 16 + bit // 8] ^= 1 << bit % 8
        journal.write_bytes(data)
        with pytest.warns(LogWarning, match="not the journal of deletions"):
            log = Log(tmp_path / "a.log", read_only=True)
        with log:
            assert log.deletions()[1].tolist() == offsets[:2] + offsets[3:6]
            assert log.foreign_change_token() != bytes(8)  # by which indexes find the third one

    def test_a_writer_that_has_it_open_stops(self, path: Path) -> None:
        log = Log(path, flush_interval=3600)
        offsets = [record.offset for record in log.stream()]
        log.delete(offsets[1])
        log.flush()
        (log.sidecar / "deletions").unlink()
        log.delete(offsets[2])
        with pytest.raises(LogWriteFailed, match="deletions was moved, removed or replaced"):
            log.flush()
        with pytest.raises(LogWriteFailed):
            log.close()
        (told,) = ask(path, read_only=False)
        assert "expected 1 entries, got no such file" in told


class TestASidecarOfALogThatWasWrittenTo:
    """It says where the log was durable then, and the log went on: nothing of that is lost, or left out silently."""

    @pytest.fixture(params=["in the last block", "blocks later"])
    def mixed(self, request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Path:
        with Log(path) as log:
            log.append_many(messages(3, first=60))
            log.flush()
            mixed = copied(path, tmp_path / "mixed")
            log.append_many(messages(1 if request.param == "in the last block" else 40, first=63))
        shutil.copy2(path, mixed)
        return mixed

    def age(self, path: Path) -> None:
        for each in (path.parent / "a.log.jitdb").iterdir():
            os.utime(each, ns=(each.stat().st_atime_ns, path.stat().st_mtime_ns - 10_000_000_000))

    def test_a_log_that_was_written_to_long_after_has_all_its_records(self, mixed: Path) -> None:
        self.age(mixed)
        there = standing(mixed)
        with pytest.warns(LogWarning, match="a.log.jitdb/commit tells of the log up to byte .* count as well"):
            log = Log(mixed, read_only=True)
        with log:
            assert [(record.offset, record.value) for record in log.stream(raw=True)] == there
            all_agree(log)
        assert len(judge(mixed, read_only=False)) == 1
        assert standing(mixed) == there
        assert ask(mixed, read_only=True) == ask(mixed, read_only=False) == []

    def test_one_of_the_same_seconds_is_told_of_before_anything_is_cut(self, mixed: Path) -> None:
        there = standing(mixed)
        with pytest.warns(LogWarning, match="a.log.jitdb/commit tells of the log up to byte .* are left out"):
            log = Log(mixed, read_only=True)
        with log:
            count = len(list(log.stream()))
            assert 0 < count < len(there)
            (finding,) = log.verify().findings
            assert (finding.what, finding.offset) == ("tail", log.durable_end)
            assert "whole records" in str(finding)
        shutil.rmtree(mixed.parent / "a.log.jitdb")  # as the warning says
        assert judge(mixed, read_only=False) == []
        assert standing(mixed) == there

    def test_a_writer_keeps_what_it_leaves_out(self, mixed: Path) -> None:
        there = standing(mixed)
        (told,) = judge(mixed, read_only=False)
        assert "whole records" in told
        assert len(standing(mixed)) < len(there)
        assert ask(mixed, read_only=True) == []

    def test_what_another_program_appended_after_a_crash_counts(self, path: Path, tmp_path: Path) -> None:
        with Log(path) as log:
            log.append_many(messages(3, first=60))
            log.flush()
            died = copied(path, tmp_path / "died")
        data = died.read_bytes()
        record = next(each for at, each in standing(died) if at > 0)
        died.write_bytes(data + (len(record).to_bytes(2, "little") + record).ljust(1024, b"\0"))
        self.age(died)
        assert len(judge(died, read_only=True)) == len(judge(died, read_only=False)) == 1
        assert standing(died)[-1] == (len(data), record)
        assert judge(died, read_only=True) == judge(died, read_only=False) == []

    def test_a_power_failure_after_a_long_silence_leaves_no_half_transaction(self) -> None:
        """What the writer wrote is later than all that it synced before, but not than its word of it."""
        disk = Disk()
        disk.mkdir("/disk")
        with running(Process(disk)) as process:
            log = Log("/disk/a.log", codec="raw", block_size=1024, flush_interval=3600)
            log.append(b"first")
            log.flush()
            disk.now += 10_000_000_000
            log.append_transaction([b"half", b"of it"])
            process.stop_at = process.changes + 3  # an entry and the records are written; then it waits for the disk
            with pytest.raises(Stopped):
                log.flush()
            let_go(log, process)
        commit, file = disk.files()["/disk/a.log.jitdb/commit"], disk.files()["/disk/a.log"]
        commit.time = commit.disk_time
        commit.lose(commit.sectors)
        file.data[13:] = bytes(len(file.data) - 13)
        with running(Process(disk)):
            with Log("/disk/a.log", read_only=True) as log:
                assert [record.value for record in log.stream()] == [b"first"]
            with pytest.warns(LogWarning, match="cut off and kept"):
                log = Log("/disk/a.log")
            with log:
                assert [record.value for record in log.stream()] == [b"first"]


class TestADeletionThatWasCutShort:
    """A writer died between the entry in the journal and the zeros: the record is deleted, to everybody."""

    @pytest.mark.parametrize("half", [False, True])
    @pytest.mark.parametrize("seq", [5, 59])
    def test_every_reader_says_so(self, path: Path, tmp_path: Path, seq: int, half: bool) -> None:
        with Log(path, flush_interval=3600) as log:
            offsets = [offset for batch in log.stream_batches() for offset in batch.offsets.tolist()]
            log.append_many(messages(2, first=60))
            log.flush()
            died = copied(path, tmp_path / "died")
        at = offsets[seq]
        with open(died, "r+b") as file:
            file.seek(at)
            length = int.from_bytes(file.read(2), "little")
            if half:
                file.write(bytes(length // 2))
        entry = encode_entry(Deletion(at, length))
        (died.parent / "a.log.jitdb" / "deletions").write_bytes(encode_head(1) + entry)
        assert ask(died, read_only=True, deleted=(at,)) == []
        with Log(died, read_only=True) as log:
            assert log.verify().ok
            assert list(log.stream(gte=at, lte=at)) == list(log.stream(gte=at, limit=0)) == []
        exported = subprocess.run(
            [sys.executable, "-m", "jitdb", "export", died], capture_output=True, text=True, check=True
        )
        assert len(exported.stdout.splitlines()) == 61
        assert ask(died, read_only=False) == ask(died, read_only=True) == []

    def test_a_reader_that_was_there_before(self, path: Path, tmp_path: Path) -> None:
        died = copied(path, tmp_path / "died")
        with Log(died, read_only=True) as log:
            db = JITDB(log)
            assert db.count() == 60
            at, second = [record.offset for record in log.stream()][:2]
            length = len(log.get_raw(at))
            journal = log.sidecar / "deletions"
            journal.write_bytes(encode_head(1) + encode_entry(Deletion(at, length)))
            assert len(list(log.stream())) == db.count() == log.stats().records == 59
            with pytest.raises(RecordDeleted):
                log.get(at)
            assert log.get_many_raw([at, second])[0] is None
            with open(journal, "ab") as file:
                file.write(MARK)
            with open(died, "r+b") as file:
                file.seek(at + 2)
                file.write(bytes(length))
            assert len(list(log.stream())) == db.count() == 59
            with pytest.raises(RecordDeleted):
                log.get(at)
