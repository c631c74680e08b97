"""Reading one value of bipf where it lies, for kernels: its tag, its kind, where it ends, whether it can be decoded.

Every position is checked against the end of the value that holds it, and nothing past that is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import inlined, kernel, part
from jitdb.common.values import ABSENT, ARRAY, BYTES, FALSE, MAP, NULL, NUMBER, STRING, TRUE
from jitdb.log.codecs.bipf import format as bipf
from jitdb.log.codecs.fields.constants import MALFORMED, MAX_NESTING
from jitdb.log.codecs.fields.part_kernels import opening
from jitdb.log.codecs.locate_kernels import LAST, locating, node_of, taking, values

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, F64Rows, I32Rows, U8Rows

# The kind of each type in a tag's low three bits; NULL stands for all of BOOLNULL.
_KIND_OF_TYPE = np.array([STRING, BYTES, NUMBER, NUMBER, ARRAY, MAP, NULL, MALFORMED], np.uint8)


@part
def read_long_tag(buf, position, end):
    """A tag of more than one byte, the first of which lies at `position`: the tag (-1: broken) and its end."""
    tag = np.int64(buf[np.uint64(position)]) & 127
    shift = 7
    while shift <= 28:
        position += 1
        if position >= end:
            return np.int64(-1), position
        byte = np.int64(buf[np.uint64(position)])
        tag |= (byte & 127) << shift
        if byte < 128:
            return tag, position + 1
        shift += 7
    return np.int64(-1), position


@part
def read_tag(buf, position, end):
    """The tag at `position`, -1 where it is broken or passes `end`, and its end."""
    if position >= end:
        return np.int64(-1), position
    tag = np.int64(buf[np.uint64(position)])
    if tag < 128:
        return tag, position + 1
    return read_long_tag(buf, position, end)


@part
def read_number(buf, size, position):
    """The double that an INT (4 bytes) or DOUBLE (8 bytes) payload holds; -0.0 becomes the equal 0.0."""
    bits = np.int64(0)
    for i in range(size):
        bits |= np.int64(buf[np.uint64(position + i)]) << (8 * i)
    if size == 8:
        return np.int64(bits).view(np.float64) + 0.0
    return np.float64(bits - ((bits >> 31) << 32))


@part
def kind_of_scalar(buf, tag, position):
    """The kind of an INT, DOUBLE or BOOLNULL; MALFORMED where its size or byte breaks the format."""
    size = tag >> 3
    code = tag & 7
    if code == bipf.BOOLNULL:
        if size == 0:
            return NULL
        if size == 1:
            byte = buf[position]
            return FALSE if byte == 0 else TRUE if byte == 1 else ABSENT if byte == 2 else MALFORMED
    elif size == (4 if code == bipf.INT else 8):
        return NUMBER
    return MALFORMED


@part
def is_whole(buf, position, end, stack):
    """Whether the value at `position` is well-formed at every depth, as decoding asks.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    depth = 0
    keyed = np.int64(0)
    while True:
        if keyed:
            tag, position = read_tag(buf, position, end)
            if (tag & 7) != bipf.STRING or (tag >> 3) >= end - position:
                return False
            position += tag >> 3
        tag, position = read_tag(buf, position, end)
        if tag < 0 or (tag >> 3) > end - position:
            return False
        code = tag & 7
        if code == bipf.ARRAY or code == bipf.OBJECT:
            if depth == MAX_NESTING:
                return False
            stack[depth] = end << 1 | keyed
            depth += 1
            end = position + (tag >> 3)
            keyed = np.int64(code == bipf.OBJECT)
        else:
            if code > bipf.BUFFER and (code > bipf.BOOLNULL or kind_of_scalar(buf, tag, position) == MALFORMED):
                return False
            position += tag >> 3
        while depth > 0 and position >= end:
            depth -= 1
            end = stack[depth] >> 1
            keyed = stack[depth] & 1
        if depth == 0:
            return True


@inlined
def read_value(buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it; containers are not looked into.

    The kind is MALFORMED where a rule is broken; the position is -1 where the value passes `end`.
    """
    tag, position = read_tag(buf, position, end)
    size = tag >> 3
    if tag < 0 or size > end - position:
        return np.int64(MALFORMED), position, np.int64(0), 0.0, np.int64(-1)
    found = np.int64(_KIND_OF_TYPE[tag & 7])
    value = 0.0
    following = position + size
    if found == NUMBER or found == NULL:
        found = np.int64(kind_of_scalar(buf, tag, position))
        if found == NUMBER:
            value = read_number(buf, size, position)
        size = np.int64(0)
    return found, position, size, value, following


open_value = opening(read_value)


@part
def open_map(buf, position, end):
    """Whether a map stands at `position`, where its pairs begin, and where it ends."""
    tag, at = read_tag(buf, position, end)
    stop = at + (tag >> 3)
    return (tag & 7) == bipf.OBJECT and stop <= end, at, stop


@inlined
def next_pair(buf, position, end, left, child, trie, aids):
    """See locating; `left` is where the map ends."""
    if position >= left:
        return np.int64(LAST), position, left
    tag, at = read_tag(buf, position, left)
    size = tag >> 3
    if (tag & 7) != bipf.STRING or size >= left - at:
        return np.int64(-1), np.int64(-1), left
    return node_of(buf, at, size, child, trie), at + size, left


@part
def skip_value(buf, position, end):
    """Where the value at `position` ends; -1 where it is not whole."""
    tag, at = read_tag(buf, position, end)
    return at + (tag >> 3) if tag >= 0 and (tag >> 3) <= end - at else np.int64(-1)


@part
def whole_end(buf, position, end, stack):
    """See locating."""
    return skip_value(buf, position, end)


_locate = locating(open_map, next_pair, taking(read_value, is_whole, skip_value), whole_end, has_ends=True)


@kernel
def locate_bipf(
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
def bipf_values_at(
    buf: U8, starts: I64, lengths: I64, positions: I64,
    kind: U8Rows, start: I32Rows, length: I32Rows, number: F64Rows, ends: I64, stack: I64,
) -> None:  # fmt: skip
    """See values."""
    values(read_value, is_whole, buf, starts, lengths, positions, (kind, start, length, number), ends, stack)
