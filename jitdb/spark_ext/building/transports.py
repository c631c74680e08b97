"""A prebuild of a log that workers reach by Hadoop alone: Spark reads its blocks, and what comes of them goes through
Spark to the driver.

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
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.building.hadoop import Stage, check_whole
from jitdb.spark_ext.building.joining import Key, Placing, join_packed, place_packed, values_in, values_in_both
from jitdb.spark_ext.building.scanning import (
    Job,
    Partial,
    Range,
    RangeHead,
    Task,
    ranges_at,
    scan_blocks,
    unpack,
)
from jitdb.spark_ext.versions import sealed

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.rdd import RDD

    from jitdb.indexes.segment import Segment

PART_BYTES: Final = 64 << 20  # of segments, to be merged by one task: what comes back at once
_DEPTH: Final = 2  # levels of the tree by which values are united

Values = dict[int, set[bytes] | None]  # of each index; None are too many
Packed = Iterable[tuple[Key, bytes]]


class HadoopTransport:
    """One prebuild, until close(). Spark reads blocks as records of one length; a partition is what Hadoop takes for
    one.

    range_bytes: of the log, for each task; None: as many as suit the cluster
    at_once:     bytes of segments up to which the driver merges them
    """

    def __init__(self, context: SparkContext, stage: Stage, range_bytes: int | None, at_once: int) -> None:
        self._context, self._stage = context, stage
        self._name = stage.path.name
        self._range_bytes, self._at_once = range_bytes, at_once
        self._kept: list[RDD[Any]] = []

    def ranges(self, begins: Sequence[int], end: int, block_size: int) -> list[Range]:
        """What is to be scanned of a log that ends at `end`: see ranges_at."""
        remote = self._stage.remote
        check_whole(remote.uri, remote.size(), block_size)
        self._stage.begin(end, block_size)
        self._blocks, self._starts = remote.splits(block_size, self._range_bytes)
        return ranges_at(self._starts, begins, end)

    def scan(self, job: Job, tasks: Sequence[Task]) -> list[RangeHead]:
        """Have all scanned; what the driver must know of each range, in order."""
        self._describe("scanning")
        self._partials = self._keep(self._scanned(job, tasks))
        heads = self._collect(lambda partial: [((partial.head.number, 0), pickle.dumps(partial.head))])
        return sorted(pickle.loads(raw) for _, raw in heads)

    def _scanned(self, job: Job, tasks: Sequence[Task]) -> RDD[Partial]:
        starts = self._starts
        by_split: dict[int, list[Task]] = {}
        for task in tasks:
            by_split.setdefault(bisect_right(starts, task.part.start) - 1, []).append(task)

        def scan(number: int, blocks: Iterable[Any]) -> Iterable[Partial]:
            mine = by_split.get(number)
            return scan_blocks(job, mine, starts[number], blocks) if mine else ()

        scanned: RDD[Partial] = self._blocks.mapPartitionsWithIndex(sealed(scan))
        return scanned

    def values(self, numbers: Sequence[int]) -> Values:
        """All values that the bitmaps of these indexes are of."""
        self._describe("counting values of")
        partials = self._partials.map(lambda partial: values_in(partial, numbers))
        united: Values = partials.treeReduce(values_in_both, _DEPTH)
        return united

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

    def _keep(self, made: RDD[Any]) -> RDD[Any]:
        from pyspark import StorageLevel

        self._kept.append(made.persist(StorageLevel.DISK_ONLY))
        return self._kept[-1]

    def _collect(self, function: Callable[[Partial], Packed]) -> Packed:
        found: Packed = self._partials.flatMap(function).collect()
        return found

    def _describe(self, work: str) -> None:
        """Tell those who watch the cluster."""
        self._context.setJobDescription(f"jitdb: {work} {self._name}")

    def close(self) -> None:
        """Let the workers forget all of it."""
        with suppress(Exception):  # a session that is gone has nothing left to forget
            for kept in self._kept:
                kept.unpersist()
            self._context.setJobDescription(None)
