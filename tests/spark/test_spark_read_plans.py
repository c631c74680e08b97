"""Plans, below Spark: what explain_log tells is what a reader plans, and what its tasks then read."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engine_helpers import make_log

from jitdb.log.io import osfile
from jitdb.operators import Operation, everything, field, gte, seqs

pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from jitdb.spark_ext import explain_log
from jitdb.spark_ext.data_source import JitdbDataSource, LogReader
from jitdb.spark_ext.options import as_options
from jitdb.spark_ext.reading import planning

BLOCK = 512


def reader_of(path: Path, columns: Any = None, where: Any = None, schema: Any = None, **options: Any) -> LogReader:
    source = JitdbDataSource(options={**as_options(None, columns, where, options), "path": str(path)})
    return source.reader(source.schema() if schema is None else schema)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "x.log"
    make_log(path, 600, block_size=BLOCK)
    return path


SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=7))  # what of a session is asked
MAPS = StructType([StructField("value", MapType(StringType(), StringType()))])
STRUCTS = StructType([StructField("a", ArrayType(StructType([StructField("b", LongType())])))])


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({"columns": ["key"]}, 2),
        ({"columns": {"key": ("key", "string"), "all": "*"}}, 4),
        ({"schema": MAPS}, 4),
        ({"schema": STRUCTS}, 4),
        ({"columns": ["key"], "partition_bytes": 5 * BLOCK}, None),
        ({"columns": ["key"], "where": "value.sequence > 30"}, 2),
    ],
)
def test_explained_as_planned(path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, tasks: int | None) -> None:
    """Tasks of records that are decoded one by one are small."""
    size = path.stat().st_size
    assert 130 < size // BLOCK < 160
    monkeypatch.setattr(planning, "SMALLEST", 80 * BLOCK)
    monkeypatch.setattr(planning, "SMALLEST_SLOW", 40 * BLOCK)
    plan = explain_log(path, spark=SPARK, **options)
    assert plan.tasks == (-(-size // (5 * BLOCK)) if tasks is None else tasks)
    assert plan == reader_of(path, **options, cores=7).plan()[1]


def test_the_cores_of_a_plan(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SMALLEST", BLOCK)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert explain_log(path, ["key"]).tasks == 3
    assert explain_log(path, ["key"], spark=SPARK).tasks == 7
    for cores in range(1, 20):  # never one more, which would wait for the others to end
        assert explain_log(path, ["key"], spark=SPARK, cores=cores).tasks <= cores


def test_records_are_counted_where_seqs_are_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    before = planning.records_before
    monkeypatch.setattr(planning, "records_before", lambda *args: (counted.append(1), before(*args))[1])
    for columns, core, times in [(["key"], None, 1), (["key"], "offset", 0), ({"number": "seq"}, "offset", 1)]:
        counted.clear()
        explain_log(path, columns, core=core)
        assert len(counted) == times, (columns, core)


# --- what the tasks of a plan read -----------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """The bytes of the log that are read into buffers, in order: tasks do."""
    found: list[range] = []

    class Counting(osfile.FileSystem):
        def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
            found.append(range(offset, offset + len(buffer)))
            return super().read_into(fd, buffer, offset)

    monkeypatch.setattr(osfile, "fs", Counting())
    return found


def blocks_of(read: list[range]) -> list[int]:
    """The blocks that were read, once for each time."""
    return sorted(block for each in read for block in range(each.start // BLOCK, -(-each.stop // BLOCK)))


@pytest.mark.parametrize("partition_bytes", [1, 7 * BLOCK, 1 << 20])
@pytest.mark.parametrize(
    "where",
    [
        field("key") == "%000400",
        field("key") == "none",
        gte(900, ["value", "sequence"]),
        seqs([0, 1, 300]),
        everything(),
    ],
)
def test_tasks_read_the_blocks_of_answers(
    path: Path, read: list[range], where: Operation, partition_bytes: int
) -> None:
    options = {"columns": ["key"], "where": where, "indexes": "build", "partition_bytes": partition_bytes}
    reader = reader_of(path, **options)
    partitions = reader.partitions()
    plan = explain_log(path, **options)
    read.clear()
    rows = [row for each in partitions for batch in reader.read(each) for row in batch.to_pylist()]
    assert len(rows) == plan.matches or where == everything()
    if where != everything():
        assert sorted({row["offset"] // BLOCK for row in rows}) == blocks_of(read)  # none twice, no other
    assert len(blocks_of(read)) == plan.blocks_read
    assert sum(map(len, read)) == plan.bytes_read
