"""The framing of jitdb's own logs: a header, which is the record's length, and no record goes on in the next block
(packing.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from jitdb.log.blocks.framing import Blocks, ChunkWalker, Framing, LastRecord
from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import is_zero, walk_block


class BlockFraming(Framing):
    """That of logs in blocks: see packing.walk_block."""

    is_blocked = True
    keeps_malformed = True

    def __init__(self, block_size: int) -> None:
        self._size = block_size
        self.before = header_size(block_size)

    def walker(self, log: Blocks, most: int, stop: int) -> ChunkWalker:
        from jitdb.log.blocks.block_walker import BlockWalker  # with numpy

        return BlockWalker(log, most, stop)

    def records(self, log: Blocks, block: int, size: int) -> Iterator[tuple[int, bytes]]:
        start, buffer = block * self._size, memoryview(bytearray(size))
        data = bytes(buffer[: log.read_blocks(start, start + size, buffer)])
        walk = walk_block(data, len(data), self._size)
        for position, record in zip(walk.positions, walk.records(data, self.before), strict=True):
            if not is_zero(record):
                yield start + position, record

    def last_record(self, log: Blocks, end: int) -> LastRecord:
        block, inside = divmod(end - 1, self._size)
        inside += 1
        data, fault = log.second_look(block)
        if fault is not None:
            return LastRecord(None, is_lost=True)
        if len(data) < inside:
            return LastRecord(None)
        walk, header = walk_block(data, len(data), self._size), self.before
        following = bisect_left(walk.positions, inside)  # the first record that does not begin before
        position = walk.positions[following - 1] if following else 0
        if following and position + header + walk.lengths[following - 1] == inside:
            record = data[position + header : inside]
            return LastRecord(None if is_zero(record) else record, block * self._size + position)
        return LastRecord(None, is_lost=not walk.positions or (walk.fault and walk.end < inside))

    def fault_in(self, data: bytes, used: int) -> int | None:
        walk = walk_block(data, used, self._size)
        return walk.end if walk.fault else None
