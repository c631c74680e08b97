"""Are the bytes of the log still those that its indexes were built from? Asked once after another program changed it.

A token (LogSource.foreign_change_token) tells that the file was changed, not what. So the log is read once, at the
speed of a CRC, and each block is held against its checksum, or against the fingerprint in the index of deleted records
(indexes/kinds/set.py). There is one such index for each token.

    all blocks are as they were     the indexes go on, and so does the index of deleted records, under the new token
    a block is another one          the log's content gets another name, and its indexes are built anew
    the journal of deletions lacks  the same: the log is older than the indexes, and records that they leave out are
    entries that were known         there again
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pyroaring import BitMap

from jitdb.common.digests import blake2b
from jitdb.common.sorting import are_among
from jitdb.engine.catalog.copies import Deletions
from jitdb.errors import IndexDamaged, LogSuperseded, QueryCancelled
from jitdb.indexes.files.file import Head
from jitdb.indexes.files.folder import index_files
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.set import ROW, Fingerprint, decode, fingerprint_of, records_in_sets, unproven_rows
from jitdb.indexes.segment import Journal
from jitdb.indexes.spec import deleted_spec
from jitdb.log.blocks.block_format import header_size
from jitdb.log.blocks.checksum import UNKNOWN, Bytes, crc32, crcs_of
from jitdb.log.blocks.scanner import Walked, Walker, scan
from jitdb.log.io import osfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource


class LogContent(NamedTuple):
    """The name of the log's content, and the segments of its index of deleted records, if they are still right.

    by_deletion: the content changed, it seems, because a program deleted records; no reason for a warning
    """

    name: bytes
    deleted: tuple[Segment, ...] = ()
    by_deletion: bool = False


def content_of(
    log: LogSource,
    folder: FilePath | None,
    token: bytes,
    held: Iterable[Index] = (),
    cancel: threading.Event | None = None,
) -> LogContent:
    """The log's content, as far as indexes in the folder, or `held` in memory, know it.

    `token` is the log's. Raises LogError, LogSuperseded, QueryCancelled.
    """
    mine, generation = deleted_spec(token), log.generation
    found = [index for index in held if index.spec.form == "deleted" and index.segments]
    for path, head in _heads(log, folder):
        if head.log.generation == generation:
            found += _loaded(Index(head.spec, head.log, path))
        elif head.log.generation < generation and head.spec == mine:
            return LogContent(head.log.content)  # it was compacted since, and nothing else
    history = Deletions(log)
    by_deletion = False
    for index in sorted(found, key=lambda index: index.spec != mine):
        fingerprint = fingerprint_of(index.segments)
        if index.spec == mine and (fingerprint is None or history.begins_with(fingerprint.journal)):
            return LogContent(index.log.content)
        if index.spec != mine and fingerprint is not None and history.begins_with(fingerprint.journal):
            check = _Check(log, fingerprint, index, cancel)
            if check.run() and not _is_outrun(folder, index):
                return LogContent(index.log.content, () if check.damaged or check.untold else tuple(index.segments))
            by_deletion = by_deletion or check.untold
    if not found:
        return LogContent(token if any(token) else b"")
    known = [index.log.content + index.spec.name.encode() for index in found]
    digest = blake2b(repr((token, sorted(known), history.now())).encode(), digest_size=8).digest()
    return LogContent(digest, by_deletion=by_deletion)


def names_content(log: LogSource, folder: FilePath | None) -> bool:
    """Whether content_of() need not read the log: index files know it as it is."""
    mine = deleted_spec(log.foreign_change_token())
    ours = [head for _, head in _heads(log, folder) if head.log.generation == log.generation]
    return not ours or any(head.spec == mine for head in ours)


def changed_behind(log: LogSource, folder: FilePath | None) -> int | None:
    """The byte behind which the log differs somewhere from the bytes that its indexes in the folder were built from.

    None if it does not differ, or that is not known. Raises LogError.
    """
    spec = deleted_spec(log.foreign_change_token())
    for path, head in _heads(log, folder):
        if (head.spec, head.log.generation) == (spec, log.generation):
            for index in _loaded(Index(head.spec, head.log, path)):
                fingerprint = fingerprint_of(index.segments)
                if fingerprint is not None:
                    check = _Check(log, fingerprint, index, None)
                    return None if check.run() else check.reached
    return None


def _heads(log: LogSource, folder: FilePath | None) -> list[tuple[FilePath, Head]]:
    """The files of the log's indexes of deleted records, of any generation."""
    files = index_files(osfile.fs, folder, containing=".deleted-")
    ours = [(path, head) for path, head in files if head is not None and head.log.identity == log.identity]
    return [(path, head) for path, head in ours if head.spec.form == "deleted"]


def _is_outrun(folder: FilePath | None, index: Index) -> bool:
    """Whether another index of the same content reaches further. A power failure may take the end of this one's file
    alone; then nothing is known of later blocks without a checksum.
    """
    files = index_files(osfile.fs, folder)
    others = [Index(head.spec, head.log, path) for path, head in files if head is not None and head.log == index.log]
    return any(other.end_offset > index.end_offset for each in others for other in _loaded(each))


def _loaded(index: Index) -> list[Index]:
    """The index, if any of its file can be read."""
    with suppress(IndexDamaged, OSError):
        index.load()
    return [index] if index.segments else []


def fingerprinted(log: LogSource, deletions: Deletions, segment: Segment) -> Segment:
    """A segment of an index of deleted records, with how much of the journal is known, and with its last block.

    A segment that was made of others was made without that block. Raises LogError.
    """
    size = log.block_size
    fingerprint = decode(segment.meta) or Fingerprint(size, Journal(), np.empty(0, ROW))
    with suppress(LogSuperseded):  # the next call to the log raises it again
        fingerprint = fingerprint._replace(journal=deletions.now())
    last = (segment.end_offset - 1) // size
    if not (fingerprint.blocks["number"] == last).any() and log.checksums(last, 1)[0] == UNKNOWN:
        there = min(log.durable_end - last * size, size)
        data = np.empty(size, np.uint8)
        log.read_blocks(last * size, last * size + size, data)
        row = unproven_rows(np.array([last]), np.array([there]), crcs_of(data, there, size, np.zeros(1, np.int64)))
        fingerprint = fingerprint._replace(blocks=np.concatenate([fingerprint.blocks, row]))
    return segment.changed(meta=fingerprint.encode())


def _unwalked(walker: Walker, begin: int, data: Bytes, size: int) -> tuple[Walked, list[int]]:
    nothing = np.empty(0, np.int64)
    return Walked(nothing, nothing, np.empty(0, np.bool_), nothing, []), []


class _Check:
    """Holds the log against the fingerprint in an index of deleted records.

    damaged: a block was found damaged
    reached: the byte of the log up to which all is as it was
    untold:  a record is deleted that is neither in the index nor in the journal of deletions, which may be lost
    """

    def __init__(self, log: LogSource, fingerprint: Fingerprint, index: Index, cancel: threading.Event | None) -> None:
        self._log = log
        self._size = log.block_size
        self._rows = fingerprint.blocks
        self._end = index.end_offset
        self._cancel = cancel
        journal = log.deletions()[1]
        self._deleted_in = set((journal[fingerprint.journal.deletions :] // self._size).tolist())
        self._gone = np.sort(journal)
        self._known = records_in_sets(index.segments)
        self._records = 0  # walked so far
        self.reached = 0
        self.damaged = fingerprint.block_size != self._size
        self.untold = False

    def run(self) -> bool:
        """Whether all blocks are as they were, except for records deleted since. Raises LogError, QueryCancelled."""
        stop = self._log.durable_end
        if self._end > stop or self.damaged:
            return False
        log = self._log
        walk = None if log.framing.is_blocked else _unwalked  # in other programs' logs nothing is deleted
        for piece in scan(self._read, 0, stop, self._size, walk=walk):
            if self._cancel is not None and self._cancel.is_set():
                raise QueryCancelled("the question was cancelled while the log was held against its checksums")
            self._look_for_deleted(piece.begin, piece.walked)
            if not self._is_as_it_was(piece.begin, piece.data):
                return False
            self.reached = piece.stop
        return True

    def _read(self, buffer: memoryview, at: int) -> int:
        return self._log.read_blocks(at, at + len(buffer), buffer)

    def _look_for_deleted(self, begin: int, walked: Walked) -> None:
        deleted = np.flatnonzero(walked.deleted)
        offsets = begin + walked.starts[deleted] - header_size(self._size)
        untold = deleted[(offsets < self._end) & ~are_among(offsets, self._gone)]
        seqs = BitMap((untold + self._records).astype(np.uint32))
        self.untold = self.untold or not seqs <= self._known
        self._records += len(walked.starts)

    def _is_as_it_was(self, begin: int, data: NDArray[np.uint8]) -> bool:
        size, first = self._size, begin // self._size
        numbers = np.arange(-(-len(data) // size))
        crcs = crcs_of(data, len(data), size, numbers)
        sums = self._log.checksums(first, len(numbers))
        proven = sums == crcs
        good = proven | ((sums == UNKNOWN) & ((numbers + first) * size >= self._end))
        rows = self._rows[(self._rows["number"] >= first) & (self._rows["number"] < first + len(numbers))]
        at = rows["number"].astype(np.int64) - first
        lengths = np.minimum(len(data) - at * size, size)
        same = (rows["length"] == lengths) & (rows["crc"] == crcs[at])
        for row in np.flatnonzero(rows["length"] < lengths).tolist():  # the last block, which was not full then
            same[row] = crc32(data[at[row] * size :][: int(rows["length"][row])].data) == rows["crc"][row]
        touched = [bool(proven[number]) and first + number in self._deleted_in for number in at.tolist()]
        good[at] = same | np.array(touched, np.bool_)
        listed = set(at.tolist())
        return all(number not in listed and self._holds(first + number) for number in np.flatnonzero(~good).tolist())

    def _holds(self, block: int) -> bool:
        """Whether a proven block is still proven, or damaged; the next read of a damaged one reports it."""
        data, fault = self._log.second_look(block)
        if fault is not None:
            self.damaged = True
            return True
        return int(self._log.checksums(block, 1)[0]) == crc32(data)
