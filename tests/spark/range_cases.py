"""Prebuilding without Spark: the same core, every range scanned here; and what the local engine makes of the log."""

from __future__ import annotations

import os
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
from jitdb.spark_ext.building.driver import Again, Driver
from jitdb.spark_ext.building.joining import joined, keys_of, span_of
from jitdb.spark_ext.building.scanning import Partial, Range, cut_ranges, scan_shared

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
