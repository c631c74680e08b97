"""The stream reader of the data source `jitdb`: a thin shell around stream.py, which drivers alone import; and what a
task reads of a batch, also where a compaction takes the log's place meanwhile.

A place in the log is known again after a compaction (cursor.py), so what such a task had not read yet is planned again,
in the task: the same records, but for those that were deleted, at the places that they have now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from jitdb.engine.cursor import Cursor
from jitdb.errors import LogError
from jitdb.spark_ext.errors import CopyDiffers, LogChanged, SparkError, sends_errors
from jitdb.spark_ext.versions import Sealed

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

    from jitdb.spark_ext.options import ReadOptions
    from jitdb.spark_ext.reading.partitions import Partition, Records
    from jitdb.spark_ext.reading.schema import Layout
    from jitdb.spark_ext.streaming.files_stream import FilesStream
    from jitdb.spark_ext.streaming.stream import Limit, LogStream


@sends_errors
class LogStreamReader(Sealed, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the log in the driver, for as long as the query runs; reads in the tasks."""

    def __init__(self, options: ReadOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout
        self._stream: LogStream | FilesStream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stream": None}  # tasks follow nothing

    @property
    def _log(self) -> Any:
        """What is followed; which kind it is decides what a place is."""
        from jitdb.spark_ext.streaming.files_stream import stream_of

        if self._stream is None:
            self._stream = stream_of(self._options)
        return self._stream

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        return self._offset(self._log.first())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options say of the size of a batch."""
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable() if self._options.max_records is None else ReadMaxRows(self._options.max_records)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends."""
        place = self._log.of_offset(start)
        end = self._log.next(place, self._limit(limit))
        return start if end is place else self._offset(end)

    def _offset(self, place: Any) -> dict[str, Any]:
        offset: dict[str, Any] = self._log.as_offset(place)
        return offset

    def _limit(self, limit: ReadLimit) -> Limit:
        from jitdb.spark_ext.streaming.stream import Limit

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
        return self._offset(self._log.latest())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what there is now, in batches, then end."""
        self._log.stop_here()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """What each task of a batch reads."""
        begin, stop = (self._log.of_offset(each) for each in (start, end))
        found = self._log.partitions(begin, stop, slow=self._layout.is_slow)
        return [InputPartition(each) for each in found or (None,)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        for part in partition.value or ():
            yield from read_share(part, self._layout, self._options)

    def stop(self) -> None:
        """The query has ended."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


# --- in a task -------------------------------------------------------------------------------------------------------


def read_share(partition: Partition, layout: Layout, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a partition of a batch, each once. Raises LogChanged, and as read_partition does."""
    from jitdb.spark_ext.reading.batches import read_partition
    from jitdb.spark_ext.streaming.text_share import TextPartition, read_text

    if isinstance(partition, TextPartition):
        yield from read_text(partition, layout, options)
        return
    left = [partition]
    while left:
        share = left.pop(0)
        done = [_place(share, share.runs[0].first_seq, share.runs[0].start)]

        def note(records: Records, share: Partition = share, done: list[Cursor] = done) -> None:
            if len(records.seqs):
                done.append(_place(share, int(records.seqs[-1]) + 1, int(records.offsets[-1]) + 1))

        try:
            yield from read_partition(share, layout, permissive=options.permissive, done=note)
        except (CopyDiffers, LogChanged):
            rest = _planned_again(share, done[-1], layout, options)
            if rest is None:
                raise
            left[:0] = rest


def _planned_again(partition: Partition, start: Cursor, layout: Layout, options: ReadOptions) -> list[Partition] | None:
    """The rest of a partition, from there on, of the log as it is now; None where it was not compacted, as it seems."""
    from jitdb.spark_ext.streaming.stream import LogStream

    run = partition.runs[0]
    try:
        stream = LogStream(replace(options, path=partition.snapshot.path, shared=partition.shared))
    except (LogError, SparkError, OSError):
        return None
    with closing(stream):
        if not stream.is_compacted(start):
            return None
        return stream.parts(start, _place(partition, run.stop_seq, run.stop), slow=layout.is_slow)


def _place(partition: Partition, seq: int, offset: int) -> Cursor:
    return Cursor(partition.snapshot.identity, partition.snapshot.generation, seq, offset)
