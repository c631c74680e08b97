"""Packing a file of lines: into short zstd frames that can be decompressed each for itself.

A frame ends with a line, unless that has more than LONGEST bytes. The frames are followed by a seek table, as the zstd
seekable format has it (files/zstd_file.py), so that other tools can read from the middle, too. The file is written
beside its place, read back, and renamed when it holds the very text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common import zstd
from jitdb.common.digests import blake2b
from jitdb.common.formats import without_ending
from jitdb.errors import InvalidArgument, LogCorrupt, LogError
from jitdb.log.io import osfile
from jitdb.log.io.filenames import temporary_name
from jitdb.log.lines.detection import is_lines, odd_file
from jitdb.log.lines.files.opening import open_lines
from jitdb.log.lines.files.zstd_file import SEEK_TABLE, SEEKABLE, TABLE_END, TABLE_HEAD, TABLE_ROW

if TYPE_CHECKING:
    from jitdb.log.lines.files.file import LineFile

FRAME: Final = 1 << 18  # bytes of text: a record costs 0.4 ms, and the file is a tenth larger than one frame of all
LEVEL: Final = 3  # of zstd: its own default

LONGEST: Final = 8 << 20  # bytes of text in a frame, and so of a line that no frame cuts

_PIECE: Final = 1 << 20  # bytes of text read at a time
_NOBODY: Final = bytes(24)  # a name: nothing that is kept is asked for


class Packed(NamedTuple):
    """What was done: bytes before, bytes now, bytes of text, frames."""

    before: int
    after: int
    text: int
    frames: int


def packed_name(source: Path) -> Path:
    """Where a packed file lies if nobody says it.

    >>> [str(packed_name(Path(name))) for name in ("a.ndjson", "a.ndjson.gz", "a.ndjson.zst")]
    ['a.ndjson.zst', 'a.ndjson.zst', 'a.ndjson.zst']
    """
    return source.with_name(without_ending(source.name) + ".zst")


def pack(
    source: Path,
    target: Path,
    *,
    level: int = LEVEL,
    replace: bool = False,
    remove: bool = False,
    told: Callable[[int, int], object] = lambda done, total: None,
) -> Packed:
    """Pack a file, compressed or not, into another one.

    replace: put it in the place of a file that is there
    remove:  the source goes when the other one is durable; if both are one, it is replaced
    told:    called now and then with the bytes of text done so far, and about how many there are

    Raises NotALog, LogCorrupt, LogError, InvalidArgument, OSError. Then nothing was changed.
    """
    is_same = source.resolve() == target.resolve()
    if osfile.fs.exists(target) and not (remove if is_same else replace):
        raise InvalidArgument("there is such a file already, and nothing said that it is to be replaced", path=target)
    if not is_lines(source, said=True):
        raise odd_file(source) or LogError("it is no file of lines", path=source)
    file = open_lines(source)
    temporary = target.with_name("." + temporary_name(target.name))
    try:
        stamp = file.stamp()
        with osfile.Descriptor(osfile.fs, temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600) as fd:
            writer = _Writer(fd, level)
            digest = blake2b()
            total = file.end_of_lines(stamp, 0, -1, _NOBODY)
            for piece in _text_of(file, source):
                digest.update(piece)
                writer.add(piece)
                told(writer.text, total)
            writer.end()
            status = osfile.fs.stat(source)
            osfile.fs.share(fd, status, is_log=True)
            osfile.fs.fsync(fd)
        _check(temporary, digest.digest())
        os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
        if file.stamp() != stamp or not file.is_at(source):
            raise LogError("it was changed while it was packed; let its writer end first", path=source)
        osfile.fs.rename(temporary, target)
    except BaseException:
        with suppress(OSError):
            osfile.fs.unlink(temporary)
        raise
    finally:
        file.close()
    osfile.fs.sync_folder(target.parent)
    if remove and not is_same:
        osfile.fs.unlink(source)
    return Packed(stamp.size, writer.size, writer.text, len(writer.sizes))


def _text_of(file: LineFile, path: Path) -> Iterator[memoryview]:
    """All of its text; each piece is used again for the next one. Raises LogCorrupt where it has no end."""
    file.end_of_lines(file.stamp(), 0, -1, _NOBODY)
    buffer = memoryview(bytearray(_PIECE))
    at, size = 0, _PIECE
    while size == _PIECE:
        size = file.read_into(buffer, at)
        at += size
        yield buffer[:size]
    if file.unfinished is not None:
        raise LogCorrupt(
            f"the end of the compressed file is missing, from byte {file.unfinished:,} on",
            path=path,
            offset=file.unfinished,
        )


def _check(path: Path, digest: bytes) -> None:
    """Raise LogCorrupt where the file does not hold the text of this digest."""
    file, found = open_lines(path), blake2b()
    try:
        for piece in _text_of(file, path):
            found.update(piece)
    finally:
        file.close()
    if found.digest() != digest:
        raise LogCorrupt("what was written is not what is read back: look after the disk", path=path)


class _Writer:
    """Frames, and their table at the end, into an empty file.

    size, text: bytes that were written, and bytes of text in them
    sizes:      of each frame, in the file and of its text
    """

    def __init__(self, fd: int, level: int) -> None:
        self._fd, self._compressed = fd, zstd.compressor(level, has_sum=True)
        self._held = bytearray()  # text of which there is no frame yet
        self.size = self.text = 0
        self.sizes: list[tuple[int, int]] = []

    def add(self, piece: memoryview) -> None:
        """Text that follows. Raises OSError."""
        self._held += piece
        self.text += len(piece)
        while len(self._held) >= FRAME:
            fresh = max(FRAME, len(self._held) - len(piece))  # what is before was looked at
            stop = self._held.rfind(b"\n", 0, FRAME) + 1 or self._held.find(b"\n", fresh, LONGEST) + 1
            if not stop and len(self._held) < LONGEST:
                return
            self._frame(stop or LONGEST)

    def _frame(self, stop: int) -> None:
        with memoryview(self._held) as held, held[:stop] as text:
            data = self._compressed(text)
        self._write(data)
        self.sizes.append((len(data), stop))
        del self._held[:stop]

    def _write(self, data: bytes) -> None:
        osfile.fs.write(self._fd, data, self.size)
        self.size += len(data)

    def end(self) -> None:
        """The last frame, and the table."""
        if self._held:
            self._frame(len(self._held))
        table = b"".join(TABLE_ROW.pack(*sizes) for sizes in self.sizes)
        end = TABLE_END.pack(len(self.sizes), 0, SEEKABLE)
        self._write(TABLE_HEAD.pack(SEEK_TABLE, len(table) + len(end)) + table + end)
