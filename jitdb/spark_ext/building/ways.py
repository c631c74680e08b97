"""The ways to the bytes of a log: how it is cut into ranges, and what runs on the workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from jitdb.spark_ext.building.connect import ConnectRun
from jitdb.spark_ext.building.hadoop import check_whole
from jitdb.spark_ext.building.partial import Partial
from jitdb.spark_ext.building.ranges import Range, cut_ranges, ranges_at, size_for
from jitdb.spark_ext.building.rdds import RddRun
from jitdb.spark_ext.building.tasks import Job, Task, scan_blocks, scan_shared

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from jitdb.indexes.segment import Segment
    from jitdb.spark_ext.building.joining import Placing
    from jitdb.spark_ext.building.partial import Head
    from jitdb.spark_ext.building.staging import Stage


CONNECT_BYTES: Final = 64 << 20  # of the log, for each task, where nobody tells how many cores the cluster has


class Run(Protocol):
    """Scanning and merging on a cluster, until close()."""

    def heads(self) -> list[Head]:
        """Scan; what the driver must know of each range, in order."""

    def values(self, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
        """All values that the bitmaps of these indexes are of; None for too many."""

    def segments(self, placing: Placing, heads: Sequence[Head]) -> Iterator[tuple[int, Segment]]:
        """The merged segments of all indexes, those of one index in order."""

    def close(self) -> None:
        """Let the workers forget all of it."""


class Way(ABC):
    """How workers come to the log. `reads_paths`: they open its file themselves."""

    reads_paths = True

    @abstractmethod
    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        """What is to be scanned of a log that ends at `end`: see cut_ranges."""

    @abstractmethod
    def start(self, job: Job, tasks: Sequence[Task], name: str) -> Run:
        """Have it scanned."""


class SharedWay(Way):
    """All machines see the log under one path."""

    def __init__(self, context: SparkContext, range_bytes: int | None, at_once: int) -> None:
        self._context = context
        self._range_bytes = range_bytes
        self._at_once = at_once

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        todo = end - min(begins, default=end)
        return cut_ranges(
            begins, end, block_size, self._range_bytes or size_for(todo, self._context.defaultParallelism)
        )

    def start(self, job: Job, tasks: Sequence[Task], name: str) -> Run:
        scanned = self._context.parallelize(tasks, len(tasks)).map(lambda task: scan_shared(job, task))
        return RddRun(self._context, scanned, name, self._at_once)


class HadoopWay(Way):
    """Spark reads the blocks, as records of one length; a partition is what Hadoop takes for one, or as asked."""

    reads_paths = False

    def __init__(self, context: SparkContext, stage: Stage, range_bytes: int | None, at_once: int) -> None:
        self._context = context
        self._stage = stage
        self._range_bytes = range_bytes
        self._at_once = at_once

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        remote = self._stage.remote
        check_whole(remote.uri, remote.size(), block_size)
        self._stage.begin(end, block_size)
        self._blocks, self._splits = remote.splits(block_size, self._range_bytes)
        return ranges_at([split.start for split in self._splits], begins, end)

    def start(self, job: Job, tasks: Sequence[Task], name: str) -> Run:
        starts = [split.start for split in self._splits]
        by_split: dict[int, list[Task]] = {}
        for task in tasks:
            by_split.setdefault(bisect_right(starts, task.part.start) - 1, []).append(task)

        def scan(number: int, blocks: Iterable[Any]) -> Iterable[Partial]:
            mine = by_split.get(number)
            return scan_blocks(job, mine, starts[number], blocks) if mine else ()

        return RddRun(self._context, self._blocks.mapPartitionsWithIndex(scan), name, self._at_once)


class ConnectWay(Way):
    """All machines see the log under one path, the cluster is reached through Spark Connect."""

    def __init__(self, spark: SparkSession, range_bytes: int | None) -> None:
        self._spark = spark
        self._range_bytes = range_bytes

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        return cut_ranges(begins, end, block_size, self._range_bytes or CONNECT_BYTES)

    def start(self, job: Job, tasks: Sequence[Task], name: str) -> Run:
        return ConnectRun(self._spark, job, tasks)
