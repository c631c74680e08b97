"""Writing bipf. A container's length stands before it, so values are built from the inside out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jitdb.common.paths import Step, format_path
from jitdb.common.values import UNDEFINED, text_bytes
from jitdb.errors import DecodeError, EncodeError
from jitdb.log.codecs.base import Buffer
from jitdb.log.codecs.bipf.decode import decode_span
from jitdb.log.codecs.bipf.format import (
    ARRAY,
    BOOL_TAG,
    BUFFER,
    DOUBLE_STRUCT,
    DOUBLE_TAG,
    INT_STRUCT,
    INT_TAG,
    MAX_LENGTH,
    NULL_TAG,
    OBJECT,
    STRING,
    write_tag,
)
from jitdb.log.codecs.fields.constants import MAX_NESTING

_MAX_INT: Final = 2**31 - 1  # and -_MAX_INT below: the npm module writes -2**31 as a double, and so do we

# The tags of all bodies shorter than 256 bytes.
_TAGS: Final = tuple(write_tag(tag) for tag in range(256 << 3))
_INT_HEAD: Final = _TAGS[INT_TAG]
_DOUBLE_HEAD: Final = _TAGS[DOUBLE_TAG]
_NULL: Final = _TAGS[NULL_TAG]
_FALSE, _TRUE, _UNDEFINED = (_TAGS[BOOL_TAG] + bytes((body,)) for body in range(3))

# Encoded keys: most keys come again with the next record.
_KEYS: dict[Any, bytes] = {}
_KEYS_KEPT: Final = 4096  # then the cache starts afresh
_KEY_BYTES_KEPT: Final = 64

# Subclasses are written as what they extend; str(), int() and float() could be overridden, as enums do.
_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (dict, dict),
    (list, list),
    (tuple, tuple),
)


class Encoded(bytes):
    """Bytes that are bipf already: `encode` copies them in as they are. Raises DecodeError if they are not.

    >>> inner = encode_idempotent({"street": "123 Main St"})
    >>> encode({"address": inner}) == encode({"address": {"street": "123 Main St"}})
    True
    """

    def __new__(cls, record: Buffer) -> Encoded:
        self = super().__new__(cls, record)
        end = decode_span(self, 0)[1]
        if end != len(self):
            raise DecodeError(f"{len(self) - end} bytes follow the value", position=end)
        return self


class _Refused(Exception):
    """A value that cannot be written; every container it passes on its way out adds a key."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.path: list[Step] = []  # from the inside out


def encode(value: Any) -> bytes:
    """The bipf bytes of a value: str, bytes, int, float, bool, None, UNDEFINED, list, tuple or dict of these.

    Raises EncodeError, with the path of what cannot be written. The empty string is the one zero byte, which as a
    whole record is what a deleted record looks like: a log refuses it.

    >>> encode({"a": 1}).hex()
    '3d08612201000000'
    """
    try:
        return _encode(value, 0)
    except _Refused as refused:
        where = f"{format_path(reversed(refused.path))}: " if refused.path else ""
        raise EncodeError(f"{where}{refused}", remedy=refused.remedy) from None


def encode_idempotent(value: Any) -> Encoded:
    """As `encode`, but what comes back is not encoded again when it is put into another value."""
    return Encoded(encode(value))


def mark_idempotent(record: Buffer) -> Encoded:
    """Declare bytes to be bipf already. Raises DecodeError if they are not."""
    return Encoded(record)


def is_idempotent(record: object) -> bool:
    """Whether `encode` would copy these bytes in as they are."""
    return isinstance(record, Encoded)


def encoding_length(value: Any) -> int:
    """How many bytes `encode` gives.

    >>> encoding_length("four")
    5
    """
    return len(encode(value))


def get_value_type(value: Any) -> int | None:
    """The type that a value is written with (see format.py), or None when it cannot be written.

    >>> get_value_type("text"), get_value_type(1.0), get_value_type(float("nan"))
    (0, 2, None)
    """
    try:
        # The first bytes of a container do not depend on what is in it.
        if isinstance(value, dict):
            return OBJECT
        if isinstance(value, (list, tuple)):
            return ARRAY
        return _encode(value, 0)[0] & 7
    except _Refused:
        return None


def _encode(value: Any, depth: int) -> bytes:
    kind = type(value)
    if kind is str:
        try:
            body: bytes = value.encode()
        except UnicodeEncodeError:
            body = _escaped(value)
        return _tag(len(body), STRING) + body
    if kind is dict:
        return _encode_object(value, depth + 1)
    if kind is int:
        if -_MAX_INT <= value <= _MAX_INT:
            return _INT_HEAD + INT_STRUCT.pack(value)
        return _encode_large(value)
    if kind is float:
        if value.is_integer() and -_MAX_INT <= value <= _MAX_INT:
            return _INT_HEAD + INT_STRUCT.pack(int(value))
        if value - value != 0.0:  # NaN and the infinities
            raise _Refused(f"bipf holds finite numbers only, not {value!r}", "msgpack holds this one")
        return _DOUBLE_HEAD + DOUBLE_STRUCT.pack(value)
    if value is None:
        return _NULL
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if kind is list or kind is tuple:
        return _encode_array(value, depth + 1)
    if value is UNDEFINED:
        return _UNDEFINED
    return _encode_other(value, depth)


def _encode_object(value: dict[Any, Any], depth: int) -> bytes:
    if depth > MAX_NESTING:
        raise _too_deep()
    known_key = _KEYS.get
    parts = []
    key: Any = None
    try:
        for key, item in value.items():
            parts.append(known_key(key) or _new_key(key))
            parts.append(_encode(item, depth))
    except _Refused as refused:
        refused.path.append(key if isinstance(key, str) else f"<{type(key).__name__}>")
        raise
    body = b"".join(parts)
    return _tag(len(body), OBJECT) + body


def _encode_array(value: list[Any] | tuple[Any, ...], depth: int) -> bytes:
    if depth > MAX_NESTING:
        raise _too_deep()
    parts: list[bytes] = []
    try:
        for item in value:
            parts.append(_encode(item, depth))  # noqa: PERF401  (when one fails, its index is needed)
    except _Refused as refused:
        refused.path.append(len(parts))
        raise
    body = b"".join(parts)
    return _tag(len(body), ARRAY) + body


def _new_key(key: Any) -> bytes:
    if not isinstance(key, str):
        raise _Refused(f"this key is of type {type(key).__name__}; bipf's keys are strings")
    key = str.__str__(key)
    encoded = _encode(key, 0)
    if len(encoded) <= _KEY_BYTES_KEPT:
        if len(_KEYS) >= _KEYS_KEPT:
            _KEYS.clear()
        _KEYS[key] = encoded
    return encoded


def _encode_large(value: int) -> bytes:
    """An integer beyond 32 bits, as the double that JavaScript has for it."""
    try:
        double = float(value)
    except OverflowError:
        double = 0.0
    if int(double) != value:
        raise _Refused(
            # Not its digits: Python refuses to write more than a few thousand of them.
            f"this integer of {value.bit_length()} bits is not exactly a double, as bipf would need",
            "msgpack holds 64-bit integers" if value.bit_length() <= 64 else None,
        )
    return _DOUBLE_HEAD + DOUBLE_STRUCT.pack(double)


def _encode_other(value: Any, depth: int) -> bytes:
    """Subclasses of the types above, bytes of all sorts, and what has no encoding."""
    if isinstance(value, Encoded):
        try:
            decode_span(value, 0, MAX_NESTING - depth)
        except DecodeError:  # it is valid by itself, so it can only be too deep here
            raise _too_deep() from None
        return bytes(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        body = bytes(value)
        return _tag(len(body), BUFFER) + body
    for base, exactly in _BASES:
        if isinstance(value, base):
            return _encode(exactly(value), depth)
    raise _Refused(f"a value of type {type(value).__name__} has no encoding in bipf")


def _too_deep() -> _Refused:
    return _Refused(f"containers are nested deeper than {MAX_NESTING} levels")


def _escaped(value: str) -> bytes:
    try:
        return text_bytes(value)
    except UnicodeEncodeError as error:
        raise _Refused(f"the string has a lone surrogate at index {error.start} and is not Unicode text") from None


def _tag(length: int, kind: int) -> bytes:
    if length < 256:
        return _TAGS[length << 3 | kind]
    if length > MAX_LENGTH:
        raise _Refused(f"{length:,} bytes in one value; bipf holds at most {MAX_LENGTH:,}")
    return write_tag(length << 3 | kind)
