"""Text of JSON, from between its quotes, and words, for kernels.

Escapes become what they stand for; what is no UTF-8, a lone surrogate or a control character is left to Python.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import part
from jitdb.common.values import FALSE, NULL, NUMBER, TRUE
from jitdb.log.codecs.fields.constants import MALFORMED
from jitdb.log.codecs.fields.part_kernels import first_marked
from jitdb.log.codecs.fields.sixteen import word_at
from jitdb.log.codecs.json.numbers import store_word

QUOTE, BACKSLASH = 34, 92
SPACE, TAB, RETURN, NEWLINE = 32, 9, 13, 10
COMMA, COLON, MINUS = 44, 58, 45
OPEN_MAP, CLOSE_MAP, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_SPACES = np.uint64(0x2020202020202020)

_NULL, _TRUE, _FALSE, _NAN, _INFINITY = (
    np.uint64(int.from_bytes(text, "little")) for text in (b"null", b"true", b"false", b"NaN", b"Infinity")
)
_THREE, _FOUR, _FIVE = (np.uint64((1 << 8 * size) - 1) for size in (3, 4, 5))
_BYTE, _F, _T = (np.uint64(number) for number in (255, ord("f"), ord("t")))
_NAN_BITS = np.uint64(0x7FF8000000000000)
_INFINITE_BITS = np.uint64(0x7FF0000000000000)
_NEGATIVE = np.uint64(1 << 63)


@part
def read_word(buf, p):
    """The word at `p`, null, true, false, or a number that has a name: its kind, MALFORMED where it is none, where it
    ends, and of a number the bits of the double."""
    word = word_at(buf, p)
    nothing = np.uint64(0)
    # Which of three it is, no branch depends on.
    char = word & _BYTE
    is_false = char == _F
    expected = _FALSE if is_false else _TRUE if char == _T else _NULL
    if word & (_FIVE if is_false else _FOUR) == expected:
        kind = np.int64(FALSE if is_false else TRUE if char == _T else NULL)
        return kind, p + 4 + np.int64(is_false), nothing
    if word & _THREE == _NAN:
        return np.int64(NUMBER), p + 3, _NAN_BITS
    if word == _INFINITY:
        return np.int64(NUMBER), p + 8, _INFINITE_BITS
    if buf[np.uint64(p)] == MINUS and word_at(buf, p + 1) == _INFINITY:
        return np.int64(NUMBER), p + 9, _INFINITE_BITS | _NEGATIVE
    return np.int64(MALFORMED), p, nothing


@part
def past_blanks(buf, p):
    """Where the blanks from `p` on end."""
    while True:
        char = buf[np.uint64(p)]
        if char != SPACE and char != TAB and char != RETURN:
            return p
        p += 1


@part
def plain_bytes(word):
    """How many of eight bytes of a string, from the first on, stand for themselves: no quotes, escapes, UTF-8.

    A borrow can spoil bytes behind the first that counts, never one before it.
    """
    stops = (((word ^ _QUOTES) - _ONES) | ((word ^ _BACKSLASHES) - _ONES) | (word - _SPACES) | word) & _HIGH
    if stops == 0:
        return np.int64(8)
    return first_marked(stops)


@part
def put_text(buf, p, out, o):
    """Write the UTF-8 of the string whose opening quote is before `p`: where it ends, -1 where it is left to Python,
    and where its bytes end. Up to seven bytes more are written."""
    while True:
        word = word_at(buf, p)
        store_word(out, o, word)
        plain = plain_bytes(word)
        p += plain
        o += plain
        if plain == 8:
            continue
        char = np.int64(buf[np.uint64(p)])
        if char == QUOTE:
            return np.int64(p + 1), np.int64(o)
        if char < SPACE:
            return np.int64(-1), np.int64(o)
        if char == BACKSLASH:
            p, code = read_escape(buf, p)
            if p < 0:
                return np.int64(-1), np.int64(o)
            o = put_character(out, o, code)
            continue
        while char >= 128:
            size = character_size(buf, p, char)
            if size == 0:
                return np.int64(-1), np.int64(o)
            for i in range(size):
                out[np.uint64(o + i)] = buf[np.uint64(p + i)]
            p += size
            o += size
            char = np.int64(buf[np.uint64(p)])


@part
def character_size(buf, p, first):
    """Bytes of the character of UTF-8 at `p`, whose first byte is `first`, 128 or more; 0 where there is none."""
    if first < 0xC2 or first > 0xF4:
        return 0
    second = np.int64(buf[np.uint64(p + 1)])
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if np.int64(buf[np.uint64(p + 2)]) & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        if (first == 0xE0 and second < 0xA0) or (first == 0xED and second >= 0xA0):
            return 0
        return 3
    if np.int64(buf[np.uint64(p + 3)]) & 0xC0 != 0x80:
        return 0
    if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second >= 0x90):
        return 0
    return 4


@part
def read_hex(buf, p):
    """The number that four hexadecimal digits are; -1 where one is none."""
    code = np.int64(0)
    for i in range(4):
        char = np.int64(buf[np.uint64(p + i)])
        if 48 <= char <= 57:
            digit = char - 48
        elif 97 <= char | 32 <= 102:
            digit = (char | 32) - 87
        else:
            return np.int64(-1)
        code = (code << 4) | digit
    return code


@part
def read_escape(buf, p):
    """The character that the escape at `p` stands for: where it ends, -1 where it is left, and the code point."""
    left = np.int64(-1)
    char = np.int64(buf[np.uint64(p + 1)])
    if char == 117:  # u
        code = read_hex(buf, p + 2)
        if code < 0 or 0xDC00 <= code < 0xE000:
            return left, left
        if code < 0xD800 or code >= 0xE000:
            return p + 6, code
        if buf[np.uint64(p + 6)] != BACKSLASH or buf[np.uint64(p + 7)] != 117:
            return left, left
        low = read_hex(buf, p + 8)
        if low < 0xDC00 or low >= 0xE000:
            return left, left
        return p + 12, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
    code = left
    if char == QUOTE or char == BACKSLASH or char == 47:
        code = char
    elif char == 98:
        code = np.int64(8)
    elif char == 102:
        code = np.int64(12)
    elif char == 110:
        code = np.int64(10)
    elif char == 114:
        code = np.int64(13)
    elif char == 116:
        code = np.int64(9)
    return (p + 2 if code >= 0 else left), code


@part
def put_character(out, at, code):
    """Write a code point as UTF-8; where it ends."""
    if code < 0x80:
        out[np.uint64(at)] = code
        return np.int64(at + 1)
    if code < 0x800:
        out[np.uint64(at)] = 0xC0 | (code >> 6)
        out[np.uint64(at + 1)] = 0x80 | (code & 63)
        return np.int64(at + 2)
    if code < 0x10000:
        out[np.uint64(at)] = 0xE0 | (code >> 12)
        out[np.uint64(at + 1)] = 0x80 | ((code >> 6) & 63)
        out[np.uint64(at + 2)] = 0x80 | (code & 63)
        return np.int64(at + 3)
    out[np.uint64(at)] = 0xF0 | (code >> 18)
    out[np.uint64(at + 1)] = 0x80 | ((code >> 12) & 63)
    out[np.uint64(at + 2)] = 0x80 | ((code >> 6) & 63)
    out[np.uint64(at + 3)] = 0x80 | (code & 63)
    return np.int64(at + 4)
