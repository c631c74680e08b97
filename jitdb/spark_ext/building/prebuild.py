"""prebuild(): a cluster builds the index files of a log, byte for byte those of the local engine after a merge.

    driver    what is stale? lock it; cut the log into ranges
    workers   scan each range into segments of its own (partial.py: the local engine's scan)
    driver    where do the records of each range stand? which indexes are of bitmaps, which of hashes?
    workers   move the segments to their places, merge those of each span (or the driver, when they are few)
    driver    append them to the index files, through the same code that the local engine writes them with

Nothing is written before everything was scanned. A driver that is killed while it writes leaves files that hold a part
of the log, as an interrupted local scan does: the next prebuild, or question, goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitdb.common.paths import SEQUENCE, TIMESTAMPS, parse_path
from jitdb.common.paths import Path as FieldPath
from jitdb.engine.checks import PathLike, paths_of
from jitdb.engine.plan import CoreFields, Requirement, requirements
from jitdb.errors import QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io.filenames import INDEXES
from jitdb.operators import equal
from jitdb.operators.nodes.operations import Operation
from jitdb.spark_ext.building.connect import is_connect
from jitdb.spark_ext.building.hadoop import Remote
from jitdb.spark_ext.building.rdds import AT_ONCE
from jitdb.spark_ext.building.staging import staged
from jitdb.spark_ext.building.summary import Built, Summary
from jitdb.spark_ext.building.tasks import Job, Task
from jitdb.spark_ext.building.ways import ConnectWay, HadoopWay, SharedWay, Way
from jitdb.spark_ext.building.work import Again, Work, files_read
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.failures import jitdb_errors
from jitdb.spark_ext.options import bytes_of, is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jitdb.spark_ext.building.partial import Head


def prebuild(
    spark: SparkSession | Callable[[], SparkSession],
    path: str | os.PathLike[str],
    *,
    fields: PathLike | Sequence[PathLike] = (),
    operations: Operation | Sequence[Operation] = (),
    indexes: IndexSpec | str | Sequence[IndexSpec | str] = (),
    folder: str | os.PathLike[str] | None = None,
    codec: str | None = None,
    block_size: int | None = None,
    timestamp: PathLike | Sequence[PathLike] = TIMESTAMPS,
    sequence: PathLike = SEQUENCE,
    range_bytes: int | str | None = None,
    merge_on_driver: int | str = AT_ONCE,
) -> Summary:
    """Bring index files of a log up to date, on a cluster. Only what they lack of the log is scanned.

    spark:      a session, or a function that starts one: of a path it is called when there is anything to do
    path:       a file that the driver and all workers see under this name, or a URI that Hadoop reads (hdfs, s3a …)
    fields:     paths whose values are asked for (equal, absent): an index each, of bitmaps or hashes as the data say
    operations: questions; all indexes that they need. Functions in them (predicates) are sent to the workers
    indexes:    further ones: an IndexSpec each, or a path whose numbers are compared ("timestamp", "sequence" too)
    folder:     where the files lie; by default in the log's sidecar, where the local engine looks for them
    range_bytes: of the log, for each task; by default so that each core has four, of 16 to 256 MiB (of a URI, what
                Hadoop calls a block, if that is more)
    merge_on_driver: bytes of segments up to which the driver merges them, beyond which the cluster does; both take
                text too, as Spark's settings do: "64m"
    The rest is explained at jitdb.open and JITDB. Where records lie, which are deleted, and both core columns are
    always brought up to date too.

    Raises CopyDiffers where a worker sees another file than the driver, LogChanged, SparkError, LogError, QueryError
    for an operation that cannot be asked; and what Spark makes of an error in a user's function.
    """
    core = CoreFields(paths_of(timestamp), (parse_path(sequence),))
    asked = (operations,) if isinstance(operations, Operation) else operations
    further = (indexes,) if isinstance(indexes, (IndexSpec, str)) else indexes
    needs = needs_of(paths_of(fields) if fields else (), asked, further, core)
    task = None if range_bytes is None else bytes_of(range_bytes, "range_bytes")
    at_once = bytes_of(merge_on_driver, "merge_on_driver") if merge_on_driver else 0
    files = files_read(needs, core) if folder is None else None
    with jitdb_errors(), ExitStack() as stack:
        name = os.fspath(path)

        def start() -> tuple[Way, str | Path]:
            made = spark() if callable(spark) else spark
            return _way(made, name, task, block_size, at_once, files, stack)

        way, local = start() if is_uri(name) else (None, name)
        log = stack.enter_context(_log(local, codec, block_size))
        where = Path(folder) if folder is not None else log.sidecar / INDEXES
        with Work(log, where, needs, core) as work:
            if way is None and not work.needs:
                return _summary(name, work, 0, [], 0, 0)
            way = way or start()[0]
            for _ in range(work.attempts):
                with suppress(Again):
                    return _build(way, work, name)
    raise SparkError(f"its indexes turn out damaged again and again: is the disk of {where} sound?", path=path)


def needs_of(
    fields: Sequence[FieldPath], operations: Sequence[Operation], indexes: Sequence[IndexSpec | str], core: CoreFields
) -> list[Requirement]:
    """The indexes that are asked for. Raises QueryError."""
    found = [need for field in fields for need in requirements(equal(field, None), core)]
    found += [need for operation in operations for need in requirements(operation, core)]
    for index in indexes:
        spec = index
        if isinstance(index, str):
            spec = core.column(index if index in ("timestamp", "sequence") else parse_path(index))
        if not isinstance(spec, IndexSpec):
            raise QueryError(f"an index is an IndexSpec, or the path of a column, not {index!r}")
        if spec.form == "predicate" or spec.index_type is not None:
            raise QueryError(
                f"{spec.file_name()}: building it takes a function", remedy="hand over its operation instead"
            )
        found.append(Requirement(spec))
    return found


def _log(path: str | os.PathLike[str], codec: str | None, block_size: int | None) -> Any:
    from jitdb.log import Log
    from jitdb.log.opening.missing import no_such_log

    if not os.path.exists(path):
        raise no_such_log(path, read_only=True)
    return Log(path, codec=codec, block_size=block_size, read_only=True)


def _way(
    spark: SparkSession,
    path: str,
    range_bytes: int | None,
    block_size: int | None,
    at_once: int,
    indexes: Callable[[str], bool] | None,
    stack: ExitStack,
) -> tuple[Way, str | Path]:
    """How workers come to the log, and where the driver finds it. indexes: see staged()."""
    if is_connect(spark):
        if is_uri(path):
            raise SparkError(
                "Spark Connect has no way to read a log by URI", path=path, remedy="use a session that is none"
            )
        return ConnectWay(spark, range_bytes), path
    context = spark.sparkContext
    if is_uri(path):
        stage = stack.enter_context(staged(Remote(context, path), block_size, indexes))
        return HadoopWay(context, stage, range_bytes, at_once), stage.path
    return SharedWay(context, range_bytes, at_once), path


def _build(way: Way, work: Work, path: str) -> Summary:
    begin = time.perf_counter()
    begins = [index.offset for index in work.begins]
    parts = way.ranges(begins, work.end, work.log.block_size)
    if not parts:
        return _summary(path, work, 0, [], 0, 0)
    job = Job(work.shape, work.fingerprint() if way.reads_paths else None, tuple(work.needs), frozenset(work.hashed))
    run = way.start(job, [Task(part, work.sums(part)) for part in parts], work.log.path.name)
    try:
        heads = run.heads()
        scanned = time.perf_counter()
        undecided = work.undecided(heads)
        if undecided:
            for number, keys in run.values(undecided).items():
                work.decide(number, keys, heads)
        work.write(run.segments(work.placing(heads, parts), heads))
    finally:
        run.close()
    work.warn_of(heads)
    return _summary(path, work, work.end - min(begins), heads, scanned - begin, time.perf_counter() - scanned)


def _summary(
    path: str, work: Work, scanned: int, heads: Sequence[Head], scan_seconds: float, write_seconds: float
) -> Summary:
    def built(index: Any, is_new: bool) -> Built:
        return Built(index.spec.file_name(), index.end_seq, index.size, is_new)

    damaged = {block for head in heads for block in head.broken(work.log.block_size)}
    every = [*(built(index, True) for index in work.indexes), *(built(index, False) for index in work.fresh)]
    return Summary(
        path=path,
        scanned=scanned,
        records=sum(head.records for head in heads),
        tasks=len(heads),
        malformed=sum(head.malformed for head in heads),
        damaged=tuple(sorted(damaged)),
        scan_seconds=scan_seconds,
        write_seconds=write_seconds,
        indexes=tuple(every),
    )
