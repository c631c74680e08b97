"""bipf, the format of the JavaScript ancestor: every value starts with its length, so fields are found by skipping.

docs/format-codecs.md explains the bytes. This file is the codec, and gathers under Python names what the npm module
`bipf` offers:

>>> record = encode({"name": "ada", "langs": ["en", "fr"]})
>>> decode(record, seek_key(record, 0, "name"))
'ada'

A *position* is the byte at which a value's tag starts; -1 stands for "not there", and may be passed on to the next
seek. Where these differ from the npm module it is because that is wrong:

- a container's last value is not missed (there, lengths are compared without the bytes of the tag);
- `compare_string` orders a string before its extensions (there, the sign turns round for them).

`seek_key` gives the first of several equal keys, as the npm module does; `Codec.find` gives the last, as decoding does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from jitdb.common.paths import Keys
from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError
from jitdb.log.codecs.base import Buffer, Codec, encoded_path
from jitdb.log.codecs.bipf.decode import decode_span
from jitdb.log.codecs.bipf.encode import (
    Encoded,
    encode,
    encode_idempotent,
    encoding_length,
    get_value_type,
    is_idempotent,
    mark_idempotent,
)
from jitdb.log.codecs.bipf.format import (
    ARRAY,
    BOOL_TAG,
    BOOLNULL,
    BUFFER,
    DOUBLE,
    DOUBLE_STRUCT,
    INT,
    INT_STRUCT,
    NULL_TAG,
    OBJECT,
    STRING,
    TYPE_NAMES,
    read_tag,
)
from jitdb.log.codecs.fields.constants import BIPF

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

__all__ = [
    "ARRAY", "BOOLNULL", "BUFFER", "CODEC", "DOUBLE", "INT", "OBJECT", "STRING", "TYPE_NAMES", "BipfCodec", "Encoded",
    "compare", "compare_string", "create_compare_at", "create_seek_path", "decode", "encode", "encode_idempotent",
    "encoding_length", "get_encoded_length", "get_encoded_type", "get_value_type", "is_idempotent", "iterate",
    "mark_idempotent", "pluck", "seek_key", "seek_key2", "seek_key_cached", "seek_path", "slice",
]  # fmt: skip


def decode(record: Buffer, start: int = 0) -> Any:
    """The value that starts at byte `start`; bytes after it are not looked at. Raises DecodeError.

    >>> decode(encode([1, "two"]))
    [1, 'two']
    """
    return decode_span(record if type(record) is bytes else bytes(record), start)[0]


class BipfCodec(Codec):
    """Values as bipf, byte for byte what the npm module writes.

    >>> BipfCodec().find(encode({"a": {"b": 1}}), ("a", "b"))
    1
    """

    name: ClassVar[str] = "bipf"
    writes_utf8: ClassVar[bool] = True
    has_other_readers: ClassVar[bool] = True

    def encode(self, value: Any) -> bytes:
        return encode(value)

    def decode(self, record: Buffer) -> Any:
        """The value; an integer up to 2**53 in size comes back as int, even where bipf keeps it as a double."""
        if type(record) is not bytes:
            record = bytes(record)
        value, end = decode_span(record, 0)
        if end != len(record):
            raise DecodeError(f"{len(record) - end} bytes follow the value", position=end)
        return value

    def decode_at(self, record: Buffer, position: int) -> Any:
        return decode(record, position)

    def find(self, record: Buffer, path: Keys) -> Any:
        if type(record) is not bytes:
            record = bytes(record)
        try:
            position, end = 0, len(record)
            for key in encoded_path(path):
                position, end = _last(record, position, end, key)
                if position < 0:
                    return UNDEFINED
            value, stop = decode_span(record, position)
            return value if stop == end else UNDEFINED
        except (DecodeError, IndexError):  # a malformed record has no fields; decode says what is wrong with it
            return UNDEFINED

    def locator(self, paths: Sequence[Keys]) -> Locator:
        from jitdb.log.codecs.bipf.bipf_kernels import bipf_values_at, locate_bipf  # with numpy
        from jitdb.log.codecs.compiled import CompiledLocator

        return CompiledLocator(BIPF, (locate_bipf, bipf_values_at), paths)


CODEC = BipfCodec()


def _last(record: bytes, position: int, end: int, wanted: bytes) -> tuple[int, int]:
    """Start and end of what the object [position, end) last holds under the key `wanted`; -1 if nothing.

    Raises DecodeError or IndexError when the object's keys and values do not fill it exactly.
    """
    tag, p = read_tag(record, position)
    if p + (tag >> 3) != end:
        raise DecodeError("the value does not end where it should", position=position)
    if tag & 7 != OBJECT:
        return -1, -1
    size = len(wanted)
    found = found_end = -1
    while p < end:
        tag = record[p]
        p += 1
        if tag > 127:
            tag, p = read_tag(record, p - 1)
        if tag & 7:
            raise DecodeError("a key is not a string", position=p)
        value = p + (tag >> 3)
        matches = tag >> 3 == size and record.startswith(wanted, p)
        tag = record[value]
        p = value + 1
        if tag > 127:
            tag, p = read_tag(record, value)
        p += tag >> 3
        if p > end:
            raise DecodeError("a value ends behind its container", position=value)
        if matches:
            found, found_end = value, p
    return found, found_end


# --- in place, by positions ------------------------------------------------------------------------------------------

Key: TypeAlias = str | Buffer
Visitor: TypeAlias = Callable[[bytes, int, int], Any]


def get_encoded_type(buffer: Buffer, start: int) -> int:
    """The type of the value at `start` (STRING to BOOLNULL in format.py). Raises DecodeError."""
    return _span(_as_bytes(buffer), start)[0] & 7


def get_encoded_length(buffer: Buffer, start: int) -> int:
    """Bytes of the body of the value at `start`. Raises DecodeError."""
    return _span(_as_bytes(buffer), start)[0] >> 3


def slice(buffer: Buffer, start: int) -> bytes:
    """The body of the value at `start`, without its tag. Raises DecodeError.

    >>> slice(b"\\x20four", 0)
    b'four'
    """
    buffer = _as_bytes(buffer)
    _, body, end = _span(buffer, start)
    return buffer[body:end]


def pluck(buffer: Buffer, start: int) -> bytes:
    """The value at `start`, still encoded. Raises DecodeError.

    >>> pluck(b"\\x34\\x08a\\x08b\\x06", 1)
    b'\\x08a'
    """
    buffer = _as_bytes(buffer)
    return buffer[start : _span(buffer, start)[2]]


def iterate(buffer: Buffer, start: int, fn: Visitor) -> int:
    """Call `fn(buffer, position, key)` for each value in the container at `start`, until it returns something true.

    `key` is the position of the key in an object, the index in an array. Gives `start`, or -1 when there is no
    container. Raises DecodeError.
    """
    buffer = _as_bytes(buffer)
    kind = _span(buffer, start)[0] & 7
    if kind != OBJECT and kind != ARRAY:
        return -1
    for key, position in _entries(buffer, start) if kind == OBJECT else enumerate(_values(buffer, start)):
        if fn(buffer, position, key):
            break
    return start


def seek_key(buffer: Buffer, start: int, key: Key) -> int:
    """Position of the first value under `key` in the object at `start`; -1 if there is none.

    What is malformed on the way to it holds no keys: -1, so that one damaged record cannot stop a query.

    >>> seek_key(b"\\x25\\x08a\\x08b", 0, "a")
    3
    """
    if start == -1:
        return -1
    buffer, wanted = _as_bytes(buffer), _key_bytes(key)
    try:
        if _span(buffer, start)[0] & 7 != OBJECT:
            return -1
        for key_position, position in _entries(buffer, start):
            tag, body = read_tag(buffer, key_position)
            if tag == len(wanted) << 3 | STRING and buffer.startswith(wanted, body):
                return position
    except DecodeError:
        pass
    return -1


@lru_cache(maxsize=1024)
def seek_key_cached(buffer: bytes, start: int, key: str) -> int:
    """As `seek_key`, remembering the last thousand answers (and their buffers)."""
    return seek_key(buffer, start, key)


def seek_key2(buffer: Buffer, start: int, key: Buffer, key_start: int) -> int:
    """As `seek_key`, with the key as the encoded string at `key_start` in `key`."""
    return -1 if start == -1 else seek_key(buffer, start, slice(key, key_start))


def seek_path(buffer: Buffer, start: int, keys: Sequence[Key]) -> int:
    """Position of the value below the object at `start` that the keys lead to; -1 if there is none.

    >>> seek_path(b"\\x3d\\x08a\\x25\\x08b\\x08c", 0, ["a", "b"])
    6
    """
    buffer = _as_bytes(buffer)
    for key in keys:
        start = seek_key(buffer, start, key)
    return start


def create_seek_path(keys: Sequence[Key]) -> Callable[[Buffer, int], int]:
    """A function `(buffer, start) -> position` that follows these keys."""
    wanted = [_key_bytes(key) for key in keys]

    def seek(buffer: Buffer, start: int = 0) -> int:
        return seek_path(buffer, start, wanted)

    return seek


def compare(buffer1: Buffer, start1: int, buffer2: Buffer, start2: int) -> int:
    """-1, 0 or 1 as the first value sorts before, with or after the second. Raises DecodeError.

    Not there (-1) sorts first, then null; then by type, in the order of the types' numbers, where both types of
    number are one (NaN last); undefined last. Strings, buffers, booleans and containers sort by their bytes.
    """
    if start1 == -1 or start2 == -1:
        return _order(start1 != -1, start2 != -1)
    rank1, rank2 = _rank(_as_bytes(buffer1), start1), _rank(_as_bytes(buffer2), start2)
    return _order(rank1, rank2)


def compare_string(buffer: Buffer, start: int, target: Key) -> int | None:
    """-1, 0 or 1 as the string at `start` sorts before, with or after `target` by its UTF-8; None if it is no string.

    >>> compare_string(b"\\x10ab", 0, "abc"), compare_string(b"\\x06", 0, "abc")
    (-1, None)
    """
    if start == -1:
        return None
    buffer = _as_bytes(buffer)
    tag, body, end = _span(buffer, start)
    return _order(buffer[body:end], _key_bytes(target)) if tag & 7 == STRING else None


def create_compare_at(paths: Sequence[Sequence[Key]]) -> Callable[[Buffer, Buffer], int]:
    """A function that compares two records by the values at these paths, the first that differ deciding.

    Sort with it through `functools.cmp_to_key`.
    """
    seeks = [create_seek_path(keys) for keys in paths]

    def compare_at(record1: Buffer, record2: Buffer) -> int:
        record1, record2 = _as_bytes(record1), _as_bytes(record2)
        orders = (compare(record1, seek(record1, 0), record2, seek(record2, 0)) for seek in seeks)
        return next((order for order in orders if order), 0)

    return compare_at


def _as_bytes(buffer: Buffer) -> bytes:
    return buffer if isinstance(buffer, bytes) else bytes(buffer)


def _key_bytes(key: Key) -> bytes:
    return key.encode("utf-8", "surrogateescape") if isinstance(key, str) else bytes(key)


def _span(buffer: bytes, start: int) -> tuple[int, int, int]:
    """Tag, body and end of the value at `start`."""
    if not 0 <= start < len(buffer):
        raise DecodeError(f"position {start} lies outside a buffer of {len(buffer)} bytes", position=start)
    tag, body = read_tag(buffer, start)
    end = body + (tag >> 3)
    if end > len(buffer):
        raise DecodeError(f"the value at byte {start} ends behind the buffer", position=start)
    return tag, body, end


def _values(buffer: bytes, start: int) -> Iterator[int]:
    """Positions of what the container at `start` holds: of an object keys and values in turn."""
    _, position, end = _span(buffer, start)
    while position < end:
        stop = _span(buffer, position)[2]
        if stop > end:
            raise DecodeError(f"the value at byte {position} ends behind its container", position=position)
        yield position
        position = stop


def _entries(buffer: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Positions of the keys and values of the object at `start`, in pairs."""
    positions = _values(buffer, start)
    for key in positions:
        value = next(positions, None)
        if value is None:
            raise DecodeError(f"the key at byte {key} has no value", position=key)
        yield key, value


def _rank(buffer: bytes, start: int) -> tuple[int, int, Any]:
    """Something that sorts as the value at `start` does: a class (null, others, undefined), a type, a content."""
    tag, body, end = _span(buffer, start)
    kind = tag & 7
    if tag == NULL_TAG:
        return 0, 0, 0
    if tag == BOOL_TAG and buffer[body] == 2:
        return 2, 0, 0
    if kind == INT or kind == DOUBLE:
        if end - body != (4 if kind == INT else 8):
            raise DecodeError(f"the number at byte {start} has {end - body} bytes", position=start)
        number = (INT_STRUCT if kind == INT else DOUBLE_STRUCT).unpack_from(buffer, body)[0]
        return 1, INT, (1, 0) if math.isnan(number) else (0, number)
    return 1, kind, buffer[body:end]


def _order(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)
