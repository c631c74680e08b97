"""The sum of doubles without rounding: their integers are added up by exponents, of which there are 2,047."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel

if TYPE_CHECKING:
    from jitdb.common.kernels import I64

EXPONENTS = 2048
LEAST = 1075  # a double is its integer times 2 ** (exponent - LEAST)
HALF = 32  # bits of the integers' lower halves: up to 2**31 of them are added without overflow


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
