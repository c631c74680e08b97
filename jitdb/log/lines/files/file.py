"""Somebody else's file, open for reading. It is never mapped: one that shrinks gives fewer bytes, and no SIGBUS.

A last line that is a whole record counts before its newline comes, which may be never. So the text of a file has the
newline that a whole last line lacks: one byte (two where the line before ends with CR LF) behind the bytes that were
written. When the real one comes, all that is known of the text stays true. When other bytes come, the text is another
one, as the CRCs of its ends tell.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from jitdb.common.zlib import crc32
from jitdb.log.io import osfile
from jitdb.log.lines.files.stamp import Read, Stamp
from jitdb.log.objects.door import Location

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ENDS: Final = 1 << 16  # bytes at the beginning, and before the end, of which there is a CRC. On disk: never change it
NEWLINE: Final = b"\r\n"
_REST: Final = 1 << 24  # bytes behind the last line that are looked at
_LONGEST: Final = 1 << 30  # bytes of a last line that is looked at
AT_ONCE: Final = 200_000_000  # nanoseconds after which the lines of one record are written
_LOOK: Final = 1 << 16  # bytes read at a time on the way to a newline; a longer last line may end as JSON does, or not

_LINE: Final = 1 << 12  # bytes that a line has, as a rule
_SMALL: Final = 1 << 20  # bytes before a last line that are soon scanned again
FRESH: Final = 60_000_000_000  # nanoseconds: a file that was changed so recently may be being written, block by block

# Of a last line without a newline, and whether it is of a file to which nothing more seems to come, or a small one: is
# it all that it will be?
GoesOn: TypeAlias = Callable[[bytes, bytes], bool]  # does a line belong to the record of the line before it?
IsWhole: TypeAlias = Callable[[bytes, bool], bool]


def nothing_is_whole(line: bytes, is_still: bool) -> bool:
    """Of a file whose bytes are wanted as they are."""
    return False


def filled(data: bytes, size: int) -> bytes:
    """The first bytes of a text, with the newline that they lack if they are so many with it.

    >>> filled(b"{}", 3), filled(b"{}\\r", 4), filled(b"{}", 4), filled(b"{}", 5)
    (b'{}\\n', b'{}\\r\\n', b'{}\\r\\n', b'{}')
    """
    missing = size - len(data)
    return data + NEWLINE[-missing:] if 0 < missing <= len(NEWLINE) else data


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
    goes_on:     whether a line belongs to the record of the line before it; None where each line is its own
    is_object:   whether it lies in a store, where one that is changed is another one
    unfinished:  the stored byte from which on something compressed has no end yet; None where nothing is so
    """

    compression = ""
    is_guessed: bool = False
    is_object: bool = False
    unfinished: int | None = None

    goes_on: GoesOn | None = None
    small = _SMALL  # bytes before a last record that are read again when it goes on
    _holds_back = False  # whether end_of_lines() left out the last record, which may go on

    def __init__(self, file: osfile.Descriptor, is_whole: IsWhole = nothing_is_whole) -> None:
        self._file, self._is_whole, self.is_object = file, is_whole, file.is_object
        self._searched = (0, 0)  # (begin, end): no newline stands between them
        self._given = (0, 0)  # where the written bytes end, and the newline that was given behind them
        self._looked: Stamp | None = None  # of the file when that was found, if a change since then shows

    def settle(self) -> object:
        """Replace a guess by the true end; agrees() then says whether it was right. Raises LogError, OSError."""

    def stamp(self) -> Stamp:
        return Stamp.of(self._file.status())

    def status(self) -> os.stat_result:
        """What stat says of what is stored."""
        return self._file.status()

    def is_at(self, path: Location) -> bool:
        """Whether it still has this name."""
        return self._file.is_at(path)

    def is_removed(self) -> bool:
        """Whether it has no name any more."""
        return self._file.status().st_nlink == 0

    def head(self, size: int) -> bytes:
        """The first bytes of its text. Raises LogError, OSError."""
        return self.read(size, 0)

    def read(self, size: int, offset: int) -> bytes:
        """Fewer bytes only at the end of the text. Raises LogError and OSError, as all reading does."""
        data = self.read_written(size, offset)
        return data + self._newline_at(offset + len(data), size - len(data)) if len(data) < size else data

    def expect(self, offsets: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """The lines at these offsets will be read next."""
        if self.is_object and not self.compression:
            self._file.expect(map(int, offsets), _LINE)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        done = self._read_written_into(buffer, offset)
        if done < len(buffer) and (more := self._newline_at(offset + done, len(buffer) - done)):
            buffer[done : done + len(more)] = more
            return done + len(more)
        return done

    def _newline_at(self, at: int, most: int) -> bytes:
        """What of the newline that was given stands from this byte on."""
        written, end = self._given
        return NEWLINE[at - end :][:most] if written <= at < end else b""

    def read_written(self, size: int, offset: int) -> bytes:
        """The same without a newline that was given."""
        return self._file.read(size, offset)

    def _read_written_into(self, buffer: memoryview, offset: int) -> int:
        return self._file.read_into(buffer, offset)

    def text_size(self, stamp: Stamp) -> int:
        """Bytes of text in a file of this stamp."""
        if stamp != self._looked:
            self._given = stamp.size, stamp.size + len(self._lacking(stamp.size, self.read_written))
            self._looked = stamp if stamp.is_settled() else None
        return self._given[1]

    def written(self, stamp: Stamp) -> int:
        """Bytes of text that were written, also behind its last line."""
        return stamp.size

    def written_size(self, stamp: Stamp) -> int:
        """Bytes of text in it, without a newline that was given."""
        return min(self.text_size(stamp), self.written(stamp))

    def _lacking(self, stop: int, read: Read, begin: int | None = None) -> bytes:
        """The newline that the text lacks of which so many bytes were written, if its last line is whole.

        begin: where that begins, if it is known
        """
        last = read(min(_LOOK, stop), max(0, stop - _LOOK))
        if self._is_whole is nothing_is_whole or not last or last.endswith(b"\n"):
            return b""
        if b"\n" not in last and len(last) < stop and not last.rstrip().endswith((b"}", b"]")):
            return b""
        begin = newline_before(read, stop) + 1 if begin is None else begin
        line = read(stop - begin, begin) if stop - begin <= _LONGEST else b""
        if len(line) < stop - begin or not self._is_whole(line, begin < _SMALL or self._is_still()):
            return b""
        is_wide = not line.endswith(b"\r") and begin > 1 and read(1, begin - 2) == b"\r"
        return NEWLINE if is_wide else NEWLINE[1:]

    def _is_still(self) -> bool:
        """Whether nobody seems to write it."""
        return time.time_ns() - self.stamp().mtime > FRESH

    def end_of_lines(self, stamp: Stamp, known: int, size: int, name: bytes) -> int:
        """Just past the last newline of the text.

        known: where that was; the bytes before end with one, if there are any
        size:  how large the file was then
        name:  another one where other bytes may stand in the place of those that were read
        """
        is_known = self.is_object and known and size == stamp.size
        if known > size == stamp.size or is_known:  # who knew that has looked at the last line
            self._given, self._looked = (size, max(size, known)), stamp
        if is_known:
            return known
        floor_of_records = known
        begin, searched = self._searched
        stop, is_settled = self.text_size(stamp), stamp.is_settled()
        floor = searched if begin == known and searched <= stop and is_settled else known
        newline = newline_before(self.read, stop, floor)
        known = newline + 1 if newline >= 0 else known
        if is_settled:
            self._searched = (known, stop)
        return self._without_open(known, floor_of_records)

    def _without_open(self, end: int, floor: int) -> int:
        """Where the last record ends that will not go on: while a file is written, the lines of the last one may come.

        floor: where lines ended before. Of a small file all is read again if the last record does go on.
        """
        is_open = self.goes_on is not None and end > max(floor, self.small) and self._is_written()
        self._holds_back = is_open
        while is_open and end > floor:
            begin = max(newline_before(self.read, end - 1, floor) + 1, floor)
            if not self._belongs(begin, end - 1):
                return begin
            end = begin
        return end

    def _belongs(self, begin: int, stop: int) -> bool:
        """Whether the line from `begin` to its newline at `stop` belongs to the record before it."""
        if self.goes_on is None or not begin:
            return False
        before = newline_before(self.read, begin - 1) + 1
        return self.goes_on(self.read(begin - 1 - before, before), self.read(stop - begin, begin))

    def _is_written(self) -> bool:
        """Whether it was written just now. What a program writes of one record it writes at once."""
        return 0 <= time.time_ns() - self.stamp().mtime < AT_ONCE

    def rest(self, end: int) -> bytes:
        """What stands behind the last newline, which ends there, as far as one look tells. Raises LogError, OSError."""
        return self.read(_REST, end)

    @property
    def holds_back(self) -> bool:
        """Whether the lines of a last record were left out, until it is certain that it has no more."""
        return self._holds_back

    def agrees(self, end: int) -> bool:
        """Whether the lines end there, as far as is known by now."""
        return not self._holds_back or self._is_written()

    def is_end(self, end: int) -> bool:
        """Whether a record ends there, as one did when end_of_lines() was told so. Equal CRCs prove it of a line."""
        stop, is_there = newline_from(self.read, end) if self.goes_on is not None else (end, False)
        return not is_there or not self._belongs(end, stop)

    def next_line(self, offset: int) -> int:
        """Where the first line begins that does not begin before this byte, and belongs to no record before it; the
        file's end, if there is none yet.
        """
        at, is_found = newline_from(self.read, max(0, offset - 1)) if offset else (0, False)
        at += is_found
        while is_found and self.goes_on is not None:
            stop, is_found = newline_from(self.read, at)
            if not is_found or not self._belongs(at, stop):
                break
            at = stop + 1
        return at

    def guarded(self, end: int, size: int) -> int:
        """How many stored bytes stay as they are while the file only grows, its lines ending there and its size
        being this.
        """
        return end

    def crcs(self, stop: int) -> tuple[int, int] | None:
        """CRC-32 of the first and the last 64 KiB before this byte of what is stored, and of the newline that may lack
        behind a text; None where the file is shorter.
        """
        size = min(stop, ENDS)
        head, tail = (self._file.read(size, begin) for begin in (0, stop - size))
        if not self.compression:
            head, tail = filled(head, size), filled(tail, size)
        return (crc32(head), crc32(tail)) if len(head) == len(tail) == size else None

    def close(self) -> None:
        self._file.close()


class FileRest(LineFile):
    """A file that is open already: at most so many bytes of its text, from a byte on."""

    small = 0  # what was read of it was given

    def __init__(self, file: LineFile, base: int, most: int) -> None:
        self._whole, self._base, self._most = file, base, most
        self._searched = self._given = (0, 0)
        self.goes_on = file.goes_on

    def stamp(self) -> Stamp:
        return self._whole.stamp()

    def read(self, size: int, offset: int) -> bytes:
        return self._whole.read(size, self._base + offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        return self._whole.read_into(buffer, self._base + offset)

    def text_size(self, stamp: Stamp) -> int:
        return min(max(0, self._whole.text_size(stamp) - self._base), self._most)

    @property
    def is_full(self) -> bool:
        """Whether the text may have more bytes behind these."""
        return self._whole.text_size(self._whole.stamp()) >= self._base + self._most

    def _is_written(self) -> bool:
        return self.is_full or super()._is_written()

    def guarded(self, end: int, size: int) -> int:
        guarded = self._whole.guarded(self._base + end, size)
        return guarded if guarded - size <= len(NEWLINE) else size  # it may be shorter than the base by now

    def crcs(self, stop: int) -> tuple[int, int] | None:
        return self._whole.crcs(stop)

    def close(self) -> None:
        """The whole file closes it."""
