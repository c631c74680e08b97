"""How workers come to a log's bytes, and are made to scan and merge them: one interface, and what Spark has for it.

    tasks -> scan -> partials, kept on the workers' disks
                       heads  -> driver: record counts, so where each range's records stand; bitmaps or hashes
                       values -> only where the heads leave open which
                       segments -> driver, which merges; or, when they are many, merged on the workers, an index and a
                                   span at a time, and then to the driver in order

A partial that is lost with a worker is scanned again, so a retry or a second attempt at a task changes nothing. What
functions need of this module is sent with them: workers import scanning.py and joining.py.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.building.hadoop import Stage, check_whole
from jitdb.spark_ext.building.joining import Key, Placing, join_packed, place_packed, values_in, values_in_both
from jitdb.spark_ext.building.scanning import (
    Job,
    Partial,
    Range,
    RangeHead,
    Task,
    cut_ranges,
    ranges_at,
    scan_blocks,
    scan_shared,
    size_for,
    unpack,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.rdd import RDD
    from pyspark.sql import DataFrame, SparkSession

    from jitdb.indexes.segment import Segment

AT_ONCE: Final = 128 << 20  # bytes of segments that the driver merges by itself: beyond, it would be the limit
PART_BYTES: Final = 64 << 20  # of segments, to be merged by one task: what comes back at once
CONNECT_BYTES: Final = 64 << 20  # of the log, for each task, where nobody tells how many cores the cluster has
_DEPTH: Final = 2  # levels of the tree by which values are united
_ROWS: Final = "index long, span long, raw binary"  # of every table of Spark Connect

Values = dict[int, set[bytes] | None]  # of each index; None are too many
Packed = Iterable[tuple[Key, bytes]]


class Transport(ABC):
    """One prebuild on a cluster, until close().

    range_bytes: of the log, for each task; None: as many as suit the cluster
    at_once:     bytes of segments up to which the driver merges them
    """

    def __init__(self, range_bytes: int | None, at_once: int) -> None:
        self._range_bytes = range_bytes
        self._at_once = at_once

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        """What is to be scanned of a log that ends at `end`: see cut_ranges."""
        size = self._range_bytes or self._usual_bytes(end - min(begins, default=end))
        return cut_ranges(begins, end, block_size, size)

    def scan(self, job: Job, tasks: Sequence[Task]) -> list[RangeHead]:
        """Have all scanned; what the driver must know of each range, in order."""
        self._describe("scanning")
        self._start(job, tasks)
        heads = self._collect(lambda partial: [((partial.head.number, 0), pickle.dumps(partial.head))])
        return sorted(pickle.loads(raw) for _, raw in heads)

    def values(self, numbers: Sequence[int]) -> Values:
        """All values that the bitmaps of these indexes are of."""
        self._describe("counting values of")
        return self._reduce(lambda partial: values_in(partial, numbers), values_in_both)

    def segments(self, placing: Placing, heads: Sequence[RangeHead]) -> Iterator[tuple[int, Segment]]:
        """The merged segments of all indexes, those of one index in order."""

        def place(partial: Partial) -> Packed:
            return place_packed(placing, partial)

        size = sum(head.bytes for head in heads)
        for (number, _), raw in self._merge_here(place) if size <= self._at_once else self._merge_there(place, size):
            yield number, unpack(raw)

    def _merge_here(self, place: Callable[[Partial], Packed]) -> Packed:
        self._describe("fetching the indexes of")
        groups: dict[Key, list[bytes]] = {}
        for key, raw in self._collect(place):
            groups.setdefault(key, []).append(raw)
        for key in sorted(groups):
            yield key, join_packed(groups.pop(key))

    def _describe(self, work: str) -> None:
        """Tell those who watch the cluster, where it has a page."""
        del work

    @abstractmethod
    def _usual_bytes(self, total: int) -> int:
        """Of a task, where so many are scanned."""

    @abstractmethod
    def _start(self, job: Job, tasks: Sequence[Task]) -> None:
        """Say how the partials come to be, which the cluster keeps."""

    @abstractmethod
    def _collect(self, function: Callable[[Partial], Packed]) -> Packed:
        """What workers make of each partial, in any order."""

    @abstractmethod
    def _reduce(self, function: Callable[[Partial], Values], both: Callable[[Values, Values], Values]) -> Values:
        """What workers make of each partial, united."""

    @abstractmethod
    def _merge_there(self, place: Callable[[Partial], Packed], size: int) -> Packed:
        """What workers make of each partial, `size` bytes, those of one key joined by workers; the keys in order."""

    @abstractmethod
    def close(self) -> None:
        """Let the workers forget all of it."""


class RddTransport(Transport):
    """All machines see the log under one path; jobs over an RDD are the least overhead that Spark has for Python."""

    def __init__(self, context: SparkContext, name: str, range_bytes: int | None, at_once: int) -> None:
        super().__init__(range_bytes, at_once)
        self._context = context
        self._name = name
        self._kept: list[RDD[Any]] = []

    def _usual_bytes(self, total: int) -> int:
        return size_for(total, self._context.defaultParallelism)

    def _start(self, job: Job, tasks: Sequence[Task]) -> None:
        self._partials = self._keep(self._scanned(job, tasks))

    def _scanned(self, job: Job, tasks: Sequence[Task]) -> RDD[Partial]:
        return self._context.parallelize(tasks, len(tasks)).map(lambda task: scan_shared(job, task))

    def _keep(self, made: RDD[Any]) -> RDD[Any]:
        from pyspark import StorageLevel

        self._kept.append(made.persist(StorageLevel.DISK_ONLY))
        return self._kept[-1]

    def _collect(self, function: Callable[[Partial], Packed]) -> Packed:
        found: Packed = self._partials.flatMap(function).collect()
        return found

    def _reduce(self, function: Callable[[Partial], Values], both: Callable[[Values, Values], Values]) -> Values:
        united: Values = self._partials.map(function).treeReduce(both, _DEPTH)
        return united

    def _merge_there(self, place: Callable[[Partial], Packed], size: int) -> Packed:
        self._describe("merging the indexes of")
        placed = self._partials.flatMap(place)
        keys = sorted(placed.keys().distinct().collect())
        parts = min(max(size // PART_BYTES, self._context.defaultParallelism) + 1, len(keys))
        part_of = {key: at * parts // len(keys) for at, key in enumerate(keys)}  # keeps their order
        merged = self._keep(placed.groupByKey(parts, lambda key: part_of[key]).mapValues(join_packed))
        merged.count()  # all at once: an iterator alone would have one merged after the other
        self._describe("writing the indexes of")
        for part in merged.mapPartitions(lambda pairs: [sorted(pairs)]).toLocalIterator(prefetchPartitions=True):
            yield from part

    def _describe(self, work: str) -> None:
        self._context.setJobDescription(f"jitdb: {work} {self._name}")

    def close(self) -> None:
        with suppress(Exception):  # a session that is gone has nothing left to forget
            for kept in self._kept:
                kept.unpersist()
            self._context.setJobDescription(None)


class HadoopTransport(RddTransport):
    """Spark reads the blocks, as records of one length; a partition is what Hadoop takes for one, or as asked."""

    def __init__(self, context: SparkContext, stage: Stage, range_bytes: int | None, at_once: int) -> None:
        super().__init__(context, stage.path.name, range_bytes, at_once)
        self._stage = stage

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        remote = self._stage.remote
        check_whole(remote.uri, remote.size(), block_size)
        self._stage.begin(end, block_size)
        self._blocks, self._starts = remote.splits(block_size, self._range_bytes)
        return ranges_at(self._starts, begins, end)

    def _scanned(self, job: Job, tasks: Sequence[Task]) -> RDD[Partial]:
        starts = self._starts
        by_split: dict[int, list[Task]] = {}
        for task in tasks:
            by_split.setdefault(bisect_right(starts, task.part.start) - 1, []).append(task)

        def scan(number: int, blocks: Iterable[Any]) -> Iterable[Partial]:
            mine = by_split.get(number)
            return scan_blocks(job, mine, starts[number], blocks) if mine else ()

        scanned: RDD[Partial] = self._blocks.mapPartitionsWithIndex(scan)
        return scanned


class ConnectTransport(Transport):
    """All machines see the log under one path. Spark Connect has no RDDs: tables, and functions over Arrow batches."""

    def __init__(self, spark: SparkSession, range_bytes: int | None, at_once: int) -> None:
        super().__init__(range_bytes, at_once)
        self._spark = spark
        self._kept: list[DataFrame] = []

    def _usual_bytes(self, total: int) -> int:
        return CONNECT_BYTES

    def _start(self, job: Job, tasks: Sequence[Task]) -> None:
        import pyarrow as pa

        def scan(task: Task) -> Packed:
            return [((task.part.number, 0), pickle.dumps(scan_shared(job, task)))]

        numbers, raws = range(len(tasks)), [pickle.dumps(task) for task in tasks]
        rows = {"index": numbers, "span": numbers, "raw": pa.array(raws, pa.binary())}
        table = self._spark.createDataFrame(pa.Table.from_pydict(rows))
        # By range, each goes to a partition of its own: a function would take all of them, and their checksums, along.
        self._partials = self._keep(self._mapped(table.repartitionByRange(len(tasks), "index"), scan))

    def _keep(self, made: DataFrame) -> DataFrame:
        from pyspark import StorageLevel

        self._kept.append(made.persist(StorageLevel.DISK_ONLY))
        return self._kept[-1]

    @staticmethod
    def _mapped(table: DataFrame, function: Callable[[Any], Packed]) -> DataFrame:
        """What a function makes of what is pickled in each row."""

        def run(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for raw in batch.column("raw").to_pylist():
                    for (index, span), made in function(pickle.loads(raw)):
                        yield pa.RecordBatch.from_pydict({"index": [index], "span": [span], "raw": [made]})

        return table.mapInArrow(run, _ROWS)

    def _collect(self, function: Callable[[Partial], Packed]) -> Packed:
        return map(_keyed, self._mapped(self._partials, function).collect())

    def _reduce(self, function: Callable[[Partial], Values], both: Callable[[Values, Values], Values]) -> Values:
        found = self._mapped(self._partials, lambda partial: [((0, 0), pickle.dumps(function(partial)))])
        return reduce(both, (pickle.loads(row["raw"]) for row in found.toLocalIterator()))

    def _merge_there(self, place: Callable[[Partial], Packed], size: int) -> Packed:
        def merge(table: Any) -> Any:
            import pyarrow as pa

            raw = join_packed(table.column("raw").to_pylist())
            return pa.table({"index": table["index"][:1], "span": table["span"][:1], "raw": [raw]})

        placed = self._mapped(self._partials, place).groupBy("index", "span")
        merged = self._keep(placed.applyInArrow(merge, _ROWS)).orderBy("index", "span")
        return map(_keyed, merged.toLocalIterator(prefetchPartitions=True))

    def close(self) -> None:
        with suppress(Exception):  # a session that is gone has nothing left to forget
            for kept in self._kept:
                kept.unpersist()


def _keyed(row: Any) -> tuple[Key, bytes]:
    return (row["index"], row["span"]), bytes(row["raw"])


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
