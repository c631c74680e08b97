"""Prebuilding with Spark against the local engine, on the same log and cores: processor time, and seconds.

    python -m benchmarks.spark.building LOG [--master URL] [--cluster]

LOG is any with the fields below: the flights, say. --cluster starts a standalone cluster of two workers of a core each
on loopback. A figure is the least of three runs in one session; the first run, in which workers import jitdb, is told
apart.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jitdb
from jitdb.operators import equal, field

from ..data import FOLDER
from .processor import Spent, measured

FIELDS = ["carrier", "dest", "user", "id"]
COLUMNS = ["dep_delay", "distance"]
INDEXES = FOLDER / "prebuilt"
RUNS = 4

#: What is tried: the options of prebuild().
WAYS: dict[str, dict[str, Any]] = {
    "Spark, spans apart": {"merge_on_driver": 0},
    "Spark, taken in": {"merge_on_driver": "64g"},
    "Spark, tasks of 64 MiB": {"merge_on_driver": 0, "range_bytes": 64 << 20},
}


def local(log: Path) -> tuple[float, float]:
    """Processor time and seconds of the local engine's scan."""
    shutil.rmtree(INDEXES, ignore_errors=True)
    spent, begin = time.process_time(), time.perf_counter()
    with jitdb.open(log, INDEXES, threads=2, read_only=True, progress=False) as db:
        db.prepare(*(equal(each, None) for each in FIELDS), *(field(each) > 1 for each in COLUMNS))
    return time.process_time() - spent, time.perf_counter() - begin


def prebuilt(spark: Any, log: Path, options: dict[str, Any]) -> tuple[Spent, float, Any]:
    """What was spent, seconds, and the summary."""
    from jitdb.spark_ext import prebuild

    shutil.rmtree(INDEXES, ignore_errors=True)
    spent: list[Spent] = []
    begin = time.perf_counter()
    with measured(spent):
        summary = prebuild(spark, log, fields=FIELDS, indexes=COLUMNS, folder=INDEXES, **options)
    return spent[0], time.perf_counter() - begin, summary


@contextmanager
def two_workers() -> Iterator[str]:
    """A standalone cluster; its URL."""
    import pyspark

    from jitdb.spark_ext.sessions import prepare_environment

    prepare_environment("local")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spark_class = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-class")
    url, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    started: list[subprocess.Popen[bytes]] = []

    def start(host: str, *arguments: str) -> None:
        environment = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        quiet = subprocess.DEVNULL
        started.append(subprocess.Popen([spark_class, *arguments], env=environment, stdout=quiet, stderr=quiet))
        time.sleep(8)

    worker = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(FOLDER / "workers")]
    try:
        start("127.0.0.1", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        for host in ("127.0.0.2", "127.0.0.3"):
            start(host, f"{deploy}.worker.Worker", *worker, "--host", host, url)
        yield url
    finally:
        for process in started:
            process.terminate()
            process.wait()


def main() -> None:
    """All figures, as a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--cluster", action="store_true")
    asked = parser.parse_args()
    if asked.cluster:
        with two_workers() as url:
            table(asked.log, url)
    else:
        table(asked.log, asked.master)
    shutil.rmtree(INDEXES, ignore_errors=True)


def table(log: Path, master: str) -> None:
    """The rows of one log and cluster."""
    from jitdb.spark_ext import session

    print(f"{log.stat().st_size / 1e6:,.0f} MB, {master.partition(':')[0]}: {', '.join([*FIELDS, *COLUMNS])}\n")
    print("| who | CPU | of it driver, Java, workers | ratio | first run | seconds | tasks |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    least, seconds = min(local(log) for _ in range(RUNS))
    print(f"| local engine | {least:.2f} | | | | {seconds:.2f} | |", flush=True)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session(master, **quiet, **{"spark.executor.memory": "800m"})
    spark.sparkContext.parallelize(range(4), 4).map(abs).collect()
    for way, options in WAYS.items():
        runs = [prebuilt(spark, log, options) for _ in range(RUNS)]
        best, took, summary = min(runs[1:], key=lambda run: run[0].total)
        parts = ", ".join(f"{each:.2f}" for each in best)
        first = runs[0][0].total
        print(f"| {way} | {best.total:.2f} | {parts} | {best.total / least:.2f} | {first:.2f} | {took:.2f} | "
              f"{summary.tasks} |", flush=True)  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()
