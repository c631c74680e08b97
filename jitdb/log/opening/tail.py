"""The end of a log: where it is, and the fingerprint by which the same log is known again.

Deleting a record changes its bytes but never its length. So a log is known again by its **chains of lengths**, the CRC
of all headers in its first block, and of those in the block that holds its end; and by the CRC of its newest record,
which at most can have been deleted since (docs/format-log.md says what this cannot see).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from jitdb.log.blocks.checksum import crc32
from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar import journal

_CHUNK: Final = 1 << 20  # bytes read at once while a CRC is computed


class Tail(NamedTuple):
    """The log up to `end`, as far as its first and last block tell. `end` 0 is the empty log."""

    end: int = 0  # just past the newest record
    last_record_size: int = 0
    last_record_crc: int = 0
    last_record_deleted: bool = False  # its bytes are all zero: last_record_crc says nothing
    first_chain: int = 0
    tail_chain: int = 0
    block_crc: int = 0  # crc32 of the last block's bytes up to `end`; 0 where it is not known

    @classmethod
    def of(cls, entry: journal.Entry) -> Tail:
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
    newest = block[walk.positions[-1] + header :]
    tail_chain = _chain(block, walk.positions, header)
    return Tail(
        end=end,
        last_record_size=len(newest),
        last_record_crc=crc32(newest),
        last_record_deleted=is_zero(newest),
        first_chain=first_chain(fs, fd, block_size) if begin else tail_chain,
        tail_chain=tail_chain,
        block_crc=crc32(block),
    )


def first_chain(fs: FileSystem, fd: int, block_size: int) -> int:
    """crc32 of all headers in the first block."""
    block = fs.read(fd, block_size, 0)
    return _chain(block, walk_block(block, len(block), block_size).positions, header_size(block_size))


def _chain(block: bytes, positions: Sequence[int], header: int) -> int:
    return crc32(b"".join([block[at : at + header] for at in positions]))


def stamp_of(status: os.stat_result) -> int:
    """A file's modification time in nanoseconds, as the 64 bits of an entry hold it: those before 1970 wrap around."""
    return status.st_mtime_ns % (1 << 64)


def change_token(modified: int, size: int) -> bytes:
    """8 bytes for the state in which another program left the file (nanoseconds, bytes)."""
    from jitdb.common.digests import blake2b

    return blake2b(b"%d %d" % (modified, size), digest_size=8).digest()


def believe(fs: FileSystem, fd: int, end: int, entries: tuple[journal.Entry, ...], size: int) -> int:
    """How far the bytes are those of which the DATA entries tell, from `end` on."""
    for entry in entries:
        if entry.start != end or entry.end > size or _crc(fs, fd, entry.start, entry.end) != entry.data_crc:
            break
        end = entry.end
    return end


def _crc(fs: FileSystem, fd: int, start: int, end: int) -> int:
    crc = 0
    for at in range(start, end, _CHUNK):
        crc = crc32(fs.read(fd, min(_CHUNK, end - at), at), crc)
    return crc


def survey(fs: FileSystem, fd: int, size: int, block_size: int, codec: Codec, trusted: int) -> int:
    """The end of a log that another program wrote: just past the last whole, valid record of its last block.

    `trusted` is the least that this gives back: what is before it counts, whatever the codec says. Blocks before the
    last one are taken as they are, as the other program does: its blocks are written one after the other.
    """
    header = header_size(block_size)
    begin = round_up(size, block_size) - block_size
    while begin >= 0 and begin + block_size > trusted:
        if not is_zero(fs.read(fd, header, begin)):
            block = fs.read(fd, min(block_size, size - begin), begin)
            end = begin + _good_end(block, block_size, codec)
            if end > begin:
                return max(end, trusted)
        begin -= block_size
    return trusted


def _good_end(block: bytes, block_size: int, codec: Codec) -> int:
    """Just past the last record that is whole and valid. One that is not, with such a one behind it, is no torn end."""
    header = header_size(block_size)
    walk = walk_block(block, len(block), block_size)
    for position, length in zip(reversed(walk.positions), reversed(walk.lengths), strict=True):
        record = block[position + header : position + header + length]
        if is_zero(record) or codec.is_valid(record):
            return position + header + length
    return 0
