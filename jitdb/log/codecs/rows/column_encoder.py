"""Columns of Arrow to records: the values of plain types by kernels, all others by the codec, one by one.

Instants become text of RFC 3339, in UTC where they have a zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from jitdb.log.codecs.base import Codec
from jitdb.log.codecs.fields.constants import SLACK
from jitdb.log.codecs.fields.located import Scratch
from jitdb.log.codecs.rows.column_kernels import (
    HEAD_BYTES,
    NUMBER_BYTES,
    TIME_BYTES,
    finish_rows,
    put_bools,
    put_doubles,
    put_integers,
    put_texts,
    put_times,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = "pa.Array | Sequence[Any]"  # of Python, None where there is none, which the codec encodes


_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}  # of a second


class _Cells(NamedTuple):
    """What one column puts into the rows.

    room: bytes that it takes of each row at most, int64 [n]; or of any
    put:  writes it: the key, the rows, their cursors and counts, whether it is bipf; False where it cannot
    """

    room: NDArray[np.int64] | int
    put: Callable[..., bool | None]


class ColumnEncoder:
    """Makes records of batches of columns of these names, which differ. For "msgpack" and "bipf"."""

    def __init__(self, codec: Codec, names: Sequence[str]) -> None:
        self._codec = codec
        self._is_bipf = int(codec.name == "bipf")
        self._keys = [np.frombuffer(codec.encode(name) + bytes(SLACK), np.uint8) for name in names]
        self._rows, self._records = Scratch(), Scratch()

    def encode(
        self, columns: Sequence[Values], count: int, largest: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """The records of so many rows, one behind the other, and the bytes of each, int64 [n]; a null is no field. The
        next call overwrites them.

        None where a kernel knows no encoding of a value, or a record has more than `largest` bytes. Raises EncodeError.
        """
        cells = [self._cells(column) for column in columns]
        rooms = np.full(count, SLACK + sum(len(key) for key in self._keys), np.int64)
        for each in cells:
            rooms += each.room
        starts = np.cumsum(rooms) - rooms
        cursors, counts = starts.copy(), np.zeros(count, np.int64)
        size = int(rooms.sum()) + HEAD_BYTES * count + SLACK
        rows, data = self._rows.room(size), self._records.room(size)
        for each, key in zip(cells, self._keys, strict=True):
            if each.put(key, rows, cursors, counts, self._is_bipf) is False:
                return None
        lengths = np.empty(count, np.int64)
        size = finish_rows(starts, cursors, counts, rows, data, lengths, self._is_bipf, largest)
        return None if size < 0 else (data[:size], lengths)

    def _cells(self, column: Values) -> _Cells:
        if not isinstance(column, pa.Array):
            return self._encoded(column)
        types, kind = pa.types, column.type
        there = _bits(column, 0) if column.null_count else np.ones(len(column), np.bool_)
        if types.is_boolean(kind):
            return _Cells(NUMBER_BYTES, partial(put_bools, there, _bits(column, 1)))
        if types.is_unsigned_integer(kind):
            sizes = _numbers(column.cast(pa.uint64()), np.uint64)
            return _Cells(NUMBER_BYTES, partial(put_integers, there, sizes, np.zeros(len(sizes), np.bool_)))
        if types.is_integer(kind):
            values = _numbers(column.cast(pa.int64()), np.int64)
            sizes = np.abs(values).view(np.uint64)  # the least is its own size, read so
            return _Cells(NUMBER_BYTES, partial(put_integers, there, sizes, values < 0))
        if types.is_float32(kind) or types.is_float64(kind):
            return _Cells(NUMBER_BYTES, partial(put_doubles, there, _numbers(column.cast(pa.float64()), np.float64)))
        if types.is_timestamp(kind):
            values = _numbers(column.cast(pa.int64()), np.int64)
            digits = _DIGITS[kind.unit]
            put = partial(put_times, there, values, 10**digits, digits, int(kind.tz is not None))
            return _Cells(TIME_BYTES, put)
        if types.is_string(kind) or types.is_large_string(kind):
            column.validate(full=True)  # that it is UTF-8
            wide = column.cast(pa.large_string())
            _, ends, texts = wide.buffers()
            if ends is not None:
                places = np.frombuffer(ends, np.int64)[wide.offset : wide.offset + len(wide) + 1]
                return _texts(there, places, np.frombuffer(texts or b"", np.uint8), is_encoded=False)
        return self._encoded(column.to_pylist())

    def _encoded(self, values: Sequence[Any]) -> _Cells:
        encode = self._codec.encode
        there = np.fromiter((value is not None for value in values), np.bool_, len(values))
        encoded = [b"" if value is None else encode(value) for value in values]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return _texts(there, ends, np.frombuffer(b"".join(encoded), np.uint8), is_encoded=True)


def _numbers(column: pa.Array, kind: Any) -> NDArray[Any]:
    """The values of a column of such numbers; any number where there is none."""
    values = column.buffers()[1]
    if values is None:
        return np.zeros(len(column), kind)
    return np.frombuffer(values, kind)[column.offset : column.offset + len(column)]


def _bits(column: pa.Array, place: int) -> NDArray[np.bool_]:
    """One of the buffers of a column that have a bit a value."""
    bits = column.buffers()[place]
    if bits is None:
        return np.zeros(len(column), np.bool_)
    end = column.offset + len(column)
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=end, bitorder="little").view(np.bool_)[column.offset :]


def _texts(there: NDArray[np.bool_], ends: NDArray[np.int64], texts: NDArray[np.uint8], *, is_encoded: bool) -> _Cells:
    begin, stop = int(ends[0]), int(ends[-1])
    behind = np.concatenate([texts[begin:stop], np.zeros(SLACK, np.uint8)])
    return _Cells(np.diff(ends) + HEAD_BYTES, partial(put_texts, there, ends - begin, behind, int(is_encoded)))
