"""Rows of a table as records of the codec msgpack, compiled: maps of what each column has there, as the codec writes
them.

A row comes after the other, column by column: a copy may then write some bytes too many, over which the next one goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.json.numbers import copy_words

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, I64Rows

# What a column holds.
WHOLE, DOUBLE, WORD, TEXT, BINARY = range(5)
NOTHING: Final = -1  # the size of what is null

HEAD: Final = 5  # bytes before the fields of a row, and before a text, at most
LARGEST: Final = 9  # bytes of a value that is no text


@part
def put_number(out, o, head, value, size):
    """Write a byte, and the lowest `size` bytes of a number behind it, the highest first; where that ends."""
    out[np.uint64(o)] = head
    for i in range(size):
        out[np.uint64(o + size - i)] = (value >> (8 * i)) & 255
    return np.int64(o + 1 + size)


@part
def put_whole(out, o, value):
    """Write a whole number in as few bytes as it takes; where that ends."""
    if value >= 0:
        if value < 1 << 7:
            return put_number(out, o, value, value, 0)
        if value < 1 << 8:
            return put_number(out, o, 0xCC, value, 1)
        if value < 1 << 16:
            return put_number(out, o, 0xCD, value, 2)
        if value < 1 << 32:
            return put_number(out, o, 0xCE, value, 4)
        return put_number(out, o, 0xCF, value, 8)
    if value >= -(1 << 5):
        return put_number(out, o, value & 255, value, 0)
    if value >= -(1 << 7):
        return put_number(out, o, 0xD0, value, 1)
    if value >= -(1 << 15):
        return put_number(out, o, 0xD1, value, 2)
    if value >= -(1 << 31):
        return put_number(out, o, 0xD2, value, 4)
    return put_number(out, o, 0xD3, value, 8)


@part
def put_size(out, o, size, first, is_text):
    """Write the head of a text, or of bytes, whose forms begin at `first`; where that ends."""
    if is_text and size < 32:
        return put_number(out, o, 0xA0 | size, size, 0)
    if size < 1 << 8:
        return put_number(out, o, first, size, 1)
    if size < 1 << 16:
        return put_number(out, o, first + 1, size, 2)
    return put_number(out, o, first + 2, size, 4)


@kernel
def pack_rows(
    kinds: I64, keys: U8, key_ends: I64, values: I64Rows, sizes: I64Rows, data: U8, out: U8, lengths: I64
) -> int:
    """Write the records of rows into `out`, one behind the other, and the bytes of each into `lengths`.

    kinds, key_ends: of each column, what it holds, and where its name, as msgpack, ends in `keys`
    values, sizes:   (columns, rows) whole numbers, the bits of doubles, 0 and 1, or where in `data` the bytes of a text
                     begin; and how many these are, NOTHING for a null

    Behind `keys` and `data` lie 8 bytes more; `out` has HEAD bytes a row, its keys, LARGEST a value and what texts
    take, and 8 more. Gives where the records end.
    """
    columns, rows = values.shape
    o = np.int64(0)
    for row in range(rows):
        begin = o
        count = np.int64(0)
        for column in range(columns):
            if sizes[column, row] >= 0:
                count += 1
        if count < 16:
            o = put_number(out, o, 0x80 | count, count, 0)
        elif count < 1 << 16:
            o = put_number(out, o, 0xDE, count, 2)
        else:
            o = put_number(out, o, 0xDF, count, 4)
        key = np.int64(0)
        for column in range(columns):
            size = sizes[column, row]
            if size >= 0:
                copy_words(keys, key, out, o, key_ends[column] - key)
                o += key_ends[column] - key
                value = values[column, row]
                kind = kinds[column]
                if kind == WHOLE:
                    o = put_whole(out, o, value)
                elif kind == DOUBLE:
                    o = put_number(out, o, 0xCB, value, 8)
                elif kind == WORD:
                    o = put_number(out, o, 0xC2 + value, value, 0)
                else:
                    o = put_size(out, o, size, 0xD9 if kind == TEXT else 0xC4, kind == TEXT)
                    copy_words(data, value, out, o, size)
                    o += size
            key = key_ends[column]
        lengths[row] = o - begin
    return o
