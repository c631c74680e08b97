"""Kernels that look for a text in whole records: which records may hold it anywhere.

A *folded* byte is a capital ASCII letter made small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.sixteen import pairs, trailing_zeros

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

# What else makes a record one that may hold the text, beside its bytes: the escape of an ASCII character in JSON, any
# \u there, a byte that is no ASCII, and a slash behind a backslash.
ESCAPED_ASCII, ESCAPED, NO_ASCII, ESCAPED_SLASH = 1, 2, 4, 8

_BACKSLASH, _SLASH, _U, _ZERO, _TWO, _SEVEN = 92, 47, 117, 48, 50, 55
_ESCAPE, _ESCAPE_OF_SLASH = _BACKSLASH | _U << 16, _BACKSLASH | _SLASH << 16  # see pairs


@part
def folded(byte, fold):
    """The byte, folded if wanted."""
    if fold and 65 <= byte <= 90:
        return byte | 32
    return byte


@part
def is_text_at(buf, at, end, needle, fold):
    """Whether the needle stands at `at`, and ends before `end`."""
    size = needle.shape[0]
    i = 0
    if at + size <= end:
        while i < size and folded(buf[np.uint64(at + i)], fold) == needle[i]:
            i += 1
    return i == size


@part
def holds_text(buf, at, end, needle, fold):
    """Whether the needle stands anywhere in buf[at:end]."""
    last = end - needle.shape[0]
    while at <= last and not is_text_at(buf, at, end, needle, fold):
        at += 1
    return at <= last


@part
def is_odd(buf, at, odd):
    """Whether the bytes at `at` are an escape that may stand for a character of the needle."""
    if buf[at] == _BACKSLASH and buf[at + 1] == _SLASH:
        return odd & ESCAPED_SLASH != 0
    if buf[at] != _BACKSLASH or buf[at + 1] != _U:
        return False
    if odd & ESCAPED:
        return True
    return buf[at + 2] == _ZERO and buf[at + 3] == _ZERO and _TWO <= buf[at + 4] <= _SEVEN


@part
def has_no_ascii(buf, at, end):
    """Whether a byte of buf[at:end] is no ASCII."""
    bits = np.uint8(0)
    for i in range(at, end):
        bits |= buf[np.uint64(i)]
    return bits > 127


@kernel
def mark_records(
    buf: U8, starts: I64, lengths: I64, states: U8, needle: U8, wanted: int, fold: int, odd: int, found: U8
) -> None:  # fmt: skip
    """Set found[i] to 1 for the live records in which the needle stands, or something `odd`, else to 0.

    Behind the last record stand 64 bytes and as many as the needle has. `wanted`: see `pairs`, of the needle's first
    and last byte. Without a needle, all live records are marked.
    """
    count = starts.shape[0]
    size = needle.shape[0]
    for i in range(count):
        found[i] = size == 0 and states[i] == LIVE
        if odd & NO_ASCII and states[i] == LIVE and has_no_ascii(buf, starts[i], starts[i] + lengths[i]):
            found[i] = 1
    if size == 0 or count == 0:
        return
    stop = starts[count - 1] + lengths[count - 1]
    record = 0
    at = starts[0]
    while at < stop:
        mask = pairs(buf, at, size - 1, wanted)
        if odd & (ESCAPED | ESCAPED_ASCII):
            mask |= pairs(buf, at, np.int64(1), np.int64(_ESCAPE))
        if odd & ESCAPED_SLASH:
            mask |= pairs(buf, at, np.int64(1), np.int64(_ESCAPE_OF_SLASH))
        while mask != 0:
            place = at + np.int64(trailing_zeros(mask))
            mask &= mask - np.uint64(1)
            while record < count and starts[record] + lengths[record] <= place:
                record += 1
            if record == count:
                return
            if place < starts[record] or states[record] != LIVE or found[record] != 0:
                continue
            end = starts[record] + lengths[record]
            if is_text_at(buf, place, end, needle, fold) or (odd and is_odd(buf, place, odd)):
                found[record] = 1
        at += 64
