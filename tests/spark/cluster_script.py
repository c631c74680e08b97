"""Prebuilds on a standalone cluster of two machines (127.0.0.2 and .3), whose workers are killed. Prints JSON lines.

Run by test_spark_cluster.py: python cluster_script.py FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine_helpers import QUESTIONS, make_log
from range_cases import gathered, merged_files

import jitdb
from jitdb import Log
from jitdb.operators import predicate
from jitdb.spark_ext import prebuild, read_log, register, session
from jitdb.spark_ext.building.driver import Driver

BLOCK = 4096
RECORDS = 5000


def executor() -> int:
    """The process of the executor that this worker belongs to: its parent is Spark's daemon, whose parent that is."""
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


class Once:
    """A predicate that does something once, in whichever worker comes first, and is true of every value."""

    def __init__(self, flag: Path, what: str) -> None:
        self.flag, self.what = str(flag), what

    def __call__(self, value: object) -> bool:
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return True
        if self.what == "kill":
            os.kill(executor(), signal.SIGKILL)
        time.sleep(300)
        return True


class Attempts:
    """A predicate that notes each attempt at a task."""

    def __init__(self, folder: Path, inner: Once) -> None:
        self.folder, self.inner = str(folder), inner

    def __call__(self, value: object) -> bool:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is None:  # the local engine, whose files are compared with
            return True
        Path(self.folder, f"{context.partitionId()}-{context.attemptNumber()}").touch()
        return self.inner(value)


def scenario(spark: Any, folder: Path, name: str, inner: Any, **options: Any) -> dict[str, Any]:
    path = folder / f"{name}.log"
    make_log(path, RECORDS)
    extra = [predicate("value.sequence", inner, name="mine")] if inner else []
    begin = time.perf_counter()
    prebuild(spark, path, operations=[*QUESTIONS, *extra], range_bytes=20 * BLOCK, **options)
    seconds = time.perf_counter() - begin
    with Log(path, read_only=True) as log:
        wanted = merged_files(log, folder / f"{name} locally", [*QUESTIONS, *extra])
    return {"scenario": name, "same": gathered(folder / f"{name}.log.jitdb" / "indexes") == wanted, "seconds": seconds}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers with a core each; the master's URL."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    spark_class = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-class")
    master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "600m", "--webui-port", "0"]
    started = []

    def start(host: str, *arguments: str) -> None:
        environment = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        quiet = subprocess.DEVNULL
        started.append(subprocess.Popen([spark_class, *arguments], env=environment, stdout=quiet, stderr=quiet))

    try:
        start("127.0.0.1", *master)
        wait_for(port)
        for host in ("127.0.0.2", "127.0.0.3"):
            start(host, *worker, "--host", host, "--work-dir", str(folder / host), url)
        yield url
    finally:
        for process in started:
            process.terminate()
            process.wait()


def wait_for(port: int) -> None:
    """Until somebody listens there: a worker that comes before its master tries again only after many seconds."""
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def main(folder: Path) -> None:
    with cluster(folder) as url:
        run(url, folder)


def run(url: str, folder: Path) -> None:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both workers
        "spark.shuffle.io.retryWait": "200ms",  # before a worker that cannot be reached is given up
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    (folder / "events").mkdir()
    spark = session(url, **conf)
    spark.sparkContext.setLogLevel("OFF")
    try:
        print(json.dumps(killed(spark, folder)), flush=True)
        attempts = folder / "attempts"
        attempts.mkdir()
        slow = scenario(spark, folder, "a second attempt", Attempts(attempts, Once(folder / "slow", "sleep")))
        seen = [name.split("-") for name in os.listdir(attempts)]
        twice = {part for part, attempt in seen if attempt != "0"}
        print(json.dumps({**slow, "twice": len(twice)}), flush=True)
        print(json.dumps(read_twice(spark, folder)), flush=True)
        print(json.dumps(written_twice(spark, folder)), flush=True)
        print(json.dumps(pipeline(spark, folder)), flush=True)
    finally:
        spark.stop()


def killed(spark: Any, folder: Path) -> dict[str, Any]:
    """A worker dies while it indexes, and one after that: what it wrote stays."""
    original = Driver.undecided

    def killing(self: Driver, heads: Any) -> Any:
        pids = spark.sparkContext.parallelize(range(2), 2).map(lambda _: (time.sleep(0.5), executor())[1]).collect()
        os.kill(pids[0], signal.SIGKILL)
        return original(self, heads)

    Driver.undecided = killing  # type: ignore[method-assign]
    try:
        return scenario(spark, folder, "killed", Once(folder / "first", "kill"), merge_on_driver=0)
    finally:
        Driver.undecided = original  # type: ignore[method-assign]


def doing(frame: Any, once: Once, *, late: bool = False) -> Any:
    """The same rows; the first task to come does something, before its rows or (late) behind them."""

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        if not late:
            once(None)
        yield from batches
        once(None)

    return frame.mapInArrow(each, frame.schema)


def second_attempts(spark: Any, folder: Path, work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """What some work gives; and how many attempts Spark made beside another one that ran, and how many of these won."""
    (path,) = (folder / "events").iterdir()
    bus = spark._jsparkSession.sparkContext().listenerBus()
    bus.waitUntilEmpty()
    before, begin = path.stat().st_size, time.perf_counter()
    found = work()
    seconds = time.perf_counter() - begin
    bus.waitUntilEmpty()
    with open(path) as file:
        file.seek(before)
        events = [json.loads(line) for line in file if line.endswith("}\n")]
    ends = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    second = [event for event in ends if event["Task Info"]["Speculative"]]
    won = [event for event in second if event["Task End Reason"]["Reason"] == "Success"]
    return found, {"seconds": seconds, "second": len(second), "won": len(won)}


def read_twice(spark: Any, folder: Path) -> dict[str, Any]:
    """A task of a read is slow before its rows, and one behind them."""
    path = folder / "read.log"
    make_log(path, RECORDS)
    with Log(path, read_only=True) as log:
        wanted = [record.value["value"]["author"] for record in log.stream()]
    told: dict[str, Any] = {"scenario": "read twice", "same": True, "second": 0, "won": 0, "seconds": 0}
    for late in (False, True):
        table = read_log(spark, path, {"author": "value.author"}, partitionBytes=20 * BLOCK)
        slow = doing(table, Once(folder / f"a slow read {late}", "sleep"), late=late)
        rows, spent = second_attempts(spark, folder, slow.collect)
        told["same"] &= [row.seq for row in rows] == [*range(RECORDS)] and [row.author for row in rows] == wanted
        told.update({name: told[name] + count for name, count in spent.items()})
    return told


def written_twice(spark: Any, folder: Path) -> dict[str, Any]:
    """A task of a write is slow when its rows are written, once into a log and once into folders."""
    told: dict[str, Any] = {"scenario": "written twice", "same": True, "second": 0, "won": 0, "seconds": 0}
    for by in ("", "day"):
        (target := folder / f"written by {by}").mkdir()
        register(spark)
        table = spark.range(0, RECORDS, 1, 12).selectExpr("id AS n", "concat('d', id % 3) AS day")
        slow = doing(table, Once(folder / f"a slow write {by}", "sleep"), late=True)
        writer = slow.write.format("jitdb").mode("overwrite").option("partitionBy", by)
        _, spent = second_attempts(spark, folder, lambda to=writer, at=target: to.save(str(at / "x.log")))
        with jitdb.open_many(target) as logs:
            found = [[record["n"] for record in logs.query(f"day == 'd{day}'")] for day in range(3)]
        told["same"] &= [sorted(each) for each in found] == [[*range(day, RECORDS, 3)] for day in range(3)]
        told["same"] &= not list(target.glob("*.spark-*"))
        told.update({name: told[name] + count for name, count in spent.items()})
    return told


def pipeline(spark: Any, folder: Path) -> dict[str, Any]:
    """examples/spark_pipeline.py: a worker dies in its second batch, and its driver's work fails within the third."""
    from pipeline_oracle import differences

    sys.path.append(str(Path(__file__).parents[2] / "examples"))
    import spark_pipeline as example

    root, original = folder / "shop", example.cleaned
    once = Once(folder / "killed in the pipeline", "kill")
    failures = 0

    def fresh() -> int:
        """On a busy machine Spark gives up a Python that it started 10 s ago; then the job is run again."""
        for _ in range(20):
            try:
                return int(example.keep_fresh(spark, root))
            except Exception as error:
                if "failed to connect back" not in str(error):
                    raise
        raise AssertionError("no Python comes up within 10 s, again and again")

    for number, day in enumerate(example.DAYS):
        example.write_lines(root, day, 600)
        example.cleaned = (lambda lines: doing(original(lines), once)) if number == 1 else original
        if number == 2:
            example.prebuild = None  # as if it had died there: a log is written, and the batch not done
            try:
                fresh()
            except Exception as error:
                failures += "NoneType" in str(error)
            example.prebuild = prebuild
        fresh()
    assert fresh() == 0
    return {
        "scenario": "pipeline", "same": differences(spark, example, root) == [], "failures": failures,
        "killed": Path(once.flag).exists(), "differences": differences(spark, example, root),
    }  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
