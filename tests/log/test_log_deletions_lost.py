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

import pytest
from engine_helpers import POSTS, VOTES, check, messages, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import JitdbWarning, LogSuperseded, LogWarning, LogWriteFailed, RecordDeleted
from jitdb.log import files
from jitdb.log.deletions import MARK, Deletion, encode_entry, encode_head
from jitdb.operators import everything, not_
from jitdb.operators.operations import Operation

ASKED: tuple[Operation, ...] = (everything(), POSTS, not_(VOTES))
SIDECAR = (files.META, files.COMMIT, files.CHECKSUMS, files.DELETIONS, files.INDEXES)


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
    """The log, closed, at several moments; each a copy of it and of its sidecar."""
    found = {"indexed": copied(path, folder / "indexed")}
    delete(path, *BEFORE)
    found["deleted"] = copied(path, folder / "deleted")
    with Log(path) as log:
        log.append_many(messages(15, first=60))
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
        for name, moment in product(SIDECAR, [None, *found]):
            if moment == of_log or (name == files.CHECKSUMS and moment is not None):
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
        for kept, moment in product([*SIDECAR, None], found):
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
