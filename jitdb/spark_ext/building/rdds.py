"""Running a prebuild as jobs over an RDD: the least overhead that Spark has for Python.

    tasks -> scan -> partials, kept on the workers' disks
                       heads  -> driver: record counts, so where each range's records stand; bitmaps or hashes
                       values -> only where the heads leave open which
                       segments -> driver, which merges; or, when they are many, merged on the workers, an index and a
                                   span at a time, and then to the driver in order

A partial that is lost with a worker is scanned again, so a retry or a second attempt at a task changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.building.joining import Placing
from jitdb.spark_ext.building.partial import Head, Partial
from jitdb.spark_ext.building.tasks import (
    PART_BYTES,
    Key,
    join_packed,
    place_packed,
    values_in,
    values_in_both,
)
from jitdb.spark_ext.building.wire import unpack

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.rdd import RDD

    from jitdb.indexes.segment import Segment

AT_ONCE: Final = 128 << 20  # bytes of segments that the driver merges by itself: beyond, it would be the limit
_DEPTH: Final = 2  # levels of the tree by which values are united


class RddRun:
    """One prebuild's partials on a cluster, until close()."""

    def __init__(self, context: SparkContext, partials: RDD[Partial], name: str, at_once: int = AT_ONCE) -> None:
        from pyspark import StorageLevel

        self._context = context
        self._partials = partials.persist(StorageLevel.DISK_ONLY)
        self._merged: RDD[Any] | None = None
        self._name = name
        self._at_once = at_once

    def heads(self) -> list[Head]:
        """Scan; what the driver must know of each range, in order."""
        self._context.setJobDescription(f"jitdb: scanning {self._name}")
        return sorted(self._partials.map(lambda partial: partial.head).collect())

    def values(self, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
        """All values that the bitmaps of these indexes are of; None for too many."""
        self._context.setJobDescription(f"jitdb: counting values of {self._name}")
        found = self._partials.map(lambda partial: values_in(partial, numbers))
        united: dict[int, set[bytes] | None] = found.treeReduce(values_in_both, _DEPTH)
        return united

    def segments(self, placing: Placing, heads: Sequence[Head]) -> Iterator[tuple[int, Segment]]:
        """The merged segments of all indexes, those of one index in order."""
        size = sum(head.bytes for head in heads)
        if size <= self._at_once:
            return self._merge_here(placing)
        return self._merge_there(placing, max(size // PART_BYTES, self._context.defaultParallelism) + 1)

    def _merge_here(self, placing: Placing) -> Iterator[tuple[int, Segment]]:
        self._context.setJobDescription(f"jitdb: fetching the indexes of {self._name}")
        groups: dict[Key, list[bytes]] = {}
        for key, raw in self._partials.flatMap(lambda partial: place_packed(placing, partial)).collect():
            groups.setdefault(key, []).append(raw)
        for key in sorted(groups):
            yield key[0], unpack(join_packed(groups.pop(key)))

    def _merge_there(self, placing: Placing, parts: int) -> Iterator[tuple[int, Segment]]:
        from pyspark import StorageLevel

        self._context.setJobDescription(f"jitdb: merging the indexes of {self._name}")
        placed = self._partials.flatMap(lambda partial: place_packed(placing, partial))
        keys = sorted(placed.keys().distinct().collect())
        part_of = _in_order(keys, parts)
        grouped = placed.groupByKey(min(parts, len(keys)), part_of).mapValues(join_packed)
        self._merged = grouped.persist(StorageLevel.DISK_ONLY)
        self._merged.count()  # all at once: an iterator alone would have one merged after the other
        self._context.setJobDescription(f"jitdb: writing the indexes of {self._name}")
        for part in self._merged.mapPartitions(lambda pairs: [sorted(pairs)]).toLocalIterator(prefetchPartitions=True):
            for (number, _), raw in part:
                yield number, unpack(raw)

    def close(self) -> None:
        """Let the workers forget all of it."""
        with suppress(Exception):  # a session that is gone has nothing left to forget
            for kept in (self._partials, self._merged):
                if kept is not None:
                    kept.unpersist()
            self._context.setJobDescription(None)


def _in_order(keys: list[Key], parts: int) -> Callable[[Any], int]:
    """A partitioner that keeps the order of these keys."""
    parts = min(parts, len(keys))
    place = {key: at * parts // len(keys) for at, key in enumerate(keys)}
    return lambda key: place[key]
