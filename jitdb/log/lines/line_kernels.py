"""Where lines begin and end in many bytes, compiled: 64 bytes a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.sixteen import newlines, trailing_zeros

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

NEWLINE = 10
_SPACE, _TAB, _RETURN = 32, 9, 13

WIDTH = 64  # bytes in which newlines are found at once
_1 = np.uint64(1)


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
def behind_blanks(data, position, stop):
    """Where the blanks from `position` on end."""
    while position < stop:
        byte = data[np.uint64(position)]
        if byte != _SPACE and byte != _TAB and byte != _RETURN:
            break
        position += 1
    return position


@kernel
def find_newline(data: U8, begin: int, stop: int) -> int:
    """Where the first newline of data[begin:stop] is; -1 where there is none."""
    stop = min(stop, data.shape[0])
    found = newline_from(data, max(0, begin), stop)
    return found if found < stop else -1


@part
def lines_before(data, position, at, last, limit, stop, starts, lengths, states, room, count):
    """The lines, from the one that begins at `position` on, whose newlines are in data[at:limit], maybe those of the
    next WIDTH bytes: where the next line begins, from where on to look for its newline, how many lines there are.
    """
    while position <= last and at < limit and count < room:
        step = WIDTH
        if at + WIDTH <= stop:
            found = newlines(data, at)
        else:
            step = newline_from(data, at, stop) + 1 - at
            if at + step > stop:
                break
            found = _1 << np.uint64(step - 1)
        while found != 0 and position <= last and count < room:
            end = at + np.int64(trailing_zeros(found))
            found &= found - _1
            starts[count] = position
            lengths[count] = end - position
            states[count] = DELETED if behind_blanks(data, position, end) == end else LIVE
            count += 1
            position = end + 1
        at += step
    return position, at, count


@kernel
def walk_lines(data: U8, begin: int, last: int, stop: int, starts: I64, lengths: I64, states: U8) -> int:
    """The lines of data[begin:stop] that begin at `last` or before; `begin` is where one does.

    Fills, per line, `starts`, `lengths` (bytes before its newline) and `states`: DELETED of one that is empty but for
    blanks. What has no newline is none. Gives the number of lines, for which there must be room.
    """
    stop = min(stop, data.shape[0])
    room = min(starts.shape[0], lengths.shape[0], states.shape[0])
    position = max(0, begin)
    count: int = lines_before(data, position, position, last, stop, stop, starts, lengths, states, room, 0)[2]
    return count
