"""The only door to the operating system's files: all reads and writes of a log go through here.

A file beside a log gets the log's owner and permissions; until it has them only its owner can open it. A name there
that is no regular file, such as a link, is refused, not followed. A folder there may be a link, for example to another
disk, but nothing is changed through a link that another user made (refuse_links). Tests replace `fs` by a subclass
whose primitives fail, fall short or forget; a log keeps the `fs` that it was opened with.

A log has one writer: it holds flock on `lock` in the sidecar, which has its pid. The system releases the lock when the
process ends. Two logs in one process exclude each other, too. A reader takes the lock shared for an instant to know
whether there is a writer, so a writer tries more than once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from jitdb.errors import LogLocked, Remedy
from jitdb.log.io import system
from jitdb.log.io.filenames import folders_beside, log_beside, temporary_name

_ONE_CALL = 1 << 30  # bytes; Linux moves at most 2 GiB - 4 KiB in one read or write
_LARGE = 1 << 20  # bytes; for a larger read, which a damaged length may ask for, the file's size is looked at first
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_RANGE = struct.Struct("hhqqi4x")  # struct flock, as Linux has it: type, whence, start, length, pid


class FileSystem:
    """The real files. All offsets and sizes are bytes; all errors are OSError.

    has_objects: whether files never change, but others can take their names
    overwrites: whether bytes of the log that were written can be written again
    """

    has_objects = False
    overwrites = True

    # Primitives. The first three may move fewer bytes than asked.

    pread: Callable[[int, int, int], bytes] = staticmethod(os.pread)
    pwrite: Callable[[int, memoryview, int], int] = staticmethod(os.pwrite)

    if system.HAS_PREADV:

        def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
            return os.preadv(fd, [buffer], offset)

    else:

        def preadv(self, fd: int, buffer: memoryview, offset: int) -> int:
            data = os.pread(fd, len(buffer), offset)
            buffer[: len(data)] = data
            return len(data)

    open: Callable[[str | os.PathLike[str], int, int], int] = staticmethod(os.open)
    close: Callable[[int], None] = staticmethod(os.close)  # both only for Descriptor
    fsync: Callable[[int], None] = staticmethod(system.fsync)
    fdatasync: Callable[[int], None] = staticmethod(system.fdatasync)  # the same without the modification time
    truncate: Callable[[int, int], None] = staticmethod(os.ftruncate)
    stat: Callable[[str | os.PathLike[str]], os.stat_result] = staticmethod(os.stat)
    lstat: Callable[[str | os.PathLike[str]], os.stat_result] = staticmethod(os.lstat)
    fstat: Callable[[int], os.stat_result] = staticmethod(os.fstat)
    chmod: Callable[[int, int], None] = staticmethod(os.fchmod)
    chown: Callable[[int, int, int], None] = staticmethod(os.fchown)
    listdir: Callable[[Path], list[str]] = staticmethod(os.listdir)

    def rename(self, path: Path, target: Path, /) -> None:
        self.refuse_links(path)
        self.refuse_links(target)
        os.replace(path, target)

    def unlink(self, path: Path, /) -> None:
        self.refuse_links(path)
        os.unlink(path)

    def rmdir(self, path: Path, /) -> None:
        self.refuse_links(path)
        os.rmdir(path)

    def mkdir(self, path: Path, mode: int, /) -> None:
        self.refuse_links(path)
        os.mkdir(path, mode)

    def lock(self, fd: int, *, shared: bool = False) -> bool:
        """Lock the whole open file, without waiting; False when somebody else has it. Closing it releases the lock."""
        return _granted(lambda: fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB))

    def lock_byte(self, fd: int, place: int) -> bool:
        """Lock one byte of the open file (which need not exist), as lock() does; the two do not see each other.

        This, and the next two, only where system.HAS_BYTE_LOCKS: see locks.py.
        """
        return _granted(lambda: fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _RANGE.pack(fcntl.F_WRLCK, 0, place, 1, 0)))

    def has_locked_bytes(self, fd: int) -> bool:
        """Whether somebody else holds lock_byte() of any byte of the open file."""
        found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _RANGE.pack(fcntl.F_WRLCK, 0, 0, 0, 0))
        return bool(_RANGE.unpack(found)[0] != fcntl.F_UNLCK)

    def unlock_byte(self, fd: int, place: int) -> None:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _RANGE.pack(fcntl.F_UNLCK, 0, place, 1, 0))

    def expect(self, fd: int, offsets: Iterable[int], size: int) -> None:
        """Some bytes from each of these offsets on will be read next. The disk is fast enough without knowing."""

    # Made of the primitives.

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

    def find(self, path: str | os.PathLike[str]) -> os.stat_result | None:
        """The status of the file or folder of this name; None where there is none."""
        try:
            return self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def exists(self, path: str | os.PathLike[str]) -> bool:
        return self.find(path) is not None

    def is_at(self, path: str | os.PathLike[str], fd: int) -> bool:
        now = self.find(path)
        return now is not None and os.path.samestat(now, self.fstat(fd))

    def read_file(self, path: Path) -> bytes:
        with Descriptor(self, path, os.O_RDONLY) as fd:
            return self.read(fd, self.size(fd), 0)

    def read_if_there(self, path: Path) -> bytes | None:
        """The whole file; None where there is none."""
        try:
            return self.read_file(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def log_of(self, path: str | os.PathLike[str]) -> os.stat_result | None:
        """The status of the log in whose sidecar this is; None elsewhere."""
        log = log_beside(path)
        return None if log is None else self.find(log)

    def refuse_links(self, path: str | os.PathLike[str]) -> None:
        """Raise ForeignLink where the way to it, in a sidecar, leads over a link that is not to be trusted."""
        for folder in folders_beside(path):
            with suppress(FileNotFoundError, NotADirectoryError):
                found = self.lstat(folder)
                if stat.S_ISLNK(found.st_mode) and not _is_trusted(found, self.find(Path(folder))):
                    raise ForeignLink(folder, found.st_uid)

    def share(self, fd: int, log: os.stat_result, *, is_log: bool = False) -> None:
        """Give the open file or folder the log's owner, group and permissions, as far as we may.

        is_log: it takes the log's place; otherwise its owner can write it, and nobody execute it. Where `log` is the
                folder in which a store is made, others cannot write, whatever that folder allows: /tmp does
        """
        now = self.fstat(fd)
        for owner in (log.st_uid, -1):
            if owner not in (-1, now.st_uid) or now.st_gid != log.st_gid:
                with suppress(PermissionError):
                    self.chown(fd, owner, log.st_gid)
                    now = self.fstat(fd)
        mode = log.st_mode & 0o7777 if is_log else log.st_mode & 0o666 | 0o600
        if stat.S_ISDIR(log.st_mode):
            mode &= ~0o002
        if now.st_gid != log.st_gid:
            mode = _of_another_group(mode)
        if stat.S_ISDIR(now.st_mode):
            mode |= (mode & 0o444) >> 2 | now.st_mode & stat.S_ISGID
        if stat.S_IMODE(now.st_mode) != mode:
            self.chmod(fd, mode)

    def make_file(self, path: Path, sources: Iterable[os.stat_result]) -> None:
        """A new, empty file of our own, for content of the `sources`: with no more permissions than each of these, and
        than the umask allows. Raises FileExistsError, OSError.
        """
        mask = os.umask(0o077)
        os.umask(mask)
        with Descriptor(self, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) as fd:
            group = self.fstat(fd).st_gid
            mode = 0o666 & ~mask
            for source in sources:
                mode &= source.st_mode if source.st_gid == group else _of_another_group(source.st_mode)
            self.chmod(fd, mode | 0o600)

    def make_folder(self, path: Path) -> None:
        """Raises FileExistsError, and what else mkdir raises."""
        self.mkdir(path, 0o777 if log_beside(path) is None else 0o700)
        self.share_folder(path)

    def make_folders(self, path: Path) -> None:
        """Make the folder and those above it that are not there. Raises OSError."""
        if self.exists(path):  # the usual case, and cheaper than trying
            return
        try:
            self.make_folder(path)
        except FileExistsError:  # another process made it
            return
        except FileNotFoundError:
            if path.parent == path:
                raise
            self.make_folders(path.parent)
            with suppress(FileExistsError):
                self.make_folder(path)

    def share_folder(self, path: Path) -> None:
        """share() for a folder that exists, unless it is another user's, or behind another user's link."""
        log = self.log_of(path)
        if log is not None:
            with suppress(PermissionError), Descriptor(self, path, os.O_RDONLY | os.O_DIRECTORY) as fd:
                self.refuse_links(path)
                if _is_trusted(self.lstat(path), self.fstat(fd)):
                    self.share(fd, log)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it. Links are not followed."""
        try:
            self.unlink(path)
        except (IsADirectoryError, PermissionError):  # some systems raise the second for folders
            for name in self.listdir(path):
                self.remove(path / name)
            self.rmdir(path)

    def sync_both(self, here: Callable[[], None], beside: Callable[[], None]) -> None:
        """Call these two, which sync a file each, at the same time: a disk makes both durable in the time of one.

        When it returns, or raises what one of them raised, whatever interrupts it, both have ended: their files may be
        closed then.
        """
        ends: list[BaseException | None] = []  # what the second raised, or None, once it has ended
        ended = allocate_lock()
        ended.acquire()

        def call() -> None:
            failure = None
            try:
                beside()
            except BaseException as error:
                failure = error
            ends.append(failure)
            ended.release()

        begun: list[int] = []
        try:
            with suppress(RuntimeError):  # no thread can be had: the process ends, or has as many as it may
                begun.extend(map(start_new_thread, (call,), ((),)))  # one call of C, see Descriptor
            here()
        finally:
            if not begun:
                call()
            _wait_for(ends, ended)
        if ends[0] is not None:
            raise ends[0]

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
        """Put `data` in the place of the file at once: readers see the old bytes or the new, never a mixture."""
        temporary = path.with_name(temporary_name(path.name))
        try:
            self.write_file(temporary, data)
            self.rename(temporary, path)
        except OSError:
            with suppress(OSError):  # the next writer removes what is left of it
                self.unlink(temporary)
            raise
        self.sync_folder(path.parent)


def _wait_for(ends: list[BaseException | None], ended: LockType) -> None:
    """Return when the other thread has put its end there, whatever interrupts this; raise what did then."""
    interrupted: BaseException | None = None
    while not ends:
        try:
            ended.acquire()
        except BaseException as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


def _of_another_group(mode: int) -> int:
    """The permissions of a file made from another one whose group differs: the group gets what all others get."""
    all_get = mode >> 3 & mode & 0o007
    return mode & ~0o077 | all_get << 3 | all_get


def _is_trusted(found: os.stat_result, target: os.stat_result | None) -> bool:
    """Whether `target` may be changed through the name that was `found`: this is no link, or a link of ours or root's,
    or one whose owner also owns the target.
    """
    if target is not None and (os.path.samestat(found, target) or found.st_uid == target.st_uid):
        return True
    return found.st_uid in (0, os.geteuid())


class ForeignLink(PermissionError):
    """A link in a sidecar, or instead of one, that is not followed."""

    def __init__(self, path: str | os.PathLike[str], owner: int) -> None:
        text = (
            f"{os.path.basename(path)} is a link that user {owner} made to a folder of somebody else, through which "
            f"nothing is changed: remove it, or make it yourself"
        )
        super().__init__(errno.EACCES, text, os.fspath(path))


class NotAFile(OSError):
    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = f"{os.path.basename(path)} is a link, a folder, a pipe or a device where a file belongs: remove it"
        super().__init__(errno.ELOOP, text, os.fspath(path))


def reason(error: OSError) -> str:
    said = error.strerror or str(error)
    says_which = error.filename is None or isinstance(error, (ForeignLink, NotAFile))
    return said if says_which else f"{said}: {os.fspath(error.filename)}"


_NO_FILE: Final = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


class Descriptor:
    """An open file, owned: closed once, by close(), at the end of a `with`, or when nobody holds this any more.

    A signal may raise KeyboardInterrupt between any two calls that Python makes. A number that is closed but still kept
    would be closed again, or written to, when it is another file's; one that is not kept yet would stay open. So one
    call of C opens the file and keeps the number, and another forgets and closes it. No thread can come between either.
    """

    __slots__ = ("__weakref__", "_closing", "_fs", "_numbers")

    def __init__(self, fs: FileSystem, path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> None:
        """O_CREAT with O_TRUNC replaces a file by a new one; O_CREAT follows no link. Raises OSError, NotAFile."""
        self._fs = fs
        self._numbers = [-1]
        self._closing: Iterator[None] = map(fs.close, iter(self._numbers.pop, -1))
        if flags & os.O_DIRECTORY:
            self._open(path, flags, mode)
            return
        log = None
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            fs.refuse_links(path)
        if flags & os.O_CREAT:
            log = fs.log_of(path)
        if flags & os.O_CREAT or log_beside(path) is not None:
            flags |= os.O_NOFOLLOW
        try:
            made = self._make(path, flags | os.O_NONBLOCK, mode if log is None else 0o600)
            if not stat.S_ISREG(fs.fstat(self.number).st_mode):
                self.close()
                raise NotAFile(path)
        except OSError as error:
            if error.errno in _NO_FILE and not isinstance(error, NotAFile):
                raise NotAFile(path) from error
            raise
        if made and log is not None:
            fs.share(self.number, log)

    def _open(self, path: str | os.PathLike[str], flags: int, mode: int) -> None:
        self._numbers.extend(map(self._fs.open, (path,), (flags,), (mode,)))

    def _make(self, path: str | os.PathLike[str], flags: int, mode: int) -> bool:
        """Open it; whether it was made."""
        if not flags & os.O_CREAT or flags & os.O_EXCL:
            self._open(path, flags, mode)
            return bool(flags & os.O_CREAT)
        anew = bool(flags & os.O_TRUNC)
        rest = flags & ~(os.O_CREAT | os.O_TRUNC)
        while True:
            if not anew:
                with suppress(FileNotFoundError):
                    self._open(path, rest, mode)
                    return False
            try:
                self._open(path, rest | os.O_CREAT | os.O_EXCL, mode)
            except FileExistsError:
                if anew:
                    with suppress(FileNotFoundError):
                        self._fs.unlink(Path(path))
                continue
            return True

    @classmethod
    def closed(cls) -> Descriptor:
        self = cls.__new__(cls)
        self._numbers, self._closing = [], iter(())
        return self

    @property
    def number(self) -> int:
        """Get it for each call of FileSystem; -1, which these refuse, once it is closed."""
        return self._numbers[-1] if self._numbers else -1

    @property
    def is_open(self) -> bool:
        return self.number >= 0

    def close(self) -> None:
        next(self._closing, None)

    def read(self, size: int, offset: int) -> bytes:
        """See FileSystem.read."""
        return self._fs.read(self.number, size, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """See FileSystem.read_into."""
        return self._fs.read_into(self.number, buffer, offset)

    def expect(self, offsets: Iterable[int], size: int) -> None:
        """See FileSystem.expect."""
        self._fs.expect(self.number, offsets, size)

    @property
    def is_object(self) -> bool:
        """Whether it never changes: another one can only take its name."""
        return self._fs.has_objects

    def status(self) -> os.stat_result:
        return self._fs.fstat(self.number)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether the open file has this name."""
        return self._fs.is_at(path, self.number)

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


_TRIES: Final = 5  # while a writer has the lock
_MOST: Final = 500  # in all
_PAUSE: Final = 0.004  # seconds between tries; a reader holds the lock for microseconds


class Lock:
    """The lock of one log, held from construction to close()."""

    def __init__(self, fs: FileSystem, path: Path, log: Path) -> None:
        """Raises LogLocked with the pid of the writer, OSError where the sidecar cannot be written."""
        self._fs = fs
        self._path = path
        self._file = Descriptor(fs, path, os.O_RDWR | os.O_CREAT)
        try:
            self._take(log)
        except BaseException:
            self.close()
            raise

    def _take(self, log: Path) -> None:
        fs, fd = self._fs, self._file.number
        if not self._waited():
            text = fs.read(fd, 32, 0).strip()
            pid = int(text) if text.isdigit() else None
            who = "another process" if pid is None else "this process" if pid == os.getpid() else f"process {pid}"
            raise LogLocked(
                f"{who} has it open for writing",
                path=log,
                pid=pid,
                remedy=Remedy(
                    "open it with read_only=True, or close the other one first", "wait for it to end, or stop it"
                ),
            )
        fs.truncate(fd, 0)
        fs.write(fd, f"{os.getpid()}\n".encode(), 0)

    def _waited(self) -> bool:
        """Lock it, or wait: a little for a writer, longer for readers, of which the machine may run one late."""
        tries = _TRIES
        for _ in range(_MOST):
            if self._fs.lock(self._file.number):
                return True
            tries -= has_writer(self._fs, self._path)
            if not tries:
                return False
            time.sleep(_PAUSE)
        return False

    def is_in_place(self) -> bool:
        """Whether other writers find this lock: not if the file was moved, removed or replaced."""
        return self._fs.is_at(self._path, self._file.number)

    def close(self) -> None:
        """Release it; in a forked child, the parent keeps it. The file stays: otherwise two could lock two files."""
        self._file.close()


def has_writer(fs: FileSystem, path: Path) -> bool:
    """Whether some process, or another log in this one, holds the lock now."""
    try:
        with Descriptor(fs, path, os.O_RDONLY) as fd:
            return not fs.lock(fd, shared=True)
    except (FileNotFoundError, NotADirectoryError):
        return False
