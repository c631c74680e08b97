"""CRC-32 of many blocks at once, beside the walk over them.

Where the processor multiplies without carries (PCLMULQDQ, PMULL), kernels do it, at some ten times the speed of zlib;
elsewhere, and where nothing is compiled, zlib does. A block is walked right after it is verified, while it is in the
cache: most of what the CRC costs is what the walk no longer waits for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN
from jitdb.log.blocks.checksum import crc32 as plain_crc32
from jitdb.log.blocks.crc_arithmetic import SMALLEST
from jitdb.log.codecs.base import Buffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Ints: TypeAlias = "NDArray[np.int64]"

WORTH_LOADING: Final = 1 << 20  # bytes: of fewer, zlib has the checksums before a kernel is loaded


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
            expected != UNKNOWN and stop <= size and plain_crc32(view[stop - block_size : stop]) != expected
        ):
            found.append(number)
    return found


def crc32(data: Buffer, before: int = 0) -> int:
    """zlib.crc32 of the bytes, behind others whose CRC is `before`."""
    if before or len(data) < SMALLEST or not is_compiled():
        return plain_crc32(data, before)
    from jitdb.log.blocks.crc_kernels import crc32 as compiled

    return int(compiled(np.frombuffer(data, np.uint8), 0, len(data)))


def crcs_of(data: Bytes, size: int, block_size: int, numbers: Ints) -> Ints:
    """zlib.crc32 of the blocks of `data[:size]` with these numbers, of which the last one may be cut short."""
    crcs = np.empty(len(numbers), np.int64)
    if len(numbers) * block_size >= WORTH_LOADING and is_compiled():
        from jitdb.log.blocks.crc_kernels import crcs_of as compiled

        compiled(data, size, block_size, numbers, crcs)
        return crcs
    view = data.data
    for at, number in enumerate(numbers.tolist()):
        crcs[at] = plain_crc32(view[number * block_size : min((number + 1) * block_size, size)])
    return crcs
