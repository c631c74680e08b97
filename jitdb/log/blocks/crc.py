"""CRC-32 of many blocks at once, beside the walk over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from jitdb.log.blocks.checksum import DAMAGED, MASK, UNKNOWN, byte_remainders, crc32

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Ints: TypeAlias = "NDArray[np.int64]"


class Room(NamedTuple):
    """Arrays that a walk fills: see walk_kernels.walk. `wrong` has room for the number of each block."""

    starts: Ints
    lengths: Ints
    states: Bytes
    faults: Ints
    wrong: Ints

    @classmethod
    def of(cls, size: int, block_size: int, header: int) -> Room:
        """For `size` bytes of blocks: of their shortest records, as many as fit."""
        records, blocks = size // (header + 1) + 1, size // block_size + 1
        starts, lengths, faults, wrong = (np.empty(count, np.int64) for count in (records, records, blocks, blocks))
        return cls(starts, lengths, np.empty(records, np.uint8), faults, wrong)


class Counts(NamedTuple):
    records: int
    faults: int
    wrong: int


def walk_verified(data: Bytes, size: int, block_size: int, header: int, sums: Ints, room: Room) -> Counts:
    """walk_kernels.walk over `data[:size]`, and the numbers in it of the blocks that do not have their CRC: `wrong`.

    `sums` are those of the first blocks, or UNKNOWN, or DAMAGED. Only whole blocks are verified; all are walked.
    """
    from jitdb.log.blocks.walk_kernels import walk

    wrong = mismatches(data, size, block_size, sums)
    room.wrong[: len(wrong)] = wrong
    records, faults = walk(data, size, block_size, header, room.starts, room.lengths, room.states, room.faults)
    return Counts(records, faults, len(wrong))


def mismatches(data: Bytes, size: int, block_size: int, sums: Ints) -> list[int]:
    """The numbers of the wrong blocks among those of `data[:size]`."""
    view = data.data
    found = []
    for number, expected in enumerate(sums[: -(-size // block_size)].tolist()):
        stop = (number + 1) * block_size
        if expected == DAMAGED or (
            expected != UNKNOWN and stop <= size and crc32(view[stop - block_size : stop]) != expected
        ):
            found.append(number)
    return found


def crcs_of(data: Bytes, size: int, block_size: int, numbers: Ints) -> Ints:
    """The CRCs of the blocks of `data[:size]` with these numbers, of which the last one may be cut short."""
    view = data.data[:size]
    begins = (numbers * block_size).tolist()
    return np.array([crc32(view[begin : begin + block_size]) for begin in begins], np.int64)


def crcs_of_rows(rows: Bytes) -> NDArray[np.uint32]:
    """The CRC of each row of bytes, a byte of all rows at a time: many short ones take longer one by one."""
    table, crcs = np.array(byte_remainders(), np.uint32), np.full(len(rows), MASK, np.uint32)
    for column in rows.T:
        crcs = crcs >> 8 ^ table[(crcs ^ column) & 255]
    return ~crcs
