"""A prebuild of objects in a store: a task indexes some of them, each as a whole, and puts what it made where all
machines share it; the driver enters all of that into the manifest (log/objects/shelf.py) at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from jitdb.engine.database import open as open_one
from jitdb.log.io.filenames import INDEXES
from jitdb.log.lines.keeping.places import shelf_at
from jitdb.log.objects.files import Found
from jitdb.log.objects.listing import objects_at
from jitdb.log.objects.shelf import SharedLog
from jitdb.log.objects.urls import ObjectUrl
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.spark_ext.building.clusters import Cluster
from jitdb.spark_ext.building.summary import Built, Summary

_FOR_EACH_CORE: Final = 4  # tasks


class Job(NamedTuple):
    """What all tasks are asked.

    place:      of the shared indexes
    operations: the questions whose indexes are built
    settings:   of jitdb.open
    """

    place: str
    operations: tuple[Operation, ...]
    settings: dict[str, Any]


class Indexed(NamedTuple):
    """What a task put, by the folders of logs, and how many records these have."""

    logs: dict[str, SharedLog]
    records: int


def prebuild_objects(cluster: Cluster, url: str, job: Job, range_bytes: int | None) -> Summary:
    """Raises LogError."""
    begin, found = time.perf_counter(), objects_at(ObjectUrl.of(url))
    size = sum(each.size for each in found)
    tasks = list(_tasks(found, range_bytes or -(-size // (_FOR_EACH_CORE * cluster.cores))))
    made = cluster.run("indexing", partial(_index, job), tasks)
    scanned = time.perf_counter()
    logs = {name: log for each in made for name, log in each.logs.items()}
    shelf = shelf_at(job.place)
    assert shelf is not None
    if logs:
        shelf.enter(logs)
    records = sum(each.records for each in made)
    return Summary(
        path=url,
        scanned=size if logs else 0,
        records=records,
        tasks=len(tasks) if logs else 0,
        malformed=0,
        damaged=(),
        scan_seconds=scanned - begin,
        write_seconds=time.perf_counter() - scanned,
        indexes=tuple(_built(logs, records)),
    )


def _tasks(found: Sequence[Found], size: int) -> Iterator[list[str]]:
    """The names of objects that a task indexes: those that follow each other, of so many bytes, or one."""
    names, held = list[str](), 0
    for each in found:
        names.append(str(each.url))
        held += each.size
        if held >= size:
            yield names
            names, held = [], 0
    if names:
        yield names


def _index(job: Job, urls: list[str]) -> Indexed:
    """A task's work."""
    told: dict[str, SharedLog] = {}
    shelf, records = shelf_at(job.place, told), 0
    for url in urls:
        with open_one(url, shelf, progress=False, threads=1, **job.settings) as db:
            db.prepare(*job.operations)
            records += db.count(EVERYTHING)
    return Indexed(told, records)


def _built(logs: dict[str, SharedLog], records: int) -> Iterator[Built]:
    """The index files of one kind as one."""
    sizes: dict[str, int] = {}
    for log in logs.values():
        for name, parts in log.files.items():
            folder, _, file = name.rpartition("/")
            if folder.endswith(INDEXES) and file.endswith(".index"):
                sizes[file] = sizes.get(file, 0) + sum(size for _, size in parts)
    yield from (Built(file, records, size, True) for file, size in sorted(sizes.items()))
