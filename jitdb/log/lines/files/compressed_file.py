"""A file of lines that is compressed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

from jitdb.errors import LogWarning
from jitdb.log.io import osfile
from jitdb.log.lines.compressed.gzip_text import GzipText
from jitdb.log.lines.compressed.stored import Stored
from jitdb.log.lines.compressed.text import Text
from jitdb.log.lines.compressed.zstd_text import ZstdText
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.files.kept_tail import LONGEST, Tail, keep_tail, load_tail
from jitdb.log.lines.files.stamp import Stamp

MANY: Final = 1 << 20  # bytes; who reads so many reads on behind them, as a rule


class CompressedFile(LineFile):
    """See LineFile.

    kind:   "gzip" or "zstd"
    folder: where checkpoints are kept; None: in a file without a name
    """

    def __init__(self, file: osfile.Descriptor, path: Path, kind: str, folder: Path | None) -> None:
        super().__init__(file)
        self._path, self._folder = path, folder
        self._kind = kind
        self._name = b""
        self._text = self._new_text()
        self._is_told = False
        self._tail: Tail | None = None  # as it is kept, of this file as it is

    def _new_text(self) -> Text:
        stored = Stored(self._file, self._path)
        return GzipText(stored, self._folder, self._name) if self._kind == "gzip" else ZstdText(stored)

    @property
    def compression(self) -> str:
        return self._kind

    @property
    def is_guessed(self) -> bool:
        return self._text.is_guessed

    def settle(self) -> None:
        self._text.settle()

    @property
    def unfinished(self) -> int | None:
        return self._text.unfinished

    def head(self, size: int) -> bytes:
        """The first bytes of its text. Raises LogError, OSError."""
        self._text.stored.stop = self.stamp().size
        return self._text.head(size)

    def read(self, size: int, offset: int) -> bytes:
        tail = self._tail
        if tail is not None and offset >= tail.begin:
            return tail.text[offset - tail.begin : offset - tail.begin + size]
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            done = self._text.read_into(view, offset, is_random=size < MANY)
        return bytes(buffer[:done])

    def read_into(self, buffer: memoryview, offset: int) -> int:
        done = self._text.read_into(buffer, offset, is_random=len(buffer) < MANY)
        if self._tail is None and self._folder is not None and self._text.certain_end is not None:
            self._keep_tail(self._folder, self._text.certain_end)
        return done

    def _keep_tail(self, folder: Path, end: int) -> None:
        """For the next process, once all was decompressed."""
        begin, text = max(0, end - LONGEST), bytearray(2 * LONGEST)
        done = self._text.read_into(memoryview(text), begin, is_random=False)
        if done < len(text):
            self._tail = Tail(self._name, self._text.stored.stop, begin, bytes(text[:done]))
            keep_tail(folder, self._tail)

    def text_size(self, stamp: Stamp) -> int:
        self._text.look(stamp.size, None)
        return self._text.settle()

    def end_of_lines(self, stamp: Stamp, known: int, size: int, name: bytes) -> int:
        if name != self._name:
            self._text.close()
            self._name = name
            self._text = self._new_text()
        self._tail = None if self._folder is None else load_tail(self._folder)
        if self._tail is not None and (self._tail.name, self._tail.stored) != (name, stamp.size):
            self._tail = None
        # Of a file that was decompressed before, only what was appended is left to be.
        end = self._text.look(stamp.size, known if known and size == stamp.size else None, may_guess=not known)
        self._tell()
        return end

    def rest(self, end: int) -> bytes:
        is_near = self._tail is not None or self._text.certain_end == end
        return self.read(LONGEST, end) if is_near else b""

    def _tell(self) -> None:
        if self._text.unfinished is not None and not self._is_told:
            self._is_told = True
            warnings.warn(
                LogWarning(
                    f"what is compressed ({self._kind}) from byte {self._text.unfinished:,} on has no end: it is "
                    "still being written, or was cut off; the lines that are whole count",
                    path=self._path,
                ),
                stacklevel=2,
            )

    def agrees(self, end: int) -> bool:
        return self._text.agrees(end)

    def guarded(self, end: int, size: int) -> int:
        return size

    def close(self) -> None:
        self._text.close()
        super().close()
