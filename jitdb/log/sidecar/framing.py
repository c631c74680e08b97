"""Fields followed by a CRC of all bytes before it: heads, entries and whole files of the sidecar have this form."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.checksum import SIZE, crc32, is_sealed, seal
from jitdb.log.io.osfile import Descriptor, FileSystem

T = TypeVar("T")


class Frame:
    """The format of one kind of record: its magic, and its fields as `struct` has them, without a byte order."""

    def __init__(self, magic: bytes, fields: str, *, open_ended: bool = False) -> None:
        """`open_ended`: bytes of any length follow the fields, as the last one."""
        self._magic = magic
        self._fields = struct.Struct(f"<{len(magic)}s{fields}")
        self._open_ended = open_ended
        self.size = self._fields.size + SIZE  # bytes, without such a rest

    def pack(self, *fields: Any) -> bytes:
        rest = fields[-1] if self._open_ended else b""
        return seal(self._fields.pack(self._magic, *(fields[:-1] if self._open_ended else fields)) + rest)

    def unpack(self, data: bytes) -> tuple[Any, ...] | None:
        """The fields; None where this is not what was written."""
        if len(data) != self.size and not (self._open_ended and len(data) > self.size):
            return None
        magic, *fields = self._fields.unpack_from(data)
        if magic != self._magic or not is_sealed(data):
            return None
        return (*fields, data[self.size - SIZE : -SIZE]) if self._open_ended else tuple(fields)

    def check(self, data: bytes, path: Path) -> tuple[Any, ...]:
        """As unpack, of a whole file. Raises LogCorrupt."""
        fields = self.unpack(data)
        if fields is None:
            size = f"{self.size:,} bytes" + (" or more" if self._open_ended else "")
            magic = f"that begin with {self._magic!r} and end with a matching CRC"
            raise LogCorrupt("damaged", path=path, expected=f"{size} {magic}", got=f"{len(data):,}: {data[:8]!r}…")
        return fields


def read_entries(data: bytes, size: int, decode: Callable[[bytes], T | None]) -> list[T | None]:
    """Entries of `size` bytes; None for a damaged one before a good one. Damaged ones at the end are left out: they may
    be torn.
    """
    used = len(data.rstrip(b"\0"))  # a file may end in many zeros
    found = [decode(data[at : at + size]) for at in range(0, min(used, len(data) - size + 1), size)]
    while found and found[-1] is None:
        found.pop()
    return found


def is_torn(entry: bytes) -> bool:
    """Whether a write that was cut short left these bytes of an entry: its beginning, then zeros."""
    crc, stored = crc32(entry[:-SIZE]), int.from_bytes(entry[-SIZE:], "little")
    return stored in [crc & (1 << 8 * size) - 1 for size in range(SIZE)]


class EntryFile:
    """A file of entries, as a reader follows it or as its one writer appends to it."""

    def __init__(self, fs: FileSystem, path: Path) -> None:
        self._fs, self._path, self._file = fs, path, Descriptor.closed()
        self._end = 0  # of the file, for who appends to it

    def _is(self, found: os.stat_result) -> bool:
        """Whether this file is the one that is open: one that was written anew is another."""
        return self._file.is_open and os.path.samestat(found, self._fs.fstat(self._file.number))

    def _open_to_append(self, end: int) -> None:
        """For the lock's holder, which has read it up to `end`."""
        file = Descriptor(self._fs, self._path, os.O_RDWR)
        if self._fs.size(file.number) > end:
            self._fs.truncate(file.number, end)  # a torn entry, and whatever would follow it
        self._file, self._end = file, end

    def sync(self) -> None:
        """Make its entries durable: their writer may have been killed before it did that."""
        if self._file.is_open:
            self._fs.fsync(self._file.number)

    def close(self) -> None:
        self._file.close()
