"""The kernel that notes which texts of four bytes stand in the records of each page (grams.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.log.codecs.fields.constants import LIVE

if TYPE_CHECKING:
    from jitdb.common.kernels import I32, I64, U8, U8Rows

SIZE = 4  # bytes of a gram
ROWS = 1 << 14  # bits of a page. On disk: never change
# The last bits: a slash behind a backslash, an ASCII character as \u, any \u, a byte that is no ASCII. On disk: never
# change
ESCAPED_SLASH, ESCAPED_ASCII, ESCAPED, NO_ASCII = range(ROWS - 4, ROWS)

_FACTOR, _LOW, _SHIFT = np.uint64(2654435761), np.uint64(0xFFFFFFFF), np.uint64(18)
_BACKSLASH, _SLASH, _U, _ZERO, _TWO, _SEVEN = 92, 47, 117, 48, 50, 55

# Each byte as grams have it: capital ASCII letters made small, 0 for bytes that stand in no gram, for JSON writes them
# in another way, or may. A slash may stand behind a backslash, which has a bit of its own.
FOLDED = np.arange(256, dtype=np.uint8)
FOLDED[65:91] += 32
FOLDED[:32] = 0
FOLDED[[34, 92, 127]] = 0


@part
def row_of(word):
    """The bit of a gram, whose bytes are those of a word."""
    row = np.int64(((word * _FACTOR) & _LOW) >> _SHIFT)
    return row if row < ESCAPED_SLASH else row - 4


@part
def note_grams(buf, at, end, seen):
    """Set seen[row] for each gram of buf[at:end], and for what is odd there."""
    word = np.uint64(0)
    size = 0
    high = np.uint8(0)
    for place in range(at, end):
        byte = buf[np.uint64(place)]
        high |= byte
        char = FOLDED[byte]
        if char == 0:
            size = 0
            if byte == _BACKSLASH and buf[place + 1] == _SLASH:
                seen[ESCAPED_SLASH] = 1
            elif byte == _BACKSLASH and buf[place + 1] == _U and place + 5 < end:
                seen[ESCAPED] = 1
                if buf[place + 2] == _ZERO and buf[place + 3] == _ZERO and _TWO <= buf[place + 4] <= _SEVEN:
                    seen[ESCAPED_ASCII] = 1
            continue
        word = ((word << np.uint64(8)) | np.uint64(char)) & _LOW
        size += 1
        if size >= SIZE:
            seen[np.uint64(row_of(word))] = 1
    if high > 127:
        seen[NO_ASCII] = 1


@kernel
def note_pages(
    buf: U8, starts: I64, lengths: I64, states: U8, offsets: I64, page: int, before: int, seen: U8,
    firsts: I32, numbers: I64, bits: U8Rows,
) -> int:  # fmt: skip
    """For each page of so many bytes of the log in which records begin: the first of them, its number, the bits of its
    grams. Gives how many pages these are. `seen` has ROWS bytes. `before`: how many bytes behind its beginning a page's
    first record begins at least.
    """
    count = 0
    for i in range(starts.shape[0]):
        number = max(offsets[i] - before, 0) // page
        if count == 0 or numbers[count - 1] != number:
            if count > 0:
                pack_bits(seen, bits, count - 1)
            seen[:] = 0
            firsts[count] = i
            numbers[count] = number
            count += 1
        if states[i] == LIVE:
            note_grams(buf, starts[i], starts[i] + lengths[i], seen)
    if count > 0:
        pack_bits(seen, bits, count - 1)
    return count


@part
def pack_bits(seen, bits, row):
    """bits[row] = seen, a bit each, the lowest first."""
    for i in range(bits.shape[1]):
        byte = np.uint8(0)
        for bit in range(8):
            byte |= seen[np.uint64(8 * i + bit)] << np.uint8(bit)
        bits[row, i] = byte
