"""`checksums`: a CRC per sealed block. A block is sealed when a later one has begun: it is never appended to again.

    magic        8   "JITDBSUM"
    change       8   as in the journal's entries
    generation   u32 as in meta
    crc          u32 of the 20 bytes before
    then, per block of the log, 8 bytes:
    block crc    u32 crc32 of all bytes of the block
    check        u32 crc32 of block number (u64), generation (u32), block crc (u32), and, where it is not 0, flags (u8)
    flags        1 OLD: another program changed the log since; 2 UNPROVEN: these are the bytes as they were found

Eight zero bytes (also: an entry beyond the end of the file) mean that the block was never sealed by us: it is then
not verified. `check` tells a damaged entry from a damaged block: the block counts as not verified, and repair puts a
single flipped bit of the entry back. So does whoever writes the entry anew, for nobody could later.

Another program that deletes records does not keep our checksums. So the file holds for one `change` token only: once
another program was seen to have changed the log, all entries are OLD. A block that fits an OLD one is still what was
written. One that does not is damaged if one flipped bit explains it and it holds no deleted record. Else it was changed
by that program.

UNPROVEN are those that repair and compaction give to blocks whose records had no checksum before: what becomes of the
block from then on is noticed, but nothing tells whether it was damaged before.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.forking import fork_safe
from jitdb.log.blocks.layout import header_size
from jitdb.log.blocks.packing import is_zero, walk_block
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.sidecar.framing import Frame
from jitdb.log.sidecar.onebit import differs_by_one_bit, find_flip, restored_with_crc

# On disk: never change.
MAGIC: Final = b"JITDBSUM"
_HEAD: Final = Frame(MAGIC, "8sI")
_ENTRY: Final = struct.Struct("<II")
_CHECKED: Final = struct.Struct("<QII")
OLD: Final = 1
UNPROVEN: Final = 2
FLAGS: Final = (0, OLD, UNPROVEN, OLD | UNPROVEN)
HEAD_SIZE: Final = _HEAD.size
ENTRY_SIZE: Final = _ENTRY.size
_NONE: Final = bytes(ENTRY_SIZE)


def encode_head(generation: int, change: bytes) -> bytes:
    """The first 24 bytes of the file."""
    return _HEAD.pack(change, generation)


def is_head(data: bytes) -> bool:
    """Whether this is the head of such a file, of whichever generation and change."""
    return _HEAD.unpack(data) is not None


def is_outdated(head: bytes, expected: bytes) -> bool:
    """Whether this is the head of such a file, of the same generation as expected and of another change."""
    return is_head(head) and head[:8] + head[16:20] == expected[:8] + expected[16:20] and head != expected


class Entry(NamedTuple):
    """What is known of a block."""

    crc: int
    flags: int = 0

    @property
    def is_old(self) -> bool:
        """Whether another program changed the log since."""
        return bool(self.flags & OLD)

    @property
    def is_proof(self) -> bool:
        """Whether a block that fits is what was written."""
        return not self.flags & UNPROVEN

    @property
    def is_doubt(self) -> bool:
        """Whether it is no checksum, but what Checksums.doubt leaves in the place of one."""
        return self.crc == 0 and not self.is_proof


def encode_entry(block: int, crc: int, generation: int, flags: int = 0) -> bytes:
    """The 8 bytes of a block's entry."""
    return _ENTRY.pack(crc, zlib.crc32(_checked(block, crc, generation, flags)))


def _checked(block: int, crc: int, generation: int, flags: int) -> bytes:
    return _CHECKED.pack(block, generation, crc) + (bytes([flags]) if flags else b"")


def decode_entry(data: bytes, block: int, generation: int) -> Entry | None:
    """The block's entry; None if it has none, or it is damaged.

    >>> decode_entry(encode_entry(7, 0x12345678, 1, OLD), 7, 1) == Entry(0x12345678, OLD)
    True
    """
    if len(data) < ENTRY_SIZE or data == bytes(ENTRY_SIZE):
        return None
    crc, check = _ENTRY.unpack(data)
    for flags in FLAGS:
        if zlib.crc32(_checked(block, crc, generation, flags)) == check:
            return Entry(crc, flags)
    return None


def restore_entry(data: bytes, block: int, generation: int) -> Entry | None:
    """As decode_entry, with one flipped bit put back: for repair, and for whoever writes another entry in its place."""
    entry = decode_entry(data, block, generation)
    if entry is None and len(data) == ENTRY_SIZE and any(data):
        crc, check = data[:4], data[4:]
        for flags in FLAGS:
            checked = _checked(block, int.from_bytes(crc, "little"), generation, flags)
            whole = restored_with_crc(checked + check) or b""
            if (whole[:12], whole[16:-4]) == (checked[:12], checked[16:]):
                return Entry(int.from_bytes(whole[12:16], "little"), flags)
    return entry


def rewritten(entries: bytes, generation: int, *, to: int | None = None, flags: int = 0) -> bytes:
    """Entries of all blocks, for a file that is written anew: of the generation `to`, with these flags as well."""
    found = []
    for block, at in enumerate(range(0, len(entries), ENTRY_SIZE)):
        entry = restore_entry(entries[at : at + ENTRY_SIZE], block, generation)
        found.append(_NONE if entry is None else encode_entry(block, entry.crc, to or generation, entry.flags | flags))
    return b"".join(found)


def is_changed(data: bytes, entry: Entry) -> bool:
    """Whether a (sealed) block without its OLD checksum is taken for changed by another program, not for damaged."""
    if find_flip(len(data), entry.crc ^ zlib.crc32(data)) is None:
        return True  # it may be another log's
    block_size = len(data)
    walk, header = walk_block(data, len(data), block_size), header_size(block_size)
    starts = (position + header for position in walk.positions)
    return any(is_zero(data[start : start + length]) for start, length in zip(starts, walk.lengths, strict=True))


class Checksums:
    """The file of checksums of one generation and change of a log, for readers and the writer. Safe for threads."""

    def __init__(self, fs: FileSystem, path: Path, generation: int, change: bytes) -> None:
        self._fs = fs
        self._path = path
        self.generation = generation
        self._head = encode_head(generation, change)
        self._file = Descriptor.closed()
        self._outdated = False  # the file is of before another program changed the log
        # The file is opened and closed by one thread while no other reads it.
        self._opening = fork_safe(threading.RLock())

    @property
    def head(self) -> bytes:
        """What the file begins with, if it is of this generation and change."""
        return self._head

    def get(self, block: int, *, restore: bool = False) -> Entry | None:
        """The block's entry, None if it has none that can be read. `restore`: another one will take its place."""
        decode = restore_entry if restore else decode_entry
        entry = decode(self.read(block, 1), block, self.generation)
        if entry is None or entry.is_doubt:  # left in an older copy of the file, when the block was the last one
            return None
        return entry if not self._outdated else Entry(entry.crc, entry.flags | OLD)

    def is_damaged(self, block: int) -> bool:
        """Whether the block has an entry that nobody can read any more."""
        data = self.read(block, 1)
        return len(data) == ENTRY_SIZE and any(data) and restore_entry(data, block, self.generation) is None

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
        self._outdated = is_outdated(head, self._head)
        # What it should be is known, so one flipped bit hides nothing; the next writer would begin the file anew.
        if head != self._head and not self._outdated and not differs_by_one_bit(head, self._head):
            file.close()  # of an earlier generation, or damaged: nothing in it can be used
            return False
        self._file = file
        return True

    def open_to_write(self) -> bool:
        """Make the file, or make it anew: empty if it is of an earlier generation, all OLD if of an earlier change.

        Gives whether it was as it is: then nobody else changed the log since.
        """
        with self._opening:
            self.close()
            is_kept = self._open_to_read() and not self._outdated
            if not self._file.is_open:
                self._fs.replace_file(self._path, self._head)
            elif self._outdated:
                number = self._file.number
                entries = self._fs.read(number, self._fs.size(number), HEAD_SIZE)
                self._fs.replace_file(self._path, self._head + rewritten(entries, self.generation, flags=OLD))
            self._outdated = False
            self.close()
            self._file = Descriptor(self._fs, self._path, os.O_RDWR)
        return is_kept

    def rebind(self, change: bytes) -> None:
        """Another program was seen to have changed the log: the entries so far are OLD."""
        with self._opening:
            self.close()
            self._head = encode_head(self.generation, change)

    def put(self, first: int, crcs: Sequence[int], flags: int = 0) -> None:
        """Set the entries of consecutive blocks."""
        data = b"".join(encode_entry(block, crc, self.generation, flags) for block, crc in enumerate(crcs, first))
        self._fs.write(self._file.number, data, HEAD_SIZE + first * ENTRY_SIZE)

    def forget_from(self, block: int) -> None:
        """Drop the entries of this block and all later ones, durably: others will be written to their places."""
        end = HEAD_SIZE + block * ENTRY_SIZE
        if self._fs.size(self._file.number) > end:
            self._fs.truncate(self._file.number, end)
            self.sync()

    def doubt(self, block: int) -> None:
        """Leave word that nothing proves what stands in this block, the log's last one, which has no checksum yet."""
        self.put(block, [0], UNPROVEN)

    def is_doubted(self, block: int) -> bool:
        """Whether somebody left word of that."""
        entry = restore_entry(self.read(block, 1), block, self.generation)
        return self.is_damaged(block) if entry is None else entry.is_doubt

    def sync(self) -> None:
        self._fs.fsync(self._file.number)

    def close(self) -> None:
        with self._opening:
            self._file.close()
