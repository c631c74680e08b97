"""Times in a table: text and numbers alike become timestamps, below Spark itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_cases import table_rows

from jitdb import Log
from jitdb.common.times import NANOSECONDS_IN, time_of_text
from jitdb.spark_ext.errors import RecordMismatch

pytest.importorskip("pyspark")

from pyspark.sql.types import StructField, StructType, TimestampType

from jitdb.spark_ext.data_source import JitdbDataSource
from jitdb.spark_ext.reading.times import type_of_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = [
    "2024-03-01T00:00:00Z", "2024-03-01 00:00:00.123456789+01:00", "1969-12-31", "1969-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1677-01-01T00:00:01Z", "2262-04-11T23:47:16.854775807Z",
]  # fmt: skip
NO_TIMES = ["", "soon", "2024-13-01", True, [1], "5"]
FIRST = -62_135_596_800_000  # milliseconds from 1970 back to the year 1, where Python's times begin
NUMBERS = st.integers(FIRST, 10**14) | st.floats(-1e12, 1e12) | st.sampled_from([0, -0.0, 5.5, 1_700_000_000_123])


def log_of(folder: Path, records: list[Any], codec: str = "msgpack") -> Path:
    path = folder / "x.log"
    with Log(path, codec=codec) as log:
        log.append_many(records)
    return path


def at(what: dict[str, Any]) -> StructType:
    return StructType([StructField("at", TimestampType(), True, {"jitdb": what})])


def moment(value: Any, unit: str = "ms") -> datetime | None:
    """What a value says, plainly, to a microsecond; None where it is no time."""
    if isinstance(value, str):
        found = time_of_text(value)
        return None if found is None else EPOCH + timedelta(microseconds=found // 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return EPOCH + timedelta(microseconds=value * NANOSECONDS_IN[unit] // 1000)
    if isinstance(value, float):
        return EPOCH + timedelta(microseconds=round(value * (NANOSECONDS_IN[unit] / 1000)))
    return None


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.none() | NUMBERS | st.sampled_from(TEXTS) | st.sampled_from(NO_TIMES), max_size=30),
    codec=st.sampled_from(["msgpack", "bipf", "json"]),
)
def test_a_column_of_timestamps(tmp_path_factory: pytest.TempPathFactory, values: list[Any], codec: str) -> None:
    path = log_of(tmp_path_factory.mktemp("log"), [{"n": 1, "t": value} for value in values], codec)
    found = table_rows(path, schema=at({"path": ["t"]}), mode="PERMISSIVE")
    for row, value in zip(found, values, strict=True):
        expected = moment(value)
        if expected is None:
            assert row["at"] is None
        else:
            assert abs(row["at"] - expected) <= timedelta(
                microseconds=2 * ("1677" in str(value) or "0001" in str(value))
            )


def test_text_that_is_no_time_is_told_of(tmp_path: Path) -> None:
    path = log_of(tmp_path, [{"t": "2024-03-01"}, {"t": "soon"}])
    with pytest.raises(RecordMismatch, match="does not fit the column 'at'"):
        table_rows(path, schema=at({"path": ["t"]}))


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("us", 10**6), ("auto", 1000), ("ms", 1000)])
def test_the_declared_time(tmp_path: Path, unit: str, factor: int) -> None:
    seconds = 1_700_000_000
    later, earlier = "2024-03-01T00:00:00.5Z", "2001-01-01"
    records = [{"t": seconds * factor}, {"t": later, "u": earlier}, {"t": later, "u": "soon"}, {"u": None}, {}]
    path = log_of(tmp_path, records)
    found = table_rows(path, schema=at({"core": "timestamp"}), timestamp=["t", "u"], time_unit=unit)
    expected = [EPOCH + timedelta(seconds=seconds), moment(earlier), moment(later), None, None]
    assert [row["at"] for row in found] == expected


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ([{"time": text} for text in TEXTS], "timestamp"),
        ([{"time": "2024-03-01"}, {"time": 1_700_000_000_000}], "timestamp"),
        ([{"timestamp": 1_700_000_000_000}], "double"),
        ([{"n": 1}], "double"),
    ],
)
def test_the_type_is_found(tmp_path: Path, records: list[Any], kind: str) -> None:
    path = log_of(tmp_path, records)
    for columns in ({}, {"columns": "n"}):
        schema = JitdbDataSource(options={"path": str(path), **columns}).schema()
        assert schema["timestamp"].dataType.simpleString() == kind
    rows = table_rows(path)
    if kind == "timestamp":
        assert [row["timestamp"] for row in rows] == [moment(record["time"]) for record in records]
    else:
        assert [row["timestamp"] for row in rows] == [record.get("timestamp") for record in records]


def test_what_is_no_time_has_no_timestamps() -> None:
    assert type_of_times([{"t": "2024-03-01"}], [("t",)], "number") == "double"
