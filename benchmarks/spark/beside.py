"""A log as a table of Spark beside Parquet and JSON of the same records: processor time of all processes.

    python -m benchmarks.spark.beside LOG

LOG is a file of JSON Lines with the fields of flights, and `user`, as `benchmarks growth` makes one. Its Parquet file
is written beside it by Spark, once. Each question is asked three times after its fields were indexed; the cheaper of
the last two counts. jitdb's table has all columns, as `push_down` finds out which it needs, or those in `columns`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jitdb

from .processor import least

RUNS = 3
_NUMBERS = (
    *("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
    *("flight", "air_time", "distance", "hour", "minute", "timestamp"),
)
_TEXTS = ("carrier", "tailnum", "origin", "dest", "time_hour", "id", "user", "text")
SCHEMA = ", ".join([*(f"{name} BIGINT" for name in _NUMBERS), *(f"{name} STRING" for name in _TEXTS)])


def main(log: str) -> None:
    from pyspark.sql import functions as f

    from jitdb.spark_ext import push_down, read_log, session

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session("local[2]", **quiet)
    parquet = f"{log}.parquet"
    if not Path(parquet).exists():
        spark.read.schema(SCHEMA).json(log).write.parquet(parquet)
    with jitdb.open(log, progress=False) as db:
        user = db.query().first()["user"]
        for name in ("carrier", "user"):
            db.query(f'{name} == "AS"').count()
            db.query().value_counts(name, limit=3)
        for name in ("distance", "dep_delay"):
            db.stats(name)
            db.query(f"{name} > 1").count()

    def table(*names: str, where: str | None = None) -> Any:
        columns = {name: (name, "bigint" if name in _NUMBERS else "string") for name in names or [*_NUMBERS, *_TEXTS]}
        return read_log(spark, log, columns, where, core="")

    questions: list[tuple[str, Callable[[Any], Any], tuple[str, ...], str]] = [
        ("sum of one column", lambda frame: frame.agg(f.sum("distance")), ("distance",), ""),
        ("two of its columns", lambda frame: frame.select("carrier", "dep_delay"), ("carrier", "dep_delay"), ""),
        ("a count by carrier", lambda frame: frame.groupBy("carrier").count(), ("carrier",), ""),
        ("two columns of 0.2 %", lambda frame: frame.where("carrier = 'AS'").select("carrier", "text"),
         ("carrier", "text"), 'carrier == "AS"'),
        ("all columns of 20 records", lambda frame: frame.where(f"user = '{user}'"), (), f'user == "{user}"'),
    ]  # fmt: skip
    print("| question | Parquet | JSON | jitdb, `columns` and `where` | jitdb, `push_down` |")
    print("| --- | --- | --- | --- | --- |")
    for name, asked, names, where in questions:
        frames: list[Callable[[], Any]] = [
            lambda asked=asked: asked(spark.read.parquet(parquet)),
            lambda asked=asked: asked(spark.read.schema(SCHEMA).json(log)),
            lambda asked=asked, names=names, where=where: asked(table(*names, where=where or None)),
            lambda asked=asked: push_down(asked(table())),
        ]
        spent = [
            least(RUNS, lambda frame=frame: frame().write.format("noop").mode("overwrite").save()) for frame in frames
        ]
        print(f"| {name} | {' | '.join(f'{each.total:.2f}' for each in spent)} |", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
