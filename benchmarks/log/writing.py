"""Appending, and the first count after it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import jitdb
from jitdb import JITDB, Log

from ..data import FOLDER, big_log
from ..measure import Figure, median_ms, per_second
from ..questions import POST

COUNT = 500_000
_LOG = FOLDER / "written.log"


def remove(path: Path = _LOG) -> None:
    """Remove a log and what belongs to it."""
    path.unlink(missing_ok=True)
    shutil.rmtree(f"{path}.jitdb", ignore_errors=True)


def run() -> list[Figure]:
    records = [b"\x01" + os.urandom(149) for _ in range(1000)] * (COUNT // 1000)

    def one_by_one() -> None:
        with Log(_LOG, codec="raw") as log:
            append = log.append
            for record in records:
                append(record)
            log.flush()

    def many() -> None:
        with Log(_LOG, codec="raw") as log:
            log.append_many(records)
            log.flush()

    figures = [
        Figure("append one by one, 150 bytes, durable at the end", per_second(one_by_one, COUNT, before=remove), "/s",
               "", None, "600,000", "1,200,000", "more"),
        Figure("append_many, 150 bytes, durable at the end", per_second(many, COUNT, before=remove), "/s",
               "", None, "2,000,000", "5,000,000", "more"),
    ]  # fmt: skip
    remove()
    return [*figures, after_append()]


def after_append() -> Figure:
    """The first count after 1,000 records were appended to the big log."""
    copy = FOLDER / "growing.bipf"
    remove(copy)
    shutil.copyfile(big_log(), copy)
    with Log(copy, codec="bipf") as log, jitdb.open(big_log(), "memory", read_only=True) as source:
        fresh = [record.value for record in source.log.stream(limit=1000)]
        db = JITDB(log)
        db.count(POST)

        def grow() -> None:
            log.append_many(fresh)
            log.flush()

        time = median_ms(lambda: db.count(POST), 9, grow)
    remove(copy)
    return Figure("the count after 1,000 appended records", time, "ms", "", None, "under 10 ms", "3 ms")
