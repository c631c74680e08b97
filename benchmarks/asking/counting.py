"""Counting by value, time and size: 336,776 flat records of 19 fields, beside DuckDB and Polars.

Each peer twice: over the JSON Lines, as whole processes, and over its own columns in memory, as we are over our
indexes, which a first question has built. A million records are made for the timeline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jitdb
from jitdb import JITDB
from jitdb.operators import field

from ..files.flat import _many, command, duckdb, flights, import_numpy, pairs, python
from ..measure import Figure, median_ms, median_ms_each
from ..peers import duck

RUNS = 15
SELECTED = field("carrier") == "UA"
SQL = "carrier = 'UA'"


def forget() -> None:
    jitdb.forget(flights())


def processes() -> list[Figure]:
    """A first question, and a later one."""
    values, count = ("values", flights(), "carrier"), ("count", flights(), 'carrier == "UA"')
    raw = duckdb(f"select carrier, count(*) from read_json('{flights()}') group by 1 order by 2 desc")
    lazy = f"pl.scan_ndjson('{flights()}').group_by('carrier').len().sort('len', descending=True).collect()"
    first, beside_duck = pairs(command(*values), raw, forget, 5)
    again, beside_polars = pairs(
        command(*values), lambda: python("-c", f"import polars as pl; print({lazy})"), forget, 5
    )
    new, beside_count = pairs(_forgetting(command(*values)), _forgetting(command(*count)), count=5)
    forget()
    dictionary, numpy = pairs(command(*values), import_numpy, count=5)
    command(*count)()
    bitmaps, indexed = pairs(command(*values), command(*count), count=5)
    return [
        Figure("`jitdb values`, new field", first, "s", "DuckDB over the JSON Lines", beside_duck),
        Figure("`jitdb values`, new field", again, "s", "Polars over the JSON Lines", beside_polars),
        Figure("`jitdb values`, new field", new, "s", "`jitdb count`, new field", beside_count, "0.77 x", "0.9 x"),
        Figure("`jitdb values`, from a dictionary column", dictionary, "s", "import numpy", numpy),
        Figure("`jitdb values`, from bitmaps", bitmaps, "s", "`jitdb count`, indexed", indexed, "0.5 x", "0.9 x"),
    ]


def _forgetting(run: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        forget()
        run()

    return both


@cache
def _columns() -> tuple[str, Any]:
    """The records as a table of DuckDB's in memory, and as a frame of Polars'."""
    import polars

    duck().execute(f"create table flights as select * from read_json('{flights()}')")
    return "flights", polars.read_ndjson(flights())


def _beside(question: str, ours: Callable[[], object], sql: str, frame: Callable[[Any, Any], object]) -> list[Figure]:
    import polars

    table, data = _columns()
    mine = median_ms(ours, RUNS)
    theirs = median_ms(lambda: duck().execute(sql.format(table=table)).fetchall(), RUNS)
    others = median_ms(lambda: frame(data, polars.col), RUNS)
    return [
        Figure(question, mine, "ms", "DuckDB's columns", theirs, "1 x"),
        Figure(question, mine, "ms", "Polars' columns", others),
    ]


def questions(db: JITDB) -> list[Figure]:
    """From indexes that are there, in one process."""
    fields = [name for name in db.sample(1)[0] if name != "timestamp"]
    shares = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    top = "select {0}, count(*) from {{table}} {1} group by 1 order by 2 desc limit 10".format
    described = (
        "count(dep_delay), min(dep_delay), max(dep_delay), sum(dep_delay), avg(dep_delay), stddev(dep_delay), "
        f"quantile_disc(dep_delay, {list(shares)})"
    )
    db.prepare(SELECTED)

    def each_field() -> None:
        for name in fields:
            db.value_counts(name, SELECTED, limit=10)

    def each_of_duck() -> None:
        for name in fields:
            duck().execute(top(name, f"where {SQL}").format(table=_columns()[0])).fetchall()

    def each_of_polars() -> None:
        _, data = _columns()
        some = data.filter(data["carrier"] == "UA")
        for name in fields:
            some.group_by(name).len().top_k(10, by="len")

    def of_polars(col: Any) -> list[Any]:
        delay = col("dep_delay")
        parts = (delay.count(), delay.min(), delay.max(), delay.sum(), delay.mean(), delay.std())
        quantiles = (delay.quantile(share) for share in shares)
        return [part.alias(str(number)) for number, part in enumerate((*parts, *quantiles))]

    _columns()
    every = median_ms(each_field, RUNS)
    question = "top ten of 19 fields, 58,665 records"
    return [
        *_beside(
            "values of a field, from bitmaps", lambda: db.value_counts("carrier"), top("carrier", ""),
            lambda data, _: data.group_by("carrier").len().sort("len"),
        ),
        *_beside(
            "top ten of 4,043 values", lambda: db.value_counts("tailnum", limit=10), top("tailnum", ""),
            lambda data, _: data.group_by("tailnum").len().top_k(10, by="len"),
        ),
        *_beside(
            "groups of two fields", lambda: db.group_count("carrier", "origin"),
            "select carrier, origin, count(*) from {table} group by all order by 3 desc",
            lambda data, _: data.group_by("carrier", "origin").len().sort("len"),
        ),
        Figure(question, every, "ms", "DuckDB's columns", median_ms(each_of_duck, 5), "1 x"),
        Figure(question, every, "ms", "Polars' columns", median_ms(each_of_polars, 5)),
        *_beside(
            "what a field's numbers are like", lambda: db.stats("dep_delay"), f"select {described} from {{table}}",
            lambda data, col: data.select(of_polars(col)),
        ),
        *_beside(
            "the same for each of three values", lambda: db.stats_by("dep_delay", "origin"),
            f"select origin, {described} from {{table}} group by 1",
            lambda data, col: data.group_by("origin").agg(of_polars(col)),
        ),
    ]  # fmt: skip


def timelines() -> list[Figure]:
    """Of a million records, whose column of times is in memory."""
    times = "select epoch_ms(1600000000000 + n * 1000 + n * 7919 % 100000) as time from range(1000000) each(n)"
    duck().execute(f"create table times as {times}")
    hours = "select time_bucket(interval '1 hour', time) as hour, count(*) from times group by 1 order by 1"
    with jitdb.open(_many(1_000_000), read_only=True) as db:
        assert db.timeline(every="1h").total == 1_000_000
        theirs = median_ms(lambda: duck().execute(hours).fetchall(), RUNS)
        question = "timeline of 1,000,000 records, by the hour"
        return [
            Figure(question, _timeline(db, every="1h"), "ms", "DuckDB's columns", theirs, "1 x"),
            Figure("the same by another field", _timeline(db, every="1h", by="type"), "ms"),
            Figure("the same by the month", _timeline(db, every="1mo"), "ms"),
        ]


def _timeline(db: JITDB, **asked: Any) -> float:
    return median_ms(lambda: db.timeline(**asked), RUNS)


def times() -> list[Figure]:
    """Texts as nanoseconds, by the kernel that a scan gives the fields to that it found, and finding them: of as many
    lines as a scan has in the processor's cache, in one thread.
    """
    import numpy as np

    from jitdb.indexes.kinds.numbers import smallest_numbers
    from jitdb.log.codecs import get_codec
    from jitdb.log.codecs.fields.located import RecordBatch

    with open(flights(), "rb") as file:
        data = file.read(1 << 20)
    buffer = np.frombuffer(data + bytes(64), np.uint8)
    stops = np.flatnonzero(buffer == ord("\n")).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1] + 1])
    lines = RecordBatch(buffer, starts, stops - starts, np.zeros(len(starts), np.uint8), starts)
    locator = get_codec("json").locator([("time_hour",)])
    (found,), _ = locator.fields(lines)
    hi, lo = np.empty(len(starts), np.float64), np.empty(len(starts), np.int16)
    read = median_ms_each(lambda: smallest_numbers([found], hi, lo, "auto"), 50, RUNS)
    located = median_ms_each(lambda: locator.fields(lines), 50, RUNS)
    texts = int(found.length.sum()) / 1e3  # kilobytes
    return [
        Figure("times of text to nanoseconds", texts / read, "MB/s of text", "", None, "", "", "more"),
        Figure(f"the same, {len(starts):,} of them", read, "ms", "finding them", located, "2 x"),
    ]


def run() -> list[Figure]:
    found = processes()
    forget()
    with jitdb.open(flights(), read_only=True) as db:
        return [*found, *questions(db), *timelines(), *times()]
