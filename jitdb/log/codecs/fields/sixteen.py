"""What kernels do with 8, 16 or 64 bytes at once: the processor's vectors where they are compiled, else a loop.

Whoever calls sees to it that so many bytes are in the buffer. Masks have a bit a byte, the lowest for the first one,
and, of sixteen bytes, one behind these, so that there is always a first.
"""

from __future__ import annotations

import numpy as np

from jitdb.common.kernels import WAY

if WAY == "numba":
    from jitdb.log.codecs.fields.vectors import (
        digit_stops,
        newlines,
        pairs,
        same_literal,
        text_stops,
        trailing_zeros,
        word_at,
    )
else:

    def word_at(buf, at):
        """Eight bytes as a little-endian integer."""
        return np.uint64(int.from_bytes(bytes(buf[at : at + 8]), "little"))

    def trailing_zeros(word):
        """How many zeros are at the lower end of a uint64 that is not 0."""
        return np.uint64((int(word) & -int(word)).bit_length() - 1)

    def newlines(buf, at):
        """Which of the 64 bytes from `at` on are newlines."""
        return np.uint64(sum(1 << i for i in range(64) if buf[at + i] == 10))

    def pairs(buf, at, distance, wanted):
        """Which of the 64 bytes from `at` on are a first byte, and those so far behind it a last one.

        `wanted` has four bytes: the first, what is added to the bits of a byte before it is compared with that, and the
        same of the last.
        """
        first, first_case, last, last_case = ((int(wanted) >> shift) & 0xFF for shift in (0, 8, 16, 24))
        found = 0
        for i in range(64):
            if int(buf[at + i]) | first_case == first and int(buf[at + distance + i]) | last_case == last:
                found |= 1 << i
        return np.uint64(found)

    def text_stops(buf, at):
        """Which of the bytes from `at` on are a quote, a backslash, a control character or no ASCII."""
        stops = 1 << 16
        for i in range(16):
            char = int(buf[at + i])
            if char < 32 or char == 34 or char == 92 or char > 127:
                stops |= 1 << i
        return np.uint64(stops)

    def digit_stops(buf, at):
        """Which of the bytes from `at` on are no digits."""
        stops = 1 << 16
        for i in range(16):
            if not 48 <= int(buf[at + i]) <= 57:
                stops |= 1 << i
        return np.uint64(stops)

    def same_literal(buf, at, words, place):
        """Whether the bytes from `at` on are words[place : place + 2], in those bits that the next two words have."""
        for half in range(2):
            word = int.from_bytes(bytes(buf[at + 8 * half : at + 8 * half + 8]), "little", signed=True)
            if word & int(words[place + 2 + half]) != int(words[place + half]):
                return False
        return True


__all__ = ["digit_stops", "newlines", "pairs", "same_literal", "text_stops", "trailing_zeros", "word_at"]
