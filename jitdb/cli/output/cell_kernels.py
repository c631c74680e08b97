"""Kernels that write columns as lines of text: cells of CSV and TSV, members of objects of JSON.

A number is written as Python's `repr` writes it. A decimal of at most 15 digits is the shortest one of its double,
for no two of them have the same double; so where one of them gives the number, it is what `repr` writes. Other
fractions, and what is neither text nor a number nor a word, are left to Python, which gives their text (RAW, QUOTED).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, FALSE, NULL, NUMBER, STRING, TRUE

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8, U32, Bools

RAW = 254  # a kind of values: text that stands as it is
JSON = 0  # in the place of a delimiter

LONGEST = 25  # bytes of a number, a word, or the quotes of a text, at most
WIDEST = 6  # bytes that one of a text takes, at most: \u0001

_QUOTE, _RETURN, _NEWLINE, _TAB, _BACKSLASH, _ZERO = 34, 13, 10, 9, 92, 48
_MOST = 2.0**62  # whole numbers below are written here
_LEAST_FRACTION, _MOST_FRACTION = 1e-4, 1e15  # fractions between them have no exponent
_LETTERS = np.zeros(32, np.uint8)  # the letter behind the backslash of a control character
_LETTERS[[8, 9, 10, 12, 13]] = list(b"btnfr")
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_WORDS = np.frombuffer(b"nullfalsetrue", np.uint8)


@part
def put(out, o, byte):
    out[np.uint64(o)] = byte
    return o + 1


@part
def put_word(out, o, kind):
    """null, false or true."""
    begin, size = (0, 4) if kind == NULL else (4, 5) if kind == FALSE else (9, 4)
    for i in range(size):
        out[np.uint64(o + i)] = _WORDS[begin + i]
    return o + size


@part
def put_digits(out, o, number, fewest):
    """A number that is not negative, with zeros before it up to `fewest` digits."""
    size = np.int64(1)
    rest = number // 10
    while rest > 0:
        rest //= 10
        size += 1
    size = max(size, fewest)
    for i in range(size - 1, -1, -1):
        out[np.uint64(o + i)] = _ZERO + number % 10
        number //= 10
    return o + size


@part
def put_number(out, o, hi, lo):
    """A number; where it ends, -1 where it is left to Python."""
    if -_MOST < hi < _MOST and hi == np.floor(hi):
        whole = np.int64(hi) + lo
        if whole < 0:
            o = put(out, o, 45)
            whole = -whole
        return put_digits(out, o, whole, np.int64(1))
    size = abs(hi)
    if not _LEAST_FRACTION <= size < _MOST_FRACTION:
        return np.int64(-1)
    power = 1.0
    for digits in range(1, 16):
        power *= 10.0
        scaled = size * power
        if scaled >= _MOST_FRACTION:
            break
        near = np.floor(scaled + 0.5)
        if near / power == size:
            number = np.int64(near)
            while number % 10 == 0:
                number //= 10
                digits -= 1
            if hi < 0:
                o = put(out, o, 45)
            unit = np.int64(1)
            for _ in range(digits):
                unit *= 10
            o = put(out, put_digits(out, o, number // unit, np.int64(1)), 46)
            return put_digits(out, o, number % unit, np.int64(digits))
    return np.int64(-1)


@part
def begins_formula(buf, at, size):
    """Whether a spreadsheet runs a text that begins so."""
    if size == 0:
        return False
    first = np.int64(buf[np.uint64(at)])
    if first == 0xEF and size >= 3 and buf[np.uint64(at + 1)] == 0xBC:  # the wide forms of the same signs
        wide = np.int64(buf[np.uint64(at + 2)])
        return wide == 0x9D or wide == 0x8B or wide == 0x8D or wide == 0xA0
    is_sign = first == 61 or first == 43 or first == 45 or first == 64
    return is_sign or first == _TAB or first == _RETURN or first == _NEWLINE


@part
def put_cell(buf, at, size, delimiter, escaping, out, o):
    """A text as a cell of CSV: between quotes where it has to be."""
    is_quoted = False
    for i in range(size):
        byte = np.int64(buf[np.uint64(at + i)])
        if byte == delimiter or byte == _QUOTE or byte == _RETURN or byte == _NEWLINE:
            is_quoted = True
            break
    if is_quoted:
        o = put(out, o, _QUOTE)
    if escaping != 0 and begins_formula(buf, at, size):
        o = put(out, o, 39)
    for i in range(size):
        byte = buf[np.uint64(at + i)]
        if byte == _QUOTE:
            o = put(out, o, _QUOTE)
        o = put(out, o, byte)
    return put(out, o, _QUOTE) if is_quoted else o


@part
def put_string(buf, at, size, out, o):
    """A text as JSON, with what it needs escaped."""
    o = put(out, o, _QUOTE)
    for i in range(size):
        byte = np.int64(buf[np.uint64(at + i)])
        if byte >= 32:
            if byte == _QUOTE or byte == _BACKSLASH:
                o = put(out, o, _BACKSLASH)
            o = put(out, o, byte)
            continue
        o = put(out, o, _BACKSLASH)
        if _LETTERS[byte]:
            o = put(out, o, _LETTERS[byte])
        else:
            o = put(out, put(out, put(out, o, 117), _ZERO), _ZERO)
            o = put(out, put(out, o, _HEX[byte >> 4]), _HEX[byte & 15])
    return put(out, o, _QUOTE)


@kernel
def put_cells(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, delimiter: int, escaping: int, begin: int,
    out: U8, ends: I64, unsure: Bools,
) -> int:  # fmt: skip
    """Write each value into `out`, from `begin` on, and note where it ends; mark those that are left to Python.

    delimiter: of CSV, whose cells of nothing and of null are empty; or JSON, where nothing is empty
    escaping:  1: spreadsheets must not run texts as formulas
    `out` has WIDEST bytes a byte of text (of CSV two), and LONGEST a value. Gives how many are left to Python.
    """
    o = np.int64(begin)
    count = 0
    for i in range(kind.shape[0]):
        held = np.int64(kind[i])
        at, size = np.int64(start[i]), np.int64(length[i])
        unsure[i] = False
        if held == STRING:
            if delimiter == JSON:
                o = put_string(buf, at, size, out, o)
            else:
                o = put_cell(buf, at, size, delimiter, escaping, out, o)
        elif held == NUMBER:
            end = put_number(out, o, number[i], size)
            if end < 0:
                unsure[i] = True
                count += 1
            else:
                o = end
        elif held == FALSE or held == TRUE or (held == NULL and delimiter == JSON):
            o = put_word(out, o, held)
        elif held == RAW:
            for j in range(size):
                out[np.uint64(o + j)] = buf[np.uint64(at + j)]
            o += size
        elif held != ABSENT and held != NULL:
            unsure[i] = True
            count += 1
        ends[i] = o
    return count


@kernel
def join_cells(
    cells: U8, ends: I64, codes: U32, columns: int, heads: U8, head_ends: I64, delimiter: int, out: U8
) -> int:
    """Cells as lines; where these end.

    ends:  where each cell ends, and the next begins; the first one is empty, and no column's
    codes: which cell it is, of each record, a column behind the other
    heads: what stands before a cell of JSON, a column's behind the other
    """
    rows = codes.shape[0] // columns
    o = np.int64(0)
    for row in range(rows):
        begins = o
        for column in range(columns):
            cell = np.int64(codes[column * rows + row])
            at = np.int64(ends[np.uint64(cell - 1)])
            end = np.int64(ends[np.uint64(cell)])
            if delimiter == JSON:
                if at == end:
                    continue
                out[np.uint64(o)] = 123 if o == begins else 44
                o += 1
                head = np.int64(head_ends[column - 1]) if column > 0 else np.int64(0)
                for i in range(head, head_ends[column]):
                    out[np.uint64(o)] = heads[np.uint64(i)]
                    o += 1
            elif column > 0:
                out[np.uint64(o)] = delimiter
                o += 1
            for i in range(at, end):
                out[np.uint64(o)] = cells[np.uint64(i)]
                o += 1
        if delimiter == JSON:
            if o == begins:
                out[np.uint64(o)] = 123
                o += 1
            out[np.uint64(o)] = 125
            o += 1
        elif columns == 1 and o == begins:  # an empty line would be no row
            out[np.uint64(o)] = _QUOTE
            out[np.uint64(o + 1)] = _QUOTE
            o += 2
        out[np.uint64(o)] = _NEWLINE
        o += 1
    return o
