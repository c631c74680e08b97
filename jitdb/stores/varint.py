"""Numbers in base 128 (LEB128), as protobuf and cable have them: seven bits a byte, the lowest first."""

from __future__ import annotations

from typing import Final

from jitdb.errors import DecodeError

MOST: Final = 2**64 - 1


def varint(number: int) -> bytes:
    """A number from 0 to 2**64 - 1 in base 128, the lowest seven bits first.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int, end: int | None = None) -> tuple[int, int]:
    """The number at a position, and where it ends. Raises DecodeError for one cut short, or of more than 64 bits."""
    end = len(data) if end is None else end
    if position < end and data[position] < 128:  # as most are
        return data[position], position + 1
    number = shift = 0
    begin = position
    while position < end:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if number > MOST or shift > 63:
            raise DecodeError(f"the number at byte {begin} has more than 64 bits", position=begin)
        if byte < 128:
            return number, position
        shift += 7
    raise DecodeError(f"the number at byte {begin} is cut short", position=begin)
