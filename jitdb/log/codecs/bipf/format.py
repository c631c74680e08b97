"""The bytes of bipf, shared by its reader and its writer.

A value is a tag and a body. The tag is a u32, LEB128 (seven bits a byte, low bits first, the top bit of a byte says
that another follows): `length of the body in bytes << 3 | type`.

The numbers below are on disk: never change them.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from jitdb.errors import DecodeError

STRING: Final = 0  # UTF-8
BUFFER: Final = 1  # bytes as they are
INT: Final = 2  # i32, little-endian
DOUBLE: Final = 3  # f64, little-endian
ARRAY: Final = 4  # values one after the other
OBJECT: Final = 5  # key (a STRING), value, key, value …
BOOLNULL: Final = 6  # no body: null; one byte: 0 false, 1 true, 2 JavaScript's undefined
RESERVED: Final = 7  # no value may have it

TYPE_NAMES: Final = ("string", "buffer", "int", "double", "array", "object", "boolnull", "reserved")

# Tags of the types with a fixed length.
INT_TAG: Final = 4 << 3 | INT
DOUBLE_TAG: Final = 8 << 3 | DOUBLE
NULL_TAG: Final = 0 << 3 | BOOLNULL
BOOL_TAG: Final = 1 << 3 | BOOLNULL

INT_STRUCT: Final = Struct("<i")
DOUBLE_STRUCT: Final = Struct("<d")

MAX_TAG_BYTES: Final = 5
MAX_LENGTH: Final = (1 << 29) - 1  # bytes of a body: what is left of 32 bits


def write_tag(tag: int) -> bytes:
    """The bytes of a tag.

    >>> write_tag(300).hex()
    'ac02'
    """
    if tag < 128:
        return bytes((tag,))
    out = bytearray()
    while tag > 127:
        out.append(tag & 127 | 128)
        tag >>= 7
    out.append(tag)
    return bytes(out)


def read_tag(record: bytes, position: int) -> tuple[int, int]:
    """The tag at `position`, and where its body begins. Raises DecodeError.

    Tags longer than they need be are read, as the ancestor does; ones past 32 bits are not.

    >>> read_tag(bytes.fromhex("ac02"), 0)
    (300, 2)
    """
    tag = shift = 0
    for at in range(position, min(position + MAX_TAG_BYTES, len(record))):
        byte = record[at]
        tag |= (byte & 127) << shift
        if byte < 128:
            if tag >> 32:
                break
            return tag, at + 1
        shift += 7
    else:
        if position + MAX_TAG_BYTES > len(record):
            raise DecodeError(f"the record ends inside the tag at byte {position}", position=position)
    raise DecodeError(f"the tag at byte {position} is larger than 32 bits", position=position)
