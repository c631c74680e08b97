"""Rows of Arrow's tables as records.

What records have no word for is written as jitdb reads it: times and dates as text of RFC 3339, maps with text as keys
as maps, decimals as numbers. A null is no field. For the codec json pyarrow writes CSV of them, of which a kernel makes
records (json/row_kernels.py); for msgpack a kernel takes Arrow's own arrays (msgpack/row_kernels.py). For other codecs,
and where a column has what these kernels do not take, rows become values, which the codec encodes one by one.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from jitdb.errors import InvalidRecord
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.msgpack.codec import CODEC, MsgpackCodec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec

    Encoded = tuple[NDArray[np.uint8], NDArray[np.int64]]  # records, one behind the other, and the bytes of each

BATCH: Final = 8_192  # rows
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NAMED: Final = (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity"))  # numbers, as Arrow and JSON write them


def batches_of(table: Any) -> Iterator[pa.RecordBatch]:
    """Those of a table, or of whatever gives Arrow's streams. Raises InvalidRecord for what does not."""
    if not isinstance(table, pa.RecordBatchReader):
        if not hasattr(table, "__arrow_c_stream__"):
            raise InvalidRecord(f"rows come from a table that Arrow knows, not from a {type(table).__name__}")
        table = pa.RecordBatchReader.from_stream(table)
    for batch in table:
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def records_of(batch: pa.RecordBatch, codec: Codec) -> Encoded | list[dict[str, Any]]:
    """The rows of some thousand, as records, or as values that the codec is still to encode."""
    encoded = encoded_rows(batch, codec)
    return values_of_rows(batch) if encoded is None else encoded


def encoded_rows(batch: pa.RecordBatch, codec: Codec) -> Encoded | None:
    """The rows as records, made many at once; None where the codec is to encode them one by one."""
    if codec.is_json:
        return json_rows(batch)
    return packed_rows(batch) if type(codec) is MsgpackCodec else None


def json_rows(batch: pa.RecordBatch) -> Encoded | None:
    """The rows as records of the codec json; None where they have something that JSON lacks, or text that is none."""
    from jitdb.log.codecs.json.row_kernels import QUOTED, RowFramer

    names = batch.schema.names
    if len(set(names)) < len(names) or not names:
        return None
    try:
        cells = [_cells(column) for column in batch.columns]
    except (TypeError, ValueError):  # told by the codec, which names the field
        return None
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    framer = RowFramer(",", [(key, kind) for key, (_, kind) in zip(keys, cells, strict=True)], QUOTED)
    text = pa.BufferOutputStream()
    columns = pa.RecordBatch.from_arrays([column for column, _ in cells], names=[*map(str, range(len(names)))])
    csv.write_csv(columns, text, csv.WriteOptions(include_header=False))
    size = text.tell()
    text.write(bytes(SLACK))
    data = text.getvalue()
    found, position = [], 0
    while position < size:
        framed = framer.frame(data, position, size, 0)
        if framed.is_left:
            return None
        found.append((framed.data.copy(), framed.lengths.copy()))
        position = framed.position
    records, lengths = map(np.concatenate, zip(*found, strict=True))
    return (records, lengths) if len(lengths) == batch.num_rows else None  # a null alone is a blank line


def _cells(column: pa.Array) -> tuple[pa.Array, int]:
    """A column for CSV, and what it holds there. Raises TypeError, ValueError for what JSON lacks."""
    from jitdb.log.codecs.json.row_kernels import JSON, TEXT

    column = _decoded(column)
    kind, types = column.type, pa.types
    if types.is_string(kind) or types.is_large_string(kind):
        column.validate(full=True)  # that it is UTF-8
        return column, TEXT
    if types.is_timestamp(kind):
        return _instants(column), TEXT
    if types.is_date32(kind):
        return column.cast(pa.string()), TEXT
    if types.is_boolean(kind) or types.is_integer(kind):
        return column, JSON
    if types.is_float32(kind) or types.is_float64(kind):
        column = column.cast(pa.float64())
        if pc.all(pc.is_finite(column)).as_py() in (True, None):
            return column, JSON
        texts = column.cast(pa.string())
        for theirs, ours in _NAMED:
            texts = pc.if_else(pc.equal(texts, theirs), ours, texts)
        return texts, JSON
    texts = [b"" if value is None else json.dumps(value, ensure_ascii=False).encode() for value in _values(column)]
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return _text_column(np.frombuffer(b"".join(texts), np.uint8), sizes, sizes > 0), JSON


def packed_rows(batch: pa.RecordBatch) -> Encoded | None:
    """The rows as records of the codec msgpack; None where a column has other values than numbers, text, bytes, times,
    true and false.
    """
    from jitdb.log.codecs.msgpack import row_kernels

    names = batch.schema.names
    if len(set(names)) < len(names) or not names:
        return None
    try:
        cells = [_packable(column) for column in batch.columns]
    except (TypeError, ValueError):  # told by the codec, which names the field
        return None
    keys = [CODEC.encode(name) for name in names]
    data = [np.frombuffer(cell.data, np.uint8) for cell in cells]
    begins = np.cumsum([0, *map(len, data)])
    values = np.stack([each.values + begin * bool(each.data) for each, begin in zip(cells, begins[:-1], strict=True)])
    sizes = np.stack([np.where(_is_there(cell.array), cell.sizes, row_kernels.NOTHING) for cell in cells])
    a_row = row_kernels.HEAD + sum(map(len, keys)) + (row_kernels.LARGEST + row_kernels.HEAD) * len(keys)
    out = np.empty(batch.num_rows * a_row + int(np.maximum(sizes, 0).sum()) + SLACK, np.uint8)
    lengths = np.empty(batch.num_rows, np.int64)
    end = row_kernels.pack_rows(
        np.array([cell.kind for cell in cells], np.int64), np.frombuffer(b"".join(keys) + bytes(SLACK), np.uint8),
        np.cumsum([*map(len, keys)], dtype=np.int64), values, sizes,
        np.concatenate([*data, np.zeros(SLACK, np.uint8)]), out, lengths,
    )  # fmt: skip
    return out[:end], lengths


class _Packable(NamedTuple):
    """A column for the kernel of msgpack; see there."""

    kind: int
    array: pa.Array  # says what is null
    values: NDArray[np.int64]
    sizes: Any = 0
    data: Any = b""


def _packable(column: pa.Array) -> _Packable:
    """Raises TypeError, ValueError for what is to be encoded value by value."""
    from jitdb.log.codecs.msgpack import row_kernels

    column = _decoded(column)
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        column = _instants(column)
    elif types.is_date32(kind):
        column = column.cast(pa.string())
    kind = column.type
    if types.is_boolean(kind):
        bits = column.cast(pa.int8())
        return _Packable(row_kernels.WORD, column, _numbers(bits, np.int8).astype(np.int64))
    if types.is_integer(kind):
        return _Packable(row_kernels.WHOLE, column, _numbers(column.cast(pa.int64()), np.int64))
    if types.is_float32(kind) or types.is_float64(kind):
        return _Packable(row_kernels.DOUBLE, column, _numbers(column.cast(pa.float64()), np.int64))
    if types.is_string(kind) or types.is_binary(kind):
        column = column.cast(pa.large_string() if types.is_string(kind) else pa.large_binary())
    is_text = types.is_large_string(column.type)
    if not is_text and not types.is_large_binary(column.type):
        raise TypeError(f"no kernel writes {kind}")
    if is_text:
        column.validate(full=True)  # that it is UTF-8
    _, places, data = column.buffers()
    ends = np.frombuffer(places, np.int64)[column.offset : column.offset + len(column) + 1]
    part = b"" if data is None else data[int(ends[0]) : int(ends[-1])]
    of = row_kernels.TEXT if is_text else row_kernels.BINARY
    return _Packable(of, column, ends[:-1] - ends[0], np.diff(ends), part)


def _numbers(column: pa.Array, kind: Any) -> NDArray[Any]:
    """The values of a column of numbers, anything where it is null."""
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def _is_there(column: pa.Array) -> NDArray[np.bool_]:
    """Of each of its values whether it is no null; to_numpy() would import pandas."""
    valid, stop = column.buffers()[0], column.offset + len(column)
    if valid is None:
        return np.ones(len(column), np.bool_)
    return np.unpackbits(np.frombuffer(valid, np.uint8), count=stop, bitorder="little")[column.offset :] > 0


def _decoded(column: pa.Array) -> pa.Array:
    """Without a dictionary: the values themselves."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def values_of_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, as values."""
    names = batch.schema.names
    columns = [_values(column) for column in batch.columns]
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]


def _values(column: pa.Array) -> list[Any]:
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):  # as text, as Python has no nanoseconds
        column = _instants(column)
    found: list[Any] = column.to_pylist()
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    if types.is_binary(kind) or types.is_timestamp(kind) or any(test(kind) for test in tests):
        return found
    return [plain(value, kind) for value in found]


def _instants(column: pa.Array) -> pa.Array:
    """Timestamps as text of RFC 3339, in UTC where they have a zone, without thousandths of nothing."""
    zone: Literal["UTC", "naive"] = "UTC" if column.type.tz else "naive"
    per_second = _PER_SECOND[column.type.unit]
    is_there = _is_there(column)
    numbers = np.where(is_there, _numbers(column, np.int64), 0)
    left = np.arange(len(numbers))
    texts = np.zeros(len(numbers), "S40")
    for unit, per in _PER_SECOND.items():  # the coarsest that tells a time
        size = per_second // per
        is_whole = numbers[left] % size == 0
        whole, left = left[is_whole], left[~is_whole]
        texts[whole] = np.datetime_as_string((numbers[whole] // size).astype(f"M8[{unit}]"), timezone=zone)
        if not len(left):
            break
    cells = texts.view(np.uint8)
    return _text_column(cells[cells > 0], np.char.str_len(texts), is_there)


def _text_column(data: NDArray[np.uint8], sizes: NDArray[np.int64], is_there: NDArray[np.bool_]) -> pa.Array:
    """The texts that lie one behind the other. pa.array() would import pandas, too."""
    places = np.concatenate(([0], np.cumsum(sizes)))
    valid = np.packbits(is_there, bitorder="little")
    buffers = [pa.py_buffer(part) for part in (valid, places, data)]
    return pa.Array.from_buffers(pa.large_string(), len(sizes), buffers)


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
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if kind is not None and pa.types.is_map(kind):
            return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value}
        return [plain(item) for item in value]
    return value
