"""Prebuilding with Spark against the local engine, on the same log and cores: MB/s, and what a task costs.

    python -m benchmarks.spark.building

Each size and number of cores has a session of its own, in a process of its own; a figure is the best of three runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jitdb
from jitdb.operators import equal

from ..data import FOLDER, REPEATS, big_log

FIELDS = ["value.content.type", "value.author", "value.content.root", "key"]
OPERATIONS = [equal(field, None) for field in FIELDS]
INDEXES = FOLDER / "prebuilt"
RUNS = 3
EMPTY_TASKS = 200
SIZES = (REPEATS, 4 * REPEATS)  # of the logs

TINY = "Spark, tasks of 4 MiB"  # what a task costs by itself; the smaller log tells enough
#: What is tried: the options of prebuild().
WAYS: dict[str, dict[str, Any]] = {
    "Spark": {},
    "Spark, merged by workers": {"merge_on_driver": 0},
    TINY: {"range_bytes": 4 << 20},
    "Spark, file:// through Hadoop": {},
}


def local(log: Path, threads: int) -> float:
    """Seconds of the local engine's scan."""
    shutil.rmtree(INDEXES, ignore_errors=True)
    begin = time.perf_counter()
    with jitdb.open(log, INDEXES, threads=threads, read_only=True, progress=False) as db:
        db.prepare(*OPERATIONS)
    return time.perf_counter() - begin


def prebuilt(spark: Any, log: Path, way: str) -> tuple[float, float, float, int]:
    """Seconds in all, of scanning, of merging and writing; tasks."""
    from jitdb.spark_ext import prebuild

    shutil.rmtree(INDEXES, ignore_errors=True)
    path: Any = log.as_uri() if "file://" in way else log
    begin = time.perf_counter()
    summary = prebuild(spark, path, fields=FIELDS, folder=INDEXES, **WAYS[way])
    return time.perf_counter() - begin, summary.scan_seconds, summary.write_seconds, summary.tasks


def cluster(log: Path, cores: int) -> dict[str, Any]:
    """One session's figures."""
    from jitdb.spark_ext import session

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session(f"local[{cores}]", **quiet, **{"spark.driver.memory": "2g"})
    ways = [way for way in WAYS if way != TINY or log == big_log()]
    found: dict[str, Any] = {way: min(prebuilt(spark, log, way) for _ in range(RUNS)) for way in ways}
    found["task"] = min(empty_tasks(spark.sparkContext) for _ in range(RUNS)) / EMPTY_TASKS * cores
    spark.stop()
    return found


def empty_tasks(context: Any) -> float:
    """Seconds of a job of tasks that do nothing."""
    begin = time.perf_counter()
    context.parallelize(range(EMPTY_TASKS), EMPTY_TASKS).map(abs).collect()
    return time.perf_counter() - begin


def main() -> None:
    """All figures, as a table."""
    print(f"{len(FIELDS)} fields and the core indexes\n")
    print("| MB | cores | who | seconds | scanning | merging, writing | tasks | MB/s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for repeats in SIZES:
        log = big_log(repeats)
        for cores in (1, 2):
            _rows(log, cores)
    shutil.rmtree(INDEXES, ignore_errors=True)


def _rows(log: Path, cores: int) -> None:
    size = log.stat().st_size / 1e6
    head = f"| {size:,.0f} | {cores}"
    seconds = min(local(log, cores) for _ in range(RUNS + 1))
    print(f"{head} | local engine | {seconds:.2f} | | | | {size / seconds:,.0f} |", flush=True)
    command = [sys.executable, "-m", "benchmarks.spark.building", str(log), str(cores)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])
    task = found.pop("task")
    for way, (total, scan, write, tasks) in found.items():
        row = f"{total:.2f} | {scan:.2f} | {write:.2f} | {tasks} | {size / total:,.0f}"
        print(f"{head} | {way} | {row} |", flush=True)
    print(f"{head} | an empty task, {task * 1e3:.1f} ms of a core | | | | | |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(cluster(Path(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
