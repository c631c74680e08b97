"""The partitions of the data source `jitdb`, and what a task does with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from jitdb.spark_ext.reading.parts import Part

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.spark_ext.reading.options import Options
    from jitdb.spark_ext.reading.schema import Layout


class LogPartition(InputPartition):
    """The share of one task; None: there is nothing to read."""

    value: Part | None


def read_partition(partition: InputPartition, layout: Layout, options: Options) -> Iterator[pa.RecordBatch]:
    """The rows of one task."""
    from jitdb.spark_ext.reading.batches import read_part  # compiled kernels: in tasks alone

    assert isinstance(partition, LogPartition)
    if partition.value is None:
        return iter(())
    return read_part(partition.value, layout, permissive=options.permissive)
