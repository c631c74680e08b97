"""The table of recovery, cell by cell: each state of the journal by each state of the file, with real files."""

from __future__ import annotations

import os
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from jitdb.errors import LogWarning
from jitdb.log import Log
from jitdb.log.codecs import get_codec
from jitdb.log.io import filenames, osfile
from jitdb.log.io.osfile import Lock
from jitdb.log.opening.recovery import NO_CHANGE, OUTCOMES, File, Journal, Look, Recovery
from jitdb.log.sidecar import journal, meta
from jitdb.log.sidecar.deletions import DeletionReader

BLOCK = 512
FIRST = [b"%03d" % number * 20 for number in range(30)]  # of 62 bytes with the header: eight fill a block
MORE = [b"more %d" % number for number in range(3)]

CELLS = [(of_journal, of_file) for of_journal, row in OUTCOMES.items() for of_file in row]

EXPECTED = {  # written down a second time, so that nobody changes a cell by mistake
    (Journal.NONE, File.UNKNOWN): Look.surveyed,
    (Journal.WRITING, File.UNTOUCHED): Look.kept,
    (Journal.WRITING, File.TOUCHED): Look.kept,
    (Journal.WRITING, File.BROKEN): Look.kept_damaged,
    (Journal.WRITING, File.FOREIGN): Look.kept_damaged,
    (Journal.CLOSED, File.UNTOUCHED): Look.kept,
    (Journal.CLOSED, File.TOUCHED): Look.accepted,
    (Journal.CLOSED, File.DAMAGED): Look.kept_damaged,
    (Journal.CLOSED, File.BROKEN): Look.kept_damaged,
    (Journal.CLOSED, File.FOREIGN): Look.replaced,
    (Journal.CLOSED, File.OLDER): Look.replaced,
    (Journal.SYNCED, File.UNTOUCHED): Look.kept,
    (Journal.SYNCED, File.TOUCHED): Look.believed,
    (Journal.SYNCED, File.DAMAGED): Look.kept_damaged,
    (Journal.SYNCED, File.BROKEN): Look.kept_damaged,
    (Journal.SYNCED, File.FOREIGN): Look.replaced,
    (Journal.SYNCED, File.OLDER): Look.replaced,
    (Journal.DATA, File.TOUCHED): Look.believed,
    (Journal.DATA, File.FOREIGN): Look.replaced,
    (Journal.DATA, File.OLDER): Look.replaced,
}


@dataclass
class Case:
    """A log whose journal and file are brought into a state each."""

    path: Path
    end: int  # where the journal's last settled entry says that it ends
    after: int  # where the records end that were appended behind that

    @property
    def sidecar(self) -> Path:
        return filenames.sidecar_path(self.path)

    def write(self, at: int, data: bytes, *, unseen: bool) -> None:
        """Other bytes in the log's file; `unseen`: its time stays, as on a disk that fails."""
        status = self.path.stat()
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(data)
        if unseen:
            os.utime(self.path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            os.utime(self.path, ns=(status.st_atime_ns, status.st_mtime_ns + 60 * 10**9))

    @contextmanager
    def look(self, *, writing: bool) -> Iterator[Look]:
        known = meta.read(osfile.fs, self.sidecar / filenames.META)
        assert known is not None
        entries = journal.JournalReader(osfile.fs, self.sidecar / filenames.COMMIT, known.generation)
        gone = DeletionReader(osfile.fs, self.sidecar / filenames.DELETIONS, known.generation)
        gone.poll()
        with osfile.Descriptor(osfile.fs, self.path, os.O_RDONLY) as fd:
            yield Look(
                osfile.fs, fd, BLOCK, get_codec("raw"), entries.poll(),
                writer_alive=writing, deletions=gone, last_word=self.path.stat().st_mtime_ns,
            )  # fmt: skip
        entries.close()
        gone.close()


def case(folder: Path, of_journal: Journal, of_file: File) -> Case:
    path = folder / "a.log"
    sidecar = filenames.sidecar_path(path)
    is_older = of_file is File.OLDER
    with Log(path, codec="raw", block_size=BLOCK) as log:
        offsets = log.append_many(FIRST)
        log.flush()
        end, gone = log.durable_end, log.get_raw(offsets[5])
        if is_older:
            log.delete(offsets[5])
    base = journal.decode_all((sidecar / filenames.COMMIT).read_bytes())[-1]
    assert base is not None
    assert (base.kind, base.end) == (journal.CLOSED, end)
    shutil.copytree(sidecar, folder / "before")
    before = path.stat()
    after = end
    if of_file is File.TOUCHED and of_journal is not Journal.WRITING:
        with Log(path, read_only=False) as log:
            log.append_many(MORE)
        after = journal.decode_all((sidecar / filenames.COMMIT).read_bytes())[-1].end  # type: ignore[union-attr]
        shutil.rmtree(sidecar)
        shutil.copytree(folder / "before", sidecar)
    found = Case(path, end, after)
    entries = [base if of_journal is Journal.CLOSED else base._replace(kind=journal.SYNCED)]
    if of_journal is Journal.DATA:
        data = path.read_bytes()[end:after] or b"\3\0new"
        crc = zlib.crc32(data)
        entries.append(
            base._replace(kind=journal.DATA, start=end, end=end + len(data), data_crc=crc, stamp=0, generation=1)
        )
    (sidecar / filenames.COMMIT).write_bytes(b"".join(map(journal.encode, entries)))
    if of_journal is Journal.NONE:
        (sidecar / filenames.COMMIT).unlink()
    last, first_of_block = offsets[-1] + 2, offsets[24] + 2
    if of_file is File.TOUCHED and of_journal is Journal.WRITING:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    elif of_file is File.DAMAGED:
        found.write(first_of_block, b"?", unseen=True)
    elif of_file is File.BROKEN:
        found.write(last, b"?", unseen=True)
    elif of_file is File.FOREIGN:
        found.write(last, b"?", unseen=False)
    elif of_file is File.OLDER:
        found.write(offsets[5] + 2, gone, unseen=False)
    return found


def test_no_cell_is_missing() -> None:
    assert {(of_journal, of_file): OUTCOMES[of_journal][of_file] for of_journal, of_file in CELLS} == EXPECTED


@pytest.mark.parametrize(("of_journal", "of_file"), CELLS, ids=lambda state: state.name)
def test_cell(of_journal: Journal, of_file: File, tmp_path: Path) -> None:
    made = case(tmp_path, of_journal, of_file)
    with made.look(writing=of_journal is Journal.WRITING) as look:
        assert (look.journal, look.file) == (of_journal, of_file)
        found = look.recover()
        outcome = EXPECTED[of_journal, of_file]
    is_left_out = (of_journal, of_file) == (Journal.SYNCED, File.TOUCHED)  # records that nobody acknowledged
    assert found.tail.end == (made.end if is_left_out else made.after)
    check(found, outcome)
    lock = Lock(osfile.fs, made.sidecar / filenames.LOCK, made.path) if of_journal is Journal.WRITING else None
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with Log(made.path, read_only=True) as log:  # and who opens the log finds the same
                assert log.durable_end == found.tail.end
                generation = log.generation
    finally:
        if lock is not None:
            lock.close()
    is_new = outcome in (Look.replaced, Look.surveyed)  # a meta without a commit is of another log
    assert (generation == 2) == is_new
    assert any(issubclass(each.category, LogWarning) for each in told) == (is_new or is_left_out)


def check(found: Recovery, outcome: Callable[[Look], Recovery]) -> None:
    assert found.replaced == (outcome is Look.replaced)
    assert found.damaged == (outcome is Look.kept_damaged)
    assert found.is_recorded == (outcome in (Look.kept, Look.kept_damaged))
    assert (found.change == NO_CHANGE) == (outcome in (Look.kept, Look.kept_damaged, Look.believed))


@pytest.mark.parametrize("of_journal", [Journal.CLOSED, Journal.SYNCED])
def test_a_shorter_file_is_foreign(of_journal: Journal, tmp_path: Path) -> None:
    made = case(tmp_path, of_journal, File.UNTOUCHED)
    os.truncate(made.path, BLOCK)
    with made.look(writing=False) as look:
        assert (look.journal, look.file) == (of_journal, File.FOREIGN)
        found = look.recover()
    assert found.replaced
    assert found.tail.end == 8 * 62


def test_announced_bytes_without_their_crc_are_left_out(tmp_path: Path) -> None:
    made = case(tmp_path, Journal.DATA, File.TOUCHED)
    made.write(made.after - 1, b"?", unseen=True)
    with made.look(writing=False) as look:
        found = look.recover()
    assert (look.file, found.tail.end, found.unacknowledged) == (File.TOUCHED, made.end, range(0))


@pytest.mark.parametrize("later", [False, True])
def test_whole_records_of_which_no_entry_tells(later: bool, tmp_path: Path) -> None:
    """They count where they were written long after the last word of our writer, and are told of in either case."""
    made = case(tmp_path, Journal.SYNCED, File.TOUCHED)
    with made.look(writing=False) as look:
        assert look.file is File.TOUCHED
    stamp = made.path.stat().st_mtime_ns
    for name in (filenames.COMMIT, filenames.DELETIONS):
        if (made.sidecar / name).exists():
            os.utime(made.sidecar / name, ns=(stamp, stamp))
    if later:
        os.utime(made.path, ns=(stamp, stamp + 60 * 10**9))
    with pytest.warns(LogWarning, match="They count as well" if later else "They are left out"):
        log = Log(made.path, read_only=True)
    with log:
        assert log.durable_end == (made.after if later else made.end)
