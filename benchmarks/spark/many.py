"""A folder of many small files as a table of Spark: processor time beside `spark.read.json`, and of planning alone.

    python -m benchmarks.spark.many FOLDER [FILES]

FOLDER has JSON Lines with `level`, `service` and `trace.id`, as `split -C 640k` makes files of a large one, of which so
many are taken, 300 if nothing is said, without the indexes that lie there. One run each, after one that does not count;
planning is done by this process. Some minutes; what is done is told on the way.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jitdb

from .processor import least

SCHEMA = "level STRING, service STRING, trace STRUCT<id: STRING>"
COLUMNS = {"level": ("level", "string"), "service": ("service", "string"), "trace": ("trace.id", "string")}
RUNS = 2
FILES = 300


def main(folder: str, count: int = FILES) -> None:
    """The figures of the first files of a folder."""
    with tempfile.TemporaryDirectory(dir=Path(folder).resolve().parent) as some:
        for path in sorted(Path(folder).glob("*.ndjson"))[:count]:
            os.link(path, Path(some, path.name))
        figures(some)


def figures(folder: str) -> None:
    """All figures, as a table."""
    from pyspark.sql import functions

    from jitdb.spark_ext import explain_log, read_log, session

    paths = sorted(Path(folder).glob("*.ndjson"))
    trace = json.loads(paths[0].open().readline())["trace"]["id"]
    question = f'trace.id == "{trace}"'
    print(f"{len(paths):,} files, {sum(path.stat().st_size for path in paths) / 1e6:,.0f} MB")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session("local[2]", **quiet)
    print("\n| question | CPU | of it Java, workers | tasks | planning |\n| --- | --- | --- | --- | --- |")

    def told(name: str, rows: Callable[[], Any], **plan: Any) -> None:
        began = time.perf_counter()
        spent = least(RUNS, lambda: rows().write.format("noop").mode("overwrite").save())
        tasks, planning = rows().rdd.getNumPartitions(), ""
        if plan:
            begin = time.process_time()
            tasks = explain_log(folder, COLUMNS, core="offset", spark=spark, **plan).tasks
            planning = f"{time.process_time() - begin:.2f}"
        print(
            f"| {name} | {spent.total:.2f} | {spent.java:.2f}, {spent.workers:.2f} | {tasks} | {planning} |", flush=True
        )
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    def lines() -> Any:
        return spark.read.schema(SCHEMA).json(folder).select("level", "service", "trace.id")

    def table(where: str | None = None) -> Any:
        return read_log(spark, folder, COLUMNS, where, core="offset")

    told("all rows: `spark.read.json`", lines)
    told("all rows: jitdb", table, where=None)
    told("one trace: `spark.read.json`", lambda: lines().filter(functions.col("id") == trace))
    told("one trace: jitdb, without indexes", lambda: table(question), where=question)
    begin = time.process_time()
    with jitdb.open_many(folder, progress=False) as logs:
        logs.query(question).count()
    print(f"| (the folder asked once by the local engine) | {time.process_time() - begin:.2f} | | | |")
    told("one trace: jitdb, with the bundles' indexes", lambda: table(question), where=question)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
