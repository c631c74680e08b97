"""Many records that were encoded at once, one behind the other in an array: a group that is framed when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.log.blocks.crc import crc32
from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import place_array
from jitdb.log.blocks.walk_kernels import frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.writing.packed_blocks import PackedBlocks


class EncodedGroup:
    """As a Pending that takes no more records. It keeps no reference to `data`."""

    crc32 = staticmethod(crc32)

    def __init__(
        self, data: NDArray[np.uint8], lengths: NDArray[np.int64], end: int, block_size: int, seals: bool
    ) -> None:
        """`end` is where the next record goes, if it fits the block; `seals`: it begins a block by itself."""
        self.done = 0  # runs that are in the file
        self.offsets, breaks, self.end = place_array(lengths, end, block_size)
        self._breaks = [0, *breaks] if seals else breaks
        self._start = end
        self._header = header_size(block_size)
        self._lengths = lengths.copy()
        self._framed = np.empty(self.end - end, np.uint8)
        frame(data, lengths, self.offsets, end, self._header, self._framed)

    def runs(self) -> list[tuple[int, int]]:
        """As Pending."""
        return list(zip([0, *self._breaks], [*self._breaks, len(self.offsets)], strict=True))

    def put(self, blocks: PackedBlocks, first: int, last: int) -> None:
        """As Pending."""
        begin = int(self.offsets[first]) - self._start
        newest = int(self.offsets[last - 1]) + self._header - self._start
        stop = newest + int(self._lengths[last - 1])
        data = self._framed.data
        blocks.add_framed(data[begin:stop], self._lengths[first:last], data[newest:stop])

    def find(self, offset: int) -> bytes | None:
        """As Pending."""
        number = int(self.offsets.searchsorted(offset))
        if number == len(self.offsets) or self.offsets[number] != offset:
            return None
        begin = offset + self._header - self._start
        return bytes(self._framed.data[begin : begin + int(self._lengths[number])])
