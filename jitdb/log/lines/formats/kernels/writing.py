"""Writing JSON, for kernels that make records of lines: text between quotes, numbers, times, members of objects.

Behind every input there are SLACK bytes, and an output has room for _ESCAPE bytes a byte of input and for all keys.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.log.codecs.fields.part_kernels import newline_from
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.numbers import copy_words, store_word
from jitdb.log.codecs.json.read import container_end
from jitdb.log.codecs.json.text import (
    BACKSLASH,
    CLOSE_MAP,
    COMMA,
    MINUS,
    NEWLINE,
    OPEN_MAP,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    character_size,
    plain_bytes,
)

ESCAPE = 6  # bytes of JSON that one byte takes, at most

_ZERO, _NINE, _DOT = 48, 57, 46
_MOST_DIGITS = 15  # of a number that a double holds exactly
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_LETTERS = np.zeros(128, np.uint8)  # what stands behind the backslash for a control character
_LETTERS[[8, 9, 10, 12, 13]] = list(b"btnfr")
_TRACE = np.frombuffer(b',"trace":"........', np.uint8)
_TRACE_SIZE = 10
_UNKNOWN = np.frombuffer(b"\xef\xbf\xbd", np.uint8)  # U+FFFD


@part
def put_bytes(source, at, size, out, o):
    """Copy bytes; where they end."""
    copy_words(source, at, out, o, size)
    return o + size


@part
def put_slack(out, o):
    """Zeros behind what is written, for kernels that read words there: what ends at `o` may be read as an input."""
    for i in range(64):
        out[np.uint64(o + i)] = 0


@part
def put_byte(out, o, byte):
    out[np.uint64(o)] = byte
    return o + 1


@part
def put_escaped(data, p, end, out, o):
    """Write data[p:end] as JSON has it between quotes, U+FFFD for each byte that is no UTF-8; where it ends."""
    while p < end:
        word = word_at(data, p)
        store_word(out, o, word)
        plain = min(plain_bytes(word), end - p)
        p += plain
        o += plain
        if plain == 8 or p >= end:
            continue
        char = np.int64(data[np.uint64(p)])
        if char >= 128:
            size = character_size(data, p, char)
            if size == 0 or p + size > end:
                o = put_unknown(out, o)
                p += 1
                continue
            for i in range(size):
                out[np.uint64(o + i)] = data[np.uint64(p + i)]
            p += size
            o += size
            continue
        out[np.uint64(o)] = BACKSLASH
        if char == QUOTE or char == BACKSLASH:
            out[np.uint64(o + 1)] = char
            o += 2
        else:
            o = put_control(out, o + 1, char)
        p += 1
    return o


@part
def put_unknown(out, o):
    for i in range(3):
        out[np.uint64(o + i)] = _UNKNOWN[i]
    return o + 3


@part
def put_control(out, o, char):
    """The escape of a control character, behind its backslash."""
    if _LETTERS[char]:
        out[np.uint64(o)] = _LETTERS[char]
        return o + 1
    out[np.uint64(o)] = 117  # u
    out[np.uint64(o + 1)] = _ZERO
    out[np.uint64(o + 2)] = _ZERO
    out[np.uint64(o + 3)] = _HEX[char >> 4]
    out[np.uint64(o + 4)] = _HEX[char & 15]
    return o + 5


@part
def put_quoted(data, p, end, out, o):
    """The same with quotes around it."""
    o = put_escaped(data, p, end, out, put_byte(out, o, QUOTE))
    return put_byte(out, o, QUOTE)


@part
def is_number(data, p, end):
    """Whether these bytes spell a number of at most 15 digits as JSON has it, without an exponent."""
    if p < end and data[np.uint64(p)] == MINUS:
        p += 1
    first = p
    dots = np.int64(0)
    while p < end:
        char = data[np.uint64(p)]
        if char == _DOT and dots == 0 and p > first:
            dots = np.int64(1)
        elif char < _ZERO or char > _NINE:
            return False
        p += 1
    size = p - first - dots
    if size == 0 or size > _MOST_DIGITS or data[np.uint64(p - 1)] == _DOT:
        return False
    return data[np.uint64(first)] != _ZERO or p == first + 1 or data[np.uint64(first + 1)] == _DOT


@part
def put_scalar(data, p, end, out, o):
    """A number as such where it is one, else text."""
    if is_number(data, p, end):
        return put_bytes(data, p, end - p, out, o)
    return put_quoted(data, p, end, out, o)


@part
def without_blanks(data, p, end):
    """Where what is before the blanks and newlines at the end of data[p:end] ends."""
    while end > p:
        char = data[np.uint64(end - 1)]
        if char != SPACE and char != TAB and char != RETURN and char != NEWLINE:
            break
        end -= 1
    return end


@part
def is_object(data, p, end, stack):
    """Whether data[p:end] is a JSON object, and no more."""
    return p < end and data[np.uint64(p)] == OPEN_MAP and container_end(data, p, end + 1, stack, np.int64(0)) == end


@part
def put_members(data, p, end, out, o):
    """The members of the object data[p:end] behind a comma, without its braces."""
    p += 1
    while p < end and data[np.uint64(p)] <= SPACE:
        p += 1
    if data[np.uint64(p)] == CLOSE_MAP:
        return o
    if out[np.uint64(o - 1)] != OPEN_MAP:
        o = put_byte(out, o, COMMA)
    return put_bytes(data, p, end - 1 - p, out, o)


@part
def put_key(keys, start, size, out, o):
    """A key in its quotes and with its colon, as it stands in `keys`, behind a comma if it is not the first."""
    if out[np.uint64(o - 1)] != OPEN_MAP:
        o = put_byte(out, o, COMMA)
    return put_bytes(keys, start, size, out, o)


@part
def line_end(data, p, end):
    """Where the line ends that begins at `p`, and where the next one begins."""
    newline = newline_from(data, p, end)
    stop = newline
    if stop > p and data[np.uint64(stop - 1)] == RETURN:
        stop -= 1
    return stop, newline + 1


@part
def put_trace_key(out, o):
    if out[np.uint64(o - 1)] == OPEN_MAP:
        return put_bytes(_TRACE, 1, _TRACE_SIZE - 1, out, o)
    return put_bytes(_TRACE, 0, _TRACE_SIZE, out, o)
