"""Walking many blocks at once, with the compiled kernel or without: the same arrays either way."""

from __future__ import annotations

import os
import sys
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jitdb.log.blocks.crc import Room, mismatches
from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import is_zero, walk_block

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NO_SUMS: Final[Ints] = np.empty(0, np.int64)  # of which nothing is verified

_KERNEL_FROM: Final = 32 << 20  # bytes to walk; below, Python is done before numba is loaded
_LIBRARY_FROM: Final = 1 << 17  # the same, where a build has compiled it
_KERNEL_LOADED_FROM: Final = 1 << 16  # the same, once the kernel is there


class Walked(NamedTuple):
    """The records of a run of blocks; positions count from the beginning of the run."""

    starts: Ints  # (n,) position of each record's first byte
    lengths: Ints  # (n,) bytes
    deleted: npt.NDArray[np.bool_]  # (n,)
    faults: Ints  # positions of headers behind which the rest of a block is lost
    wrong: list[int]  # numbers of the blocks that do not have their checksum


class Walker:
    """Walks runs of up to `largest` bytes. Not safe for threads: the kernel fills arrays that are used again."""

    def __init__(self, largest: int, block_size: int, *, total: int) -> None:
        """`total` is how many bytes will be walked in all: it decides whether the kernel is loaded."""
        self._block_size = block_size
        self._header = header_size(block_size)
        self.compiled = _is_worth_compiling(total)
        if self.compiled:
            most, blocks = largest // (self._header + 1) + 1, largest // block_size + 1
            self._room = Room(
                np.empty(most, np.int64),
                np.empty(most, np.int64),
                np.empty(most, np.uint8),
                np.empty(blocks, np.int64),
                np.empty(blocks, np.int64),
            )

    def walk(self, data: Bytes, size: int, sums: Ints = NO_SUMS) -> Walked:
        """The records in `data[:size]`, which begins on a block boundary; `sums` as crc.walk_verified takes them."""
        if not self.compiled:
            return walk_python(data, size, self._block_size, sums)
        from jitdb.log.blocks.crc import walk_verified

        count, faults, wrong = walk_verified(data, size, self._block_size, self._header, sums, self._room)
        room = self._room
        return Walked(
            room.starts[:count].copy(),
            room.lengths[:count].copy(),
            room.states[:count].astype(np.bool_),
            room.faults[:faults].copy(),
            room.wrong[:wrong].tolist(),
        )


def _is_worth_compiling(total: int) -> bool:
    if "jitdb.log.blocks.walk_kernels" in sys.modules:
        return total >= _KERNEL_LOADED_FROM
    if not _LIBRARY_FROM <= total < _KERNEL_FROM:
        return total >= _KERNEL_FROM
    from jitdb.common.kernel_library import library

    return os.environ.get("JITDB_KERNELS", "native") in ("", "native") and library() is not None


def walk_python(data: Bytes, size: int, block_size: int, sums: Ints = NO_SUMS) -> Walked:
    """As Walker.walk, without numba."""
    header = header_size(block_size)
    starts: list[int] = []
    lengths: list[int] = []
    faults: list[int] = []
    for begin in range(0, size, block_size):
        block = data[begin : min(begin + block_size, size)].tobytes()
        walk = walk_block(block, len(block), block_size)
        starts += [begin + position + header for position in walk.positions]
        lengths += walk.lengths
        if walk.fault:
            faults.append(begin + walk.end)
    at = np.array(starts, np.int64)
    sizes = np.array(lengths, np.int64)
    deleted = data[at] == 0
    for suspect in np.flatnonzero(deleted).tolist():
        deleted[suspect] = is_zero(data[at[suspect] : at[suspect] + sizes[suspect]].tobytes())
    return Walked(at, sizes, deleted, np.array(faults, np.int64), mismatches(data, size, block_size, sums))
