"""Times counted by steps of one length, and the sum of doubles without rounding, in one pass each.

Most times are in the step of the one before, so that their step is known already. The integers of doubles are added
up by exponents, of which there are 2,047.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I64

FAR = 9.2e18  # nanoseconds: 64 bits hold no more, whatever the shift
EXPONENTS = 2048
LEAST = 1075  # a double is its integer times 2 ** (exponent - LEAST)
HALF = 32  # bits of the integers' lower halves: up to 2**31 of them are added without overflow


@kernel
def count_steps(hi: F64, lo: I16, columns: I64, width: int, size: int, shift: int, first: int, counts: I64) -> int:
    """counts[(step - first) * width + column] += 1 for each time; how many that were.

    `lo` and `columns` may be empty, for zeros. What is no time (NaN), is far, or in no step of `counts` is passed over.
    """
    found = 0
    begin = np.int64(0)  # of the step before: it holds no time yet
    end = np.int64(0)
    place = np.int64(0)
    steps = np.int64(counts.shape[0]) // width
    for i in range(hi.shape[0]):
        time = hi[i]
        if not (-FAR < time < FAR):
            continue
        shifted = np.int64(time) + shift
        if lo.shape[0] != 0:
            shifted += np.int64(lo[i])
        if not (begin <= shifted < end):
            step = shifted // size
            place = step - first
            begin = step * size
            end = begin + size
        if 0 <= place < steps:
            column = np.int64(0)
            if columns.shape[0] != 0:
                column = columns[i]
            if 0 <= column < width:
                counts[np.uint64(place * width + column)] += 1
                found += 1
    return found


@kernel
def add_by_exponents(bits: I64, high: I64, low: I64) -> None:
    """Add the integers of finite doubles, given as their bits, to high[exponent] * 2**HALF + low[exponent]."""
    for i in range(bits.shape[0]):
        word = bits[i]
        exponent = (word >> 52) & 0x7FF
        whole = word & 0xFFFFFFFFFFFFF
        if exponent == 0:
            exponent = 1
        else:
            whole |= 1 << 52
        if word < 0:
            whole = -whole
        high[np.uint64(exponent)] += whole >> HALF
        low[np.uint64(exponent)] += whole & 0xFFFFFFFF
