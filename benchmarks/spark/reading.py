"""A log as a table of Spark, beside `spark.read.json` of the same records: whole, and with a question of few answers.

Both give the same four columns to a sink that takes all rows and keeps none. JSON is read with its schema given, so
Spark infers nothing, and parses only the fields that are asked. What Spark itself takes for any question does not grow
with the log, so there are two sizes.

Needs the extra `spark`, so it is not among those that run when none is named.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import functions

from jitdb.operators import field
from jitdb.spark_ext import explain_log, read_log, session

from ..data import FOLDER, REPEATS, big_log
from ..measure import Figure
from ..peers import ndjson

RUNS = 5
SIZES = (REPEATS, 4 * REPEATS)  # of the logs
COLUMNS = {
    "author": ("value.author", "string"),
    "type": ("value.content.type", "string"),
    "text": ("value.content.text", "string"),
    "n": ("value.sequence", "long"),
}
JSON_SCHEMA = "value STRUCT<author: STRING, sequence: BIGINT, content: STRUCT<type: STRING, text: STRING>>"
AUTHORS = 3  # of the 3,000 or so: those with most records, 0.4 % each


def run() -> Iterator[Figure]:
    """Each figure the median of several runs; both sides take turns."""
    paths = [(big_log(size), ndjson(size)) for size in SIZES]
    spark = session("local[*]", **{"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        for log, lines in paths:
            yield from _figures(spark, log, lines)
    finally:
        spark.stop()


def _figures(spark: Any, log: Path, lines: Path) -> Iterator[Figure]:
    """Those of one size."""
    options = {"core": "", "index_folder": str(FOLDER / f"{log.stem}-spark-indexes")}

    def table(where: Any = None) -> Any:
        return read_log(spark, str(log), COLUMNS, where, **options)

    def json_rows() -> Any:
        value = spark.read.schema(JSON_SCHEMA).json(str(lines)).select("value.*")
        return value.selectExpr("author", "content.type", "content.text", "sequence AS n")

    found = table().groupBy("author").count().orderBy("count", ascending=False).limit(AUTHORS).collect()
    authors = [row.author for row in found]
    where = field("value.author").isin(authors)
    plan = explain_log(str(log), COLUMNS, where, indexes="build", **options)
    assert plan.matches == json_rows().filter(functions.col("author").isin(authors)).count()
    size = f"{log.stat().st_size / 1e6:,.0f} MB"
    ours, theirs = _in_turns(table, json_rows)
    yield Figure(f"Spark, {size}: four columns of all records", ours, "s", "spark.read.json", theirs, "", "3 x")
    ours, theirs = _in_turns(lambda: table(where), lambda: json_rows().filter(functions.col("author").isin(authors)))
    skipped = f"{plan.blocks_skipped:,} of {plan.blocks:,} blocks skipped"
    question = f"Spark, {size}: the same of {plan.matches:,} records ({skipped})"
    yield Figure(question, ours, "s", "spark.read.json", theirs, "", "20 x")


def _in_turns(*makers: Callable[[], Any]) -> list[float]:
    """The median seconds of each."""
    times: list[list[float]] = [[] for _ in makers]
    for _ in range(RUNS):
        for made, mine in zip(makers, times, strict=True):
            begin = time.perf_counter()
            made().write.format("noop").mode("overwrite").save()
            mine.append(time.perf_counter() - begin)
    return [statistics.median(mine) for mine in times]


if __name__ == "__main__":
    for figure in run():
        print(figure.row(), flush=True)
