"""A run of bytes for the file: records packed into blocks, with all that the sidecar says of them."""

from __future__ import annotations

import zlib

from jitdb.log.blocks import headers, pack
from jitdb.log.layout import round_up
from jitdb.log.tail import Tail


class Chunk:
    """Bytes for the file, from the end of the log on."""

    def __init__(self, tail: Tail, block_size: int) -> None:
        self.tail = tail  # as it will be
        self.start = tail.end
        self.size = 0
        self.parts: list[bytes] = []
        self.sealed: list[int] = []  # CRCs of the blocks that are complete, the one that holds `start` first
        self._position = tail.end
        self._block_size = block_size
        self._last: list[bytes] = []  # the records added last, not yet in the chain of lengths
        self._fresh = False  # whether they began their block

    def seal(self) -> None:
        """The rest of the block is zeros."""
        if self._position < self._block_size:
            self.finish()  # the chain of the first block is kept
        padding = bytes(round_up(self._position, self._block_size) - self._position)
        self._put(padding)
        self.sealed.append(zlib.crc32(padding, self.tail.block_crc))

    def add(self, records: list[bytes]) -> None:
        """Records of one block."""
        data = pack(records, self._block_size)
        tail = self.tail
        fresh = self._position % self._block_size == 0
        tail.block_crc = zlib.crc32(data, 0 if fresh else tail.block_crc)
        self._last, self._fresh = records, fresh
        tail.newest = len(records[-1])
        tail.witness = zlib.crc32(records[-1])
        self._put(data)
        tail.end = self._position

    def finish(self) -> None:
        """Bring the chains of lengths up to date; those of blocks in between are not needed."""
        if self._last:
            heads = b"".join(headers(self._last, self._block_size))
            self.tail.tail_chain = zlib.crc32(heads, 0 if self._fresh else self.tail.tail_chain)
            if self.tail.end <= self._block_size:
                self.tail.first_chain = self.tail.tail_chain
            self._last = []

    def _put(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)
        self._position += len(data)
