"""Parquet and Arrow files in a store are asked where they lie: their rows are read once, and kept in the cache."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyarrow import parquet

import jitdb
from jitdb.errors import LogCorrupt, ScanTooLarge
from jitdb.operators import field
from tests.objects.bucket import Asked, Bucket, Fault
from tests.objects.stores import forget_looks

ROWS: Final = 20_000


def rows(begin: int) -> list[dict[str, Any]]:
    return [{"n": n, "level": ("info", "warn", "error")[n % 3], "text": f"t {n}"} for n in range(begin, begin + ROWS)]


def put(bucket: Bucket, name: str, records: list[dict[str, Any]]) -> Path:
    path = bucket.root / "logs" / name
    table = pa.Table.from_pylist(records)
    if name.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=ROWS // 4)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    return path


def errors_of(records: list[dict[str, Any]]) -> list[int]:
    return [row["n"] for row in records if row["level"] == "error"]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_rows_are_read_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    size = put(bucket, name, rows(0)).stat().st_size
    with jitdb.open(f"s3://logs/{name}") as db:
        assert [row["n"] for row in db.query(field("level") == "error")] == errors_of(rows(0))
        assert list(db.query(field("n") == 17)) == rows(0)[17:18]
    assert sum(asked.stop - asked.begin for asked in bucket.asked) < size + (1 << 19)  # each byte once, but for looks
    forget_looks(monkeypatch)
    bucket.asked.clear()
    with jitdb.open(f"s3://logs/{name}") as db:
        assert db.count(field("level") == "error") == len(errors_of(rows(0)))
    assert len(bucket.asked) <= 3


def test_one_that_is_replaced_is_read_anew(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    put(bucket, "a.parquet", rows(0))
    with jitdb.open("s3://logs/a.parquet") as db:
        assert db.count(field("n") >= ROWS) == 0
    put(bucket, "a.parquet", rows(ROWS))
    forget_looks(monkeypatch)
    with jitdb.open("s3://logs/a.parquet") as db:
        assert db.count(field("n") >= ROWS) == ROWS


@pytest.mark.parametrize("step", range(1, 6))
def test_one_that_is_replaced_while_it_is_read_is_never_mixed(bucket: Bucket, step: int) -> None:
    put(bucket, "a.parquet", rows(0))

    def replace(number: int, _: Asked) -> Fault | None:
        return Fault(before=lambda: put(bucket, "a.parquet", rows(ROWS))) if number == step else None

    bucket.fault = replace
    with jitdb.open("s3://logs/a.parquet") as db:
        assert [row["n"] for row in db.query(field("level") == "error")] in (errors_of(rows(0)), errors_of(rows(ROWS)))


def test_a_set_has_them_beside_lines(bucket: Bucket) -> None:
    put(bucket, "a.parquet", rows(0))
    put(bucket, "b.arrow", rows(ROWS))
    parquet.write_metadata(pa.schema([("n", pa.int64())]), bucket.root / "logs" / "_metadata")
    (bucket.root / "logs" / "c.ndjson").write_text('{"n": -1, "level": "error"}\n')
    with jitdb.open_many("s3://logs/") as logs:
        found = sorted(row["n"] for row in logs.query(field("level") == "error"))
    assert found == [-1, *errors_of(rows(0)), *errors_of(rows(ROWS))]


def test_a_bound_refuses_before_it_is_read(bucket: Bucket) -> None:
    source = random.Random(1)
    size = put(bucket, "a.parquet", [{"text": source.randbytes(500).hex()} for _ in range(5000)]).stat().st_size
    with pytest.raises(ScanTooLarge, match="max_bytes"):
        jitdb.open("s3://logs/a.parquet", max_bytes=size - 1)
    assert sum(asked.stop - asked.begin for asked in bucket.asked) < size // 2  # how it begins and ends


def test_one_that_is_cut_off_is_an_error(bucket: Bucket) -> None:
    path = put(bucket, "a.parquet", rows(0))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LogCorrupt, match="cut off"):
        jitdb.open("s3://logs/a.parquet")
