"""The arithmetic of CRC-32, which crc.py, its kernels and their instructions share.

Bits are coefficients modulo 2, the CRC is the remainder by the polynomial, and what lies n bits before
other bits may be multiplied by x**n mod the polynomial and added to them. So a block is folded into its last 16 bytes,
whose remainder is looked up. (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
Instruction", Intel, 2009.) Bits are reflected: the first bit of a byte, its lowest, has the highest power.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from jitdb.log.blocks.checksum import POLYNOMIAL, byte_remainders

ACCUMULATORS: Final = 8  # chains of folding beside each other
LANE: Final = 16  # bytes
SMALLEST: Final = 4 * LANE * ACCUMULATORS  # bytes that a fold takes at least, on any processor


def power(exponent: int) -> int:
    """x**exponent modulo the polynomial, reflected in 32 bits.

    >>> hex(power(0)), hex(power(31)), hex(power(32))
    ('0x80000000', '0x1', '0xedb88320')
    """
    remainder = 0x80000000
    for _ in range(exponent):
        remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
    return remainder


def fold_factors(bits: int) -> tuple[int, int]:
    """What moves 16 bytes `bits` bits on: the factors of their first and of their last 8 bytes, reflected in 64 bits.

    The product of two reflected numbers comes out one bit too low, so a factor has one power of x less.
    """
    return power(bits + 63) << 32, power(bits - 1) << 32


def tables() -> npt.NDArray[np.uint32]:
    """uint32 [16, 256]: what a byte that has n bytes behind it gives to the remainder, in row n."""
    rows = np.empty((16, 256), np.uint32)
    rows[0] = byte_remainders()
    for row in range(1, 16):
        rows[row] = rows[row - 1] >> 8 ^ rows[0][rows[row - 1] & 255]
    return rows
