"""A folder of index files: what lies in it, what may be removed, and which process may write (one builder an index).

Each index has a lock around a file `lock` in the folder (log/io/locks.py): two databases in one process exclude each
other as two processes do. A builder takes all locks that it needs or none, and never waits with a lock: so there are no
deadlocks (docs/format-index.md).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Final

from jitdb.common.digests import blake2b
from jitdb.common.forking import begins_anew
from jitdb.indexes.files.file import Head, LogName, head_of, is_newer, remove_file
from jitdb.indexes.files.span_file import remove_spans
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io.locks import Locks, locks_around
from jitdb.log.io.osfile import Descriptor, FileSystem, NotAFile

LOCK: Final = "lock"  # on disk: never change
ASKED: Final = "asked"  # on disk: never change
_MOST_ASKED: Final = 1 << 16  # bytes; then it begins anew
_DIGEST: Final = 6  # bytes: two names with the same one only wait for each other needlessly
SUFFIX: Final = ".index"
CODES_SUFFIX: Final = ".codes"  # of what lies beside a dictionary's file (codes_file.py)
_NAME: Final = r"[A-Za-z0-9_]+\.[a-z_]+-[0-9a-f]{12}\.index"  # as IndexSpec.file_name() makes it
MOST_TEXTS: Final = 256  # indexes of the form `text` in a folder
_PAUSE: Final = 0.01  # seconds between looks whether another process is done with an index


def index_files(fs: FileSystem, folder: FilePath | None, *, containing: str = "") -> list[tuple[FilePath, Head | None]]:
    """The index files in the folder, by name, and their heads; None for one that cannot be read."""
    if folder is None:
        return []
    return [(folder / name, head_of(fs, folder / name)) for name in _names(fs, folder, containing)]


def _names(fs: FileSystem, folder: FilePath, containing: str) -> list[str]:
    try:
        return sorted(name for name in fs.listdir(folder) if name.endswith(SUFFIX) and containing in name)
    except OSError:
        return []


def known_indexes(fs: FileSystem, folder: FilePath | None) -> dict[str, IndexSpec | None]:
    """The index files in the folder, of any log, by name; None for one whose head is damaged.

    What has neither the head nor the name of an index file, or is no file, is left out.
    """
    found = index_files(fs, folder)
    return {path.name: head.spec if head else None for path, head in found if is_index(fs, path, head)}


def is_index(fs: FileSystem, path: FilePath, head: Head | None) -> bool:
    """Whether the file is an index, by its head, or by its name if it has no head."""
    if head is not None:
        return True
    if not re.fullmatch(_NAME, path.name):
        return False
    try:
        with Descriptor(fs, path, os.O_RDONLY):
            return True
    except (NotAFile, FileNotFoundError):
        return False
    except OSError:
        return True  # it cannot be read, but it can be removed


def headless(fs: FileSystem, path: FilePath) -> str:
    """Why the file has no head, in words."""
    try:
        with Descriptor(fs, path, os.O_RDONLY):
            return "the head is not that of an index file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def remove_superseded(fs: FileSystem, path: FilePath, head: Head) -> None:
    """Remove the files that the one at `path`, with this head, makes useless.

    These are lower versions of the same index, and indexes of deleted records from before another program changed the
    log. A file that is being written, or cannot be removed, stays: it takes room, and changes no answer.
    """
    spec = head.spec
    if spec.form == "text":
        _remove_oldest(fs, path)
    if spec.form != "deleted" and not spec.version:
        return
    for name in _names(fs, path.parent, f".{spec.form}-"):
        other = path.with_name(name)
        if name == path.name or not _supersedes(head, head_of(fs, other)):
            continue
        _remove_idle(fs, other)


def remove_void(fs: FileSystem, folder: FilePath, log: LogName) -> None:
    """Remove the files that were made of other bytes of this log: of somebody's file, which he edited."""
    for path, head in index_files(fs, folder):
        if head is not None and head.log.identity == log.identity and head.log.content != log.content:
            _remove_idle(fs, path)


def _remove_oldest(fs: FileSystem, path: FilePath) -> None:
    """Keep the newest of the indexes of matches in text: there is one for each text that was looked for."""
    names = _names(fs, path.parent, ".text-")
    if len(names) > MOST_TEXTS:
        found = [(fs.find(path.with_name(name)), name) for name in names if name != path.name]
        there = sorted((stat.st_mtime_ns, name) for stat, name in found if stat is not None)
        for _, name in there[: len(there) - MOST_TEXTS // 2]:  # many at once, so that this is done seldom
            _remove_idle(fs, path.with_name(name))


def _remove_idle(fs: FileSystem, path: FilePath) -> None:
    """Remove the file, unless it is being written, or cannot be removed."""
    held = take_locks(fs, path.parent, [path.name])
    if held is not None:
        with held, suppress(OSError):
            remove_index(fs, path)


def remove_locked(fs: FileSystem, folder: FilePath, names: Iterable[str]) -> None:
    """Remove these files, each once nobody writes to it. Raises OSError."""
    for name in names:
        while (held := take_locks(fs, folder, [name])) is None:
            time.sleep(_PAUSE)
        with held:
            remove_index(fs, folder / name)


def remove_index(fs: FileSystem, path: FilePath) -> None:
    """Remove the file of an index, and what lies beside it. Raises OSError."""
    remove_file(fs, path)
    remove_file(fs, path.with_suffix(CODES_SUFFIX))
    remove_spans(fs, path)


def _supersedes(head: Head, other: Head | None) -> bool:
    if other is None:
        return head.spec.form == "deleted"  # it is damaged, and nobody asks for it any more
    if is_newer(other, Head(head.log, other.spec)):
        return False
    if head.spec.form == "deleted":
        return True
    return other.spec.version < head.spec.version and other.spec._replace(version=head.spec.version) == head.spec


def remove_leftovers(fs: FileSystem, folder: FilePath) -> None:
    """Remove the half-written files of processes that are gone: NAME.PID-NUMBER.tmp."""
    with suppress(OSError):
        for name in fs.listdir(folder):
            parts = name.split(".")
            if parts[-1] != "tmp" or not {"index", "codes"} & {*parts[:-2]}:
                continue
            pid = parts[-2].split("-")[0]
            if pid.isdigit() and not is_running(int(pid)):
                remove_file(fs, folder / name)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def place_of(name: str) -> int:
    """The number of the lock of the file of this name. Never change.

    >>> hex(place_of("offsets.offsets-9de5b6896cd5.index"))
    '0xb944637d4c'
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=_DIGEST).digest(), "little")


class Held:
    """Locks that are held, until release(); a context manager. Without `locks`, nothing is."""

    def __init__(self, locks: Locks | None = None) -> None:
        self._locks = locks
        begins_anew(self)

    def take(self, places: Iterable[int]) -> bool:
        """Lock these; False, and none is locked, where somebody else has one."""
        if self._locks is not None and not all(map(self._locks.take, places)):
            self.release()
            return False
        return True

    def release(self) -> None:
        if self._locks is not None:
            self._locks.release()

    def begin_anew(self) -> None:
        """In a forked child: the locks are the parent's."""
        if self._locks is not None:
            self._locks.leave()

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def take_locks(fs: FileSystem, folder: FilePath | None, names: Iterable[str]) -> Held | None:
    """The locks of these files in the folder, or None while another builder has one of them: try again later.

    Where the folder cannot be written, or has no locks, nothing is held, and building goes on.
    """
    places = sorted({place_of(name) for name in names})
    held = Held()
    if folder is None or not places:
        return held
    try:
        fs.make_folders(folder)
        held = Held(locks_around(fs, folder / LOCK))
        return held if held.take(places) else None
    except OSError:
        held.release()
        return Held()
    except BaseException:
        held.release()
        raise


def is_first(fs: FileSystem, folder: FilePath, name: str) -> bool:
    """Whether nobody asked for the index of this name yet; from now on somebody did.

    A field in which no record has a value was probably typed wrong, so its index is kept in memory, and only its name
    is a line here. Another process that asks for it means it, and writes the index. A lost line costs a scan.
    """
    with suppress(OSError):  # where no line can be written, no index file can be either
        fs.make_folders(folder)
        with Descriptor(fs, folder / ASKED, os.O_RDWR | os.O_CREAT) as file:
            size = fs.size(file)
            known = fs.read(file, min(size, 2 * _MOST_ASKED), 0)
            if name.encode() in known.split(b"\n"):
                return False
            if size > _MOST_ASKED:
                fs.truncate(file, 0)
                size = 0
            fs.write(file, f"\n{name}\n".encode(), size)  # the line before may be torn
    return True
