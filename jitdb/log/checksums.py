"""`checksums`: a CRC per sealed block. A block is sealed when a later one has begun: it is never appended to again.

    magic        8   "JITDBSUM"
    change       8   as in the journal's entries
    generation   u32 as in meta
    crc          u32 of the 20 bytes before
    then, per block of the log, 8 bytes:
    block crc    u32 crc32 of all bytes of the block
    check        u32 crc32 of block number (u64), generation (u32) and block crc (u32)

Eight zero bytes (also: an entry beyond the end of the file) mean that the block was never sealed by us: it is then
not verified. `check` tells a damaged entry from a damaged block, and puts a single flipped bit of an entry right.

Another program that deletes records does not keep our checksums. So the file holds for one `change` token only: once
another program was seen to have changed the log, the file is begun anew.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jitdb.log.onebit import differs_by_one_bit, restored_with_crc
from jitdb.log.osfile import Descriptor, FileSystem

# On disk: never change.
MAGIC: Final = b"JITDBSUM"
_HEAD: Final = struct.Struct("<8s8sI")
_CRC: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<II")
_CHECKED: Final = struct.Struct("<QII")
HEAD_SIZE: Final = _HEAD.size + _CRC.size
ENTRY_SIZE: Final = _ENTRY.size


class EntryError(Exception):
    """An entry is not what was written. (Never leaves this floor: the block counts as not verified.)"""


def encode_head(generation: int, change: bytes) -> bytes:
    """The first 24 bytes of the file."""
    head = _HEAD.pack(MAGIC, change, generation)
    return head + _CRC.pack(zlib.crc32(head))


def is_head(data: bytes) -> bool:
    """Whether this is the head of such a file, of whichever generation and change."""
    return len(data) == HEAD_SIZE and data[:8] == MAGIC and zlib.crc32(data[:-4]).to_bytes(4, "little") == data[-4:]


def encode_entry(block: int, crc: int, generation: int) -> bytes:
    """The 8 bytes of a block's entry."""
    return _ENTRY.pack(crc, zlib.crc32(_CHECKED.pack(block, generation, crc)))


def decode_entry(data: bytes, block: int, generation: int) -> int | None:
    """The block's CRC, None if it has none. Raises EntryError.

    >>> decode_entry(encode_entry(7, 0x12345678, 1), 7, 1) == 0x12345678
    True
    """
    if len(data) < ENTRY_SIZE or data == bytes(ENTRY_SIZE):
        return None
    crc, check = _ENTRY.unpack(data)
    whole = restored_with_crc(_CHECKED.pack(block, generation, crc) + _CRC.pack(check)) or b""
    if whole[:12] != _CHECKED.pack(block, generation, crc)[:12]:
        raise EntryError(f"the entry of block {block} is damaged")
    return int.from_bytes(whole[12:16], "little")


class Checksums:
    """The file of checksums of one generation and change of a log, for readers and the writer. Safe for threads."""

    def __init__(self, fs: FileSystem, path: Path, generation: int, change: bytes) -> None:
        self._fs = fs
        self._path = path
        self.generation = generation
        self._head = encode_head(generation, change)
        self._file = Descriptor.closed()
        self._opening = threading.RLock()  # the file is opened and closed by one thread while no other reads it

    @property
    def head(self) -> bytes:
        """What the file begins with, if it is of this generation and change."""
        return self._head

    def get(self, block: int) -> int | None:
        """The block's CRC, None if it has none. Raises EntryError."""
        return decode_entry(self.read(block, 1), block, self.generation)

    def read(self, first: int, count: int) -> bytes:
        """The entries of consecutive blocks as they stand in the file; of fewer blocks where it ends."""
        with self._opening:
            if not self._file.is_open and not self._open_to_read():
                return b""
            return self._fs.read(self._file.number, count * ENTRY_SIZE, HEAD_SIZE + first * ENTRY_SIZE)

    def _open_to_read(self) -> bool:
        try:
            file = Descriptor(self._fs, self._path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return False
        head = self._fs.read(file.number, HEAD_SIZE, 0)
        if head != self._head and not differs_by_one_bit(head, self._head):
            file.close()  # of an earlier generation or change, or damaged: nothing in it can be used
            return False
        self._file = file
        return True

    def open_to_write(self) -> None:
        """Make the file, or make it anew if it is of an earlier generation or change."""
        with self._opening:
            self.close()
            if not self._open_to_read():
                self._fs.replace_file(self._path, self._head)
            self.close()
            self._file = Descriptor(self._fs, self._path, os.O_RDWR)

    def rebind(self, change: bytes) -> None:
        """Another program was seen to have changed the log: the entries so far say nothing any more."""
        with self._opening:
            self.close()
            self._head = encode_head(self.generation, change)

    def put(self, first: int, crcs: Sequence[int]) -> None:
        """Set the entries of consecutive blocks."""
        data = b"".join(encode_entry(block, crc, self.generation) for block, crc in enumerate(crcs, first))
        self._fs.write(self._file.number, data, HEAD_SIZE + first * ENTRY_SIZE)

    def forget_from(self, block: int) -> None:
        """Drop the entries of this block and all later ones, durably: others will be written to their places."""
        end = HEAD_SIZE + block * ENTRY_SIZE
        if self._fs.size(self._file.number) > end:
            self._fs.truncate(self._file.number, end)
            self.sync()

    def sync(self) -> None:
        self._fs.fsync(self._file.number)

    def close(self) -> None:
        with self._opening:
            self._file.close()
