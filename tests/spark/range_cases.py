"""Prebuilding without Spark: the same core, every range scanned here; and what the local engine makes of the log."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine_helpers import stored_indexes

from jitdb import JITDB, Log
from jitdb.common.paths import TIMESTAMPS, parse_path
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.plan import requirements
from jitdb.operators.nodes.operation import Operation
from jitdb.spark_ext.building.clusters import Cluster
from jitdb.spark_ext.building.driver import Again, Driver
from jitdb.spark_ext.building.joining import joined, keys_of, span_of
from jitdb.spark_ext.building.prebuild import _build as build_shared
from jitdb.spark_ext.building.scanning import Partial, Range, cut_ranges, scan_shared
from jitdb.spark_ext.building.sharing import SharedBuild

CORE = CoreFields((("timestamp",), ("value", "timestamp")), (parse_path("value.sequence"),))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.index"))}


def damage(path: Path, data: bytes) -> None:
    """Other bytes on the disk, which no program wrote: the file's times stay."""
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def build_locally(log: Log, folder: Path, operations: Sequence[Operation], **options: Any) -> JITDB:
    db = JITDB(log, folder, timestamp=TIMESTAMPS, **options)
    db.prepare(*operations)
    return db


def merged_files(log: Log, folder: Path, operations: Sequence[Operation]) -> dict[str, bytes]:
    """The files of the local engine, after a merge."""
    build_locally(log, folder, operations)
    for index in stored_indexes(folder):
        if index.segments:
            index.merge()
    return files_of(folder)


def gathered(folder: Path) -> dict[str, bytes]:
    """The index files when all that lies apart was taken in."""
    for index in stored_indexes(folder):
        if index.segments:
            index.merge()
    assert list(folder.glob("spans/*")) == []
    return files_of(folder)


def cut(work: Driver, size: int) -> list[Range]:
    """Ranges of about this size."""
    return cut_ranges([begin.offset for begin in work.begins], work.end, work.log.block_size, size)


def build_by_ranges(
    log: Log, folder: Path, operations: Sequence[Operation], ranges: int | Callable[[Driver], Sequence[Range]]
) -> list[Partial]:
    """What the driver and the workers do, in this process."""
    needs = [need for operation in operations for need in requirements(operation, CORE)]
    with Driver(log, folder, needs, CORE) as work:
        for _ in range(work.attempts):
            with suppress(Again):
                return _build(log, work, cut(work, ranges) if isinstance(ranges, int) else ranges(work))
    raise AssertionError("its indexes turn out damaged again and again")


class Here(Cluster):
    """What a cluster would do, in this process; all that travels is pickled."""

    cores = 2

    def __init__(self) -> None:
        self.done: list[tuple[str, Any, Any]] = []  # each task: the work, what was asked, what came of it

    def run(self, work: str, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """See Cluster."""
        made = [pickle.loads(pickle.dumps(function(item))) for item in pickle.loads(pickle.dumps(list(items)))]
        self.done += [(work, item, each) for item, each in zip(items, made, strict=True)]
        return made


def build_by_spans(log: Log, folder: Path, operations: Sequence[Operation], size: int, at_once: int = 1 << 30) -> Here:
    """The same where all share the indexes' folder, by tasks of about this size."""
    needs = [need for operation in operations for need in requirements(operation, CORE)]
    cluster = Here()
    with Driver(log, folder, needs, CORE) as work:
        for _ in range(work.attempts if work.needs else 0):
            with suppress(Again):
                build_shared(SharedBuild(cluster, work, size, at_once), work, "x.log")
                return cluster
        assert not work.needs, "its indexes turn out damaged again and again"
    return cluster


def _build(log: Log, work: Driver, ranges: Sequence[Range]) -> list[Partial]:
    if not ranges:
        return []
    job = work.job()
    partials = [scan_shared(job, work.task(part)) for part in ranges]
    heads = [partial.head for partial in partials]
    for number in work.undecided(heads):
        work.decide(number, set().union(*(keys_of(number, partial) for partial in partials)), heads)
    placing = work.placing(heads, ranges)
    groups: dict[tuple[int, int], list[Any]] = {}
    for partial in partials:
        for number, segment in placing.of(partial):
            groups.setdefault((number, span_of(segment)), []).append(segment)
    work.write((number, joined(run)) for (number, _), run in sorted(groups.items(), key=lambda item: item[0]))
    return partials
