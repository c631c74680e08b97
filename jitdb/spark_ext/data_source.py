"""The data source `jitdb`: logs as tables of Spark. Its classes are thin: what they do stands in the files beside."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jitdb.log.reading.sampling import sample
from jitdb.operators.nodes.operations import Operation
from jitdb.spark_ext.failures import jitdb_errors, sends_errors
from jitdb.spark_ext.options import path_in
from jitdb.spark_ext.reading.columns import asked_columns, to_form
from jitdb.spark_ext.reading.inference import inferred, typed
from jitdb.spark_ext.reading.options import Options, text_of_paths
from jitdb.spark_ext.reading.partitions import LogPartition, read_partition
from jitdb.spark_ext.reading.parts import Part
from jitdb.spark_ext.reading.planning import Planner, ReadPlan, open_log
from jitdb.spark_ext.reading.schema import Layout, layout_of, table_schema
from jitdb.spark_ext.writing.options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "jitdb"


@sends_errors
class JitdbDataSource(DataSource):
    """A log as a table: spark.read.format("jitdb").load("my.log"). docs/spark.md tells its options."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return FORMAT

    def schema(self) -> Any:
        """The columns that were asked for, or that a sample of the records suggests."""
        options = Options.of(self.options)
        with open_log(options) as log:
            records = sample(log, options.sample)
            if options.columns is None:
                return table_schema(inferred(records, options.core))
            return table_schema(typed(options.columns, records, options.core))

    def reader(self, schema: Any) -> LogReader:
        """Reads the log as it is when the query is planned."""
        options = Options.of(self.options)
        return LogReader(options, layout_of(schema, options.columns, options.fields.timestamp))

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """Writes rows as records: df.write.format("jitdb").mode("append" or "overwrite")."""
        from jitdb.spark_ext.writing.writer import LogWriter

        return LogWriter(WriteOptions.of(self.options), schema, overwrite)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802
        """Follows the log: spark.readStream.format("jitdb")."""
        from jitdb.spark_ext.streaming.reader import LogStreamReader

        options = Options.of(self.options)
        return LogStreamReader(options, layout_of(schema, options.columns, options.fields.timestamp))


@sends_errors
class LogReader(DataSourceReader):
    """Plans, in the driver, and reads, in the tasks. It defines no pushFilters: see docs/spark.md."""

    def __init__(self, options: Options, layout: Layout) -> None:
        self._options = options
        self._layout = layout

    def partitions(self) -> Sequence[InputPartition]:
        """What each task reads."""
        parts, _ = self.plan()
        return [LogPartition(part) for part in parts] or [LogPartition(None)]

    def plan(self) -> tuple[list[Part], ReadPlan]:
        """The tasks' parts, and what there is to tell of them. Raises LogChanged, LogError, QueryError, OSError."""
        with Planner(self._options, with_seqs=self._layout.asks("seq"), slow=self._layout.is_slow) as planner:
            return planner.plan()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_partition(partition, self._layout, self._options)


_registered: weakref.WeakSet[Any] = weakref.WeakSet()  # sessions: Spark warns of a second time


def register(spark: SparkSession) -> None:
    """Make the format `jitdb` known to a session: spark.read.format("jitdb"), readStream, write.

    Once a session, and in each further thread that writes: Spark's writer looks for formats in the active session of
    its Java thread, and that of a plain thread has none ("Failed to find the data source").
    """
    if spark not in _registered:
        spark.dataSource.register(JitdbDataSource)
        _registered.add(spark)
    java: Any = getattr(spark, "_jvm", None)  # none with Spark Connect, whose server knows the session
    if java is not None:
        java.SparkSession.setActiveSession(spark._jsparkSession)


def read_log(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: str | Sequence[Any] | Mapping[str, Any] | None = None,
    where: Operation | str | None = None,
    *,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """A log as a DataFrame: a row a live record.

    path:    that all machines share
    columns: paths of fields, or a map of names to paths, or to tuples of a path and a type; "*" is the whole record.
             None: whatever a sample of the records holds
    where:   an operation, or an expression as text: only its answers are rows
    schema:  Spark's schema (or its DDL), in the place of the columns' types
    options: see docs/spark.md: indexes="build", core="seq", mode="PERMISSIVE", …

    Each call plans anew, so it sees the log as it is when its answer is first asked for. Raises QueryError, LogError;
    what goes wrong while the rows are read is Spark's to raise: see jitdb_errors().
    """
    place = path_in({"path": os.fspath(path)})  # in full: tasks and Java have working folders of their own
    register(spark)
    reader = spark.read.format(FORMAT)
    for name, value in as_options(spark, columns, where, options).items():
        reader = reader.option(name, value)
    if schema is not None:
        reader = reader.schema(schema)
    with jitdb_errors():
        return reader.load(place)


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


def as_options(
    spark: SparkSession | None, columns: Any, where: Operation | str | None, options: Mapping[str, Any]
) -> MutableMapping[str, str]:
    """The options as Spark takes them: text."""
    import json

    from jitdb.operators.text.json import to_json

    found: dict[str, str] = {}
    if spark is not None and hasattr(spark, "sparkContext"):
        found["cores"] = str(spark.sparkContext.defaultParallelism)
    asked = asked_columns(columns)
    if asked is not None:
        found["columns"] = to_form(asked)
    if isinstance(where, Operation):
        found["where"] = json.dumps(to_json(where))
    elif where is not None:
        found["where"] = where
    for name, value in options.items():
        if value is not None:  # as if it were not given
            plain = name.replace("_", "")
            found[plain] = _text(plain.lower(), value)
    return found


def _text(option: str, value: Any) -> str:
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return os.path.abspath(text) if option == "indexfolder" else text  # in full, as the log's own path
    if option == "timestamp":
        return text_of_paths(value)
    if option == "sequence":
        return text_of_paths([value])
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
