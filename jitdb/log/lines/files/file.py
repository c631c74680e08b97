"""Somebody else's file, open for reading. It is never mapped: one that shrinks gives fewer bytes, and no SIGBUS."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.log.lines.files.stamp import Read, Stamp

ENDS: Final = 1 << 16  # bytes at the beginning, and before the end, of which there is a CRC. On disk: never change it
_REST: Final = 1 << 24  # bytes of a line without a newline that are looked at
_LOOK: Final = 1 << 16  # bytes read at a time on the way to a newline


def newline_before(read: Read, at: int, floor: int = 0) -> int:
    """Where the last newline is before this byte, and not before `floor`; -1 where there is none."""
    while at > floor:
        begin = max(floor, at - _LOOK)
        newline = read(at - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline
        at = begin
    return -1


def newline_from(read: Read, at: int, stop: int = sys.maxsize) -> tuple[int, bool]:
    """Where the first newline is from this byte on, before `stop`, and whether there is one; else where bytes end."""
    while data := read(min(_LOOK, stop - at), at):
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline, True
        at += len(data)
    return at, False


class LineFile:
    """The text of an open file, which stays the same when another file takes its name.

    Where it is compressed, offsets are those of its text, and a stamp is that of what is stored.

    compression: "gzip" or "zstd"; empty where it is not compressed
    is_guessed:  whether end_of_lines() gave a guess, for nobody has decompressed the file yet
    unfinished:  the stored byte from which on something compressed has no end yet; None where nothing is so
    """

    compression = ""
    is_guessed: bool = False
    unfinished: int | None = None

    def __init__(self, file: osfile.Descriptor) -> None:
        self._file = file
        self._searched = (0, 0)  # (begin, end): no newline stands between them

    def settle(self) -> object:
        """Replace a guess by the true end; agrees() then says whether it was right. Raises LogError, OSError."""

    def stamp(self) -> Stamp:
        return Stamp.of(osfile.fs.fstat(self._file.number))

    def status(self) -> os.stat_result:
        """What stat says of what is stored."""
        return osfile.fs.fstat(self._file.number)

    def is_at(self, path: Path) -> bool:
        """Whether it still has this name."""
        return osfile.fs.is_at(path, self._file.number)

    def is_removed(self) -> bool:
        """Whether it has no name any more."""
        return osfile.fs.fstat(self._file.number).st_nlink == 0

    def head(self, size: int) -> bytes:
        """The first bytes of its text. Raises LogError, OSError."""
        return self.read(size, 0)

    def read(self, size: int, offset: int) -> bytes:
        """Fewer bytes only at the end of the file. Raises LogError and OSError, as all reading does."""
        return osfile.fs.read(self._file.number, size, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return osfile.fs.read_into(self._file.number, buffer, offset)

    def text_size(self, stamp: Stamp) -> int:
        """Bytes of text in a file of this stamp."""
        return stamp.size

    def end_of_lines(self, stamp: Stamp, known: int, size: int, name: bytes) -> int:
        """Just past the file's last newline.

        known: where that was; the bytes before end with one, if there are any
        size:  how large the file was then
        name:  another one where other bytes may stand in the place of those that were read
        """
        begin, searched = self._searched
        stop, is_settled = self.text_size(stamp), stamp.is_settled()
        floor = searched if begin == known and searched <= stop and is_settled else known
        newline = newline_before(self.read, stop, floor)
        known = newline + 1 if newline >= 0 else known
        if is_settled:
            self._searched = (known, stop)
        return known

    def rest(self, end: int) -> bytes:
        """What stands behind the last newline, which ends there, as far as one look tells. Raises LogError, OSError."""
        return self.read(_REST, end)

    def agrees(self, end: int) -> bool:
        """Whether the lines end there, as far as is known by now."""
        return True

    def next_line(self, offset: int) -> int:
        """Where the first line begins that does not begin before this byte; the file's end, if there is none yet."""
        at, is_found = newline_from(self.read, max(0, offset - 1)) if offset else (0, False)
        return at + is_found

    def guarded(self, end: int, size: int) -> int:
        """How many stored bytes stay as they are while the file only grows, its lines ending there and its size
        being this.
        """
        return end

    def crcs(self, stop: int) -> tuple[int, int]:
        """CRC-32 of the first and the last 64 KiB before this byte of what is stored."""
        size = min(stop, ENDS)
        head, tail = (osfile.fs.read(self._file.number, size, begin) for begin in (0, stop - size))
        return crc32(head), crc32(tail)

    def close(self) -> None:
        self._file.close()


class FileRest(LineFile):
    """A file that is open already: at most so many bytes of its text, from a byte on."""

    def __init__(self, file: LineFile, base: int, most: int) -> None:
        self._whole, self._base, self._most, self._searched = file, base, most, (0, 0)

    def stamp(self) -> Stamp:
        return self._whole.stamp()

    def read(self, size: int, offset: int) -> bytes:
        return self._whole.read(size, self._base + offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return self._whole.read_into(buffer, self._base + offset)

    def text_size(self, stamp: Stamp) -> int:
        return min(max(0, self._whole.text_size(stamp) - self._base), self._most)

    def guarded(self, end: int, size: int) -> int:
        return min(self._whole.guarded(self._base + end, size), size)  # it may be shorter than the base by now

    def crcs(self, stop: int) -> tuple[int, int]:
        return self._whole.crcs(stop)

    def close(self) -> None:
        """The whole file closes it."""
