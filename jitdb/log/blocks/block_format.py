"""The format of blocks (docs/format-log.md): its numbers; how records are placed, packed, walked and cut. No I/O.

A header, which is a record's length, stands before the record; one of zero ends the block, so every block keeps room
for it. A deleted record keeps its header, and all its bytes are zero.

**Walking** is said once, here, and repeated in compiled form by walk_kernels: starting at the block's beginning, a
record is believed while its header is not zero and it leaves room for the zero header that ends the block. One that
does not is a fault: nothing behind it in this block can be found. A block that begins with zero is empty.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.words import shown
from jitdb.errors import LogError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.codecs.base import Buffer


# All of these are on disk: never change them.
U16_SIZE: Final = 2  # a header in blocks of up to LARGEST_U16_BLOCK bytes, little-endian
U32_SIZE: Final = 4  # a header in larger blocks, little-endian; no other program writes these
LARGEST_U16_BLOCK: Final = 1 << 16
DEFAULT_BLOCK_SIZE: Final = 64 * 1024  # bytes; what async-append-only-log writes unless it is told otherwise

MIN_BLOCK_SIZE: Final = 16  # bytes; smaller ones hold next to nothing
MAX_BLOCK_SIZE: Final = 16 * 1024 * 1024  # bytes; a block is read whole before its first record is believed

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")


def check_block_size(block_size: Any) -> int:
    """`block_size` itself. Raises LogError unless it is an integer from 16 bytes to 16 MiB."""
    if isinstance(block_size, bool) or not isinstance(block_size, int):
        raise LogError(f"block_size is a number of bytes, not {shown(block_size)}")
    if not MIN_BLOCK_SIZE <= block_size <= MAX_BLOCK_SIZE:
        raise LogError(
            f"block_size {shown(block_size)} is outside {MIN_BLOCK_SIZE} bytes to {MAX_BLOCK_SIZE:,} (16 MiB)"
        )
    return block_size


def header_size(block_size: int) -> int:
    """Bytes of a record's header."""
    return U16_SIZE if block_size <= LARGEST_U16_BLOCK else U32_SIZE


def largest_record(block_size: int) -> int:
    """Bytes of the largest record: a block less its header and the zero header that ends the block."""
    header = header_size(block_size)
    return block_size - header - header


def block_size_for(size: int) -> int:
    """The smallest block size, a power of two, for a record of `size` bytes.

    >>> block_size_for(65_532), block_size_for(65_533)
    (65536, 131072)
    """
    needed = 1 << (size - 1).bit_length()
    while largest_record(needed) < size:
        needed *= 2
    return needed


def header_struct(block_size: int) -> struct.Struct:
    return _U16 if block_size <= LARGEST_U16_BLOCK else _U32


def header_reader(block_size: int) -> Callable[[Any, int], tuple[Any, ...]]:
    """`read(buffer, position) -> (length,)`."""
    return header_struct(block_size).unpack_from


def round_up(offset: int, block_size: int) -> int:
    """The first block boundary at or after `offset`: the size of a file whose last record ends at `offset`."""
    return -(-offset // block_size) * block_size


_HEADERS: list[bytes] = []  # _HEADERS[n] is the u16 header of a record of n bytes; made at the first write


class Walk(NamedTuple):
    positions: list[int]  # of headers, from the block's beginning
    lengths: list[int]
    end: int  # just past the last record: where the next one would begin
    fault: bool  # the header at `end` is of no record that could be there

    def records(self, block: bytes, header: int) -> list[bytes]:
        """Their bytes, each behind a header of so many."""
        return cut(block, [position + header for position in self.positions], self.lengths)


def walk_block(block: Buffer, used: int, block_size: int) -> Walk:
    """The records within the first `used` bytes of a block.

    >>> walk_block(bytes([1, 0, 65, 2, 0, 0, 0, 0, 0]) + bytes(7), 16, 16)
    Walk(positions=[0, 3], lengths=[1, 2], end=7, fault=False)
    """
    read, header = header_reader(block_size), header_size(block_size)
    limit = min(used, len(block), block_size)
    last = limit - header
    positions: list[int] = []
    lengths: list[int] = []
    position = 0
    while position <= last:
        (length,) = read(block, position)
        if length == 0:
            break
        positions.append(position)
        lengths.append(length)
        position += header + length
    # A record that reaches too far ends the loop, so only the last one can be a fault.
    if position > min(limit, block_size - header):
        return Walk(positions, lengths[:-1], positions.pop(), True)
    return Walk(positions, lengths, position, False)


def is_zero(data: Buffer) -> bool:
    """Whether all bytes are zero: the mark of a deleted record."""
    return not any(data) if len(data) < 64 else bytes(data).count(0) == len(data)


class Placement(NamedTuple):
    offsets: list[int]
    breaks: list[int]  # numbers of the records that begin a new block
    end: int  # just past the last record


def place(lengths: list[int] | npt.NDArray[np.int64], end: int, block_size: int) -> Placement:
    """Where records of these lengths go in a log that ends at `end`. Each must fit largest_record."""
    if not isinstance(lengths, list):
        starts, breaks, end = place_array(lengths, end, block_size)
        return Placement(starts.tolist(), breaks, end)
    header = header_size(block_size)
    limit = block_limit(end, block_size)
    offsets: list[int] = []
    breaks = []
    for number, length in enumerate(lengths):
        after = end + header + length
        if after > limit:
            end = limit + header
            limit += block_size
            after = end + header + length
            breaks.append(number)
        offsets.append(end)
        end = after
    return Placement(offsets, breaks, end)


def place_array(
    lengths: npt.NDArray[np.int64], end: int, block_size: int
) -> tuple[npt.NDArray[np.int64], list[int], int]:
    """As place, with the offsets as an array."""
    import numpy as np

    header = header_size(block_size)
    ends = np.cumsum(lengths + header)  # as if there were no blocks
    shifts = np.empty(len(lengths), np.int64)
    breaks: list[int] = []
    limit = block_limit(end, block_size)
    first, before = 0, 0  # the block's first record, and the bytes of all records before it
    while first < len(lengths):
        # as many as fit between `end` and `limit`
        stop = int(ends.searchsorted(before + limit - end, side="right"))
        shifts[first:stop] = end - before
        if stop > first:
            end += int(ends[stop - 1]) - before
            before, first = int(ends[stop - 1]), stop
        if first < len(lengths):
            breaks.append(first)
            end = limit + header
            limit += block_size
    ends += shifts
    return ends - lengths - header, breaks, end


def block_limit(end: int, block_size: int) -> int:
    """Where records must end in the block in which a log that ends at `end` goes on; at a boundary, the next block."""
    return end - end % block_size + block_size - header_size(block_size)


def pack(records: Sequence[bytes], lengths: Iterable[int], block_size: int) -> bytes:
    """The records, of these lengths, with their headers, as in a block."""
    parts: list[bytes] = [b""] * (2 * len(records))
    parts[::2] = headers(lengths, block_size)
    parts[1::2] = records
    return b"".join(parts)


def headers(lengths: Iterable[int], block_size: int) -> Iterable[bytes]:
    if header_size(block_size) == 4:
        return list(map(header_struct(block_size).pack, lengths))
    if not _HEADERS:
        _HEADERS.extend(map(header_struct(block_size).pack, range(1 << 16)))
    return list(map(_HEADERS.__getitem__, lengths))


def cut_run(data: Buffer, start: int, lengths: Sequence[int], block_size: int) -> Sequence[bytes]:
    """Records that follow each other in one block, the first one's header at `start`.

    One call of struct with a format such as `2x5s2x7s` cuts them all, in half the time of as many slices.
    """
    layout = f"{header_size(block_size)}x%ds" * len(lengths)
    return struct.Struct(layout % tuple(lengths)).unpack_from(data, start)


def cut(data: bytes, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
    """The records whose bytes begin at `starts`, wherever they are."""
    return [data[start : start + length] for start, length in zip(starts, lengths, strict=True)]
