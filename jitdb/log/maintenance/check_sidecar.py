"""Is every file of a log's sidecar what was written? And what does it say of the blocks and of the log's end?"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.block_format import round_up
from jitdb.log.blocks.checksum import UNKNOWN, Ints
from jitdb.log.io import filenames
from jitdb.log.io.osfile import has_writer
from jitdb.log.maintenance.report import Finding, Leftover
from jitdb.log.opening.recovery import NO_CHANGE, lost_of, stamp_of
from jitdb.log.sidecar import checksums, deletions, journal, meta, removals, sets
from jitdb.log.sidecar.onebit import differs_by_one_bit, restored_with_crc

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened

_KNOWN: Final = (
    filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS, filenames.LOCK, filenames.INDEXES,
    filenames.SETS,
    *filenames.NEXT_FILES,
)  # fmt: skip
_BIT: Final = "one bit is flipped"


class Sidecar:
    """What the sidecar's files say. `findings`, `notes`, `leftovers` and `bytes` are those of a report."""

    def __init__(self, opened: Opened, end: int, *, quiet: bool) -> None:
        """`quiet`: nobody writes to the log, not even who holds its lock."""
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.leftovers: list[Leftover] = []
        self.bytes = 0
        self.deleted: Ints = np.empty(0, np.int64)  # offsets, ascending
        self.end: journal.Entry | None = None  # the newest settled entry that tells of the log's end
        self._opened = opened
        self._fs = opened.fs
        self._log_end = end
        self._last = max(0, end - 1) // opened.meta.block_size
        self._sums = b""  # the entries of the checksums
        self._outdated = False  # they are of before another program changed the log
        self.ours = self._last  # the first block that has a checksum, or should have
        self._unapplied: set[int] = set()
        self.is_written_to = not quiet and (
            opened.lock is not None or has_writer(opened.fs, opened.sidecar / filenames.LOCK)
        )
        self._meta()
        self._commit()
        self._checksums()
        self._deletions()
        self._others()
        self._sets()

    # --- what the blocks are held against --------------------------------------------------------------------------

    def checksum(self, block: int) -> checksums.Entry | None:
        """As Checksums.get, as it was when the verification began, a single flipped bit put back."""
        at = block * checksums.ENTRY_SIZE
        data = self._sums[at : at + checksums.ENTRY_SIZE]
        entry = checksums.restore_entry(data, block, self._opened.meta.generation)
        return entry if entry is None or not self._outdated else entry._replace(flags=entry.flags | checksums.OLD)

    def crcs(self, first: int, count: int) -> Ints:
        """As LogSource.checksums, of what checksum() gives."""
        entries = [self.checksum(block) for block in range(first, first + count)]
        return np.array([UNKNOWN if entry is None else entry.crc for entry in entries], np.int64)

    def checksum_now(self, block: int) -> checksums.Entry | None:
        """As Checksums.get, as it is now."""
        self._sums = self._entries()
        return self.checksum(block)

    @property
    def tail_crc(self) -> int | None:
        """crc32 of the last block up to the log's end, None if it is not known."""
        if self.end is None or self.end.data_crc == 0:
            return None
        return self.end.data_crc if self.end.kind != journal.CLOSED or self.is_untouched else None

    @property
    def is_untouched(self) -> bool:
        """Whether nobody wrote to the log's file since its end was written down."""
        stat = self._fs.fstat(self._opened.fd)
        whole = round_up(self._log_end, self._opened.meta.block_size)
        return self.end is not None and (self.end.stamp, whole) == (stamp_of(stat), stat.st_size)

    def look_again(self) -> None:
        """Somebody may have deleted a record meanwhile."""
        self.end = self._find_end(journal.decode_all(self._read(filenames.COMMIT) or b""))

    def is_deleting(self, offset: int) -> bool:
        """Whether this record may be on its way to being deleted."""
        return offset in self._unapplied or offset in self._unapplied_now()

    def is_deleting_in(self, block: int) -> bool:
        """Whether a record of the block may be on its way to being deleted."""
        size = self._opened.meta.block_size
        return any(offset // size == block for offset in self._unapplied | self._unapplied_now())

    def _unapplied_now(self) -> set[int]:
        with closing(self._reader_of_deletions()) as reader:
            return set(reader.unapplied.offsets)

    # --- the files -------------------------------------------------------------------------------------------------

    def _meta(self) -> None:
        data, expected = self._read(filenames.META), meta.encode(self._opened.meta)
        if not self._opened.stored:
            self.notes.append("the sidecar cannot be written: the log has an identity for this process only")
        elif self._exists(filenames.NEXT):
            self.notes.append("a compaction, or a repair, was cut short: the next writer finishes it")
        elif data != expected:
            reason = "missing" if data is None else _BIT if differs_by_one_bit(data, expected) else "damaged"
            self._find(filenames.META, 0, reason, "writes it anew", len(data or b""))

    def _commit(self) -> None:
        data = self._read(filenames.COMMIT)
        if data is None:
            if self._log_end and self._opened.stored:
                self._find(filenames.COMMIT, 0, "missing: where the log ends was found by looking", "writes it anew", 0)
            return
        entries = journal.decode_all(data)
        for number, entry in enumerate(entries):
            at = number * journal.ENTRY_SIZE
            if journal.decode(data[at : at + journal.ENTRY_SIZE]) is None:
                reason = "damaged, and passed over" if entry is None else _BIT
                self._find(
                    filenames.COMMIT, at, f"entry {number}: {reason}", "begins the journal anew", journal.ENTRY_SIZE
                )
        torn = len(data) - len(entries) * journal.ENTRY_SIZE
        if torn and not self.is_written_to:
            self.notes.append(
                f"{self._name(filenames.COMMIT)} ends in {torn} bytes that are no entry: torn, never counted"
            )
        self.end = self._find_end(entries)

    def _find_end(self, entries: list[journal.Entry | None]) -> journal.Entry | None:
        for entry in (*reversed(entries), self._opened.journal.state.base):
            if entry is not None and entry.generation == self._opened.meta.generation and entry.kind != journal.DATA:
                return entry if entry.end == self._log_end else None
        return None

    def _checksums(self) -> None:
        head = (self._read(filenames.CHECKSUMS) or b"")[: checksums.HEAD_SIZE]
        expected = self._opened.checksums.head
        by_us = self._opened.recovery.change == NO_CHANGE
        self._outdated = checksums.is_outdated(head, expected)
        if head == expected or self._outdated or differs_by_one_bit(head, expected):
            if head != expected and not self._outdated:
                self._find(filenames.CHECKSUMS, 0, f"its head: {_BIT}", "writes it anew", len(head))
            self._sums = self._entries()
        elif head and not checksums.is_head(head):
            self._find(
                filenames.CHECKSUMS, 0, "its head is damaged: no block can be verified", "begins it anew", len(head)
            )
            by_us = True
        present = [block for block in range(self._last) if self._entry(block)]
        self.ours = 0 if by_us else self._last  # what another program wrote has none
        for block in present:
            self._check_entry(block)
        missing = (block for block in range(self.ours, self._last) if not self._entry(block))
        for _, run in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
            blocks = [block for _, block in run]
            self._find(
                filenames.CHECKSUMS,
                checksums.HEAD_SIZE + blocks[0] * checksums.ENTRY_SIZE,
                f"blocks {blocks[0]} to {blocks[-1]} have no checksum, though it was written"
                if len(blocks) > 1
                else f"block {blocks[0]} has no checksum, though it was written",
                "gives them one, if nothing else is wrong with them",
                len(blocks) * checksums.ENTRY_SIZE,
            )

    def _entries(self) -> bytes:
        data = (self._read(filenames.CHECKSUMS) or b"")[checksums.HEAD_SIZE :]
        return data[: self._last * checksums.ENTRY_SIZE]

    def _entry(self, block: int) -> bytes:
        data = self._sums[block * checksums.ENTRY_SIZE : (block + 1) * checksums.ENTRY_SIZE]
        return data if len(data) == checksums.ENTRY_SIZE and any(data) else b""

    def _check_entry(self, block: int) -> None:
        data, generation = self._entry(block), self._opened.meta.generation
        if checksums.decode_entry(data, block, generation) is not None:
            return
        if checksums.restore_entry(data, block, generation) is not None:
            reason, remedy = _BIT, "puts it back"
        else:
            reason, remedy = "damaged", "gives the block another one, if nothing else is wrong with it"
        self._find(
            filenames.CHECKSUMS,
            checksums.HEAD_SIZE + block * checksums.ENTRY_SIZE,
            f"the entry of block {block}: {reason}; who reads the block cannot verify it",
            remedy,
            checksums.ENTRY_SIZE,
        )

    def _deletions(self) -> None:
        data = self._read(filenames.DELETIONS)
        if data is not None:
            self._entries_of_deletions(data)
        with closing(self._reader_of_deletions()) as reader:
            lost = self._opened.recovery.lost or (lost_of(self.end, reader) if self.end is not None else "")
        if lost and not any(finding.what == filenames.DELETIONS for finding in self.findings):
            message = f"it is not the journal that the log was left with: {lost}"
            remedy = "goes on with what is there: which records are deleted is found by reading the log"
            self._find(filenames.DELETIONS, 0, message, remedy, len(data or b""))

    def _entries_of_deletions(self, data: bytes) -> None:
        expected = deletions.encode_head(self._opened.meta.generation)
        head = data[: deletions.HEAD_SIZE]
        if head != expected:
            if deletions.is_head(head):
                return  # of an earlier generation: void
            reason = (
                f"its head: {_BIT}" if differs_by_one_bit(head, expected) else "its head is damaged: it is not read"
            )
            self._find(filenames.DELETIONS, 0, reason, "writes it anew", len(head))
        body = data[deletions.HEAD_SIZE :]
        entries = deletions.decode_all(body)
        for number, entry in enumerate(entries):
            at = number * deletions.ENTRY_SIZE
            if entry is None or deletions.encode_entry(entry) != body[at : at + deletions.ENTRY_SIZE]:
                reason = "damaged: which record was deleted is not known" if entry is None else _BIT
                remedy = "writes it anew" if entry is not None else "passes over it, and gives the log a new identity"
                place = deletions.HEAD_SIZE + at
                self._find(filenames.DELETIONS, place, f"entry {number}: {reason}", remedy, deletions.ENTRY_SIZE)
        if len(body) > len(entries) * deletions.ENTRY_SIZE and not self.is_written_to:
            self.notes.append(f"{self._name(filenames.DELETIONS)} ends in bytes that are no entry: torn, never counted")
        with closing(self._reader_of_deletions()) as reader:
            self.deleted = np.unique(reader.between(0, reader.position))
            self._unapplied = set(reader.unapplied.offsets)
        if self._unapplied and not self.is_written_to:
            self.notes.append(f"{len(self._unapplied):,} deletions were cut short: the next writer finishes them")

    def _reader_of_deletions(self) -> deletions.DeletionReader:
        path = self._opened.sidecar / filenames.DELETIONS
        reader = deletions.DeletionReader(self._fs, path, self._opened.meta.generation)
        reader.poll()
        return reader

    def _others(self) -> None:
        names: list[str] = []
        with suppress(FileNotFoundError, NotADirectoryError):
            names = sorted(self._fs.listdir(self._opened.sidecar))
        for name in names:
            if name in _KNOWN:
                continue
            if name == filenames.REDO:
                self.notes.append("a repair was cut short: the next writer finishes it")
            elif filenames.is_moved_name(name) and name != filenames.moved_name(self._opened.meta.generation + 1):
                self._moved(name)  # the next one's is what a compaction left that did not come about
            else:
                with suppress(FileNotFoundError):  # it was removed just now, or is a link to nothing
                    size = self._fs.stat(self._opened.sidecar / name).st_size
                    self.leftovers.append(Leftover(self._name(name), size))

    def _moved(self, name: str) -> None:
        data = self._read(name) or b""
        try:
            removals.decode(data, Path(name))
        except LogCorrupt:
            whole = restored_with_crc(data)
            reason = "damaged: what a compaction moved is not known any more" if whole is None else "one bit is flipped"
            remedy = "removes it; older indexes and cursors count no more" if whole is None else "puts it right"
            self._find(name, 0, reason, remedy, len(data), what="moved")

    def _sets(self) -> None:
        folder = self._opened.sidecar / filenames.SETS
        names: list[str] = []
        with suppress(FileNotFoundError, NotADirectoryError):
            names = sorted(name for name in self._fs.listdir(folder) if name.endswith(sets.SUFFIX))
        for name in names:
            file = os.path.join(filenames.SETS, name)
            data = self._read(file) or b""
            whole = sets.restored(data)
            if whole != data:
                reason = "damaged: which records it named is not known any more" if whole is None else _BIT
                remedy = "sets it aside; the set is to be made again" if whole is None else "puts it right"
                self._find(file, 0, reason, remedy, len(data), what="set")

    # --- in general ------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> bytes | None:
        data = self._fs.read_if_there(self._opened.sidecar / name)
        self.bytes += len(data or b"")
        return data

    def _exists(self, name: str) -> bool:
        return self._fs.exists(self._opened.sidecar / name)

    def _name(self, name: str) -> str:
        return os.path.join(self._opened.sidecar.name, name)

    def _find(self, name: str, at: int, message: str, remedy: str, size: int, what: str = "") -> None:
        self.findings.append(Finding(what or name, self._name(name), at, message, remedy, bytes=size))
