"""Where lines and their records begin and end in many bytes, compiled.

Newlines are found 64 bytes a step. Text before the JSON of lines, and batches in them: as form.py says it. A line that
holds a batch is walked once, and all of it is looked at, so one that is no JSON is found to be none
(codecs/json/read.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import BROKEN, DELETED, LIVE, SLACK, UNSURE
from jitdb.log.codecs.fields.part_kernels import WIDTH, newline_from, same_bytes
from jitdb.log.codecs.fields.sixteen import newlines, trailing_zeros, word_at
from jitdb.log.codecs.json.numbers import copy_words
from jitdb.log.codecs.json.read import container_end, scalar_end, skip_blanks, text_end
from jitdb.log.codecs.json.text import (
    BACKSLASH,
    CLOSE_ARRAY,
    CLOSE_MAP,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    SPACE,
    put_text,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

FULL = -3  # in place of where a line ends: there is no room for its elements
LEADS, ASIDE = -1, -2  # what a key of a map on the path is, if it is nothing that is given with the elements
SEPARATOR = 30  # between an element and what is given with it: no JSON has this byte

_SPACE, _TAB, _RETURN = 32, 9, 13
_QUOTE, _OPEN, _CLOSE = 34, 123, 125
_1 = np.uint64(1)
_BRACES = np.uint64(0x7B7B7B7B7B7B7B7B)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


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
    _, size = put_text(buf, p, text, np.int64(0))
    return size == length and same_bytes(text, np.int64(0), keys, begin, length)


@part
def begins_token(char):
    """Whether a byte is no part of a word or number of JSON."""
    is_bracket = char == OPEN_MAP or char == CLOSE_MAP or char == OPEN_ARRAY or char == CLOSE_ARRAY
    return char <= SPACE or char == QUOTE or char == COMMA or char == COLON or is_bracket


@part
def skipped_end(buf, p, end):
    """Where a value ends that a kernel does not read, by its brackets, quotes and commas; `end` where it is cut, and
    BROKEN where these do not follow each other as in JSON: then nobody knows what is text behind it.
    """
    broken = np.int64(BROKEN)
    depth = np.int64(0)
    is_behind = False  # a value stands before p
    while p < end:
        char = buf[np.uint64(p)]
        p += 1
        if char <= SPACE:
            continue
        if char == COMMA or char == COLON:
            if not is_behind:
                return broken
            is_behind = False
        elif char == CLOSE_MAP or char == CLOSE_ARRAY:
            depth -= 1
            is_behind = True
        else:
            if is_behind:
                return broken
            is_behind = char != OPEN_MAP and char != OPEN_ARRAY
            if not is_behind:
                depth += 1
            elif char == QUOTE:
                while p < end and buf[np.uint64(p)] != QUOTE:
                    p += 2 if buf[np.uint64(p)] == BACKSLASH else 1
                p += 1
            else:
                while p < end and not begins_token(buf[np.uint64(p)]):
                    p += 1
        if depth < 0:
            return broken
        if depth == 0 and is_behind:
            return min(p, end)
    return np.int64(end)


@part
def key_role(buf, p, size, is_plain, first, last, key_starts, key_lengths, roles, keys, text):
    """What a key of a map on the path is: LEADS to the elements, the number of what is given with these, or ASIDE."""
    for row in range(first, last):
        if is_key(buf, p, size, is_plain, keys, key_starts[row], key_lengths[row], text):
            return roles[row]
    return np.int64(ASIDE)


@part
def put_place(start, length, starts, lengths, around, width, count):
    """Another element; what is around it is put there when its maps end."""
    starts[count] = start
    lengths[count] = length
    for i in range(width * count, width * (count + 1)):
        around[i] = 0
    return count + 1


@part
def forget_around(first, last, roles, spans):
    """A map with these keys begins: nothing of it is known yet."""
    for row in range(first, last):
        if roles[row] >= 0:
            spans[2 * roles[row] + 1] = 0


@part
def give_around(first, last, roles, spans, around, begin, count):
    """A map with these keys ends: all elements in it have what was found in it."""
    width = spans.shape[0]
    for row in range(first, last):
        place = 2 * roles[row]
        if place >= 0 and spans[place + 1] > 0:
            for number in range(begin, count):
                around[width * number + place] = spans[place]
                around[width * number + place + 1] = spans[place + 1]


@part
def end_maps(level, firsts, roles, spans, around, marks, count):
    """The document ends, or is no JSON from here on: so all of its maps end."""
    for step in range(level):
        give_around(firsts[step], firsts[step + 1], roles, spans, around, marks[step], count)
    return count


@part
def put_rest(p, end, starts, lengths, around, width, count, first):
    """Let what is left of a document, which is no JSON, be a record that is none; FULL where it has no room."""
    if count >= starts.shape[0]:
        return np.int64(FULL)
    p = min(p, end - 1)
    if count > first and starts[count - 1] + max(lengths[count - 1], 1) > p:
        return count
    return put_place(p, 0, starts, lengths, around, width, count)


@part
def elements_of(
    buf, p, end, many, firsts, key_starts, key_lengths, roles, keys, spans, starts, lengths, around, count, marks,
    stack, text,
):  # fmt: skip
    """The elements in the JSON buf[p:end]: how many places of the outputs are taken then; BROKEN, UNSURE or FULL.

    many: it is a document: values may stand one behind the other, an element that is no JSON is a record that is none,
          and so is all from a place on where it cannot be told what is an element

    The step of an array has no keys. `marks`: of each open container, the count when it began. `spans`: what was found
    in the open maps of what is given with their elements.
    """
    broken = np.int64(BROKEN)
    steps = firsts.shape[0] - 1
    width = spans.shape[0]
    level = np.int64(0)  # of the steps, how many containers are open
    role = np.int64(LEADS)  # of the value at p
    before = count
    p = skip_blanks(buf, p, end)
    if p >= end or (buf[np.uint64(p)] != OPEN_MAP and buf[np.uint64(p)] != OPEN_ARRAY):
        return put_rest(p, end, starts, lengths, around, width, count, before) if many else np.int64(UNSURE)
    while True:
        is_behind = True
        is_wrong = False
        char = buf[np.uint64(p)]
        if role == LEADS and level < steps and char == (OPEN_MAP if firsts[level] < firsts[level + 1] else OPEN_ARRAY):
            marks[level] = count
            if width:
                forget_around(firsts[level], firsts[level + 1], roles, spans)
            level += 1
            p = skip_blanks(buf, p + 1, end)
            if p >= end:
                is_wrong = True
            elif buf[np.uint64(p)] == (CLOSE_MAP if char == OPEN_MAP else CLOSE_ARRAY):
                p += 1
                level -= 1
            else:
                is_behind = False
        else:
            after = value_end(buf, p, end, stack, level)
            is_broken = after < 0
            if is_broken:
                if not many:
                    return after
                after = skipped_end(buf, p, end)
                is_wrong = after < 0 or after >= end
            is_cut = many != 0 and after >= end and char != OPEN_MAP and char != OPEN_ARRAY and char != QUOTE
            if role >= 0:
                spans[2 * role] = p
                spans[2 * role + 1] = 0 if is_broken or is_cut else after - p
            if after >= 0:
                if role == LEADS and level == steps:
                    if count >= starts.shape[0]:
                        return np.int64(FULL)
                    count = put_place(p, 0 if is_cut else after - p, starts, lengths, around, width, count)
                    if is_wrong or is_cut:
                        return end_maps(level, firsts, roles, spans, around, marks, count)
                p = after
        while is_behind and not is_wrong:  # a value: on to the next one, or out of what ends here
            p = skip_blanks(buf, p, end)
            if level == 0:
                if p == end:
                    return count
                is_wrong = not many or (buf[np.uint64(p)] != OPEN_MAP and buf[np.uint64(p)] != OPEN_ARRAY)
                is_behind = False
                continue
            if p >= end:
                is_wrong = True
                continue
            char = buf[np.uint64(p)]
            p += 1
            here, following = firsts[level - 1], firsts[level]
            if char == COMMA:
                p = skip_blanks(buf, p, end)
                is_behind = False
            elif char == (CLOSE_MAP if here < following else CLOSE_ARRAY):
                level -= 1
                if width:
                    give_around(here, following, roles, spans, around, marks[level], count)
            else:
                is_wrong = True
        role = np.int64(LEADS)
        if not is_wrong and level > 0 and firsts[level - 1] < firsts[level]:
            key = p + 1
            is_wrong = p >= end or buf[np.uint64(p)] != QUOTE
            if not is_wrong:
                stop, is_plain = text_end(buf, key, end)
                if stop < 0 and not many:
                    return stop
                is_wrong = stop < 0
            if not is_wrong:
                role = key_role(
                    buf, key, stop - key, is_plain, firsts[level - 1], firsts[level], key_starts, key_lengths, roles,
                    keys, text,
                )  # fmt: skip
                if role == LEADS:  # such a key again: what the first one held is forgotten
                    count = marks[level - 1]
                p = skip_blanks(buf, stop + 1, end)
                is_wrong = p >= end or buf[np.uint64(p)] != COLON
                p = skip_blanks(buf, p + 1, end)
        if is_wrong or p >= end:
            if not many:
                return broken
            after = put_rest(p, end, starts, lengths, around, width, count, before)
            return after if after == FULL else end_maps(level, firsts, roles, spans, around, marks, after)


@kernel
def walk_elements(
    data: U8, begin: int, last: int, stop: int, prefixed: int, many: int, count: int,
    starts: I64, lengths: I64, states: U8, ends: I64, around: I64,
    firsts: I64, key_starts: I64, key_lengths: I64, roles: I64, keys: U8, spans: I64, marks: I64, stack: I64, text: U8,
) -> tuple[int, int, int]:  # fmt: skip
    """The elements in the lines of data[begin:stop] that begin at `last` or before; `begin` is where one does.

    Fills `starts`, `lengths`, `states` and `ends`, from the place `count` on: the last element of a line ends with its
    newline. A line without elements takes one place, DELETED: text all of it, others none of it, at its end. A line
    that is no JSON is LIVE, as a whole. `around` has of each element, and of each value that is given with it, where
    that begins and its length, 0 where there is none. Behind the data there are SLACK bytes.

    Gives how many places are taken, where the line begins that was not walked, behind the last line where all were, and
    why it was not: there is no room for it (1), or it is not certain what it holds.
    """
    room = min(starts.shape[0], lengths.shape[0], states.shape[0], ends.shape[0])
    stop = min(stop, data.shape[0] - SLACK)
    position = max(0, begin)
    is_full = 0
    while position <= last and position < stop:
        end = newline_from(data, position, stop)
        if end >= stop:
            break
        if count >= room:
            is_full = 1
            break
        start = object_from(data, position, end) if prefixed else behind_blanks(data, position, end)
        after = np.int64(count)
        if start < end:
            after = elements_of(
                data, start, end, many, firsts, key_starts, key_lengths, roles, keys, spans, starts, lengths, around,
                np.int64(count), marks, stack, text,
            )  # fmt: skip
            if after == FULL or after == UNSURE:
                is_full = int(after == FULL)
                break
        if after == BROKEN or after == count:
            states[count] = LIVE if after == BROKEN else DELETED
            if after != BROKEN:
                start = end
                if prefixed and object_from(data, position, end) == end and behind_blanks(data, position, end) < end:
                    start = position
            count = int(put_place(start, end - start, starts, lengths, around, spans.shape[0], np.int64(count)))
        else:
            for place in range(count, after):
                states[place] = LIVE
                ends[place] = starts[place] + lengths[place]
            count = after
        ends[count - 1] = end + 1
        position = end + 1
    return count, position, is_full


@kernel
def gather_around(
    data: U8, starts: I64, lengths: I64, states: U8, around: I64, out: U8, places: I64, sizes: I64
) -> int:
    """Write what is around each live element, and the element itself, with SEPARATOR between: where each begins."""
    count = starts.shape[0]
    width = around.shape[0] // count if count else 0
    o = np.int64(0)
    for number in range(count):
        places[number] = o
        if states[number] == LIVE:
            for i in range(width * number, width * (number + 1), 2):
                copy_words(data, around[i], out, o, around[i + 1])
                o += around[i + 1]
                out[np.uint64(o)] = SEPARATOR
                o += 1
            copy_words(data, starts[number], out, o, lengths[number])
            o += lengths[number]
        sizes[number] = o - places[number]
    return o
