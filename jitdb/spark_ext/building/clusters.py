"""How a cluster is made to do things: one interface, over RDDs and over Spark Connect.

Functions and what they are asked travel to the workers, and small answers back. A task that is lost is done again, so
what it does must come to the same. What functions need is sent with them by name: workers import spans.py.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.spark_ext.versions import sealed

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

CORES_UNKNOWN: Final = 8  # of a cluster that does not tell: tasks are smaller then than they might be

T = TypeVar("T")
R = TypeVar("R")


class Cluster(ABC):
    """A cluster whose machines see the driver's files under their names. cores: about how many it has."""

    cores: int

    @abstractmethod
    def run(self, work: str, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """What the function makes of each of these, a task each, in their order. `work`: for those who watch."""

    def close(self) -> None:
        """Nobody works for us any more."""
        return


class RddCluster(Cluster):
    """Jobs over an RDD are the least overhead that Spark has for Python."""

    def __init__(self, context: SparkContext, name: str) -> None:
        self._context, self._name = context, name
        self.cores = context.defaultParallelism

    def run(self, work: str, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        self._context.setJobDescription(f"jitdb: {work} {self._name}")
        return self._context.parallelize(items, len(items)).map(sealed(function)).collect() if items else []

    def close(self) -> None:
        with suppress(Exception):  # a session that is gone has nothing to forget
            self._context.setJobDescription(None)


class ConnectCluster(Cluster):
    """Spark Connect has no RDDs: a table, and a function over its Arrow batches."""

    cores = CORES_UNKNOWN

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, work: str, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        import pyarrow as pa

        function = sealed(function)

        def each(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number, raw in zip(*(batch.column(name).to_pylist() for name in ("number", "raw")), strict=True):
                    made = pickle.dumps(function(pickle.loads(raw)))
                    yield pa.RecordBatch.from_pydict({"number": [number], "raw": [made]})

        if not items:
            return []
        rows = {"number": range(len(items)), "raw": pa.array([pickle.dumps(item) for item in items], pa.binary())}
        table = self._spark.createDataFrame(pa.Table.from_pydict(rows))
        # By range, each goes to a partition of its own: a function would take all of them, and their checksums, along.
        found = table.repartitionByRange(len(items), "number").mapInArrow(each, "number long, raw binary").collect()
        return [pickle.loads(row["raw"]) for row in sorted(found, key=lambda row: row["number"])]


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
