"""What decompressing takes: stored bytes, and runs through a text in order, whose pieces are kept for a while."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from jitdb.common import memory
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.errors import LogCorrupt
from jitdb.log.io import osfile
from jitdb.log.objects.door import Location

PIECE: Final = 1 << 18  # bytes of text

_OF_THREAD: Final = 4 << 20  # bytes that a thread of a scan reads at a time; threads are about so far apart
_LEAST_KEPT: Final = 16 << 20
_MOST_KEPT: Final = 48 << 20


class Stored:
    """The bytes of an open file as they are stored, up to `stop`."""

    def __init__(self, file: osfile.Descriptor, path: Location, stop: int = 0) -> None:
        self._file, self.path, self.stop = file, path, stop

    def read(self, size: int, offset: int) -> bytes:
        """Fewer bytes only at `stop`, or where the file was truncated."""
        size = min(size, self.stop - offset)
        return self._file.read(size, offset) if size > 0 else b""

    def corrupt(self, reason: str, offset: int) -> LogCorrupt:
        """The error for bytes, at this offset of the file, that cannot be decompressed."""
        return LogCorrupt(reason, path=self.path, offset=offset, remedy="compress the file anew from its source")


class View:
    """A file object for libraries: the stored bytes from `begin` to `stop`."""

    mode = "rb"

    def __init__(self, stored: Stored, begin: int, stop: int) -> None:
        self._stored, self._begin, self._size, self._at = stored, begin, stop - begin, 0

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        data = self._stored.read(left if size < 0 else min(size, left), self._begin + self._at)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


class Pieces:
    """Pieces of text that were decompressed last, of all files of the process: the next reads are near them.

    A key is a text's number and the piece's number in it. Safe for threads. `most`: bytes that are kept, about, where
    memory has room for them
    """

    def __init__(self, most: int) -> None:
        self.most, self._size = most, 0
        self._lock = fork_safe(threading.Lock())
        self._held: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._texts = 0
        begins_anew(self)

    def begin_anew(self) -> None:
        """See forking.BeginsAnew."""
        self._held, self._size = OrderedDict(), 0

    def new_text(self) -> int:
        """A number for the keys of a text."""
        with self._lock:
            self._texts += 1
            return self._texts

    def get(self, key: tuple[int, int]) -> bytes | None:
        with self._lock:
            data = self._held.get(key)
            if data is not None:
                self._held.move_to_end(key)
            return data

    def put(self, key: tuple[int, int], data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._held.pop(key, b""))
            self._held[key] = data
            while self._size > memory.work(self.most) and len(self._held) > 1:
                self._size -= len(self._held.popitem(last=False)[1])

    def drop(self, text: int) -> None:
        """Forget all pieces of a text."""
        with self._lock:
            for key in [key for key in self._held if key[0] == text]:
                self._size -= len(self._held.pop(key))


PIECES: Final = Pieces(max(_LEAST_KEPT, min(2 * _OF_THREAD + _OF_THREAD * (os.cpu_count() or 1), _MOST_KEPT)))


class Run(ABC):
    """A decompressor on its way through a text, in order, and the pieces of PIECE bytes that it comes by.

    position:  bytes of text up to here
    lines_end: just past the last newline before that
    number:    of the next piece
    """

    def __init__(self, text: int = 0, position: int = 0, lines_end: int = 0) -> None:
        """`text`: the number of the text that pieces are kept for."""
        self.position, self.lines_end, self._text = position, lines_end, text
        self.number = -(-position // PIECE)
        self._held = b""  # the beginning of that piece

    @abstractmethod
    def decompressed(self, most: int) -> bytes:
        """At most so many bytes more; none where there are no more yet. Raises LogCorrupt, OSError."""

    def read(self, most: int) -> bytes:
        """The next bytes, at most so many; none where there are no more yet."""
        text = self.decompressed(most)
        newline = text.rfind(b"\n")
        self.lines_end = self.lines_end if newline < 0 else self.position + newline + 1
        self.position += len(text)
        return text

    def next(self) -> bytes:
        """The next piece; one that is shorter ends the text that there is, and is next again."""
        begin, number = self.number * PIECE, self.number
        while (missing := begin - self.position) > 0:  # it began within the piece before
            if not self.read(missing):
                return b""
        while len(self._held) < PIECE and (more := self.read(PIECE - len(self._held))):
            self._held = self._held + more if self._held else more
        piece = self._held
        if len(piece) == PIECE:
            self.number, self._held = number + 1, b""
        PIECES.put((self._text, number), piece)
        return piece

    def piece(self, number: int) -> bytes:
        """That of this number, which is next or later; none where the text ends before."""
        while self.number < number and len(self.next()) == PIECE:
            pass
        return self.next() if self.number == number else b""

    def to_end(self) -> None:
        """Go on to the end of the text that is there."""
        while len(self.next()) == PIECE:
            pass


def head_of(runs: Iterable[Run], size: int) -> bytes:
    """The first bytes of these, one behind the other; fewer where damage is behind them."""
    head = b""
    try:
        for run in runs:
            while len(head) < size and (more := run.read(size - len(head))):
                head += more
            if len(head) == size:
                break
    except LogCorrupt:
        if not head:
            raise
    return head
