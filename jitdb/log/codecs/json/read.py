"""Reading one value of JSON where it lies, for kernels: its kind, where it ends, and whether it is one.

All of it is looked at, also of what nobody asked for: a number must be a number, a string UTF-8 without control
characters. So what is found to end is a value, but for what json refuses for another reason. Where it is not certain
what json would say (UNSURE), json decides: integers that may not fit 64 bits, lone surrogates, deep nesting.

No value ends behind `end`, and nothing is read SLACK bytes or more behind it.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import inlined, part
from jitdb.common.values import ARRAY, MAP, NUMBER, STRING
from jitdb.log.codecs.fields.constants import BROKEN, MALFORMED, MAX_NESTING, UNSURE
from jitdb.log.codecs.fields.sixteen import digit_stops, text_stops, trailing_zeros, word_at
from jitdb.log.codecs.json.numbers import digits_before, fits_word, read_digits, read_number, short_number_end, split
from jitdb.log.codecs.json.text import (
    BACKSLASH,
    CLOSE_ARRAY,
    CLOSE_MAP,
    COLON,
    COMMA,
    MINUS,
    NEWLINE,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    character_size,
    read_escape,
    read_hex,
    read_word,
)

WRITTEN = 64  # added to the kind of a value whose payload must be written anew: text with escapes, a container

_ZERO, _NINE, _DOT, _PLUS, _E, _U = 48, 57, 46, 43, 101, 117
_SURE_DIGITS = 19  # integers of fewer fit 64 bits
_LETTERS = np.zeros(128, np.bool_)  # what may stand behind a backslash, but for u
_LETTERS[list(b'"\\/bfnrt')] = True


@part
def skip_blanks(buf, p, end):
    """Where the blanks from `p` on end, a newline being one."""
    while p < end:
        char = buf[np.uint64(p)]
        if char > SPACE or (char != SPACE and char != TAB and char != RETURN and char != NEWLINE):
            break
        p += 1
    return p


@inlined
def text_end(buf, p, end):
    """Of the string whose opening quote is before `p`: where its closing quote is, and whether it has no escapes."""
    while True:
        plain = np.int64(trailing_zeros(text_stops(buf, p)))
        p += plain
        if plain < 16:
            break
        if p >= end:
            return np.int64(BROKEN), True
    if p >= end:
        return np.int64(BROKEN), True
    if buf[np.uint64(p)] == QUOTE:
        return p, True
    return odd_text_end(buf, p, end)


@part
def odd_text_end(buf, p, end):
    """The same from where on there is not only ASCII."""
    broken, unsure = np.int64(BROKEN), np.int64(UNSURE)
    is_plain = True
    while p < end:
        char = np.int64(buf[np.uint64(p)])
        if char == QUOTE:
            return p, is_plain
        if char >= 128:
            size = character_size(buf, p, char)
            if size == 0:
                return broken, is_plain
            p += size
        elif char == BACKSLASH:
            is_plain = False
            char = np.int64(buf[np.uint64(p + 1)])
            if char == _U:
                if read_hex(buf, p + 2) < 0:
                    return broken, is_plain
                p, _ = read_escape(buf, p)
                if p < 0:
                    return unsure, is_plain
            elif char < 128 and _LETTERS[char]:
                p += 2
            else:
                return broken, is_plain
        elif char < SPACE:
            return broken, is_plain
        else:
            p += np.int64(trailing_zeros(text_stops(buf, p)))
    return broken, is_plain


@inlined
def digits_end(buf, p, end):
    """Where the digits from `p` on end, or behind `end`."""
    while p < end:
        count = digits_before(word_at(buf, p))
        p += count
        if count < 8:
            break
    return p


@inlined
def number_end(buf, p, end):
    """Where the number at `p` ends, behind which something must stand before `end`."""
    broken = np.int64(BROKEN)
    negative = buf[np.uint64(p)] == MINUS
    if negative:
        p += 1
    first = p
    p = digits_end(buf, p, end)
    count = p - first
    if count == 0 or (count > 1 and buf[np.uint64(first)] == _ZERO) or p >= end:
        return broken
    char = buf[np.uint64(p)]
    if char != _DOT and char | 32 != _E:
        if count >= _SURE_DIGITS:
            _, digits = read_digits(buf, first, np.uint64(0))
            if not fits_word(digits, count, buf[np.uint64(first)], negative):
                return np.int64(UNSURE)
        return p
    if char == _DOT:
        first = p + 1
        p = digits_end(buf, first, end)
        if p == first or p >= end:
            return broken
        char = buf[np.uint64(p)]
    if char | 32 == _E:
        p += 1
        if buf[np.uint64(p)] == MINUS or buf[np.uint64(p)] == _PLUS:
            p += 1
        first = p
        p = digits_end(buf, p, end)
        if p == first or p >= end:
            return broken
    return p


@inlined
def is_of_numbers(char):
    """Whether the character may stand in a number behind its first one."""
    return _ZERO <= char <= _NINE or char == _DOT or char | 32 == _E or char == MINUS or char == _PLUS


@part
def scalar_end(buf, p, end):
    """Where the value at `p` ends, which is no container."""
    char = buf[np.uint64(p)]
    if char == QUOTE:
        p, _ = text_end(buf, p + 1, end)
        return p + 1 if p >= 0 else p
    if char <= _NINE:
        after = number_end(buf, p, end)
        if after != BROKEN or char != MINUS:
            return after
    kind, after, _ = read_word(buf, p)
    return np.int64(BROKEN) if kind == MALFORMED or after > end else after


@part
def key_end(buf, p, end):
    """Where the value begins whose key is at `p`."""
    broken = np.int64(BROKEN)
    if p >= end or buf[np.uint64(p)] != QUOTE:
        return broken
    p, _ = text_end(buf, p + 1, end)
    if p < 0:
        return p
    p = skip_blanks(buf, p + 1, end)
    if p >= end or buf[np.uint64(p)] != COLON:
        return broken
    return skip_blanks(buf, p + 1, end)


@part
def container_end(buf, p, end, stack, depth):
    """Where the array or map at `p` ends, which is in `depth` others. `stack` has room for MAX_NESTING numbers."""
    broken = np.int64(BROKEN)
    level = np.int64(0)
    is_map = False
    while True:
        if p >= end:
            return broken
        char = buf[np.uint64(p)]
        if char == OPEN_MAP or char == OPEN_ARRAY:
            if depth + level == MAX_NESTING:
                return np.int64(UNSURE)
            stack[level] = is_map
            level += 1
            is_map = char == OPEN_MAP
            p = skip_blanks(buf, p + 1, end)
            if p >= end:
                return broken
            if buf[np.uint64(p)] != (CLOSE_MAP if is_map else CLOSE_ARRAY):
                if is_map:
                    p = key_end(buf, p, end)
                    if p < 0:
                        return p
                continue
        else:
            p = scalar_end(buf, p, end)
            if p < 0:
                return p
        while True:  # behind a value, or at the end of an empty container
            p = skip_blanks(buf, p, end)
            if p >= end:
                return broken
            char = buf[np.uint64(p)]
            p += 1
            if char == COMMA:
                p = skip_blanks(buf, p, end)
                if is_map:
                    p = key_end(buf, p, end)
                    if p < 0:
                        return p
                break
            if char != (CLOSE_MAP if is_map else CLOSE_ARRAY):
                return broken
            level -= 1
            if level == 0:
                return p
            is_map = stack[level] != 0


@inlined
def take_value(buf, p, end, row, record, rows, stack, depth, powers):
    """Step over the value at `p`, which is in `depth` containers, and put it into a row of the record, if it is asked
    for (-1: it is not): where it ends.

    What must be written anew is put there as it stands: a string without its quotes, a container with its brackets.
    """
    kind, start, length, number = rows
    char = buf[np.uint64(p)]
    if char == QUOTE:
        at, is_plain = text_end(buf, p + 1, end)
        if row >= 0:
            kind[row, record] = STRING if is_plain else STRING + WRITTEN
            start[row, record] = p + 1
            length[row, record] = at - p - 1
        return at + 1 if at >= 0 else at
    after = np.int64(BROKEN)
    if char <= _NINE:
        if row < 0 and char > _ZERO:
            after = p + np.int64(trailing_zeros(digit_stops(buf, p)))
            if buf[np.uint64(after)] == COMMA and after < end:
                return after
        after = short_number_end(buf, p)
        if after < 0 or after >= end:
            after = number_end(buf, p, end)
        if row >= 0 and after >= 0:
            after, is_integer, negative, word = read_number(buf, p, powers)
            if after < 0:
                return np.int64(UNSURE)
            value, rest = split(is_integer, negative, word)
            kind[row, record] = NUMBER
            number[row, record] = value
            length[row, record] = rest
        if after != BROKEN:
            return after
    elif char == OPEN_MAP or char == OPEN_ARRAY:
        after = container_end(buf, p, end, stack, depth)
        if row >= 0:
            kind[row, record] = (MAP if char == OPEN_MAP else ARRAY) + WRITTEN
            start[row, record] = p
            length[row, record] = after - p
        return after
    found, after, bits = read_word(buf, p)
    if row >= 0:
        kind[row, record] = found
        length[row, record] = 0
        if found == NUMBER:
            number[row, record] = np.uint64(bits).view(np.float64)
    return np.int64(BROKEN) if found == MALFORMED or after > end else after
