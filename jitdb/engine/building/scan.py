"""One pass over the log that brings any number of indexes up to date.

Chunks of some MiB go to worker threads (chunk_scanner.py): read, walk, locate all wanted fields, and let each builder
work on them while they are in the cache; the kernels run without the GIL. The scanning thread takes the results in
order, feeds the builders (targets.py) and appends a segment to each index at every span and at the end, so memory stays
bounded. A scan that takes long, often because it calls slow functions of the user, saves what it has about every second
or 64 MB, in segments that those of the spans take the place of: one that is interrupted or killed keeps that.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from functools import partial
from threading import Event, local
from typing import TYPE_CHECKING, Final

from jitdb.common.paths import Path
from jitdb.engine.building.chunk_scanner import ChunkScanner, ScannedChunk
from jitdb.engine.building.targets import BuildTarget
from jitdb.engine.building.workers import Task, Workers
from jitdb.errors import LogCorrupt, QueryCancelled
from jitdb.indexes.segment import Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.source import ScanSource

CHUNK_BYTES: Final = 4 << 20  # read at a time by one worker: some thousand records, still in the last cache
LISTED: Final = 1000  # malformed records that are named
MAX_THREADS: Final = 8  # beyond, the scanning thread is the limit
SAVED_EVERY: Final = 1.0  # seconds of a scan that an end by force may cost, about: to save takes a tenth of one
_PATIENCE: Final = 0.05  # seconds between looks whether the scan was cancelled, while a worker is slow


class Scan:
    """A pass from the least advanced target to the log's durable end.

    Every block that has a checksum is verified. The records of one that is not what was written count as deleted.

    After `run`: `malformed` records have no fields, or not all; `faults` are the log positions of damaged headers, the
    rest of whose blocks was passed over; `corrupt` tells of the blocks with a wrong checksum, by their numbers;
    `left_out` are the seqs of malformed records that count as deleted, and that no index told of before, the first
    LISTED of `left_out_count`.
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
        self._saves = saves
        self._start_worker = start_worker
        size = log.block_size
        self._first = self.start - self.start % size
        self._chunk_bytes = max(min(CHUNK_BYTES // size, -(-(self.stop - self._first) // size)), 1) * size
        self._new_scanner = partial(ChunkScanner, log, targets, paths, self.stop, self._chunk_bytes, calls is not None)
        self._of_thread = local()

    def run(self, progress: Callable[[int], object] = lambda position: None) -> None:
        """Scan; `progress` gets the log position reached.

        Raises QueryCancelled, IndexDamaged when an index does not fit the log or cannot be merged, and what the log and
        the user's functions raise. What was scanned by then is kept.
        """
        begins = deque(range(self._first, self.stop, self._chunk_bytes))
        complete = False
        saved = time.monotonic()
        is_short = len(begins) <= 1 and self._calls is None  # less than to start threads takes
        with Workers(0 if is_short else self._threads, "jitdb-scan", self._start_worker) as workers:
            waiting: deque[Task[ScannedChunk]] = deque()
            try:
                while begins or waiting:
                    while begins and len(waiting) < 2 * self._threads:
                        waiting.append(workers.submit(partial(self._scan, begins.popleft(), self.start)))
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
                        saved = time.monotonic()
                complete = True
            finally:
                if self._calls is not None:
                    self._calls.set()
                for task in waiting:
                    task.cancel()
                self._finish(workers, complete)

    def _scan(self, begin: int, start: int) -> ScannedChunk:
        scanner: ChunkScanner | None = getattr(self._of_thread, "scanner", None)
        if scanner is None:
            scanner = self._of_thread.scanner = self._new_scanner()
        return scanner.scan(begin, start)

    def _await(self, task: Task[ScannedChunk]) -> None:
        while not task.wait(_PATIENCE):
            self._look_up()

    def _look_up(self) -> None:
        """See whether somebody still wants this. Raises QueryCancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise QueryCancelled("the scan was cancelled; what it had indexed is kept")

    def hidden(self, listed: Container[int]) -> list[int]:
        """Where corrupt blocks begin that are not listed: those behind the last record that was found."""
        return [block * self._log.block_size for block in self.corrupt if block not in listed]

    def _finish(self, workers: Workers, complete: bool) -> None:
        """The last segments, made side by side."""
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
            self._passed(int(part.ends[-1]), part.last_crc)
            for target, piece in zip(self._targets, part.pieces, strict=True):
                if piece is not None:
                    target.feed(piece, self._seq, part.ends)
            self._leave_out(part.left_out + self._seq)
            self._seq += len(part.ends)
            self.malformed += part.malformed
        self.corrupt.update(chunk.corrupt)
        self.faults += [offset for offset in chunk.faults if offset // self._log.block_size not in chunk.corrupt]
