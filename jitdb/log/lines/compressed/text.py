"""The text in a compressed file, by ranges: what a kind of compression must do.

Where the text ends is known once all of it was decompressed, by this process or by one that wrote the end down. Before
that there may be a guess, made of what the file says of itself. It can be wrong in any file: the end of a gzip file
speaks of its last member alone, and modulo 2**32. So a guess is only good for a scan, which reads up to it and thereby
finds out: the read that comes to the expected end decompresses what is left, and agrees() tells whether it was right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from jitdb.log.lines.compressed.pieces import PIECES
from jitdb.log.lines.compressed.stored import Stored


class Text(ABC):
    """Offsets are bytes of text. Safe for threads, but for look(), which one calls at a time.

    unfinished: the stored offset of a member or frame at the end that has no end yet; None where there is none
    is_guessed: whether nothing but a guess tells where the lines end
    """

    unfinished: int | None = None

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.number = PIECES.new_text()
        self._lines_end: int | None = None  # just past the last newline, for certain
        self._expected: int | None = None  # the same before that, as somebody wrote it down, or guessed
        self.is_guessed = False

    def look(self, size: int, known: int | None, may_guess: bool = False) -> int:
        """Where the lines end, the file having this many bytes now.

        known:     where they end, as somebody wrote down who decompressed the file when it had this very size
        may_guess: rather than to decompress it (is_guessed)

        Raises LogError, OSError.
        """
        if size == self.stored.stop and self._lines_end is not None:
            return self._lines_end
        if size == self.stored.stop and self._expected is not None:
            return self._expected
        self.stored.stop, self._lines_end = size, None
        self.grew()
        self._expected = self.guess() if may_guess and known is None else known
        self.is_guessed = known is None and self._expected is not None
        return self.settle() if self._expected is None else self._expected

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
        expected = self._expected
        if expected is not None and (offset + done >= expected or done < len(buffer)):
            self.settle()
        return done

    def settle(self) -> int:
        """Find out where the lines end, if that is not certain yet."""
        end = self._lines_end = self.finish()
        self._expected, self.is_guessed = None, False
        return end

    @abstractmethod
    def grew(self) -> None:
        """The file has another size."""

    @abstractmethod
    def head(self, size: int) -> bytes:
        """The first bytes, whatever follows. Raises LogError, OSError."""

    @abstractmethod
    def guess(self) -> int | None:
        """Where the lines may end, by what the file says of itself; None: no idea. Raises LogError, OSError."""

    @abstractmethod
    def finish(self) -> int:
        """Where the lines end, for certain; decompresses what nobody did yet. Raises LogError, OSError."""

    @abstractmethod
    def part(self, offset: int, size: int, is_random: bool) -> bytes:
        """At most `size` bytes from there on; none at the end of the text. Raises LogError, OSError."""

    def close(self) -> None:
        PIECES.drop(self.number)
