"""The stream reader of the data source `jitdb`: a thin shell around stream.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.failures import sends_errors
from jitdb.spark_ext.reading.partitions import LogPartition
from jitdb.spark_ext.streaming.stream import Limit, LogStream, as_offset, of_offset

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError as error:
    raise SparkError(f"streams of logs need pyspark 4.2 or newer: {error}") from error

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.spark_ext.reading.options import Options
    from jitdb.spark_ext.reading.schema import Layout


@sends_errors
class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the log in the driver, for as long as the query runs; reads in the tasks."""

    def __init__(self, options: Options, layout: Layout) -> None:
        self._options = options
        self._layout = layout
        self._stream: LogStream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stream": None}  # tasks follow nothing

    @property
    def _log(self) -> LogStream:
        if self._stream is None:
            self._stream = LogStream(self._options)
        return self._stream

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        return as_offset(self._log.first())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options say of the size of a batch."""
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable() if self._options.max_records is None else ReadMaxRows(self._options.max_records)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends."""
        return as_offset(self._log.next(of_offset(start), self._limit(limit)))

    def _limit(self, limit: ReadLimit) -> Limit:
        if isinstance(limit, ReadAllAvailable):
            return Limit()
        # Spark hands one limit back; where there are two, the batch keeps both.
        records, size = self._options.max_records, self._options.max_bytes
        if isinstance(limit, ReadMaxRows):
            records = limit.max_rows
        if isinstance(limit, ReadMaxBytes):
            size = limit.max_bytes
        return Limit(records, size)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The log's end, for those who watch the query."""
        return as_offset(self._log.latest())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what there is now, in batches, then end."""
        self._log.stop_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What each task of a batch reads."""
        parts = self._log.parts(of_offset(start), of_offset(end), slow=self._layout.is_slow)
        return [LogPartition(part) for part in parts] or [LogPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        from jitdb.spark_ext.streaming.batch import read_share  # compiled kernels: in tasks alone

        assert isinstance(partition, LogPartition)
        return iter(()) if partition.value is None else read_share(partition.value, self._layout, self._options)

    def stop(self) -> None:
        """The query has ended."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
