"""Logs in object storage as tables: driver and workers read them through the same door as everything else does."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.errors import LogError
from jitdb.spark_ext import prebuild, read_log
from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.errors import SparkError
from jitdb.spark_ext.options import ReadOptions, as_options
from jitdb.spark_ext.reading import many
from jitdb.spark_ext.reading.many import logs_of
from jitdb.spark_ext.reading.opening import open_log
from tests.objects.bucket import Asked, Bucket, Fault, serving
from tests.objects.stores import asked_at, forget_looks

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
def store(bucket: Bucket) -> Bucket:
    """Asked by http, which needs no credentials: Spark's processes keep the environment in which they began."""
    bucket.fault = lambda number, asked: None
    return bucket


def test_objects_are_tables(store: Bucket, spark: Any) -> None:
    place = f"{store.url}/logs/big.ndjson"
    found = read_log(spark, place, ["n", "level"], 'level == "error"', partition_bytes="256k")
    assert found.count() == 20 * 1000
    assert {row.level for row in found.limit(5).collect()} == {"error"}
    assert found.rdd.getNumPartitions() > 4


def test_a_folder_of_objects_is_several_logs(store: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked_at(store.url, monkeypatch, tmp_path / "cache")
    found = logs_of(ReadOptions.of({"path": "s3://logs/day/"}))
    assert [each.path for each in found] == ["s3://logs/day/dt=1/a.ndjson.gz", "s3://logs/day/dt=2/b.ndjson"]
    assert [each.shared["dt"] for each in found] == [1, 2]


def test_objects_that_hold_no_answer_are_not_asked(
    store: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(40):
        path = store.root / "logs" / "small" / f"dt={number % 2}" / f"part-{number:02}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"file": number, "n": n}) + "\n" for n in range(50)))
    asked_at(store.url, monkeypatch, tmp_path / "cache")
    with jitdb.open_many("s3://logs/small/**", progress=False) as logs:
        assert logs.count("file == 7 and n > 3") == 46  # makes a bundle, and its indexes

    opened: list[str] = []
    monkeypatch.setattr(many, "open_log", lambda options: (opened.append(options.path), open_log(options))[1])

    def read(where: str) -> tuple[list[tuple[int, int]], set[int]]:
        """The rows, and the numbers of the objects that are opened to plan them."""
        columns = {"n": ("n", "long"), "file": ("file", "long")}
        options = as_options(None, columns, where, {"core": "offset"})
        source = JitdbDataSource(options={**options, "path": "s3://logs/small/**"})
        reader = source.reader(source.schema())
        opened.clear()
        parts = reader.partitions()
        numbers = {int(path[-9:-7]) for path in opened}
        rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        return sorted((row["file"], row["n"]) for row in rows), numbers

    rows, numbers = read("file in [7, 8] and dt == 1 and n > 40")
    assert rows == [(7, n) for n in range(41, 50)]
    assert numbers == {7}
    rows, numbers = read("n >= 48")
    assert rows == [(file, n) for file in range(40) for n in (48, 49)]
    assert numbers == set(range(40))


def values_in(spark: Any, place: str) -> set[Any]:
    try:
        return {row.n for row in read_log(spark, place, ["n"], partition_bytes="256k").distinct().collect()}
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
    assert values_in(spark, f"{store.url}/logs/changing.ndjson") in ({1}, {2}, {"replaced"})
    assert len(store.asked) >= at
    assert values_in(spark, f"{store.url}/logs/changing.ndjson") == {2}


def test_what_cannot_be_done_with_objects_is_said(store: Bucket, spark: Any) -> None:
    with pytest.raises(SparkError, match="kept in a store"):
        prebuild(spark, "s3://logs/big.ndjson", fields=["level"])
    with pytest.raises(LogError, match="no such object"):
        read_log(spark, f"{store.url}/logs/none.ndjson", ["n"])


def test_a_cluster_indexes_objects_and_shares_that(
    store: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (store.root / "shared").mkdir(exist_ok=True)
    asked_at(store.url, monkeypatch, tmp_path / "cache")
    script = Path(__file__).with_name("prebuild_objects_script.py")
    command = [sys.executable, str(script), "s3://logs/day/**", "s3://shared/indexes"]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["first"][:2] == [2, 2 * len(ROWS)]
    assert "level" in found["first"][2]
    assert found["again"] == [0, "s3://logs/day/**: nothing to do, 0 indexes are up to date"]
    assert found["rows"] == 2 * sum(row["level"] == "error" and row["n"] >= 1500 for row in ROWS)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of another machine"))
    forget_looks(monkeypatch)
    with jitdb.open_many("s3://logs/day/**", "s3://shared/indexes", max_bytes=0) as logs:  # nothing is scanned
        assert logs.count('level == "error" and n >= 1500') == found["rows"]
