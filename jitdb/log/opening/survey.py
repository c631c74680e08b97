"""What a log's bytes say by themselves: how far they reach, and which records are deleted."""

from __future__ import annotations

import zlib
from typing import Final

from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar import journal
from jitdb.log.sidecar.deletions import Agreement, DeletionReader

_CHUNK: Final = 1 << 20  # bytes read at once while a CRC is computed


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
        crc = zlib.crc32(fs.read(fd, min(_CHUNK, end - at), at), crc)
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


def compare(fs: FileSystem, fd: int, end: int, block_size: int, deletions: DeletionReader, applied: int) -> Agreement:
    """Hold the log up to `end` against its journal of deletions, whose first `applied` entries should be zeros in it.

    They may be of different moments: a copy of one is older than that of the other, or a writer died in the middle of
    a write. A record that is zero without an entry says that the journal is older; one that is not zero with such an
    entry, that the file is older, or another one, compacted perhaps.
    """
    import numpy as np

    from jitdb.log.blocks.scanner import scan

    logged = np.unique(deletions.between(0, deletions.position))
    gone = np.unique(deletions.between(0, applied))
    header = header_size(block_size)
    unlogged, met = False, 0
    for piece in scan(lambda buffer, at: fs.read_into(fd, buffer, at), 0, end, block_size):
        walked = piece.walked
        zeros = walked.starts[walked.deleted] + (piece.begin - header)
        unlogged |= not bool(np.isin(zeros, logged, assume_unique=True).all())
        met += int(np.isin(zeros, gone, assume_unique=True).sum())
        for fault in (walked.faults + piece.begin).tolist():  # what lies behind it cannot be looked at
            met += int(((gone >= fault) & (gone < fault - fault % block_size + block_size)).sum())
    return Agreement(unlogged, met < len(gone))
