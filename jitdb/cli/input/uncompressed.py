"""What a source is uncompressed, from its first bytes on: gzip by the standard library, zstd by zstandard."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any, Final, NamedTuple

from jitdb.cli.failures import Failure

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_SKIPPED: Final = b"\x2a\x4d\x18"  # of zstd frames that are no text, behind a byte from 0x50 to 0x5F
_WINDOW: Final = 1 << 27  # bytes that a frame may make us hold, as zstd's own tool has it
_READ: Final = 1 << 17  # bytes of the file read at a time, at most

ENDINGS: Final = (".gz", ".zst")


class Damaged(Exception):
    """What is compressed cannot be read on."""


DAMAGES: Final = (EOFError, zlib.error, gzip.BadGzipFile, Damaged)


class Opened(NamedTuple):
    """A stream with `peek`, `read1`, `readinto1`, which raises DAMAGES, and what the file is compressed with, or ''."""

    stream: Any
    packing: str


def uncompressed(file: Any, name: str) -> Opened:
    """The text of a file that can be peeked into. Raises Failure where what reads it is missing."""
    head = file.peek(4)[:4]
    if head.startswith(_GZIP):
        return Opened(gzip.GzipFile(fileobj=file), "gzip")
    if head == _ZSTD or (head[1:] == _SKIPPED and head[0] >> 4 == 5):
        return Opened(io.BufferedReader(_Zstd(file, name), _READ), "zstd")
    return Opened(file, "")


def without_ending(name: str) -> str:
    """A file's name without that of its compression.

    >>> without_ending("a.csv.zst")
    'a.csv'
    """
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


class _Zstd(io.RawIOBase):
    """The text of all frames, as soon as it is there."""

    def __init__(self, file: Any, name: str) -> None:
        try:
            import zstandard
        except ImportError:
            raise Failure(
                f"{name}: it is compressed with zstd, which zstandard reads, and that is not installed",
                "pip install 'jitdb[compressed]'",
            ) from None
        self._error = zstandard.ZstdError
        self._begin = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj
        self._file = file
        self._frame: Any = None  # that is being read
        self._packed, self._text = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self._text:
            self._packed = self._packed or self._file.read1(_READ)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError
                return 0
            self._frame = self._frame or self._begin()
            try:
                self._text = memoryview(self._frame.decompress(self._packed))
            except self._error as error:
                raise Damaged(str(error)) from error
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(room), len(self._text))
        room[:size] = self._text[:size]
        self._text = self._text[size:]
        return size
