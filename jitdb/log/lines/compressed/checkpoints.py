"""Places in a gzip file from which it can be decompressed: about one a MiB of text, found and used by indexed_gzip.

They lie in `checkpoints`, in the folder beside the file (docs/json-lines.md), little-endian:

    0   "JCHECK1\\n"
    8   name            24 bytes: the file's identity and token; those of another one say nothing of it
    32  stored, text    u64, u64: just past the last whole member, in the file and in the text
    48  lines           u64: in the text, just past the last newline before that
    56  stored, text    u64, u64: the same of the last member in which checkpoints were looked for
    72  table, count    u64, u32: where the table begins, and how many rows it has
    84  CRC-32 of the table and of all before
    88  windows         each the 32 KiB of text before a checkpoint, compressed (zlib)
    …   the table       a row a checkpoint, 33 bytes:
          text, stored  u64, u64: the first byte from there on, in the text and in the file
          bits          u8: so many bits of the stored byte before belong to it, too
          window, size  u64, u32: where its window begins here, and its bytes; 0 where a member begins
          CRC-32        u32: of the window

It is written beside its place and renamed. Where it is missing, damaged or another file's, it is made anew.
"""

from __future__ import annotations

import os
import struct
import tempfile
from bisect import bisect_right
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common import zlib
from jitdb.errors import LogError
from jitdb.log.io import osfile
from jitdb.log.io.filenames import CHECKPOINTS, temporary_name
from jitdb.log.lines.compressed.gzip_stream import Members
from jitdb.log.lines.compressed.points import Point, find_points, read_from
from jitdb.log.lines.compressed.stored import Stored

_MAGIC: Final = b"JCHECK1\n"
_HEAD: Final = struct.Struct("<8s24sQQQQQQI")
_CRC: Final = struct.Struct("<I")
_ROW: Final = struct.Struct("<QQBQII")
_BEGIN: Final = _HEAD.size + _CRC.size  # of the windows


class _Row(NamedTuple):
    """See the head of this file."""

    text: int
    stored: int
    bits: int = 0
    window: int = 0
    size: int = 0
    crc: int = 0


class Checkpoints:
    """Of one file. Not safe for threads. `folder`: None keeps them in a file without a name."""

    def __init__(self, stored: Stored, folder: Path | None, name: bytes) -> None:
        self._stored, self._folder, self._name = stored, folder, name
        self._unnamed: osfile.Descriptor | None = None
        self._rows: list[_Row] = []
        self._searched = Members()  # where there are checkpoints
        self.members = Members()

    def load(self) -> Members:
        """Take what other processes found, if they did. Raises OSError where it cannot be read."""
        if self._unnamed is None and self._folder is not None:
            path = self._folder / CHECKPOINTS
            with suppress(FileNotFoundError, NotADirectoryError), osfile.Descriptor(osfile.fs, path, os.O_RDONLY) as fd:
                self._take(fd)
        return self.members

    def _take(self, fd: int) -> None:
        head = osfile.fs.read(fd, _BEGIN, 0)
        if len(head) < _BEGIN:
            return
        magic, name, stored, text, lines, *searched, at, count = _HEAD.unpack_from(head)
        if (magic, name) != (_MAGIC, self._name) or stored > self._stored.stop:
            return
        table = osfile.fs.read(fd, count * _ROW.size, at) if at < 1 << 62 else b""
        if len(table) == count * _ROW.size and _sum_of(head, table) == head[_HEAD.size :]:
            self.members, self._searched = Members(stored, text, lines), Members(*searched)
            self._rows = [_Row(*row) for row in _ROW.iter_unpack(table)]

    def read(self, size: int, offset: int) -> bytes | None:
        """This part of the text; None where no checkpoint leads there. Raises LogError, OSError."""
        place = bisect_right(self._rows, offset, key=attrgetter("text")) - 1
        if place < 0 or offset + size > self._searched.text:
            return None
        row = self._rows[place]
        window = self._window(row)
        if window is None:  # damaged, or another process has written others
            self._rows, self._searched = [], Members()
            return None
        end = Point(self._searched.text, self._searched.stored)
        return read_from(self._stored, Point(row.text, row.stored, row.bits, window), end, size, offset)

    def _window(self, row: _Row) -> bytes | None:
        """That of a checkpoint; None where it is not what was written."""
        if self._unnamed is not None:
            return _window_in(self._unnamed.number, row)
        assert self._folder is not None
        path = self._folder / CHECKPOINTS
        with suppress(FileNotFoundError, NotADirectoryError), osfile.Descriptor(osfile.fs, path, os.O_RDONLY) as fd:
            return _window_in(fd, row)
        return None

    def note(self, members: Members) -> None:
        """Let the next process know which members there are, if anything is kept; checkpoints are looked for later."""
        if members != self.members and self._folder is not None and self._folder.is_dir():
            with suppress(OSError, LogError):
                self._rewrite(members, self._searched)
        self.members = members

    def extend(self, least: int) -> None:
        """Look for checkpoints in all members that are known, if that was not done up to this byte of the text.

        Raises LogError, OSError where they cannot be kept anywhere.
        """
        if self._searched.text < least and self._folder is not None and self._folder.is_dir():
            with suppress(PermissionError):
                self._rewrite(self.members, self.members)
        if self._searched.text < least:
            self._keep_unnamed()

    def _keep_unnamed(self) -> None:
        path = Path(tempfile.gettempdir()) / f"jitdb-{os.urandom(8).hex()}"
        file = osfile.Descriptor(osfile.fs, path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        osfile.fs.unlink(path)
        self._rows = self._written(file.number, self.members, self.members)
        self._unnamed, self._searched = file, self.members

    def _rewrite(self, members: Members, searched: Members) -> None:
        assert self._folder is not None
        path = self._folder / CHECKPOINTS
        temporary = path.with_name(temporary_name(CHECKPOINTS))
        try:
            with osfile.Descriptor(osfile.fs, temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC) as fd:
                rows = self._written(fd, members, searched)
            osfile.fs.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                osfile.fs.unlink(temporary)
            raise
        self._rows, self._searched = rows, searched

    def _written(self, fd: int, members: Members, searched: Members) -> list[_Row]:
        """Write the checkpoints that are known, and those that are not yet, into an empty file."""
        rows = list[_Row]()
        at, base = _BEGIN, self._searched

        def add(point: Point) -> None:
            nonlocal at
            packed = zlib.compress(point.window, 1) if point.window else b""
            osfile.fs.write(fd, packed, at)
            rows.append(_Row(point.text, point.stored, point.bits, at, len(packed), zlib.crc32(packed)))
            at += len(packed)

        for row in self._rows:
            window = self._window(row)
            if window is None:
                rows, at, base = [], _BEGIN, Members()
                break
            add(Point(row.text, row.stored, row.bits, window))
        if searched.stored > base.stored:
            begin, end = Point(base.text, base.stored), Point(searched.text, searched.stored)
            for point in find_points(self._stored, begin, end):
                add(point)
        table = b"".join(_ROW.pack(*row) for row in rows)
        head = _HEAD.pack(_MAGIC, self._name, *members, searched.stored, searched.text, at, len(rows))
        osfile.fs.write(fd, table, at)
        osfile.fs.write(fd, head + _sum_of(head, table), 0)
        return rows


def _sum_of(head: bytes, table: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(head[: _HEAD.size], zlib.crc32(table)))


def _window_in(fd: int, row: _Row) -> bytes | None:
    data = osfile.fs.read(fd, row.size, row.window)
    if len(data) < row.size or zlib.crc32(data) != row.crc:
        return None
    return zlib.decompress(data) if data else b""
