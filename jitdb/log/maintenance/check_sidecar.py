"""Verifying the files of a sidecar, and reading what they say about the log's end and its deletions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.block_format import round_up
from jitdb.log.blocks.checksum import Ints
from jitdb.log.io import filenames
from jitdb.log.io.osfile import has_writer
from jitdb.log.maintenance.report import Finding, Leftover
from jitdb.log.opening.recovery import NO_CHANGE, lost_of, stamp_of
from jitdb.log.sidecar import checksums, deletions, journal, meta, removals, sets
from jitdb.log.sidecar.framing import is_torn

if TYPE_CHECKING:
    from jitdb.log.opening.opened import Opened

_KNOWN: Final = (
    filenames.META, filenames.COMMIT, filenames.CHECKSUMS, filenames.DELETIONS, filenames.LOCK, filenames.INDEXES,
    filenames.SETS,
    *filenames.NEXT_FILES,
)  # fmt: skip


class Sidecar:
    """Checks the files of the sidecar. `findings`, `notes`, `leftovers` and `bytes` are those of a report."""

    def __init__(self, opened: Opened, end: int, *, quiet: bool = False) -> None:
        """end: of the log; quiet: nobody writes to it, not even its lock's holder"""
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.leftovers: list[Leftover] = []
        self.bytes = 0
        self.deleted: Ints = np.empty(0, np.int64)  # offsets, ascending
        self.end: journal.Entry | None = None  # the newest settled entry that tells of the log's end
        self.opened, self._fs, self._meta = opened, opened.fs, opened.meta
        self.log_end = end
        self.last = max(0, end - 1) // opened.meta.block_size
        self.ours = self.last  # the first block that has a checksum, or should have
        self._unapplied: set[int] = set()
        self.is_written_to = not quiet and (
            opened.lock is not None or has_writer(opened.fs, opened.sidecar / filenames.LOCK)
        )
        self._check_meta()
        self._check_commit()
        self._check_checksums()
        self._check_deletions()
        self._check_others()
        self._check_sets()

    # --- what the blocks are compared with -------------------------------------------------------------------------

    @property
    def tail_crc(self) -> int | None:
        """crc32 of the last block up to the log's end, None if it is not known."""
        if self.end is None or self.end.data_crc == 0:
            return None
        return self.end.data_crc if self.end.kind != journal.CLOSED or self.is_untouched else None

    @property
    def is_untouched(self) -> bool:
        """Whether nobody wrote to the log's file since its end was written down."""
        stat = self._fs.fstat(self.opened.fd)
        whole = round_up(self.log_end, self._meta.block_size)
        return self.end is not None and (self.end.stamp, whole) == (stamp_of(stat), stat.st_size)

    def look_again(self) -> None:
        """Read the journal again: somebody may have deleted a record."""
        self._find_end(journal.decode_all(self._read(filenames.COMMIT) or b""))

    def deleting(self) -> set[int]:
        """Offsets of records that may be on their way to being deleted."""
        self.opened.deletions.poll()
        return self._unapplied | set(self.opened.deletions.unapplied.offsets)

    # --- the files -------------------------------------------------------------------------------------------------

    def _check_meta(self) -> None:
        data = self._read(filenames.META)
        if not self.opened.stored:
            self.notes.append("the sidecar cannot be written: the log has an identity for this process only")
        elif self._fs.exists(self.opened.sidecar / filenames.NEXT):
            self.notes.append("a compaction, or a repair, was cut short: the next writer finishes it")
        elif data != meta.encode(self._meta):
            self._find(filenames.META, 0, "missing" if data is None else "damaged", "writes it anew", len(data or b""))

    def _check_commit(self) -> None:
        data = self._read(filenames.COMMIT)
        if data is None:
            if self.log_end and self.opened.stored:
                self._find(filenames.COMMIT, 0, "missing: where the log ends was found by looking", "writes it anew", 0)
            return
        reason, remedy = "damaged, and passed over", "begins the journal anew"
        entries = self._check_entries(filenames.COMMIT, data, 0, journal.ENTRY_SIZE, journal.decode_all, reason, remedy)
        self._find_end(entries)

    def _find_end(self, entries: Sequence[journal.Entry | None]) -> None:
        self.end = None
        for entry in (*reversed(entries), self.opened.journal.state.base):
            if entry is not None and entry.generation == self._meta.generation and entry.kind != journal.DATA:
                self.end = entry if entry.end == self.log_end else None
                return

    def _check_entries(
        self, name: str, data: bytes, start: int, size: int,
        decode_all: Callable[[bytes], list[journal.Entry | None]] | Callable[[bytes], list[deletions.Deletion | None]],
        reason: str, remedy: str,
    ) -> list[Any]:  # fmt: skip
        """The entries of a file, from its byte `start` on; tells which of them are damaged."""
        body = data[start:]
        entries = decode_all(body)
        rest = body[len(entries) * size :]
        rest = rest if any(rest) else b""  # room for entries, that their writer laid out
        damaged = [number for number, entry in enumerate(entries) if entry is None]
        if rest and not self.is_written_to:
            if len(rest) >= size and not is_torn(rest[:size]):
                damaged.append(len(entries))
            else:
                self.notes.append(
                    f"{self._name(name)} ends in {len(rest)} bytes that are no entry: torn, never counted"
                )
        for number in damaged:
            self._find(name, start + number * size, f"entry {number}: {reason}", remedy, size)
        return list(entries)

    def _check_checksums(self) -> None:
        opened, data = self.opened, self._read(filenames.CHECKSUMS) or b""
        if opened.lock is None:
            opened.checksums.close()  # a writer may have begun another file
        generation = checksums.generation_in(data[: checksums.HEAD_SIZE])
        if data and generation is None:
            reason = "its head is damaged: blocks that do not fit count as changed by another program"
            self._find(filenames.CHECKSUMS, 0, reason, "writes it anew", checksums.HEAD_SIZE)
        by_us = opened.recovery.change == NO_CHANGE or bool(data and generation is None)
        self.ours = 0 if by_us else self.last  # what another program wrote has none
        body = data[checksums.HEAD_SIZE :] if generation in (None, self._meta.generation) else b""
        entries = checksums.decode_entries(body[: self.last * checksums.ENTRY_SIZE], 0, self._meta.generation)
        missing = list(range(max(len(entries), self.ours), self.last))
        for block, entry in enumerate(entries):
            if entry is None and not any(body[block * checksums.ENTRY_SIZE :][: checksums.ENTRY_SIZE]):
                missing += [block] if block >= self.ours else []
            elif entry is None:
                at = checksums.HEAD_SIZE + block * checksums.ENTRY_SIZE
                message = f"the entry of block {block}: damaged; the block cannot be verified"
                remedy = "gives the block another one, if nothing else is wrong with it"
                self._find(filenames.CHECKSUMS, at, message, remedy, checksums.ENTRY_SIZE)
        for _, run in groupby(enumerate(sorted(missing)), lambda pair: pair[1] - pair[0]):
            blocks = [block for _, block in run]
            which = f"blocks {blocks[0]} to {blocks[-1]} have" if len(blocks) > 1 else f"block {blocks[0]} has"
            self._find(
                filenames.CHECKSUMS,
                checksums.HEAD_SIZE + blocks[0] * checksums.ENTRY_SIZE,
                f"{which} no checksum, though it was written",
                "gives them one, if nothing else is wrong with them",
                len(blocks) * checksums.ENTRY_SIZE,
            )

    def _check_deletions(self) -> None:
        data = self._read(filenames.DELETIONS)
        head, start = (data or b"")[: deletions.HEAD_SIZE], deletions.HEAD_SIZE
        if head == deletions.encode_head(self._meta.generation):
            reason = "damaged: which record was deleted is not known"
            remedy = "passes over it, and gives the log a new identity"
            size = deletions.ENTRY_SIZE
            self._check_entries(filenames.DELETIONS, data or b"", start, size, deletions.decode_all, reason, remedy)
        elif data is not None and not deletions.is_head(head):  # else it is of an earlier generation: void
            self._find(filenames.DELETIONS, 0, "its head is damaged: it is not read", "writes it anew", len(head))
        path = self.opened.sidecar / filenames.DELETIONS
        with closing(deletions.DeletionReader(self._fs, path, self._meta.generation)) as reader:
            reader.poll()
            self.deleted = np.unique(reader.between(0, reader.position))
            self._unapplied = set(reader.unapplied.offsets)
            lost = self.opened.recovery.lost or (lost_of(self.end, reader) if self.end is not None else "")
        if self._unapplied and not self.is_written_to:
            self.notes.append(f"{len(self._unapplied):,} deletions were cut short: the next writer finishes them")
        if lost and not any(finding.what == filenames.DELETIONS for finding in self.findings):
            message = f"it is not the journal that the log was left with: {lost}"
            remedy = "goes on with what is there: which records are deleted is found by reading the log"
            self._find(filenames.DELETIONS, 0, message, remedy, len(data or b""))

    def _check_others(self) -> None:
        for name in self._names(""):
            if name in _KNOWN:
                continue
            if filenames.is_moved_name(name) and name != filenames.moved_name(self._meta.generation + 1):
                data = self._read(name) or b""  # the next one's is what a compaction left that did not come about
                try:
                    removals.decode(data, Path(name))
                except LogCorrupt:
                    reason = "damaged: what a compaction moved is not known any more"
                    remedy = "removes it; older indexes and cursors count no more"
                    self._find(name, 0, reason, remedy, len(data), what="moved")
            else:
                with suppress(FileNotFoundError):  # it was removed just now, or is a link to nothing
                    size = self._fs.stat(self.opened.sidecar / name).st_size
                    self.leftovers.append(Leftover(self._name(name), size))

    def _check_sets(self) -> None:
        for name in self._names(filenames.SETS):
            if name.endswith(sets.SUFFIX):
                file = os.path.join(filenames.SETS, name)
                data = self._read(file) or b""
                if sets.FRAME.unpack(data) is None:
                    reason = "damaged: which records it named is not known any more"
                    self._find(file, 0, reason, "sets it aside; the set is to be made again", len(data), what="set")

    # --- in general ------------------------------------------------------------------------------------------------

    def _names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(self._fs.listdir(self.opened.sidecar / folder))
        return []

    def _read(self, name: str) -> bytes | None:
        data = self._fs.read_if_there(self.opened.sidecar / name)
        self.bytes += len(data or b"")
        return data

    def _name(self, name: str) -> str:
        return os.path.join(self.opened.sidecar.name, name)

    def _find(self, name: str, at: int, message: str, remedy: str, size: int, what: str = "") -> None:
        self.findings.append(Finding(what or name, self._name(name), at, message, remedy, bytes=size))
