"""CRC-32 of many blocks at once, beside the walk over them.

Where the processor multiplies without carries (PCLMULQDQ, PMULL), kernels do it, at some ten times the speed of zlib;
elsewhere, and where nothing is compiled, zlib does. Both find the same blocks.

The arithmetic: bits are coefficients modulo 2, the CRC is the remainder by the polynomial, and what lies n bits before
other bits may be multiplied by x**n mod the polynomial and added to them. So a block is folded into its last 16 bytes,
whose remainder is looked up. (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
Instruction", Intel, 2009.) Bits are reflected: the first bit of a byte, its lowest, has the highest power.

A block is walked right after it is verified, while it is in the cache: most of what the CRC costs is what the walk no
longer waits for.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jitdb.log.codecs.base import Buffer

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

POLYNOMIAL: Final = 0xEDB88320  # that of zlib, reflected, without its x**32

# In the place of a checksum:
UNKNOWN: Final = -1  # the block is not verified
DAMAGED: Final = -2  # the block is known not to be what was written

_WORTH_LOADING: Final = 1 << 20  # bytes: of fewer, zlib has the checksums before a kernel is loaded

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
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
        rows[0, byte] = remainder
    for row in range(1, 16):
        rows[row] = rows[row - 1] >> 8 ^ rows[0][rows[row - 1] & 255]
    return rows


@cache
def is_compiled() -> bool:
    """Whether the kernels can be had: there is a compiled way, and the processor multiplies without carries."""
    from jitdb.common.kernels import carryless_lanes

    return carryless_lanes() > 0


class Room(NamedTuple):
    """Arrays that a walk fills: see kernels.walk. `wrong` has room for the number of each block."""

    starts: Ints
    lengths: Ints
    states: Bytes
    faults: Ints
    wrong: Ints


class Counts(NamedTuple):
    """How far it filled them."""

    records: int
    faults: int
    wrong: int


def walk_verified(data: Bytes, size: int, block_size: int, header: int, sums: Ints, room: Room) -> Counts:
    """kernels.walk over `data[:size]`, and the numbers in it of the blocks whose bytes do not have their CRC: `wrong`.

    `sums` are those of the first blocks, or UNKNOWN, or DAMAGED. Only whole blocks are verified; all are walked.
    """
    if is_compiled():
        from jitdb.log.blocks.crc_kernels import walk_verified as compiled

        return Counts(*compiled(data, size, block_size, header, sums, *room))
    from jitdb.log.blocks.walk_kernels import walk

    wrong = mismatches(data, size, block_size, sums)
    room.wrong[: len(wrong)] = wrong
    records, faults = walk(data, size, block_size, header, room.starts, room.lengths, room.states, room.faults)
    return Counts(records, faults, len(wrong))


def mismatches(data: Bytes, size: int, block_size: int, sums: Ints) -> list[int]:
    """The numbers of the wrong blocks, by zlib."""
    view = data.data
    found = []
    for number, expected in enumerate(sums.tolist()):
        stop = (number + 1) * block_size
        if expected == DAMAGED or (
            expected != UNKNOWN and stop <= size and zlib.crc32(view[stop - block_size : stop]) != expected
        ):
            found.append(number)
    return found


def crc32(data: Buffer, before: int = 0) -> int:
    """zlib.crc32 of the bytes, behind others whose CRC is `before`."""
    if before or len(data) < SMALLEST or not is_compiled():
        return zlib.crc32(data, before)
    from jitdb.log.blocks.crc_kernels import crc32 as compiled

    return int(compiled(np.frombuffer(data, np.uint8), 0, len(data)))


def crcs_of(data: Bytes, size: int, block_size: int, numbers: Ints) -> Ints:
    """zlib.crc32 of the blocks of `data[:size]` with these numbers, of which the last one may be cut short."""
    crcs = np.empty(len(numbers), np.int64)
    if len(numbers) * block_size >= _WORTH_LOADING and is_compiled():
        from jitdb.log.blocks.crc_kernels import crcs_of as compiled

        compiled(data, size, block_size, numbers, crcs)
        return crcs
    view = data.data
    for at, number in enumerate(numbers.tolist()):
        crcs[at] = zlib.crc32(view[number * block_size : min((number + 1) * block_size, size)])
    return crcs
