"""What the driver does of a read: which blocks are read, by which tasks, and which of their records are rows.

With indexes that are up to date, the question is answered here: a task gets the blocks that hold answers, and which of
their records these are. Without, each task asks its own blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.engine.damage import damage_in
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import requirements
from jitdb.errors import LogSuperseded
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of
from jitdb.log import Log
from jitdb.log.blocks.crc_arithmetic import UNKNOWN
from jitdb.log.io.filenames import INDEXES
from jitdb.operators.nodes.operations import Everything, Operation
from jitdb.operators.text.json import to_json
from jitdb.spark_ext.errors import LogChanged
from jitdb.spark_ext.range_source import Fingerprint, Shape
from jitdb.spark_ext.reading.counting import ranks, records_before
from jitdb.spark_ext.reading.parts import Part, Run
from jitdb.spark_ext.reading.window import asks_seqs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment
    from jitdb.spark_ext.reading.options import Options

SMALLEST: Final = 64 << 20  # bytes of a task: it reads them in some 50 ms, and costs about as much by itself
SMALLEST_SLOW: Final = 4 << 20  # the same where records are decoded one by one
LARGEST: Final = 512 << 20  # what a lost worker, or a slow one, costs in time
_TRIES: Final = 100  # looks at a log that is compacted, or written by another program, at this very moment
_PAUSE: Final = 0.01  # seconds between them

T = TypeVar("T")

logger: Final = logging.getLogger("jitdb.spark")


def size_of_task(total: int, cores: int, smallest: int) -> int:
    """Bytes of a task: one a core, or as many times that as keeps tasks below LARGEST; none below `smallest`.

    >>> size_of_task(100 << 20, 8, SMALLEST) >> 20, size_of_task(800 << 20, 8, SMALLEST) >> 20
    (64, 100)
    >>> size_of_task(9000 << 20, 8, SMALLEST) >> 20
    375
    """
    rounds = -(-total // (cores * LARGEST)) or 1
    return max(smallest, -(-total // (cores * rounds)))


def blocks_of_task(options: Options, total: int, block_size: int, *, slow: bool) -> int:
    """Blocks that a task reads, of `total` bytes; slow: records are decoded one by one."""
    if options.partition_bytes is not None:
        return max(options.partition_bytes // block_size, 1)
    size = size_of_task(total, options.cores, SMALLEST_SLOW if slow else SMALLEST)
    return -(-size // block_size)  # more, not less: what is left over would be one more task


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a log will be read.

    answered: "indexes", "tasks" (which scan their blocks for the answers), or "" without a question
    stale:    the index files that the question lacks, or that do not reach the log's end
    matches:  rows, where they are known before
    unproven: of the blocks that are read, those without a checksum; the log's last one never has one
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
        how = {"indexes": ", answered from indexes", "tasks": ", answered by the tasks", "": ""}[self.answered]
        return (
            f"{self.path}{question}: {self.blocks_read:,} of {self.blocks:,} blocks are read "
            f"({self.blocks_skipped:,} skipped), {self.tasks:,} tasks{matches}{how}{unproven}"
        )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The answers, and where they lie."""

    seqs: BitMap
    damaged: list[int]  # blocks that are left out of them, or may be
    blocks: NDArray[np.int64]  # those that hold answers
    firsts: NDArray[np.int64]  # of each of them, the seq of its first record
    stops: NDArray[np.int64]  # and the seq behind its last one


def open_log(options: Options) -> Log:
    """The log to be read. Raises LogError."""
    return Log(options.path, codec=options.codec, block_size=options.block_size, read_only=True)


def index_folder(options: Options, log: Log) -> FilePath:
    """Where the log's index files lie."""
    return FilePath(options.index_folder) if options.index_folder else log.sidecar / INDEXES


def steady(log: Log, work: Callable[[], T]) -> T:
    """What `work` makes of the log, done again where another file took the log's place meanwhile.

    Raises LogChanged where that does not end, and what `work` does.
    """
    for _ in range(_TRIES):
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
    """Plans one read of a log, as it is when plan() is called. A context manager, which closes the log."""

    def __init__(self, options: Options, *, with_seqs: bool, slow: bool = False) -> None:
        """with_seqs: whether the rows tell their seqs
        slow:      whether records are decoded one by one
        """
        self._slow = slow
        self._options = options
        self._log = open_log(options)
        where = options.where
        self._where = None if isinstance(where, Everything) else where
        self._with_seqs = with_seqs or (self._where is not None and asks_seqs(self._where))
        self._stale: tuple[str, ...] = ()

    def __enter__(self) -> Planner:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def plan(self) -> tuple[list[Part], ReadPlan]:
        """The tasks' parts, and what there is to tell of them. Raises LogChanged, LogError, QueryError, OSError."""
        parts, plan = steady(self._log, self._plan)
        logger.info("%s", plan)
        return parts, plan

    def _plan(self) -> tuple[list[Part], ReadPlan]:
        log = self._log
        self._end, self._block_size = log.durable_end, log.block_size
        self._share = Share(log, self._options, Fingerprint.of(str(log.path), self._end, self._block_size))
        manager = IndexManager(self._log, index_folder(self._options, self._log), self._options.fields, 0, False)
        if self._options.indexes != "none":
            manager.follow(None)
        chosen = None if self._where is None else self._answer(manager, self._where)
        if chosen is None:
            with manager.lock:
                offsets = self._offsets(manager)
            parts = self._ranges(offsets)
        else:
            parts = self._selected(chosen)
        return parts, self._told(parts, chosen)

    # --- answering here ----------------------------------------------------------------------------------------------

    def _answer(self, manager: IndexManager, where: Operation) -> _Chosen | None:
        """The answers, where indexes that are up to date give them, or may be brought so."""
        if self._options.indexes == "none":
            return None
        if self._options.indexes == "build":
            manager.prepare(requirements(where, self._options.fields), None)
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
            return _Chosen(seqs, damaged, blocks, firsts, stops)

        chosen = manager.ask(where, False, None, look)
        if not self._options.skip_corrupt:
            for block in chosen.damaged:
                fault = damage_in(self._log, block)
                if fault is not None:
                    raise fault
        return chosen

    def _blocks_of(self, manager: IndexManager, seqs: BitMap) -> NDArray[np.int64]:
        found = [np.empty(0, np.int64)]
        members = members_of(seqs)
        for low in range(0, len(members), 1 << 20):
            offsets = manager.records.offsets_of(members[low : low + (1 << 20)])
            found.append(np.unique(offsets // self._block_size))
        return np.unique(np.concatenate(found))

    def _offsets(self, manager: IndexManager) -> list[Segment]:
        """What the index of offsets knows, if it is of the log as it is."""
        if not self._with_seqs or self._options.indexes == "none":
            return []
        return [segment for segment in manager.records.offset_segments() if segment.end_offset <= self._end]

    # --- cutting -----------------------------------------------------------------------------------------------------

    def _per_task(self, total: int) -> int:
        """Blocks of a task, where `total` bytes are read."""
        return blocks_of_task(self._options, total, self._block_size, slow=self._slow)

    def _ranges(self, offsets: Sequence[Segment]) -> list[Part]:
        size = self._per_task(self._end) * self._block_size
        # What a damaged block holds cannot be counted: where it is skipped, each block has a number of its own.
        step = self._block_size if self._options.skip_corrupt and offsets else size
        starts = list(range(0, self._end, step))
        seqs = records_before(self._log, offsets, starts) if self._with_seqs else [-1] * len(starts)
        reaches = bool(offsets) and offsets[-1].end_offset == self._end
        seqs.append(offsets[-1].end_seq if reaches else -1)
        runs = [
            Run(start, min(start + step, self._end), *edges)
            for start, edges in zip(starts, pairwise(seqs), strict=True)
        ]
        each = size // step
        return [self._share.part(tuple(runs[low : low + each]), self._where) for low in range(0, len(runs), each)]

    def _selected(self, chosen: _Chosen) -> list[Part]:
        """A part for about each so many bytes of blocks that hold answers."""
        blocks = chosen.blocks
        if not len(blocks):
            return []
        per_part = self._per_task(len(blocks) * self._block_size)
        parts = []
        for low in range(0, len(blocks), per_part):
            mine, firsts = blocks[low : low + per_part], chosen.firsts[low : low + per_part]
            lasts = chosen.stops[low : low + per_part]
            begins = np.flatnonzero((np.diff(mine, prepend=-2) != 1) | self._options.skip_corrupt)  # see _ranges
            ends = np.append(begins[1:], len(mine)) - 1
            edges = (mine[begins], mine[ends] + 1, firsts[begins], lasts[ends])
            runs = tuple(
                Run(first * self._block_size, min(stop * self._block_size, self._end), seq, stop_seq)
                for first, stop, seq, stop_seq in zip(*(each.tolist() for each in edges), strict=True)
            )
            last = int(chosen.firsts[low + per_part]) if low + per_part < len(blocks) else 1 << 32
            seqs = chosen.seqs & bitmap_of_range(int(firsts[0]), last)
            parts.append(self._share.part(runs, None, seqs.serialize()))
        return parts

    def _told(self, parts: Sequence[Part], chosen: _Chosen | None) -> ReadPlan:
        size = self._block_size
        blocks = -(-self._end // size)
        read = blocks if chosen is None else len(chosen.blocks)
        return ReadPlan(
            path=str(self._log.path),
            where="" if self._where is None else repr(self._where),
            answered="" if self._where is None else "tasks" if chosen is None else "indexes",
            stale=self._stale,
            blocks=blocks,
            blocks_read=read,
            bytes_read=sum(run.stop - run.start for part in parts for run in part.runs),
            tasks=len(parts),
            matches=None if chosen is None else len(chosen.seqs),
            unproven=sum(_unproven(part, size) for part in parts),
        )


def _unproven(part: Part, block_size: int) -> int:
    """How many blocks of a part have no checksum."""
    if part.sums is not None:
        return int((part.sums == UNKNOWN).sum())
    return sum(-(-(run.stop - run.start) // block_size) for run in part.runs)


class Share:
    """What all tasks of a read must know of the log, and what of it each must."""

    def __init__(self, log: Log, options: Options, fingerprint: Fingerprint) -> None:
        """Raises LogError, OSError."""
        self._log = log
        self._options = options
        self._fingerprint = fingerprint
        self._deleted = np.unique(log.deletions()[1])

    def part(self, runs: tuple[Run, ...], where: Operation | None, chosen: bytes | None = None) -> Part:
        """A task's part. Raises LogError, OSError."""
        log, size, deleted = self._log, self._log.block_size, self._deleted
        stretches = list(_stretches(runs))
        sums = [log.checksums(start // size, -(-stop // size) - start // size) for start, stop in stretches]
        mine = [deleted[deleted.searchsorted(start) : deleted.searchsorted(stop)] for start, stop in stretches]
        return Part(
            shape=Shape(str(log.path), log.codec, size),
            identity=log.identity,
            generation=log.generation,
            fingerprint=self._fingerprint,
            runs=runs,
            sums=np.concatenate(sums) if any((each != UNKNOWN).any() for each in sums) else None,
            deleted=np.concatenate([np.empty(0, np.int64), *mine]),
            core=self._options.fields,
            chosen=chosen,
            where=None if where is None else to_json(where),
            skip_corrupt=self._options.skip_corrupt,
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
