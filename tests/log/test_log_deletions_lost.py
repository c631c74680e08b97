"""The journal of deletions is lost, older or shorter, or of another copy: what is deleted is known nevertheless.

What counts is the log's file: a record that is zeros there is deleted, any other one is not. Whatever stands beside it,
in whichever state, every way of asking says just that, or refuses with a typed error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from zlib import crc32

import pytest
from engine_helpers import POSTS, VOTES, check, messages, oracle_of
from faults.simulated import Process, Stopped, let_go, running
from faults.simulated_disk import Disk
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.errors import JitdbWarning, LogSuperseded, LogWarning, LogWriteFailed, RecordDeleted
from jitdb.log.blocks.packing import walk_block
from jitdb.log.io import filenames
from jitdb.log.sidecar.deletions import MARK, Deletion, encode_entry, encode_head
from jitdb.log.sidecar.journal import ENTRY_SIZE, JournalPrefix, decode, encode
from jitdb.operators import everything, not_
from jitdb.operators.nodes.operations import Operation

pytestmark = pytest.mark.slow

ASKED: tuple[Operation, ...] = (everything(), POSTS, not_(VOTES))
SIDECAR = (filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS, filenames.INDEXES)


def all_agree(log: Log, besides: tuple[int, ...] = ()) -> None:
    """Every way of reading says what the file does (`besides`: offsets deleted whose bytes are still there)."""
    oracle = oracle_of(log, besides)
    live = [offset for seq, offset in enumerate(oracle.offsets) if seq not in oracle.deleted]
    check(JITDB(log), oracle, ASKED)
    assert [record.offset for record in log.stream()] == live
    batches = [(batch.offsets, batch.deleted) for batch in log.stream_batches()]
    assert [at for offsets, dead in batches for at in offsets[~dead].tolist()] == live
    stats = log.stats()
    assert (stats.records, stats.deleted_records) == (len(live), len(oracle.offsets) - len(live))
    assert [each is not None for each in log.get_many_raw(oracle.offsets)] == [at in live for at in oracle.offsets]
    for offset in sorted(set(oracle.offsets) - set(live)):
        with pytest.raises(RecordDeleted):
            log.get(offset)


def ask(path: Path, *, read_only: bool, deleted: tuple[int, ...] = ()) -> list[str]:
    """Open the log and ask it everything; the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", JitdbWarning)
        with Log(path, read_only=read_only) as log:
            all_agree(log, deleted if read_only else ())
    return [str(each.message) for each in told]


def copied(source: Path, target: Path, names: tuple[str, ...] = (), *, log: bool = True) -> Path:
    """A copy of a log, with these files of its sidecar (all if none are named), modification times and all."""
    target.mkdir(parents=True, exist_ok=True)
    if log:
        shutil.copy2(source, target / source.name)
    side = target / f"{source.name}.jitdb"
    side.mkdir(exist_ok=True)
    for each in source.with_name(side.name).iterdir():
        if not names or each.name in names:
            put(each, side / each.name)
    return target / source.name


def put(source: Path, target: Path) -> None:
    """Put a file, or a folder, in the place of what is there."""
    if target.is_dir():
        shutil.rmtree(target)
    (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)


def remove(path: Path) -> None:
    (shutil.rmtree if path.is_dir() else os.unlink)(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of 60 records in some blocks, indexed, closed."""
    path = tmp_path / "a.log"
    with Log(path, codec="bipf", block_size=1024) as log:
        log.append_many(messages(60))
        log.flush()
        JITDB(log).prepare(*ASKED)
    return path


def delete(path: Path, *seqs: int) -> list[int]:
    with Log(path) as log:
        offsets = [offset for batch in log.stream_batches() for offset in batch.offsets.tolist()]
        for seq in seqs:
            log.delete(offsets[seq])
    return [offsets[seq] for seq in seqs]


BEFORE, SINCE = range(3, 9), range(20, 38)


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
        with Log(tmp_path / "a.log", read_only=True) as log:
            assert log.deletions()[1].tolist() == offsets[:6]

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


def moments(path: Path, folder: Path) -> dict[str, Path]:
    """The log at several moments, each a copy of it and of its sidecar: closed, but for "written to"."""
    found = {"indexed": copied(path, folder / "indexed")}
    delete(path, *BEFORE)
    found["deleted"] = copied(path, folder / "deleted")
    with Log(path) as log:
        log.append_many(messages(5, first=60))
        log.flush()
        found["written to"] = copied(path, folder / "written to")
        log.append_many(messages(10, first=65))
        log.flush()
        JITDB(log).prepare(*ASKED)
    delete(path, *SINCE)
    found["grown"] = copied(path, folder / "grown")
    with Log(path) as log:
        log.compact()
        JITDB(log).prepare(*ASKED)
    found["compacted"] = copied(path, folder / "compacted")
    delete(path, 5, 6, 30)
    found["deleted again"] = copied(path, folder / "deleted again")
    return found


class TestFilesOfDifferentMoments:
    """Each file of the sidecar is missing, or of another moment than the log: the log as its file says, always."""

    @pytest.mark.parametrize("of_log", ["indexed", "deleted", "grown", "compacted", "deleted again"])
    def test_every_file_by_itself(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        cases = list(product(SIDECAR, [None, *found]))
        step = tries(6, 1)
        for name, moment in cases[len(of_log) % step :: step]:
            if moment == of_log or (name == filenames.CHECKSUMS and moment is not None):
                continue
            for read_only in (True, False):
                shutil.rmtree(tmp_path / "mixed", ignore_errors=True)
                mixed = copied(found[of_log], tmp_path / "mixed")
                target = mixed.parent / "a.log.jitdb" / name
                source = None if moment is None else found[moment].parent / "a.log.jitdb" / name
                if target.exists():
                    remove(target)
                if source is not None and source.exists():
                    put(source, target)
                try:
                    ask(mixed, read_only=read_only)
                    ask(mixed, read_only=not read_only)
                    assert ask(mixed, read_only=True) == []
                except AssertionError as error:
                    raise AssertionError(f"log {of_log}, {name} {moment}, read_only={read_only}: {error}") from error

    @pytest.mark.parametrize("of_log", ["indexed", "deleted", "grown", "compacted", "deleted again"])
    def test_all_but_one_file(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        del found["written to"]  # its checksums fit only the blocks that are as they were: see TestEverySubset
        cases = list(product([*SIDECAR, None], found))
        step = tries(4, 1)
        for kept, moment in cases[len(of_log) % step :: step]:
            if moment == of_log:
                continue
            shutil.rmtree(tmp_path / "mixed", ignore_errors=True)
            mixed = copied(found[moment], tmp_path / "mixed")
            shutil.copy2(found[of_log], mixed)
            if kept is not None:
                source, target = (each.parent / "a.log.jitdb" / kept for each in (found[of_log], mixed))
                if target.exists():
                    remove(target)
                if source.exists():
                    put(source, target)
            try:
                ask(mixed, read_only=True)
                ask(mixed, read_only=False)
                assert ask(mixed, read_only=True) == []
            except AssertionError as error:
                raise AssertionError(f"log {of_log}, all but {kept} of {moment}: {error}") from error

    @pytest.mark.parametrize("of_log", ["grown", "deleted again"])
    def test_checksums_of_another_moment_are_damage_that_is_told(self, path: Path, tmp_path: Path, of_log: str) -> None:
        found = moments(path, tmp_path / "moments")
        for moment in found:
            mixed = copied(found[of_log], tmp_path / f"{moment} of {of_log}")
            put(found[moment].parent / "a.log.jitdb" / "checksums", mixed.parent / "a.log.jitdb" / "checksums")
            with Log(mixed, read_only=True) as log:
                damaged = {finding.what for finding in log.verify().findings} & {"block"}
            if damaged:
                with Log(mixed) as log:
                    log.repair()
            ask(mixed, read_only=False)


def standing(path: Path) -> list[tuple[int, bytes]]:
    """Offset and bytes of every record in the file that is not zeros, wherever a sidecar says that it ends."""
    data, found = path.read_bytes(), []
    for begin in range(0, len(data), 1024):
        walk = walk_block(data[begin : begin + 1024], 1024, 1024)
        for position, length in zip(walk.positions, walk.lengths, strict=True):
            record = data[begin + position + 2 : begin + position + 2 + length]
            if any(record):
                found.append((begin + position, record))
    return found


def judge(path: Path, *, read_only: bool) -> list[str]:
    """Open the log: it holds what its file does. Or it says that it leaves the last of it out, and loses nothing of
    that; or, of checksums that are another moment's, that a block does not fit. The warnings.
    """
    there = standing(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", JitdbWarning)
        with Log(path, read_only=read_only) as log:
            held = [(record.offset, record.value) for record in log.stream(raw=True)]
            end = log.durable_end
    told = [str(each.message) for each in caught]
    if any("is damaged: expected CRC" in each for each in told):
        assert set(held) < set(there)
    elif held != there:
        assert held == there[: len(held)], "other records than those of the file"
        assert end <= there[len(held)][0]
        assert any("a.log.jitdb/" in each and f"{end:,}" in each for each in told), f"left out silently, but {told}"
        if not read_only:
            (kept,) = (path.parent / "a.log.jitdb").glob(f"torn-{end}-*")
            behind = kept.read_bytes()
            assert all(behind[at + 2 - end : at + 2 - end + len(each)] == each for at, each in there[len(held) :])
    return told


class TestEverySubset:
    """Any of the sidecar's files is missing, or of another moment (of before a compaction, of a log that was copied
    while it was written to, of another log): judged by the bytes in the log's file alone.
    """

    LOGS = ("indexed", "written to", "grown", "compacted", "other")

    @pytest.fixture(scope="class")
    def found(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        folder = tmp_path_factory.mktemp("moments")
        with Log(folder / "a.log", codec="bipf", block_size=1024) as log:
            log.append_many(messages(60))
        found = moments(folder / "a.log", folder)
        (folder / "another").mkdir()
        with Log(folder / "another" / "a.log", codec="bipf", block_size=1024) as log:
            log.append_many(messages(50, first=500))
        found["other"] = folder / "another" / "a.log"
        delete(found["other"], 7, 8, 33)
        return {moment: found[moment] for moment in self.LOGS}

    @pytest.mark.parametrize("of_log", LOGS)
    @pytest.mark.parametrize("read_only", [True, False])
    def test_of_the_files_beside_a_log(
        self, found: dict[str, Path], tmp_path: Path, of_log: str, read_only: bool
    ) -> None:
        names = (filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS)
        mixed, side = tmp_path / "a.log", tmp_path / "a.log.jitdb"
        cases, step = list(product([None, *found], product((True, False), repeat=len(names)))), tries(3, 1)
        for moment, chosen in cases[(self.LOGS.index(of_log) + read_only) % step :: step]:
            shutil.rmtree(side, ignore_errors=True)
            copied(found[of_log], tmp_path, names)
            for name in (name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen):
                (side / name).unlink(missing_ok=True)
                source = None if moment is None else found[moment].parent / "a.log.jitdb" / name
                if source is not None and source.exists():
                    shutil.copy2(source, side / name)
            try:
                told = judge(mixed, read_only=read_only)
                assert not told or moment != of_log or of_log == "written to", told
            except BaseException as error:
                error.add_note(f"log {of_log}, of {moment}: {[n for n, c in zip(names, chosen, strict=True) if c]}")
                raise

    @pytest.mark.parametrize("read_only", [True, False])
    @pytest.mark.parametrize("of_sidecar", LOGS)
    def test_all_but_the_journal_of_commits(
        self, found: dict[str, Path], tmp_path: Path, of_sidecar: str, read_only: bool
    ) -> None:
        """Its entries say which log `meta` and the indexes speak of."""
        step = tries(2, 1)
        for of_log in self.LOGS[(self.LOGS.index(of_sidecar) + read_only) % step :: step]:
            shutil.rmtree(tmp_path / "a.log.jitdb", ignore_errors=True)
            mixed = copied(found[of_sidecar], tmp_path)
            (tmp_path / "a.log.jitdb" / "commit").unlink()
            shutil.copy2(found[of_log], mixed)
            first, *others = ask(mixed, read_only=read_only)
            assert "a.log.jitdb/meta stands without commit" in first
            assert all("a.log.jitdb/indexes" in each for each in others)
            assert ask(mixed, read_only=True) == ask(mixed, read_only=False) == []


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
