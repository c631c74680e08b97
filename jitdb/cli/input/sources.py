"""Where an import reads: files and standard input, uncompressed by their first bytes, as runs of whole lines."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, NamedTuple

from jitdb.cli.failures import Failure
from jitdb.common import zstd
from jitdb.common.formats import LONGEST_START, compression_of
from jitdb.log.codecs.fields.constants import SLACK

READ: Final = 1 << 20  # bytes read and imported at a time: they stay in the processor's cache
LONGEST: Final = 1 << 26  # bytes of one line: four times what the largest block holds
TOO_LONG: Final = b'{"\xff'  # replaces a longer line; neither JSON nor UTF-8

_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")

_PACKED: Final = 1 << 17  # bytes of a compressed file read at a time, at most


class _Damaged(Exception):
    """What is compressed cannot be read on."""


_DAMAGES: Final = (EOFError, zlib.error, gzip.BadGzipFile, _Damaged)


class SourceDamaged(Failure):
    """The file is damaged: nobody can mend a line of it, so it must be fetched again."""


class Unreadable(Exception):
    """The input failed after `read` bytes; `__cause__` says why."""

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

    def copy(self) -> Portion:
        """A copy, which is not overwritten."""
        data = self.data[self.begin : self.end] + bytes(SLACK)
        return Portion(data, 0, self.end - self.begin)

    def behind(self, count: int) -> tuple[Portion, int]:
        """The portion without its first `count` lines, and how many were left out: all, if it has fewer."""
        there = self.data.count(b"\n", self.begin, self.end)
        if there <= count:
            return self._replace(begin=self.end), there
        begin = self.begin
        for _ in range(count):
            begin = self.data.index(b"\n", begin) + 1
        return self._replace(begin=begin), count


def no_utf8(line: bytes | bytearray, error: UnicodeDecodeError) -> str:
    """Why a line cannot be read."""
    if line.rstrip(b"\n") == TOO_LONG:
        return f"it has more than {LONGEST >> 20} MiB, and no log holds it"
    return f"not UTF-8: byte 0x{line[error.start]:02x} in column {error.start + 1}"


class Source:
    """One input, `-` being standard input. A context manager.

    allow_prefix: text before the JSON of a line becomes blanks, and so does a line of text alone
    """

    def __init__(self, path: str, *, allow_prefix: bool = False) -> None:
        self.path = path
        self.texts = 0  # lines of text that became blank
        self.allow_prefix = allow_prefix
        self.unit = "line"  # the unit in which messages count
        self.name = "standard input" if path == "-" else path
        self.taken = 0  # lines that were imported, or passed over
        self._file: IO[bytes] | None = None
        self._opened: _Opened | None = None

    @property
    def is_plain(self) -> bool:
        """Whether its bytes are those of a file."""
        return self.size is not None and self.stream() is self._file

    @property
    def size(self) -> int | None:
        """Size in bytes; None where it is unknown (a pipe)."""
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
        """Runs of whole lines, in order. Each is overwritten when the next but one is read.

        TOO_LONG replaces a line of more than LONGEST bytes. Lines of a pipe are given as soon as they come. Raises
        Failure; Unreadable, which failure() explains.
        """
        stream = self.stream()
        data, other = bytearray(READ + SLACK), bytearray(READ + SLACK)
        is_handed_on = is_too_long = False
        begin, end = 0, 0  # data[begin:end] is the beginning of a line
        failure: Unreadable | None = None
        at_start = True
        while failure is None:
            rest = data[begin:end]
            if is_handed_on:
                data, other, is_handed_on = other, data, False
            if len(rest) > (len(data) - SLACK) // 2:
                data = bytearray(2 * max(len(data), len(rest)))
            data[: len(rest)] = rest
            begin, end = 0, len(rest)
            try:
                read = self._fill(stream, memoryview(data)[end : len(data) - SLACK])
            except Unreadable as broken:
                read, failure = broken.read, broken
            end += read
            if is_too_long:
                newline = data.find(b"\n", len(rest), end)
                is_too_long, passed = newline < 0, end if newline < 0 else newline
                data[len(rest) : len(rest) + end - passed] = data[passed:end]
                end -= passed - len(rest)
            if at_start and read:
                begin, at_start = self._mark(data), False
            cut = data.rfind(b"\n", len(rest), end) + 1
            if cut > begin:
                yield self._portion(data, begin, cut)
                is_handed_on = True
                begin = cut
            elif end - begin > LONGEST:
                is_too_long = True
                data[begin : begin + len(TOO_LONG)] = TOO_LONG
                end = begin + len(TOO_LONG)
            if not read:
                break
        if failure is not None:
            raise failure
        if begin < end:
            data[end : end + 1] = b"\n"
            yield self._portion(data, begin, end + 1)

    def _portion(self, data: bytearray, begin: int, end: int) -> Portion:
        if self.allow_prefix:
            import numpy as np

            from jitdb.log.lines.line_kernels import blank_prefixes

            self.texts += blank_prefixes(np.frombuffer(data, np.uint8), begin, end)
        return Portion(data, begin, end)

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
        except _DAMAGES as error:
            raise Unreadable(read) from error
        return read

    def failure(self, error: BaseException | None) -> Failure:
        """The error to report once all that was read before it is imported."""
        packing = self._opened.packing if self._opened else ""
        what = f"the {packing} data are cut off" if isinstance(error, EOFError) else f"damaged {packing} data: {error}"
        where = f"{self.name}, behind line {self.taken:,}" if self.taken else self.name
        return SourceDamaged(f"{where}: {what}")

    def stream(self) -> Any:
        """The content, uncompressed."""
        if self._opened is None:
            assert self._file is not None
            self._opened = uncompressed(self._file)
        return self._opened.stream

    def peek(self) -> bytes:
        """The first bytes; they stay to be read. Raises Failure."""
        try:
            return bytes(self.stream().peek(READ))
        except _DAMAGES as error:
            raise self.failure(error) from error

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks, without a byte order mark. Raises Failure, Unreadable."""
        room, at_start = bytearray(READ), True
        while read := self._fill(self.stream(), memoryview(room)):
            begin = self._mark(room[:read]) if at_start else 0
            at_start = False
            yield bytes(room[begin:read])

    def _mark(self, data: bytearray) -> int:
        """How many bytes the byte order mark at the beginning has."""
        if data.startswith(_UTF16):
            name = "FILE" if self.path == "-" else self.path
            hint = f"iconv -f UTF-16 -t UTF-8 {name} | jitdb import - LOG"
            raise Failure(f"{self.name}: this is UTF-16, not UTF-8", hint)
        return len(_BOM) if data.startswith(_BOM) else 0


class _Opened(NamedTuple):
    """A stream with `peek`, `read1`, `readinto1`, which raise _DAMAGES; and its compression, or ''."""

    stream: Any
    packing: str


def uncompressed(file: Any) -> _Opened:
    """The content of a file, by its first bytes."""
    kind = compression_of(file.peek(LONGEST_START))
    return _Opened(_READERS[kind](file) if kind else file, kind)


class _Zstd(io.RawIOBase):
    """The content of all frames, each byte as soon as it can be decompressed."""

    def __init__(self, file: Any) -> None:
        self._file, self._left = file, b""  # what was read and is of the next frame
        self._frame: zstd.ZstdDecompressor | None = None  # that is being read

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while True:
            packed = b""
            if self._frame is None or self._frame.needs_input:
                packed, self._left = self._left or self._file.read1(_PACKED), b""
                if not packed:
                    if self._frame is not None:
                        raise EOFError
                    return 0
            frame = self._frame = self._frame or zstd.decompressor()
            try:
                text = frame.decompress(packed, len(room))
            except zstd.ZstdError as error:
                raise _Damaged(str(error)) from error
            if frame.eof:
                self._left, self._frame = frame.unused_data, None
            if text:
                room[: len(text)] = text
                return len(text)


# What reads each compression (common/formats.py).
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "zstd": lambda file: io.BufferedReader(_Zstd(file), _PACKED),
}
