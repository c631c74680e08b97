"""The only door to the operating system's files: whatever the log reads or writes goes through here.

`Descriptor` owns one open file, and nothing else in jitdb does.

`FileSystem` has primitives (open, pread, preadv, pwrite, fsync, truncate, rename, unlink, mkdir, stat, listdir, locks)
and a few functions built of them. A test replaces `fs` by a subclass whose primitives fail, fall short or forget, and
sees how the log bears it; a log keeps the `fs` that it was opened with.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from jitdb.log.files import temporary_name

_ONE_CALL = 1 << 30  # bytes; Linux moves at most 2 GiB - 4 KiB in one read or write
_LARGE = 1 << 20  # bytes: of more, room is made for what there is, not for what a damaged length may announce
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_RANGE = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid


class FileSystem:
    """The real files. All offsets and sizes are bytes; all errors are OSError."""

    # Primitives. The first three may move fewer bytes than asked.

    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        return os.preadv(fd, [buffer], offset)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    open: Callable[[str | os.PathLike[str], int, int], int] = staticmethod(os.open)
    close: Callable[[int], None] = staticmethod(os.close)  # both only for Descriptor

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def stat(self, path: Path) -> os.stat_result:
        return os.stat(path)

    def fstat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def chmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def listdir(self, folder: Path) -> list[str]:
        return os.listdir(folder)

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        """Lock the whole open file, without waiting; False when somebody else has it. Closing it releases the lock."""
        return _granted(lambda: fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB))

    def lock_byte(self, fd: int, place: int) -> bool:
        """Lock one byte of the open file (which need not exist), as lock() does; the two do not see each other."""
        return _granted(lambda: fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _RANGE.pack(fcntl.F_WRLCK, 0, place, 1, 0)))

    def unlock_byte(self, fd: int, place: int) -> None:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _RANGE.pack(fcntl.F_UNLCK, 0, place, 1, 0))

    def is_being_written(self, fd: int) -> bool:
        """Whether anybody here has the file that `fd` reads open for writing; False where that cannot be told."""
        try:
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # to be ignored, if somebody opens it in this very moment
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno == errno.EAGAIN
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return False

    # Built of the primitives.

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        """Fill `buffer` (bytes, writable) from `offset`; fewer bytes only at the end of the file."""
        done = 0
        while done < len(buffer):
            try:
                count = self.preadv(fd, buffer[done : done + _ONE_CALL], offset + done)
            except InterruptedError:
                continue
            if count == 0:
                break
            done += count
        return done

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """`size` bytes from `offset`; fewer only at the end of the file."""
        if size > _LARGE:
            size = max(0, min(size, self.size(fd) - offset))
        data = self.pread(fd, min(size, _ONE_CALL), offset)
        if len(data) == size:
            return data
        buffer = bytearray(size)
        buffer[: len(data)] = data
        with memoryview(buffer) as view:
            rest = self.read_into(fd, view[len(data) :], offset + len(data))
        return bytes(buffer[: len(data) + rest])

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        """All of `data` at `offset`, in as many calls as it takes."""
        with memoryview(data).cast("B") as view:
            done = 0
            while done < len(view):
                try:
                    done += self.pwrite(fd, view[done : done + _ONE_CALL], offset + done)
                except InterruptedError:
                    continue

    def size(self, fd: int) -> int:
        return self.fstat(fd).st_size

    def exists(self, path: Path) -> bool:
        """Whether there is a file or folder of this name."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_at(self, path: Path, fd: int) -> bool:
        """Whether the open file is the one of this name. Raises FileNotFoundError where there is none."""
        now, mine = self.stat(path), self.fstat(fd)
        return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)

    def read_file(self, path: Path) -> bytes:
        """The whole file."""
        with Descriptor(self, path, os.O_RDONLY) as fd:
            return self.read(fd, self.size(fd), 0)

    def sync_folder(self, folder: Path) -> None:
        """Make renames and new names in the folder durable."""
        with Descriptor(self, folder, os.O_RDONLY | os.O_DIRECTORY) as fd:
            self.fsync(fd)

    def write_file(self, path: Path, data: bytes) -> None:
        """A new file of these bytes, durable but for its name."""
        with Descriptor(self, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            self.write(fd, data, 0)
            self.fsync(fd)

    def replace_file(self, path: Path, data: bytes) -> None:
        """Put `data` in the place of the file at once: whoever looks sees the old bytes or the new, never a mixture."""
        temporary = path.with_name(temporary_name(path.name))
        try:
            self.write_file(temporary, data)
            self.rename(temporary, path)
        except OSError:
            with suppress(OSError):  # what stays of it is removed by the next writer
                self.unlink(temporary)
            raise
        self.sync_folder(path.parent)


class Descriptor:
    """An open file, owned: closed once, by close(), at the end of a `with`, or when nobody holds this any more.

    A signal may raise KeyboardInterrupt between any two calls that Python makes. A number that is closed and still
    known would then be closed again, or written to, when it is another file's; one that is not yet known would stay
    open. So both happen within one call of C: opening and keeping the number, forgetting it and closing. Threads do
    not come between either.
    """

    __slots__ = ("__weakref__", "_closing", "_numbers")

    def __init__(self, fs: FileSystem, path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> None:
        """Raises OSError."""
        self._numbers = [-1]
        self._closing: Iterator[None] = map(fs.close, iter(self._numbers.pop, -1))
        self._numbers.extend(map(fs.open, (path,), (flags,), (mode,)))

    @classmethod
    def closed(cls) -> Descriptor:
        """One that never was open: what stands where a file will be opened later."""
        self = cls.__new__(cls)
        self._numbers, self._closing = [], iter(())
        return self

    @property
    def number(self) -> int:
        """For the calls of FileSystem, each time anew; -1, which they refuse, once it is closed."""
        return self._numbers[-1] if self._numbers else -1

    @property
    def is_open(self) -> bool:
        """Until close()."""
        return self.number >= 0

    def close(self) -> None:
        """Safe to call again."""
        next(self._closing, None)

    def __enter__(self) -> int:
        return self.number

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closing"):
            self.close()


def _granted(lock: Callable[[], object]) -> bool:
    try:
        lock()
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


fs = FileSystem()
