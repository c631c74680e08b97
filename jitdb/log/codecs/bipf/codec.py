"""bipf, the format of the JavaScript ancestor: every value starts with its length, so fields are found by skipping.

docs/format-codecs.md explains the bytes. This file is the codec, and gathers under Python names what the npm module
`bipf` offers:

>>> record = encode({"name": "ada", "langs": ["en", "fr"]})
>>> decode(record, seek_key(record, 0, "name"))
'ada'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from jitdb.common.paths import Path
from jitdb.common.values import UNDEFINED
from jitdb.errors import DecodeError
from jitdb.log.codecs.base import Buffer, Codec
from jitdb.log.codecs.bipf.decode import check_span, decode_span
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
    BOOLNULL,
    BUFFER,
    DOUBLE,
    INT,
    OBJECT,
    STRING,
    TYPE_NAMES,
    read_tag,
)
from jitdb.log.codecs.bipf.seek import (
    compare,
    compare_string,
    create_compare_at,
    create_seek_path,
    get_encoded_length,
    get_encoded_type,
    iterate,
    pluck,
    seek_key,
    seek_key2,
    seek_key_cached,
    seek_path,
    slice,
)
from jitdb.log.codecs.fields.constants import BIPF

if TYPE_CHECKING:
    from jitdb.log.codecs.fields.located import Locator

__all__ = [
    "ARRAY",
    "BOOLNULL",
    "BUFFER",
    "CODEC",
    "DOUBLE",
    "INT",
    "OBJECT",
    "STRING",
    "TYPE_NAMES",
    "BipfCodec",
    "Encoded",
    "compare",
    "compare_string",
    "create_compare_at",
    "create_seek_path",
    "decode",
    "encode",
    "encode_idempotent",
    "encoding_length",
    "get_encoded_length",
    "get_encoded_type",
    "get_value_type",
    "is_idempotent",
    "iterate",
    "mark_idempotent",
    "pluck",
    "seek_key",
    "seek_key2",
    "seek_key_cached",
    "seek_path",
    "slice",
]


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

    def encode(self, value: Any) -> bytes:
        """See bipf_encode.encode."""
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
        """The value that starts at byte `position`."""
        return decode(record, position)

    def find(self, record: Buffer, path: Path) -> Any:
        """The value at `path`, or UNDEFINED."""
        if type(record) is not bytes:
            record = bytes(record)
        try:
            position, end = 0, len(record)
            for key in _encoded(path):
                position, end = _last(record, position, end, key)
                if position < 0:
                    return UNDEFINED
            value, stop = decode_span(record, position)
            return value if stop == end else UNDEFINED
        except (DecodeError, IndexError):  # a malformed record has no fields; decode says what is wrong with it
            return UNDEFINED

    def is_valid(self, record: Buffer) -> bool:
        """Whether the record is one valid value."""
        try:
            return check_span(bytes(record), 0) == len(record)
        except DecodeError:
            return False

    def locator(self, paths: Sequence[Path]) -> Locator:
        """By the kernels of locate_kernels.py."""
        from jitdb.log.codecs.compiled import CompiledLocator

        return CompiledLocator(BIPF, paths)


CODEC = BipfCodec()


@lru_cache(maxsize=1024)
def _encoded(path: Path) -> tuple[bytes, ...]:
    return tuple(key.encode("utf-8", "surrogateescape") for key in path)


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
