"""Scanning one chunk of a log, in a worker thread: read, verify, walk, locate the fields, and let each builder work.

A worker hands over what it has of a chunk when half a second is over, and the rest of the chunk is another task.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Sequence
from threading import local
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np

from jitdb.common.paths import Path
from jitdb.engine.building.target import BuildTarget
from jitdb.errors import LogCorrupt
from jitdb.indexes.building.builders import LocatedBatch, Piece
from jitdb.indexes.kinds.set import ROW, unproven_rows
from jitdb.log.blocks.crc import Counts, Room, crcs_of, walk_verified
from jitdb.log.blocks.crc_arithmetic import UNKNOWN
from jitdb.log.blocks.layout import header_size
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import RecordBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import Locator
    from jitdb.log.source import ScanSource

SLICE_RECORDS: Final = 1 << 16  # records located at a time: bounds the memory of a chunk of tiny records
SUMS: Final = 4096  # checksums that a worker reads at a time, if a chunk has not more blocks
_LONGEST: Final = 0.5  # seconds after which a worker hands over what it has of a chunk
_FIRST_SLICE: Final = 16  # records located at first where functions of the user are called: nobody knows how slow
_SHORT: Final = 0.05  # seconds: slices that take less are made longer, up to SLICE_RECORDS, others shorter

_NO_SUMS: Final = np.empty(0, np.int64)
_NO_ROWS: Final = np.empty(0, ROW)


class ScannedSlice(NamedTuple):
    """What one run of records gave: where each ends in the log, and a piece a target (None: the index has them all).

    `last_crc` is that of the last one's bytes, 0 where they are not there any more.
    """

    ends: NDArray[np.int64]
    pieces: list[Piece | None]
    malformed: int
    last_crc: int


class ScannedChunk(NamedTuple):
    """What a worker makes of a chunk."""

    slices: list[ScannedSlice]
    faults: list[int]
    corrupt: dict[int, LogCorrupt]  # by the numbers of the blocks that are not what was written
    unproven: NDArray[Any]  # rows of fingerprint.ROW: the blocks that no checksum proves
    position: int  # log bytes scanned so far, for the progress
    rest: tuple[int, int] | None  # where the chunk begins, and where the rest of it, which is still to be scanned


class _Worker:
    """What a thread reuses from chunk to chunk."""

    def __init__(
        self,
        chunk_bytes: int,
        header: int,
        block_size: int,
        locator: Locator,
        targets: Sequence[BuildTarget],
        first_slice: int,
    ) -> None:
        room = chunk_bytes // (header + 1) + 1
        blocks = chunk_bytes // block_size + 1
        self.buffer = np.empty(chunk_bytes, np.uint8)
        self.room = Room(
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.uint8),
            np.empty(blocks, np.int64),
            np.empty(blocks, np.int64),
        )
        self.sums, self.sums_begin = _NO_SUMS, 0
        self.slice = first_slice  # records located at a time
        self.locator = locator
        self.builders = [target.builder.new_worker() for target in targets]


class ChunkScanner:
    """Scans chunks of `chunk_bytes` for the targets, in any number of threads.

    is_slow: functions of the user are called
    """

    def __init__(
        self,
        log: ScanSource,
        targets: Sequence[BuildTarget],
        paths: Sequence[Path],
        stop: int,
        chunk_bytes: int,
        is_slow: bool,
    ) -> None:
        self._log = log
        self._targets = targets
        self._paths = paths
        self._stop = stop
        self._chunk_bytes = chunk_bytes
        self._is_slow = is_slow
        self._header = header_size(log.block_size)
        self._fingerprinted = any(target.index.spec.form == "deleted" for target in targets)
        self._local = local()

    def scan(self, begin: int, start: int) -> ScannedChunk:
        """The records from `start` on of the chunk that begins there, or some of them: see `rest`."""
        late = time.monotonic() + _LONGEST
        worker = self._worker()
        size = min(self._log.read_blocks(begin, begin + self._chunk_bytes, worker.buffer), self._stop - begin)
        sums = self._sums(worker, begin // self._log.block_size)
        count, faults, wrong = self._walk(worker, size, sums)
        corrupt: dict[int, LogCorrupt] = {}
        misfits = worker.room.wrong[:wrong].copy()
        if wrong:
            corrupt = self._look_again(worker, begin, misfits.tolist())
            count, faults, _ = self._walk(worker, size, _NO_SUMS)  # a second look may have brought other bytes
            self._set_aside(worker, begin, count, corrupt)
        low = int(np.searchsorted(worker.room.starts[:count], start - begin)) if begin < start else 0
        slices: list[ScannedSlice] = []
        while low < count and (not slices or time.monotonic() < late):
            high = min(low + worker.slice, count)
            slices.append(self._slice(worker, begin, low, high))
            low = high
        position = int(slices[-1].ends[-1]) if low < count else begin + size
        rest = (begin, position) if low < count else None
        unproven = self._unproven(worker, begin, size, sums, misfits, corrupt)
        return ScannedChunk(slices, (worker.room.faults[:faults] + begin).tolist(), corrupt, unproven, position, rest)

    def _unproven(
        self,
        worker: _Worker,
        begin: int,
        size: int,
        sums: NDArray[np.int64],
        misfits: NDArray[np.int64],
        corrupt: Container[int],
    ) -> NDArray[Any]:
        """The chunk's blocks without a checksum, and those that do not have theirs and are not damaged either."""
        if not self._fingerprinted:
            return _NO_ROWS
        block_size = self._log.block_size
        first = begin // block_size
        numbers = np.flatnonzero(sums[: -(-size // block_size)] == UNKNOWN)
        if len(misfits):  # seldom; and np.union1d imports numpy.ma
            others = [number for number in misfits.tolist() if first + number not in corrupt]
            numbers = np.union1d(numbers, others).astype(np.int64)
        lengths = np.minimum(size - numbers * block_size, block_size)
        crcs = crcs_of(worker.buffer, size, block_size, numbers)
        return unproven_rows(numbers + first, lengths, crcs)

    def _sums(self, worker: _Worker, block: int) -> NDArray[np.int64]:
        """The checksums from this block on. Many are read at once: one that changed meanwhile costs a second look."""
        size = self._log.block_size
        most, left = self._chunk_bytes // size, -(-self._stop // size) - block
        at = block - worker.sums_begin
        if not 0 <= at <= len(worker.sums) - min(most, left):
            worker.sums = self._log.checksums(block, min(max(most, SUMS), left))
            worker.sums_begin, at = block, 0
        return worker.sums[at:]

    def _walk(self, worker: _Worker, size: int, sums: NDArray[np.int64]) -> Counts:
        return walk_verified(worker.buffer, size, self._log.block_size, self._header, sums, worker.room)

    def _look_again(self, worker: _Worker, begin: int, wrong: list[int]) -> dict[int, LogCorrupt]:
        """Put what a second look at these blocks gives into the buffer; what is wrong with those that still are."""
        corrupt = {}
        for number in wrong:
            block = begin // self._log.block_size + number
            data, fault = self._log.second_look(block)
            at = number * self._log.block_size
            worker.buffer[at : at + len(data)] = np.frombuffer(data, np.uint8)
            if fault is not None:
                corrupt[block] = fault
        return corrupt

    def _set_aside(self, worker: _Worker, begin: int, count: int, blocks: Iterable[int]) -> None:
        """Take the records of these blocks for deleted ones."""
        starts, size = worker.room.starts[:count], self._log.block_size
        for block in blocks:
            at = block * size - begin
            low, high = np.searchsorted(starts, [at, at + size]).tolist()
            worker.room.states[low:high] = DELETED

    def _worker(self) -> _Worker:
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            first_slice = SLICE_RECORDS if not self._is_slow else min(_FIRST_SLICE, SLICE_RECORDS)
            locator = self._log.codec.locator(self._paths)
            worker = _Worker(self._chunk_bytes, self._header, self._log.block_size, locator, self._targets, first_slice)
            self._local.worker = worker
        return worker

    def _slice(self, worker: _Worker, begin: int, low: int, high: int) -> ScannedSlice:
        began = time.monotonic()
        room = worker.room
        starts, lengths, states = room.starts[low:high], room.lengths[low:high], room.states[low:high]
        last = worker.buffer[int(starts[-1]) : int(starts[-1] + lengths[-1])]
        last_crc = crc32(last.data) if states[-1] != DELETED else 0
        records = RecordBatch(worker.buffer, starts, lengths, states, starts + (begin - self._header))
        fields, malformed = worker.locator.fields(records)
        ends = starts + lengths + begin
        batch = LocatedBatch(records, fields, worker.locator)
        pieces = [
            None if target.begin_offset >= ends[-1] else target.builder.work(kept, batch)
            for target, kept in zip(self._targets, worker.builders, strict=True)
        ]
        if self._is_slow:
            is_short = time.monotonic() - began < _SHORT
            worker.slice = min(2 * worker.slice, SLICE_RECORDS) if is_short else max(worker.slice // 2, 1)
        return ScannedSlice(ends, pieces, malformed, last_crc)
