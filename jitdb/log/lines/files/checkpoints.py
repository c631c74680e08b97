"""What is kept of a compressed file, in the folder beside it (docs/json-lines.md), for reads by the next process.

`checkpoints`: places in a gzip file from which it can be decompressed, found and used by indexed_gzip:

    0   "JCHECK2\\n"
    8   name            24 bytes: the file's identity and token; those of another one say nothing of it
    32  stored, text    u64, u64: just past the last member that was looked through, in the file and in the text
    48  CRC-32 of all before, and of what follows
    52  the index that indexed_gzip exports, compressed (zlib)

`tail`: the end of the text. Each process that finds indexes looks at the last record:

    0   "JTAIL02\\n"
    8   name            24 bytes, as above
    32  stored          u64: bytes of the file when it had this end
    40  begin           u64: where what is kept begins in the text; it is all from there on
    48  stored, text    u64, u64: just past the last whole gzip member, in the file and in the text; 0 of zstd
    64  lines           u64: in the text, just past the last newline before that
    72  CRC-32 of all before, and of what follows
    76  the text, compressed (zlib)

All numbers are little-endian. Both are written beside their places and renamed. One that is missing, damaged or another
file's is made anew.
"""

from __future__ import annotations

import io
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from jitdb.common import zlib
from jitdb.log.io import osfile
from jitdb.log.io.filenames import CHECKPOINTS, TAIL, temporary_name
from jitdb.log.lines.files.decompressing import Stored, View

SPACING: Final = 1 << 21  # bytes of text between checkpoints, at least: each has a window of 32 KiB
MOST: Final = 512  # checkpoints, about, whose windows are in memory; those of a longer text are farther apart

_CHECKPOINTS: Final = struct.Struct("<8s24sQQ")
_TAIL: Final = struct.Struct("<8s24sQQQQQ")
_MAGIC: Final = {CHECKPOINTS: b"JCHECK2\n", TAIL: b"JTAIL02\n"}
_CRC: Final = struct.Struct("<I")
_EXPORTED: Final = struct.Struct("<5sBBQQI")  # magic, version, flags, bytes of file and text, spacing; by indexed_gzip
_WINDOW: Final = 1 << 15  # bytes of text that deflate looks back
_READ: Final = 1 << 16  # bytes of the file that are read at a time
_LARGEST: Final = 1 << 26  # bytes that such a file may decompress to: several times what is written
_STEP: Final = 1 << 26  # bytes of text that are looked through at a time: a signal waits as long


class Members(NamedTuple):
    """Whole gzip members, from the first one on: where they end in the file and in the text, and the lines of that."""

    stored: int = 0
    text: int = 0
    lines: int = 0


class Tail(NamedTuple):
    """All of the text from a byte on, of a file of so many bytes."""

    name: bytes
    stored: int
    begin: int
    members: Members
    text: bytes

    @property
    def text_end(self) -> int:
        return self.begin + len(self.text)


def load_tail(folder: Path) -> Tail | None:
    """What is kept; None where that is nothing, or not what was written."""
    found = _load(folder, TAIL, _TAIL)
    if found is None:
        return None
    (name, stored, begin, *members), text = found
    return Tail(name, stored, begin, Members(*members), text)


def keep_tail(folder: Path, tail: Tail) -> None:
    """Keep it, if there is such a folder and it can be written."""
    _keep(folder, TAIL, _TAIL, (tail.name, tail.stored, tail.begin, *tail.members), tail.text)


class Checkpoints:
    """Of one file. Not safe for threads. `folder`: None keeps them in memory alone."""

    def __init__(self, stored: Stored, folder: Path | None, name: bytes) -> None:
        self._stored, self._folder, self._name = stored, folder, name
        self._file: Any = None  # indexed_gzip's reader of the members
        self._end = Members()  # of these

    def read(self, size: int, offset: int, members: Members) -> bytes:
        """This part of the text of these members. Raises LogCorrupt, OSError."""
        if self._end.text < offset + size:
            self._open(members)
        self._tried(self._file.seek, offset)
        data: bytes = self._tried(self._file.read, size)
        if len(data) < size:
            raise self._stored.corrupt(f"the text at byte {offset:,} is shorter than it was", self._end.stored)
        return data

    def _open(self, members: Members) -> None:
        """Take what is kept, and look through the members behind that."""
        from indexed_gzip import indexed_gzip

        end, index = (self._end, _exported(self._file)) if self._file is not None else self._kept(members)
        self._file, spacing = None, max(SPACING, members.text // MOST)
        file = indexed_gzip._IndexedGzipFile(
            fileobj=View(self._stored, 0, members.stored), spacing=spacing, window_size=_WINDOW, readbuf_size=_READ,
            skip_crc_check=True, auto_build=True,
        )  # fmt: skip
        if index:
            magic, version, flags, *_ = _EXPORTED.unpack_from(index)
            head = _EXPORTED.pack(magic, version, flags, members.stored, 0, spacing)
            file.import_index(fileobj=io.BytesIO(head + index[_EXPORTED.size :]))
        if end.text < members.text:
            for at in range(end.text + _STEP, members.text, _STEP):
                self._tried(file.seek, at)
            self._tried(file.seek, members.text)
            if self._folder is not None:
                said = (self._name, members.stored, members.text)
                _keep(self._folder, CHECKPOINTS, _CHECKPOINTS, said, _exported(file))
        self._file, self._end = file, members

    def _kept(self, members: Members) -> tuple[Members, bytes]:
        """What another process found of these members, and kept."""
        found = None if self._folder is None else _load(self._folder, CHECKPOINTS, _CHECKPOINTS)
        if found is not None:
            (name, stored, text), index = found
            if name == self._name and stored <= members.stored and text <= members.text:
                return Members(stored, text), index
        return Members(), b""

    def _tried(self, call: Any, argument: int) -> Any:
        try:
            return call(argument)
        except OSError as error:  # indexed_gzip's own errors are such; those of the file are their causes
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from error
            raise self._stored.corrupt(f"it cannot be decompressed ({error})", self._end.stored) from error


def _exported(file: Any) -> bytes:
    out = io.BytesIO()
    file.export_index(fileobj=out)
    return out.getvalue()


def _load(folder: Path, file: str, form: struct.Struct) -> tuple[list[Any], bytes] | None:
    """The fields of its head behind the magic bytes, and what follows; None where that is not what was written."""
    with suppress(OSError):
        data, begin = osfile.fs.read_if_there(folder / file) or b"", form.size + _CRC.size
        if len(data) > begin and data[form.size : begin] == _sum_of(data[: form.size], data[begin:]):
            magic, *fields = form.unpack_from(data)
            if magic == _MAGIC[file]:
                content = zlib.decompressed(data[begin:], _LARGEST)
                return None if content is None else (fields, content)
    return None


def _keep(folder: Path, file: str, form: struct.Struct, fields: tuple[Any, ...], content: bytes) -> None:
    """Write it, if there is such a folder and it can be written."""
    if not folder.is_dir():
        return
    head, packed = form.pack(_MAGIC[file], *fields), zlib.compress(content, 1)
    temporary = folder / temporary_name(file)
    with suppress(OSError):
        try:
            with osfile.Descriptor(osfile.fs, temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
                osfile.fs.write(fd, head + _sum_of(head, packed) + packed, 0)
            osfile.fs.rename(temporary, folder / file)
        except BaseException:
            with suppress(OSError):
                osfile.fs.unlink(temporary)
            raise


def _sum_of(head: bytes, content: bytes) -> bytes:
    return _CRC.pack(zlib.crc32(content, zlib.crc32(head)))
