"""Text that can only be decompressed from some places on: in order, in pieces, which are kept for who comes late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

from jitdb.errors import LogCorrupt
from jitdb.log.lines.compressed.pieces import PIECES

PIECE: Final = 1 << 18  # bytes of text


class Stream(Protocol):
    """A decompressor on its way through the text.

    lines_end: just past the last newline before `position`
    """

    position: int
    lines_end: int

    def read(self, most: int) -> bytes:
        """The next bytes, at most so many; none where there are no more yet."""


S = TypeVar("S", bound=Stream)


class Run(Generic[S]):
    """A stream, cut into pieces of PIECE bytes that begin at multiples of it. `number`: of the piece that is next."""

    def __init__(self, stream: S, text: int) -> None:
        """`text`: the number of the text that the pieces are kept for."""
        self.stream, self._text = stream, text
        self.number = -(-stream.position // PIECE)
        self._held = b""  # the beginning of that piece

    def next(self) -> bytes:
        """The next piece; one that is shorter ends the text that there is, and is next again."""
        begin, number = self.number * PIECE, self.number
        while (missing := begin - self.stream.position) > 0:  # it began within the piece before
            if not self.stream.read(missing):
                return b""
        while len(self._held) < PIECE and (more := self.stream.read(PIECE - len(self._held))):
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


def head_of(streams: Iterable[Stream], size: int) -> bytes:
    """The first bytes of these streams, one behind the other; fewer where damage is behind them."""
    head = b""
    try:
        for stream in streams:
            while len(head) < size and (more := stream.read(size - len(head))):
                head += more
            if len(head) == size:
                break
    except LogCorrupt:
        if not head:
            raise
    return head
