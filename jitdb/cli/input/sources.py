"""Where the lines of an import come from: files and standard input, compressed or not."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple, cast

from jitdb.cli.error_text import Failure
from jitdb.log.codecs.fields.constants import SLACK

_READ: Final = 1 << 20  # bytes read and imported at a time: they stay in the processor's cache
_LONGEST: Final = 1 << 26  # bytes of one line: four times what the largest block holds

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


class SourceDamaged(Failure):
    """The source itself must be had anew; a line of it cannot be mended."""


class Unreadable(Exception):
    """Nothing can be read any more; `read` bytes were. Why is in __cause__; else a line is too long."""

    def __init__(self, read: int = 0) -> None:
        super().__init__()
        self.read = read


class Portion(NamedTuple):
    """Some whole lines: data[begin:end], each with its newline, and SLACK bytes or more behind them."""

    data: bytearray
    begin: int
    end: int

    @property
    def is_one(self) -> bool:
        """Whether it is one line."""
        return self.data.index(b"\n", self.begin) == self.end - 1

    def behind(self, count: int) -> tuple[Portion, int]:
        """Without the first `count` lines, and how many these are: all, if it has fewer."""
        there = self.data.count(b"\n", self.begin, self.end)
        if there <= count:
            return self._replace(begin=self.end), there
        begin = self.begin
        for _ in range(count):
            begin = self.data.index(b"\n", begin) + 1
        return self._replace(begin=begin), count

    def lines(self, begin: int, count: int) -> tuple[list[bytes], int]:
        """So many lines from the one at `begin` on, or all, without their newlines; and where the next one begins."""
        found: list[bytes] = []
        while begin < self.end and len(found) < count:
            stop = self.data.index(b"\n", begin)
            found.append(bytes(memoryview(self.data)[begin:stop]))
            begin = stop + 1
        return found, begin


class Source:
    """One input, `-` being standard input. A context manager."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "standard input" if path == "-" else path
        self.taken = 0  # lines, as far as who takes them counted
        self._file: IO[bytes] | None = None

    @property
    def size(self) -> int | None:
        """Size in bytes; None when nobody can tell (a pipe)."""
        if self.path == "-" or not os.path.isfile(self.path):
            return None
        return os.path.getsize(self.path)

    def __enter__(self) -> Source:
        if self.path == "-":
            if sys.stdin is None:
                raise Failure("there is no standard input to read")
            self._file = sys.stdin.buffer
        else:
            self._file = open(self.path, "rb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self.path != "-":
            self._file.close()

    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._file.tell() if self._file is not None and self.size is not None else 0

    def portions(self) -> Iterator[Portion]:
        """Runs of whole lines, in their order; each is gone when the next but one is asked for.

        What a pipe has is handed on at once. Raises Failure; Unreadable, of which failure() tells.
        """
        stream = self._uncompressed()
        data, other = bytearray(_READ + SLACK), bytearray(_READ + SLACK)
        is_handed_on = False
        begin, end = 0, 0  # data[begin:end] is the beginning of a line
        failure: Unreadable | None = None
        at_start = True
        while failure is None:
            rest = data[begin:end]
            if is_handed_on:
                data, other, is_handed_on = other, data, False
            if len(rest) > len(data) // 2:
                data = bytearray(2 * max(len(data), len(rest)))
            data[: len(rest)] = rest
            begin, end = 0, len(rest)
            try:
                read = self._fill(stream, memoryview(data)[end : len(data) - SLACK])
            except Unreadable as broken:
                read, failure = broken.read, broken
            end += read
            if at_start and read:
                begin, at_start = self._mark(data), False
            cut = data.rfind(b"\n", len(rest), end) + 1
            if cut > begin:
                yield Portion(data, begin, cut)
                is_handed_on = True
                begin = cut
            elif end - begin > _LONGEST:
                raise Unreadable
            if not read:
                break
        if failure is not None:
            raise failure
        if begin < end:
            data[end : end + 1] = b"\n"
            yield Portion(data, begin, end + 1)

    def _fill(self, stream: Any, room: memoryview) -> int:
        """Read into `room`: all that fits from a file, what is there from a pipe. Raises Unreadable."""
        read = 0
        try:
            if self.size is None:
                there = stream.read1(len(room))  # readinto1 waits for more than it has
                room[: len(there)] = there
                return len(there)
            while read < len(room):
                got = stream.readinto1(room[read:])
                read += got
                if not got:
                    break
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Unreadable(read) from error
        return read

    def failure(self, broken: Unreadable) -> Failure:
        """What to tell once all that was read before is taken."""
        error = broken.__cause__
        if error is None:
            return Failure(f"{self.name}, line {self.taken + 1:,}: more than {_LONGEST >> 20} MiB: is this NDJSON?")
        what = "the gzip data are cut off" if isinstance(error, EOFError) else f"damaged gzip data: {error}"
        where = f"{self.name}, behind line {self.taken:,}" if self.taken else self.name
        return SourceDamaged(f"{where}: {what}")

    def _uncompressed(self) -> Any:
        file: Any = self._file
        assert file is not None
        if file.peek(2)[:2] == _GZIP:
            return cast(Any, gzip.GzipFile(fileobj=file))
        return file

    def _mark(self, data: bytearray) -> int:
        """Bytes of the mark at the beginning."""
        if data.startswith(_UTF16):
            name = "FILE" if self.path == "-" else self.path
            hint = f"iconv -f UTF-16 -t UTF-8 {name} | jitdb import - LOG"
            raise Failure(f"{self.name}: this is UTF-16, not UTF-8", hint)
        return len(_BOM) if data.startswith(_BOM) else 0
