"""The elements of array fields, for `includes`: one entry each, plucked where a path inside them is given.

The kernels are the same for every codec; only reading one value differs, and `codec` says whose it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, ARRAY, EXTENSION, MAP, STRING
from jitdb.log.codecs.bipf import kernels as bipf_kernels
from jitdb.log.codecs.locate import CODEC_NUMBERS
from jitdb.log.codecs.msgpack import kernels as msgpack_kernels

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8

BIPF = CODEC_NUMBERS["bipf"]
MALFORMED = 255  # no kind: the bytes break a rule of the format

_read_bipf = bipf_kernels.read_value
_read_msgpack = msgpack_kernels.read_value
_whole_bipf = bipf_kernels.is_whole
_whole_msgpack = msgpack_kernels.is_whole


@part
def read_value(codec, buf, position, end):
    """One value: its kind, payload start, size, number and the position behind it; see the codecs' read_value."""
    if codec == BIPF:
        return _read_bipf(buf, position, end)
    return _read_msgpack(buf, position, end)


@kernel
def read_whole(codec: int, buf: U8, position: int, end: int, stack: I64) -> tuple[int, int, int, float, int]:
    """As read_value; the kind is MALFORMED too where something inside the value is, so that it cannot be decoded.

    `stack` has room for MAX_NESTING + 1 numbers.
    """
    found, at, size, value, following = read_value(codec, buf, position, end)
    if found == ARRAY or found == MAP or found == EXTENSION:
        if codec == BIPF:
            whole = _whole_bipf(buf, at, at + size, found == MAP, stack)
        else:
            whole = _whole_msgpack(buf, position, end, stack)
        if not whole:
            found = np.int64(MALFORMED)
    return found, at, size, value, following


@part
def pluck_key(codec, buf, position, end, keys, key_start, key_size):
    """Where the last value under this key of the map at [position, end) begins; -1 where there is none."""
    result = np.int64(-1)
    while position < end:
        kind, at, size, _, position = read_value(codec, buf, position, end)
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
        kind, at, size, _, position = read_value(codec, buf, position, end)
        if kind == MALFORMED:
            return np.int64(-1)
    return result


@kernel
def elements(
    codec: int, buf: U8, kind: U8, start: I32, length: I32, number: F64, first: int, count: int,
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
            found, at, size, value, following = read_value(codec, buf, position, end)
            for step in range(pluck_starts.shape[0]):
                if found != MAP:
                    found = np.int64(ABSENT)
                    break
                inner = pluck_key(codec, buf, at, at + size, pluck_keys, pluck_starts[step], pluck_sizes[step])
                if inner < 0:
                    found = np.int64(ABSENT)
                    break
                found, at, size, value, _ = read_value(codec, buf, inner, at + size)
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
