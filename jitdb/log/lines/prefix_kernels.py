"""Lines with text before their JSON, compiled: where the record of each begins, as prefix.py says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.lines.line_kernels import behind_blanks, newline_from

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

_SPACE, _QUOTE, _OPEN, _CLOSE = 32, 34, 123, 125

_BRACES = np.uint64(0x7B7B7B7B7B7B7B7B)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@part
def brace_from(data, position, stop):
    """Where the first opening brace of data[position:stop] is; `stop` where there is none."""
    while position + 8 <= stop:
        word = word_at(data, position) ^ _BRACES
        if ((word & _LOW) + _LOW) | word | _LOW != _ALL:
            break
        position += 8
    while position < stop and data[np.uint64(position)] != _OPEN:
        position += 1
    return position


@part
def object_from(data, position, end):
    """Where the record of the line data[position:end] begins; `end` where it has none."""
    while True:
        position = brace_from(data, position, end)
        if position >= end:
            return end
        at = behind_blanks(data, position + 1, end)
        if at < end:
            byte = data[np.uint64(at)]
            if byte == _QUOTE or (byte == _CLOSE and behind_blanks(data, at + 1, end) == end):
                return position
        position += 1


@kernel
def walk_prefixed(data: U8, begin: int, last: int, stop: int, starts: I64, lengths: I64, states: U8) -> int:
    """As walk_lines, of lines with text before their records: `starts` and `lengths` are those of the records.

    Of text, which is DELETED, they are those of the line; of blanks alone, the line's end and 0.
    """
    stop = min(stop, data.shape[0])
    room = min(starts.shape[0], lengths.shape[0], states.shape[0])
    count = 0
    position = max(0, begin)
    while position <= last and position < stop and count < room:
        end = newline_from(data, position, stop)
        if end >= stop:
            break
        start = object_from(data, position, end)
        states[count] = LIVE if start < end else DELETED
        if start == end and behind_blanks(data, position, end) < end:
            start = position
        starts[count] = start
        lengths[count] = end - start
        count += 1
        position = end + 1
    return count


@kernel
def blank_prefixes(data: U8, begin: int, stop: int) -> int:
    """Make spaces of what is before the records of the lines data[begin:stop], and of lines without one.

    Gives how many of these were text.
    """
    stop = min(stop, data.shape[0])
    texts = 0
    position = max(0, begin)
    while position < stop:
        end = newline_from(data, position, stop)
        start = object_from(data, position, end)
        if start == end and behind_blanks(data, position, end) < end:
            texts += 1
        for at in range(position, start):
            data[np.uint64(at)] = _SPACE
        position = end + 1
    return texts
