"""A scan's way through a log in blocks: read a chunk, verify its blocks, walk their records."""

from __future__ import annotations

import numpy as np

from jitdb.log.blocks.crc import Counts, Ints, Room, walk_verified
from jitdb.log.blocks.framing import Blocks, ChunkWalker
from jitdb.log.blocks.layout import header_size


class BlockWalker(ChunkWalker):
    """See ChunkWalker."""

    behind = 0

    def __init__(self, log: Blocks, most: int, stop: int) -> None:
        self._log, self._stop = log, stop
        self._size = size = log.block_size
        self._header = header_size(size)
        self.buffer = np.empty(most, np.uint8)
        self.room = Room.of(most, size, self._header)

    def read(self, begin: int, start: int) -> int:
        buffer = self.buffer
        return min(self._log.read_blocks(begin, begin + len(buffer), buffer), self._stop - begin)

    def walk(self, size: int, sums: Ints) -> Counts:
        return walk_verified(self.buffer, size, self._size, self._header, sums, self.room)
