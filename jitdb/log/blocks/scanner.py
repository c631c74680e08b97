"""Reading many blocks, a piece at a time: read, verify, walk.

    read      whole blocks into one buffer, in bounded memory
    verify    each against its checksum, where there is one
    walk      the records of all of them, as arrays

Whoever iterates tells of progress as the pieces come, and cancels by leaving the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

import numpy as np

from jitdb.log.blocks.layout import round_up
from jitdb.log.blocks.walker import NO_SUMS, Bytes, Ints, Walked, Walker

PIECE: Final = 4 << 20  # bytes read at a time: many blocks of the usual size

Read = Callable[[memoryview, int], int]  # fills a buffer from an offset on; gives how many bytes there were
Sums = Callable[[int, int], Ints]  # the CRCs of so many blocks from one on, or what crc.py has in their place
Walk = Callable[[Walker, int, Bytes, int], tuple[Walked, list[int]]]  # as BlockReader.walk


class Piece:
    """A run of blocks as it was read and walked; the last one may end early, where the log does.

    Positions count from its beginning, blocks and records from its first one. `data` is used again for the next piece.
    """

    def __init__(
        self, begin: int, data: Bytes, walked: Walked, wrong: list[int], block_size: int, compiled: bool
    ) -> None:
        self.begin = begin  # in the log
        self.data = data  # (n,) its bytes
        self.walked = walked
        self.wrong = wrong  # numbers of the blocks that do not have their checksum
        self.first_block = begin // block_size  # in the log
        self.blocks = -(-len(data) // block_size)
        self.compiled = compiled  # whether there are so many that kernels are worth while
        self._size = block_size

    @property
    def stop(self) -> int:
        """Where it ends in the log."""
        return self.begin + len(self.data)

    @cached_property
    def bounds(self) -> Ints:
        """(blocks + 1,) the number of the first record of each block, and how many records there are in all."""
        return self.walked.starts.searchsorted(np.arange(0, (self.blocks + 1) * self._size, self._size))

    @cached_property
    def ends(self) -> Ints:
        """(blocks,) where the records of each block end, counted from the block's beginning."""
        firsts, stops = self.bounds[:-1], self.bounds[1:]
        ends = np.append(self.walked.starts + self.walked.lengths, 0)
        return np.where(stops > firsts, ends[stops - 1] - np.arange(self.blocks) * self._size, 0)

    def block(self, number: int) -> Bytes:
        """Its bytes."""
        return self.data[number * self._size : (number + 1) * self._size]

    def behind(self, number: int) -> Bytes:
        """The bytes behind its records."""
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
    sums: what blocks are held against; without it, nothing is verified
    walk: walks a piece instead, verifies it, and may look again: gives the numbers of blocks that are damaged
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
