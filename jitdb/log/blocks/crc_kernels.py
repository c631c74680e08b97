"""The compiled half of crc.py. Used only where crc.is_compiled() says so: uncompiled, none of it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.kernels import WAY, kernel, part
from jitdb.log.blocks.checksum import DAMAGED, UNKNOWN
from jitdb.log.blocks.crc_arithmetic import SMALLEST, tables
from jitdb.log.blocks.walk_kernels import walk_one

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8

if WAY == "numba":  # the instructions themselves, for the compiler
    from jitdb.log.blocks.crc_folding import fold

_TABLES = tables()
_BYTE = np.uint64(255)
_WORD = np.uint64(0xFFFFFFFF)


@part
def sixteen(first: Any, last: Any) -> Any:
    """The remainder of 16 bytes, given as two words; uint64, as numba computes anyway."""
    remainder = np.uint64(0)
    for row in range(8):
        shift = np.uint64(8 * row)
        remainder ^= _TABLES[15 - row, (first >> shift) & _BYTE] ^ _TABLES[7 - row, (last >> shift) & _BYTE]
    return remainder


@kernel
def crc32(data: U8, begin: int, stop: int) -> int:
    """zlib.crc32(data[begin:stop]), as int64. The bounds must be those of a slice inside data."""
    remainder = _WORD
    position = begin
    if stop - begin >= SMALLEST:
        first, last, position = fold(data, begin, stop, remainder)
        remainder = sixteen(first, last)
    for at in range(position, stop):
        remainder = (remainder >> np.uint64(8)) ^ _TABLES[0, (remainder ^ np.uint64(data[at])) & _BYTE]
    return np.int64(remainder ^ _WORD)


@kernel
def decode_entries(entries: U8, first: int, generation: int, sums: I64, doubtful: I64) -> int:
    """Fill `sums` with the CRCs of good entries, `doubtful` with the numbers of damaged ones; how many of these.

    Among those are the ones whose CRC is 0, which may be no checksums (see Entry.is_doubt).
    """
    left = 0
    for number in range(min(entries.shape[0] // 8, sums.shape[0], doubtful.shape[0])):
        entry = np.uint64(0)
        for byte in range(8):
            entry |= np.uint64(entries[8 * number + byte]) << np.uint64(8 * byte)
        if entry == 0:
            continue
        crc, check = entry & _WORD, entry >> np.uint64(32)
        checked = np.uint64(generation) | (crc << np.uint64(32))
        remainder = sixteen(np.uint64(first + number) ^ _WORD, checked)
        is_good = remainder ^ _WORD == check
        for flags in range(1, 4):
            flagged = (remainder >> np.uint64(8)) ^ _TABLES[0, (remainder ^ np.uint64(flags)) & _BYTE]
            is_good = is_good or flagged ^ _WORD == check
        if is_good and crc != 0:
            sums[number] = np.int64(crc)
        else:
            doubtful[left] = number
            left += 1
    return left


@kernel
def crcs_of(data: U8, size: int, block_size: int, numbers: I64, crcs: I64) -> None:
    """See crc.crcs_of."""
    size = min(size, data.shape[0])
    for at in range(min(numbers.shape[0], crcs.shape[0])):
        begin = max(0, min(numbers[at] * block_size, size))
        crcs[at] = crc32(data, begin, min(begin + block_size, size))


@kernel
def walk_verified(
    data: U8, size: int, block_size: int, header: int, sums: I64,
    starts: I64, lengths: I64, deleted: U8, faults: I64, wrong: I64,
) -> tuple[int, int, int]:  # fmt: skip
    """See crc.walk_verified."""
    count = 0
    fault_count = 0
    wrong_count = 0
    size = min(size, data.shape[0])
    begin = 0
    number = 0
    while begin < size:
        if number < sums.shape[0] and sums[number] != UNKNOWN and wrong_count < wrong.shape[0]:
            is_wrong = sums[number] == DAMAGED
            if not is_wrong and begin + block_size <= size:
                is_wrong = crc32(data, begin, begin + block_size) != sums[number]
            if is_wrong:
                wrong[wrong_count] = number
                wrong_count += 1
        count, fault = walk_one(data, begin, size, block_size, header, starts, lengths, deleted, count)
        if fault >= 0 and fault_count < faults.shape[0]:
            faults[fault_count] = fault
            fault_count += 1
        begin += block_size
        number += 1
    return count, fault_count, wrong_count
