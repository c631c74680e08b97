"""Rows under a header, for kernels: what is written of each.

A row is a line. Where a value in quotes goes on in the next line, nothing is read: whether a line begins a row then
depends on all lines before it, and a wrong guess would give one record another's values.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.part_kernels import first_marked, newline_from, same_bytes
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.text import (
    CLOSE_ARRAY,
    CLOSE_MAP,
    COMMA,
    MINUS,
    NEWLINE,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    RETURN,
    SPACE,
)
from jitdb.log.lines.formats.kernels.kinds import (
    ARRAY,
    BAD,
    BETWEEN,
    COLUMNS,
    COMMENTS,
    DATE,
    EMPTY_SIZE,
    FIELD,
    FIRST,
    FLAGS,
    GOES_ON,
    HEADER,
    HEADER_SIZE,
    IS_BOOL,
    IS_NUMBER,
    IS_TEXT,
    LINED,
    QUOTED,
    RENAMES,
    SECOND,
    SKIPS,
    STRICT,
    TIME,
    UNSET_SIZE,
)
from jitdb.log.lines.formats.kernels.logfmt import put_word
from jitdb.log.lines.formats.kernels.writing import (
    put_byte,
    put_bytes,
    put_escaped,
    put_key,
    put_quoted,
    without_blanks,
)

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_QUOTES = np.uint64(0x2222222222222222)
_DOT, _ZERO, _NINE = 46, 48, 57
_HASH = 35
_TRUE, _FALSE = 84, 70  # of Zeek
_SEP = np.frombuffer(b"sep=    ", np.uint8)
_FIELDS = np.frombuffer(b"#fields", np.uint8)
_TIMESTAMP = np.frombuffer(b'"timestamp":        ', np.uint8)
_TIMESTAMP_SIZE = 12
_WORDS = np.frombuffer(b"true    false   ", np.uint8)
_EMPTY_TEXT = np.frombuffer(b'""      ', np.uint8)


@part
def quote_from(data, p, end):
    """Where the first quote of data[p:end] is; `end` where there is none."""
    while p < end:
        stops = ((word_at(data, p) ^ _QUOTES) - _ONES) & ~(word_at(data, p) ^ _QUOTES) & _HIGH
        if stops != 0:
            return min(p + first_marked(stops), end)
        p += 8
    return end


@part
def value_end(data, p, end, first, second):
    """Where the value without quotes that begins at `p` ends: before a delimiter, a newline, or `end`."""
    firsts, seconds = np.uint64(first) * _ONES, np.uint64(second) * _ONES
    while p < end:
        word = word_at(data, p)
        stops = (((word ^ firsts) - _ONES) | ((word ^ seconds) - _ONES) | ((word ^ _NEWLINES) - _ONES)) & _HIGH
        if stops == 0:
            p += 8
            continue
        p += first_marked(stops)
        if p >= end:
            return end
        char = data[np.uint64(p)]
        if char == first or char == second or char == NEWLINE:
            return p
        p += 1  # no ASCII
    return end


@part
def past_spaces(data, p, end):
    while p < end and data[np.uint64(p)] == SPACE:
        p += 1
    return p


@part
def past_blanks_of(data, p, end, first, second):
    while p < end and (data[np.uint64(p)] == first or data[np.uint64(p)] == second):
        p += 1
    return p


@part
def put_text_of(data, p, end, out, o):
    """The text of a value in quotes, from behind the first one: behind its last one, -1 where there is none; and where
    what was written ends."""
    o = put_byte(out, o, QUOTE)
    while True:
        stop = quote_from(data, p, end)
        o = put_escaped(data, p, stop, out, o)
        if stop >= end:
            return np.int64(-1), o
        if stop + 1 < end and data[np.uint64(stop + 1)] == QUOTE:
            o = put_escaped(data, stop, stop + 1, out, o)
            p = stop + 2
            continue
        return stop + 1, put_byte(out, o, QUOTE)


@part
def put_in_quotes(data, p, end, flags, out, o):
    """The same of a value that is what it spells, as CSV has it, in quotes or not."""
    stop = quote_from(data, p, end)
    is_whole = stop > p and stop < end and (stop + 1 >= end or data[np.uint64(stop + 1)] != QUOTE)
    if flags & LINED and is_whole:
        return stop + 1, put_word(data, p, stop, out, o)
    return put_text_of(data, p, end, out, o)


@part
def behind_quotes(data, p, end, first, second, skips):
    """Where what ends a value in quotes stands, a delimiter or a newline; `end`; -1 where other bytes stand there."""
    if skips:
        p = past_spaces(data, p, end)
    if p < end and data[np.uint64(p)] == RETURN and (p + 1 >= end or data[np.uint64(p + 1)] == NEWLINE):
        p += 1
    if p >= end:
        return end
    char = data[np.uint64(p)]
    return p if char == first or char == second or char == NEWLINE else np.int64(-1)


@part
def spells_number(data, p, end):
    """Whether these bytes are digits, perhaps with a minus before and a dot between, as JSON has them."""
    if p < end and data[np.uint64(p)] == MINUS:
        p += 1
    first = p
    dots = 0
    while p < end:
        char = data[np.uint64(p)]
        if char == _DOT and dots == 0 and p > first:
            dots = 1
        elif char < _ZERO or char > _NINE:
            return False
        p += 1
    if p == first or p - first > 32 or data[np.uint64(p - 1)] == _DOT:
        return False
    return data[np.uint64(first)] != _ZERO or p == first + 1 or data[np.uint64(first + 1)] == _DOT


@part
def put_typed(data, p, end, kind, out, o):
    """A value whose kind the header says, or which is what it spells."""
    kind &= ARRAY - 1
    if kind == IS_TEXT:
        return put_quoted(data, p, end, out, o)
    if kind == IS_NUMBER:
        return put_bytes(data, p, end - p, out, o) if spells_number(data, p, end) else put_quoted(data, p, end, out, o)
    if kind == IS_BOOL:
        if end - p == 1 and data[np.uint64(p)] == _TRUE:
            return put_bytes(_WORDS, 0, 4, out, o)
        if end - p == 1 and data[np.uint64(p)] == _FALSE:
            return put_bytes(_WORDS, 8, 5, out, o)
        return put_quoted(data, p, end, out, o)
    return put_word(data, p, end, out, o)


@part
def put_elements(data, p, end, kind, between, out, o):
    o = put_byte(out, o, OPEN_ARRAY)
    while p <= end:
        stop = p
        while stop < end and data[np.uint64(stop)] != between:
            stop += 1
        if out[np.uint64(o - 1)] != OPEN_ARRAY:
            o = put_byte(out, o, COMMA)
        o = put_typed(data, p, stop, kind, out, o)
        p = stop + 1
    return put_byte(out, o, CLOSE_ARRAY)


@part
def put_value(data, p, end, kind, program, texts, out, o):
    """A value without quotes, which is not unset."""
    size = program[EMPTY_SIZE]
    at = program[HEADER_SIZE] + program[UNSET_SIZE]
    is_empty = size > 0 and end - p == size and same_bytes(data, p, texts, at, size)
    if is_empty:
        if kind & ARRAY:
            return put_byte(out, put_byte(out, o, OPEN_ARRAY), CLOSE_ARRAY)
        return put_bytes(_EMPTY_TEXT, 0, 2, out, o)
    if kind & ARRAY:
        return put_elements(data, p, end, kind, program[BETWEEN], out, o)
    return put_typed(data, p, end, kind, out, o)


@part
def is_header(data, p, end, stop, program, texts):
    """HEADER of the header, again or for the first time, and of a comment; RENAMES of another header; else 0. Of CSV a
    line such as `sep=;`, which Excel writes before the header, is a part of it.
    """
    size = program[HEADER_SIZE]
    if stop - p == size and same_bytes(data, p, texts, 0, size) and without_blanks(data, stop, end) <= stop:
        return np.int64(HEADER)
    if program[FLAGS] & LINED and stop - p == 5 and data[np.uint64(p + 4)] == program[FIRST]:
        return np.int64(HEADER if same_bytes(data, p, _SEP, 0, 4) else 0)
    if not program[FLAGS] & COMMENTS or data[np.uint64(p)] != _HASH:
        return np.int64(0)
    for i in range(1, 7):
        if p + i >= stop or (data[np.uint64(p + i)] | 32) != _FIELDS[i]:
            return np.int64(HEADER)
    return np.int64(RENAMES)


@part
def is_of_time(data, p, end):
    """Whether these bytes may be a date, or a time of day: digits, with - : . or / between, and AM or PM."""
    if end - p < 5 or end - p > 18:
        return False
    for at in range(p, end):
        char = data[np.uint64(at)]
        if (char < _DOT or char > _NINE + 1) and char != MINUS:
            letter = char | 32
            if at == p or (char != SPACE and letter != 97 and letter != 112 and letter != 109):  # a, p, m
                return False
    return True


@part
def put_row(data, start, end, program, texts, fields, keys, out, o):
    """A row as a record: where it ends; or what it is else (kinds.py)."""
    newline = newline_from(data, start, end)
    stop = newline
    if stop > start and data[np.uint64(stop - 1)] == RETURN:
        stop -= 1
    found = is_header(data, start, end, stop, program, texts)
    if found < 0:
        return found
    first, second, flags, columns = program[FIRST], program[SECOND], program[FLAGS], program[COLUMNS]
    end = stop
    o = put_byte(out, o, OPEN_MAP)
    p = np.int64(start)
    column = np.int64(0)
    date, date_end, time, time_end, last = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    is_last = False
    if first != second:
        p = past_blanks_of(data, p, end, first, second)
    while not is_last:
        if flags & SKIPS:
            p = past_spaces(data, p, end)
        begin = p
        after = o
        is_quoted = False
        if flags & QUOTED and p < end and data[np.uint64(p)] == QUOTE:
            if column < columns:
                after = put_key(keys, fields[column * FIELD + 1], fields[column * FIELD + 2], out, o)
            p, after = put_in_quotes(data, begin + 1, end, flags, out, after)
            if p < 0 and flags & LINED:
                return np.int64(GOES_ON)
            if p >= 0:
                last = p - 1
                p = behind_quotes(data, p, end, first, second, flags & SKIPS)
            is_quoted = p >= 0
            if (not is_quoted and flags & LINED) or (is_quoted and column >= columns):
                return np.int64(BAD)
        is_unset = False
        if is_quoted:
            o = after
            begin += 1
        else:
            p = value_end(data, begin, end, first, second)
            last = p
            if last > begin and (p >= end or data[np.uint64(p)] == NEWLINE) and data[np.uint64(last - 1)] == RETURN:
                last -= 1
            size = program[UNSET_SIZE]
            is_unset = last == begin
            if size > 0 and last - begin == size:
                is_unset = same_bytes(data, begin, texts, program[HEADER_SIZE], size)
            if column >= columns and last > begin:
                return np.int64(BAD)
            if not is_unset:
                place = column * FIELD
                o = put_key(keys, fields[place + 1], fields[place + 2], out, o)
                o = put_value(data, begin, last, fields[place + 3], program, texts, out, o)
        if column == program[DATE] and not is_unset:
            date, date_end = begin, last
        elif column == program[TIME] and not is_unset:
            time, time_end = begin, last
        column += 1
        is_last = p >= end or data[np.uint64(p)] == NEWLINE
        p += 1
        if first != second and not is_last:  # blanks: several are as one
            p = past_blanks_of(data, p, end, first, second)
            is_last = p >= end
    if p < end and without_blanks(data, p, end) > p:
        return np.int64(BAD)
    if column < columns and (flags & STRICT or column == 1):
        return np.int64(BAD)
    if is_of_time(data, date, date_end) and is_of_time(data, time, time_end):
        o = put_key(_TIMESTAMP, 0, _TIMESTAMP_SIZE, out, o)
        o = put_bytes(data, date, date_end - date, out, put_byte(out, o, QUOTE))
        o = put_bytes(data, time, time_end - time, out, put_byte(out, o, 84 if flags & COMMENTS else SPACE))
        if flags & COMMENTS:
            o = put_byte(out, o, 90)  # of W3C, times are of UTC
        o = put_byte(out, o, QUOTE)
    return put_byte(out, o, CLOSE_MAP)
