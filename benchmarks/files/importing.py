"""Imports of the same flat records as NDJSON, CSV and Parquet: processor time of a process, beside DuckDB's making a
table of the file in another.
"""

from __future__ import annotations

import resource
import shutil
import statistics
from collections.abc import Callable, Iterator
from functools import partial

from ..data import FOLDER
from ..measure import Figure
from .flat import command, flights, python
from .tools import RUNS


def run() -> Iterator[Figure]:
    """DuckDB makes the files, too."""
    log, table = FOLDER / "imported.log", FOLDER / "imported.duckdb"
    files = {"ndjson": flights(), "csv": FOLDER / "flights.csv", "parquet": FOLDER / "flights.parquet"}
    for name in ("csv", "parquet"):
        if not files[name].exists():
            python("-c", f"import duckdb; duckdb.sql(\"copy (from read_json('{flights()}')) to '{files[name]}'\")")
    for name, source in files.items():
        reader = {"ndjson": "read_json"}.get(name, f"read_{name}")
        program = (
            f"import duckdb; db = duckdb.connect('{table}'); db.execute('set threads = 2'); "
            f"db.execute(\"create table t as from {reader}('{source}')\")"
        )
        ours, peers = [], []
        for _ in range(RUNS + 1):
            shutil.rmtree(f"{log}.jitdb", ignore_errors=True)
            for made in (log, table):
                made.unlink(missing_ok=True)
            ours.append(_processor_seconds(command("import", source, log, "-q")))
            peers.append(_processor_seconds(partial(python, "-c", program)))
        size = source.stat().st_size / 1e6
        what = f"`jitdb import` of {name}, {size:,.0f} MB, processor time"
        yield Figure(what, statistics.median(ours[1:]), "s", "DuckDB, a table", statistics.median(peers[1:]), "0.5 x")


def _processor_seconds(run: Callable[[], None]) -> float:
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime - begin.ru_utime + end.ru_stime - begin.ru_stime
