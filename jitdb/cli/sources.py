"""Where the lines of an import come from: files and standard input, compressed or not."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, Final, cast

from jitdb.cli.complaints import Failure

_READ: Final = 1 << 20  # bytes read and imported at a time
_LONGEST: Final = 1 << 26  # bytes of one line: four times what the largest block holds

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


class SourceDamaged(Failure):
    """The source itself must be had anew; a line of it cannot be mended."""


class Source:
    """One input, `-` being standard input. A context manager."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "standard input" if path == "-" else path
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

    def batches(self) -> Iterator[tuple[int, list[bytes]]]:
        """Runs of whole lines, without their newlines, and the number (from 1) of the first one of each.

        What a pipe has is handed on at once. Raises Failure.
        """
        stream = self._uncompressed()
        number, rest, first = 1, [b""], True
        while True:
            try:
                data = stream.read1(_READ)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                what = "the gzip data are cut off" if isinstance(error, EOFError) else f"damaged gzip data: {error}"
                where = f"{self.name}, behind line {number - 1:,}" if number > 1 else self.name
                raise SourceDamaged(f"{where}: {what}") from error
            if first and data:
                data = self._without_mark(data)
                first = False
            elif not data:
                break
            head, newline, tail = data.rpartition(b"\n")
            if newline:
                lines = b"".join([*rest, head]).split(b"\n")
                rest = [tail]
                yield number, lines
                number += len(lines)
            else:
                rest.append(tail)
                if sum(map(len, rest)) > _LONGEST:
                    raise Failure(f"{self.name}, line {number:,}: more than {_LONGEST >> 20} MiB: is this NDJSON?")
        last = b"".join(rest)
        if last:
            yield number, [last]

    def _uncompressed(self) -> Any:
        file: Any = self._file
        assert file is not None
        if file.peek(2)[:2] == _GZIP:
            return cast(Any, gzip.GzipFile(fileobj=file))
        return file

    def _without_mark(self, data: bytes) -> bytes:
        if data.startswith(_UTF16):
            name = "FILE" if self.path == "-" else self.path
            hint = f"iconv -f UTF-16 -t UTF-8 {name} | jitdb import - LOG"
            raise Failure(f"{self.name}: this is UTF-16, not UTF-8", hint)
        return data.removeprefix(_BOM)
