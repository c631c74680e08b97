"""Running a prebuild over Spark Connect, which has no RDDs: tables of bytes, through functions over Arrow batches.

(number, task) -> scan -> (number, head, partial), kept by the cluster
                         head    -> driver
                         partial -> place -> (index, span, segment) -> merge, a span at a time -> driver
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.spark_ext.building.partial import Head
from jitdb.spark_ext.building.tasks import Job, Task, join_packed, place_packed, scan_shared, values_in, values_in_both
from jitdb.spark_ext.building.wire import unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jitdb.indexes.segment import Segment
    from jitdb.spark_ext.building.joining import Placing

_TASKS: Final = "number long, task binary"
_SCANNED: Final = "number long, head binary, partial binary"
_PLACED: Final = "index long, span long, segment binary"
_VALUES: Final = "found binary"


class ConnectRun:
    """One prebuild's partials on a cluster, until close(). What functions need of this module is sent with them."""

    def __init__(self, spark: SparkSession, job: Job, tasks: Sequence[Task]) -> None:
        from pyspark import StorageLevel

        def scan(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for raw in batch.column(1).to_pylist():
                    partial = scan_shared(job, pickle.loads(raw))
                    row = {
                        "number": [partial.head.number],
                        "head": [pickle.dumps(partial.head)],
                        "partial": [pickle.dumps(partial)],
                    }
                    yield pa.RecordBatch.from_pydict(row, schema=_schema(_SCANNED))

        # By range, each goes to a partition of its own: a function would take all of them, and their checksums, along.
        scanned = _table(spark, tasks).repartitionByRange(len(tasks), "number").mapInArrow(scan, _SCANNED)
        self._partials: DataFrame = scanned.persist(StorageLevel.DISK_ONLY)
        self._merged: DataFrame | None = None

    def heads(self) -> list[Head]:
        """Scan; what the driver must know of each range, in order."""
        rows = self._partials.select("number", "head").collect()
        return sorted(pickle.loads(row["head"]) for row in rows)

    def values(self, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
        """All values that the bitmaps of these indexes are of; None for too many."""

        def look(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for raw in batch.column(0).to_pylist():
                    found = [pickle.dumps(values_in(pickle.loads(raw), numbers))]
                    yield pa.RecordBatch.from_pydict({"found": found}, schema=_schema(_VALUES))

        united: dict[int, set[bytes] | None] = {number: set() for number in numbers}
        for row in self._partials.select("partial").mapInArrow(look, _VALUES).toLocalIterator():
            united = values_in_both(united, pickle.loads(row["found"]))
        return united

    def segments(self, placing: Placing, heads: Sequence[Head]) -> Iterator[tuple[int, Segment]]:
        """The merged segments of all indexes, those of one index in order."""
        from pyspark import StorageLevel

        def place(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for raw in batch.column(0).to_pylist():
                    for (index, span), packed in place_packed(placing, pickle.loads(raw)):
                        row = {"index": [index], "span": [span], "segment": [packed]}
                        yield pa.RecordBatch.from_pydict(row, schema=_schema(_PLACED))

        def merge(table: Any) -> Any:
            import pyarrow as pa

            index, span = table.column("index")[0].as_py(), table.column("span")[0].as_py()
            merged = join_packed(table.column("segment").to_pylist())
            row = {"index": [index], "span": [span], "segment": [merged]}
            return pa.Table.from_pydict(row, schema=_schema(_PLACED))

        placed = self._partials.select("partial").mapInArrow(place, _PLACED)
        merged = placed.groupBy("index", "span").applyInArrow(merge, _PLACED).persist(StorageLevel.DISK_ONLY)
        self._merged = merged
        for row in merged.orderBy("index", "span").toLocalIterator(prefetchPartitions=True):
            yield row["index"], unpack(bytes(row["segment"]))

    def close(self) -> None:
        """Let the workers forget all of it."""
        with suppress(Exception):  # a session that is gone has nothing left to forget
            for kept in (self._partials, self._merged):
                if kept is not None:
                    kept.unpersist()


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _table(spark: SparkSession, tasks: Sequence[Task]) -> DataFrame:
    """The tasks, a row each."""
    import pyarrow as pa

    rows = {"number": range(len(tasks)), "task": [pickle.dumps(task) for task in tasks]}
    return spark.createDataFrame(pa.Table.from_pydict(rows, schema=_schema(_TASKS)))


def _schema(text: str) -> Any:
    """The Arrow schema of columns of integers and bytes."""
    import pyarrow as pa

    kinds = {"long": pa.int64(), "binary": pa.binary()}
    return pa.schema([(name, kinds[kind]) for name, kind in (column.split() for column in text.split(", "))])
