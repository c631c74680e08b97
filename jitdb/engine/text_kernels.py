"""Kernels that look into values: which texts of a dictionary hold a text or are like a pattern, which values are equal.

The keys of values stand one behind the other in `buf`, as dictionary.py has them, a byte for the kind in front of each;
that of value i ends before ends[i].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import NUMBER
from jitdb.indexes.hash_kernels import number_bits
from jitdb.log.codecs.fields.search_kernels import folded
from jitdb.log.codecs.fields.sixteen import pairs, trailing_zeros

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, U8, U32, Bools

LITERAL = 0  # a step is a byte that is meant as such
ONE = 1  # one character
RUN = 2  # any characters, or none


@part
def is_tail(buf, at, end):
    """Whether a byte of a character that is not its first is here."""
    return at < end and (buf[at] & 0xC0) == 0x80


@part
def behind_character(buf, at, end):
    """Where the character of UTF-8 that begins here ends; a byte that is none is a character of its own."""
    lead = np.int64(buf[at])
    size = 1
    if 0xC2 <= lead <= 0xDF:
        size = 2
    elif 0xE0 <= lead <= 0xEF:
        size = 3
    elif 0xF0 <= lead <= 0xF4:
        size = 4
    for i in range(1, size):
        if not is_tail(buf, at + i, end):
            return at + 1
    if size > 2:
        second = np.int64(buf[at + 1])
        too_long = (lead == 0xE0 and second < 0xA0) or (lead == 0xF0 and second < 0x90)
        no_character = (lead == 0xED and second > 0x9F) or (lead == 0xF4 and second > 0x8F)  # surrogates; too large
        if too_long or no_character:
            return at + 1
    return at + size


@kernel
def find_texts(buf: U8, ends: U32, kind: int, needle: U8, wanted: int, fold: int, found: Bools) -> None:
    """Mark the values of this kind that hold the needle, a byte at least; `fold`: it is folded, and they are to be.

    Behind the last value stand 64 bytes and as many as the needle has. `wanted`: see `pairs`, of its first and last
    byte.
    """
    size = needle.shape[0]
    count = ends.shape[0]
    last = np.int64(ends[count - 1]) - size if count > 0 else np.int64(-1)
    value = 0
    begin = np.int64(0)
    passed = np.int64(0)  # what is before this is decided
    at = np.int64(0)
    while at <= last:
        mask = pairs(buf, at, size - 1, wanted)
        while mask != 0:
            place = at + np.int64(trailing_zeros(mask))
            mask &= mask - np.uint64(1)
            if place > last:
                break
            if place < passed:
                continue
            same = True
            for i in range(1, size - 1):
                if folded(buf[place + i], fold) != needle[i]:
                    same = False
                    break
            if same:
                while np.int64(ends[value]) <= place:
                    begin = np.int64(ends[value])
                    value += 1
                if place > begin and place + size <= np.int64(ends[value]) and buf[begin] == kind:
                    found[value] = True
                    passed = np.int64(ends[value])
        at += 64
        if passed > at:
            at = passed


@part
def is_like(buf, begin, end, steps, bytes_of, fixed, fold):
    """Whether the text is like the steps; the last `fixed` of them are bytes that must stand at its end."""
    count = steps.shape[0]
    at = begin
    place = 0
    run = -1
    begun = begin
    while at < end:
        if place < count and steps[place] == RUN:
            run = place
            begun = at
            place += 1
            if count - place == fixed:
                if end - at < fixed:
                    return False
                at = end - fixed
        elif place < count and steps[place] == ONE:
            at = behind_character(buf, at, end)
            place += 1
        elif place < count and folded(buf[at], fold) == bytes_of[place]:
            at += 1
            place += 1
        elif run >= 0 and count - run - 1 != fixed:
            begun = behind_character(buf, begun, end)
            at = begun
            place = run + 1
        else:
            return False
    while place < count:
        if steps[place] != RUN:
            return False
        place += 1
    return True


@kernel
def like_texts(
    buf: U8, ends: U32, kind: int, steps: U8, bytes_of: U8, fixed: int, fold: int, found: Bools
) -> None:  # fmt: skip
    """Of the values that are marked, leave those of this kind that are like the steps, of each of which `bytes_of` has
    the byte that it is.

    `fixed`: how many bytes stand behind the last RUN, if nothing else does; -1 where there is none.
    """
    begin = np.int64(0)
    for value in range(ends.shape[0]):
        end = np.int64(ends[value])
        if found[value]:
            found[value] = buf[begin] == kind and is_like(buf, begin + 1, end, steps, bytes_of, fixed, fold)
        begin = end


@kernel
def not_ascii(buf: U8, ends: U32, kind: int, found: Bools) -> bool:
    """Which values of this kind hold a byte that is no ASCII; whether any does."""
    any_found = False
    begin = np.int64(0)
    for value in range(ends.shape[0]):
        end = np.int64(ends[value])
        bits = np.uint8(0)
        for at in range(begin, end):
            bits |= buf[at]
        found[value] = bits > 127 and buf[begin] == kind
        any_found = any_found or found[value]
        begin = end
    return any_found


@kernel
def equal_payloads(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int,
    wanted_kind: int, payload: U8, size: int, whole: int, out: Bools,
) -> None:  # fmt: skip
    """Which values have this kind and this payload (`whole`), or a payload that begins with it.

    The payload of a number is that of its key: hi (f64) and lo (i16), little-endian.
    """
    bits = np.int64(0)
    rest = np.int64(0)
    if wanted_kind == NUMBER and size == 10:
        for j in range(8):
            bits |= np.int64(payload[j]) << (8 * j)
        rest = np.int64(payload[8]) | (np.int64(payload[9]) << 8)
    for i in range(count):
        same = kind[i] == wanted_kind
        if same and wanted_kind == NUMBER:
            same = size == 10 and number_bits(number[i]) == bits and (np.int64(length[i]) & 0xFFFF) == rest
        elif same:
            same = length[i] == size if whole else length[i] >= size
            if same:
                at = np.int64(start[i])
                for j in range(size):
                    if buf[at + j] != payload[j]:
                        same = False
                        break
        out[i] = same
