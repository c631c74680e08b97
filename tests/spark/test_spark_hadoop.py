"""prebuild() of a log that Hadoop reads. A file:// URI goes the way of all of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, check, make_log, messages, oracle_of
from range_cases import damage, files_of, merged_files

import jitdb
from jitdb import Log
from jitdb.errors import LogError, LogWarning
from jitdb.spark_ext import hadoop, prebuild
from jitdb.spark_ext.errors import SparkError

BLOCK = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_log(tmp_path / "x.log", 3000)
    return tmp_path / "x.log"


@pytest.fixture
def small_splits(spark: Any) -> Any:
    """As if the log were of gigabytes: many partitions."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    name = "mapreduce.input.fileinputformat.split.maxsize"
    conf.set(name, str(20 * BLOCK))
    yield
    conf.unset(name)


def expected(path: Path) -> dict[str, bytes]:
    with Log(path, read_only=True) as log:
        return merged_files(log, path.parent / f"local {len(list(path.parent.iterdir()))}", QUESTIONS)


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("edge", [hadoop.EDGE, 3 * BLOCK], ids=["fetched whole", "fetched sparse"])
def test_the_same_files(spark: Any, path: Path, edge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "EDGE", edge)
    summary = prebuild(spark, path.as_uri(), operations=QUESTIONS)
    assert summary.tasks > 3
    assert summary.path == path.as_uri()
    folder = path.parent / "x.log.jitdb" / "indexes"
    assert files_of(folder) == expected(path)
    with Log(path) as log:
        log.append_many(messages(400, first=3000))
    assert prebuild(spark, path.as_uri(), operations=QUESTIONS).records == 400
    assert files_of(folder) == expected(path)
    assert prebuild(spark, path.as_uri(), operations=QUESTIONS).tasks == 0
    with jitdb.open(path) as db:
        assert db.explain(QUESTIONS[4])["scan_bytes"] == 0
        check(db, oracle_of(db.log), QUESTIONS[:6])


def test_a_log_without_a_sidecar_gets_one(spark: Any, path: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone" / "y.log"
    alone.parent.mkdir()
    alone.write_bytes(path.read_bytes())
    os.utime(alone, ns=(0, 1_700_000_000_123 * 1_000_000))  # as Hadoop knows it
    prebuild(spark, alone.as_uri(), fields=["value.author"], block_size=BLOCK)
    assert len(files_of(alone.parent / "y.log.jitdb" / "indexes")) == 5
    assert sorted(each.name for each in alone.parent.iterdir() if each.suffix != ".crc") == ["y.log", "y.log.jitdb"]
    with jitdb.open(alone) as db:
        assert db.explain(QUESTIONS[3])["scan_bytes"] == 0


@pytest.mark.usefixtures("small_splits")
def test_a_damaged_block(spark: Any, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[33 * BLOCK + 200] ^= 4
    damage(path, data)
    with pytest.warns(LogWarning, match="block 33 is damaged"):
        summary = prebuild(spark, path.as_uri(), operations=QUESTIONS)
    assert summary.damaged == (33,)
    with pytest.warns(LogWarning, match="block 33"):
        assert files_of(path.parent / "x.log.jitdb" / "indexes") == expected(path)


def test_what_cannot_be_read(spark: Any, path: Path) -> None:
    with pytest.raises(LogError, match="there is no such file"):
        prebuild(spark, path.as_uri() + "x", fields=["a"])
    with open(path, "ab") as file:
        file.write(b"\0" * 100)
    with pytest.raises(SparkError, match="no whole number of blocks of 4,096"):
        prebuild(spark, path.as_uri(), fields=["a"])
