"""Logs in object storage as tables: driver and workers read them through the same door as everything else does."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitdb.errors import LogError
from jitdb.spark_ext import prebuild, read_log
from jitdb.spark_ext.errors import SparkError
from tests.objects.bucket import Asked, Bucket, Fault, serving
from tests.objects.stores import KEYS, asked_at

ROWS = [{"n": number, "level": ("info", "warn", "error")[number % 3], "pad": "x" * 40} for number in range(3000)]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    root = tmp_path_factory.mktemp("root")
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    for key, data in {
        "big.ndjson": lines * 20,
        "day/dt=1/a.ndjson.gz": gzip.compress(lines),
        "day/dt=2/b.ndjson": lines,
    }.items():
        path = root / "logs" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with serving(root) as found:
        yield found


@pytest.fixture
def store(bucket: Bucket, spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    asked_at(bucket.url, monkeypatch, tmp_path / "cache")
    bucket.fault = lambda number, asked: None
    return bucket


@pytest.fixture(autouse=True)
def workers(bucket: Bucket, spark: Any) -> Iterator[None]:
    """Workers have the driver's environment of when Spark began: the rest is set for each job."""
    held = dict(spark.sparkContext.environment)
    spark.sparkContext.environment.update({**KEYS, "AWS_ENDPOINT_URL": bucket.url})
    yield
    spark.sparkContext.environment.clear()
    spark.sparkContext.environment.update(held)


def test_objects_are_tables(store: Bucket, spark: Any) -> None:
    found = read_log(spark, "s3://logs/big.ndjson", ["n", "level"], 'level == "error"', partition_bytes="256k")
    assert found.count() == 20 * 1000
    assert {row.level for row in found.limit(5).collect()} == {"error"}
    assert found.rdd.getNumPartitions() > 4
    several = read_log(spark, "s3://logs/day/", ["n", "level", "dt"])
    assert sorted((row.dt, row["count"]) for row in several.groupBy("dt").count().collect()) == [(1, 3000), (2, 3000)]


def values_in(frame: Any) -> set[Any]:
    try:
        return {row.n for row in frame.distinct().collect()}
    except Exception as error:
        return {"replaced"} if re.search(r"changed|another file|replaced", str(error)) else {error}


@pytest.mark.parametrize("at", [3, 8, 14])
def test_an_object_that_is_replaced_while_it_is_read_is_never_mixed(store: Bucket, spark: Any, at: int) -> None:
    path = store.root / "logs" / "changing.ndjson"
    path.write_bytes(b'{"n": 1}\n' * 300_000)
    store.asked.clear()

    def replace(number: int, asked: Asked) -> Fault | None:
        return Fault(before=lambda: path.write_bytes(b'{"n": 2}\n' * 300_000)) if number == at else None

    store.fault = replace
    found = values_in(read_log(spark, "s3://logs/changing.ndjson", ["n"], partition_bytes="256k"))
    assert found in ({1}, {2}, {"replaced"})
    assert len(store.asked) >= at
    assert values_in(read_log(spark, "s3://logs/changing.ndjson", ["n"])) == {2}


def test_a_prebuild_says_how_objects_are_indexed(store: Bucket, spark: Any) -> None:
    with pytest.raises(SparkError, match="indexed by one machine"):
        prebuild(spark, "s3://logs/big.ndjson", fields=["level"])
    with pytest.raises(LogError, match="no such object"):
        read_log(spark, "s3://logs/none.ndjson", ["n"])
