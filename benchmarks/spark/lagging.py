"""How long a stream of Spark takes to show a record: from the write of a line to the batch that has it.

    python -m benchmarks.spark.lagging [SECONDS]

1,000 lines a second go to one file, to 50 files, and to one that is rotated each second; each line says when it was
written. Spark's own streams of JSON see new files only: there each second's lines are a new file, named when it is
whole. A batch begins as soon as the one before has ended. The first three batches are not counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RATE = 1000  # lines a second
STEPS = 20  # writes of a second
SECONDS = 30.0  # that are counted
PASSED = 3  # batches before these


def main(seconds: float = SECONDS) -> None:
    from jitdb.spark_ext import register, session

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    spark = session("local[2]", **{**quiet, "spark.sql.shuffle.partitions": "2"})
    register(spark)
    print("| stream | lines | batches | median | 99 of 100 | most |\n| --- | --- | --- | --- | --- | --- |")
    for name, kind, write in (
        ("one file", "jitdb", _into(1)),
        ("50 files", "jitdb", _into(50)),
        ("a file rotated each second", "jitdb", _rotating),
        ("Spark's own, a new file each second", "json", _new_files),
    ):
        with tempfile.TemporaryDirectory() as folder:
            _measure(spark, name, kind, Path(folder), write, seconds)


def _measure(spark: Any, name: str, kind: str, folder: Path, write: Callable[[Path, int, str], None], seconds: float):
    logs, ages, batches, begun = folder / "logs", list[float](), 0, threading.Event()
    logs.mkdir()
    (logs / "0.log").write_text(_line(time.time()))

    def take(frame: Any, _: int) -> None:
        nonlocal batches
        times = [row.t for row in frame.select("t").collect()]
        now = time.time()
        batches += 1
        if batches == PASSED:
            begun.set()
        elif begun.is_set():
            ages.extend(now - each for each in times)

    reader = spark.readStream.format(kind).schema("t DOUBLE")
    given = reader.option("columns", "t") if kind == "jitdb" else reader
    stream = given.load(str(logs)).writeStream.option("checkpointLocation", str(folder / "place")).foreachBatch(take)
    with _writing(logs, write):
        query = stream.start()
        begun.wait()
        query.awaitTermination(seconds)  # raises what ended it
        query.stop()
    ages.sort()
    told = [f"{ages[int(part * (len(ages) - 1))]:.2f} s" for part in (0.5, 0.99, 1.0)]
    print(f"| {name} | {len(ages):,} | {batches - PASSED} | {' | '.join(told)} |", flush=True)


@contextmanager
def _writing(logs: Path, write: Callable[[Path, int, str], None]) -> Iterator[None]:
    """Lines come while this is open."""
    done = threading.Event()

    def work() -> None:
        step, begin = 0, time.monotonic()
        while not done.wait(max(0.0, begin + step / STEPS - time.monotonic())):
            write(logs, step, _line(time.time()) * (RATE // STEPS))
            step += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _line(now: float) -> str:
    return json.dumps({"t": now, "level": "info", "message": "a request was answered", "ms": 12}) + "\n"


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def _into(files: int) -> Callable[[Path, int, str], None]:
    return lambda logs, step, text: _append(logs / f"{step % files}.log", text)


def _rotating(logs: Path, step: int, text: str) -> None:
    if step and step % STEPS == 0:
        (logs / "app.log").rename(logs / f"app.log.{step // STEPS}")
    _append(logs / "app.log", text)


def _new_files(logs: Path, step: int, text: str) -> None:
    """Gathers what is written under a hidden name, which Spark passes over."""
    _append(logs / ".gathered", text)
    if step % STEPS == STEPS - 1:
        (logs / ".gathered").rename(logs / f"{step}.log")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
