"""prebuild(): a cluster builds the index files of a log, byte for byte those of the local engine after a merge.

    driver    what is stale? lock it; cut the log into ranges
    workers   scan each range into segments of its own (scanning.py: the local engine's scan)
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
from typing import TYPE_CHECKING, Final

from jitdb.common.paths import SEQUENCE, parse_path
from jitdb.common.paths import Path as FieldPath
from jitdb.common.times import AUTO, Unit
from jitdb.engine.checks import paths_of, unit_of
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.plan import requirements
from jitdb.engine.roles import found_time
from jitdb.errors import QueryError, Remedy
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.log.any_log import open_any
from jitdb.log.io.filenames import INDEXES
from jitdb.log.lines.form import line_form
from jitdb.log.lines.line_log import LineLog
from jitdb.log.objects.urls import is_url
from jitdb.log.opening.open_log import no_such_log
from jitdb.operators import equal, gte
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.text.taken import operation_of
from jitdb.spark_ext.building.clusters import Cluster, ConnectCluster, RddCluster, is_connect
from jitdb.spark_ext.building.driver import Again, Driver, files_read
from jitdb.spark_ext.building.hadoop import Remote, staged
from jitdb.spark_ext.building.objects import Job, prebuild_objects
from jitdb.spark_ext.building.scanning import RangeHead
from jitdb.spark_ext.building.sharing import AT_ONCE, SharedBuild
from jitdb.spark_ext.building.summary import Built, Summary
from jitdb.spark_ext.building.transports import HadoopTransport
from jitdb.spark_ext.errors import SparkError, jitdb_errors, refuse_table
from jitdb.spark_ext.options import bytes_of, is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OBJECTS: Final = ("s3://", "az://")  # which Hadoop does not read


def prebuild(
    spark: SparkSession | Callable[[], SparkSession],
    path: str | os.PathLike[str],
    *,
    fields: PathLike | Sequence[PathLike] = (),
    operations: str | Operation | Sequence[str | Operation] = (),
    indexes: IndexSpec | str | Sequence[IndexSpec | str] = (),
    folder: str | os.PathLike[str] | None = None,
    codec: str | None = None,
    block_size: int | None = None,
    allow_prefix: bool = False,
    log_format: str | None = None,
    timestamp: PathLike | Sequence[PathLike] | None = None,
    time_unit: Unit = AUTO,
    sequence: PathLike = SEQUENCE,
    range_bytes: int | str | None = None,
    merge_on_driver: int | str = AT_ONCE,
) -> Summary:
    """Bring index files of a log up to date, on a cluster. Only what they lack of the log is scanned.

    spark:      a session, or a function that starts one: of a path it is called when there is anything to do
    path:       a file that the driver and all workers see under this name, a URI that Hadoop reads (hdfs, s3a …), or an
                object of a store, a folder or a pattern of some (s3, gs, az, http)
    fields:     paths whose values are asked for (equal, absent): an index each, of bitmaps or hashes as the data say
    operations: questions, also as text; all indexes that they need. Functions in them (predicates) are sent to workers
    indexes:    further ones: an IndexSpec each, or a path whose numbers are compared ("timestamp", "sequence" too)
    folder:     where the files lie; by default in the log's sidecar, where the local engine looks for them. Of objects
                a place in a store, by which machines share them
    range_bytes: of the log, for each task; by default so that each core has four, of 16 to 256 MiB (of a URI, what
                Hadoop calls a block, if that is more)
    merge_on_driver: bytes of segments up to which the driver merges them, beyond which the cluster does; both take
                text too, as Spark's settings do: "64m"
    The rest is explained at jitdb.open and JITDB. Where records lie, which are deleted, and the declared time
    are always brought up to date too.

    Raises CopyDiffers where a worker sees another file than the driver, LogChanged, SparkError, LogError, QueryError
    for an operation that cannot be asked; and what Spark makes of an error in a user's function.
    """
    named = None if timestamp is None else paths_of(timestamp)
    core = CoreFields(named, (parse_path(sequence),), unit_of(time_unit))
    asked = (operations,) if isinstance(operations, (str, Operation)) else operations
    further = (indexes,) if isinstance(indexes, (IndexSpec, str)) else indexes
    needs = needs_of(paths_of(fields) if fields else (), asked, further, core)
    task = None if range_bytes is None else bytes_of(range_bytes, "range_bytes")
    at_once = bytes_of(merge_on_driver, "merge_on_driver") if merge_on_driver else 0
    name = os.fspath(path)
    with jitdb_errors(), ExitStack() as stack:
        transport: HadoopTransport | None = None
        local: str | Path = name
        is_shared = folder is not None and is_url(folder)
        if name.startswith(_OBJECTS) or (is_url(name) and is_shared):
            if folder is None or not is_shared:
                raise SparkError(
                    "each machine has a cache of its own, so indexes of objects are kept in a store", path=name,
                    remedy=Remedy('folder="s3://bucket/indexes"', "--indexes s3://bucket/indexes"),
                )  # fmt: skip
            questions = _questions(paths_of(fields) if fields else (), asked, further)
            settings = {
                "codec": codec, "allow_prefix": allow_prefix, "format": log_format, "timestamp": timestamp,
                "time_unit": time_unit, "sequence": sequence,
            }  # fmt: skip
            cluster = _cluster(spark() if callable(spark) else spark, name)
            return prebuild_objects(cluster, name, Job(os.fspath(folder), questions, settings), task)
        if is_uri(name):
            context = _session(spark, name).sparkContext
            files = files_read(needs, core) if folder is None else None
            stage = stack.enter_context(staged(Remote(context, name), block_size, files))
            transport, local = HadoopTransport(context, stage, task, at_once), stage.path
        if not os.path.exists(local):
            raise no_such_log(local, read_only=True)
        refuse_table(local)
        form = line_form(allow_prefix, None, log_format)
        log = open_any(local, codec=codec, block_size=block_size, read_only=True, folder=folder, form=form)
        stack.callback(log.close)
        if isinstance(log, LineLog) and is_uri(name):
            raise SparkError(
                "JSON Lines are prebuilt at a path that all machines share, not at a URI", path=name,
                remedy="make a log of them there: jitdb import",
            )  # fmt: skip
        if named is None:  # nothing of the log was looked at before
            core = CoreFields(found_time(log), core.sequence, core.unit)
            needs = needs_of(paths_of(fields) if fields else (), asked, further, core)
        where = Path(folder) if folder is not None else log.sidecar / INDEXES
        with Driver(log, where, needs, core) as driver:
            if transport is not None:
                for _ in range(driver.attempts):
                    with suppress(Again):
                        return _build_apart(transport, driver, name)
            elif not driver.needs:
                return _summary(name, driver)
            else:
                cluster = _cluster(_session(spark, name), log.path.name)
                for _ in range(driver.attempts):
                    with suppress(Again):
                        return _build(SharedBuild(cluster, driver, task, at_once), driver, name)
    raise SparkError(f"its indexes turn out damaged again and again: is the disk of {where} sound?", path=path)


def _session(spark: SparkSession | Callable[[], SparkSession], path: str) -> SparkSession:
    made = spark() if callable(spark) else spark
    if is_uri(path) and is_connect(made):
        raise SparkError(
            "Spark Connect has no way to read a log by URI", path=path, remedy="use a session that is none"
        )  # fmt: skip
    return made


def _cluster(spark: SparkSession, name: str) -> Cluster:
    return ConnectCluster(spark) if is_connect(spark) else RddCluster(spark.sparkContext, name)


def _questions(
    fields: Sequence[FieldPath], operations: Sequence[str | Operation], indexes: Sequence[IndexSpec | str]
) -> tuple[Operation, ...]:
    """Those whose indexes are asked for. Raises QueryError."""
    found = [equal(field, None) for field in fields]
    found += [operation_of(each, "operations is a list of operations") for each in operations]
    for index in indexes:
        if not isinstance(index, str):
            raise QueryError(
                "of objects in a store, indexes is a list of fields", remedy="hand over an operation instead"
            )
        if index != "timestamp":  # which is always there
            found.append(gte(0, parse_path(index)))
    return tuple(found)


def needs_of(
    fields: Sequence[FieldPath],
    operations: Sequence[str | Operation],
    indexes: Sequence[IndexSpec | str],
    core: CoreFields,
) -> list[Requirement]:
    """The indexes that are asked for. Raises QueryError."""
    found = [need for field in fields for need in requirements(equal(field, None), core)]
    asked = [operation_of(each, "operations is a list of operations") for each in operations]
    found += [need for operation in asked for need in requirements(operation, core)]
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
        if isinstance(index, str) and spec.is_owned:  # what is above a number is asked of the largest
            found.append(Requirement(spec._replace(largest=True)))
    return found


def _build(build: SharedBuild, driver: Driver, path: str) -> Summary:
    begin = time.perf_counter()
    begins = [index.offset for index in driver.begins]
    try:
        heads, parts = build.scan()
        scanned = time.perf_counter()
        driver.placing(heads, parts)
        undecided = driver.undecided(heads)
        if undecided:
            for number, keys in build.values(undecided).items():
                driver.decide(number, keys, heads)
        driver.write(build.segments())
    finally:
        build.close()
    driver.warn_of(heads)
    written = time.perf_counter()
    return _summary(path, driver, driver.end - min(begins), heads, scanned - begin, written - scanned)


def _build_apart(transport: HadoopTransport, driver: Driver, path: str) -> Summary:
    begin = time.perf_counter()
    begins = [index.offset for index in driver.begins]
    parts = driver.ranges(transport.ranges(begins, driver.end, driver.log.block_size))
    if not parts:
        return _summary(path, driver)
    try:
        heads = transport.scan(driver.job(), list(map(driver.task, parts)))
        scanned = time.perf_counter()
        undecided = driver.undecided(heads)
        if undecided:
            for number, keys in transport.values(undecided).items():
                driver.decide(number, keys, heads)
        driver.write(transport.segments(driver.placing(heads, parts), heads))
    finally:
        transport.close()
    driver.warn_of(heads)
    written = time.perf_counter()
    return _summary(path, driver, driver.end - min(begins), heads, scanned - begin, written - scanned)


def _summary(
    path: str,
    driver: Driver,
    scanned: int = 0,
    heads: Sequence[RangeHead] = (),
    scan_seconds: float = 0,
    write_seconds: float = 0,
) -> Summary:
    every = [*((index, True) for index in driver.indexes), *((index, False) for index in driver.fresh)]
    return Summary(
        path=path,
        scanned=scanned,
        records=sum(head.records for head in heads),
        tasks=len(heads),
        malformed=sum(head.malformed for head in heads),
        damaged=tuple(sorted({block for head in heads for block in head.broken(driver.log.block_size)})),
        scan_seconds=scan_seconds,
        write_seconds=write_seconds,
        indexes=tuple(Built(index.spec.file_name(), index.end_seq, index.size, is_new) for index, is_new in every),
    )
