"""A run of bytes for the file: records packed into blocks, with all that the sidecar says of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

from jitdb.log.blocks.layout import round_up
from jitdb.log.blocks.packing import headers, pack
from jitdb.log.codecs.base import Buffer
from jitdb.log.opening.tail import Tail


class PackedBlocks:
    """Bytes for the file, from the end of the log on."""

    def __init__(self, tail: Tail, block_size: int, crc32: Callable[..., int] = zlib.crc32) -> None:
        """`crc32` is zlib's, or one that gives the same sooner."""
        self.crc32 = crc32
        self.tail = tail  # as it will be
        self.start = tail.end
        self.size = 0
        self.parts: list[Buffer] = []
        self.sealed: list[int] = []  # CRCs of the blocks that are complete, the one that holds `start` first
        self._position = tail.end
        self._block_size = block_size
        self._last: Iterable[int] = ()  # the lengths of the records added last, not yet in the chain
        self._fresh: bool | None = None  # whether they began their block; None: there are none

    def seal(self) -> None:
        """The rest of the block is zeros."""
        if self._position < self._block_size:
            self.finish()  # the chain of the first block is kept
        padding = bytes(round_up(self._position, self._block_size) - self._position)
        self._put(padding)
        self.sealed.append(zlib.crc32(padding, self.tail.block_crc))

    def add(self, records: list[bytes]) -> None:
        """Records of one block."""
        lengths = list(map(len, records))
        self.add_framed(pack(records, lengths, self._block_size), lengths, records[-1])

    def add_framed(self, data: Buffer, lengths: Iterable[int], newest: Buffer) -> None:
        """Records of one block, with their headers; the lengths of all, and the last one."""
        tail = self.tail
        fresh = self._position % self._block_size == 0
        tail.block_crc = self.crc32(data, 0 if fresh else tail.block_crc)
        self._last, self._fresh = lengths, fresh
        tail.last_record_size = len(newest)
        tail.last_record_crc = zlib.crc32(newest)
        self._put(data)
        tail.end = self._position

    def finish(self) -> None:
        """Bring the chains of lengths up to date; those of blocks in between are not needed."""
        if self._fresh is not None:
            heads = b"".join(headers(self._last, self._block_size))
            self.tail.tail_chain = zlib.crc32(heads, 0 if self._fresh else self.tail.tail_chain)
            if self.tail.end <= self._block_size:
                self.tail.first_chain = self.tail.tail_chain
            self._fresh = None

    def _put(self, data: Buffer) -> None:
        self.parts.append(data)
        self.size += len(data)
        self._position += len(data)
