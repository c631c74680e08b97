"""Rows of Arrow's tables as records.

What records have no word for is written as jitdb reads it: times and dates as text of RFC 3339, maps with text as keys
as maps, decimals as numbers. A null is no field.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from jitdb.errors import EncodeError, InvalidRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec
    from jitdb.log.codecs.rows.column_encoder import ColumnEncoder

    Encoded = tuple[NDArray[np.uint8], NDArray[np.int64]]  # records, one behind the other, and the bytes of each

BATCH: Final = 8_192  # rows


class RowEncoder:
    """Makes records of rows by kernels, where they know how. For "msgpack" and "bipf"."""

    def __init__(self) -> None:
        self._encoder: ColumnEncoder | None = None

    def encode(self, batch: pa.RecordBatch, codec: Codec, largest: int) -> Encoded | None:
        """The records, one behind the other, and the bytes of each; the next call overwrites them. None where they are
        left to Python, as where one has more than `largest` bytes.
        """
        names = batch.schema.names
        if len(set(names)) < len(names):
            return None
        from jitdb.log.codecs.rows.column_encoder import ColumnEncoder

        try:
            if self._encoder is None:
                self._encoder = ColumnEncoder(codec, names)
            return self._encoder.encode([_converted(column) for column in batch.columns], batch.num_rows, largest)
        except EncodeError:  # found again, and told
            return None


def batches_of(table: Any) -> Iterator[pa.RecordBatch]:
    """Those of a table, or of whatever gives Arrow's streams. Raises InvalidRecord for what does not."""
    if not isinstance(table, pa.RecordBatchReader):
        if not hasattr(table, "__arrow_c_stream__"):
            raise InvalidRecord(f"rows come from a table that Arrow knows, not from a {type(table).__name__}")
        table = pa.RecordBatchReader.from_stream(table)
    for batch in table:
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def records_of(table: Any, codec: Codec, largest: int) -> Iterator[Encoded | list[dict[str, Any]]]:
    """The rows of a table, some thousand at a time: encoded by RowEncoder, or as values. Raises as batches_of does."""
    from jitdb.common.kernels import WAY

    encoder = RowEncoder() if WAY == "native" and codec.name in ("msgpack", "bipf") else None
    for batch in batches_of(table):
        encoded = None if encoder is None else encoder.encode(batch, codec, largest)
        yield rows_of(batch) if encoded is None else encoded


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, as values."""
    names = batch.schema.names
    columns = [_values(column) for column in batch.columns]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def _values(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):  # here, as Python has no nanoseconds
        zone = "Z" if kind.tz else ""
        utc = column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else column
        column = pc.strftime(utc, format=f"%Y-%m-%dT%H:%M:%S{zone}")
        for zeros in (r"(\.(?:\d{3})*?)(?:000)+(Z?)$", r"()\.(Z?)$"):  # thousandths of nothing, and a point before none
            column = pc.replace_substring_regex(column, zeros, r"\1\2")
    found = _converted(column)
    values: list[Any] = found if isinstance(found, list) else found.to_pylist()
    return values


def _converted(column: pa.Array) -> pa.Array | list[Any]:
    """The column of instants, or of values that records can hold."""
    kind = column.type
    if _is_plain(kind) or pa.types.is_timestamp(kind):
        return column
    return [plain(value, kind) for value in column.to_pylist()]


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Python has its values as records do."""
    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    return types.is_binary(kind) or any(test(kind) for test in tests)


def plain(value: Any, kind: pa.DataType | None = None) -> Any:
    """A value of a table as a record has it.

    >>> plain({"at": datetime.datetime(2026, 11, 1, 12), "n": [Decimal("1.5"), Decimal(7)], "no": None})
    {'at': '2026-11-01T12:00:00', 'n': [1.5, 7]}
    """
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return utc.isoformat() + ("Z" if value.tzinfo else "")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        is_whole = value == value.to_integral_value() and abs(value) < 1 << 63
        return int(value) if is_whole else float(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if kind is not None and pa.types.is_map(kind):
            return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value}
        return [plain(item) for item in value]
    return value
