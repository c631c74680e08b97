"""The texts of small files, each read and decompressed as a whole; those that were read last stay for a while."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from jitdb.common import memory, zlib, zstd
from jitdb.common.forking import begins_anew, fork_safe
from jitdb.common.formats import compression_of
from jitdb.log.io import osfile
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.objects.door import fs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST: Final = 64 << 20  # bytes of a text
AT_ONCE: Final = 32 << 20  # bytes of texts that are made before they are scanned
_MOST: Final = 3 * AT_ONCE // 2
_WITH_HEADER: Final = 31  # zlib's word for windows of 32 KiB, with gzip's header and trailer


class Texts:
    """Bytes by the stamps of their files. Safe for threads: of two that want one, the second waits for the first."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock())
        self._held: OrderedDict[Stamp, bytes] = OrderedDict()
        self._making: dict[Stamp, threading.Lock] = {}
        self._size = 0
        begins_anew(self)

    def begin_anew(self) -> None:
        """See forking.BeginsAnew."""
        self._held, self._making, self._size = OrderedDict(), {}, 0

    def of(self, stamp: Stamp, made: Callable[[], bytes | None]) -> bytes | None:
        """The text of the file of this stamp, which `made` gives where it is not held."""
        with self._lock:
            if (text := self._held.get(stamp)) is not None:
                self._held.move_to_end(stamp)
                return text
            making = self._making.setdefault(stamp, threading.Lock())
        with making:
            with self._lock:
                if (text := self._held.get(stamp)) is not None:
                    return text
            text = made()
        with self._lock:
            self._making.pop(stamp, None)
            if text is not None and stamp not in self._held:
                self._held[stamp] = text
                self._size += len(text)
            while self._size > memory.work(_MOST) and len(self._held) > 1:
                self._size -= len(self._held.popitem(last=False)[1])
        return text

    def holds(self, stamp: Stamp) -> bool:
        return stamp in self._held

    def drop(self, stamp: Stamp) -> None:
        with self._lock:
            self._size -= len(self._held.pop(stamp, b""))


TEXTS: Final = Texts()


@contextmanager
def opened(path: str) -> Iterator[osfile.Descriptor]:
    """A file that is no link. Raises OSError."""
    file = osfile.Descriptor(fs_of(path), path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield file
    finally:
        file.close()


def text_at(path: str, stamp: Stamp) -> bytes | None:
    """The text of the file of this stamp; None where it is not that any more, or nothing that ends as it should.

    Raises OSError.
    """
    with opened(path) as file:
        data = file.read(stamp.size, 0)
        if len(data) < stamp.size or Stamp.of(file.status()) != stamp:
            return None
    return decompressed(data)


def decompressed(data: bytes) -> bytes | None:
    """The text of all that a file holds; None where it is damaged, cut off or too long."""
    kind = compression_of(data)
    if not kind:
        return data
    parts = list[bytes]()
    left = LONGEST
    while data:
        part, data = (_member if kind == "gzip" else _frame)(data, left)
        if part is None:
            return None
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _member(data: bytes, most: int) -> tuple[bytes | None, bytes]:
    """The text of the first member of a gzip file, and what is behind it; zeros there are padding."""
    stream = zlib.decompressobj(_WITH_HEADER)
    try:
        text = stream.decompress(data, most + 1)
    except zlib.error:
        return None, b""
    is_whole = stream.eof and len(text) <= most
    return (text if is_whole else None), stream.unused_data.lstrip(b"\0")


def _frame(data: bytes, most: int) -> tuple[bytes | None, bytes]:
    """The text of the first frame of a zstd file, and what is behind it."""
    if data[1:4] == b"\x2a\x4d\x18":  # one without text
        size = 8 + int.from_bytes(data[4:8], "little")
        return (b"" if len(data) >= size >= 8 <= len(data) else None), data[size:]
    stream = zstd.decompressor()
    try:
        text = stream.decompress(data, most + 1)
    except zstd.ZstdError:
        return None, b""
    is_whole = stream.eof and len(text) <= most
    return (text if is_whole else None), stream.unused_data
