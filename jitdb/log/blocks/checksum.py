"""CRC-32, as zlib has it: the one checksum of a log, of one piece of bytes or of many blocks at once.

    a sealed block             of its bytes                   `checksums`, an entry a block   sidecar/checksums.py
    such an entry              with block, generation, flags  behind it                       sidecar/checksums.py
    heads, entries, files of   of all bytes before it         at the end of each              sidecar/framing.py
    the sidecar
    bytes about to be written  of all of them                 `commit`: data_crc              sidecar/journal.py
    the last, open block       up to the log's end            `commit`: data_crc              sidecar/journal.py
    the newest record          of its bytes                   `commit`: last_record_crc       sidecar/journal.py
    chains of lengths          of the headers of a block      `commit`: first_, tail_chain    sidecar/journal.py
    the list of deletions      of its entries without theirs  `commit`: start                 sidecar/deletions.py

Indexes (indexes/segment.py, indexes/files/file.py) and files beside JSON Lines (log/lines/) have formats of their own,
with the same CRC-32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from jitdb.common.zlib import crc32 as crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Ints: TypeAlias = "NDArray[np.int64]"

# On disk: never change.
SIZE: Final = 4  # bytes, little-endian
FIELD: Final = "I"  # in formats of `struct`

# In the place of a block's checksum, where these are numbers:
UNKNOWN: Final = -1  # there is none: the block is not verified
DAMAGED: Final = -2  # the block is known to be damaged


def seal(body: bytes) -> bytes:
    """The bytes, and their checksum behind them."""
    return body + crc32(body).to_bytes(SIZE, "little")


def is_sealed(data: bytes) -> bool:
    """Whether the bytes end with the checksum of those before it."""
    return crc32(data[:-SIZE]).to_bytes(SIZE, "little") == data[-SIZE:]


def crcs_of_rows(rows: Bytes) -> NDArray[np.uint32]:
    """That of each of these rows of a few bytes, with a step a column."""
    import numpy as np

    first, rest = (1 << 8) - 1, (1 << 32) - (1 << 24)  # what begins and ends each CRC changes of a byte's entry
    table = np.array([crc32(bytes([byte ^ first])) ^ rest for byte in range(1 << 8)], np.uint32)
    crcs = np.full(len(rows), (1 << 32) - 1, np.uint32)
    for column in rows.T:
        crcs = table[(crcs ^ column) & first] ^ (crcs >> 8)
    return ~crcs


class Room(NamedTuple):
    """Arrays that a walk fills: see walk_kernels.walk. `wrong` has room for the number of each block."""

    starts: Ints
    lengths: Ints
    states: Bytes
    faults: Ints
    wrong: Ints

    @classmethod
    def of(cls, size: int, block_size: int, header: int) -> Room:
        """For `size` bytes of blocks: of their shortest records, as many as fit."""
        import numpy as np

        records, blocks = size // (header + 1) + 1, size // block_size + 1
        starts, lengths, faults, wrong = (np.empty(count, np.int64) for count in (records, records, blocks, blocks))
        return cls(starts, lengths, np.empty(records, np.uint8), faults, wrong)


class Counts(NamedTuple):
    records: int
    faults: int
    wrong: int


def walk_verified(data: Bytes, size: int, block_size: int, header: int, sums: Ints, room: Room) -> Counts:
    """walk_kernels.walk over `data[:size]`, and the numbers in it of the blocks that do not have their CRC: `wrong`.

    `sums` are those of the first blocks, or UNKNOWN, or DAMAGED. Only whole blocks are verified; all are walked.
    """
    from jitdb.log.blocks.walk_kernels import walk

    wrong = mismatches(data, size, block_size, sums)
    room.wrong[: len(wrong)] = wrong
    records, faults = walk(data, size, block_size, header, room.starts, room.lengths, room.states, room.faults)
    return Counts(records, faults, len(wrong))


def mismatches(data: Bytes, size: int, block_size: int, sums: Ints) -> list[int]:
    """The numbers of the wrong blocks among those of `data[:size]`."""
    view = data.data
    found = []
    for number, expected in enumerate(sums[: -(-size // block_size)].tolist()):
        stop = (number + 1) * block_size
        if expected == DAMAGED or (
            expected != UNKNOWN and stop <= size and crc32(view[stop - block_size : stop]) != expected
        ):
            found.append(number)
    return found


def crcs_of(data: Bytes, size: int, block_size: int, numbers: Ints) -> Ints:
    """The CRCs of the blocks of `data[:size]` with these numbers, of which the last one may be cut short."""
    import numpy as np

    view = data.data[:size]
    begins = (numbers * block_size).tolist()
    return np.array([crc32(view[begin : begin + block_size]) for begin in begins], np.int64)
