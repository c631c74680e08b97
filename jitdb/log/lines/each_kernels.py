"""Batches in one line, compiled: where the elements of a path begin and end, as each.py says it.

A line is walked once, and all of it is looked at, so one that is no JSON is found to be none (codecs/json/read.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import DELETED, LIVE, SLACK
from jitdb.log.codecs.fields.part_kernels import same_bytes
from jitdb.log.codecs.json.read import BROKEN, UNSURE, container_end, scalar_end, skip_blanks, text_end
from jitdb.log.codecs.json.text import CLOSE_ARRAY, CLOSE_MAP, COLON, COMMA, OPEN_ARRAY, OPEN_MAP, QUOTE, put_text
from jitdb.log.codecs.msgpack.read import read_head
from jitdb.log.lines.line_kernels import behind_blanks, newline_from
from jitdb.log.lines.prefix_kernels import object_from

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

FULL = -3  # in place of where a line ends: there is no room for its elements


@part
def value_end(buf, p, end, stack, depth):
    """Where the value at `p` ends, which is in `depth` containers."""
    char = buf[np.uint64(p)]
    if char == OPEN_MAP or char == OPEN_ARRAY:
        return container_end(buf, p, end, stack, depth)
    return scalar_end(buf, p, end)


@part
def is_key(buf, p, size, is_plain, keys, begin, length, text):
    """Whether the text buf[p : p + size], between its quotes, is the key keys[begin : begin + length]."""
    if is_plain:
        return size == length and same_bytes(buf, p, keys, begin, length)
    if size + SLACK > text.shape[0]:
        return False
    _, stop = put_text(buf, p, text, np.int64(0), False)
    _, p, size, _ = read_head(text, np.int64(0), stop)
    return size == length and same_bytes(text, p, keys, begin, length)


@part
def elements_of(buf, p, end, key_starts, key_lengths, keys, starts, lengths, count, marks, stack, text):
    """The elements in the JSON buf[p:end]: how many places of the outputs are taken then; BROKEN, UNSURE or FULL.

    The step of an array has the key length -1. `marks`: of each open container, the count when it began.
    """
    broken = np.int64(BROKEN)
    steps = key_starts.shape[0]
    level = np.int64(0)  # of the steps, how many containers are open
    wanted = True  # the value at p is on the path
    p = skip_blanks(buf, p, end)
    if p >= end or (buf[np.uint64(p)] != OPEN_MAP and buf[np.uint64(p)] != OPEN_ARRAY):
        return np.int64(UNSURE)
    while True:
        is_behind = True
        char = buf[np.uint64(p)]
        if wanted and level < steps and char == (OPEN_MAP if key_lengths[level] >= 0 else OPEN_ARRAY):
            marks[level] = count
            level += 1
            p = skip_blanks(buf, p + 1, end)
            if p >= end:
                return broken
            if buf[np.uint64(p)] == (CLOSE_MAP if char == OPEN_MAP else CLOSE_ARRAY):
                p += 1
                level -= 1
            else:
                is_behind = False
        else:
            after = value_end(buf, p, end, stack, level)
            if after < 0:
                return after
            if wanted and level == steps:
                if count >= starts.shape[0]:
                    return np.int64(FULL)
                starts[count] = p
                lengths[count] = after - p
                count += 1
            p = after
        while is_behind:  # a value: on to the next one, or out of what ends here
            p = skip_blanks(buf, p, end)
            if level == 0:
                return count if p == end else broken
            if p >= end:
                return broken
            char = buf[np.uint64(p)]
            p += 1
            if char == COMMA:
                p = skip_blanks(buf, p, end)
                is_behind = False
            elif char == (CLOSE_MAP if key_lengths[level - 1] >= 0 else CLOSE_ARRAY):
                level -= 1
            else:
                return broken
        wanted = True
        if key_lengths[level - 1] >= 0:
            if p >= end or buf[np.uint64(p)] != QUOTE:
                return broken
            key = p + 1
            p, is_plain = text_end(buf, key, end)
            if p < 0:
                return p
            here, length = key_starts[level - 1], key_lengths[level - 1]
            wanted = is_key(buf, key, p - key, is_plain, keys, here, length, text)
            if wanted:  # the same key again: what the first one held is forgotten
                count = marks[level - 1]
            p = skip_blanks(buf, p + 1, end)
            if p >= end or buf[np.uint64(p)] != COLON:
                return broken
            p = skip_blanks(buf, p + 1, end)
        if p >= end:
            return broken


@kernel
def walk_elements(
    data: U8, begin: int, last: int, stop: int, prefixed: int, count: int,
    starts: I64, lengths: I64, states: U8, ends: I64,
    key_starts: I64, key_lengths: I64, keys: U8, marks: I64, stack: I64, text: U8,
) -> tuple[int, int]:  # fmt: skip
    """The elements in the lines of data[begin:stop] that begin at `last` or before; `begin` is where one does.

    Fills `starts`, `lengths`, `states` and `ends`, from the place `count` on: the last element of a line ends with its
    newline. A line without elements takes one place, DELETED: text all of it, others none of it, at its end. A line
    that is no JSON is LIVE, as a whole. Behind the data there are SLACK bytes.

    Gives how many places are taken, and where the line begins that was not walked: it is not certain what it holds, or
    there is no room for it; behind the last line, where all were.
    """
    room = min(starts.shape[0], lengths.shape[0], states.shape[0], ends.shape[0])
    stop = min(stop, data.shape[0] - SLACK)
    position = max(0, begin)
    while position <= last and position < stop:
        end = newline_from(data, position, stop)
        if end >= stop or count >= room:
            break
        start = object_from(data, position, end) if prefixed else behind_blanks(data, position, end)
        after = np.int64(count)
        if start < end:
            after = elements_of(
                data, start, end, key_starts, key_lengths, keys, starts, lengths, np.int64(count), marks, stack, text
            )
            if after == FULL or after == UNSURE:
                break
        if after == BROKEN or after == count:
            states[count] = LIVE if after == BROKEN else DELETED
            if after != BROKEN:
                start = end
                if prefixed and object_from(data, position, end) == end and behind_blanks(data, position, end) < end:
                    start = position
            starts[count] = start
            lengths[count] = end - start
            count += 1
        else:
            for place in range(count, after):
                states[place] = LIVE
                ends[place] = starts[place] + lengths[place]
            count = after
        ends[count - 1] = end + 1
        position = end + 1
    return count, position
