"""Several logs as one table: which they are, what is asked of each, and which tasks read several."""

from __future__ import annotations

import glob
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from jitdb.common.paths import LOG_PATH, Path
from jitdb.engine.roles import USUAL, found_time
from jitdb.errors import NotALog
from jitdb.log.lines.line_log import BLOCK, LineLog
from jitdb.log.objects.door import in_full
from jitdb.log.objects.listing import names_several
from jitdb.log.objects.urls import ObjectUrl, is_url
from jitdb.log.reading.sampling import first, sample
from jitdb.logset.member import Member, find_members
from jitdb.logset.opening import folder_of
from jitdb.operators.nodes.operation import NOTHING
from jitdb.spark_ext.options import ReadOptions
from jitdb.spark_ext.reading.bundled import without_answers
from jitdb.spark_ext.reading.opening import open_log
from jitdb.spark_ext.reading.partitions import Partition
from jitdb.spark_ext.reading.planning import SMALLEST, Planner, ReadPlan
from jitdb.spark_ext.reading.schema import Layout

_SAMPLED: Final = 10  # logs that a sample is taken from


def is_several(path: str) -> bool:
    """Whether it names a folder or a pattern."""
    if is_url(path):
        return names_several(ObjectUrl.of(path))
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


def logs_of(options: ReadOptions) -> list[ReadOptions]:
    """What is asked of each log that the path names: a file is one, a folder or a pattern names several.

    A log in which nothing can match by the fields of its path is left out. Raises LogError.
    """
    if not is_several(options.path):
        return [options]
    members = find_members(options.path)
    if not members:
        raise NotALog("no file is there", path=options.path)
    return [found for member in members if (found := _of(member, options)) is not None]


def _of(member: Member, options: ReadOptions) -> ReadOptions | None:
    where = None if options.where is None else options.where.narrowed(member.fields)
    if where == NOTHING:
        return None
    folder = folder_of(member, options.index_folder or None) or ""
    return replace(options, path=in_full(member.path), index_folder=folder, where=where, shared=dict(member.fields))


def samples(options: ReadOptions) -> Iterator[Any]:
    """Some records of the logs, of so many as the options say; then, as records too, what names of folders say of each
    log. Raises LogError.
    """
    logs = _looked_at(options)
    some = logs[:: -(-len(logs) // _SAMPLED)]
    for each in some:
        with open_log(each) as log:
            look = first if isinstance(log, LineLog) and log.compression else sample  # else all is decompressed
            for record in look(log, -(-options.sample // len(some))):
                yield _without(record, each.shared) if each.shared and isinstance(record, dict) else record
    for each in logs_of(replace(options, where=None)):  # all, so that a column's type does not depend on the question
        if each.shared:
            yield _without(each.shared, (LOG_PATH,))


def _without(record: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def _looked_at(options: ReadOptions) -> list[ReadOptions]:
    """The logs that are opened to tell what their records are like: those that will be read, if there are any."""
    return logs_of(options) or logs_of(replace(options, where=None))


def declared_time(options: ReadOptions) -> tuple[Path, ...]:
    """The fields that say when a record was made, as the first log has them. Raises LogError."""
    for each in _looked_at(options)[:1]:
        with open_log(each) as log:
            return found_time(log) or USUAL
    return USUAL


def plans(options: ReadOptions, layout: Layout) -> tuple[list[tuple[Partition, ...]], ReadPlan]:
    """What each task reads, and what there is to tell of it. Raises LogChanged, LogError, QueryError, OSError."""
    found: list[Partition] = []
    told: list[ReadPlan] = []
    logs = logs_of(options)
    skipped = without_answers([Member(each.path) for each in logs], options) if len(logs) > 1 else set()
    told += [_skipped(each) for each in logs if each.path in skipped]
    for each in logs:
        if each.path in skipped:
            continue
        with open_log(each) as log:
            parts, plan = Planner(log, each, layout).plan()
        found += parts
        told.append(plan)
    tasks = list(packed(found, options.partition_bytes or SMALLEST))
    is_one = len(told) == 1 and told[0].path == options.path
    return tasks, told[0] if is_one else _summed(options, told, len(tasks))


def _skipped(options: ReadOptions) -> ReadPlan:
    """Of a file that holds no answers, and is not opened."""
    blocks = -(-Member(options.path).size // BLOCK)
    return ReadPlan(options.path, repr(options.where), "indexes", (), blocks, 0, 0, 0, 0)


def packed(parts: Sequence[Partition], size: int) -> Iterator[tuple[Partition, ...]]:
    """Those of different logs together, up to about so many bytes; those of one log are as large as they should be."""
    held: list[Partition] = []
    total = 0
    for part in parts:
        its = sum(run.stop - run.start for run in part.runs)
        if held and (total + its > size or part.snapshot.path == held[-1].snapshot.path):
            yield tuple(held)
            held, total = [], 0
        held.append(part)
        total += its
    if held:
        yield tuple(held)


def _summed(options: ReadOptions, told: Sequence[ReadPlan], tasks: int) -> ReadPlan:
    matches = [plan.matches for plan in told]
    answers = {plan.answered for plan in told}
    return ReadPlan(
        path=options.path,
        where="" if options.where is None else repr(options.where),
        answered="tasks" if "tasks" in answers else max(answers, default=""),
        stale=tuple(name for plan in told for name in plan.stale),
        blocks=sum(plan.blocks for plan in told),
        blocks_read=sum(plan.blocks_read for plan in told),
        bytes_read=sum(plan.bytes_read for plan in told),
        tasks=tasks,
        matches=None if None in matches else sum(each or 0 for each in matches),
        unproven=sum(plan.unproven for plan in told),
        columns="indexes" if all(plan.columns == "indexes" for plan in told if plan.tasks) else "log",
    )
