"""One pass over the log that brings any number of indexes up to date.

Chunks of some MiB go to worker threads: read, verify, walk, locate all wanted fields, and let each builder work on them
while they are in the cache; the kernels run without the GIL. The scanning thread takes the results in order, feeds the
builders (targets.py) and appends a segment to each index at every span and at the end, so memory stays bounded.

Functions of the user may be slow. So a worker hands over what it has of a chunk after half a second, and the rest of
the chunk is another task. A long scan saves what it has about every second, in segments whose place those of whole
spans take, so a scan that is interrupted or killed keeps that.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial, reduce
from threading import Event, local
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common import memory
from jitdb.common.paths import Path
from jitdb.common.values import ABSENT
from jitdb.common.zlib import crc32
from jitdb.engine.building.filtering import LOOK, PASS, Filtered, Part, searches_of
from jitdb.engine.building.targets import BuildTarget
from jitdb.engine.building.workers import Task, Workers
from jitdb.errors import IndexDamaged, LogCorrupt, QueryCancelled
from jitdb.indexes.kinds.builder import LocatedBatch, Piece
from jitdb.indexes.kinds.casting import locator_of
from jitdb.indexes.kinds.set import ROW, unproven_rows
from jitdb.indexes.segment import Segment
from jitdb.log.blocks.checksum import UNKNOWN, crcs_of
from jitdb.log.codecs.fields.constants import DELETED
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import ScanSource

CHUNK_BYTES: Final = 4 << 20  # read at a time by one worker: some thousand records, still in the last cache
SLICE_RECORDS: Final = 1 << 16  # records located at a time: bounds the memory of a chunk of tiny records
_TOGETHER: Final = 8  # pages that are read and searched at a time: more do not stay in the processor's caches
PARTS: Final = 64  # pages, and what lies between them, that a worker takes at a time
_SAMPLED: Final = 64  # pages that are looked into before it is decided whether all are
# What it takes to look into a page, and to scan one alone, in pages that are scanned in large pieces. Measured.
_LOOK_AT_PAGE, _SCAN_PAGE = 0.5, 8
SUMS: Final = 4096  # checksums that a worker reads at a time, if a chunk has not more blocks
LISTED: Final = 1000  # malformed records that are named
MAX_THREADS: Final = 8  # beyond, the scanning thread is the limit
SAVED_EVERY: Final = 1.0  # seconds of a scan that an end by force may cost, about: to save takes a tenth of one
LONGEST: Final = 0.5  # seconds after which a worker hands over what it has of a chunk
SHORT: Final = 0.05  # seconds: slices that take less are made longer, up to SLICE_RECORDS, others shorter
_FIRST_SLICE: Final = 16  # records located at first where functions of the user are called: nobody knows how slow
_PATIENCE: Final = 0.05  # seconds between looks whether the scan was cancelled, while a worker is slow

_NO_SUMS: Final = np.empty(0, np.int64)
_NO_SEQS: Final = np.empty(0, np.int64)
_NO_ROWS: Final = np.empty(0, ROW)


class ScannedSlice(NamedTuple):
    """What one run of records gave: where each ends in the log, and a piece a target (None: the index has them all).

    left_out: the numbers of malformed records that count as deleted
    last_crc: of the last record's bytes; 0 if it is deleted, -1 where that is not known
    """

    ends: NDArray[np.int64]
    pieces: list[Piece | None]
    malformed: int
    left_out: NDArray[np.int64]
    last_crc: int


class ScannedChunk(NamedTuple):
    """What a worker found in a chunk."""

    slices: list[ScannedSlice]
    faults: list[int]
    corrupt: dict[int, LogCorrupt]  # by the number of the damaged block
    unproven: NDArray[Any]  # rows of set.ROW: the blocks that no checksum proves
    position: int  # log bytes scanned so far, for the progress
    rest: tuple[int, int] | None  # where the chunk begins, and where its unscanned rest does

    def followed_by(self, other: ScannedChunk) -> ScannedChunk:
        """Both together; of what is said of whole chunks, the other's."""
        return other._replace(
            slices=[*self.slices, *other.slices],
            faults=[*self.faults, *other.faults],
            corrupt={**self.corrupt, **other.corrupt},
        )


NO_CHUNK: Final = ScannedChunk([], [], {}, _NO_ROWS, 0, None)


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
        *,
        is_slow: bool,
        until: int = sys.maxsize,
    ) -> None:
        self._log = log
        self._targets = targets
        self._stop = stop
        self._block_size = log.block_size
        self._framing = log.framing
        self._walker = self._framing.walker(log, chunk_bytes, stop)
        self._chunk_bytes = chunk_bytes
        self._fingerprinted = any(target.index.spec.form == "deleted" for target in targets)
        # Which records are malformed is known, then, and taken out of every answer; to find it out again takes long.
        self._is_of_texts = not paths and all(target.index.spec.form == "text" for target in targets)
        self._is_slow = is_slow
        self._until = until
        self._slice = min(_FIRST_SLICE, SLICE_RECORDS) if is_slow else SLICE_RECORDS  # records located at a time
        self._sums, self._sums_begin = _NO_SUMS, 0
        self._locator = locator_of(log.codec, paths)
        self._workers = [target.builder.new_worker() for target in targets]
        asked = [searches_of(target.index.spec, log.codec) for target in targets if target.index.spec.form == "text"]
        self._searches = [searches[0] for searches in asked if searches]

    def scan(self, begin: int, start: int) -> ScannedChunk:
        """The records from `start` on of the chunk at `begin`, or some of them: see `rest`."""
        late = time.monotonic() + LONGEST
        walker, room = self._walker, self._walker.room
        size = walker.read(begin, start)
        sums = self._checksums(begin // self._block_size)
        count, faults, wrong = walker.walk(size, sums)
        corrupt: dict[int, LogCorrupt] = {}
        misfits = room.wrong[:wrong].copy()
        if wrong:
            corrupt = self._look_again(begin, misfits.tolist())
            count, faults, _ = walker.walk(size, _NO_SUMS)  # the second look may have read other bytes
            self._set_aside(begin, count, corrupt)
        is_cut = walker.is_cut
        if self._until < begin + size:
            is_cut, count = False, int(np.searchsorted(room.starts[:count], self._until - begin))
        low = int(np.searchsorted(room.starts[:count], start - begin)) if begin < start else 0
        slices: list[ScannedSlice] = []
        while low < count and (not slices or time.monotonic() < late):
            high = min(low + self._slice, count)
            slices.append(self._locate(begin, low, high))
            low = high
        is_rest = low < count or is_cut
        position = int(slices[-1].ends[-1]) if is_rest else begin + size
        rest = (begin, position) if is_rest else None
        unproven = self._unproven(begin, size, sums, misfits, corrupt)
        return ScannedChunk(slices, (room.faults[:faults] + begin).tolist(), corrupt, unproven, position, rest)

    def _unproven(
        self, begin: int, size: int, sums: NDArray[np.int64], misfits: NDArray[np.int64], corrupt: Container[int]
    ) -> NDArray[Any]:
        """The chunk's blocks without a checksum, and those that do not match it but are not damaged."""
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
        """The checksums from this block on. Many are read at once: if one changes meanwhile, there is a second look."""
        size = self._block_size
        most, left = self._chunk_bytes // size, -(-self._stop // size) - block
        at = block - self._sums_begin
        if not 0 <= at <= len(self._sums) - min(most, left):
            self._sums = self._log.checksums(block, min(max(most, SUMS), left))
            self._sums_begin, at = block, 0
        return self._sums[at:]

    def _look_again(self, begin: int, wrong: list[int]) -> dict[int, LogCorrupt]:
        """Read these blocks again, into the buffer. Gives what is wrong with those that are still damaged."""
        corrupt = {}
        for number in wrong:
            block, at = begin // self._block_size + number, number * self._block_size
            data, fault = self._log.second_look(block)
            self._walker.buffer[at : at + len(data)] = np.frombuffer(data, np.uint8)
            if fault is not None:
                corrupt[block] = fault
        return corrupt

    def _set_aside(self, begin: int, count: int, blocks: Iterable[int]) -> None:
        """Count the records of these blocks as deleted."""
        room = self._walker.room
        for block in blocks:
            at = block * self._block_size - begin
            low, high = np.searchsorted(room.starts[:count], [at, at + self._block_size]).tolist()
            room.states[low:high] = DELETED

    def _leave_out(self, records: RecordBatch, fields: list[FieldValues], malformed: int) -> NDArray[np.int64]:
        """Count malformed records as deleted, and give their numbers. Without fields, look for them now."""
        if not malformed and fields:
            return _NO_SEQS
        found = self._locator.invalid(records)
        records.states[found] = DELETED
        for values in fields:
            values.kind[found] = ABSENT
        return found

    def _locate(self, begin: int, low: int, high: int) -> ScannedSlice:
        began = time.monotonic()
        buffer, room, framing = self._walker.buffer, self._walker.room, self._framing
        starts, lengths = room.starts[low:high], room.lengths[low:high]
        records = self._walker.batch(low, high, begin - framing.before)
        fields, malformed = self._locator.fields(records)
        is_known = framing.keeps_malformed or self._is_of_texts
        left_out = _NO_SEQS if is_known else self._leave_out(records, fields, malformed)
        last = buffer[int(starts[-1]) : int(starts[-1] + lengths[-1])]
        last_crc = crc32(last.data) if records.states[-1] != DELETED else 0
        ends = self._walker.ends(low, high) + begin
        batch = LocatedBatch(records, fields, self._locator, self._log.codec)
        pieces = [
            None if target.begin_offset >= ends[-1] else target.builder.work(worker, batch)
            for target, worker in zip(self._targets, self._workers, strict=True)
        ]
        if self._is_slow:
            is_short = time.monotonic() - began < SHORT
            self._slice = min(2 * self._slice, SLICE_RECORDS) if is_short else max(self._slice // 2, 1)
        return ScannedSlice(ends, pieces, malformed, left_out, last_crc)

    def cut(self, chunk: ScannedChunk, count: int) -> ScannedChunk:
        """The first records of a chunk."""
        slices: list[ScannedSlice] = []
        for each in chunk.slices:
            some = min(count, len(each.ends))
            count -= some
            if some == len(each.ends):
                slices.append(each)
            elif some:
                ends, left_out = each.ends[:some], each.left_out[each.left_out < some]
                pieces = [
                    None if piece is None or target.begin_offset >= ends[-1] else piece.cut(0, some)
                    for piece, target in zip(each.pieces, self._targets, strict=True)
                ]
                slices.append(ScannedSlice(ends, pieces, each.malformed, left_out, -1))
        return chunk._replace(slices=slices)

    def hold_none(self, parts: Sequence[Part]) -> set[Part]:
        """The pages in whose bytes no text of the targets stands, so that no record can hold one."""
        found: set[Part] = set()
        for at in range(0, len(parts), _TOGETHER):
            some = parts[at : at + _TOGETHER]
            pages = self._walker.read_many([part.page for part in some])
            if pages is None:
                break
            is_whole = pages.lengths >= 0
            pages.lengths[~is_whole] = 0
            may_hold = reduce(np.logical_or, (search.may_be_in(pages) for search in self._searches), ~is_whole)
            found.update(part for part, may in zip(some, may_hold.tolist(), strict=True) if not may)
        return found

    def passed(self, part: Part) -> ScannedChunk:
        """Records that hold no text of the targets, without reading them."""
        count = part.end_seq - part.seq
        ends = np.broadcast_to(np.int64(part.behind), count)  # about: no index ends among them
        nothing = Piece(count, (), np.empty(0, np.int32))
        pieces = [None if target.begin_offset >= part.behind else nothing for target in self._targets]
        return ScannedChunk([ScannedSlice(ends, pieces, 0, _NO_SEQS, -1)], [], {}, _NO_ROWS, part.behind, None)


class Scan:
    """A pass from the least advanced target to the log's durable end.

    Every block that has a checksum is verified. The records of damaged blocks count as deleted.

    After `run`: `malformed` records lack fields that could not be read; `faults` are the log positions of damaged
    headers, behind which the rest of the block was skipped; `corrupt` has the blocks with a wrong checksum, by number;
    `left_out` are the first LISTED of `left_out_count` seqs of malformed records that count as deleted, and that no
    index had before.
    """

    def __init__(
        self,
        log: ScanSource,
        targets: Sequence[BuildTarget],
        paths: Sequence[Path],
        *,
        threads: int = 0,
        cancel: Event | None = None,
        damaged: Callable[[Sequence[int]], object] = lambda blocks: None,
        passed: Callable[[int, int], object] = lambda end, crc: None,
        calls: Event | None = None,
        saves: bool = False,
        start_worker: Callable[[], object] = lambda: None,
        filtered: Filtered | None = None,
        until: int = sys.maxsize,
    ) -> None:
        """damaged:  called with the numbers of damaged blocks before an index is written that lacks their records
        passed:       called now and then with the end of a scanned record, and its CRC-32 (0: it is deleted)
        calls:        given if functions of the user are called; they are not called any more once it is set
        saves:        whether `emit` of the targets takes early segments
        start_worker: called first by each worker thread
        filtered:     what need not be read
        until:        records that begin at this byte of the log or behind it are another scan's: only the checksum of
                      the block in which they begin counts here
        """
        self.start = min(target.begin_offset for target in targets)
        self.stop = log.durable_end
        self.malformed = 0
        self.left_out: list[int] = []
        self.left_out_count = 0
        self.faults: list[int] = []
        self.corrupt: dict[int, LogCorrupt] = {}
        self._damaged = damaged
        self._passed = passed
        self._seq = min(target.begin_seq for target in targets)
        self._tells_from = min((t.begin_seq for t in targets if t.index.spec.form == "deleted"), default=sys.maxsize)
        self._log = log
        self._targets = targets
        self._threads = threads or min(os.cpu_count() or 1, MAX_THREADS)
        self._cancel = cancel
        self._calls = calls
        self._start_worker = start_worker
        size = log.block_size
        self._new_scanner = partial(
            ChunkScanner, log, targets, paths, self.stop, is_slow=calls is not None, until=until
        )
        self._filtered = filtered if filtered is not None and self._is_worth(filtered) else None
        self._saves = saves and self._filtered is None
        if self._filtered is not None:
            self.start, self._seq = self._filtered.stop, self._filtered.parts[0].seq
        self._first = self.start - self.start % size
        held = 4 * self._threads  # chunks: two of each thread wait or are scanned, and what they gave is as large
        chunk = memory.work(held * CHUNK_BYTES) // held
        self._chunk_bytes = max(min(chunk // size, -(-(self.stop - self._first) // size)), 1) * size
        self._of_thread = local()

    def run(self, progress: Callable[[int], object] = lambda position: None) -> None:
        """Scan; `progress` gets the log position reached.

        Raises QueryCancelled, IndexDamaged when an index does not fit the log or cannot be merged, and what the log and
        the user's functions raise. What was scanned by then is kept.
        """
        jobs = deque(self._jobs())
        complete = False
        saved = time.monotonic()
        is_short = len(jobs) <= 1 and self._calls is None  # shorter than starting threads
        with Workers(0 if is_short else self._threads, "jitdb-scan", self._start_worker) as workers:
            waiting: deque[Task[ScannedChunk]] = deque()
            try:
                while jobs or waiting:
                    while jobs and len(waiting) < 2 * self._threads:
                        waiting.append(workers.submit(jobs.popleft()))
                    self._await(waiting[0])
                    chunk = waiting.popleft().result()
                    if chunk.rest is not None:
                        waiting.appendleft(workers.submit(partial(self._scan, *chunk.rest)))
                    self._absorb(chunk)
                    progress(chunk.position)
                    self._look_up()
                    if self._saves and time.monotonic() - saved > SAVED_EVERY:
                        for target in self._targets:
                            target.save()
                        memory.give_back()
                        saved = time.monotonic()
                complete = True
            finally:
                if self._calls is not None:
                    self._calls.set()
                for task in waiting:
                    task.cancel()
                self._finish(workers, complete)

    def _is_worth(self, filtered: Filtered) -> bool:
        """Whether to look into pages takes less than to scan everything, as far as some of them tell."""
        looked_at = filtered.looked_at()
        if len(looked_at) * _SCAN_PAGE <= filtered.pages:
            return True
        some = looked_at[:: -(-len(looked_at) // _SAMPLED)]
        hold = 1 - len(self._new_scanner(filtered.page_size).hold_none(some)) / len(some)
        return len(looked_at) * (_LOOK_AT_PAGE + _SCAN_PAGE * hold) <= filtered.pages

    def _jobs(self) -> list[Callable[[], ScannedChunk]]:
        """What is scanned, or passed over, in this order."""
        parts = self._filtered.parts if self._filtered is not None else []
        begins = range(self._first, self.stop, self._chunk_bytes)
        return [
            *(partial(self._scan_parts, parts[at : at + PARTS]) for at in range(0, len(parts), PARTS)),
            *(partial(self._scan, begin, self.start) for begin in begins),
        ]

    def _scan(self, begin: int, start: int) -> ScannedChunk:
        return self._scanner("chunks", self._chunk_bytes).scan(begin, start)

    def _scan_parts(self, parts: Sequence[Part]) -> ScannedChunk:
        """Some pages, all at once; what is passed over counts as records that hold nothing."""
        assert self._filtered is not None
        scanner, begun = self._scanner("pages", self._filtered.page_size), parts[0]
        chunk, empty = NO_CHUNK, scanner.hold_none([part for part in parts if part.how == LOOK])
        for part in parts:
            if part.how == PASS or part in empty:
                continue
            if begun.seq < part.seq:
                chunk = chunk.followed_by(scanner.passed(begun.up_to(part)))
            chunk, begun = chunk.followed_by(self._scan_page(part)), part.end()
        rest = begun.up_to(parts[-1].end())
        return chunk.followed_by(scanner.passed(rest)) if rest.seq < rest.end_seq else chunk

    def _scan_page(self, part: Part) -> ScannedChunk:
        """All records of a page. Raises IndexDamaged where they are not as many as the index says."""
        assert self._filtered is not None
        scanner = self._scanner("pages", self._filtered.page_size)
        chunk = scanner.scan(part.page, 0)
        while chunk.rest is not None:
            chunk = chunk.followed_by(scanner.scan(*chunk.rest))
        count = sum(len(each.ends) for each in chunk.slices)
        if count > part.end_seq - part.seq and part.end_seq == self._filtered.grams.end_seq:
            return scanner.cut(chunk, part.end_seq - part.seq)  # the log has grown, and the page with it
        if count != part.end_seq - part.seq:
            raise IndexDamaged(
                f"it has {part.end_seq - part.seq:,} records in the page at byte {part.page:,}, the log {count:,}",
                path=self._filtered.grams.name,
            )
        return chunk

    def _scanner(self, name: str, chunk_bytes: int) -> ChunkScanner:
        """This thread's scanner of chunks, or of pages, of so many bytes."""
        scanner: ChunkScanner | None = getattr(self._of_thread, name, None)
        if scanner is None:
            scanner = self._new_scanner(chunk_bytes)
            setattr(self._of_thread, name, scanner)
        return scanner

    def _await(self, task: Task[ScannedChunk]) -> None:
        while not task.wait(_PATIENCE):
            self._look_up()

    def _look_up(self) -> None:
        """Raise QueryCancelled if the question was cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise QueryCancelled("the scan was cancelled; what it had indexed is kept")

    def hidden(self, listed: Container[int]) -> list[int]:
        """Where corrupt blocks begin that are not listed because they lie behind the last record."""
        return [block * self._log.block_size for block in self.corrupt if block not in listed]

    def _finish(self, workers: Workers, complete: bool) -> None:
        """The last segments, made side by side."""
        if self._filtered is not None and not complete:
            return  # they may end among records that were passed over
        make: Callable[[BuildTarget], Segment | None] = (
            (lambda target: target.make(True)) if complete else BuildTarget.make_rest
        )
        made = [(target, workers.submit(partial(make, target))) for target in self._targets if target.is_fed]
        for target, task in made:
            segment = task.result()
            if segment is not None:
                target.take(segment)
        if complete:
            for target in self._targets:
                target.index.reach(self.stop)

    def _leave_out(self, seqs: NDArray[np.int64]) -> None:
        if len(seqs) and int(seqs[-1]) >= self._tells_from:
            fresh = seqs[seqs >= self._tells_from]
            self.left_out_count += len(fresh)
            self.left_out += fresh[: LISTED - len(self.left_out)].tolist()

    def _absorb(self, chunk: ScannedChunk) -> None:
        broken = {*chunk.corrupt, *(offset // self._log.block_size for offset in chunk.faults)}
        if broken:
            self._damaged(sorted(broken))
            for target in self._targets:
                target.builder.damaged(broken, self._log.block_size)
        for target in self._targets:
            target.builder.unproven(chunk.unproven, self._log.block_size)
        for part in chunk.slices:
            if part.last_crc >= 0:
                self._passed(int(part.ends[-1]), part.last_crc)
            for target, piece in zip(self._targets, part.pieces, strict=True):
                if piece is not None:
                    target.feed(piece, self._seq, part.ends)
            self._leave_out(part.left_out + self._seq)
            self._seq += len(part.ends)
            self.malformed += part.malformed
        self.corrupt.update(chunk.corrupt)
        self.faults += [offset for offset in chunk.faults if offset // self._log.block_size not in chunk.corrupt]
