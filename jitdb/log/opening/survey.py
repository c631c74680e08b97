"""How far a log's bytes speak for themselves: where no journal tells, or beyond what it tells."""

from __future__ import annotations

import zlib
from typing import Final

from jitdb.log.blocks.layout import header_size, round_up
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.codecs import Codec
from jitdb.log.io.osfile import FileSystem
from jitdb.log.sidecar import journal

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
