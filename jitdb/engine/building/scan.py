"""One pass over the log that brings any number of indexes up to date.

Chunks of some MiB go to worker threads: read, walk, locate all wanted fields, and let each builder work on them while
they are in the cache; the kernels run without the GIL. The scanning thread takes the results in order, feeds the
builders and appends a segment to each index at every span and at the end, so memory stays bounded. A scan that takes
long, often because it calls slow functions of the user, saves what it has about every second or 64 MB, in segments that
those of the spans take the place of: one that is interrupted or killed keeps that. A worker hands over what it has of a
chunk when half a second is over, and the rest of the chunk is another task.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event, local
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import numpy as np

from jitdb.common.paths import Path
from jitdb.errors import IndexDamaged, LogCorrupt, QueryCancelled
from jitdb.indexes.building.builders import Builder, Piece
from jitdb.indexes.building.chunk import Chunk
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import SPAN, Segment
from jitdb.indexes.witness import ROW, unproven_rows
from jitdb.log.blocks.crc import UNKNOWN, Counts, Room, crcs_of, walk_verified
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import RecordBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.locator import Locator
    from jitdb.log.source import ScanSource

CHUNK_BYTES: Final = 4 << 20  # read at a time by one worker: some thousand records, still in the last cache
SLICE_RECORDS: Final = 1 << 16  # records located at a time: bounds the memory of a chunk of tiny records
SUMS: Final = 4096  # checksums that a worker reads at a time, if a chunk has not more blocks
MAX_THREADS: Final = 8  # beyond, the scanning thread is the limit
SAVED_EVERY: Final = 1.0  # seconds of a scan that an end by force may cost, about: to save takes a tenth of one
_LONGEST: Final = 0.5  # seconds after which a worker hands over what it has of a chunk
_FIRST_SLICE: Final = 16  # records located at first where functions of the user are called: nobody knows how slow
_SHORT: Final = 0.05  # seconds: slices that take less are made longer, up to SLICE_RECORDS, others shorter
_PATIENCE: Final = 0.05  # seconds between looks whether the scan was cancelled, while a worker is slow

_NO_SUMS: Final = np.empty(0, np.int64)
_NO_ROWS: Final = np.empty(0, ROW)


class Target:
    """An index to bring up to date, and who builds it. `emit` takes each finished segment.

    What it was fed lies in one list, so that it adds up wherever an exception (a Ctrl-C) leaves it.
    """

    def __init__(self, index: Index, builder: Builder, emit: Callable[..., None]) -> None:
        self.index = index
        self.builder = builder
        self.begin_seq, self.begin_offset = index.end_seq, index.end_offset
        self._emit = emit
        self._from = (self.begin_seq, self.begin_offset)  # what is emitted ends here
        self._fed: list[tuple[int, Piece, int]] = []  # first seq, piece, where its last record ends
        self._early = 0  # so many of them are in segments that were emitted early

    @property
    def next_seq(self) -> int:
        """The first record it was not fed yet."""
        if not self._fed:
            return self._from[0]
        seq, piece, _ = self._fed[-1]
        return seq + piece.count

    def feed(self, piece: Piece, seq: int, ends: NDArray[np.int64]) -> None:
        """Take the records of a slice that the index lacks; `seq` is that of the slice's first. Emits full spans."""
        at = self.next_seq - seq
        if self.next_seq == self.begin_seq:
            self._check_place(at, ends)
        while at < piece.count:
            first = seq + at
            stop = min(piece.count, at + SPAN - first % SPAN)
            self._fed.append((first, piece.cut(at, stop), int(ends[stop - 1])))
            at = stop
            if (seq + at) % SPAN == 0:
                self.take(self.make(last=False))

    @property
    def is_fed(self) -> bool:
        """Whether there is anything to make a segment of."""
        return bool(self._fed)

    def make(self, last: bool) -> Segment:
        """The segment of all it was fed since the last one was taken. Changes nothing."""
        return self._made(0, last)

    def make_rest(self) -> Segment | None:
        """The segment of what is not in one yet, not even in one that was emitted early. Changes nothing."""
        return self._made(self._early, False) if self._early < len(self._fed) else None

    def take(self, segment: Segment) -> None:
        """Hand on the segment that was made."""
        self._from = (segment.end_seq, segment.end_offset)
        self._fed, self._early = [], 0
        self._emit(segment)

    def save(self) -> None:
        """Emit what is in no segment yet, until the one of the whole span takes its place."""
        segment = self.make_rest()
        if segment is not None:
            self._emit(segment, True)
            self._early = len(self._fed)  # after it: emitted twice, it takes its own place

    def _made(self, begin: int, last: bool) -> Segment:
        first_seq, first_offset = self._from
        if begin:
            first_seq, first_offset = self._fed[begin][0], self._fed[begin - 1][2]
        run = (first_seq, self.next_seq - first_seq, first_offset, self._fed[-1][2])
        return self.builder.make([(seq, piece) for seq, piece, _ in self._fed[begin:]], run, last)

    def _check_place(self, at: int, ends: NDArray[np.int64]) -> None:
        """Whether the index's record number `at` of a slice begins where the index ends."""
        if 0 <= at < len(ends) and ends[at] > self.begin_offset and (at == 0 or ends[at - 1] == self.begin_offset):
            return
        raise IndexDamaged(
            f"{self.begin_seq} records are indexed up to byte {self.begin_offset}, where the log has another number of "
            f"them now: a block was damaged or repaired since",
            path=self.index.name,
        )


class Slice(NamedTuple):
    """What one run of records gave: where each ends in the log, and a piece a target (None: the index has them all).

    `last_crc` is that of the last one's bytes, 0 where they are not there any more.
    """

    ends: NDArray[np.int64]
    pieces: list[Piece | None]
    malformed: int
    last_crc: int


class _Chunk(NamedTuple):
    """What a worker makes of a chunk."""

    slices: list[Slice]
    faults: list[int]
    corrupt: dict[int, LogCorrupt]  # by the numbers of the blocks that are not what was written
    unproven: NDArray[Any]  # rows of witness.ROW: the blocks that no checksum proves
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
        targets: Sequence[Target],
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


class Scan:
    """A pass from the least advanced target to the log's durable end.

    Every block that has a checksum is verified. The records of one that is not what was written count as deleted.

    After `run`: `malformed` records have no fields, or not all; `faults` are the log positions of damaged headers, the
    rest of whose blocks was passed over; `corrupt` tells of the blocks with a wrong checksum, by their numbers.
    """

    def __init__(
        self,
        log: ScanSource,
        targets: Sequence[Target],
        paths: Sequence[Path],
        *,
        threads: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
        damaged: Callable[[Sequence[int]], object] = lambda blocks: None,
        passed: Callable[[int, int], object] = lambda end, crc: None,
        calls: Event | None = None,
        saves: bool = False,
        start_worker: Callable[[], object] = lambda: None,
    ) -> None:
        """`damaged` is told the numbers of damaged blocks before any index is written that leaves their records out.

        passed:       is told now and then of a record that was scanned: where it ends, and its CRC-32 (0: it is gone)
        calls:        given where functions of the user are called; once it is set, they are called no more
        saves:        whether `emit` of the targets takes early segments
        start_worker: is called by each worker thread first
        """
        self.start = min(target.begin_offset for target in targets)
        self.stop = log.durable_end
        self.malformed = 0
        self.faults: list[int] = []
        self.corrupt: dict[int, LogCorrupt] = {}
        self._damaged = damaged
        self._passed = passed
        self._seq = min(target.begin_seq for target in targets)
        self._log = log
        self._targets = targets
        self._paths = paths
        self._threads = threads or min(os.cpu_count() or 1, MAX_THREADS)
        self._cancelled = cancelled
        self._calls = calls
        self._saves = saves
        self._start_worker = start_worker
        self._header = 2 if log.block_size <= 1 << 16 else 4
        self._witnessed = any(target.index.spec.form == "deleted" for target in targets)
        self._chunk_bytes = max(CHUNK_BYTES // log.block_size, 1) * log.block_size
        self._local = local()

    def run(self, progress: Callable[[int], None] = lambda position: None) -> None:
        """Scan; `progress` gets the log position reached.

        Raises QueryCancelled, IndexDamaged when an index does not fit the log or cannot be merged, and what the log and
        the user's functions raise. What was scanned by then is kept.
        """
        first = self.start - self.start % self._log.block_size
        begins = deque(range(first, self.stop, self._chunk_bytes))
        complete = False
        saved = time.monotonic()
        with ThreadPoolExecutor(self._threads, "jitdb-scan", self._start_worker) as pool:
            waiting: deque[Future[_Chunk]] = deque()
            try:
                while begins or waiting:
                    while begins and len(waiting) < 2 * self._threads:
                        waiting.append(pool.submit(self._chunk, begins.popleft(), self.start))
                    self._await(waiting[0])
                    chunk = waiting.popleft().result()
                    if chunk.rest is not None:
                        waiting.appendleft(pool.submit(self._chunk, *chunk.rest))
                    self._absorb(chunk)
                    progress(chunk.position)
                    self._look_up()
                    if self._saves and time.monotonic() - saved > SAVED_EVERY:
                        for target in self._targets:
                            target.save()
                        saved = time.monotonic()
                complete = True
            finally:
                if self._calls is not None:
                    self._calls.set()
                for future in waiting:
                    future.cancel()
                self._finish(pool, complete)

    def _await(self, future: Future[_Chunk]) -> None:
        while not future.done():
            wait([future], _PATIENCE)
            self._look_up()

    def _look_up(self) -> None:
        """See whether somebody still wants this. Raises QueryCancelled."""
        if self._cancelled():
            raise QueryCancelled("the scan was cancelled; what it had indexed is kept")

    def hidden(self, listed: Container[int]) -> list[int]:
        """Where corrupt blocks begin that are not listed: those behind the last record that was found."""
        return [block * self._log.block_size for block in self.corrupt if block not in listed]

    def _finish(self, pool: ThreadPoolExecutor, complete: bool) -> None:
        """The last segments, made side by side."""
        make: Callable[[Target], Segment | None] = (lambda target: target.make(True)) if complete else Target.make_rest
        made = [(target, pool.submit(make, target)) for target in self._targets if target.is_fed]
        for target, future in made:
            segment = future.result()
            if segment is not None:
                target.take(segment)
        if complete:
            for target in self._targets:
                target.index.reach(self.stop)

    # --- in worker threads -----------------------------------------------------------------------------------------

    def _chunk(self, begin: int, start: int) -> _Chunk:
        """The records from `start` on of the chunk that begins there, or some of them: see `rest`."""
        late = time.monotonic() + _LONGEST
        worker = self._worker()
        size = min(self._log.read_blocks(begin, begin + self._chunk_bytes, worker.buffer), self.stop - begin)
        sums = self._sums(worker, begin // self._log.block_size)
        count, faults, wrong = self._walk(worker, size, sums)
        corrupt: dict[int, LogCorrupt] = {}
        misfits = worker.room.wrong[:wrong].copy()
        if wrong:
            corrupt = self._look_again(worker, begin, misfits.tolist())
            count, faults, _ = self._walk(worker, size, _NO_SUMS)  # a second look may have brought other bytes
            self._set_aside(worker, begin, count, corrupt)
        low = int(np.searchsorted(worker.room.starts[:count], start - begin)) if begin < start else 0
        slices: list[Slice] = []
        while low < count and (not slices or time.monotonic() < late):
            high = min(low + worker.slice, count)
            slices.append(self._slice(worker, begin, low, high))
            low = high
        position = int(slices[-1].ends[-1]) if low < count else begin + size
        rest = (begin, position) if low < count else None
        unproven = self._unproven(worker, begin, size, sums, misfits, corrupt)
        return _Chunk(slices, (worker.room.faults[:faults] + begin).tolist(), corrupt, unproven, position, rest)

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
        if not self._witnessed:
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
        most, left = self._chunk_bytes // size, -(-self.stop // size) - block
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
            first_slice = SLICE_RECORDS if self._calls is None else min(_FIRST_SLICE, SLICE_RECORDS)
            locator = self._log.codec.locator(self._paths)
            worker = _Worker(self._chunk_bytes, self._header, self._log.block_size, locator, self._targets, first_slice)
            self._local.worker = worker
        return worker

    def _slice(self, worker: _Worker, begin: int, low: int, high: int) -> Slice:
        began = time.monotonic()
        room = worker.room
        starts, lengths, states = room.starts[low:high], room.lengths[low:high], room.states[low:high]
        last = worker.buffer[int(starts[-1]) : int(starts[-1] + lengths[-1])]
        last_crc = crc32(last.data) if states[-1] != DELETED else 0
        offsets = starts + (begin - self._header)
        records = RecordBatch(worker.buffer, starts, lengths, states, offsets)
        fields, malformed = worker.locator.fields(records)
        ends = starts + lengths + begin
        chunk = Chunk(records, offsets, fields)
        pieces = [
            None if target.begin_offset >= ends[-1] else target.builder.work(kept, chunk)
            for target, kept in zip(self._targets, worker.builders, strict=True)
        ]
        if self._calls is not None:
            is_short = time.monotonic() - began < _SHORT
            worker.slice = min(2 * worker.slice, SLICE_RECORDS) if is_short else max(worker.slice // 2, 1)
        return Slice(ends, pieces, malformed, last_crc)

    # --- in the scanning thread ------------------------------------------------------------------------------------

    def _absorb(self, chunk: _Chunk) -> None:
        broken = {*chunk.corrupt, *(offset // self._log.block_size for offset in chunk.faults)}
        if broken:
            self._damaged(sorted(broken))
            for target in self._targets:
                target.builder.damaged(broken, self._log.block_size)
        for target in self._targets:
            target.builder.unproven(chunk.unproven, self._log.block_size)
        for part in chunk.slices:
            self._passed(int(part.ends[-1]), part.last_crc)
            for target, piece in zip(self._targets, part.pieces, strict=True):
                if piece is not None:
                    target.feed(piece, self._seq, part.ends)
            self._seq += len(part.ends)
            self.malformed += part.malformed
        self.corrupt.update(chunk.corrupt)
        self.faults += [offset for offset in chunk.faults if offset // self._log.block_size not in chunk.corrupt]
