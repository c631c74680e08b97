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
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from jitdb.common.paths import Cast, Step
from jitdb.errors import QueryError

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


def kind_name(value: Any) -> str:
    """The name of a value's kind for people: true and false are boolean.

    >>> kind_name(1.5), kind_name(True), kind_name(None)
    ('number', 'boolean', 'null')
    """
    return "boolean" if isinstance(value, bool) else KIND_NAMES[kind_of(value)]


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
    value = int(value)
    try:
        hi = float(value)
    except OverflowError:
        return (math.inf, -1) if value > 0 else (-math.inf, 1)
    return hi, value - int(hi)


def number_of_text(text: str) -> int | float | None:
    """The number that a text spells, as JSON writes numbers, or with a plus sign; None where it spells none.

    A whole number of up to 64 bits is exact, any other one the nearest double. `indexes/kinds/kernels/numbers.py` does
    the same of whole columns.

    >>> number_of_text("502"), number_of_text("-1.5e3"), number_of_text("+7")
    (502, -1500.0, 7)
    >>> [number_of_text(text) for text in ("", "-", "12ms", " 5", "007", "1_000", ".5", "0x1f", "NaN")]
    [None, None, None, None, None, None, None, None, None]
    """
    if not text[-1:].isdecimal() or re.fullmatch(_SPELLED, text, re.ASCII) is None:
        return None
    if len(text) <= _MOST_SPELLED and text.lstrip("+-").isdecimal():
        whole = int(text)
        if -(1 << 63) <= whole < 1 << 64:
            return whole
    return float(text)


def number_of(value: Any) -> int | float | None:
    """The number that a value of a record is, or spells; None where it is none."""
    if isinstance(value, str):
        return number_of_text(value)
    return value if kind_of(value) == NUMBER else None


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
    if hasattr(value, "code") and hasattr(value, "data"):
        return EXTENSION  # msgpack's ExtType is a tuple too
    if isinstance(value, (list, tuple)):
        return ARRAY
    if isinstance(value, dict):
        return MAP
    if value is UNDEFINED:
        return ABSENT
    return EXTENSION


def value_at(value: Any, path: Sequence[Step]) -> Any:
    """The value at the path in a decoded value, or UNDEFINED; for a path to any element, a list of all of them.

    >>> value_at({"a": {"b": 1}}, ("a", "b")), value_at({"a": 1}, ("a", "b"))
    (1, UNDEFINED)
    >>> value_at({"a": [{"b": 1}, {"b": 2}]}, ("a", 1, "b")), value_at({"a": [{"b": 1}, {"b": 2}]}, ("a", None, "b"))
    (2, [1, 2])
    """
    if None in path:
        return list(values_at(value, path)) or UNDEFINED
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return UNDEFINED
        elif isinstance(step, Cast):
            value = step.read(value)
            if value is UNDEFINED:
                return UNDEFINED
            continue
        elif step is None or kind_of(value) != ARRAY or step >= len(value):
            return UNDEFINED
        value = value[step]
    return value


def values_at(value: Any, path: Sequence[Step]) -> Iterator[Any]:
    """All values that the path leads to: at most one, unless it leads to any element.

    >>> list(values_at({"a": [{"b": 1}, 5, {"b": 2}]}, ("a", None, "b")))
    [1, 2]
    """
    if None in path:
        at = path.index(None)
        inside = value_at(value, path[:at])
        for element in inside if kind_of(inside) == ARRAY else ():
            yield from values_at(element, path[at + 1 :])
    elif (found := value_at(value, path)) is not UNDEFINED:
        yield found


def value_key(value: Any) -> bytes:
    """The canonical bytes of a value: equal values have equal keys, whichever codec wrote them.

    The first byte is the kind. Then: a number's `hi` (f64) and `lo` (i16), little-endian; a string's UTF-8
    (bytes that were not UTF-8 come back through `surrogateescape`); bytes as they are; an array's or map's
    parts, each with its length as u32 before it, a map's sorted by key. These bytes stand in index files.

    >>> value_key(1) == value_key(1.0), value_key(True) == value_key(1), value_key("a")
    (True, False, b'\\x05a')
    """
    # The most frequent types first: an array may hold millions of values.
    exact = type(value)
    if exact is float and value == value:
        return _NUMBER_KEY.pack(NUMBER, value or 0.0, 0)
    if exact is int and -_EXACT <= value <= _EXACT:
        return _NUMBER_KEY.pack(NUMBER, value, 0)
    kind = STRING if exact is str else kind_of(value)
    head = _KIND_BYTES[kind]
    if kind == STRING:
        text: bytes = value.encode("utf-8", "surrogateescape")
        return head + text
    if kind == NUMBER:
        return head + _number_payload(value)
    if kind == BYTES:
        return head + bytes(value)
    if kind == ARRAY:
        keys = _keys_of_numbers(value) if len(value) >= _MANY_NUMBERS else b""
        return head + keys if keys else _joined(head, map(value_key, value))
    if kind == MAP:
        return _joined(
            head, chain.from_iterable(sorted((value_key(key), value_key(item)) for key, item in value.items()))
        )
    if kind == EXTENSION:
        code, data = extension_parts(value)
        return head + struct.pack("<b", code) + data
    return head


def extension_parts(value: Any) -> tuple[int, bytes]:
    """Code and data of a msgpack extension value (an `ExtType`, or a `Timestamp`, whose code is -1)."""
    if hasattr(value, "code") and hasattr(value, "data"):
        return int(value.code), bytes(value.data)
    if hasattr(value, "to_bytes") and hasattr(value, "nanoseconds"):
        return -1, bytes(value.to_bytes())
    raise QueryError(f"a value of type {type(value).__name__} cannot be stored in or compared with a log")


def text_bytes(text: str) -> bytes:
    """The UTF-8 of a text; `surrogateescape` characters become the bytes that they stand for.

    Raises UnicodeEncodeError for lone surrogates that stand for no bytes, and for those whose bytes are UTF-8: they
    would come back as another text.

    >>> text_bytes("caf\\udce9")
    b'caf\\xe9'
    >>> text_bytes("\\udcc3\\udca9")
    Traceback (most recent call last):
        ...
    UnicodeEncodeError: 'utf-8' codec can't encode characters in position 0-1: the bytes they stand for are UTF-8
    """
    data = text.encode("utf-8", "surrogateescape")
    if not text.isascii() and (back := data.decode("utf-8", "surrogateescape")) != text:
        start = next(at for at, (one, other) in enumerate(zip(text, back, strict=False)) if one != other)
        end = next((at for at in range(start, len(text)) if not "\udc80" <= text[at] <= "\udcff"), len(text))
        raise UnicodeEncodeError("utf-8", text, start, end, "the bytes they stand for are UTF-8")
    return data


def number_key(hi: float, lo: int) -> bytes:
    """The key of the number `(hi, lo)`, as value_key gives it."""
    return _KIND_BYTES[NUMBER] + _NUMBER.pack(hi, lo)


def value_of_key(key: bytes) -> Any:
    """The value that a key of `value_key` stands for.

    >>> value_of_key(value_key({"a": [1, None, "x"]}))
    {'a': [1, None, 'x']}
    """
    kind = key[0]
    if kind == NUMBER:
        _, hi, lo = _NUMBER_KEY.unpack(key)
        return int(hi) + lo if lo or hi.is_integer() else hi
    payload = key[1:]
    if kind == STRING:
        return payload.decode("utf-8", "surrogateescape")
    if kind == BYTES:
        return payload
    if kind == ARRAY:
        return [value_of_key(part) for part in key_parts(payload)]
    if kind == MAP:
        parts = map(value_of_key, key_parts(payload))
        return {hashable(key): item for key, item in zip(parts, parts, strict=True)}
    if kind == EXTENSION:
        from msgpack import ExtType, Timestamp

        code = payload[0] - 256 if payload[0] > 127 else payload[0]
        if code == -1 and len(payload) in (5, 9, 13):
            return Timestamp.from_bytes(payload[1:])
        # The constructor refuses reserved codes, which records may hold.
        return tuple.__new__(ExtType, (code, payload[1:]))
    return _CONSTANTS[kind]


def hashable(key: Any) -> Any:
    """A map's key, hashable: an array becomes a tuple.

    >>> hashable(["a", [1]])
    ('a', (1,))
    """
    return tuple(map(hashable, key)) if type(key) is list else key


_SPELLED: Final = r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_MOST_SPELLED: Final = 21  # characters of a whole number that fits 64 bits, its sign among them
_KIND_BYTES: Final = tuple(bytes([kind]) for kind in range(len(KIND_NAMES)))
_CONSTANTS: Final = {ABSENT: UNDEFINED, NULL: None, FALSE: False, TRUE: True}
_SIZE: Final = struct.Struct("<I")
_NUMBER: Final = struct.Struct("<dh")
_NUMBER_KEY: Final = struct.Struct("<Bdh")
_EXACT: Final = 1 << 53  # integers up to here are doubles
_MANY_NUMBERS: Final = 1 << 10  # an array of so many is worth loading numpy
_NAN: Final = struct.pack("<Q", 0x7FF8000000000000) + b"\0\0"


def _number_payload(value: int | float) -> bytes:
    hi, lo = split_number(value)
    if hi != hi:
        return _NAN
    if -32768 <= lo <= 32767 and not (lo and math.isinf(hi)):
        return _NUMBER.pack(hi, lo)
    # An integer beyond 64 bits: no codec can store it, so its key only has to differ from all others.
    return struct.pack("<d", hi) + f"{int(value):x}".encode()


def _keys_of_numbers(value: Sequence[Any]) -> bytes:
    """The keys of an array of plain numbers, each behind its length, in a hundredth of the time; b"" of others."""
    import numpy as np

    types = set(map(type, value))
    if not types <= {int, float}:
        return b""
    try:
        numbers = np.array(value, np.float64)
    except OverflowError:
        return b""
    if int in types and (np.abs(numbers) >= _EXACT).any():  # some integers may be no doubles
        return b""
    keys = np.zeros(len(numbers), [("size", "<u4"), ("kind", "u1"), ("hi", "<f8"), ("lo", "<i2")])
    keys["size"], keys["kind"], keys["hi"] = _NUMBER_KEY.size, NUMBER, numbers + 0.0
    keys["hi"][np.isnan(numbers)] = np.frombuffer(_NAN[:8], "<f8")
    return keys.tobytes()


def _joined(head: bytes, parts: Iterable[bytes]) -> bytes:
    """The parts behind the head, each behind its length. There may be millions: they are never all in memory."""
    key = bytearray(head)
    for part in parts:
        key += _SIZE.pack(len(part))
        key += part
    return bytes(key)


def key_parts(payload: bytes) -> Iterator[bytes]:
    """The keys of the parts of an array or map, from the payload of its key.

    >>> list(key_parts(value_key(["a", None])[1:]))
    [b'\\x05a', b'\\x01']
    """
    position = 0
    while position < len(payload):
        (size,) = _SIZE.unpack_from(payload, position)
        yield payload[position + 4 : position + 4 + size]
        position += 4 + size
