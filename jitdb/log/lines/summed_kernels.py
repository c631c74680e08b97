"""Lines and the CRCs of blocks in one pass: a block is walked while it is in the cache, where its CRC brought it.

Like crc_kernels, made for each width of registers, and run only where crc.is_compiled() says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.common.kernels import kernel
from jitdb.log.blocks.crc_kernels import crc32
from jitdb.log.lines.line_kernels import lines_before

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8


@kernel
def walk_summed(
    data: U8, begin: int, last: int, stop: int, starts: I64, lengths: I64, states: U8,
    size: int, block_size: int, crcs: I64,
) -> int:  # fmt: skip
    """line_kernels.walk_lines, and zlib.crc32 of each block of data[:size], the last of which may be cut short."""
    stop, size = min(stop, data.shape[0]), min(size, data.shape[0])
    room = min(starts.shape[0], lengths.shape[0], states.shape[0])
    count = 0
    position = max(0, begin)
    at = position
    for number in range(crcs.shape[0]):
        first = min(number * block_size, size)
        limit = min(first + block_size, size)
        crcs[number] = crc32(data, first, limit)
        position, at, count = lines_before(
            data, position, at, last, min(limit, stop), stop, starts, lengths, states, room, count
        )
    lines: int = lines_before(data, position, at, last, stop, stop, starts, lengths, states, room, count)[2]
    return lines
