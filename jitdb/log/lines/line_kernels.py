"""Where lines begin and end in many bytes, compiled: eight bytes at once, and four such words a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.shape_kernels import word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

NEWLINE = 10
_SPACE, _TAB, _RETURN = 32, 9, 13

_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@part
def other_bytes(data, position):
    """All ones, unless a byte of this word is a newline: then its high bit is not set, and those of the others are."""
    word = word_at(data, position) ^ _NEWLINES
    return ((word & _LOW) + _LOW) | word | _LOW


@part
def newline_from(data, position, stop):
    """Where the first newline of data[position:stop] is; `stop` where there is none."""
    while position + 32 <= stop:
        both = other_bytes(data, position) & other_bytes(data, position + 8)
        more = other_bytes(data, position + 16) & other_bytes(data, position + 24)
        if both & more != _ALL:
            break
        position += 32
    while position + 8 <= stop and other_bytes(data, position) == _ALL:
        position += 8
    while position < stop and data[np.uint64(position)] != NEWLINE:
        position += 1
    return position


@kernel
def find_newline(data: U8, begin: int, stop: int) -> int:
    """Where the first newline of data[begin:stop] is; -1 where there is none."""
    stop = min(stop, data.shape[0])
    found = newline_from(data, max(0, begin), stop)
    return found if found < stop else -1


@kernel
def walk_lines(data: U8, begin: int, last: int, stop: int, starts: I64, lengths: I64, states: U8) -> int:
    """The lines of data[begin:stop] that begin at `last` or before; `begin` is where one does.

    Fills, per line, `starts`, `lengths` (bytes before its newline) and `states`: DELETED of one that is empty but for
    blanks. What has no newline is none. Gives the number of lines, for which there must be room.
    """
    stop = min(stop, data.shape[0])
    room = min(starts.shape[0], lengths.shape[0], states.shape[0])
    count = 0
    position = max(0, begin)
    while position <= last and position < stop and count < room:
        end = newline_from(data, position, stop)
        if end >= stop:
            break
        at = position
        while at < end:
            byte = data[np.uint64(at)]
            if byte != _SPACE and byte != _TAB and byte != _RETURN:
                break
            at += 1
        starts[count] = position
        lengths[count] = end - position
        states[count] = DELETED if at == end else LIVE
        count += 1
        position = end + 1
    return count
