"""Reading many blocks, a piece at a time, into one buffer: read, verify each against its checksum, walk the records.

The compiled kernel and plain Python give the same arrays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.log.blocks.block_format import header_size, is_zero, round_up, walk_block
from jitdb.log.blocks.checksum import Bytes, Ints, Room, mismatches, walk_verified

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIECE: Final = 4 << 20  # bytes read at a time: many blocks of the usual size

NO_SUMS: Final[Ints] = np.empty(0, np.int64)  # of which nothing is verified

_KERNEL_FROM: Final = 32 << 20  # bytes to walk; for fewer, Python is done before numba is loaded
_LIBRARY_FROM: Final = 1 << 17  # the same, if a build has compiled the kernel
_KERNEL_LOADED_FROM: Final = 1 << 16  # the same, once the kernel is loaded


class Walked(NamedTuple):
    """The records of a run of blocks; positions count from the beginning of the run."""

    starts: Ints  # (n,) position of each record's first byte
    lengths: Ints  # (n,) bytes
    deleted: NDArray[np.bool_]  # (n,)
    faults: Ints  # positions of headers from which the rest of a block is lost
    wrong: list[int]  # numbers of the blocks that do not have their checksum


class Walker:
    """Walks runs of up to `largest` bytes. Not safe for threads: the kernel fills arrays that are used again."""

    def __init__(self, largest: int, block_size: int, *, total: int) -> None:
        """`total`, the number of bytes that will be walked in all, decides whether the kernel is loaded."""
        self._block_size = block_size
        self._header = header_size(block_size)
        self.compiled = _is_worth_compiling(total)
        if self.compiled:
            self._room = Room.of(largest, block_size, self._header)

    def walk(self, data: Bytes, size: int, sums: Ints = NO_SUMS) -> Walked:
        """The records in `data[:size]`, which begins on a block boundary; `sums`: see checksum.walk_verified."""
        if not self.compiled:
            return walk_python(data, size, self._block_size, sums)
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


Read = Callable[[memoryview, int], int]  # fills a buffer from an offset on; gives how many bytes there were
Sums = Callable[[int, int], Ints]  # the CRCs of so many blocks from one on, or what checksum.py has in their place
Walk = Callable[[Walker, int, Bytes, int], tuple[Walked, list[int]]]  # as BlockReader.walk


class Piece:
    """A run of blocks that was read and walked. The next one overwrites `data`."""

    def __init__(
        self, begin: int, data: Bytes, walked: Walked, wrong: list[int], block_size: int, compiled: bool
    ) -> None:
        self.begin = begin  # in the log
        self.data = data  # (n,) its bytes
        self.walked = walked
        self.wrong = wrong  # numbers of the blocks that do not have their checksum
        self.first_block = begin // block_size  # in the log
        self.blocks = -(-len(data) // block_size)
        self.compiled = compiled  # whether there are enough blocks for kernels
        self._size = block_size

    @property
    def stop(self) -> int:
        return self.begin + len(self.data)

    @cached_property
    def bounds(self) -> Ints:
        """(blocks + 1,) the number of the first record of each block, and last the number of all records."""
        return self.walked.starts.searchsorted(np.arange(0, (self.blocks + 1) * self._size, self._size))

    @cached_property
    def ends(self) -> Ints:
        """(blocks,) where the records of each block end, counted from the block's beginning."""
        firsts, stops = self.bounds[:-1], self.bounds[1:]
        ends = np.append(self.walked.starts + self.walked.lengths, 0)
        return np.where(stops > firsts, ends[stops - 1] - np.arange(self.blocks) * self._size, 0)

    def block(self, number: int) -> Bytes:
        return self.data[number * self._size : (number + 1) * self._size]

    def behind(self, number: int) -> Bytes:
        return self.block(number)[int(self.ends[number]) :]


def scan(
    read: Read,
    begin: int,
    stop: int,
    block_size: int,
    *,
    size: int = PIECE,
    first: int | None = None,
    sums: Sums | None = None,
    walk: Walk | None = None,
) -> Iterator[Piece]:
    """The blocks from `begin` (a boundary) to `stop`, where the last one may end early. Raises what `read` raises.

    size: bytes of a piece, about
    first: of the first one, if it is to be smaller; each is twice as long as the one before, up to `size`
    sums: the checksums of blocks; without it, nothing is verified
    walk: walks and verifies a piece instead; gives the numbers of damaged blocks
    """
    size = min(max(1, size // block_size) * block_size, round_up(stop, block_size) - begin)
    buffer = np.empty(size, np.uint8)
    walker = Walker(size, block_size, total=stop - begin)
    step = size if first is None else min(size, max(1, first // block_size) * block_size)
    at = begin
    while at < stop:
        got = read(buffer.data[: min(step, stop - at)], at)
        data = buffer[:got]
        if walk is not None:
            walked, wrong = walk(walker, at, data, got)
        else:
            known = NO_SUMS if sums is None else sums(at // block_size, -(-got // block_size))
            walked = walker.walk(data, got, known)
            wrong = walked.wrong
        yield Piece(at, data, walked, wrong, block_size, walker.compiled)
        at += step
        step = min(2 * step, size)
