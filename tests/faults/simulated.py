"""A process's view of a simulated disk: the primitives of jitdb.log.io.osfile, and faults at any call of them.

    disk = Disk(seed)
    with running(Process(disk)) as process: ...            # jitdb's files are now on the simulated disk
    with running(Process(disk, stop_at=17)): ...           # the power goes at the 17th call that changes something
    with running(Process(disk, fail_at=17, fault=EIO)): ...  # the 17th call of any kind fails

When its power is gone or it was killed a process can do nothing more: each further call raises Stopped, which no
handler of errors catches. `disk.crash()` then gives what a power failure leaves; a kill leaves
the disk itself.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from faults.simulated_disk import Disk, File, Folder

from jitdb.errors import LogError
from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.log.io.osfile import FileSystem

SHORT: Final = "short"  # a read or write that moves a part of what was asked
SHORT_AND_FULL: Final = "short, then full"  # a write that moves a part, and a disk that is full from then on
CHANGING: Final = frozenset(
    {"pwrite", "fsync", "fdatasync", "truncate", "rename", "unlink", "mkdir", "create"}
)  # what a power failure can come between; "create" is an open that makes a file or empties one
UMASK: Final = 0o022
FIRST_DESCRIPTOR: Final = 1 << 20  # no real descriptor is that high: one that strays to the real files fails there


class Stopped(BaseException):
    """The process is no more."""


class Process(FileSystem):
    """Files of a simulated disk, as one process sees them."""

    def __init__(
        self,
        disk: Disk,
        *,
        stop_at: int = -1,
        fail_at: int = -1,
        fault: int | str = errno.EIO,
        only: frozenset[str] | None = None,
    ) -> None:
        self.disk = disk
        self.stop_at = stop_at
        self.fail_at = fail_at
        self.fault = fault
        self.only = only  # the calls that `fail_at` counts; None: all
        self.changes = 0  # calls so far that change something
        self.calls = 0  # calls so far that could fail
        self.stopped = False
        self.failed: str | None = None  # the call that was made to fail
        self._full = False
        self._open: dict[int, _Open] = {}
        self._next = FIRST_DESCRIPTOR

    # Faults

    def _enter(self, call: str, path: object = "") -> bool:
        """Before each call. Raises what it is to fail with; whether it is to fall short."""
        if self.stopped:
            raise Stopped
        if call in CHANGING:
            self.changes += 1
            if self.changes == self.stop_at:
                self.stop()
                raise Stopped
        if self.only is not None and call not in self.only:
            return False
        self.calls += 1
        if self._full and call in ("pwrite", "create", "mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if self.calls != self.fail_at:
            return False
        self.failed = call
        if self.fault in (SHORT, SHORT_AND_FULL):
            self._full = self.fault == SHORT_AND_FULL and call == "pwrite"
            return True
        if isinstance(self.fault, int):
            raise OSError(self.fault, os.strerror(self.fault), str(path))
        return False

    def stop(self) -> None:
        """End the process: its locks are released, its files closed."""
        self.stopped = True
        for fd in list(self._open):
            self.close(fd)

    # Files

    def open(self, path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
        exists = self.disk.exists(path)
        makes = bool(flags & os.O_CREAT and not exists)
        self._enter("create" if makes or (exists and flags & os.O_TRUNC) else "open", path)
        if makes:
            node: File | Folder = self.disk.create(path)
            node.mode = mode & ~UMASK
        else:
            node = self.disk.find(path)
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        if isinstance(node, Folder) and flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if isinstance(node, File) and flags & os.O_DIRECTORY:
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))
        if isinstance(node, File) and flags & os.O_TRUNC and node.data:
            node.truncate(0, self.disk.tick())
        self._next += 1
        self._open[self._next] = _Open(node, bool(flags & (os.O_WRONLY | os.O_RDWR)))
        return self._next

    def close(self, fd: int) -> None:
        held = self._open.pop(fd, None)
        if held is None:
            if not self.stopped:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return
        held.node.holders.pop(held, None)
        for place in [place for place, holder in held.node.bytes_held.items() if holder is held]:
            del held.node.bytes_held[place]

    def pread(self, fd: int, size: int, offset: int) -> bytes:  # type: ignore[override]
        short = self._enter("pread")
        data = bytes(self._file(fd).data[offset : offset + size])
        return data[: max(1, len(data) // 2)] if short else data

    def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
        short = self._enter("pread")
        data = self._file(fd).data[offset : offset + len(buffer)]
        count = max(1, len(data) // 2) if short and data else len(data)
        buffer[:count] = data[:count]
        return count

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        file = self._file(fd, writing=True)
        try:
            short = self._enter("pwrite")
        except Stopped:
            if self.changes == self.stop_at:  # a part of it was done, which may end anywhere
                file.write(bytes(data[: self.disk.rng.randint(0, len(data))]), offset, self.disk.tick())
            raise
        if short and len(data) > 1:
            data = data[: len(data) // 2]
        file.write(bytes(data), offset, self.disk.tick())
        return len(data)

    def fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)

    def _sync(self, name: str, fd: int) -> None:
        node = self._node(fd)
        times = (node.disk_time, node.times) if isinstance(node, File) and name == "fdatasync" else None
        try:
            self._enter(name)
        except OSError:
            if isinstance(node, File) and self.fault != errno.EINTR:
                node.sync_badly(self.disk.rng)
            raise
        self.disk.sync(node)
        if isinstance(node, File) and times is not None:
            node.disk_time, node.times = times

    def sync_both(self, here: Callable[[], None], beside: Callable[[], None]) -> None:
        """One after the other, so that a seed replays it: which one is first, a disk leaves open."""
        for sync in (here, beside) if self.disk.rng.random() < 0.5 else (beside, here):
            sync()

    def truncate(self, fd: int, size: int) -> None:
        self._enter("truncate")
        self._file(fd, writing=True).truncate(size, self.disk.tick())

    # Names

    def rename(self, source: Path, target: Path) -> None:
        self._enter("rename", source)
        self.disk.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._enter("unlink", path)
        self.disk.unlink(path)

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        if not self.disk.exists(path):
            self._enter("mkdir", path)
        self.disk.mkdir(path)
        self.disk.find(path).mode = mode & ~UMASK

    def stat(self, path: Path) -> os.stat_result:
        self._enter("stat", path)
        return _status(self.disk.find(path))

    def lstat(self, path: Path) -> os.stat_result:  # type: ignore[override]
        return _status(self.disk.find(path))

    def fstat(self, fd: int) -> os.stat_result:
        self._enter("fstat")
        return _status(self._node(fd))

    def chmod(self, fd: int, mode: int) -> None:
        self._enter("chmod")
        self._node(fd).mode = mode

    def listdir(self, folder: Path) -> list[str]:
        self._enter("listdir", folder)
        node = self.disk.find(folder)
        if isinstance(node, File):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        return list(node.names)

    # Locks

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        self._enter("lock")
        held = self._open[fd]
        others = [each for holder, each in held.node.holders.items() if holder is not held]
        if others and not (shared and all(others)):
            return False
        held.node.holders[held] = shared
        return True

    def lock_byte(self, fd: int, place: int) -> bool:
        self._enter("lock")
        held = self._open[fd]
        return held.node.bytes_held.setdefault(place, held) is held

    def unlock_byte(self, fd: int, place: int) -> None:
        self._node(fd)
        held = self._open[fd]
        if held.node.bytes_held.get(place) is held:
            del held.node.bytes_held[place]

    def _node(self, fd: int) -> File | Folder:
        if self.stopped:
            raise Stopped
        if fd not in self._open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._open[fd].node

    def _file(self, fd: int, *, writing: bool = False) -> File:
        node = self._node(fd)
        if isinstance(node, Folder):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if writing and not self._open[fd].writes:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return node

    @property
    def open_files(self) -> int:
        return len(self._open)


class _Open:
    """An open file."""

    __slots__ = ("node", "writes")

    def __init__(self, node: File | Folder, writes: bool) -> None:
        self.node = node
        self.writes = writes


def _status(node: File | Folder) -> os.stat_result:
    size = len(node.data) if isinstance(node, File) else 0
    mode = node.mode | (stat.S_IFREG if isinstance(node, File) else stat.S_IFDIR)
    seconds = node.time / 1e9
    return os.stat_result((mode, node.number, 1, 1, 0, 0, size, seconds, seconds, seconds), {"st_mtime_ns": node.time})


@contextmanager
def running(process: Process) -> Iterator[Process]:
    """What jitdb opens meanwhile, it opens on the simulated disk. Logs must be let go of by then."""
    before, osfile.fs = osfile.fs, process
    try:
        yield process
    finally:
        osfile.fs = before


def let_go(log: Log, process: Process) -> None:
    """End the process that has the log: nothing is written, no thread of it stays."""
    process.stop()
    with suppress(Stopped, LogError):
        log.close()
