"""Tables of Spark as logs: what a row becomes, order, retries, failures that leave nothing."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb import Log
from jitdb.errors import JitdbError
from jitdb.operators import field

pytest.importorskip("pyspark")

from jitdb.spark_ext import read_log, register
from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import SparkError

ROWS = 40


def values(path: Path) -> list[Any]:
    with Log(path, read_only=True) as log:
        assert log.verify().ok
        return [record.value for record in log.stream()]


def alone(path: Path) -> bool:
    """Whether nothing lies beside the log but its sidecar."""
    return sorted(file.name for file in path.parent.iterdir()) == [path.name, f"{path.name}.jitdb"]


def save(frame: Any, path: Path, mode: str = "append", **options: Any) -> None:
    writer = frame.write.format("jitdb").mode(mode)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save(str(path))


@pytest.fixture
def frame(spark: Any) -> Any:
    register(spark)
    return spark.range(0, ROWS, 1, 3).selectExpr(
        "id AS n",
        "named_struct('author', concat('@', id % 5), 'tags', array('x', cast(id AS string)), 'no', null) AS value",
        "map('k', id) AS m",
        "timestamp_micros(id * 1000000 + 5500) AS timestamp",
        "date_add(date'2020-01-01', cast(id AS int)) AS day",
        "cast(cast(id AS string) AS binary) AS raw",
        """parse_json('{"z": [1, 2.5, "t"]}') AS v""",
        "if(id % 2 = 0, id / 4, null) AS part",
        "array(named_struct('at', timestamp_millis(id))) AS times",
        "id % 3 = 0 AS flag",
    )


def expected(n: int, keep: bool = False) -> dict[str, Any]:
    value: dict[str, Any] = {"author": f"@{n % 5}", "tags": ["x", str(n)]}
    record = {
        "n": n,
        "value": {**value, "no": None} if keep else value,
        "m": {"k": n},
        "timestamp": n * 1000 + 5.5,
        "day": (datetime.date(2020, 1, 1) + datetime.timedelta(n)).isoformat(),
        "raw": str(n).encode(),
        "v": {"z": [1, 2.5, "t"]},
        "part": n / 4 if n % 2 == 0 else None,
        "times": [{"at": n}],
        "flag": n % 3 == 0,
    }
    return record if keep or record["part"] is not None else {key: record[key] for key in record if key != "part"}


def test_rows_become_records_in_order(spark: Any, frame: Any, tmp_path: Path) -> None:
    path = tmp_path / "new.log"
    save(frame, path, nulls="keep")
    assert values(path) == [expected(n, keep=True) for n in range(ROWS)]
    save(frame, path)  # behind them
    rows = [expected(n, keep=True) for n in range(ROWS)] + [expected(n) for n in range(ROWS)]
    assert values(path) == rows
    assert alone(path)
    with jitdb.open(path) as db:
        assert db.count(field("value.author") == "@3") == 2 * ROWS // 5
        assert db.count(field("part").absent()) == ROWS // 2
    again = read_log(spark, str(path), {"n": ("n", "int"), "at": ("timestamp", "timestamp_ntz")}).collect()
    assert [row.n for row in again] == 2 * list(range(ROWS))
    assert again[3]["at"] == datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=3, microseconds=5500)


def test_a_plain_thread_writes(spark: Any, tmp_path: Path) -> None:
    """Its Java thread knows of no session, until register() says it: Spark would find no such format."""

    def write(path: Path) -> None:
        save(spark.range(5), path)

    def registered(path: Path) -> None:
        register(spark)
        write(path)

    # One worker each: a thread keeps what was said in it.
    with ThreadPoolExecutor(1) as pool, pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        pool.submit(write, tmp_path / "x.log").result()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(registered, tmp_path / "x.log").result()
        pool.submit(write, tmp_path / "x.log").result()
    assert values(tmp_path / "x.log") == 2 * [{"id": n} for n in range(5)]


def test_an_overwrite_is_another_log(spark: Any, frame: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    save(frame, path)
    with jitdb.open(path) as db:
        assert db.count(field("n") == 3) == 1
    reader = Log(path, read_only=True)
    save(frame.limit(5).coalesce(1), path, "overwrite", codec="bipf", blockSize=4096)
    assert [record.value["n"] for record in reader.stream()] == list(range(ROWS))  # until it looks for news
    assert reader.refresh()
    assert [record.value["n"] for record in reader.stream()] == list(range(5))
    reader.close()
    assert [value["n"] for value in values(path)] == list(range(5))
    assert alone(path)
    with Log(path) as log:
        assert (log.codec.name, log.block_size) == ("bipf", 4096)
    with jitdb.open(path) as db:
        with pytest.warns(jitdb.errors.IndexWarning, match="another log"):
            assert db.count(field("n") == 3) == 1
        assert db.count(field("n") == 30) == 0
    save(frame.limit(0), path, "overwrite")
    assert values(path) == []


def test_a_task_that_fails_once(spark: Any, tmp_path: Path) -> None:
    register(spark)
    path = tmp_path / "x.log"
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()

    def rows(numbers: Iterator[int]) -> Iterator[tuple[int]]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        (kept_by,) = path.parent.glob("x.log.spark-*/kept-by")
        driver = json.loads(kept_by.read_text())["pid"]
        assert Path(f"/proc/{driver}/comm").read_text() == "java\n"
        assert driver == java
        for number in numbers:
            if number == 33 and context.attemptNumber() == 0:
                raise RuntimeError("fails once")
            yield (number,)

    save(spark.sparkContext.parallelize(range(60), 3).mapPartitions(rows).toDF("n INT"), path)
    assert [value["n"] for value in values(path)] == list(range(60))
    assert alone(path)


def test_a_job_that_fails_leaves_nothing(spark: Any, frame: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    save(frame, path)
    before = path.read_bytes()
    wrong = frame.selectExpr("n", "if(n = 30, raise_error('no such row'), 1) AS m")
    for mode, table, message in (
        ("overwrite", wrong, "no such row"),
        ("append", frame.selectExpr("repeat('x', 70000) AS text").limit(1), "hold 65,532 at most"),
    ):
        with pytest.raises(Exception, match=message):
            save(table, path, mode)
        assert path.read_bytes() == before
        assert alone(path)
    with Log(path) as log:
        with pytest.raises(Exception, match="LogLocked"):
            save(frame, path)
        assert log.stats().records == ROWS
    assert path.read_bytes() == before
    assert alone(path)


def test_what_cannot_be_written(spark: Any, frame: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with pytest.raises(Exception, match="which a record cannot hold"):
        save(frame.selectExpr("cast(n AS decimal(9, 2)) AS d"), path)
    for expression, options, message in [
        ("cast(n AS decimal(9, 2)) AS d", {}, "which a record cannot hold"),
        ("map(n, 1) AS d", {}, "keys are text"),
        ("n", {"codec": "yaml"}, "there is no codec 'yaml'"),
        ("n", {"codec": "raw"}, "msgpack, bipf or json"),
        ("n", {"nulls": "no"}, "nulls is one of"),
        ("n", {"compression": "zip"}, "there is no option 'compression'"),
    ]:
        with pytest.raises(JitdbError, match=message):  # as Spark's planner does it
            JitdbDataSource({"path": str(path), **options}).writer(frame.selectExpr(expression).schema, overwrite=False)
        assert list(tmp_path.iterdir()) == []
    with Log(path) as log:
        log.append({"n": 1})
    with pytest.raises(SparkError, match="leave the options codec"):
        JitdbDataSource({"path": str(path), "codec": "bipf"}).writer(frame.schema, overwrite=False)
