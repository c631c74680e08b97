"""Which checksum guards what. All are of one kind, CRC-32 as zlib has it, whose width and polynomial stand here alone.

    a sealed block             of its bytes                   `checksums`, an entry a block   sidecar/checksums.py
    such an entry              with block, generation, flags  behind it                       sidecar/checksums.py
    heads, entries, files of   of all bytes before it         at the end of each              sidecar/framing.py
    the sidecar
    bytes about to be written  of all of them                 `commit`: data_crc              sidecar/journal.py
    the last, open block       up to the log's end            `commit`: data_crc              sidecar/journal.py
    the newest record          of its bytes                   `commit`: last_record_crc       sidecar/journal.py
    chains of lengths          of the headers of a block      `commit`: first_, tail_chain    sidecar/journal.py
    the list of deletions      of its entries without theirs  `commit`: start                 sidecar/deletions.py

crc.py, which has it of many blocks, checksums.py of the sidecar, of many entries, and onebit.py there, which reckons
backwards, derive from here. Indexes (indexes/segment.py, indexes/files/file.py) and files beside JSON Lines
(log/lines/) have formats of their own, with the same CRC-32.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from jitdb.common.zlib import crc32 as crc32

# On disk: never change.
POLYNOMIAL: Final = 0xEDB88320  # zlib's, reflected: the first bit of a byte, its lowest, has the highest power
SIZE: Final = 4  # bytes, little-endian
MASK: Final = (1 << 8 * SIZE) - 1
FIELD: Final = "I"  # in formats of `struct`

# In the place of a block's checksum, where these are numbers:
UNKNOWN: Final = -1  # the block is not verified
DAMAGED: Final = -2  # the block is known not to be what was written


def seal(body: bytes) -> bytes:
    """The bytes, and their checksum behind them."""
    return body + crc32(body).to_bytes(SIZE, "little")


def is_sealed(data: bytes) -> bool:
    """Whether the bytes end with the checksum of those before it."""
    return crc32(data[:-SIZE]).to_bytes(SIZE, "little") == data[-SIZE:]


@cache
def byte_remainders() -> tuple[int, ...]:
    """What each byte gives to the remainder, if nothing is behind it.

    >>> [hex(byte_remainders()[byte]) for byte in (0, 1, 128)]
    ['0x0', '0x77073096', '0xedb88320']
    """
    remainders = []
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (POLYNOMIAL if remainder & 1 else 0)
        remainders.append(remainder)
    return tuple(remainders)
