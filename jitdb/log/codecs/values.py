"""What a field can hold, whichever codec wrote it.

Ten kinds. Two values are equal when their kinds are equal and their contents are; numbers are equal when
they are numerically equal (1 == 1.0), true is not 1, a string is not bytes, NaN equals NaN (as in
PostgreSQL and DuckDB: what can be stored can be asked for). A field that holds null is present.

**Numbers** are kept as a pair `(hi, lo)`: `hi` is the nearest double, `lo` the exact rest `value - hi`, zero
for every double and for integers up to 2**53, and at most 1,024 in size for any 64-bit integer. Pairs sort
and compare exactly as the numbers do, so a column of doubles with a (mostly absent) column of rests loses
nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

# Kinds are written into index files (docs/format-index.md): never change a number.
ABSENT: Final = 0
NULL: Final = 1
FALSE: Final = 2
TRUE: Final = 3
NUMBER: Final = 4
STRING: Final = 5
BYTES: Final = 6
ARRAY: Final = 7
MAP: Final = 8
EXTENSION: Final = 9  # a msgpack extension value, opaque

KIND_NAMES: Final = (
    "absent", "null", "false", "true", "number", "string", "bytes", "array", "map", "extension",
)  # fmt: skip


class Undefined:
    """The value `undefined` of JavaScript: bipf can hold it; a field that holds it counts as absent."""

    _only: Undefined | None = None

    def __new__(cls) -> Undefined:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined()


def split_number(value: int | float) -> tuple[float, int]:
    """The pair `(hi, lo)` of a number (see the head of this file).

    >>> split_number(5), split_number(2**53 + 1)
    ((5.0, 0), (9007199254740992.0, 1))
    """
    if isinstance(value, float):
        return (value, 0) if value else (0.0, 0)
    try:
        hi = float(value)
    except OverflowError:
        return (math.inf if value > 0 else -math.inf), 0
    return hi, value - int(hi)


def kind_of(value: Any) -> int:
    """The kind of a decoded Python value.

    >>> KIND_NAMES[kind_of(1.5)], KIND_NAMES[kind_of(True)], KIND_NAMES[kind_of({})]
    ('number', 'true', 'map')
    """
    if value is None:
        return NULL
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    if isinstance(value, str):
        return STRING
    if isinstance(value, (int, float)):
        return NUMBER
    if isinstance(value, (bytes, bytearray, memoryview)):
        return BYTES
    if isinstance(value, (list, tuple)):
        return ARRAY
    if isinstance(value, dict):
        return MAP
    if value is UNDEFINED:
        return ABSENT
    return EXTENSION
