"""Which tool when: the same tasks with jitdb, DuckDB, SQLite, Polars, grep and jq, each as a whole process.

Flights of flat.py, 123 MB of JSON Lines, which jitdb, DuckDB (raw), Polars, grep and jq read where they lie.
DuckDB (table) and SQLite have imported them, SQLite with an index on each field that is compared. Milliseconds,
medians of JITDB_BENCH_RUNS runs in turns. jitdb is asked twice: before any index is there, and again. What is not
installed is left out.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import jitdb

from ..data import FOLDER
from ..measure import number, seconds
from .flat import flights

RUNS: Final = int(os.environ.get("JITDB_BENCH_RUNS", "5"))
TOOLS: Final = ("jitdb, first", "jitdb, again", "DuckDB, raw", "DuckDB, table", "SQLite", "Polars", "grep, jq")

_IMPORT_SQLITE: Final = """
import json, sqlite3, sys
lines = open(sys.argv[1])
first = json.loads(next(lines))
db = sqlite3.connect(sys.argv[2])
db.execute(f"create table flights ({', '.join(first)})")
marks = ", ".join("?" * len(first))
rows = (tuple(json.loads(line).values()) for line in lines)
db.execute(f"insert into flights values ({marks})", tuple(first.values()))
db.executemany(f"insert into flights values ({marks})", rows)
for name in ("carrier", "origin", "dest", "time_hour", "distance", "timestamp"):
    db.execute(f"create index of_{name} on flights({name})")
db.commit()
"""


class Task(NamedTuple):
    """A question in everybody's words; empty where a tool has none. `FLIGHTS` stands for the table."""

    name: str
    jitdb: list[str]
    sql: str
    polars: str = ""
    shell: str = ""
    sqlite: str = ""  # where it is not the same SQL


def tasks() -> list[Task]:
    per_day = "select substr(time_hour, 1, 10) as date, count(*) from FLIGHTS group by 1 order by 1"
    return [
        Task("count one value", ["count", 'carrier == "UA"'], "select count(*) from FLIGHTS where carrier = 'UA'",
             "f.filter(c('carrier') == 'UA').select(pl.len())", 'grep -c \'"carrier": "UA"\''),
        Task("count by two fields", ["count", 'origin == "JFK" and dest == "LAX"'],
             "select count(*) from FLIGHTS where origin = 'JFK' and dest = 'LAX'",
             "f.filter((c('origin') == 'JFK') & (c('dest') == 'LAX')).select(pl.len())",
             'jq -n \'reduce (inputs | select(.origin == "JFK" and .dest == "LAX")) as $_ (0; . + 1)\''),
        Task("the ten newest", ["query", 'carrier == "AA"', "--descending", "--limit", "10"],
             "select * from FLIGHTS where carrier = 'AA' order by timestamp desc limit 10",
             "f.filter(c('carrier') == 'AA').sort('timestamp', descending=True).head(10)"),
        Task("most frequent values", ["values", "dest", "--limit", "10"],
             "select dest, count(*) as n from FLIGHTS group by dest order by n desc limit 10",
             "f.group_by('dest').len().sort('len', descending=True).head(10)"),
        Task("mean by value", ["stats", "dep_delay", "--by", "carrier"],
             "select carrier, avg(dep_delay) from FLIGHTS group by carrier",
             "f.group_by('carrier').agg(c('dep_delay').mean())"),
        Task("the five largest", ["query", "--sort", "-distance", "--limit", "5"],
             "select * from FLIGHTS order by distance desc limit 5",
             "f.sort('distance', descending=True).head(5)"),
        Task("count of a month", ["count", 'time_hour >= "2013-03-01" and time_hour < "2013-04-01"'],
             "select count(*) from FLIGHTS where time_hour >= '2013-03-01' and time_hour < '2013-04-01'",
             "f.filter(c('time_hour').cast(pl.String).str.starts_with('2013-03-')).select(pl.len())"),
        Task("part of a text", ["count", 'tailnum contains "N7"'],
             "select count(*) from FLIGHTS where contains(tailnum, 'N7')",
             "f.filter(c('tailnum').str.contains('N7', literal=True)).select(pl.len())",
             "grep -c '\"tailnum\": \"[^\"]*N7'",
             sqlite="select count(*) from flights where instr(tailnum, 'N7')"),
        Task("a count a day", ["timeline", "--timestamp", "time_hour", "--every", "1d"],
             per_day.replace("substr(time_hour, 1, 10)", "time_hour::date"),
             "f.group_by(c('time_hour').cast(pl.String).str.slice(0, 10)).len().sort('time_hour')", sqlite=per_day),
        Task("two columns as CSV", ["query", 'carrier == "AA"', "--fields", "flight,distance", "--format", "csv"],
             "copy (select flight, distance from FLIGHTS where carrier = 'AA') to '/dev/stdout' (format csv)",
             "f.filter(c('carrier') == 'AA').select('flight', 'distance')",
             sqlite="select flight, distance from flights where carrier = 'AA'"),
    ]  # fmt: skip


class Row(NamedTuple):
    """A row of the table: what of each tool, empty where it has no word for it."""

    name: str
    cells: list[str]

    def row(self) -> str:
        return f"| {self.name} | {' | '.join(self.cells)} |"


def run() -> Iterator[Row]:
    path, table, small = flights(), FOLDER / "tools.duckdb", FOLDER / "tools.sqlite"
    yield Row("", list(TOOLS))
    yield Row("---", ["---"] * len(TOOLS))
    raw = f"read_json_auto('{path}')"
    for made in (table, small):
        made.unlink(missing_ok=True)
    imports = {
        "DuckDB, table": duckdb_command(f"attach '{table}' as t; create table t.flights as from {raw}"),
        "SQLite": [sys.executable, "-c", _IMPORT_SQLITE, str(path), str(small)],
    }
    taken = {tool: 1e3 * seconds(_quiet, command) for tool, command in imports.items() if command}
    yield Row("before any question", [number(taken[tool]) if tool in taken else "0" for tool in TOOLS])
    for task in tasks():
        commands = {
            "jitdb, first": jitdb_command(task.jitdb, path),
            "jitdb, again": jitdb_command(task.jitdb, path),
            "DuckDB, raw": duckdb_command(task.sql.replace("FLIGHTS", raw)),
            "DuckDB, table": duckdb_command(
                f"attach '{table}' as t (read_only); {task.sql.replace('FLIGHTS', 't.flights')}"
            ),
            "SQLite": [
                "sqlite3", "-csv", f"file:{small}?mode=ro", task.sqlite or task.sql.replace("FLIGHTS", "flights")
            ] if shutil.which("sqlite3") else [],
            "Polars": _polars(task.polars, path),
            "grep, jq": ["sh", "-c", f"{task.shell} {path}"] if task.shell else [],
        }  # fmt: skip
        times: dict[str, list[float]] = {tool: [] for tool, command in commands.items() if command}
        for _ in range(RUNS):
            jitdb.forget(path)
            for tool, some in times.items():
                some.append(1e3 * seconds(_quiet, commands[tool]))
        yield Row(task.name, [number(statistics.median(times[tool])) if tool in times else "" for tool in TOOLS])
    indexes = sum(each.bytes for each in jitdb.kept(path))
    sizes = {"jitdb, again": indexes, "DuckDB, table": table.stat().st_size, "SQLite": small.stat().st_size}
    yield Row("MB beside the file", [number(sizes[tool] / 1e6) if tool in sizes else "0" for tool in TOOLS])


def _quiet(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)  # into the void, grep stops at the first match


def jitdb_command(words: list[str], path: Path) -> list[str]:
    command, *rest = words
    return [sys.executable, "-m", "jitdb", command, str(path), *rest]


def duckdb_command(statements: str) -> list[str]:
    if find_spec("duckdb") is None:
        return []
    program = f"import duckdb; found = duckdb.sql({statements!r}); found is None or print(found.fetchall())"
    return [sys.executable, "-c", program]


def _polars(expression: str, path: Path) -> list[str]:
    if not expression or find_spec("polars") is None:
        return []
    program = f"import polars as pl; c = pl.col; f = pl.scan_ndjson({str(path)!r}); print({expression}.collect())"
    return [sys.executable, "-c", program]
