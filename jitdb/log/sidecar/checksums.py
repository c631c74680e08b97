"""`checksums`: a CRC per sealed block. A block is sealed when a later one begins: nothing is appended to it any more.

docs/format-log.md describes its bytes. A block without an entry, or with a damaged one, is not verified, until repair,
or a deletion in the block, writes the entry.

Other programs do not keep our checksums: once one was seen to change the log, all entries are OLD. An UNPROVEN entry is
of a block whose records had no checksum before: it shows changes from then on, but not what was written.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.log.blocks.checksum import FIELD, crc32
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import EntryFile, Frame

# On disk: never change.
MAGIC: Final = b"JITDBSUM"
_HEAD: Final = Frame(MAGIC, "8sI")
_ENTRY: Final = struct.Struct(f"<{FIELD}{FIELD}")  # the CRC of the block, and the check of the entry itself
_CHECKED: Final = struct.Struct(f"<QI{FIELD}")
OLD: Final = 1  # another program changed the log later
UNPROVEN: Final = 2  # of the bytes as they were found, which may not be those that were written
FLAGS: Final = (0, OLD, UNPROVEN, OLD | UNPROVEN)
HEAD_SIZE: Final = _HEAD.size
ENTRY_SIZE: Final = _ENTRY.size
NONE: Final = bytes(ENTRY_SIZE)


def encode_head(generation: int, change: bytes) -> bytes:
    return _HEAD.pack(change, generation)


def generation_in(head: bytes) -> int | None:
    """The generation of the log in the head; None where the head is damaged."""
    fields = _HEAD.unpack(head)
    return None if fields is None else int(fields[1])


class Entry(NamedTuple):
    crc: int
    flags: int = 0

    @property
    def is_old(self) -> bool:
        return bool(self.flags & OLD)

    @property
    def is_proof(self) -> bool:
        """Whether a block that fits is what was written."""
        return not self.flags & UNPROVEN

    @property
    def is_doubt(self) -> bool:
        """Whether it is DOUBT, which is no checksum, see is_doubted. OLD or not."""
        return self.crc == 0 and not self.is_proof


DOUBT: Final = Entry(0, UNPROVEN)


def encode_entries(entries: Iterable[Entry | None], generation: int, first: int = 0) -> bytes:
    """The bytes of the entries of consecutive blocks; None stands for a block without one."""
    return b"".join(
        NONE if entry is None else _ENTRY.pack(entry.crc, _check(block, *entry, generation))
        for block, entry in enumerate(entries, first)
    )


def _check(block: int, crc: int, flags: int, generation: int) -> int:
    return crc32(_CHECKED.pack(block, generation, crc) + (bytes([flags]) if flags else b""))


def decode_entries(data: bytes, first: int, generation: int) -> list[Entry | None]:
    """The entries of consecutive blocks; None for one that is missing or damaged. `data` may end within one."""
    found: list[Entry | None] = []
    for block, (crc, check) in enumerate(_ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY_SIZE]), first):
        for flags in FLAGS if crc or check else ():
            if _check(block, crc, flags, generation) == check:
                found.append(Entry(crc, flags))
                break
        else:
            found.append(None)
    return found


def outdated(entries: bytes, generation: int) -> bytes:
    """The entries of all blocks, OLD."""
    found = decode_entries(entries, 0, generation)
    return encode_entries([entry and Entry(entry.crc, entry.flags | OLD) for entry in found], generation)


def fits(data: bytes, entry: Entry) -> bool | None:
    """Whether a sealed block has its checksum; None if another program may have changed the block."""
    return True if crc32(data) == entry.crc else None if entry.is_old else False


class Checksums(EntryFile):
    """The file of checksums of one generation and change of a log, for readers and the writer. Safe for threads."""

    def __init__(self, fs: FileSystem, path: Path, generation: int, change: bytes) -> None:
        super().__init__(fs, path)
        self.generation = generation
        self.head = encode_head(generation, change)  # what the file begins with, if it is of these
        self._outdated = False  # another program changed the log since the file was begun
        # The file is opened and closed by one thread while no other reads it.
        self._opening = fork_safe(threading.RLock())

    def get(self, block: int) -> Entry | None:
        """The block's entry, None if it has none that can be read."""
        entry = self._entry(block)
        if entry is None or entry.is_doubt:  # left in an older copy of the file, when the block was the last one
            return None
        return entry if not self._outdated else Entry(entry.crc, entry.flags | OLD)

    def _entry(self, block: int) -> Entry | None:
        return next(iter(decode_entries(self.read(block, 1), block, self.generation)), None)

    def is_damaged(self, block: int) -> bool:
        """Whether the block has an entry that nobody can read any more."""
        data = self.read(block, 1)
        return len(data) == ENTRY_SIZE and any(data) and self._entry(block) is None

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
        # Entries are valid in their generation alone: of a head that is not ours, the worst is another change.
        self._outdated = self._fs.read(file.number, HEAD_SIZE, 0) != self.head
        self._file = file
        return True

    def open_to_write(self) -> bool:
        """Open the file; make it if there is none, and write it anew, with all entries OLD, if another program changed
        the log since. Gives whether neither was needed.
        """
        with self._opening:
            self.close()
            is_kept = self._open_to_read() and not self._outdated
            if not self._file.is_open:
                self._fs.replace_file(self._path, self.head)
            elif self._outdated:
                number = self._file.number
                entries = self._fs.read(number, self._fs.size(number), HEAD_SIZE)
                self._fs.replace_file(self._path, self.head + outdated(entries, self.generation))
            self._outdated = False
            self.close()
            self._file = Descriptor(self._fs, self._path, os.O_RDWR)
        return is_kept

    def rebind(self, change: bytes) -> None:
        """Take all entries for OLD: another program changed the log."""
        with self._opening:
            self.close()
            self.head = encode_head(self.generation, change)

    def put(self, first: int, crcs: Iterable[int], flags: int = 0) -> None:
        data = encode_entries([Entry(crc, flags) for crc in crcs], self.generation, first)
        self._fs.write(self._file.number, data, HEAD_SIZE + first * ENTRY_SIZE)

    def forget_from(self, block: int) -> None:
        """Drop the entries of this block and all later ones, durably."""
        end = HEAD_SIZE + block * ENTRY_SIZE
        if self._fs.size(self._file.number) > end:
            self._fs.truncate(self._file.number, end)
            self.sync()

    def is_doubted(self, block: int) -> bool:
        """Whether a writer noted that nothing proves this block, the log's last one, which has no checksum yet."""
        entry = self._entry(block)
        return self.is_damaged(block) if entry is None else entry.is_doubt

    def close(self) -> None:
        with self._opening:
            super().close()
