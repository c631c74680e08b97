"""Answers as Arrow's columns: 100,000 records with five columns, beside decoding them, and DuckDB from the raw file.

Flat, nested and irregular records, of a log and of JSON Lines in place, in turns, medians. All have been asked before,
so indexes are there, as DuckDB's file is in the system's cache. What is told is the time of processors.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import jitdb

from ..data import FOLDER
from ..files.flat import command, flights
from ..files.json_lines import irregular_lines
from ..measure import Figure
from ..peers import ndjson

RECORDS: Final = 100_000
RUNS: Final = 9


class Case(NamedTuple):
    """Records, and the columns of them; `duckdb` names the same columns where it writes them otherwise."""

    name: str
    source: Callable[[], Path]
    columns: list[str]
    duckdb: str = ""


CASES: Final = (
    Case("flat", flights, ["dep_time", "carrier", "origin", "distance", "timestamp"]),
    Case(
        "nested",
        lambda: ndjson(28),
        ["key", "timestamp", "value.author", "value.sequence", "value.content.type"],
        "key, timestamp, value.author, value.sequence, value.content.type",
    ),
    Case("irregular", irregular_lines, ["id", "field_1", "field_4", "field_7", "field_10"]),
)


def run() -> Iterator[Figure]:
    """Figures of each case."""
    for case in CASES:
        yield from _of(case)


def _of(case: Case) -> Iterator[Figure]:
    import duckdb

    lines = _head(case)
    log = lines.with_suffix(".log")
    if not log.exists():
        command("import", lines, log, "-q")()
    duckdb.execute("set threads = 2")
    statement = f"select {case.duckdb or ', '.join(case.columns)} from read_json_auto('{lines}')"
    for path, kind in ((log, "a log"), (lines, "JSON Lines")):
        with jitdb.open(path, read_only=True) as db:
            asked = db.query().sort_by_arrival()
            assert asked.to_arrow(case.columns).num_rows == RECORDS
            table, decoded, peer = _medians(
                lambda asked=asked: asked.to_arrow(case.columns),
                lambda asked=asked: asked.all(),
                lambda: duckdb.sql(statement).to_arrow_table(),
            )
        name = f"`to_arrow`, {case.name} records of {kind}"
        yield Figure(name, table, "ms", "decoding them", decoded, "", "10 x")
        yield Figure(name, table, "ms", "DuckDB, from the file", peer, "", "3 x")


def _medians(*tasks: Callable[[], Any]) -> list[float]:
    """Milliseconds of processor time of each, all its threads counted, in turns, after a turn that does not count."""

    def taken(task: Callable[[], Any]) -> float:
        begin = time.process_time()
        task()
        return 1e3 * (time.process_time() - begin)

    turns = [list(map(taken, tasks)) for _ in range(RUNS + 1)][1:]
    return [statistics.median(each) for each in zip(*turns, strict=True)]


def _head(case: Case) -> Path:
    """The first records as a file of their own."""
    path = FOLDER / f"columns-{case.name}.ndjson"
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        with open(case.source(), "rb") as source, open(temporary, "wb") as file:
            file.writelines(islice(source, RECORDS))
        temporary.rename(path)
    return path
