"""The walk over many blocks, compiled. Imported only where it pays: loading numba takes as long as walking 300 MB.

The semantics are those of blocks.walk_block. No chain of lengths, however hostile, makes it read past a block, past
`size`, or write past its output arrays; with JITDB_KERNELS=python the same code runs under numpy's bounds checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.kernels import kernel, part

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8


@part
def walk_one(
    data: U8, begin: int, size: int, block_size: int, header: int,
    starts: I64, lengths: I64, deleted: U8, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Walk the block that begins at `begin`; the first `count` places of the outputs are taken.

    Gives how many are taken then, and the position of the header behind which the rest is lost, -1 if nothing is.
    """
    room_for = min(starts.shape[0], lengths.shape[0], deleted.shape[0])
    limit = min(begin + block_size, size)
    room = begin + block_size - header
    position = begin
    while position + header <= limit and count < room_for:
        length: Any = np.int64(data[position]) | (np.int64(data[position + 1]) << 8)
        if header == 4:
            length |= (np.int64(data[position + 2]) << 16) | (np.int64(data[position + 3]) << 24)
        if length == 0:
            break
        start = position + header
        after = start + length
        if after > room or after > limit:
            return count, position
        dead = 0
        if data[start] == 0:
            dead = 1
            for at in range(start + 1, after):
                if data[at] != 0:
                    dead = 0
                    break
        starts[count] = start
        lengths[count] = length
        deleted[count] = dead
        count += 1
        position = after
    return count, -1


@kernel
def frame(data: U8, lengths: I64, offsets: I64, start: int, header: int, out: U8) -> None:
    """Put records that lie one behind the other in `data`, each behind its header, where they are in the log.

    `out` is the log from `start` on; what lies between two blocks is left as it is. Whoever calls has placed the
    records (blocks.place_array), so all of them are within it.
    """
    at = np.int64(0)
    for record in range(lengths.shape[0]):
        length = np.int64(lengths[record])
        position = np.int64(offsets[record]) - start
        for byte in range(header):
            out[np.uint64(position + byte)] = (length >> (8 * byte)) & 255
        position += header
        for byte in range(length):
            out[np.uint64(position + byte)] = data[np.uint64(at + byte)]
        at += length


@kernel
def walk(
    data: U8, size: int, block_size: int, header: int,
    starts: I64, lengths: I64, deleted: U8, faults: I64,
) -> tuple[int, int]:  # fmt: skip
    """Walk the blocks in `data[:size]`, which begins on a block boundary.

    Fills, per record, `starts` (of its first byte in data), `lengths` (bytes) and `deleted` (0 or 1); and `faults`
    with the positions of headers behind which the rest of a block is lost. Each output array has room for what it
    may get: a record per `header + 1` bytes, a fault per block. Gives the number of records and of faults.
    """
    count = 0
    fault_count = 0
    begin = 0
    while begin < size:
        count, fault = walk_one(data, begin, size, block_size, header, starts, lengths, deleted, count)
        if fault >= 0 and fault_count < faults.shape[0]:
            faults[fault_count] = fault
            fault_count += 1
        begin += block_size
    return count, fault_count
