"""Tables as pyarrow has them, files of them, and the records that their rows are: a plain, slow oracle."""

from __future__ import annotations

import datetime
import random
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

UTC = datetime.UTC
KINDS = ("parquet", "arrow", "feather")


def rich_table() -> pa.Table:
    """A column of each kind, some of them nested, with nulls."""
    day, at = datetime.date(2026, 11, 20), datetime.datetime(2026, 11, 20, 7, 8, 9, 123456)
    zoned = at.replace(tzinfo=UTC)
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "n": ([1, None, -3], pa.int64()),
        "big": ([2**63 - 1, -(2**63), None], pa.int64()),
        "unsigned": ([2**64 - 1, 0, None], pa.uint64()),
        "small": ([1, None, -128], pa.int8()),
        "x": ([0.1, None, -1e300], pa.float64()),
        "single": ([0.1, 2.5, None], pa.float32()),
        "yes": ([True, False, None], pa.bool_()),
        "text": (["ä\n\"x,y'", "", None], pa.string()),
        "large": (["a", None, "c" * 300], pa.large_string()),
        "coded": (["b", "a", "b"], pa.dictionary(pa.int32(), pa.string())),
        "day": ([day, None, datetime.date(1, 1, 1)], pa.date32()),
        "date64": ([day, None, day], pa.date64()),
        "at": ([at, None, datetime.datetime(1960, 1, 1)], pa.timestamp("us")),
        "zoned": ([zoned, None, zoned], pa.timestamp("ms", "Europe/Berlin")),
        "seconds": ([at.replace(microsecond=0), None, None], pa.timestamp("s")),
        "clock": ([datetime.time(1, 2, 3), None, datetime.time(1, 2, 3, 4)], pa.time64("us")),
        "took": ([datetime.timedelta(seconds=1.5), None, None], pa.duration("us")),
        "money": ([Decimal("1.50"), Decimal("7.00"), None], pa.decimal128(20, 2)),
        "list": ([[1, None, 3], [], None], pa.list_(pa.int64())),
        "struct": ([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None], pa.struct({"a": pa.int64(), "b": pa.string()})),
        "deep": ([[{"d": [day]}], None, [{"d": None}]], pa.list_(pa.struct({"d": pa.list_(pa.date32())}))),
        "map": ([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "none": ([None, None, None], pa.null()),
    }
    arrays = {}
    for name, (values, kind) in columns.items():
        plain = pa.array(values, kind.value_type).dictionary_encode() if name == "coded" else pa.array(values, kind)
        arrays[name] = plain
    return pa.table(arrays)


def flights(rows: int = 20_000, seed: int = 7) -> pa.Table:
    """Of many rows, in columns as they are in practice."""
    chance = random.Random(seed)
    origins = pa.array([chance.choice(("EWR", "JFK", "LGA")) for _ in range(rows)]).dictionary_encode()
    begin = datetime.datetime(2026, 11, 20, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int32()),
            "origin": origins,
            "carrier": [chance.choice(("UA", "AA", "B6", None)) for _ in range(rows)],
            "delay": [None if chance.random() < 0.02 else chance.randrange(-30, 900) / 2 for _ in range(rows)],
            "status": [chance.choice((200, 200, 200, 404, 500, 503)) for _ in range(rows)],
            "time": pa.array([begin + datetime.timedelta(seconds=n) for n in range(rows)], pa.timestamp("us", "UTC")),
            "plane": [{"tail": f"N{chance.randrange(500)}", "seats": chance.randrange(50, 300)} for _ in range(rows)],
        }
    )


def write(table: pa.Table, path: Path, kind: str = "", **options: Any) -> Path:
    """A file of this kind, which its name says by default."""
    kind = kind or path.suffix[1:]
    if kind == "parquet":
        parquet.write_table(table, path, **options)
    elif kind == "feather":
        feather.write_feather(table, str(path), compression="zstd")
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, 1_000)
    return path


def records(table: pa.Table) -> list[dict[str, Any]]:
    """The rows, as the records that they are."""
    maps = {field.name for field in table.schema if pa.types.is_map(field.type)}
    return [
        {name: dict(value) if name in maps else plain(value) for name, value in row.items() if value is not None}
        for row in table.to_pylist()
    ]


def plain(value: Any) -> Any:
    """As docs/formats.md says."""
    if isinstance(value, datetime.datetime):
        text = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        part = "" if not text.microsecond else f".{text.microsecond:06}"
        part = part[:4] if part.endswith("000") else part
        return f"{text.strftime('%Y-%m-%dT%H:%M:%S').rjust(19, '0')}{part}{'Z' if value.tzinfo else ''}"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    return [plain(each) for each in value] if isinstance(value, list) else value
