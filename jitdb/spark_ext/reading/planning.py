"""What the driver does of a read: which blocks are read, by which tasks, and which of their records are rows.

With indexes that are up to date, the question is answered here: a task gets the blocks that hold answers, and which of
their records these are. Without, each task asks its own blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.engine.manager import IndexManager
from jitdb.engine.records import damage_in
from jitdb.errors import LogSuperseded
from jitdb.indexes.kinds.offsets import load_offsets
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of
from jitdb.log.any_log import AnyLog
from jitdb.log.blocks.checksum import UNKNOWN
from jitdb.log.lines.line_log import LineLog
from jitdb.operators.nodes.operation import EVERYTHING, Everything, Operation
from jitdb.operators.text.json import to_json
from jitdb.spark_ext.counting import records_between
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.file_range import Run, Snapshot
from jitdb.spark_ext.options import ReadOptions
from jitdb.spark_ext.reading.from_indexes import known_fields, may_serve
from jitdb.spark_ext.reading.opening import index_folder
from jitdb.spark_ext.reading.partitions import Partition, asks_seqs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment
    from jitdb.spark_ext.reading.schema import Layout

SMALLEST: Final = 64 << 20  # bytes of a task: it reads them in some 50 ms, and costs about as much by itself
SMALLEST_SLOW: Final = 4 << 20  # the same where records are decoded one by one
LARGEST: Final = 512 << 20  # what a lost worker, or a slow one, costs in time
TRIES: Final = 100  # looks at a log that is compacted, or written by another program, at this very moment
_PAUSE: Final = 0.01  # seconds between them

T = TypeVar("T")

logger: Final = logging.getLogger("jitdb.spark")


def blocks_of_task(options: ReadOptions, total: int, block_size: int, *, slow: bool) -> int:
    """Blocks that a task reads, of `total` bytes; slow: records are decoded one by one.

    A task a core, or as many times that as keeps tasks below LARGEST.

    >>> [blocks_of_task(ReadOptions("", cores=8), mib << 20, 1 << 20, slow=False) for mib in (100, 800, 9000)]
    [64, 100, 375]
    """
    if options.partition_bytes is not None:
        return max(options.partition_bytes // block_size, 1)
    rounds = -(-total // (options.cores * LARGEST)) or 1
    size = max(SMALLEST_SLOW if slow else SMALLEST, -(-total // (options.cores * rounds)))
    return -(-size // block_size)  # more, not less: what is left over would be one more task


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a log will be read.

    answered: "indexes", "tasks" (which scan their blocks for the answers), or "" without a question
    stale:    the index files that the question lacks, or that do not reach the log's end
    matches:  rows, where they are known before
    unproven: of the blocks that are read, those without a checksum; the log's last one never has one
    columns:  "log", or "indexes": these have all values, and no block is read
    """

    path: str
    where: str
    answered: str
    stale: tuple[str, ...]
    blocks: int
    blocks_read: int
    bytes_read: int
    tasks: int
    matches: int | None
    unproven: int = 0
    columns: str = "log"

    @property
    def blocks_skipped(self) -> int:
        """Blocks that hold no answers, and are not read."""
        return self.blocks - self.blocks_read

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {**asdict(self), "blocks_skipped": self.blocks_skipped}

    def __str__(self) -> str:
        question = f" where {self.where}" if self.where else ""
        matches = "" if self.matches is None else f", {self.matches:,} rows"
        unproven = f", {self.unproven:,} blocks have no checksum" if self.unproven > 1 else ""
        columns = ", columns from indexes" if self.columns == "indexes" else ""
        how = {"indexes": ", answered from indexes", "tasks": ", answered by the tasks", "": ""}[self.answered]
        return (
            f"{self.path}{question}: {self.blocks_read:,} of {self.blocks:,} blocks are read "
            f"({self.blocks_skipped:,} skipped), {self.tasks:,} tasks{matches}{how}{columns}{unproven}"
        )


class _Chosen(NamedTuple):
    """The answers, and where they lie."""

    seqs: BitMap
    damaged: list[int]  # blocks that are left out of them, or may be
    blocks: NDArray[np.int64]  # those that hold answers
    begins: NDArray[np.int64]  # of each of them, where it begins, or the first record that begins in it
    ends: NDArray[np.int64]  # and where it ends, or the first record behind it begins
    firsts: NDArray[np.int64]  # of each of them, the seq of its first record
    stops: NDArray[np.int64]  # and the seq behind its last one


def steady(log: AnyLog, work: Callable[[], T]) -> T:
    """What `work` makes of the log, done again where another file took the log's place meanwhile.

    Raises LogChanged where that does not end, and what `work` does.
    """
    for _ in range(TRIES):
        name = log.identity, log.generation
        try:
            found = work()
        except (LogSuperseded, EOFError):  # EOFError: the file is shorter than the log was
            log.refresh()
            time.sleep(_PAUSE)
            continue
        log.refresh()
        if (log.identity, log.generation) == name:
            return found
    raise LogChanged(
        "another file takes its place again and again", path=log.path, remedy="start the job when that has ended"
    )


class Planner:
    """Plans one read of a log, as it is when plan() is called."""

    def __init__(self, log: AnyLog, options: ReadOptions, layout: Layout) -> None:
        self._layout = layout
        self._options = options
        self._log = log
        where = options.where
        self._where = None if isinstance(where, Everything) else where
        self._with_seqs = layout.asks("seq") or (self._where is not None and asks_seqs(self._where))
        self._stale: tuple[str, ...] = ()

    def plan(self) -> tuple[list[Partition], ReadPlan]:
        """What the tasks read, and what there is to tell of it. Raises LogChanged, LogError, QueryError, OSError."""
        found, plan = steady(self._log, self._plan)
        logger.info("%s", plan)
        return found, plan

    def _plan(self) -> tuple[list[Partition], ReadPlan]:
        log = self._log
        self._end, self._block_size = log.durable_end, log.block_size
        self._share = Share(log, self._options)
        folder = index_folder(log, self._options)
        manager = IndexManager(log, lambda: folder, self._options.fields, 0, False)
        if self._options.indexes != "none":
            manager.follow(None)
        is_served = may_serve(self._layout, self._options)
        chosen = None if self._where is None else self._answer(manager, self._where)
        if self._where is None and is_served:
            chosen = self._answer(manager, EVERYTHING)
        self._served = is_served and chosen is not None and self._has_columns(manager, chosen)
        if self._where is None and not self._served:
            chosen = None
        if chosen is not None:
            found = self._selected(chosen)
        elif self._with_seqs and self._options.indexes != "none":
            found = manager.look(lambda: self._ranges(self._offsets(manager)))  # which drops an index that is damaged
        else:
            found = self._ranges([])
        return found, self._summed_up(found, chosen)

    def _has_columns(self, manager: IndexManager, chosen: _Chosen) -> bool:
        """Whether tasks can take the rows from indexes."""
        return (
            bool(chosen.seqs)
            and known_fields(manager, self._log, self._layout.paths, chosen.seqs.max() + 1) is not None
        )

    # --- answering here ----------------------------------------------------------------------------------------------

    def _answer(self, manager: IndexManager, where: Operation) -> _Chosen | None:
        """The answers, where indexes that are up to date give them, or may be brought so."""
        if self._options.indexes == "none":
            return None
        if self._options.indexes == "build":
            manager.prepare(manager.look(lambda: manager.leaf_needs(where)), None)
            if isinstance(self._log, LineLog) and self._log.compression and self._log.durable_end != self._end:
                self._end = self._log.durable_end  # the other one was claimed
                self._share = Share(self._log, self._options)
        with manager.lock:
            plan = manager.plan(where, False)
            self._stale = tuple(index.spec.file_name() for index in plan.only_stale(self._end).indexes)
        if self._stale:
            return None

        def look(end_seq: int) -> _Chosen:
            seqs = manager.evaluator.matches(where, end_seq).copy()
            segments = manager.records.offset_segments()
            blocks = self._blocks_of(manager, seqs)
            # Of blocks behind the last record that was found, no index tells.
            size, found = self._block_size, segments[-1].end_offset if segments else 0
            unlisted = range(found // size, -(-self._end // size)) if found < self._end else ()
            damaged = sorted({*manager.records.damaged_blocks(), *unlisted})
            firsts = ranks(segments, blocks * size)
            stops = ranks(segments, np.minimum((blocks + 1) * size, self._end))
            begins, ends = blocks * size, np.minimum((blocks + 1) * size, self._end)
            if isinstance(self._log, LineLog):
                begins, ends = (self._places(manager, each, end_seq) for each in (firsts, stops))
            return _Chosen(seqs, damaged, blocks, begins, ends, firsts, stops)

        chosen = manager.ask(where, False, None, look)
        if not self._options.skip_corrupt:
            for block in chosen.damaged:
                fault = damage_in(self._log, block)
                if fault is not None:
                    raise fault
        return chosen

    def _places(self, manager: IndexManager, seqs: NDArray[np.int64], end_seq: int) -> NDArray[np.int64]:
        """Where the records with these seqs begin; behind the last one, the log's end."""
        found = np.full(len(seqs), self._end, np.int64)
        found[seqs < end_seq] = manager.records.offsets_of(seqs[seqs < end_seq].astype(np.uint32))
        return found

    def _blocks_of(self, manager: IndexManager, seqs: BitMap) -> NDArray[np.int64]:
        found = [np.empty(0, np.int64)]
        members = members_of(seqs)
        for low in range(0, len(members), 1 << 20):
            offsets = manager.records.offsets_of(members[low : low + (1 << 20)])
            found.append(np.unique(offsets // self._block_size))
        return np.unique(np.concatenate(found))

    def _offsets(self, manager: IndexManager) -> list[Segment]:
        """What the index of offsets knows, if it is of the log as it is."""
        return [segment for segment in manager.records.offset_segments() if segment.end_offset <= self._end]

    # --- cutting -----------------------------------------------------------------------------------------------------

    def _ranges(self, offsets: Sequence[Segment]) -> list[Partition]:
        block = self._block_size
        size = self._blocks_of_task(-(-self._end // block)) * block
        # What a damaged block holds cannot be counted: where it is skipped, each block has a number of its own.
        step = block if self._options.skip_corrupt and offsets else size
        starts = list(range(0, self._end, step or 1))
        if isinstance(self._log, LineLog):
            lines = {self._log.next_line(start) for start in starts[1:]} - {self._end}
            starts = [*starts[:1], *sorted(lines)]
        seqs = records_before(self._log, offsets, starts) if self._with_seqs else [-1] * len(starts)
        reaches = bool(offsets) and offsets[-1].end_offset == self._end
        seqs.append(offsets[-1].end_seq if reaches else -1)
        runs = [
            Run(*edges, *numbers) for edges, numbers in zip(pairwise([*starts, self._end]), pairwise(seqs), strict=True)
        ]
        each = size // step
        return [self._share.partition(tuple(runs[low : low + each]), self._where) for low in range(0, len(runs), each)]

    def _blocks_of_task(self, blocks: int) -> int:
        """Of so many: all of a compressed file, which is decompressed in order."""
        if isinstance(self._log, LineLog) and self._log.compression:
            return blocks
        size = self._block_size
        return blocks_of_task(self._options, min(blocks * size, self._end), size, slow=self._layout.is_slow)

    def _selected(self, chosen: _Chosen) -> list[Partition]:
        """A partition for about each so many bytes of blocks that hold answers."""
        blocks = chosen.blocks
        if not len(blocks):
            return []
        per_part = self._blocks_of_task(len(blocks))
        found = []
        for low in range(0, len(blocks), per_part):
            mine, firsts = blocks[low : low + per_part], chosen.firsts[low : low + per_part]
            lasts = chosen.stops[low : low + per_part]
            begins = np.flatnonzero((np.diff(mine, prepend=-2) != 1) | self._options.skip_corrupt)  # see _ranges
            ends = np.append(begins[1:], len(mine)) - 1
            here = slice(low, low + per_part)
            edges = (chosen.begins[here][begins], chosen.ends[here][ends], firsts[begins], lasts[ends])
            runs = tuple(self._run(*edge) for edge in zip(*(each.tolist() for each in edges), strict=True))
            last = int(chosen.firsts[low + per_part]) if low + per_part < len(blocks) else 1 << 32
            seqs = chosen.seqs & bitmap_of_range(int(firsts[0]), last)
            found.append(self._share.partition(runs, None, seqs.serialize(), self._served))
        return found

    def _run(self, start: int, stop: int, first_seq: int, stop_seq: int) -> Run:
        if isinstance(self._log, LineLog) and self._options.allow_prefix:  # from records to their lines
            start, stop = (each if each in (0, self._end) else self._log.line_start(each) for each in (start, stop))
        return Run(start, stop, first_seq, stop_seq)

    def _summed_up(self, found: Sequence[Partition], chosen: _Chosen | None) -> ReadPlan:
        size = self._block_size
        blocks = -(-self._end // size)
        read = blocks if chosen is None else len(chosen.blocks)
        return ReadPlan(
            path=str(self._log.path),
            where="" if self._where is None else repr(self._where),
            answered="" if self._where is None else "tasks" if chosen is None else "indexes",
            stale=self._stale,
            blocks=blocks,
            blocks_read=0 if self._served else read,
            bytes_read=0 if self._served else sum(run.stop - run.start for each in found for run in each.runs),
            tasks=len(found),
            matches=None if chosen is None else len(chosen.seqs),
            unproven=0 if isinstance(self._log, LineLog) else sum(_unproven(each, size) for each in found),
            columns="indexes" if self._served else "log",
        )


def _unproven(partition: Partition, block_size: int) -> int:
    """How many of its blocks have no checksum."""
    if partition.sums is not None:
        return int((partition.sums == UNKNOWN).sum())
    return sum(-(-(run.stop - run.start) // block_size) for run in partition.runs)


class Share:
    """What all tasks of a read must know of the log, and what of it each must."""

    def __init__(self, log: AnyLog, options: ReadOptions) -> None:
        """Raises LogError, OSError; EOFError where the file is shorter than the log was."""
        self._log = log
        self._options = options
        self._snapshot = Snapshot.of(log, log.durable_end)
        self._deleted = np.unique(log.deletions()[1])

    def partition(
        self, runs: tuple[Run, ...], where: Operation | None, chosen: bytes | None = None, indexed: bool = False
    ) -> Partition:
        """What a task reads. Raises LogError, OSError."""
        log, size, deleted = self._log, self._log.block_size, self._deleted
        stretches = list(_stretches(runs))
        sums = [log.checksums(start // size, -(-stop // size) - start // size) for start, stop in stretches]
        mine = [deleted[deleted.searchsorted(start) : deleted.searchsorted(stop)] for start, stop in stretches]
        return Partition(
            snapshot=self._snapshot,
            runs=runs,
            sums=np.concatenate(sums) if any((each != UNKNOWN).any() for each in sums) else None,
            deleted=np.concatenate([np.empty(0, np.int64), *mine]),
            core=self._options.fields,
            chosen=chosen,
            where=None if where is None else to_json(where),
            skip_corrupt=self._options.skip_corrupt,
            shared=self._options.shared,
            indexed=replace(self._options, where=None) if indexed else None,
        )


def _stretches(runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Begin and end of runs that follow on one another, as one."""
    begin = stop = runs[0].start
    for run in runs:
        if run.start != stop:
            yield begin, stop
            begin = run.start
        stop = run.stop
    yield begin, stop


# --- counting --------------------------------------------------------------------------------------------------------


def ranks(segments: Sequence[Segment], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records begin before each of these (ascending) bytes, of those that an index of offsets knows."""
    found = np.zeros(len(places), np.int64)
    for segment in segments:
        low = int(places.searchsorted(segment.first_offset, side="right"))
        high = int(places.searchsorted(segment.end_offset, side="right"))
        found[low:high] = segment.first_seq + load_offsets(segment).searchsorted(places[low:high])
        found[high:] = segment.end_seq
    return found


def records_before(log: AnyLog, segments: Sequence[Segment], places: Sequence[int]) -> list[int]:
    """How many records begin before each of these (ascending) boundaries of blocks.

    segments: of an index of offsets, which may end before the log does

    What the index does not know is read, at some gigabytes a second. Raises OSError, LogError.
    """
    known = np.array(places, np.int64)
    found = ranks(segments, known)
    end, seq = (segments[-1].end_offset, segments[-1].end_seq) if segments else (0, 0)
    behind = int(known.searchsorted(end, side="right"))
    found[behind:] = seq + records_between(log, end, known[behind:])
    numbers: list[int] = found.tolist()
    return numbers
