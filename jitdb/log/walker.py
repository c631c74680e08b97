"""Walking many blocks at once, with the compiled kernel or without: the same arrays either way."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from jitdb.log.blocks import is_zero, walk_block
from jitdb.log.layout import header_size

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_KERNEL_FROM: Final = 32 << 20  # bytes to walk; below, Python is done before numba is loaded
_KERNEL_LOADED_FROM: Final = 1 << 20  # the same, once the kernel is there


class Walked(NamedTuple):
    """The records of a run of blocks; positions count from the beginning of the run."""

    starts: Ints  # (n,) position of each record's first byte
    lengths: Ints  # (n,) bytes
    deleted: npt.NDArray[np.bool_]  # (n,)
    faults: Ints  # positions of headers behind which the rest of a block is lost


class Walker:
    """Walks runs of up to `largest` bytes. Not safe for threads: the kernel fills arrays that are used again."""

    def __init__(self, largest: int, block_size: int, *, total: int) -> None:
        """`total` is how many bytes will be walked in all: it decides whether the kernel is loaded."""
        self._block_size = block_size
        self._header = header_size(block_size)
        self.compiled = total >= (_KERNEL_LOADED_FROM if "jitdb.log.kernels" in sys.modules else _KERNEL_FROM)
        if self.compiled:
            most = largest // (self._header + 1) + 1
            self._starts = np.empty(most, np.int64)
            self._lengths = np.empty(most, np.int64)
            self._deleted = np.empty(most, np.uint8)
            self._faults = np.empty(largest // block_size + 1, np.int64)

    def walk(self, data: Bytes, size: int) -> Walked:
        """The records in `data[:size]`, which begins on a block boundary."""
        if not self.compiled:
            return walk_python(data, size, self._block_size)
        from jitdb.log.kernels import walk

        count, faults = walk(
            data, size, self._block_size, self._header, self._starts, self._lengths, self._deleted, self._faults
        )
        return Walked(
            self._starts[:count].copy(),
            self._lengths[:count].copy(),
            self._deleted[:count].astype(np.bool_),
            self._faults[:faults].copy(),
        )


def walk_python(data: Bytes, size: int, block_size: int) -> Walked:
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
    return Walked(at, sizes, deleted, np.array(faults, np.int64))
