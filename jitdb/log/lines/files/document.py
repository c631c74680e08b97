"""A file that is one line: a batch of records over many lines, an array, or JSON values one behind the other.

Its newlines are blanks, and read as such; JSON has none within a text. Where it ends a newline stands, whether one was
written or not. So all that reads lines reads it. It is looked at as a whole: one that grew is another file.
"""

from __future__ import annotations

import os
from typing import Final

from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.objects.door import Location

_PIECE: Final = 1 << 20  # bytes read at a time on the way to the end
_PART: Final = 1 << 18  # bytes that stay in the processor's cache


class DocumentFile(LineFile):
    """See LineFile."""

    def __init__(self, file: LineFile) -> None:
        self._whole, self._searched, self._given, self._looked = file, (0, 0), (0, 0), None
        self.compression = file.compression
        self._end = 0  # behind the newline at the end
        self._stored = 0  # bytes of the file when it ended there

    def stamp(self) -> Stamp:
        return self._whole.stamp()

    def status(self) -> os.stat_result:
        return self._whole.status()

    def is_at(self, path: Location) -> bool:
        return self._whole.is_at(path)

    def is_removed(self) -> bool:
        return self._whole.is_removed()

    def head(self, size: int) -> bytes:
        return self._whole.head(size)

    def read(self, size: int, offset: int) -> bytes:
        size = max(0, min(size, self._end - offset))
        data = self._whole.read(size, offset).replace(b"\n", b" ")
        if not size or offset + size < self._end or len(data) < size - 1:
            return data
        return data[: size - 1] + b"\n"

    def read_into(self, buffer: memoryview, offset: int) -> int:
        import numpy as np

        size, done = max(0, min(len(buffer), self._end - offset)), 0
        while done < size:
            part = buffer[done : min(done + _PART, size)]
            found = self._whole.read_into(part, offset + done)
            array = np.frombuffer(part[:found], np.uint8)
            is_newline = array == ord("\n")
            if is_newline.any():
                array[is_newline] = ord(" ")
            done += found
            if found < len(part):
                break
        if size and offset + size == self._end and done >= size - 1:
            buffer[size - 1] = ord("\n")
            done = size
        return done

    def read_written(self, size: int, offset: int) -> bytes:
        return self._whole.read_written(size, offset)

    def written(self, stamp: Stamp) -> int:
        return self._whole.written(stamp)

    def text_size(self, stamp: Stamp) -> int:
        if stamp.size != self._stored:
            self._find_end(stamp)
        return self._end

    def end_of_lines(self, stamp: Stamp, known: int, size: int, name: bytes) -> int:
        """Where it ends: all that was written is one line."""
        is_known = bool(known) and size == stamp.size
        if self.compression:
            self._whole.end_of_lines(stamp, known if is_known else 0, size if is_known else 0, name)
        if is_known:
            self._end, self._stored = known, size
        elif stamp.size != self._stored:
            self._find_end(stamp)
        return self._end

    def _find_end(self, stamp: Stamp) -> None:
        end = stamp.size
        if self.compression:
            self._whole.settle()
            end = 0
            while part := self._whole.read(_PIECE, end):
                end += len(part)
        last = self._whole.read(1, end - 1) if end else b"\n"
        self._end, self._stored = end + (last != b"\n"), stamp.size

    def rest(self, end: int) -> bytes:
        return b""

    def agrees(self, end: int) -> bool:
        return end == self._end

    def guarded(self, end: int, size: int) -> int:
        return size

    def is_end(self, end: int) -> bool:
        return end == self._end

    def crcs(self, stop: int) -> tuple[int, int] | None:
        """Those of the ends of all that is stored; none of a document that has another size by now."""
        return self._whole.crcs(stop) if self._whole.stamp().size == stop else None

    def close(self) -> None:
        self._whole.close()
