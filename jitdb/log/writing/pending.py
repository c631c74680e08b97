"""Records that were appended and are not yet in the file."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from jitdb.log.blocks.layout import header_size, round_up

if TYPE_CHECKING:
    from jitdb.log.writing.packed_blocks import PackedBlocks


class Pending:
    """A group of records that follow each other in the log, from the end of what is written.

    `breaks` are the numbers of the records that begin a new block. The writer appends to it and searches it under its
    lock; once it is handed over to be written, it stays as it is.
    """

    crc32 = staticmethod(zlib.crc32)  # with what its bytes are summed

    __slots__ = ("_at", "_block_size", "_broken", "_found", "_header", "breaks", "done", "records", "start")

    def __init__(self, start: int, block_size: int) -> None:
        self.start = start  # the end of the log before this group
        self.records: list[bytes] = []
        self.breaks: list[int] = []
        self.done = 0  # runs that are in the file
        self._block_size = block_size
        self._header = header_size(block_size)
        self._found: dict[int, bytes] = {}  # by offset, as far as it was searched
        self._at = start
        self._broken = 0  # breaks passed in the search

    def end(self) -> int:
        """Just past the last record."""
        self.find(-1)
        return self._at

    def runs(self) -> list[tuple[int, int]]:
        """First and last (exclusive) numbers of the records that share a block, in order; the first may be empty."""
        return list(zip([0, *self.breaks], [*self.breaks, len(self.records)], strict=True))

    def put(self, blocks: PackedBlocks, first: int, last: int) -> None:
        """Add the records of a run, which share a block."""
        blocks.add(self.records[first:last])

    def find(self, offset: int) -> bytes | None:
        """The record at this offset, if it is one of these. Each record is looked at once, however often one asks."""
        for number in range(len(self._found), len(self.records)):
            if self._broken < len(self.breaks) and self.breaks[self._broken] == number:
                self._at = round_up(self._at, self._block_size)
                self._broken += 1
            record = self.records[number]
            self._found[self._at] = record
            self._at += self._header + len(record)
        return self._found.get(offset)
