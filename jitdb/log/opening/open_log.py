"""Opening a log, and following it.

A writer makes or repairs whatever is missing. A reader writes nothing to the log's file. To the sidecar it writes an
identity if there is none, and what another program appended, if it may and no writer is there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jitdb.errors import CompactionUnfinished, LogError, LogReadOnly, LogWriteFailed, NotALog, Remedy
from jitdb.log.io import filenames, osfile
from jitdb.log.io.osfile import NOT_ALLOWED, Descriptor, FileSystem, Lock
from jitdb.log.objects.urls import is_url
from jitdb.log.opening import swap
from jitdb.log.opening.format import OpenOptions, resolve_format
from jitdb.log.opening.opened import FileReplaced, Opened, bind, make_folder, read_sidecar, record_recovery
from jitdb.log.sidecar import journal

_TRIES = 5  # the log's file may be replaced while it is opened


def open_log(path: str | os.PathLike[str], options: OpenOptions, *, read_only: bool) -> Opened:
    """Open the log, for reading or as its one writer. Raises NotALog, LogLocked, LogReadOnly, LogError."""
    fs = options.files or osfile.fs
    real = filenames.log_path(path)
    for _ in range(_TRIES):
        try:
            return _open_once(fs, real, options, read_only)
        except FileReplaced:  # another file took its place between two looks
            continue
        except OSError as error:
            raise LogError(f"cannot be opened: {osfile.reason(error)}", path=real) from error
    raise LogError("other files take its place again and again: whatever does that must end first", path=real)


def open_again(opened: Opened) -> Opened:
    """For the writer, which keeps the lock: the log in the file that has its name now. Raises as open_log does."""
    fs = opened.fs
    file = _open_file(fs, opened.path, read_only=False)
    try:
        again = bind(fs, opened.path, file, opened.options, opened.lock)
        again.notices = opened.notices
    except BaseException:
        file.close()
        raise
    opened.lock = None
    return again


def follow(opened: Opened) -> Opened:
    """For a reader: see what others did. Gives the same object, or that of another log. Raises NotALog, LogError."""
    fs, path = opened.fs, opened.path
    later = opened.deletions.superseded_by
    with opened.reading():
        _refuse_half_compacted(fs, path)
        same_file = fs.is_at(path, opened.fd)
        known = read_sidecar(fs, path).meta
        same_log = known == opened.meta if opened.stored else known is None and opened.recovery.tail.end > 0
        if same_file and same_log:
            found = opened.examine()
            same_file = fs.is_at(path, opened.fd)
        if not same_file and not fs.exists(path):
            raise NotALog("the file is gone", path=path)
    if same_file and same_log and not found.replaced and not opened.deletions.is_lost:
        if found.change != opened.recovery.change:
            opened.checksums.rebind(found.change)
        opened.recovery = found
        opened.deletions.stay(later)
        record_recovery(opened)
        return opened
    return open_log(path, opened.options, read_only=True)


def no_such_log(path: str | os.PathLike[str], *, read_only: bool = False) -> NotALog:
    """The error, with the nearest name in the folder, or how to make a log."""
    from jitdb.common.spelling import nearest

    if is_url(path):
        return NotALog("there is no such object", path=path)
    folder, name = os.path.split(os.fspath(path))
    try:
        there = [entry for entry in os.listdir(folder or ".") if not entry.endswith(filenames.SIDECAR_SUFFIX)]
    except OSError:
        return NotALog(f"there is no folder {folder!r}", path=path)
    nothing = "there is no such file" + (", so nothing to read" if read_only else "")
    if near := nearest(name, there):
        return NotALog(nothing, path=path, remedy=f"did you mean {os.path.join(folder, near)!r}?")
    if read_only:
        return NotALog(nothing, path=path, remedy="a log is made by the process that writes it")
    remedy = Remedy("pass create=True for a new, empty log", "make a log with `jitdb import`")
    return NotALog(nothing, path=path, remedy=remedy)


def _open_once(fs: FileSystem, path: Path, options: OpenOptions, read_only: bool) -> Opened:
    file = _open_file(fs, path, read_only)
    lock: Lock | None = None
    try:
        _refuse_half_compacted(fs, path)
        if read_only:
            opened = bind(fs, path, file, options, None)
            record_recovery(opened)
            return opened
        _check_format(fs, path, file.number, options)  # before anything is made beside a file that is no log at all
        lock = _lock(fs, path)
        return bind(fs, path, file, options, lock)
    except BaseException:
        if lock is not None:
            lock.close()
        file.close()
        raise


def _refuse_half_compacted(fs: FileSystem, path: Path) -> None:
    """Raises CompactionUnfinished if async-append-only-log compacts the log, or was ended while it did.

    It moves records within the log's file, and keeps its progress in a file beside it.
    """
    state = path.with_name(path.name + filenames.COMPACTION_SUFFIX)
    if fs.exists(state):
        raise CompactionUnfinished(
            f"async-append-only-log is compacting it, or was ended while it did ({state.name} lies beside it): until "
            f"that is finished, records stand in it twice",
            path=path,
            remedy="wait if that program runs; if not, open the log once in JavaScript, which finishes it",
        )


def _check_format(fs: FileSystem, path: Path, fd: int, options: OpenOptions) -> None:
    """Raises NotALog for what is no log of this format."""
    known, first = read_sidecar(fs, path)
    base = None
    if known is not None:
        commit = filenames.sidecar_path(path) / filenames.COMMIT
        base = journal.read_state(fs, commit, known.generation, first).base
    resolve_format(fs, fd, path, options, known, base)


def _open_file(fs: FileSystem, path: Path, read_only: bool) -> Descriptor:
    try:
        there = fs.find(path)
    except OSError as error:
        raise LogError(f"cannot be looked at: {error.strerror}", path=path) from error
    if there is None and read_only:
        raise NotALog("there is no such file, and read_only=True makes none", path=path)
    if there is not None and not stat.S_ISREG(there.st_mode):
        kind = "a folder" if stat.S_ISDIR(there.st_mode) else "not a regular file"
        raise NotALog(f"this is {kind}, not a log", path=path)
    if there is not None and not there.st_size and not read_only:
        filenames.followed(os.fspath(path), is_written=True)  # a new log, in a file that is there
    try:
        return Descriptor(fs, path, os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT)
    except FileNotFoundError as error:
        raise NotALog(f"the folder {path.parent} does not exist", path=path) from error
    except OSError as error:
        if error.errno in NOT_ALLOWED and there is None:
            reason = f"the folder {path.parent} may not be written ({error.strerror}): no log can be made there"
            raise LogReadOnly(reason, path=path) from error
        if error.errno in NOT_ALLOWED and not read_only:
            raise LogReadOnly(f"may not be written ({error.strerror})", path=path, remedy=Remedy.read_only()) from error
        raise LogError(f"cannot be opened: {error.strerror}", path=path) from error


def _lock(fs: FileSystem, path: Path) -> Lock:
    sidecar = filenames.sidecar_path(path)
    try:
        make_folder(fs, sidecar)
        lock = Lock(fs, sidecar / filenames.LOCK, path)
        try:
            swap.resume(fs, path, sidecar)
        except BaseException:
            lock.close()
            raise
        return lock
    except OSError as error:
        if error.errno in NOT_ALLOWED:
            raise LogReadOnly(
                f"its sidecar {sidecar.name} may not be made or written ({osfile.reason(error)})",
                path=path,
                remedy=Remedy.read_only(),
            ) from error
        raise LogWriteFailed(f"its sidecar {sidecar.name} cannot be made: {osfile.reason(error)}", path=path) from error
