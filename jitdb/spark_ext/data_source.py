"""The data source `jitdb`: logs as tables of Spark, to read, to follow and to write. Its classes are thin: what they do
stands in the rooms beside, of which a worker imports what it does itself.
"""

from __future__ import annotations

import logging
import os
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from jitdb.errors import QueryError
from jitdb.operators.nodes.operation import Operation
from jitdb.spark_ext.columns import asked_columns, inferred, typed
from jitdb.spark_ext.conditions import is_condition, question_of
from jitdb.spark_ext.errors import jitdb_errors, sends_errors, sparks_words
from jitdb.spark_ext.options import FORMAT, ReadOptions, WriteOptions, as_options, check_text, log_path
from jitdb.spark_ext.reading.schema import Layout, arrow_schema, layout_of, table_schema
from jitdb.spark_ext.versions import Sealed, sealed
from jitdb.spark_ext.writing.encoding import RowEncoder, Written, write_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from jitdb.spark_ext.reading.partitions import Partition
    from jitdb.spark_ext.reading.planning import ReadPlan

logger: Final = logging.getLogger("jitdb.spark")


@sends_errors
class JitdbDataSource(DataSource):
    """A log as a table: spark.read.format("jitdb").load("my.log"). docs/spark.md tells its options."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return FORMAT

    def schema(self) -> Any:
        """The columns that were asked for, or that a sample of the records suggests."""
        from jitdb.spark_ext.reading.many import samples
        from jitdb.spark_ext.reading.times import type_of_times

        options = _with_time(ReadOptions.of(self.options))
        records = list(samples(options))
        time = type_of_times(records, options.fields.timestamp, options.time_unit)
        if options.columns is None:
            return table_schema(inferred(records, options.core, time))
        return table_schema(typed(options.columns, records, options.core, time))

    def reader(self, schema: Any) -> LogReader:
        """Reads the log as it is when the query is planned."""
        return LogReader(*self._read(schema))

    def streamReader(self, schema: Any) -> Any:  # noqa: N802
        """Follows the log: spark.readStream.format("jitdb")."""
        from jitdb.spark_ext.streaming.reader import LogStreamReader

        return LogStreamReader(*self._read(schema))

    def _read(self, schema: Any) -> tuple[ReadOptions, Layout]:
        options = _with_time(ReadOptions.of(self.options))
        return options, layout_of(schema, options.columns, options.fields.timestamp, options.time_unit)

    def writer(self, schema: Any, overwrite: bool) -> LogWriter:
        """Writes rows as records: df.write.format("jitdb").mode("append" or "overwrite")."""
        return LogWriter(WriteOptions.of(self.options), schema, overwrite)


def _with_time(options: ReadOptions) -> ReadOptions:
    """With the fields that say when a record was made, found where none is named. Raises LogError."""
    from jitdb.spark_ext.reading.many import declared_time

    return options if options.timestamp is not None else replace(options, timestamp=declared_time(options))


@sends_errors
class LogReader(Sealed, DataSourceReader):
    """Plans, in the driver, and reads, in the tasks. It defines no pushFilters: see docs/spark.md."""

    def __init__(self, options: ReadOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout

    def partitions(self) -> Sequence[InputPartition]:
        """What each task reads; None: there is nothing to read."""
        return [InputPartition(each) for each in self.plan()[0] or (None,)]

    def plan(self) -> tuple[list[tuple[Partition, ...]], ReadPlan]:
        """What the tasks read, and what there is to tell of it. Raises LogChanged, LogError, QueryError, OSError."""
        from jitdb.spark_ext.reading.many import plans

        return plans(self._options, self._layout)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        from jitdb.spark_ext.reading.batches import read_partition

        for part in partition.value or ():
            yield from read_partition(part, self._layout, permissive=self._options.permissive)


@dataclass
class PartitionWritten(WriterCommitMessage):
    """What a task tells the driver."""

    written: list[Written]


@sends_errors
class LogWriter(Sealed, DataSourceArrowWriter):
    """Made in the driver, where the job begins; writes in the tasks, commits or aborts in the driver."""

    def __init__(self, options: WriteOptions, schema: Any, overwrite: bool) -> None:
        from pyarrow import schema as pa_schema

        from jitdb.spark_ext.writing.job import begin
        from jitdb.spark_ext.writing.partitioned import check_columns

        self._keep_nulls, by = options.keep_nulls, options.partition_by
        columns = arrow_schema(schema)
        if by:
            check_columns(columns, by)
            columns = pa_schema([each for each in columns if each.name not in by])
        RowEncoder(columns, self._keep_nulls)  # a column that cannot be written is refused at once
        self._target = begin(options.path, uuid.uuid4().hex[:12], options.codec, options.block_size, overwrite, by)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionWritten:
        """The rows of one attempt at one partition."""
        context = TaskContext.get()
        assert context is not None
        attempt = f"{context.attemptNumber()}-{context.taskAttemptId()}"
        number = context.partitionId()
        if self._target.by:
            from jitdb.spark_ext.writing.partitioned import write_partitioned

            return PartitionWritten(write_partitioned(self._target, number, attempt, iterator, self._keep_nulls))
        return PartitionWritten([write_partition(self._target, number, attempt, self._values(iterator))])

    def _values(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        encoder: RowEncoder | None = None
        codec = self._target.find_codec()
        for batch in batches:
            encoder = encoder or RowEncoder(batch.schema, self._keep_nulls)
            yield from encoder.rows(batch, codec)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All partitions were written."""
        from jitdb.spark_ext.writing.job import commit

        told = [each.written for each in messages if isinstance(each, PartitionWritten)]
        records = commit(self._target, [written for each in told for written in each])
        logger.info("%s: %d records were written", self._target.path, records)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """The job failed: nothing of it stays."""
        from jitdb.spark_ext.writing.job import clean_up

        clean_up(self._target)


# --- for programs ----------------------------------------------------------------------------------------------------

_registered: weakref.WeakSet[Any] = weakref.WeakSet()  # sessions: Spark warns of a second time


def register(spark: SparkSession) -> None:
    """Make the format `jitdb` known to a session: spark.read.format("jitdb"), readStream, write.

    Once a session, and in each further thread that writes: Spark's writer looks for formats in the active session of
    its Java thread, and that of a plain thread has none ("Failed to find the data source").
    """
    from jitdb.spark_ext.pushdown import watch

    java: Any = getattr(spark, "_jvm", None)  # none with Spark Connect, whose server knows the session
    if java is not None:  # before: Spark asks the active session whether a name is taken
        java.SparkSession.setActiveSession(spark._jsparkSession)
        watch(spark)
    if spark not in _registered:
        spark.dataSource.register(sealed(JitdbDataSource))
        _registered.add(spark)


def read_log(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: str | Sequence[Any] | Mapping[str, Any] | None = None,
    where: Operation | Column | str | None = None,
    *,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """A log as a DataFrame: a row a live record.

    path:    that all machines share
    columns: paths of fields, or a map of names to paths, or to tuples of a path and a type; "*" is the whole record.
             None: whatever a sample of the records holds
    where:   an operation, or an expression as text: only its answers are rows; or a condition of these columns in
             Spark's words: F.col("status") >= 500, F.expr("status >= 500 AND NOT ok")
    schema:  Spark's schema (or its DDL), in the place of the columns' types
    options: see docs/spark.md: indexes="build", core="seq", mode="PERMISSIVE", …

    Each call plans anew, so it sees the log as it is when its answer is first asked for. Raises QueryError, LogError;
    what goes wrong while the rows are read is Spark's to raise: see jitdb_errors().
    """
    place = log_path(path)  # in full: tasks and Java have working folders of their own
    check_text("the path", place)
    register(spark)
    if is_condition(where):
        return _where(read_log(spark, path, columns, schema=schema, **options), where, spark, path, columns, options)
    reader = spark.read.format(FORMAT).options(**as_options(spark, columns, where, options))
    if schema is not None:
        reader = reader.schema(schema)
    with jitdb_errors():
        return reader.load(place)


def _where(every: DataFrame, where: Any, spark: SparkSession, path: Any, columns: Any, options: Any) -> DataFrame:
    """The rows of a table of which a condition of Spark's is true: the log finds them, and Spark asks it again."""
    try:
        question = question_of(every, where, asked_columns(columns))
    except Exception as error:
        said = sparks_words(error)
        if said is None:
            raise
        if "UNRESOLVED_COLUMN" in said:
            reason, remedy = f"the condition is of no column of the table: {said}", "name the field in columns, too"
        else:
            reason, remedy = f"Spark does not take the condition: {said}", "write a simpler one, or in jitdb's words"
        raise QueryError(reason, remedy=remedy) from error
    return read_log(spark, path, columns, question, schema=every.schema, **options).filter(where)


def explain_log(
    path: str | os.PathLike[str],
    columns: Any = None,
    where: Operation | str | None = None,
    *,
    schema: Any = None,
    spark: SparkSession | None = None,
    **options: Any,
) -> ReadPlan:
    """How read_log would be planned now: the blocks that are read and skipped, the tasks, the rows if known.

    spark:  whose cores decide how many tasks there are; None: this machine's
    schema: as for read_log; as DDL it takes a session of Spark

    Nothing is read but indexes (and headers of records, where these are behind), and a sample where columns lack a
    type; with indexes="build", indexes are built. Raises QueryError, LogError.
    """
    source = JitdbDataSource(options={**as_options(spark, columns, where, options), "path": os.fspath(path)})
    with jitdb_errors():
        if schema is None:
            schema = source.schema()
        elif isinstance(schema, str):
            schema = StructType.fromDDL(schema)
        return source.reader(schema).plan()[1]
