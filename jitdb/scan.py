"""One pass over the log that brings any number of indexes up to date.

Chunks of some MiB go to worker threads: read, walk, locate all wanted fields, and let each builder work on them while
they are in the cache; the kernels run without the GIL. The scanning thread takes the results in order, feeds the
builders and appends a segment to each index at every span and at the end, so memory stays bounded and an interrupted
scan keeps what it built.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.errors import QueryCancelled
from jitdb.indexes.builders import Builder, Piece, Run
from jitdb.indexes.chunk import Chunk
from jitdb.indexes.index import Index
from jitdb.indexes.segment import SPAN, Segment
from jitdb.log.codecs.locate import locate
from jitdb.log.codecs.located import Located, empty_located
from jitdb.log.codecs.trie import build_trie
from jitdb.paths import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.source import LogSource

CHUNK_BYTES: Final = 2 << 20  # read at a time by one worker: some thousand records that stay near the processor
SLICE_RECORDS: Final = 1 << 16  # records located at a time: bounds the memory of a chunk of tiny records
MAX_THREADS: Final = 8  # beyond, the scanning thread is the limit


@dataclass(slots=True)
class Target:
    """An index to bring up to date, and who builds it. `emit` takes each finished segment."""

    index: Index
    builder: Builder
    emit: Callable[[Segment], None]
    first_seq: int = field(init=False)
    first_offset: int = field(init=False)
    next_seq: int = field(init=False)

    def __post_init__(self) -> None:
        self.first_seq = self.next_seq = self.index.end_seq
        self.first_offset = self.index.end_offset

    def run(self, end_offset: int) -> Run:
        """What was fed to the builder since its last segment, up to this byte of the log."""
        return self.first_seq, self.next_seq - self.first_seq, self.first_offset, end_offset

    def take(self, segment: Segment) -> None:
        """Hand a segment on."""
        self.first_seq, self.first_offset = segment.end_seq, segment.end_offset
        self.emit(segment)


class Slice(NamedTuple):
    """What one run of records gave: where each ends in the log, and a piece a target."""

    ends: NDArray[np.int64]
    pieces: list[Piece | None]
    position: int  # log bytes scanned so far, for the progress


class _Worker:
    """What a thread reuses from chunk to chunk."""

    def __init__(self, chunk_bytes: int, header: int, block_size: int, fields: int, targets: Sequence[Target]) -> None:
        room = chunk_bytes // (header + 1) + 1
        self.buffer = np.empty(chunk_bytes, np.uint8)
        self.starts = np.empty(room, np.int64)
        self.lengths = np.empty(room, np.int64)
        self.states = np.empty(room, np.uint8)
        self.faults = np.empty(chunk_bytes // block_size + 1, np.int64)
        self.located = empty_located(fields, min(SLICE_RECORDS, room))
        self.builders = [target.builder.new_worker() for target in targets]


class Scan:
    """A pass from the least advanced target to the log's durable end."""

    def __init__(
        self,
        log: LogSource,
        targets: Sequence[Target],
        paths: Sequence[Path],
        *,
        threads: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.start = min(target.index.end_offset for target in targets)
        self.seq = min(target.index.end_seq for target in targets)
        self.stop = log.durable_end
        self.malformed = 0
        self.faults: list[int] = []
        self._log = log
        self._targets = targets
        self._trie = build_trie(paths)
        self._fields = len(paths)
        self._threads = threads or min(os.cpu_count() or 1, MAX_THREADS)
        self._progress: Callable[[int], None] = lambda position: None
        self._cancelled = cancelled
        self._header = 2 if log.block_size <= 1 << 16 else 4
        self._chunk_bytes = max(CHUNK_BYTES // log.block_size, 1) * log.block_size
        self._local = local()

    def run(self, progress: Callable[[int], None] = lambda position: None) -> None:
        """Scan; `progress` gets the log position reached.

        Raises QueryCancelled, with all done so far kept, and OSError when an index cannot be written.
        """
        self._progress = progress
        first = self.start - self.start % self._log.block_size
        begins = deque(range(first, self.stop, self._chunk_bytes))
        complete = False
        with ThreadPoolExecutor(self._threads, "jitdb-scan") as pool:
            waiting: deque[Future[list[Slice]]] = deque()
            try:
                while begins or waiting:
                    while begins and len(waiting) < 2 * self._threads:
                        waiting.append(pool.submit(self._chunk, begins.popleft()))
                    for part in waiting.popleft().result():
                        self._absorb(part)
                    if self._cancelled():
                        raise QueryCancelled("the scan was cancelled; what it had indexed is kept")
                complete = True
            finally:
                for future in waiting:
                    future.cancel()
                self._finish(complete, pool)

    # --- in worker threads -----------------------------------------------------------------------------------------

    def _chunk(self, begin: int) -> list[Slice]:
        from jitdb.log.kernels import walk

        worker = self._worker()
        end = min(begin + self._chunk_bytes, self.stop)
        got = self._log.read_blocks(begin, begin + self._chunk_bytes, worker.buffer)
        count, faults = walk(
            worker.buffer, min(got, end - begin), self._log.block_size, self._header,
            worker.starts, worker.lengths, worker.states, worker.faults,
        )  # fmt: skip
        self.faults.extend((worker.faults[:faults] + begin).tolist())
        first = int(np.searchsorted(worker.starts[:count], self.start - begin)) if begin < self.start else 0
        return [
            self._slice(worker, begin, low, min(low + SLICE_RECORDS, count))
            for low in range(first, count, SLICE_RECORDS)
        ]

    def _worker(self) -> _Worker:
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = _Worker(self._chunk_bytes, self._header, self._log.block_size, self._fields, self._targets)
            self._local.worker = worker
        return worker

    def _slice(self, worker: _Worker, begin: int, low: int, high: int) -> Slice:
        starts, lengths, states = worker.starts[low:high], worker.lengths[low:high], worker.states[low:high]
        located = Located(*(array[:, : high - low] for array in worker.located))
        self.malformed += locate(self._log.codec, worker.buffer, starts, lengths, states, self._trie, located)
        ends = starts + lengths + begin
        chunk = Chunk(worker.buffer, starts + (begin - self._header), starts, lengths, states, located)
        pieces: list[Piece | None] = []
        for target, kept in zip(self._targets, worker.builders, strict=True):
            behind = target.index.end_offset >= int(ends[-1])
            pieces.append(None if behind else target.builder.work(kept, chunk))
        return Slice(ends, pieces, int(ends[-1]))

    # --- in the scanning thread ------------------------------------------------------------------------------------

    def _absorb(self, part: Slice) -> None:
        count = len(part.ends)
        for target, piece in zip(self._targets, part.pieces, strict=True):
            if piece is not None:
                self._feed(target, piece, part.ends)
        self.seq += count
        self._progress(part.position)

    def _feed(self, target: Target, piece: Piece, ends: NDArray[np.int64]) -> None:
        at = max(0, target.next_seq - self.seq)
        while at < piece.count:
            room = SPAN - target.next_seq % SPAN
            stop = min(piece.count, at + room)
            target.builder.absorb(piece.cut(at, stop), target.next_seq)
            target.next_seq += stop - at
            at = stop
            if target.next_seq % SPAN == 0:
                target.take(target.builder.finish(target.run(int(ends[at - 1])), False))
        self._last_end = int(ends[-1])

    def _finish(self, complete: bool, pool: ThreadPoolExecutor) -> None:
        """The last segments, made side by side."""
        fed = [target for target in self._targets if target.next_seq > target.first_seq]
        made = [pool.submit(target.builder.finish, target.run(self._last_end), complete) for target in fed]
        for target, segment in zip(fed, made, strict=True):
            target.take(segment.result())
        if complete:
            for target in self._targets:
                target.index.reach(self.stop)


def read_chunk(codec: Any, records: Sequence[bytes], paths: Sequence[Path]) -> Chunk:
    """Single records, read before, as a chunk: for questions about a few candidates."""
    buffer = np.frombuffer(b"".join(records), np.uint8)
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    starts = np.cumsum(lengths) - lengths
    states = np.zeros(len(records), np.uint8)
    located = empty_located(len(paths), len(records))
    locate(codec, buffer, starts, lengths, states, build_trie(paths), located)
    return Chunk(buffer, starts, starts, lengths, states, located)
