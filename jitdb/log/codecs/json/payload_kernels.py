"""The payloads of located values that do not stand in the record as they are, written into a buffer of their own.

Text with escapes becomes UTF-8. Arrays and maps become msgpack, with each head in its longest form, so that it can be
filled in once the parts are known. Only values that read.py found to be JSON are written: so no rule is checked here,
and whatever stands between two values is passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import NULL, NUMBER, STRING, TRUE
from jitdb.log.codecs.json.numbers import copy_words, read_number, store_big_endian
from jitdb.log.codecs.json.read import WRITTEN
from jitdb.log.codecs.json.text import (
    CLOSE_ARRAY,
    CLOSE_MAP,
    COLON,
    COMMA,
    OPEN_ARRAY,
    OPEN_MAP,
    QUOTE,
    SPACE,
    put_text,
    read_word,
)

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, U64

GROWTH: Final = 5  # bytes for each of JSON: "1," becomes nine, "[]" five
FRAME: Final = 3  # numbers of an open container: whether the one around it is a map, where that begins, its parts

_HEAD: Final = 5  # bytes before the parts of a container, or a text
_NIL, _FALSE, _DOUBLE, _UNSIGNED, _SIGNED, _TEXT, _ARRAY, _MAP = 0xC0, 0xC2, 0xCB, 0xCF, 0xD3, 0xDB, 0xDD, 0xDF
_NINE = 57
_TOP = np.uint64(1 << 63)


@part
def put_head(out, o, code, size):
    """Write the head of a value with a size of four bytes."""
    out[np.uint64(o)] = code
    store_big_endian(out, o + 1, np.uint64(size), 4)


@part
def put_number(out, o, is_integer, negative, word):
    """Write a number that read_number gave; where it ends."""
    code = _DOUBLE
    if is_integer:
        code = _SIGNED if negative or word < _TOP else _UNSIGNED
        word = ~word + np.uint64(1) if negative else word
    elif negative:
        word |= _TOP
    out[np.uint64(o)] = code
    store_big_endian(out, o + 1, word, 8)
    return np.int64(o + 9)


@part
def put_container(buf, p, out, o, powers, stack):
    """Write the container at `p`; where its bytes end, -1 where it holds a number that is left to Python."""
    depth = np.int64(0)
    is_map = False
    head = np.int64(0)
    count = np.int64(0)
    while True:
        char = np.int64(buf[np.uint64(p)])
        if char <= SPACE or char == COMMA or char == COLON:
            p += 1
        elif char == OPEN_MAP or char == OPEN_ARRAY:
            at = FRAME * depth
            stack[at], stack[at + 1], stack[at + 2] = np.int64(is_map), head, count
            depth += 1
            is_map = char == OPEN_MAP
            head = np.int64(o)
            count = np.int64(0)
            o += _HEAD
            p += 1
        elif char == CLOSE_MAP or char == CLOSE_ARRAY:
            put_head(out, head, _MAP if is_map else _ARRAY, count >> np.int64(is_map))
            depth -= 1
            if depth == 0:
                return np.int64(o)
            at = FRAME * depth
            is_map, head, count = stack[at] != 0, stack[at + 1], stack[at + 2] + 1
            p += 1
        elif char == QUOTE:
            p, stop = put_text(buf, p + 1, out, o + _HEAD)
            put_head(out, o, _TEXT, stop - o - _HEAD)
            o = stop
            count += 1
        elif char > _NINE:
            kind, p, bits = read_word(buf, p)
            if kind == NUMBER:  # one that has a name
                o = put_number(out, o, False, False, bits)
            else:
                out[np.uint64(o)] = _NIL if kind == NULL else _FALSE + np.int64(kind == TRUE)
                o += 1
            count += 1
        else:
            p, is_integer, negative, word = read_number(buf, p, powers)
            if p < 0:
                return np.int64(-1)
            o = put_number(out, o, is_integer, negative, word)
            count += 1


@kernel
def write_payloads(
    buf: U8, kind: U8, start: I32, length: I32, first: int, out: U8, begin: int, powers: U64, stack: I64
) -> tuple[int, int]:
    """Write the payloads of one field, from value `first` on, to out[begin:], and say where they are then.

    Also those that stand in `buf` as they are: they must be in one buffer. `out` has GROWTH bytes for each that they
    have in `buf`, and SLACK more, and so has `buf` behind each; `stack` has FRAME numbers for each level of nesting.
    Gives the first value that is left to Python, the number of values where none is, and where the payloads end.
    """
    o = np.int64(begin)
    for i in range(first, kind.shape[0]):
        held = np.int64(kind[i])
        if held < STRING:
            continue
        at, size = np.int64(start[i]), np.int64(length[i])
        stop = o + size
        payload = o
        if held < WRITTEN:
            copy_words(buf, at, out, o, size)
        elif size == 0:  # of a record that was decoded
            return i, o
        elif held == STRING + WRITTEN:
            _, stop = put_text(buf, at, out, o)
        else:
            stop = put_container(buf, at, out, o, powers, stack)
            if stop < 0:
                return i, o
            payload += _HEAD
        kind[i] = held & (WRITTEN - 1)
        start[i] = payload
        length[i] = stop - payload
        o = stop
    return kind.shape[0], o
