"""The writer of the data source `jitdb`: a thin shell around job.py."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from jitdb.spark_ext.failures import sends_errors
from jitdb.spark_ext.reading.schema import arrow_schema
from jitdb.spark_ext.writing.encoding import RowEncoder
from jitdb.spark_ext.writing.job import Written, begin, clean_up, commit, write_part
from jitdb.spark_ext.writing.options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

logger: Final = logging.getLogger("jitdb.spark")


@dataclass
class PartWritten(WriterCommitMessage):
    """What a task tells the driver."""

    part: Written


@sends_errors
class LogWriter(DataSourceArrowWriter):
    """Made in the driver, where the job begins; writes in the tasks, commits or aborts in the driver."""

    def __init__(self, options: WriteOptions, schema: Any, overwrite: bool) -> None:
        self._keep_nulls = options.keep_nulls
        RowEncoder(arrow_schema(schema), self._keep_nulls)  # a column that cannot be written is refused at once
        self._target = begin(options.path, uuid.uuid4().hex[:12], options.codec, options.block_size, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartWritten:
        """The rows of one attempt at one partition."""
        context = TaskContext.get()
        assert context is not None
        attempt = f"{context.attemptNumber()}-{context.taskAttemptId()}"
        return PartWritten(write_part(self._target, context.partitionId(), attempt, self._values(iterator)))

    def _values(self, batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        encoder: RowEncoder | None = None
        for batch in batches:
            encoder = encoder or RowEncoder(batch.schema, self._keep_nulls)
            yield from encoder.values(batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All partitions were written."""
        parts = [message.part for message in messages if isinstance(message, PartWritten)]
        records = commit(self._target, parts)
        logger.info("%s: %d records were written", self._target.path, records)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The job failed: nothing of it stays."""
        clean_up(self._target)
