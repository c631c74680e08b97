"""The same questions of flat, nested and irregular records where they lie, in milliseconds of processor time: the ten
largest, two fields of those that have a value, a part of a text, and times from text.

jitdb is asked before there is any index (first) and again; DuckDB of the file (raw) and of a table in memory that it
made of it, Polars of the file. All in this process, with two threads, in turns; medians of JITDB_BENCH_RUNS.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import jitdb
from jitdb.operators import field
from jitdb.operators.nodes.operation import Operation

from ..data import FOLDER
from ..files.flat import flights
from ..files.json_lines import RUNS, irregular_lines
from ..files.tools import Row
from ..measure import number
from ..peers import ndjson

TOOLS: Final = ("jitdb, first", "jitdb, again", "DuckDB, raw", "DuckDB, table", "Polars")

Run = Callable[[], object]


class Case(NamedTuple):
    """Records, and their fields: numbers to sort by, two to select where one has a value, and a text to look into."""

    name: str
    path: Path
    sorted: str
    selected: tuple[str, str]
    key: str
    value: str
    text: str
    part: str
    time: str = ""
    is_nested: bool = False  # `value` is JSON to DuckDB, as it has no one type

    def sql(self, name: str) -> str:
        """The field in DuckDB's words."""
        if not self.is_nested:
            return name
        found = f"json_extract_string(value, '$.{name.removeprefix('value.')}')"
        return f"{found}::bigint" if name == self.sorted else found

    def raw(self, path: Path) -> str:
        """The file in DuckDB's words."""
        if not self.is_nested:
            return f"read_json_auto('{path}')"
        return f"read_json('{path}', columns = {{key: 'varchar', timestamp: 'double', value: 'json'}})"


def cases() -> list[Case]:
    return [
        Case("flat", flights(), "distance", ("flight", "distance"), "carrier", "AA", "tailnum", "N7", "time_hour"),
        Case("nested", ndjson(28), "value.sequence", ("value.author", "value.sequence"), "value.content.type", "post",
             "value.content.text", "ipsum", is_nested=True),
        Case("irregular", irregular_lines(), "field_4", ("id", "field_6"), "field_7", "c", "text", "x" * 110),
    ]  # fmt: skip


def run() -> Iterator[Row]:
    yield Row("", list(TOOLS))
    yield Row("---", ["---"] * len(TOOLS))
    for case in cases():
        yield from _of(case)


def _of(case: Case) -> Iterator[Row]:
    import duckdb

    lines = FOLDER / f"shapes-{case.name}.ndjson"
    if not lines.exists():
        lines.hardlink_to(case.path)  # indexes of its own
    duckdb.execute("set threads = 2")
    raw = case.raw(lines)
    duckdb.execute(f"create or replace table shapes as from {raw}")
    one, other = case.selected
    questions = {
        "the ten largest": (
            lambda db: db.query().sort_by(f"-{case.sorted}").page(10).data,
            f"select * from SOURCE order by {case.sql(case.sorted)} desc nulls last limit 10",
            lambda pl, f: f.sort(case.sorted, descending=True, nulls_last=True).head(10),
        ),
        "two fields of many": (
            lambda db: db.query(field(case.key) == case.value).select(one, other).all(),
            f"select {case.sql(one)}, {case.sql(other)} from SOURCE where {case.sql(case.key)} = '{case.value}'",
            lambda pl, f: f.filter(pl.col(case.key) == case.value).select(one, other),
        ),
        "part of a text": (
            lambda db: db.count(_contains(case)),
            f"select count(*) from SOURCE where contains({case.sql(case.text)}, '{case.part}')",
            lambda pl, f: f.filter(pl.col(case.text).str.contains(case.part, literal=True)).select(pl.len()),
        ),
    }
    if case.time:
        questions["times of text: a month"] = (
            lambda db: db.query().since("2013-03-01").until("2013-04-01").count(),
            f"select count(*) from SOURCE where {case.time}::timestamp >= '2013-03-01' "
            f"and {case.time}::timestamp < '2013-04-01'",
            lambda pl, f: f.filter(pl.col(case.time).cast(pl.String).str.starts_with("2013-03")).select(pl.len()),
        )
    for name, (ask, sql, polars) in questions.items():
        yield Row(f"{case.name}, {name}", _cells(case, lines, ask, sql, raw, polars))


def _cells(case: Case, lines: Path, ask: Any, sql: str, raw: str, polars: Any) -> list[str]:
    import duckdb

    def asked() -> object:
        with jitdb.open(lines, timestamp=case.time or None) as db:
            return ask(db)

    def forget() -> None:
        jitdb.forget(lines)

    runs: dict[str, Run] = {
        "jitdb, first": asked,
        "jitdb, again": asked,
        "DuckDB, raw": lambda: duckdb.sql(sql.replace("SOURCE", raw)).fetchall(),
        "DuckDB, table": lambda: duckdb.sql(sql.replace("SOURCE", "shapes")).fetchall(),
    }
    if not case.is_nested and find_spec("polars"):
        import polars as pl

        runs["Polars"] = lambda: polars(pl, pl.scan_ndjson(lines)).collect().rows()
    taken: dict[str, list[float]] = {tool: [] for tool in runs}
    for _ in range(RUNS + 1):
        forget()
        for tool, one in runs.items():
            begin = time.process_time()
            one()
            taken[tool].append(1e3 * (time.process_time() - begin))
    return [number(statistics.median(taken[tool][1:])) if tool in taken else "" for tool in TOOLS]


def _contains(case: Case) -> Operation:
    return field(case.text).contains(case.part)
