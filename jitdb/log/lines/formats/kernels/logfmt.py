"""logfmt, for kernels: `key=value key="a value" key`, where a key alone is true. And LTSV: `label:value`, divided by
tabs. And the pairs of CEF and LEEF.

A value without quotes is a number where it spells one (writing_kernels.is_number), or true or false; others are text.
One between single quotes is text, or the pairs in it, as auditd writes them.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.json.text import BACKSLASH, CLOSE_MAP, COLON, COMMA, OPEN_MAP, QUOTE, SPACE, TAB
from jitdb.log.lines.formats.kernels.traces import begins_with
from jitdb.log.lines.formats.kernels.writing import (
    is_number,
    line_end,
    put_byte,
    put_bytes,
    put_escaped,
    put_quoted,
    put_scalar,
    put_trace_key,
    without_blanks,
)

_EQUALS, _BAR, _SINGLE, _OPEN, _CLOSE, _PLUS, _MINUS = 61, 124, 39, 91, 93, 43, 45
_TRUE = np.frombuffer(b"true        ", np.uint8)
# Bytes of keys of logfmt: letters, digits, and signs that are neither blanks, quotes nor equals.
_KEYS = np.array([(33 <= byte < 127 and byte not in b'"=') or byte >= 128 for byte in range(256)], np.bool_)
_LABELS = np.array([bytes([byte]).isalnum() or byte in b"_.-" for byte in range(256)], np.bool_)
_TIME = np.frombuffer(b"time:", np.uint8)
_NAMES = np.array([bytes([byte]).isalnum() or byte in b"_.-[]" for byte in range(256)], np.bool_)  # of CEF
_DATE = np.frombuffer(b"date=", np.uint8)
_CLOCK = np.frombuffer(b" time=", np.uint8)
_OFFSET = np.frombuffer(b' tz="', np.uint8)
_TIMESTAMP = np.frombuffer(b'"timestamp":"   ', np.uint8)
_TIMESTAMP_SIZE = 13
_N, _R, _X = 110, 114, 120
_LETTERS = np.array([bytes([byte]).isalpha() or byte in b"_@" for byte in range(256)], np.bool_)


@part
def begins_logfmt(data, p, end):
    """Whether a line begins with a key and its equals sign."""
    first = p
    while p < end and _KEYS[data[np.uint64(p)]]:
        p += 1
    return p > first and p < end and data[np.uint64(p)] == _EQUALS


@part
def is_first_key(data, p, end):
    """Whether a key may be the first one: it begins with a letter and has no bar, as `CEF:0|vendor|product|src` has."""
    is_one = _LETTERS[data[np.uint64(p)]]
    while p < end:
        is_one &= data[np.uint64(p)] != _BAR
        p += 1
    return is_one


@part
def are_pairs(data, p, end):
    """Whether data[p:end] is a key and its value, and more such; keys alone among them, as many at most.

    Then it has no control characters, and keys are ASCII: so text and pairs together take ESCAPE bytes a byte at most.
    """
    pairs = np.int64(0)
    alone = np.int64(0)
    while p < end:
        first = p
        while p < end and _KEYS[data[np.uint64(p)]] and data[np.uint64(p)] < 128:
            p += 1
        is_pair = p > first and p < end and data[np.uint64(p)] == _EQUALS
        if p == first or (pairs == 0 and not (is_pair and is_first_key(data, first, p))):
            return False
        if is_pair:
            pairs += 1
            first = p + 1
            p = quoted_end(data, first + 1, end) + 1 if first < end and data[np.uint64(first)] == QUOTE else first
            while first < min(p, end):
                if data[np.uint64(first)] < SPACE:
                    return False
                first += 1
            while p < end and data[np.uint64(p)] > SPACE:
                p += 1
        else:
            alone += 1
        while p < end and data[np.uint64(p)] == SPACE:
            p += 1
    return pairs >= 2 and alone <= pairs


@part
def leading_pairs(data, p, end):
    """Where the pairs end with which a text begins, two of them at least, as are_pairs has them; `p` where none do."""
    first = p
    found = p
    pairs = np.int64(0)
    while p < end:
        key = p
        while p < end and _KEYS[data[np.uint64(p)]] and data[np.uint64(p)] < 128:
            p += 1
        if p == key or p >= end or data[np.uint64(p)] != _EQUALS or (pairs == 0 and not is_first_key(data, key, p)):
            break
        p += 1
        if p < end and data[np.uint64(p)] == QUOTE:
            p = quoted_end(data, p + 1, end) + 1
        while p < end and data[np.uint64(p)] > SPACE:
            p += 1
        pairs += 1
        found = min(p, end)
        while p < end and data[np.uint64(p)] == SPACE:
            p += 1
    for place in range(first, found):
        if data[np.uint64(place)] < SPACE:
            return first
    return found if pairs >= 2 else first


@part
def quoted_end(data, p, end):
    """Where the quote stands that ends the text which begins at `p`; `end` where none does."""
    while p < end and data[np.uint64(p)] != QUOTE:
        p += 2 if data[np.uint64(p)] == BACKSLASH else 1
    return min(p, end)


@part
def single_end(data, p, end):
    """Where the single quote stands, before a blank or the end, that ends what begins at `p`; -1 where none does."""
    while p < end:
        if data[np.uint64(p)] == _SINGLE and (p + 1 == end or data[np.uint64(p + 1)] <= SPACE):
            return np.int64(p)
        p += 1
    return np.int64(-1)


@part
def put_logfmt_text(data, p, end, out, o):
    """The text of a value in quotes as JSON has it: where the closing quote is, or the line ends, and where it ends."""
    o = put_byte(out, o, QUOTE)
    while p < end and data[np.uint64(p)] != QUOTE:
        first = p
        while p < end and data[np.uint64(p)] != QUOTE and data[np.uint64(p)] != BACKSLASH:
            p += 1
        o = put_escaped(data, first, p, out, o)
        if p >= end or data[np.uint64(p)] == QUOTE:
            break
        char = data[np.uint64(p + 1)] if p + 1 < end else np.uint8(BACKSLASH)
        if char == QUOTE or char == BACKSLASH or char == 110 or char == 116 or char == 114:
            out[np.uint64(o)] = BACKSLASH
            out[np.uint64(o + 1)] = char
            o += 2
            p += 2
        else:
            o = put_escaped(data, p, p + 1, out, o)
            p += 1
    return min(p, end), put_byte(out, o, QUOTE)


@part
def put_logfmt(data, start, end, out, o):
    """A record of keys and values; -1 where its first line is no such."""
    stop, following = line_end(data, start, end)
    if not begins_logfmt(data, start, stop):
        return np.int64(-1)
    o = put_pairs(data, np.int64(start), stop, out, put_byte(out, o, OPEN_MAP))
    return put_following(data, following, end, out, o)


@part
def put_following(data, following, end, out, o):
    """The lines behind the first one as the field `trace`; then the record ends."""
    if following < end:
        after = without_blanks(data, following, end)
        if after > following:
            o = put_byte(out, put_escaped(data, following, after, out, put_trace_key(out, o)), QUOTE)
    return put_byte(out, o, CLOSE_MAP)


@part
def label_end(data, p, end):
    """Where the colon stands behind the label that begins at `p`; -1 where none does."""
    first = p
    while p < end and _LABELS[data[np.uint64(p)]]:
        p += 1
    return np.int64(p) if first < p < end and data[np.uint64(p)] == COLON else np.int64(-1)


@part
def begins_ltsv(data, p, end):
    """Whether a line is of LTSV: it begins with a label, and another one is behind a tab."""
    p = label_end(data, p, end)
    while 0 <= p < end and data[np.uint64(p)] != TAB:
        p += 1
    return 0 <= p < end and label_end(data, p + 1, end) >= 0


@part
def put_ltsv(data, start, end, out, o):
    """A record of labels and values; -1 where its first line is no such. A time may be in brackets."""
    stop, following = line_end(data, start, end)
    p = np.int64(start)
    if not begins_ltsv(data, p, stop):
        return np.int64(-1)
    o = put_byte(out, o, OPEN_MAP)
    while p < stop:
        first = p
        while p < stop and data[np.uint64(p)] != TAB:
            p += 1
        colon = label_end(data, first, p)
        if colon >= 0:
            if out[np.uint64(o - 1)] != OPEN_MAP:
                o = put_byte(out, o, COMMA)
            o = put_byte(out, put_quoted(data, first, colon, out, o), COLON)
            is_bracketed = p - colon > 3 and data[np.uint64(colon + 1)] == _OPEN and data[np.uint64(p - 1)] == _CLOSE
            if is_bracketed and begins_with(data, first, p, _TIME):
                o = put_quoted(data, colon + 2, p - 1, out, o)
            else:
                o = put_word(data, colon + 1, p, out, o)
        p += 1
    return put_following(data, following, end, out, o)


@part
def put_day_and_clock(data, p, stop, out, o):
    """`timestamp` of pairs that begin with a day and a time of day, `date=2026-11-28 time=10:00:00`, as those of
    Fortinet do, with the zone that `tz` says."""
    clock = p + 21
    end = clock + 8
    is_one = end <= stop and begins_with(data, p, stop, _DATE) and begins_with(data, p + 15, stop, _CLOCK)
    is_one = is_one and data[np.uint64(p + 9)] == _MINUS and data[np.uint64(p + 12)] == _MINUS
    if not is_one or data[np.uint64(clock + 2)] != COLON or data[np.uint64(clock + 5)] != COLON:
        return o
    if out[np.uint64(o - 1)] != OPEN_MAP:
        o = put_byte(out, o, COMMA)
    o = put_bytes(_TIMESTAMP, 0, _TIMESTAMP_SIZE, out, o)
    o = put_byte(out, put_escaped(data, p + 5, p + 15, out, o), 84)
    o = put_escaped(data, clock, end, out, o)
    while end < stop and not begins_with(data, end, stop, _OFFSET):
        end += 1
    zone = end + 5
    if zone + 6 <= stop and (data[np.uint64(zone)] == _MINUS or data[np.uint64(zone)] == _PLUS):
        o = put_escaped(data, zone, quoted_end(data, zone, zone + 6), out, o)
    return put_byte(out, o, QUOTE)


@part
def put_pairs(data, p, stop, out, o):
    """The keys and values of data[p:stop], as members of an object."""
    o = put_day_and_clock(data, p, stop, out, o)
    whole = stop  # else `stop` is where single quotes end that hold pairs
    while p < whole:
        if p >= stop:
            p, stop = stop + 1, whole
            continue
        char = data[np.uint64(p)]
        if not _KEYS[char]:
            p += 1
            continue
        first = p
        while p < stop and _KEYS[data[np.uint64(p)]]:
            p += 1
        quote = np.int64(-1)
        if stop == whole and p + 1 < stop and data[np.uint64(p)] == _EQUALS and data[np.uint64(p + 1)] == _SINGLE:
            quote = single_end(data, p + 2, stop)
            if quote >= 0 and begins_logfmt(data, p + 2, quote):
                p, stop = p + 2, quote
                continue
        if out[np.uint64(o - 1)] != OPEN_MAP:
            o = put_byte(out, o, COMMA)
        o = put_byte(out, put_quoted(data, first, p, out, o), COLON)
        if quote >= 0:
            o = put_quoted(data, p + 2, quote, out, o)
            p = quote + 1
            continue
        if p >= stop or data[np.uint64(p)] != _EQUALS:
            o = put_bytes(_TRUE, 0, 4, out, o)
            continue
        p += 1
        if p < stop and data[np.uint64(p)] == QUOTE:
            p, o = put_logfmt_text(data, p + 1, stop, out, o)
            p += 1
            continue
        first = p
        while p < stop and data[np.uint64(p)] > SPACE:
            p += 1
        o = put_word(data, first, p, out, o)
    return o


@part
def put_word(data, p, end, out, o):
    """A value without quotes: a number, true or false, else text."""
    size = end - p
    last = data[np.uint64(end - 1)] if size else np.uint8(0)
    if last == 101 and (size == 4 or size == 5):
        is_true = (
            size == 4 and data[np.uint64(p)] == 116 and data[np.uint64(p + 1)] == 114 and data[np.uint64(p + 2)] == 117
        )
        is_false = (
            size == 5 and data[np.uint64(p)] == 102 and data[np.uint64(p + 1)] == 97 and data[np.uint64(p + 3)] == 115
        )
        if is_true or is_false:
            return put_bytes(data, p, size, out, o)
    return put_scalar(data, p, end, out, o)


@part
def put_unescaped(data, p, end, out, o):
    """A text of CEF: a backslash stands before what else has a meaning there, and before the letters n and r."""
    o = put_byte(out, o, QUOTE)
    while p < end:
        first = p
        while p < end and data[np.uint64(p)] != BACKSLASH:
            p += 1
        o = put_escaped(data, first, p, out, o)
        if p >= end:
            break
        char = data[np.uint64(p + 1)] if p + 1 < end else np.uint8(0)
        if char == _N or char == _R:
            o = put_byte(out, put_byte(out, o, BACKSLASH), char)
            p += 2
        elif char == BACKSLASH or char == _EQUALS or char == _BAR:
            o = put_escaped(data, p + 1, p + 2, out, o)
            p += 2
        else:
            o = put_escaped(data, p, p + 1, out, o)
            p += 1
    return put_byte(out, o, QUOTE)


@part
def name_end(data, p, end):
    """Where the equals sign stands behind the key that begins at `p`; -1 where none does."""
    first = p
    while p < end and _NAMES[data[np.uint64(p)]]:
        p += 1
    return np.int64(p) if first < p < end and data[np.uint64(p)] == _EQUALS else np.int64(-1)


@part
def put_named(data, p, equals, end, out, o):
    """A key and its value, a number where it spells one."""
    if out[np.uint64(o - 1)] != OPEN_MAP:
        o = put_byte(out, o, COMMA)
    o = put_byte(out, put_quoted(data, p, equals, out, o), COLON)
    if is_number(data, equals + 1, end):
        return put_bytes(data, equals + 1, end - equals - 1, out, o)
    return put_unescaped(data, equals + 1, end, out, o)


@part
def put_extension(data, p, end, out, o):
    """The pairs of CEF: a value may have blanks, and goes on to the blank before the next key."""
    while p < end and data[np.uint64(p)] == SPACE:
        p += 1
    key = np.int64(p)
    equals = name_end(data, key, end)
    while p < end:
        p += 1
        if p < end and data[np.uint64(p)] != SPACE:
            continue
        following = name_end(data, p + 1, end) if p < end else np.int64(0)
        if following < 0:
            continue
        if equals >= 0:
            o = put_named(data, key, equals, without_blanks(data, equals + 1, p), out, o)
        key, equals = p + 1, following
    return o


@part
def delimiter_before(data, p):
    """What stands between the attributes of LEEF that begin at `p`: the head may name it, as `|^|` or `|x5E|`."""
    char = data[np.uint64(p - 2)]
    if data[np.uint64(p - 3)] == _BAR and char != _BAR and not _NAMES[char]:
        return np.int64(char)
    if data[np.uint64(p - 4)] != _X or (data[np.uint64(p - 5)] != _BAR and data[np.uint64(p - 6)] != _BAR):
        return np.int64(TAB)
    byte = np.int64(0)
    for i in range(p - 3, p - 1):
        digit = np.int64(data[np.uint64(i)])
        byte = 16 * byte + (digit - 48 if digit < 58 else (digit | 32) - 87)
    return byte


@part
def put_attributes(data, p, end, out, o):
    """The pairs of LEEF; those of CEF where the delimiter is not among them."""
    between = delimiter_before(data, p)
    first = np.int64(p)
    is_there = False
    while p <= end:
        if p < end and data[np.uint64(p)] != between:
            p += 1
            continue
        if p == end and not is_there:
            return put_extension(data, first, end, out, o)
        is_there = True
        equals = name_end(data, first, p)
        if equals >= 0:
            o = put_named(data, first, equals, without_blanks(data, equals + 1, p), out, o)
        p += 1
        first = np.int64(p)
    return o
