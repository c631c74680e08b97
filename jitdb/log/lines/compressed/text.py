"""The text in a compressed file, by ranges: what a kind of compression must do.

Where the text ends is known for certain once all of it was decompressed. Before that it may be claimed: by what the
file says of itself, or by whoever decompressed it before. Lines up to there are scanned while they are decompressed,
and the read that comes to the claimed end finds out whether it is the true one: agrees() tells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from jitdb.log.lines.compressed.pieces import PIECES
from jitdb.log.lines.compressed.stored import Stored


class Text(ABC):
    """Offsets are bytes of text. Safe for threads, but for look(), which one calls at a time.

    unfinished: the stored offset of a member or frame at the end that has no end yet; None where there is none
    """

    unfinished: int | None = None

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.number = PIECES.new_text()
        self._lines_end: int | None = None  # just past the last newline, for certain
        self._claimed: int | None = None

    def look(self, size: int, known: int | None) -> int:
        """Where the lines end, the file having this many bytes now; `known`: where they do, as somebody said who saw
        it of this very size. Raises LogError, OSError.
        """
        if size == self.stored.stop and self._lines_end is not None:
            return self._lines_end
        if size == self.stored.stop and self._claimed is not None:
            return self._claimed
        self.stored.stop, self._lines_end = size, None
        self.grew()
        self._claimed = self.claim() if known is None else known
        return self.settle() if self._claimed is None else self._claimed

    @property
    def certain_end(self) -> int | None:
        """Where the lines end, if that is certain."""
        return self._lines_end

    def agrees(self, end: int) -> bool:
        """Whether the lines may end there, as far as is known by now."""
        return self._lines_end in (None, end)

    def read_into(self, buffer: memoryview, offset: int, *, is_random: bool) -> int:
        """Fill the buffer; fewer bytes only at the end of the text. Raises LogError, OSError.

        is_random: what comes next lies anywhere, not behind this
        """
        done = 0
        while done < len(buffer) and (part := self.part(offset + done, len(buffer) - done, is_random)):
            buffer[done : done + len(part)] = part
            done += len(part)
        claimed = self._claimed
        if claimed is not None and (offset + done >= claimed or done < len(buffer)):
            self.settle()
        return done

    def settle(self) -> int:
        """Find out where the lines end, if that is not certain yet."""
        end = self._lines_end = self.finish()
        self._claimed = None
        return end

    @abstractmethod
    def grew(self) -> None:
        """The file has another size."""

    @abstractmethod
    def head(self, size: int) -> bytes:
        """The first bytes, whatever follows. Raises LogError, OSError."""

    @abstractmethod
    def claim(self) -> int | None:
        """Where the lines end, if the file says so without being decompressed. Raises LogError, OSError."""

    @abstractmethod
    def finish(self) -> int:
        """Where the lines end, for certain; decompresses what nobody did yet. Raises LogError, OSError."""

    @abstractmethod
    def part(self, offset: int, size: int, is_random: bool) -> bytes:
        """At most `size` bytes from there on; none at the end of the text. Raises LogError, OSError."""

    def close(self) -> None:
        PIECES.drop(self.number)
