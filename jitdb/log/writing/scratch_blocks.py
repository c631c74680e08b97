"""Records that after a crash are there all, or none, past what one block holds: see Log.append_whole.

One DATA entry of the journal covers them all. So their bytes, packed into blocks, and their CRC must be known before
the first one is written: they go through a scratch file, and only then into the log. Recovery believes the entry if all
of its bytes are there (recovery.py); if not, it cuts them off.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.errors import LogWriteFailed
from jitdb.log.blocks.packing import place_many
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.writing.packed_blocks import PackedBlocks

if TYPE_CHECKING:
    from jitdb.log.opening.tail import Tail

_PIECE: Final = 4 << 20  # bytes copied at a time


class ScratchBlocks:
    """Records packed into blocks, in a scratch file, to be written behind the end of a log.

    blocks: where they begin, the log's tail as it will be, the checksums of the blocks that they complete
    size:  of their bytes; crc: of these
    """

    def __init__(self, fs: FileSystem, scratch: Path, tail: Tail, end: int, block_size: int) -> None:
        """`end` is where the next record goes: in a later block than the last one's end if that is to be sealed.

        Raises LogWriteFailed where the scratch file cannot be made.
        """
        self._fs = fs
        self._scratch = scratch
        self._end = end
        self._block_size = block_size
        self.blocks = PackedBlocks(tail.copy(), block_size)
        self.size = 0
        self.crc = 0
        self._copied = 0  # the CRC of what was copied so far
        try:
            self._file = Descriptor(fs, scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise self._failed(error) from error
        if end > tail.end:
            self.blocks.seal()

    def add(self, records: list[bytes], lengths: Iterable[int]) -> None:
        """Pack these records behind the others. Raises LogWriteFailed where the scratch file cannot take them."""
        placed = place_many(np.asarray(lengths, np.int64), self._end, self._block_size)
        first = 0
        for stop in [*placed.breaks, len(records)]:
            if stop > first:
                self.blocks.add(records[first:stop])
            if stop < len(records):
                self.blocks.seal()
            first = stop
        self.blocks.finish()  # the next records may go on in this block
        self._end = placed.end
        self._drain()

    def _drain(self) -> None:
        data = b"".join(self.blocks.parts)
        self.blocks.parts.clear()
        self.crc = zlib.crc32(data, self.crc)
        try:
            self._fs.write(self._file.number, data, self.size)
        except OSError as error:
            raise self._failed(error) from error
        self.size += len(data)

    def _failed(self, error: OSError) -> LogWriteFailed:
        return LogWriteFailed(
            f"packing the records failed ({error.strerror or error}): the log is as it was",
            path=self._scratch,
            remedy="a file of the size of all records must fit there",
        )

    def copy(self, fd: int, start: int, stop: int) -> None:
        """Write the bytes of [start, stop), positions in the log, to the log's file: all of them once, in order.

        Raises LogWriteFailed where they are not those that were packed. The last of them are not written then, so the
        journal's entry does not hold.
        """
        begin, end = self.blocks.start, self.blocks.start + self.size
        for at in range(start, stop, _PIECE):
            size = min(_PIECE, stop - at)
            data = self._fs.read(self._file.number, size, at - begin)
            self._copied = zlib.crc32(data, self._copied)
            if at + size == end and self._copied != self.crc:
                raise LogWriteFailed(
                    f"expected to read back {self.size:,} bytes with CRC {self.crc:08x}, got {self._copied:08x}: none "
                    f"of these records is in the log",
                    path=self._scratch,
                    remedy="open it again to go on, and pack them on another disk",
                )
            self._fs.write(fd, data, at)

    def close(self) -> None:
        """Done with the scratch file."""
        self._file.close()
