"""Times of records as milliseconds since 1970, whatever they are written as: what columns of timestamps take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.times import AUTO, NUMBER, time_of_text
from jitdb.common.values import ABSENT, EXTENSION, STRING, value_at
from jitdb.common.values import NUMBER as IS_NUMBER
from jitdb.indexes.kinds.casting import unit_of_kernels
from jitdb.indexes.kinds.kernels.numbers import least_numbers
from jitdb.log.codecs.fields.located import FieldValues

_MILLISECONDS = (AUTO, "ms", NUMBER)  # units in which numbers stay as they are


def in_millis(values: FieldValues, unit: str = AUTO) -> FieldValues:
    """The same values, with numbers of milliseconds in the place of text, and of timestamps of msgpack, that are times,
    exact to a microsecond; numbers are of that unit: where none is said, milliseconds.
    """
    buffer, kind, start, length, number = values.arrays
    taken = (kind == STRING) | (kind == EXTENSION) if unit != NUMBER else np.zeros(len(kind), np.bool_)
    if unit not in _MILLISECONDS:
        taken |= kind == IS_NUMBER
    if not taken.any():
        return values
    hi, lo = np.empty(len(kind), np.float64), np.empty(len(kind), np.int16)
    wanted = np.where(taken, kind, np.uint8(ABSENT))
    least_numbers(buffer, wanted, start, length, number, *unit_of_kernels(unit), 0, hi, lo)
    taken &= hi == hi
    near = np.abs(hi) < 2.0**63
    micros = np.floor_divide(np.where(near, hi, 0.0).astype(np.int64) + lo, 1000)
    millis = np.where(near, micros / 1000, hi / 1e6)
    return FieldValues(
        values.encoding,
        buffer,
        np.where(taken, np.uint8(IS_NUMBER), kind),
        start,
        np.where(taken, np.int32(0), length),
        np.where(taken, millis, number),
    )


def type_of_times(records: Iterable[Any], paths: Sequence[Path], unit: str) -> str:
    """Spark's type for the declared time of records like these: timestamp where text says it, else double."""
    if unit == NUMBER:
        return "double"
    held = (value_at(record, path) for record in records for path in paths)
    is_text = any(isinstance(value, str) and time_of_text(value) is not None for value in held)
    return "timestamp" if is_text else "double"
