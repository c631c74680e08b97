"""A compressed file of lines: its text by ranges. gzip_file.py and zstd_file.py are the kinds.

Where the text ends is known once all of it was decompressed, by this process or by one that wrote the end down. Before
that the file's own words allow a guess. It can be wrong: the last bytes of a gzip file give the length of its last
member alone, modulo 2**32. So only scans use a guess. A scan reads up to it and so checks it: the read that reaches the
expected end decompresses the rest, and then agrees() says whether the guess was right.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from jitdb.errors import LogWarning
from jitdb.log.io import osfile
from jitdb.log.lines.files.checkpoints import Members, Tail, keep_tail, load_tail
from jitdb.log.lines.files.decompressing import PIECES, Stored
from jitdb.log.lines.files.file import NEWLINE, IsWhole, LineFile
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.objects.door import Location

MANY: Final = 1 << 20  # bytes: after a read of so many, the next one follows it, as a rule
TAIL: Final = 1 << 19  # bytes of text that are kept for the next process: two of the blocks that are looked at


class CompressedFile(LineFile, ABC):
    """See LineFile. Offsets are bytes of text. Reading is safe for threads.

    folder: where what took long to find out is kept; None: nowhere
    """

    def __init__(self, file: osfile.Descriptor, path: Location, folder: Path | None, is_whole: IsWhole) -> None:
        super().__init__(file, is_whole)
        self.stored, self._folder, self._name = Stored(file, path), folder, b""
        self._is_told = False
        self._doubted: bytes | None = None  # the newline that was given, where other bytes may be now; empty: any
        self._tail: Tail | None = None  # as it is kept, of this file as it is
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Nothing is known of the text: the file is not what it was."""
        self.number = PIECES.new_text()
        self.stored.stop = 0
        self.certain_end: int | None = None  # where the lines end, if that is certain
        self._expected: int | None = None  # the same before that: written down by a process, or guessed
        self._given = (0, 0)
        self.is_guessed, self.unfinished = False, None

    # What a kind of compression must do

    @abstractmethod
    def head(self, size: int) -> bytes: ...

    @abstractmethod
    def _grew(self) -> None:
        """The file has another size. Raises LogError, OSError, as all of these do."""

    @abstractmethod
    def _guess(self) -> int | None:
        """Where the lines may end, by what the file says of itself; None: no idea."""

    @abstractmethod
    def _finish(self) -> tuple[int, int]:
        """Just past the last newline that was written, and the end of the text, for certain; decompresses what nobody
        did yet.
        """

    @abstractmethod
    def _part(self, offset: int, size: int, is_random: bool) -> bytes:
        """At most `size` bytes from there on; none at the end of the text. `is_random`: the next ones lie anywhere."""

    def _members(self) -> Members:
        """The whole members of gzip that are known so far."""
        return Members()

    def _begun_behind(self, members: Members) -> int | None:
        """`unfinished`, where nobody decompressed the file since these members were known."""
        return self.unfinished

    def _begin_behind(self, members: Members) -> None:
        """What is before these was decompressed by another process, when the file ended there."""

    # Reading

    def read_written(self, size: int, offset: int) -> bytes:
        tail = self._tail
        if tail is not None and offset >= tail.begin:
            return tail.text[offset - tail.begin : offset - tail.begin + size]
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            done = self._read_into(view, offset, size < MANY)
        return bytes(buffer[:done])

    def _bytes(self, size: int, offset: int) -> bytes:
        """The same, which settles nothing."""
        buffer = bytearray(size)
        with memoryview(buffer) as view:
            done = self._fill(view, offset, size < MANY)
        return bytes(buffer[:done])

    def _read_written_into(self, buffer: memoryview, offset: int) -> int:
        done = self._read_into(buffer, offset, len(buffer) < MANY)
        if self._tail is None and self._folder is not None and self.certain_end is not None:
            begin, text = max(0, self.certain_end - TAIL), bytearray(2 * TAIL)
            size = self._read_into(memoryview(text), begin, False)
            if size < len(text):
                self._tail = Tail(self._name, self.stored.stop, begin, self._members(), bytes(text[:size]))
                keep_tail(self._folder, self._tail)
        return done

    def _fill(self, buffer: memoryview, offset: int, is_random: bool) -> int:
        done = 0
        while done < len(buffer) and (part := self._part(offset + done, len(buffer) - done, is_random)):
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _read_into(self, buffer: memoryview, offset: int, is_random: bool) -> int:
        done = self._fill(buffer, offset, is_random)
        expected = self._expected
        if expected is not None and (offset + done >= expected or done < len(buffer)):
            self.settle()
        return done

    # Where the lines end

    def text_size(self, stamp: Stamp) -> int:
        self._look(stamp.size, None, False)
        return self.settle()

    def written(self, stamp: Stamp) -> int:
        self.text_size(stamp)
        return self._finish()[1]

    def end_of_lines(self, stamp: Stamp, known: int, size: int, name: bytes) -> int:
        before = self._given if known == self._given[1] else (known, known) if known == self.certain_end else None
        if name != self._name:
            self._forget()
            self._name = name
            self._begin_anew()
        self._tail = None
        kept = None if self._folder is None else load_tail(self._folder)
        if kept is not None and kept.name == name and kept.stored <= stamp.size:
            self._begin_behind(kept.members)
            self._tail = kept if kept.stored == stamp.size else None
            before = (min(known, kept.text_end), known) if kept.stored == size else before
        self._doubted = None
        if known and size != stamp.size and (before is None or before[0] < known):
            self._doubted = NEWLINE[before[0] - known :] if before else b""
        # Of a file that was decompressed before, only what was appended is left to be.
        end = self._look(stamp.size, known if known and size == stamp.size else None, not known)
        if self._tail is not None and self.certain_end is None and known > self._tail.text_end:
            self._given = (self._tail.text_end, known)
        if self._tail is not None and self.certain_end is None:
            self.unfinished = self._begun_behind(self._tail.members)
        self._tell_unfinished()
        return end

    def _tell_unfinished(self) -> None:
        """Warn once that the end is missing: each process does, as nobody knows whether the file is still written."""
        if self.unfinished is None or self._is_told:
            return
        self._is_told = True
        which = f"{self.compression}, from byte {self.unfinished:,} on"
        warnings.warn(
            LogWarning(
                f"the end of the compressed file is missing ({which}): answers have the whole lines before it, and "
                "leave out the rest",
                path=self.stored.path,
                remedy="copy the file again, or ask later if it is still being written",
            ),
            stacklevel=3,
        )

    def _look(self, size: int, known: int | None, may_guess: bool) -> int:
        """Where the lines end, the file having this many bytes now.

        known:     where they end, written down by a process that decompressed the file when it had this size
        may_guess: rather than to decompress it (is_guessed)
        """
        if size != self.stored.stop or self.certain_end is self._expected is None:
            self.stored.stop, self.certain_end, self._given = size, None, (0, 0)
            self._grew()
            self._expected = self._guess() if may_guess and known is None else known
            self.is_guessed = known is None and self._expected is not None
        end = self._expected if self.certain_end is None else self.certain_end
        return self.settle() if end is None else end

    def settle(self) -> int:
        if self.certain_end is None or self._expected is not None:
            end, written = self._finish()
            lacking = self._lacking(written, self._bytes, end) if end < written else b""
            if lacking:
                end = written + len(lacking)
                self._given = (written, end)
            self.certain_end, self._expected, self.is_guessed = end, None, False
            self._tell_unfinished()
        return self.certain_end

    def _is_still(self) -> bool:
        return self.unfinished is None

    def is_end(self, end: int) -> bool:
        """Bytes that come to a compressed file tell of the text, and not where in it they are."""
        given = self._doubted
        return given is None or (given != b"" and self.read(len(given), end - len(given)) == given)

    def rest(self, end: int) -> bytes:
        is_near = self._tail is not None or self.certain_end == end
        return self.read(TAIL, end) if is_near else b""

    def agrees(self, end: int) -> bool:
        return self.certain_end in (None, end)

    def guarded(self, end: int, size: int) -> int:
        return size

    def _forget(self) -> None:
        """Let go of the pieces that are kept."""
        PIECES.drop(self.number)

    def close(self) -> None:
        self._forget()
        super().close()
