"""Records with a CRC: what the files of the sidecar are made of, heads, entries and whole files alike.

    magic    8   of a head or a whole file; an entry has none
    fields       as the format says, little-endian
    rest         bytes of any length, in a format that ends open
    crc      u32 crc32 of all bytes before

Bytes that do not fit their CRC are not what was written. Where one flipped bit explains that (onebit.py), `restore`
puts it back. It is asked only where nobody could do so later, because whoever opens the log goes on without what cannot
be read, or writes something else in its place; what can wait is left to repair.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from jitdb.errors import LogCorrupt
from jitdb.log.blocks.packing import trimmed
from jitdb.log.sidecar.onebit import restored_with_crc

CRC_SIZE: Final = 4

T = TypeVar("T")


def seal(body: bytes) -> bytes:
    """The bytes, and their CRC behind them.

    >>> is_sealed(seal(b"abc")), is_sealed(b"abc")
    (True, False)
    """
    return body + zlib.crc32(body).to_bytes(CRC_SIZE, "little")


def is_sealed(data: bytes) -> bool:
    """Whether the bytes end with the CRC of those before."""
    return zlib.crc32(data[:-CRC_SIZE]).to_bytes(CRC_SIZE, "little") == data[-CRC_SIZE:]


class Frame:
    """The format of one kind of record: its magic, and its fields as `struct` has them, without a byte order.

    >>> frame = Frame(b"MAGICNUM", "IH")
    >>> data = frame.pack(7, 3)
    >>> len(data) == frame.size == 18, frame.unpack(data), frame.unpack(data[:-1] + b"?")
    (True, (7, 3), None)
    """

    def __init__(self, magic: bytes, fields: str, *, open_ended: bool = False) -> None:
        """`open_ended`: bytes of any length follow the fields; they are given and taken as the last one."""
        self._magic = magic
        self._fields = struct.Struct(f"<{len(magic)}s{fields}")
        self._open_ended = open_ended
        self.size = self._fields.size + CRC_SIZE  # bytes, without such a rest

    def pack(self, *fields: Any) -> bytes:
        """The record of these fields."""
        rest = fields[-1] if self._open_ended else b""
        return seal(self._fields.pack(self._magic, *(fields[:-1] if self._open_ended else fields)) + rest)

    def unpack(self, data: bytes) -> tuple[Any, ...] | None:
        """The fields; None where this is not what was written."""
        if len(data) != self.size and not (self._open_ended and len(data) > self.size):
            return None
        if int.from_bytes(data[-CRC_SIZE:], "little") != zlib.crc32(data[:-CRC_SIZE]):
            return None
        magic, *fields = self._fields.unpack_from(data)
        if magic != self._magic:
            return None
        return (*fields, data[self.size - CRC_SIZE : -CRC_SIZE]) if self._open_ended else tuple(fields)

    def restore(self, data: bytes) -> tuple[Any, ...] | None:
        """As unpack, with one flipped bit put back."""
        return self.unpack(data) or self.unpack(restored_with_crc(data) or b"")

    def check(self, data: bytes, path: Path) -> tuple[Any, ...]:
        """As unpack, of a whole file. Raises LogCorrupt."""
        fields = self.unpack(data)
        if fields is None:
            size = f"{self.size:,} bytes" + (" or more" if self._open_ended else "")
            magic = f"that begin with {self._magic!r} and end with a matching CRC"
            raise LogCorrupt("damaged", path=path, expected=f"{size} {magic}", got=f"{len(data):,}: {data[:8]!r}…")
        return fields


class Entries(NamedTuple, Generic[T]):
    """A run of entries."""

    all: list[T | None]  # None for one that is damaged, or that nobody writes
    odd: list[int]  # numbers of those, and of the ones in which a bit was put back


def read_entries(data: bytes, size: int, decode: Callable[[bytes], T | None]) -> Entries[T]:
    """Entries of `size` bytes, one flipped bit of each put back. What is none at the end of `data` is torn."""
    data = trimmed(data, size)
    found: list[T | None] = []
    odd = []
    for at in range(0, len(data) - size + 1, size):
        part = data[at : at + size]
        entry = decode(part)
        if entry is None:
            entry = decode(restored_with_crc(part) or b"")
            odd.append(len(found))
        found.append(entry)
    while found and found[-1] is None:
        found.pop()
        odd.pop()
    return Entries(found, odd)
