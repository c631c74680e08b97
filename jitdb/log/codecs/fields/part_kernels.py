"""What kernels of locators have in common, whatever their format: text, numbers, and the parts of a canonical key.

A number of up to 64 bits is carried by the int64 of the same bits. docs/format-codecs.md has the bytes of parts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from jitdb.common.kernels import inlined, part
from jitdb.common.values import NUMBER
from jitdb.log.codecs.fields.constants import MANY
from jitdb.log.codecs.fields.sixteen import newlines, trailing_zeros, word_at

HEAD: Final = 5  # bytes of a part that stand before what it holds: its length, its kind

NEWLINE: Final = 10
WIDTH: Final = 64  # bytes in which newlines are found at once

_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_TOP: Final = 2.0**64


@part
def newline_from(data, position, stop):
    """Where the first newline of data[position:stop] is; `stop` where there is none."""
    while position + WIDTH <= stop:
        found = newlines(data, position)
        if found != 0:
            return position + np.int64(trailing_zeros(found))
        position += WIDTH
    while position < stop and data[np.uint64(position)] != NEWLINE:
        position += 1
    return position


@part
def same_bytes(left, p, right, q, size):
    """Whether so many bytes of two arrays, from these places on, are the same."""
    at = np.int64(0)
    while at < size and left[np.uint64(p + at)] == right[np.uint64(q + at)]:
        at += 1
    return at == size


@part
def first_marked(word):
    """Of which of its eight bytes, from the lowest on, a word has the top bit set first, and no other bit."""
    return np.int64(trailing_zeros(word) >> np.uint64(3))


@part
def find_node(buf, at, size, node, next_sibling, key_start, key_length, keys):
    """The node with the key buf[at : at + size] among `node` and its siblings; -1: none."""
    while node >= 0:
        if key_length[node] == size and same_bytes(buf, at, keys, key_start[node], size):
            return np.int64(node)
        node = next_sibling[node]
    return np.int64(-1)


def opening(read_value: Any) -> Any:
    """The open_value of an encoding that tells where a container ends, and not how many values it has."""

    @part
    def open_value(buf, position, end):
        kind, at, size, value, following = read_value(buf, position, end)
        return kind, at, size, value, np.int64(MANY), following

    return open_value


@part
def is_utf8(buf, position, end):
    """Whether these bytes are text."""
    while position < end:
        if end - position >= 8 and (np.uint64(word_at(buf, position)) & _HIGH_BITS) == 0:
            position += 8
            continue
        byte = np.int64(buf[np.uint64(position)])
        position += 1
        if byte < 0x80:
            continue
        if byte < 0xC2 or byte > 0xF4:
            return False
        more = np.int64(1 if byte < 0xE0 else 2 if byte < 0xF0 else 3)
        if more > end - position:
            return False
        # What may stand behind the first byte: no longer form than need be, no surrogate, nothing beyond U+10FFFF.
        low = np.int64(0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80)
        high = np.int64(0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF)
        for _ in range(more):
            byte = np.int64(buf[np.uint64(position)])
            if byte < low or byte > high:
                return False
            low = np.int64(0x80)
            high = np.int64(0xBF)
            position += 1
    return True


@part
def read_long_varint(buf, position, end):
    """See read_varint."""
    number = np.int64(0)
    shift = np.int64(0)
    while position < end and shift <= 63:
        byte = np.int64(buf[np.uint64(position)])
        position += 1
        if shift == 63 and byte > 1:
            break
        number |= (byte & np.int64(127)) << shift
        if byte < 128:
            return number, np.int64(position)
        shift += np.int64(7)
    return np.int64(0), np.int64(-1)


@inlined
def read_varint(buf, position, end):
    """The number at `position`, and where it ends; -1 where it is cut short or has more than 64 bits."""
    if position < end and buf[np.uint64(position)] < 128:
        return np.int64(buf[np.uint64(position)]), np.int64(position + 1)
    return read_long_varint(buf, position, end)


@part
def rest_of(value, hi):
    """`value - hi`, exactly, of a number of 64 bits and the nearest double."""
    if hi >= _TOP:  # it is 0 modulo 2**64
        return np.int64(value)
    return np.int64(value - np.uint64(hi).view(np.int64))


@part
def nearest_double(value):
    """Of a number of 64 bits."""
    return np.float64(np.int64(value).view(np.uint64))


@part
def put_head(out, at, kind, size):
    """The head of a part that holds so many bytes: where they begin."""
    length = np.int64(size + 1)
    for i in range(4):
        out[np.uint64(at + i)] = (length >> (8 * i)) & 255
    out[np.uint64(at + 4)] = kind
    return np.int64(at + HEAD)


@part
def put_bytes(out, at, buf, start, stop):
    """Copy buf[start:stop]: where it ends."""
    for i in range(stop - start):
        out[np.uint64(at + i)] = buf[np.uint64(start + i)]
    return np.int64(at + (stop - start))


@part
def put_number(out, at, value):
    """A number as a part: where it ends."""
    hi = nearest_double(value)
    rest = rest_of(value, hi)
    bits = np.float64(hi).view(np.int64)
    at = put_head(out, at, NUMBER, 10)
    for i in range(8):
        out[np.uint64(at + i)] = (bits >> (8 * i)) & 255
    out[np.uint64(at + 8)] = rest & 255
    out[np.uint64(at + 9)] = (rest >> 8) & 255
    return np.int64(at + 10)
