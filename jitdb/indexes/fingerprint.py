"""What the index of deleted records keeps of the log besides: by which the bytes that were indexed are known again.

The meta of its SET segments is rows of 16 bytes, number (u64), length (u32), crc (u32):

    first     how many deletions the journal was known to tell of; the log's block size; CRC-32 of their offsets (i64
              each)
    further   a block, by number, ascending, that no checksum of the log proved when it was scanned; how many of its
              bytes were there; their CRC-32

Of a block that is not among them, the checksum in the log's sidecar fitted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROW: Final = [("number", "<u8"), ("length", "<u4"), ("crc", "<u4")]  # for numpy; on disk: never change
_ROW: Final = struct.Struct("<QII")  # the same


class Journal(NamedTuple):
    """How much of a journal of deletions was known: how many, and the CRC-32 of their offsets.

    The marks between them are not counted: the last may be lost with the power, and says nothing of a record.
    """

    deletions: int = 0
    crc: int = 0


NO_JOURNAL: Final = Journal()


class Fingerprint(NamedTuple):
    """What is known of the log up to where an index of deleted records ends."""

    block_size: int
    journal: Journal
    blocks: NDArray[Any]  # of ROW: those that no checksum proved

    def encode(self) -> bytes:
        """As the meta of a segment."""
        return _ROW.pack(self.journal.deletions, self.block_size, self.journal.crc) + self.blocks.tobytes()

    def within(self, start: int, end: int) -> Fingerprint:
        """What there is of it between two bytes of the log."""
        numbers, size = self.blocks["number"], self.block_size
        return self._replace(blocks=self.blocks[(numbers >= start // size) & (numbers <= max(0, end - 1) // size)])

    def followed_by(self, other: Fingerprint, start: int) -> Fingerprint:
        """Both together; `other` knows better from this byte of the log on, also of a block that was not full yet."""
        import numpy as np

        numbers, last = self.blocks["number"], start // self.block_size
        whole = (numbers == last) & (self.blocks["length"] == self.block_size)
        before = self.blocks[((numbers < last) | whole) & ~np.isin(numbers, other.blocks["number"])]
        return other._replace(blocks=np.concatenate([before, other.blocks]))


def unproven_rows(numbers: NDArray[np.int64], lengths: NDArray[np.int64], crcs: NDArray[np.int64]) -> NDArray[Any]:
    """The rows of these blocks."""
    import numpy as np

    rows = np.empty(len(numbers), ROW)
    rows["number"], rows["length"], rows["crc"] = numbers, lengths, crcs
    return rows


def journal_in(meta: bytes) -> Journal | None:
    """How much of the journal was known, by what a segment's meta holds; None where that is nothing."""
    deletions, block_size, crc = _ROW.unpack_from(meta) if meta else (0, 0, 0)
    return Journal(deletions, crc) if block_size else None


def decode(meta: bytes) -> Fingerprint | None:
    """What a segment's meta holds; None where that is nothing."""
    import numpy as np

    journal = journal_in(meta)
    if journal is None:
        return None
    rows = np.frombuffer(meta, ROW)
    return Fingerprint(int(rows[0]["length"]), journal, rows[1:])


def joined(parts: Sequence[tuple[Fingerprint | None, int]]) -> Fingerprint | None:
    """That of adjacent runs, each with the byte of the log where it begins; None where one has none."""
    found: Fingerprint | None = None
    for part, start in parts:
        if part is None:
            return None
        found = part if found is None else found.followed_by(part, start)
    return found
