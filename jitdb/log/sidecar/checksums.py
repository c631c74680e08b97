"""`checksums`: a CRC per sealed block. A block is sealed when a later one has begun: it is never appended to again.

docs/format-log.md has its bytes. A block without an entry was never sealed by us, and is not verified; nor is one whose
entry is damaged, until repair, or the next deletion in the block, writes the entry anew.

Another program that deletes records does not keep our checksums: once one was seen to have changed the log, all entries
are OLD. UNPROVEN are those of blocks whose records had none before: what becomes of them from then on is noticed.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.log.blocks.checksum import FIELD, UNKNOWN, crc32
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import EntryFile, Frame

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# On disk: never change.
MAGIC: Final = b"JITDBSUM"
_HEAD: Final = Frame(MAGIC, "8sI")
_ENTRY: Final = struct.Struct(f"<{FIELD}{FIELD}")  # the CRC of the block, and the check of the entry itself
_CHECKED: Final = struct.Struct(f"<QI{FIELD}")
OLD: Final = 1  # another program changed the log since
UNPROVEN: Final = 2  # these are the bytes as they were found
FLAGS: Final = (0, OLD, UNPROVEN, OLD | UNPROVEN)
HEAD_SIZE: Final = _HEAD.size
ENTRY_SIZE: Final = _ENTRY.size
NONE: Final = bytes(ENTRY_SIZE)


def encode_head(generation: int, change: bytes) -> bytes:
    return _HEAD.pack(change, generation)


def generation_in(head: bytes) -> int | None:
    """The generation of the log in these first bytes; None where they are no such head."""
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
        """Whether it is no checksum, but what a writer leaves in the place of one, see is_doubted."""
        return self.crc == 0 and not self.is_proof


def encode_entry(block: int, crc: int, generation: int, flags: int = 0) -> bytes:
    return _ENTRY.pack(crc, crc32(_checked(block, crc, generation, flags)))


def _checked(block: int, crc: int, generation: int, flags: int) -> bytes:
    return _CHECKED.pack(block, generation, crc) + (bytes([flags]) if flags else b"")


def encode_entries(first: int, crcs: Iterable[int], generation: int, flags: int = 0) -> bytes:
    """The entries of consecutive blocks; none for a CRC below 0, which is not known."""
    return b"".join(
        NONE if crc < 0 else encode_entry(block, crc, generation, flags) for block, crc in enumerate(crcs, first)
    )


def decode_entry(data: bytes, block: int, generation: int) -> Entry | None:
    """The block's entry; None if it has none, or it is damaged."""
    if len(data) < ENTRY_SIZE or data == bytes(ENTRY_SIZE):
        return None
    crc, check = _ENTRY.unpack(data)
    for flags in FLAGS:
        if crc32(_checked(block, crc, generation, flags)) == check:
            return Entry(crc, flags)
    return None


def decode_entries(data: bytes, first: int, generation: int, count: int) -> npt.NDArray[np.int64]:
    """int64 [count]: the CRCs in the entries of blocks from `first` on; UNKNOWN where there is none, or a damaged one.

    `data` may end early, as the file may.
    """
    import numpy as np

    from jitdb.log.blocks.checksum import crcs_of_rows

    there = min(count, len(data) // ENTRY_SIZE)
    entries = np.frombuffer(data, [("crc", "<u4"), ("check", "<u4")], there)
    checked = np.empty(there, [("block", "<u8"), ("generation", "<u4"), ("crc", "<u4"), ("flags", "u1")])
    checked["block"], checked["generation"], checked["crc"] = np.arange(there) + first, generation, entries["crc"]
    rows, is_good = checked.view(np.uint8).reshape(there, checked.itemsize), np.zeros(there, np.bool_)
    for flags in FLAGS:
        checked["flags"] = flags
        is_good |= crcs_of_rows(rows if flags else rows[:, :-1]) == entries["check"]
        if is_good.all():
            break
    sums = np.full(count, UNKNOWN, np.int64)
    sums[:there][is_good] = entries["crc"][is_good]
    for number in np.flatnonzero(entries["crc"] == 0).tolist():  # which may be none
        entry = decode_entry(data[number * ENTRY_SIZE : (number + 1) * ENTRY_SIZE], first + number, generation)
        sums[number] = UNKNOWN if entry is None or entry.is_doubt else 0
    return sums


def outdated(entries: bytes, generation: int) -> bytes:
    """The entries of all blocks, OLD."""
    found = []
    for block, at in enumerate(range(0, len(entries), ENTRY_SIZE)):
        entry = decode_entry(entries[at : at + ENTRY_SIZE], block, generation)
        found.append(NONE if entry is None else encode_entry(block, entry.crc, generation, entry.flags | OLD))
    return b"".join(found)


def fits(data: bytes, entry: Entry) -> bool | None:
    """Whether a sealed block has its checksum; None where another program may have changed the block since."""
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
        entry = decode_entry(self.read(block, 1), block, self.generation)
        if entry is None or entry.is_doubt:  # left in an older copy of the file, when the block was the last one
            return None
        return entry if not self._outdated else Entry(entry.crc, entry.flags | OLD)

    def is_damaged(self, block: int) -> bool:
        """Whether the block has an entry that nobody can read any more."""
        data = self.read(block, 1)
        return len(data) == ENTRY_SIZE and any(data) and decode_entry(data, block, self.generation) is None

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
        """Make the file, or make it anew, with all entries OLD, if it is of an earlier change; whether neither was
        needed: then nobody else changed the log since.
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
        """Another program was seen to have changed the log: the entries so far are OLD."""
        with self._opening:
            self.close()
            self.head = encode_head(self.generation, change)

    def put(self, first: int, crcs: Iterable[int], flags: int = 0) -> None:
        data = encode_entries(first, crcs, self.generation, flags)
        self._fs.write(self._file.number, data, HEAD_SIZE + first * ENTRY_SIZE)

    def forget_from(self, block: int) -> None:
        """Drop the entries of this block and all later ones, durably: others will be written to their places."""
        end = HEAD_SIZE + block * ENTRY_SIZE
        if self._fs.size(self._file.number) > end:
            self._fs.truncate(self._file.number, end)
            self.sync()

    def is_doubted(self, block: int) -> bool:
        """Whether a writer left word that nothing proves this block, the log's last one, which has no checksum yet."""
        entry = decode_entry(self.read(block, 1), block, self.generation)
        return self.is_damaged(block) if entry is None else entry.is_doubt

    def close(self) -> None:
        with self._opening:
            super().close()
