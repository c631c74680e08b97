"""Which single bit, if it were flipped back, would make bytes fit their CRC again?

crc32 is linear: flipping a bit changes the CRC by what that bit gives alone, carried on through the bytes that follow.
So the difference between the CRC that was written and the one that is found is carried *back*, byte by byte, until it
is the difference of one bit; below half a gigabyte no two bits have the same. Two or more wrong bits look like one with
a probability of 8 * size / 2**32; whoever restores a bit looks at the result.

Blocks, and whatever can wait, are put right by repair alone. Elsewhere a bit is put back, in memory, where whoever
opens the log would else write over what it spoils, or take the log for another one: in `meta`, entries of `commit` and
`deletions`, an entry of `checksums` that gets a successor, and in sets, which nothing else knows.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from jitdb.log.blocks.checksum import MASK, SIZE, byte_remainders, crc32, seal

_TOP = 8 * (SIZE - 1)  # bits below the upper byte


@cache
def _tables() -> tuple[list[int], dict[int, int]]:
    """What carries a difference back, by its upper byte; and which bit of the last byte makes a difference."""
    table = byte_remainders()
    byte_of_top = {crc >> _TOP: byte for byte, crc in enumerate(table)}  # all tops differ
    back = [table[byte_of_top[top]] << 8 & MASK | byte_of_top[top] for top in range(256)]
    return back, {table[1 << bit]: bit for bit in range(8)}


class Flip(NamedTuple):
    byte: int
    bit: int  # 0 to 7, the lowest first


def find_flip(size: int, difference: int) -> Flip | None:
    """The bit among `size` bytes that changes their crc32 by `difference` (expected ^ got); None if there is none."""
    back, bit_of = _tables()
    for byte in range(size - 1, -1, -1):
        bit = bit_of.get(difference)
        if bit is not None:
            return Flip(byte, bit)
        difference = (difference << 8 & MASK) ^ back[difference >> _TOP]
    return None


def flip_back(data: bytes, flip: Flip) -> bytes:
    return data[: flip.byte] + bytes([data[flip.byte] ^ 1 << flip.bit]) + data[flip.byte + 1 :]


def restored(data: bytes, expected: int) -> bytes | None:
    """`data` with the one bit flipped back that makes its crc32 the expected one; None if no single bit does."""
    difference = expected ^ crc32(data)
    if difference == 0:
        return data
    flip = find_flip(len(data), difference)
    return None if flip is None else flip_back(data, flip)


def restored_with_crc(data: bytes) -> bytes | None:
    """Bytes that end with their own crc32 (u32, little-endian), one bit of which may be wrong, as they were."""
    body, stored = data[:-SIZE], int.from_bytes(data[-SIZE:], "little")
    if (stored ^ crc32(body)).bit_count() <= 1:
        return seal(body)
    whole = restored(body, stored)
    return None if whole is None else whole + data[-SIZE:]


def differs_by_one_bit(data: bytes, expected: bytes) -> bool:
    """Whether exactly one bit of `data` is another than expected."""
    if len(data) != len(expected):
        return False
    return (int.from_bytes(data, "little") ^ int.from_bytes(expected, "little")).bit_count() == 1
