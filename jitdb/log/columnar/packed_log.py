"""The file of a log that is written once: packed, in zstd frames with a table of them behind (files/zstd_file.py), and
read and written as if it were not.

The log goes through a FileSystem of its own, so nothing else knows of it: what stat says of the file is what it says of
the packed one, but for the size. What is written is packed as it comes; what was packed is never written again. The
first and the last frame hold their bytes as they are: a log is opened, and its indexes are asked, without
decompressing.
"""

from __future__ import annotations

import os
import stat
import struct
from array import array
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.common import zstd
from jitdb.errors import LogCorrupt
from jitdb.log.io import osfile
from jitdb.log.io.filenames import log_path
from jitdb.log.lines.files.decompressing import PIECES
from jitdb.log.lines.files.zstd_file import MAGIC, SEEK_TABLE, SEEKABLE, TABLE_END, TABLE_HEAD, TABLE_ROW
from jitdb.log.log import Log
from jitdb.log.opening.format import OpenOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jitdb.log.codecs import Codec

FRAME: Final = 1 << 16  # bytes of the log: a record costs 0.1 ms
LEVEL: Final = 1  # of zstd: higher ones take longer, and give nothing here

_DAMAGED: Final = b"\xff"  # for bytes that are lost: no log has such lengths, and its checksums tell where they were
_AT_ONCE: Final = 1 << 18  # bytes: a longer read is part of a scan, whose frames are not asked again
_PLAIN: Final = struct.Struct("<BI")  # behind the magic, of a frame that holds bytes as they are
_PLAIN_HEAD: Final = len(MAGIC) + _PLAIN.size + 3

_AS_THEY_ARE: Final = (
    *("stat", "lstat", "chmod", "chown", "listdir", "rename", "unlink", "rmdir", "mkdir"),
    *("lock", "lock_byte", "has_locked_bytes", "unlock_byte", "sync_both"),
)


class PackedFiles(osfile.FileSystem):
    """The files of one log, the one at `path` packed. Reading is safe for threads; one thread writes."""

    overwrites = False

    def __init__(self, path: Path) -> None:
        self._path, self._real = os.fspath(log_path(path)), osfile.fs
        self._packed: dict[int, _Packed] = {}  # by descriptors
        for name in _AS_THEY_ARE:
            setattr(self, name, getattr(self._real, name))

    def open(self, path: str | os.PathLike[str], flags: int, mode: int, /) -> int:
        fd = self._real.open(path, flags, mode)
        if os.fspath(path) == self._path:
            try:
                self._packed[fd] = _Packed(self._real, fd, self._path, is_new=bool(flags & os.O_EXCL))
            except BaseException:
                self._real.close(fd)
                raise
        return fd

    def close(self, fd: int, /) -> None:
        packed = self._packed.pop(fd, None)
        if packed is not None:
            PIECES.drop(packed.text)
        self._real.close(fd)

    def pread(self, fd: int, size: int, offset: int, /) -> bytes:
        packed = self._packed.get(fd)
        return self._real.pread(fd, size, offset) if packed is None else packed.read(size, offset)

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        packed = self._packed.get(fd)
        if packed is None:
            return self._real.preadv(fd, buffer, offset)
        return packed.read_into(buffer, offset)

    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
        packed = self._packed.get(fd)
        return self._real.pwrite(fd, data, offset) if packed is None else packed.write(data, offset)

    def truncate(self, fd: int, size: int, /) -> None:
        packed = self._packed.get(fd)
        if packed is None:
            self._real.truncate(fd, size)
        else:
            packed.resize(size)

    def fsync(self, fd: int, /) -> None:
        packed = self._packed.get(fd)
        if packed is not None:
            packed.settle()
        self._real.fsync(fd)

    def fdatasync(self, fd: int, /) -> None:
        self.fsync(fd)

    def fstat(self, fd: int, /) -> os.stat_result:
        packed = self._packed.get(fd)
        if packed is None:
            return self._real.fstat(fd)
        packed.settle()
        parts: Any = self._real.fstat(fd).__reduce__()
        fields, more = parts[1]
        return os.stat_result((*fields[: stat.ST_SIZE], packed.size, *fields[stat.ST_SIZE + 1 :]), more)


class _Packed:
    """One open file. What is behind the frames that are packed is held until it fills one.

    size: bytes of the log
    text: a number for what is kept of it in memory
    """

    def __init__(self, fs: osfile.FileSystem, fd: int, path: str, *, is_new: bool) -> None:
        self._fs, self._fd, self._path = fs, fd, path
        self.text = PIECES.new_text()
        self._held: bytearray | None = None  # None: it is only read
        self._is_settled = not is_new
        self._stops = array("Q", [0])  # in the file, where each frame that is packed ends
        self._rows = bytearray()  # of the table, the same frames
        self.size = 0
        if is_new:
            self._held, self._compressed = bytearray(), zstd.compressor(LEVEL)
        else:
            self._stops.extend(accumulate(self._table(fs.size(fd))))

    # Reading

    def _table(self, stored: int) -> Iterator[int]:
        """The bytes that each frame takes, as the end of the file says. Raises LogCorrupt."""
        at = stored - TABLE_END.size
        end = self._fs.read(self._fd, TABLE_END.size, max(0, at))
        count, _, magic = TABLE_END.unpack(end) if at >= 0 else (0, 0, 0)
        begin = at - count * TABLE_ROW.size - TABLE_HEAD.size
        if magic != SEEKABLE or begin < 0:
            raise self._corrupt("it has no table of its frames at its end: it was cut or changed", max(0, at))
        data = self._fs.read(self._fd, at - begin, begin)
        rows = list(TABLE_ROW.iter_unpack(data[TABLE_HEAD.size :]))
        fits = all(text == FRAME for _, text in rows[:-1]) and all(0 < text <= FRAME for _, text in rows[-1:])
        if data[: TABLE_HEAD.size] != TABLE_HEAD.pack(SEEK_TABLE, stored - begin - TABLE_HEAD.size) or not fits:
            raise self._corrupt("the table of its frames is damaged", begin)
        if sum(size for size, _ in rows) != begin:
            raise self._corrupt(f"its frames end at byte {begin:,}, and its table tells of others", begin)
        self.size = sum(text for _, text in rows)
        return (size for size, _ in rows)

    def read(self, size: int, offset: int) -> bytes:
        number, inside = divmod(offset, FRAME)
        if 0 < size <= FRAME - inside and offset + size <= self.size:
            return self._frame(number)[inside : inside + size]
        buffer = bytearray(max(0, min(size, self.size - offset)))
        with memoryview(buffer) as view:
            self.read_into(view, offset)
        return bytes(buffer)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        size, done = max(0, min(len(buffer), self.size - offset)), 0
        if size > _AT_ONCE:
            return self._scan(buffer[:size], offset)
        while done < size:
            number, inside = divmod(offset + done, FRAME)
            part = self._frame(number)[inside : inside + size - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    def _scan(self, buffer: memoryview, offset: int) -> int:
        """Fill the buffer with bytes that nobody may ask again soon."""
        first, last = offset // FRAME, min((offset + len(buffer) - 1) // FRAME + 1, self._sealed)
        begin = self._stops[min(first, self._sealed)]
        stored = (
            memoryview(self._fs.read(self._fd, self._stops[last] - begin, begin)) if first < last else memoryview(b"")
        )
        done = 0
        while done < len(buffer):
            number, inside = divmod(offset + done, FRAME)
            if number < last:
                data = self._unpacked(number, stored[self._stops[number] - begin : self._stops[number + 1] - begin])
            else:
                data = self._frame(number)
            part = data[inside : inside + len(buffer) - done]
            buffer[done : done + len(part)] = part
            done += len(part)
        return done

    @property
    def _sealed(self) -> int:
        """How many frames are packed."""
        return len(self._stops) - 1

    def _frame(self, number: int) -> bytes:
        if number >= self._sealed:
            assert self._held is not None
            begin = (number - self._sealed) * FRAME
            return bytes(self._held[begin : begin + FRAME])
        data = PIECES.get((self.text, number))
        if data is None:
            begin = self._stops[number]
            data = self._unpacked(number, self._fs.read(self._fd, self._stops[number + 1] - begin, begin))
            PIECES.put((self.text, number), data)
        return data

    def _unpacked(self, number: int, stored: bytes | memoryview) -> bytes:
        size = min(FRAME, self.size - number * FRAME)
        if len(stored) == _PLAIN_HEAD + size and stored[:_PLAIN_HEAD] == _plain_head(size):
            return bytes(stored[_PLAIN_HEAD:])
        try:
            data = zstd.decompressed(stored, size)
        except zstd.ZstdError:
            return _DAMAGED * size
        return data.ljust(size, _DAMAGED)

    def _corrupt(self, said: str, offset: int) -> LogCorrupt:
        return LogCorrupt(said, path=self._path, offset=offset)

    # Writing

    def _open_end(self) -> bytearray:
        """What is not packed yet. Raises OSError where the file was whole when it was opened."""
        if self._held is None:
            raise PermissionError("what is packed is never written again")
        return self._held

    def write(self, data: memoryview, offset: int) -> int:
        held, begin = self._open_end(), offset - self._sealed * FRAME
        if begin < 0:
            raise PermissionError("what is packed is never written again")
        stop = begin + len(data)
        held.extend(bytes(max(0, stop - len(held))))
        held[begin:stop] = data
        self.size = max(self.size, offset + len(data))
        self._is_settled = False
        self._seal(stop)
        return len(data)

    def resize(self, size: int) -> None:
        held, wanted = self._open_end(), size - self._sealed * FRAME
        if wanted < 0:
            raise PermissionError("what is packed is never written again")
        if len(held) != wanted:
            del held[wanted:]
            held.extend(bytes(wanted - len(held)))
            self.size, self._is_settled = size, False

    def _seal(self, stop: int) -> None:
        """Pack the whole frames of what is held before this byte: the log writes in order."""
        held = self._open_end()
        whole = stop - stop % FRAME
        if not whole:
            return
        parts = [self._packed(held[begin : begin + FRAME], begin) for begin in range(0, whole, FRAME)]
        self._fs.write(self._fd, b"".join(parts), self._stops[-1])
        for part in parts:
            self._stops.append(self._stops[-1] + len(part))
            self._rows += TABLE_ROW.pack(len(part), FRAME)
        del held[:whole]

    def _packed(self, data: bytearray, begin: int) -> bytes:
        """The frame of what is held from this byte on."""
        return _plain(data) if not begin and not self._sealed else self._compressed(data)

    def settle(self) -> None:
        """Write what is held, and the table behind it, so that the file is whole."""
        if self._held is None or self._is_settled:
            return
        held, frames, rows = self._held, bytearray(), bytearray()
        for begin in range(0, len(held), FRAME):
            part = held[begin : begin + FRAME]
            is_last = begin + FRAME >= len(held)
            frame = _plain(part) if is_last else self._packed(part, begin)
            frames += frame
            rows += TABLE_ROW.pack(len(frame), len(part))
        rows[:0] = self._rows
        end = TABLE_END.pack(len(rows) // TABLE_ROW.size, 0, SEEKABLE)
        frames += TABLE_HEAD.pack(SEEK_TABLE, len(rows) + len(end)) + rows + end
        self._fs.write(self._fd, frames, self._stops[-1])
        self._fs.truncate(self._fd, self._stops[-1] + len(frames))
        self._is_settled = True


def _plain_head(size: int) -> bytes:
    """Of a frame that holds so many bytes as they are (RFC 8878): it says its size, and has one block, the last."""
    return MAGIC + _PLAIN.pack(0xA0, size) + (size << 3 | 1).to_bytes(3, "little")


def _plain(data: bytearray) -> bytes:
    return _plain_head(len(data)) + data


class PackedLog(Log):
    """A Log in such a file."""

    def _how(self, path: str | os.PathLike[str], codec: str | Codec | None, block_size: int | None) -> OpenOptions:
        return OpenOptions.of(codec, block_size, PackedFiles(Path(path)))


def packed_options(path: Path) -> OpenOptions:
    """How one is opened to be read."""
    return OpenOptions.of(None, None, PackedFiles(path))
