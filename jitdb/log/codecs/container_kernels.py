"""Reading the values inside located arrays and maps, whichever of the encodings of FieldValues they have.

Kernels that list elements, here, and those that hash (jitdb/indexes/hash_kernels.py) know nothing of the encodings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, MAP, NUMBER, STRING
from jitdb.log.codecs.bipf import read as bipf
from jitdb.log.codecs.fields.constants import BIPF, KEYS, MALFORMED
from jitdb.log.codecs.fields.shape_kernels import word_at
from jitdb.log.codecs.msgpack import read as msgpack

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, U8

MANY = np.int64(1 << 62)  # values, where the end of a container is known by its bytes

_read_bipf = bipf.read_value
_read_msgpack = msgpack.read_value
_read_msgpack_head = msgpack.read_head
_read_msgpack_number = msgpack.read_number


@part
def read_key_part(buf, position, end):
    """One part of a canonical key, as the formats' read_value gives a value."""
    zero = np.int64(0)
    size = zero
    if end - position >= 5:
        for i in range(4):
            size |= np.int64(buf[np.uint64(position + i)]) << (8 * i)
    at = position + 5
    if size < 1 or size > end - position - 4:
        return np.int64(MALFORMED), position, zero, 0.0, np.int64(-1)
    kind = np.int64(buf[np.uint64(position + 4)])
    size -= 1
    value = 0.0
    following = at + size
    if kind == NUMBER and size == 10:
        value = np.uint64(word_at(buf, at)).view(np.float64)
        size = np.int64(buf[np.uint64(at + 8)]) | np.int64(buf[np.uint64(at + 9)]) << 8
        size -= (size >> 15) << 16  # it has a sign
    elif kind == NUMBER:  # an integer that no codec has
        kind = np.int64(MALFORMED)
    return kind, at, size, value, following


@part
def read_value(encoding, buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it; see the formats' read_value."""
    if encoding == BIPF:
        return _read_bipf(buf, position, end)
    if encoding == KEYS:
        return read_key_part(buf, position, end)
    return _read_msgpack(buf, position, end)


@part
def open_value(encoding, buf, position, end):
    """As read_value, but that a container is not stepped over: it has so many values, and ends there.

    Gives kind, payload start, size, number, count and end; the end of a scalar is the position behind it.
    """
    if encoding == BIPF or encoding == KEYS:
        kind, at, size, value, following = read_value(encoding, buf, position, end)
        return kind, at, size, value, MANY, following
    kind, at, size, inner = _read_msgpack_head(buf, position, end)
    value = 0.0
    following = at + size
    if kind == ARRAY or kind == MAP:
        following = end
    elif kind == NUMBER:
        value, size = _read_msgpack_number(buf, at)
    return kind, at, size, value, inner, following


@part
def pluck_key(encoding, buf, position, end, keys, key_start, key_size):
    """Where the last value under this key of the map at [position, end) begins; -1 where there is none."""
    result = np.int64(-1)
    while position < end:
        kind, at, size, _, position = read_value(encoding, buf, position, end)
        if kind == MALFORMED or position >= end:
            return np.int64(-1)
        same = kind == STRING and size == key_size
        if same:
            for i in range(size):
                if buf[at + i] != keys[key_start + i]:
                    same = False
                    break
        if same:
            result = position
        kind, at, size, _, position = read_value(encoding, buf, position, end)
        if kind == MALFORMED:
            return np.int64(-1)
    return result


@kernel
def elements(
    encoding: int, buf: U8, kind: U8, start: I32, length: I32, number: F64, first: int, count: int,
    pluck_starts: I32, pluck_sizes: I32, pluck_keys: U8,
    owner: I32, out_kind: U8, out_start: I32, out_length: I32, out_number: F64,
) -> tuple[int, int]:  # fmt: skip
    """List the elements of an array field, one entry each, with the record that owns it.

    A value that is no array is its own only element. With a pluck path an element stands for what lies there
    in it; elements without it are left out. Stops before the record whose elements do not fit any more and
    gives that record's number (`count` at the end) and how many entries were written.
    """
    written = 0
    room = owner.shape[0]
    for record in range(first, count):
        held = kind[record]
        if held == ABSENT:
            continue
        if held != ARRAY:
            if written >= room:
                return record, written
            owner[written] = record
            out_kind[written] = held
            out_start[written] = start[record]
            out_length[written] = length[record]
            out_number[written] = number[record]
            written += 1
            continue
        before = written
        position = np.int64(start[record])
        end = position + length[record]
        while position < end:
            found, at, size, value, following = read_value(encoding, buf, position, end)
            for step in range(pluck_starts.shape[0]):
                if found != MAP:
                    found = np.int64(ABSENT)
                    break
                inner = pluck_key(encoding, buf, at, at + size, pluck_keys, pluck_starts[step], pluck_sizes[step])
                if inner < 0:
                    found = np.int64(ABSENT)
                    break
                found, at, size, value, _ = read_value(encoding, buf, inner, at + size)
            if following <= position:
                break
            position = following
            if found == ABSENT or found == MALFORMED:
                continue
            if written >= room:
                return record, before
            owner[written] = record
            out_kind[written] = found
            out_start[written] = at
            out_length[written] = size
            out_number[written] = value
            written += 1
    return count, written
