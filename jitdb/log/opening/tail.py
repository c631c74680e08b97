"""The end of a log: where it is, and the fingerprint by which the same log is known again.

Deleting a record changes its bytes but never its length. So a log is known again by its **chains of lengths**: the
CRC of all headers in its first block, and of those in the block that holds its end; and by a **last_record_crc**, the
CRC of its newest record, which at most can have been deleted since. A log that was truncated, replaced or compacted
by another program has other ones (docs/format-log.md says what this cannot see).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar import journal


class Tail:
    """The log up to `end`, as far as its first and last block tell. `end` 0 is the empty log."""

    __slots__ = (
        "block_crc",
        "end",
        "first_chain",
        "last_record_crc",
        "last_record_deleted",
        "last_record_size",
        "tail_chain",
    )

    def __init__(
        self,
        end: int = 0,
        last_record_size: int = 0,
        last_record_crc: int = 0,
        last_record_deleted: bool = False,
        first_chain: int = 0,
        tail_chain: int = 0,
        block_crc: int = 0,
    ) -> None:
        self.end = end  # just past the newest record
        self.last_record_size = last_record_size  # its length
        self.last_record_crc = last_record_crc  # crc32 of its bytes
        self.last_record_deleted = last_record_deleted  # they are all zero: the last_record_crc says nothing
        self.first_chain = first_chain
        self.tail_chain = tail_chain
        self.block_crc = block_crc  # crc32 of the last block's bytes up to `end`; 0 where it is not known

    @classmethod
    def of(cls, entry: journal.Entry) -> Tail:
        """What the entry tells of it."""
        last = entry.last_record_size, entry.last_record_crc
        return cls(entry.end, *last, False, entry.first_chain, entry.tail_chain, entry.data_crc)

    def since(self, block_size: int) -> int:
        """Offset of the newest record, -1 if there is none."""
        return self.end - self.last_record_size - header_size(block_size) if self.last_record_size else -1

    def entry(
        self, kind: int, generation: int, change: bytes, deletions: journal.JournalPrefix | None = None
    ) -> journal.Entry:
        """The journal's entry that says: the log ends here, and `deletions` are known of."""
        return journal.Entry(
            start=deletions.packed if deletions is not None and deletions.packed >= 0 else self.end,
            end=self.end,
            stamp=0,
            change=change,
            data_crc=self.block_crc,
            last_record_size=self.last_record_size,
            last_record_crc=self.last_record_crc,
            first_chain=self.first_chain,
            tail_chain=self.tail_chain,
            generation=generation,
            kind=kind,
        )

    def agrees(self, entry: journal.Entry) -> bool:
        """Whether the block that holds the end is still the one that the entry tells of."""
        if self.last_record_size != entry.last_record_size or self.tail_chain != entry.tail_chain:
            return False
        return self.last_record_crc == entry.last_record_crc or (
            self.last_record_deleted and self.first_chain == entry.first_chain
        )

    def is_damaged(self, entry: journal.Entry) -> bool:
        """Whether a byte of the block that holds the end is another than the (settled) entry tells of."""
        return entry.data_crc != 0 and self.block_crc != entry.data_crc

    def copy(self) -> Tail:
        return Tail(
            self.end,
            self.last_record_size,
            self.last_record_crc,
            self.last_record_deleted,
            self.first_chain,
            self.tail_chain,
            self.block_crc,
        )


def measure(fs: FileSystem, fd: int, end: int, block_size: int) -> Tail | None:
    """The tail of the log in the file, were it to end at `end`. None if no record ends there."""
    if end == 0:
        return Tail()
    begin = end - end % block_size
    block = fs.read(fd, end - begin, begin)
    walk = walk_block(block, len(block), block_size)
    if walk.end != end - begin or walk.fault or not walk.positions:
        return None
    header = header_size(block_size)
    last_record_size = block[walk.positions[-1] + header :]
    tail_chain = _chain(block, walk.positions, header)
    return Tail(
        end=end,
        last_record_size=len(last_record_size),
        last_record_crc=zlib.crc32(last_record_size),
        last_record_deleted=is_zero(last_record_size),
        first_chain=first_chain(fs, fd, block_size) if begin else tail_chain,
        tail_chain=tail_chain,
        block_crc=zlib.crc32(block),
    )


def first_chain(fs: FileSystem, fd: int, block_size: int) -> int:
    """crc32 of all headers in the first block."""
    block = fs.read(fd, block_size, 0)
    return _chain(block, walk_block(block, len(block), block_size).positions, header_size(block_size))


def _chain(block: bytes, positions: Sequence[int], header: int) -> int:
    return zlib.crc32(b"".join([block[at : at + header] for at in positions]))


def stamp_of(status: os.stat_result) -> int:
    """A file's modification time in nanoseconds, as the 64 bits of an entry hold it: those before 1970 wrap around.

    >>> stamp_of(os.stat_result((0,) * 10, {"st_mtime_ns": -1})) == 2**64 - 1
    True
    """
    return status.st_mtime_ns % (1 << 64)


def change_token(modified: int, size: int) -> bytes:
    """8 bytes for the state in which another program left the file (nanoseconds, bytes)."""
    from hashlib import blake2b

    return blake2b(b"%d %d" % (modified, size), digest_size=8).digest()
