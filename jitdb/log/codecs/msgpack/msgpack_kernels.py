"""Reading one value of msgpack where it lies, for kernels: its head and kind, where it ends, whether it can be decoded.

A container says how many values it holds, not how many bytes, so `skip` steps over a value of any depth by counting the
values still owed, without a stack and in a number of steps bounded by the record's bytes. Every position is checked
against the end that is given, and nothing past it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.common.values import ARRAY, BYTES, EXTENSION, FALSE, MAP, NULL, NUMBER, STRING, TRUE
from jitdb.log.codecs.fields.constants import MALFORMED, MAX_NESTING
from jitdb.log.codecs.locate_kernels import LAST, locating, node_of, taking, values

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

_TOP = np.float64(2.0**63)
_MASK = np.int64(2**63 - 1)
_MAX_NANOSECONDS = 999_999_999


@part
def big_endian(buf, position, size):
    """An unsigned integer of `size` bytes; of 8 bytes, its bits as a signed one."""
    bits = np.int64(0)
    for i in range(size):
        bits = (bits << 8) | np.int64(buf[np.uint64(position + i)])
    return bits


@part
def read_head(buf, position, end):
    """The head of the value at `position`: kind, where its payload begins, size and the count of values in it.

    Size is in bytes for strings, bytes, extensions and numbers (with their head; they start at `position`), and 0
    for containers, whose values follow. The kind is MALFORMED where the value passes `end`.
    """
    zero = np.int64(0)
    if position >= end:
        return np.int64(MALFORMED), position, zero, zero
    head = np.int64(buf[np.uint64(position)])
    if head < 0x80 or head >= 0xE0:  # fixint
        return np.int64(NUMBER), position, np.int64(1), zero
    at = position + 1
    left = end - at
    if head < 0x90:  # fixmap
        return np.int64(MAP), at, zero, 2 * (head & 0x0F)
    if head < 0xA0:  # fixarray
        return np.int64(ARRAY), at, zero, head & 0x0F
    if head < 0xC0:  # fixstr
        size = head & 0x1F
        return np.int64(STRING if size <= left else MALFORMED), at, size, zero
    if head == 0xC0:
        return np.int64(NULL), at, zero, zero
    if head == 0xC2:
        return np.int64(FALSE), at, zero, zero
    if head == 0xC3:
        return np.int64(TRUE), at, zero, zero
    if 0xCA <= head <= 0xD3:  # float 32, 64; uint and int 8 to 64
        size = np.int64(4 if head == 0xCA else 8 if head == 0xCB else 1 << ((head - 0xCC) & 3))
        return np.int64(NUMBER if size <= left else MALFORMED), position, size + 1, zero
    if 0xD4 <= head <= 0xD8:  # fixext 1 to 16: a type byte, then the data
        size = np.int64(1 + (1 << (head - 0xD4)))
        return np.int64(EXTENSION if size <= left else MALFORMED), at, size, zero
    # The rest have a length of 1, 2 or 4 bytes.
    width = zero
    if 0xC4 <= head <= 0xC9:  # bin 8, 16, 32; ext 8, 16, 32
        width = np.int64(1 << ((head - 0xC4) % 3))
    elif 0xD9 <= head <= 0xDB:  # str 8, 16, 32
        width = np.int64(1 << (head - 0xD9))
    elif head >= 0xDC:  # array 16, 32; map 16, 32
        width = np.int64(2 << ((head - 0xDC) & 1))
    if width == 0 or width > left:  # 0xC1 is never used
        return np.int64(MALFORMED), position, zero, zero
    size = big_endian(buf, at, width)
    at += width
    left -= width
    if head >= 0xDE:
        return np.int64(MAP), at, zero, 2 * size
    if head >= 0xDC:
        return np.int64(ARRAY), at, zero, size
    kind = np.int64(STRING)
    if head <= 0xC6:
        kind = np.int64(BYTES)
    elif head <= 0xC9:
        kind = np.int64(EXTENSION)
        size += 1
    if size > left:
        return np.int64(MALFORMED), position, zero, zero
    return kind, at, size, zero


@part
def skip(buf, position, end, owed):
    """Step over `owed` whole values: the position after them, or -1 where they pass `end` or break a rule."""
    while owed > 0:
        if owed > end - position:  # every value takes a byte: this also bounds a hostile count
            return np.int64(-1)
        head = np.int64(buf[np.uint64(position)])
        if head < 0x80 or head >= 0xE0:
            position += 1
            owed -= 1
        elif 0xA0 <= head < 0xC0 and (head & 0x1F) < end - position:
            position += 1 + (head & 0x1F)
            owed -= 1
        else:
            kind, at, size, inner = read_head(buf, position, end)
            if kind == MALFORMED:
                return np.int64(-1)
            position = at + size
            owed += inner - 1
    return position


@part
def rest(value, hi):
    """`value - hi`, where the double `hi` may be 2**63, which is no int64."""
    if hi >= _TOP:
        return (value - _MASK) - np.int64(1)
    return value - np.int64(hi)


@part
def read_number(buf, position):
    """The number whose head lies at `position`, as the pair (hi, lo) of jitdb.common.values."""
    head = np.int64(buf[np.uint64(position)])
    zero = np.int64(0)
    if head < 0x80:
        return np.float64(head), zero
    if head >= 0xE0:
        return np.float64(head - 256), zero
    if head == 0xCA:
        bits = big_endian(buf, position + 1, 4)
        return np.float64(np.int32(bits - ((bits >> 31) << 32)).view(np.float32)) + 0.0, zero
    if head == 0xCB:
        return np.int64(big_endian(buf, position + 1, 8)).view(np.float64) + 0.0, zero
    width = np.int64(1 << ((head - 0xCC) & 3))
    bits = big_endian(buf, position + 1, width)
    if width < 8:
        if head >= 0xD0:
            bits -= (bits >> (8 * width - 1)) << (8 * width)
        return np.float64(bits), zero
    if head == 0xCF and bits < 0:  # an unsigned integer of 2**63 or more: the same, 2**63 lower
        hi = np.float64(np.int64(bits).view(np.uint64))
        return hi, rest(bits & _MASK, hi - _TOP)
    hi = np.float64(bits)
    return hi, rest(bits, hi)


@part
def is_extension(buf, at, size):
    """Whether the payload of an extension (its code, then its data) is one: those of code -1 must be a timestamp."""
    if buf[at] != 0xFF:
        return True
    if size == 5:  # seconds (u32)
        return True
    if size == 9:  # nanoseconds (30 bits), seconds (34 bits)
        return ((big_endian(buf, at + 1, 8) >> 34) & 0x3FFFFFFF) <= _MAX_NANOSECONDS
    if size == 13:  # nanoseconds (u32), seconds (i64)
        return big_endian(buf, at + 1, 4) <= _MAX_NANOSECONDS
    return False


@part
def is_whole(buf, position, end, stack):
    """Whether the value at `position` can be decoded: whole, not nested too deep, and no map is (or is in) a key.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    depth = 0
    owed = np.int64(1)  # values still to come in the container
    keyed = np.int64(0)  # whether every other one of them is a key
    within = np.int64(0)  # whether the container is part of a key
    while True:
        if owed == 0:
            if depth == 0:
                return True
            depth -= 1
            owed, keyed, within = stack[depth] >> 2, (stack[depth] >> 1) & 1, stack[depth] & 1
            continue
        inside = within | (keyed & (owed + 1) & 1)
        owed -= 1
        kind, at, size, inner = read_head(buf, position, end)
        position = at + size
        if kind == MAP or kind == ARRAY:
            if depth == MAX_NESTING or (kind == MAP and inside):
                return False
            stack[depth] = owed << 2 | keyed << 1 | within
            depth += 1
            owed, keyed, within = inner, np.int64(kind == MAP), inside
        elif kind == MALFORMED or (kind == EXTENSION and not is_extension(buf, at, size)):
            return False


@part
def skip_value(buf, position, end):
    """As skip, of one value; short texts and numbers at once."""
    if position >= end:
        return np.int64(-1)
    head = np.int64(buf[np.uint64(position)])
    if head < 0x80 or head >= 0xE0 or head == 0xC0 or head == 0xC2 or head == 0xC3:
        return position + 1
    if 0xA0 <= head < 0xC0:
        position += 1 + (head & 0x1F)
    elif 0xCC <= head <= 0xD3:
        position += 1 + (1 << ((head - 0xCC) & 3))
    elif head == 0xCB:
        position += 9
    else:
        return skip(buf, position, end, np.int64(1))
    return position if position <= end else np.int64(-1)


@part
def read_value(buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it.

    The kind is MALFORMED, and the position -1, when the value is not whole.
    """
    found, at, size, inner = read_head(buf, position, end)
    following = at + size
    if inner > 0:
        following = skip(buf, at, end, inner)
        if following < 0:
            return np.int64(MALFORMED), at, np.int64(0), 0.0, np.int64(-1)
        size = following - at
    value = 0.0
    if found == NUMBER:
        value, size = read_number(buf, at)
    elif found == MALFORMED:
        following = np.int64(-1)
    return found, at, size, value, following


@part
def open_value(buf, position, end):
    """As read_value, but a container is not stepped over: kind, payload start, size, number, how many values it has,
    and `end`; the end of a scalar is the position behind it."""
    kind, at, size, inner = read_head(buf, position, end)
    value = 0.0
    following = at + size
    if kind == ARRAY or kind == MAP:
        following = end
    elif kind == NUMBER:
        value, size = read_number(buf, at)
    return kind, at, size, value, inner, following


@part
def open_map(buf, position, end):
    """Whether a map stands at `position`, where its pairs begin, and how many they are."""
    found, at, _, inner = read_head(buf, position, end)
    return found == MAP, at, inner >> 1


@inlined
def next_pair(buf, position, end, left, child, trie, aids):
    """See locating; `left` is how many pairs are still to come."""
    if left == 0:
        return np.int64(LAST), position, left
    found, at, size, _ = read_head(buf, position, end)
    if found == STRING:
        return node_of(buf, at, size, child, trie), at + size, left - 1
    return np.int64(-1), skip(buf, position, end, np.int64(1)), left - 1


@part
def whole_end(buf, position, end, stack):
    """See locating."""
    return skip_value(buf, position, end)


_locate = locating(open_map, next_pair, taking(read_value, is_whole, skip_value), whole_end)


@kernel
def locate_msgpack(
    buf: U8, starts: I64, lengths: I64, states: U8,
    first_child: I32, next_sibling: I32, key_start: I32, key_length: I32, field: I32, subtree_end: I32, keys: U8,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, scratch: I64, verdicts: U8,
) -> int:  # fmt: skip
    """See locating."""
    trie = (first_child, next_sibling, key_start, key_length, field, subtree_end, keys)
    rows = (kind, start, length, number)
    malformed: int = _locate(buf, starts, lengths, states, trie, rows, scratch, verdicts, ())
    return malformed


@kernel
def msgpack_values_at(
    buf: U8, starts: I64, lengths: I64, positions: I64,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, ends: I64, stack: I64,
) -> None:  # fmt: skip
    """See values."""
    values(read_value, is_whole, buf, starts, lengths, positions, (kind, start, length, number), ends, stack)
