"""Somebody else's file, open for reading: never mapped, so that one that shrinks gives fewer bytes and no SIGBUS."""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from typing import Final

from jitdb.errors import NotALog
from jitdb.log.io import osfile
from jitdb.log.lines.stamp import Stamp

ENDS: Final = 1 << 16  # bytes at the beginning, and before the end, of which there is a CRC. On disk: never change it
_LOOK: Final = 1 << 16  # bytes read at a time on the way back to the last newline


class LineFile:
    """It stays the same file when another one takes its name."""

    def __init__(self, path: Path) -> None:
        """Raises NotALog, OSError."""
        try:
            self._file = osfile.Descriptor(osfile.fs, path, os.O_RDONLY)
        except osfile.NotAFile as error:
            raise NotALog("it is a folder, a pipe or a device, and no file", path=path) from error
        self._searched = (0, 0)  # behind which byte, and up to which, there is no newline

    def stamp(self) -> Stamp:
        return Stamp.of(osfile.fs.fstat(self._file.number))

    def read(self, size: int, offset: int) -> bytes:
        """Fewer bytes only at the end of the file."""
        return osfile.fs.read(self._file.number, size, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return osfile.fs.read_into(self._file.number, buffer, offset)

    def end_of_lines(self, stamp: Stamp, known: int) -> int:
        """Just past the file's last newline. The bytes before `known` end with one, if there are any."""
        begin, searched = self._searched
        size, is_settled = stamp.size, stamp.is_settled()
        floor = searched if begin == known and searched <= size and is_settled else known
        stop = size
        while stop > floor:
            start = max(floor, stop - _LOOK)
            newline = self.read(stop - start, start).rfind(b"\n")
            if newline >= 0:
                known = start + newline + 1
                break
            stop = start
        if is_settled:
            self._searched = (known, size)
        return known

    def next_line(self, offset: int) -> int:
        """Where the first line begins that does not begin before this byte; the file's end, if there is none yet."""
        at = max(0, offset - 1)
        while data := self.read(_LOOK, at) if offset else b"":
            newline = data.find(b"\n")
            if newline >= 0:
                return at + newline + 1
            at += len(data)
        return at

    def crcs(self, end: int) -> tuple[int, int]:
        """CRC-32 of the first and the last 64 KiB before `end`."""
        size = min(end, ENDS)
        head, tail = self.read(size, 0), self.read(size, end - size)
        if "jitdb.log.blocks.crc" not in sys.modules:  # it is faster, but takes its time to be loaded
            return zlib.crc32(head), zlib.crc32(tail)
        from jitdb.log.blocks.crc import crc32

        return crc32(head), crc32(tail)

    def close(self) -> None:
        self._file.close()


class FileRest(LineFile):
    """A file that is open already, from a byte on."""

    def __init__(self, file: LineFile, base: int) -> None:
        self._whole, self._base, self._searched = file, base, (0, 0)

    def stamp(self) -> Stamp:
        found = self._whole.stamp()
        return found._replace(size=max(0, found.size - self._base))

    def read(self, size: int, offset: int) -> bytes:
        return self._whole.read(size, self._base + offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return self._whole.read_into(buffer, self._base + offset)

    def close(self) -> None:
        """It is the other's."""
