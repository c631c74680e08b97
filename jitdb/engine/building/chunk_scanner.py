"""Scanning one chunk of a log, in a worker thread: read, verify, walk, locate the fields, and let each builder work.

A worker hands over what it has of a chunk when half a second is over, and the rest of the chunk is another task.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import ABSENT
from jitdb.common.zlib import crc32
from jitdb.engine.building.targets import BuildTarget
from jitdb.errors import LogCorrupt
from jitdb.indexes.building.builders import LocatedBatch, Piece
from jitdb.indexes.kinds.set import ROW, unproven_rows
from jitdb.log.blocks.checksum import UNKNOWN, crcs_of
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.log.codecs.path_locator import locator_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import ScanSource

SLICE_RECORDS: Final = 1 << 16  # records located at a time: bounds the memory of a chunk of tiny records
SUMS: Final = 4096  # checksums that a worker reads at a time, if a chunk has not more blocks
LONGEST: Final = 0.5  # seconds after which a worker hands over what it has of a chunk
_FIRST_SLICE: Final = 16  # records located at first where functions of the user are called: nobody knows how slow
SHORT: Final = 0.05  # seconds: slices that take less are made longer, up to SLICE_RECORDS, others shorter

_NO_SUMS: Final = np.empty(0, np.int64)
_NONE: Final = _NO_SUMS  # of the numbers of records
_NO_ROWS: Final = np.empty(0, ROW)


class ScannedSlice(NamedTuple):
    """What one run of records gave: where each ends in the log, and a piece a target (None: the index has them all).

    left_out: numbers of malformed ones that count as deleted
    last_crc: that of the last one's bytes, 0 where they are not there any more
    """

    ends: NDArray[np.int64]
    pieces: list[Piece | None]
    malformed: int
    left_out: NDArray[np.int64]
    last_crc: int


class ScannedChunk(NamedTuple):
    """What a worker makes of a chunk."""

    slices: list[ScannedSlice]
    faults: list[int]
    corrupt: dict[int, LogCorrupt]  # by the numbers of the blocks that are not what was written
    unproven: NDArray[Any]  # rows of set.ROW: the blocks that no checksum proves
    position: int  # log bytes scanned so far, for the progress
    rest: tuple[int, int] | None  # where the chunk begins, and where the rest of it, which is still to be scanned


class ChunkScanner:
    """Scans chunks of `chunk_bytes` for the targets. Not safe for threads: each has its own, with its buffers.

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
        self._stop = stop
        self._block_size = log.block_size
        self._framing = log.framing
        self._walker = self._framing.walker(log, chunk_bytes, stop)
        self._chunk_bytes = chunk_bytes
        self._fingerprinted = any(target.index.spec.form == "deleted" for target in targets)
        self._is_slow = is_slow
        self._slice = min(_FIRST_SLICE, SLICE_RECORDS) if is_slow else SLICE_RECORDS  # records located at a time
        self._sums, self._sums_begin = _NO_SUMS, 0
        self._locator = locator_of(log.codec, paths)
        self._workers = [target.builder.new_worker() for target in targets]

    def scan(self, begin: int, start: int) -> ScannedChunk:
        """The records from `start` on of the chunk that begins there, or some of them: see `rest`."""
        late = time.monotonic() + LONGEST
        walker, room = self._walker, self._walker.room
        size = walker.read(begin, start)
        sums = self._checksums(begin // self._block_size)
        count, faults, wrong = walker.walk(size, sums)
        corrupt: dict[int, LogCorrupt] = {}
        misfits = room.wrong[:wrong].copy()
        if wrong:
            corrupt = self._look_again(begin, misfits.tolist())
            count, faults, _ = walker.walk(size, _NO_SUMS)  # a second look may have brought other bytes
            self._set_aside(begin, count, corrupt)
        low = int(np.searchsorted(room.starts[:count], start - begin)) if begin < start else 0
        slices: list[ScannedSlice] = []
        while low < count and (not slices or time.monotonic() < late):
            high = min(low + self._slice, count)
            slices.append(self._locate(begin, low, high))
            low = high
        is_rest = low < count or walker.is_cut
        position = int(slices[-1].ends[-1]) if is_rest else begin + size
        rest = (begin, position) if is_rest else None
        unproven = self._unproven(begin, size, sums, misfits, corrupt)
        return ScannedChunk(slices, (room.faults[:faults] + begin).tolist(), corrupt, unproven, position, rest)

    def _unproven(
        self, begin: int, size: int, sums: NDArray[np.int64], misfits: NDArray[np.int64], corrupt: Container[int]
    ) -> NDArray[Any]:
        """The chunk's blocks without a checksum, and those that do not have theirs and are not damaged either."""
        if not self._fingerprinted:
            return _NO_ROWS
        first = begin // self._block_size
        numbers = np.flatnonzero(sums[: -(-size // self._block_size)] == UNKNOWN)
        if len(misfits):  # seldom; and np.union1d imports numpy.ma
            others = [number for number in misfits.tolist() if first + number not in corrupt]
            numbers = np.union1d(numbers, others).astype(np.int64)
        lengths = np.minimum(size - numbers * self._block_size, self._block_size)
        crcs = crcs_of(self._walker.buffer, size, self._block_size, numbers)
        return unproven_rows(numbers + first, lengths, crcs)

    def _checksums(self, block: int) -> NDArray[np.int64]:
        """Those from this block on. Many are read at once: one that changed meanwhile costs a second look."""
        size = self._block_size
        most, left = self._chunk_bytes // size, -(-self._stop // size) - block
        at = block - self._sums_begin
        if not 0 <= at <= len(self._sums) - min(most, left):
            self._sums = self._log.checksums(block, min(max(most, SUMS), left))
            self._sums_begin, at = block, 0
        return self._sums[at:]

    def _look_again(self, begin: int, wrong: list[int]) -> dict[int, LogCorrupt]:
        """Put what a second look at these blocks gives into the buffer; what is wrong with those that still are."""
        corrupt = {}
        for number in wrong:
            block, at = begin // self._block_size + number, number * self._block_size
            data, fault = self._log.second_look(block)
            self._walker.buffer[at : at + len(data)] = np.frombuffer(data, np.uint8)
            if fault is not None:
                corrupt[block] = fault
        return corrupt

    def _set_aside(self, begin: int, count: int, blocks: Iterable[int]) -> None:
        """Take the records of these blocks for deleted ones."""
        room = self._walker.room
        for block in blocks:
            at = block * self._block_size - begin
            low, high = np.searchsorted(room.starts[:count], [at, at + self._block_size]).tolist()
            room.states[low:high] = DELETED

    def _leave_out(self, records: RecordBatch, fields: list[FieldValues], malformed: int) -> NDArray[np.int64]:
        """Take the malformed ones, if there are any (without fields nobody looked), for deleted ones; their numbers."""
        if not malformed and fields:
            return _NONE
        found = self._locator.invalid(records)
        records.states[found] = DELETED
        for values in fields:
            values.kind[found] = ABSENT
        return found

    def _locate(self, begin: int, low: int, high: int) -> ScannedSlice:
        began = time.monotonic()
        buffer, room, framing = self._walker.buffer, self._walker.room, self._framing
        starts, lengths, states = room.starts[low:high], room.lengths[low:high], room.states[low:high]
        records = RecordBatch(buffer, starts, lengths, states, starts + (begin - framing.before))
        fields, malformed = self._locator.fields(records)
        left_out = _NONE if framing.keeps_malformed else self._leave_out(records, fields, malformed)
        last = buffer[int(starts[-1]) : int(starts[-1] + lengths[-1])]
        last_crc = crc32(last.data) if states[-1] != DELETED else 0
        ends = self._walker.ends(low, high) + begin
        batch = LocatedBatch(records, fields, self._locator)
        pieces = [
            None if target.begin_offset >= ends[-1] else target.builder.work(worker, batch)
            for target, worker in zip(self._targets, self._workers, strict=True)
        ]
        if self._is_slow:
            is_short = time.monotonic() - began < SHORT
            self._slice = min(2 * self._slice, SLICE_RECORDS) if is_short else max(self._slice // 2, 1)
        return ScannedSlice(ends, pieces, malformed, left_out, last_crc)
