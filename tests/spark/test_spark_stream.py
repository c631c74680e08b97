"""Streams of logs in Spark: every record once over restarts, limits, replays, growth within a block, compactions."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jitdb import Log
from jitdb.operators import field

pytest.importorskip("pyspark")

from jitdb.spark_ext import register
from jitdb.spark_ext.options import as_options

BLOCK = 1024


class Case:
    """A log, a stream of it into Parquet files, and what must be in these."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.path = folder / "x.log"
        self.out = folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.log = Log(self.path, block_size=BLOCK)
        self.written = 0
        register(spark)

    def append(self, count: int) -> None:
        numbers = range(self.written, self.written + count)
        self.log.append_many([{"n": number, "kind": f"k{number % 4}"} for number in numbers])
        self.log.flush()
        self.written += count

    def run(self, where: Any = None, **options: Any) -> list[int]:
        """Read what there is; gives how many rows each batch had."""
        query = self.started(where, **options)
        try:
            assert query.awaitTermination(60)
        finally:
            query.stop()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def started(self, where: Any = None, *, every: str | None = None, **options: Any) -> Any:
        """The stream, running: a batch `every` so often, or what there is now, and then it ends."""
        stream = self.spark.readStream.format("jitdb")
        columns = {"n": ("n", "long"), "kind": ("kind", "string")}
        for name, value in as_options(None, columns, where, options).items():
            stream = stream.option(name, value)
        return (
            stream.load(str(self.path))
            .writeStream.format("parquet")
            .option("path", str(self.out))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**({"processingTime": every} if every else {"availableNow": True}))
            .start()
        )

    def rows(self) -> list[int]:
        return sorted(row.n for row in self.spark.read.parquet(str(self.out)).collect())


@pytest.fixture
def case(spark: Any, tmp_path: Path) -> Any:
    made = Case(spark, tmp_path)
    yield made
    made.log.close()


def test_every_record_once_over_restarts(case: Any) -> None:
    case.append(100)
    assert case.run(max_records_per_batch=60) == [60, 40]
    for record in list(case.log.stream()):
        if record.value["n"] % 3:
            case.log.delete(record.offset)
    case.log.compact()
    case.append(3)  # within the tail block
    assert case.run() == [3]
    case.append(120)
    batches = case.run(max_bytes_per_batch=BLOCK)
    assert len(batches) > 1
    assert sum(batches) == 120
    assert case.rows() == list(range(223))
    case.log.close()
    case.path.unlink()
    shutil.rmtree(case.log.sidecar)
    case.log = Log(case.path, block_size=BLOCK)
    case.append(99)
    with pytest.raises(Exception, match="new checkpoint"):
        case.run()


def test_a_batch_that_was_not_committed_is_read_again(case: Any) -> None:
    """Of answers too."""
    where = field("kind") != "k3"
    case.append(40)
    case.run(where)
    case.append(28)
    case.run(where)
    # As if the driver had died after it planned the second batch: nothing tells that it was done, nor its rows.
    for file in (case.checkpoint / "commits").glob("*1*"):
        file.unlink()
    for file in (case.out / "_spark_metadata").glob("*1*"):
        file.unlink()
    case.append(20)
    for offset in [record.offset for record in case.log.stream(limit=10)]:
        case.log.delete(offset)
    case.log.compact()
    assert case.run(where, partition_bytes=BLOCK) == [21, 15]
    assert case.rows() == [number for number in range(88) if number % 4 != 3]


def test_a_stream_while_the_log_is_compacted(case: Any) -> None:
    """A record that stays is read once; one that is deleted meanwhile, once or not at all."""
    rng, deleted = random.Random(7), set[int]()
    case.append(200)
    query = case.started(every="0 seconds", max_records_per_batch=150, partition_bytes=BLOCK)
    try:
        late, compactions = time.monotonic() + 4, 0
        while time.monotonic() < late or compactions < 5:
            case.append(rng.randrange(1, 60))
            there = list(case.log.stream())
            for record in rng.sample(there, len(there) // 10):
                case.log.delete(record.offset)
                deleted.add(record.value["n"])
            if rng.random() < 0.5:
                case.log.compact()
                compactions += 1
            time.sleep(rng.choice((0, 0.05, 0.3)))
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()
    found = Counter(case.rows())
    assert max(found.values()) == 1
    assert set(range(case.written)) - deleted <= set(found) <= set(range(case.written))
