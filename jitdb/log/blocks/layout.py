"""The numbers of the log format, shared by everything that reads or writes one (docs/format-log.md).

A header, which is a record's length, stands before the record; one of zero ends the block, so every block keeps room
for it. A deleted record keeps its header, and all its bytes are zero.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.words import shown
from jitdb.errors import LogError

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


def header_struct(block_size: int) -> struct.Struct:
    return _U16 if block_size <= LARGEST_U16_BLOCK else _U32


def header_reader(block_size: int) -> Callable[[Any, int], tuple[Any, ...]]:
    """`read(buffer, position) -> (length,)`."""
    return header_struct(block_size).unpack_from


def round_up(offset: int, block_size: int) -> int:
    """The first block boundary at or after `offset`: the size of a file whose last record ends at `offset`."""
    return -(-offset // block_size) * block_size
