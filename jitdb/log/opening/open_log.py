"""Opening a log: find out what it is, bind it to its sidecar, find its end.

    file -> (block size, codec) -> meta: identity, generation -> journal -> durable end

A writer makes or repairs whatever is missing. A reader writes nothing to the log's file; in the sidecar it writes an
identity where there is none, and notes what another program appended, if it may and no writer is there to do it.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.errors import (
    LogClosed,
    LogCorrupt,
    LogError,
    LogLocked,
    LogReadOnly,
    LogWarning,
    LogWriteFailed,
    NotALog,
    Remedy,
)
from jitdb.log.codecs import CODEC_NAMES, Codec, get_codec
from jitdb.log.io import filenames, osfile
from jitdb.log.io.lock import Lock, has_writer
from jitdb.log.io.osfile import Descriptor, FileSystem
from jitdb.log.opening import redo, swap, unfinished
from jitdb.log.opening.infer_block_size import block_size_in_journal
from jitdb.log.opening.options import OpenOptions, resolve_format
from jitdb.log.opening.recovery import NO_CHANGE, Recovery, examine
from jitdb.log.opening.tail import Tail, first_chain
from jitdb.log.sidecar import deletions, journal, meta
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.deletions import DeletionReader

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.sidecar.removals import Removals

_LOOKS: Final = 5  # a writer that comes meanwhile stays, so the second look is the last one but by misfortune
_NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_DONE_WITHOUT: Final = (*_NOT_ALLOWED, *osfile.NO_ROOM)  # a reader does without what it cannot write
_CANNOT_SYNC: Final = (*_NOT_ALLOWED, errno.EINVAL, errno.EBADF)


class Opened:
    """A log's file and sidecar, found in order. Closed when nobody needs it any more, if not before."""

    def __init__(
        self,
        fs: FileSystem,
        path: Path,
        sidecar: Path,
        file: Descriptor,
        codec: Codec,
        meta: meta.Meta,
        stored: bool,
        journal: journal.JournalReader,
        checksums: Checksums,
        deletions: DeletionReader,
        recovery: Recovery,
        lock: Lock | None,
        notices: list[str],
    ) -> None:
        self.fs = fs
        self.path = path
        self.sidecar = sidecar
        self.file = file
        self.codec = codec
        self.meta = meta
        self.stored = stored  # `meta` is in the sidecar; if not, the identity holds for this process only
        self.journal = journal
        self.checksums = checksums
        self.deletions = deletions
        self.recovery = recovery
        self.lock = lock  # a writer's
        self.notices = notices  # what was put in order when it was opened for writing

    @property
    def fd(self) -> int:
        """The log's file; -1 once it is closed."""
        return self.file.number

    def read(self, size: int, offset: int) -> bytes:
        """Bytes of the log's file; fewer than `size` only at its end. Raises LogClosed, LogError."""
        if self.fd < 0:
            raise self.closed()
        try:
            return self.fs.read(self.fd, size, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the buffer from the log's file; fewer bytes only at its end. Raises LogClosed, LogError."""
        if self.fd < 0:
            raise self.closed()
        try:
            return self.fs.read_into(self.fd, buffer, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def deleted(self, after: int, *, looks: bool) -> tuple[int, npt.NDArray[np.int64]]:
        """See LogSource.deletions. `looks`: what others do is to be seen at once. Raises LogSuperseded, LogError."""
        position = self.deletion_position(after, looks=looks)
        try:
            return position, self.deletions.between(after, position)
        except OSError as error:
            raise self.unreadable(error) from error

    def deletion_position(self, after: int = 0, *, looks: bool) -> int:
        """Of deleted(), the position alone. Raises as it does."""
        try:
            if looks:
                self.deletions.look(self.path)
            elif after > self.deletions.position:  # a reader was sooner to see what the writer just wrote
                self.deletions.poll()
            return self.deletions.position
        except OSError as error:
            raise self.unreadable(error) from error

    def unapplied(self, *, look: bool) -> set[int]:
        """Offsets of records that are deleted, and perhaps not zero yet. Raises LogError."""
        try:
            if look:
                self.deletions.poll()
        except OSError as error:
            raise self.unreadable(error) from error
        return {each.offset for each in self.deletions.unapplied}

    def removals(self, generation: int) -> list[Removals] | None:
        """See LogSource.removals. Raises LogError."""
        from jitdb.log.sidecar.removals import read_since

        try:
            return read_since(self.fs, self.sidecar, self.meta, generation)
        except OSError as error:
            raise self.unreadable(error) from error

    def closed(self) -> LogClosed:
        """The error for whoever still reads."""
        return LogClosed("the log was closed", path=self.path)

    def unreadable(self, error: OSError, offset: int | None = None) -> LogError:
        """The error for whoever meets a disk that does not give back what is on it."""
        if self.fd < 0:
            return self.closed()
        return LogError(f"cannot be read: {osfile.reason(error)}", path=self.path, offset=offset)

    def close(self) -> None:
        """Close all files; a writer's lock is released last."""
        self.journal.close()
        self.deletions.close()
        self.checksums.close()
        self.file.close()
        if self.lock is not None:
            self.lock.close()


def open_log(path: str | os.PathLike[str], options: OpenOptions, *, read_only: bool) -> Opened:
    """Open the log, for reading or as its one writer. Raises NotALog, LogLocked, LogReadOnly, LogError."""
    fs = osfile.fs
    real = filenames.log_path(path)
    for _ in range(_LOOKS):
        try:
            return _open_once(fs, real, options, read_only)
        except _FileReplaced:  # another file took its place between two looks
            continue
        except OSError as error:
            raise LogError(f"cannot be opened: {osfile.reason(error)}", path=real) from error
    raise LogError("other files take its place again and again: whatever does that must end first", path=real)


def open_again(opened: Opened, options: OpenOptions) -> Opened:
    """As the writer, who keeps the lock: the log as it is in the file now. Raises as open_log does."""
    fs = opened.fs
    file = _open_file(fs, opened.path, read_only=False)
    try:
        again = _bind(fs, opened.path, file, options, opened.lock)
        again.notices = opened.notices
    except BaseException:
        file.close()
        raise
    opened.lock = None
    return again


class _FileReplaced(Exception):
    """The file that is open is not the one of this name any more."""


def _open_once(fs: FileSystem, path: Path, options: OpenOptions, read_only: bool) -> Opened:
    file = _open_file(fs, path, read_only)
    lock: Lock | None = None
    try:
        if read_only:
            unfinished.refuse(fs, path)
            return _bind(fs, path, file, options, None)
        # Before anything is made beside a file that is no log at all:
        sidecar = filenames.sidecar_path(path)
        known = _known(fs, path, repair=False)
        fd = file.number
        if known.meta is None and options.block_size is None:
            options = options._replace(block_size=unfinished.block_size_of(fs, path, fd))
        resolve_format(
            fs, fd, path, _remembered(fs, fd, sidecar, options, known), known.meta, _state(fs, path, known).base
        )
        lock = _lock(fs, path)
        if unfinished.is_there(fs, path):
            _finish_compaction(fs, path, fd, options, lock)
        return _bind(fs, path, file, options, lock)
    except BaseException:
        if lock is not None:
            lock.close()
        file.close()
        raise


def _finish_compaction(fs: FileSystem, path: Path, fd: int, options: OpenOptions, lock: Lock) -> None:
    """Finish what async-append-only-log began. From its first step on, the sidecar speaks of another log."""
    sidecar = filenames.sidecar_path(path)
    known = _known(fs, path, repair=False)
    options = _remembered(fs, fd, sidecar, options, known)
    shape = resolve_format(fs, fd, path, options, known.meta, _state(fs, path, known).base)

    def begin() -> None:
        if known.meta is not None:
            _succeed(fs, fd, path, known.meta, shape.block_size, shape.codec_name, lock)

    unfinished.finish(fs, path, fd, shape.block_size, begin)
    warnings.warn(
        LogWarning(
            "a compaction that async-append-only-log began was finished: offsets and seqs are others, and its indexes "
            "are built anew",
            path=path,
            remedy="those that jitdb keeps in JavaScript know nothing of it: remove them",
        ),
        stacklevel=5,
    )


def _check_place(fs: FileSystem, path: Path, fd: int) -> None:
    try:
        if fs.is_at(path, fd):
            return
    except FileNotFoundError:
        pass
    raise _FileReplaced


def _open_file(fs: FileSystem, path: Path, read_only: bool) -> Descriptor:
    is_there = True
    try:
        mode = fs.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        is_there = False
        if read_only:
            raise NotALog("there is no such file, and read_only=True makes none", path=path) from None
    except OSError as error:
        raise LogError(f"cannot be looked at: {error.strerror}", path=path) from error
    else:
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise NotALog(f"this is {kind}, not a log", path=path)
    try:
        return Descriptor(fs, path, os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT)
    except FileNotFoundError as error:
        raise NotALog(f"the folder {path.parent} does not exist", path=path) from error
    except OSError as error:
        if error.errno in _NOT_ALLOWED and not is_there:
            reason = f"the folder {path.parent} may not be written ({error.strerror}): no log can be made there"
            raise LogReadOnly(reason, path=path) from error
        if error.errno in _NOT_ALLOWED and not read_only:
            raise LogReadOnly(f"may not be written ({error.strerror})", path=path, remedy=Remedy.read_only()) from error
        raise LogError(f"cannot be opened: {error.strerror}", path=path) from error


def _lock(fs: FileSystem, path: Path) -> Lock:
    sidecar = filenames.sidecar_path(path)
    try:
        _make_folder(fs, sidecar)
        lock = Lock(fs, sidecar / filenames.LOCK, path)
        try:
            swap.settle(fs, path, sidecar)
            if unfinished.is_there(fs, path):
                redo.clear(fs, sidecar)  # a block that another program has moved records into, or will
            else:
                redo.resume(fs, path, sidecar)
        except BaseException:
            lock.close()
            raise
        return lock
    except OSError as error:
        if error.errno in _NOT_ALLOWED:
            raise LogReadOnly(
                f"its sidecar {sidecar.name} may not be made or written ({osfile.reason(error)})",
                path=path,
                remedy=Remedy.read_only(),
            ) from error
        raise LogWriteFailed(f"its sidecar {sidecar.name} cannot be made: {osfile.reason(error)}", path=path) from error


def _make_folder(fs: FileSystem, folder: Path) -> None:
    try:
        fs.make_folder(folder)
    except FileExistsError:
        fs.share_folder(folder)  # the log's permissions may be others since
        return
    fs.sync_folder(folder.parent)


class _Known(NamedTuple):
    """What the sidecar says of the log."""

    meta: meta.Meta | None
    first: journal.Entry | None = None  # where the log ended when it was put in the old one's place (swap.py)


def _known(fs: FileSystem, path: Path, *, repair: bool) -> _Known:
    following = swap.pending(fs, path)
    if following is not None:
        return _Known(following.meta, following.entry)
    sidecar = filenames.sidecar_path(path)
    try:
        known = meta.read(fs, sidecar / filenames.META)
        return _Known(known if known is None else redo.effective_meta(fs, sidecar, known))
    except LogCorrupt as error:
        if repair:
            text = f"{error.reason}; the log gets a new identity, its indexes are built anew"
            warnings.warn(LogWarning(text, path=error.path), stacklevel=6)
        return _Known(None)


def stored_meta(path: str | os.PathLike[str]) -> meta.Meta | None:
    """What the sidecar says the log is by now; None where nothing tells. Raises LogError, OSError."""
    return _known(osfile.fs, filenames.log_path(path), repair=False).meta


def _remembered(fs: FileSystem, fd: int, sidecar: Path, options: OpenOptions, known: _Known) -> OpenOptions:
    """What the caller wants, and, where `meta` is lost, what the journal says of the block size."""
    if known.meta is not None or options.block_size is not None:
        return options
    return options._replace(block_size=block_size_in_journal(fs, fd, sidecar / filenames.COMMIT))


def _state(fs: FileSystem, path: Path, known: _Known) -> journal.State:
    if known.meta is None:
        return journal.EMPTY
    path = filenames.sidecar_path(path) / filenames.COMMIT
    reader = journal.JournalReader(fs, path, known.meta.generation, known.first)
    try:
        return reader.poll()
    finally:
        reader.close()


def _bind(fs: FileSystem, path: Path, file: Descriptor, options: OpenOptions, lock: Lock | None) -> Opened:
    fd = file.number
    sidecar = filenames.sidecar_path(path)
    now = _known(fs, path, repair=True)
    if now.first is not None and lock is None:
        _sync(path, lambda: fs.sync_folder(path.parent))  # who renamed it may have died before it did
    base = _state(fs, path, now).base
    known = now.meta
    of_commit = journal.last_generation(fs, sidecar / filenames.COMMIT)
    later = max(of_commit, deletions.last_generation(fs, sidecar / filenames.DELETIONS))
    # `commit` speaks of a generation before `meta` does, see _store: one that does not was lost, or is another log's.
    apart = known is not None and now.first is None and not of_commit == known.generation >= later
    _check_place(fs, path, fd)
    if apart and _known(fs, path, repair=False).meta != known:
        raise _FileReplaced
    options = _remembered(fs, fd, sidecar, options, now)
    block_size, codec, codec_name = resolve_format(fs, fd, path, options, known, base)
    if known is None:
        plain = meta.Meta(block_size, codec_name, meta.new_identity(), later + 1)
        if lock is None and fs.size(fd) == 0:  # nothing to index: the first writer says what it is
            mine, stored = _for_now(fs, fd, plain), False
        else:
            mine, stored = _store(fs, fd, path, plain, lock, None)
    elif apart:
        reason = (
            f"is of generation {known.generation}, expected {later} as the files beside it: files of different "
            f"copies of the log stand together"
            if of_commit
            else f"stands without {filenames.COMMIT}, which is missing or tells nothing: they may be "
            f"of different copies"
        )
        text = f"{sidecar.name}/{filenames.META} {reason}. It counts as a new log, its indexes are built anew"
        warnings.warn(LogWarning(text, path=path), stacklevel=4)
        mine, stored = _succeed(fs, fd, path, known, block_size, codec_name, lock, later)
    elif (known.block_size, known.codec) != (block_size, codec_name):
        mine, stored = _succeed(fs, fd, path, known, block_size, codec_name, lock)
    else:
        mine, stored = known, True
    entries = journal.JournalReader(fs, sidecar / filenames.COMMIT, mine.generation, now.first)
    gone = DeletionReader(fs, sidecar / filenames.DELETIONS, mine.generation)
    found = _find_end(fs, fd, sidecar, mine, codec, entries, gone, lock)
    _check_place(fs, path, fd)
    if found.replaced:
        entries.close()
        gone.close()
        text = (
            f"this is not the log that its sidecar tells of (it was truncated, replaced or compacted by another "
            f"program; expected its records to end at byte {base.end if base else 0:,}, got {found.tail.end:,}): "
            f"it counts as a new log, its indexes are built anew"
        )
        warnings.warn(LogWarning(text, path=path), stacklevel=4)
        block_size, codec, codec_name = resolve_format(fs, fd, path, options, mine, None)
        mine, stored = _succeed(fs, fd, path, mine, block_size, codec_name, lock)
        entries = journal.JournalReader(fs, sidecar / filenames.COMMIT, mine.generation)
        gone = DeletionReader(fs, sidecar / filenames.DELETIONS, mine.generation)
        found = _find_end(fs, fd, sidecar, mine, codec, entries, gone, lock)
    notices = []
    if found.lost:
        notices.append(
            f"{sidecar.name}/{filenames.DELETIONS} is not the journal of deletions that the log was left with "
            f"({found.lost}): which records are deleted is found by reading the log"
        )
        warnings.warn(LogWarning(notices[0], path=path), stacklevel=4)
    if found.unacknowledged and (lock is None or found.is_accepted):  # else the writer says what it does with them
        notices.append(_of_unacknowledged(sidecar, found))
        warnings.warn(LogWarning(notices[-1], path=path), stacklevel=4)

    opened = Opened(
        fs=fs,
        path=path,
        sidecar=sidecar,
        file=file,
        codec=codec,
        meta=mine,
        stored=stored,
        journal=entries,
        checksums=Checksums(fs, sidecar / filenames.CHECKSUMS, mine.generation, found.change),
        deletions=gone,
        recovery=found,
        lock=lock,
        notices=notices,
    )
    if lock is None:
        note(opened)
    return opened


def _of_unacknowledged(sidecar: Path, found: Recovery) -> str:
    """What is to be said of records that no entry of the journal tells of."""
    what = (
        f"{sidecar.name}/{filenames.COMMIT} tells of the log up to byte {found.unacknowledged.start:,}, and whole "
        f"records follow up to byte {found.unacknowledged.stop:,}"
    )
    if found.is_accepted:
        return (
            f"{what}, which were written later: it is of an earlier moment than the log, or another program appended "
            f"them after a crash. They count as well"
        )
    return (
        f"{what}. After a power failure they were never acknowledged; else it is of an earlier moment than the log. "
        f"They are left out, and a writer sets them aside: to have them, move {sidecar.name} away before that, and "
        f"the log is opened as its file is"
    )


def _find_end(
    fs: FileSystem,
    fd: int,
    sidecar: Path,
    mine: meta.Meta,
    codec: Codec,
    entries: journal.JournalReader,
    deletions: DeletionReader,
    lock: Lock | None,
) -> Recovery:
    """Examine the log; as a reader again, if a writer came while we looked and what we saw may be half written."""
    if codec.name != mine.codec and mine.codec in CODEC_NAMES:
        codec = get_codec(mine.codec)  # opened as raw bytes: what the log's own codec says counts

    for _ in range(_LOOKS):
        state = entries.poll()
        deletions.poll()  # after the entries, which tell what must be in it
        alive = lock is None and has_writer(fs, sidecar / filenames.LOCK)
        found = examine(
            fs, fd, mine.block_size, codec, state,
            writer_alive=alive, deletions=deletions, last_word=_last_word(fs, sidecar),
        )  # fmt: skip
        if lock is not None or alive or found.is_recorded:
            break
        if not has_writer(fs, sidecar / filenames.LOCK) and entries.poll() == state:
            break
    return found


def _last_word(fs: FileSystem, sidecar: Path) -> int:
    """When a writer of ours last wrote to its journals, in nanoseconds."""
    journals = (sidecar / name for name in (filenames.COMMIT, filenames.DELETIONS))
    return max((fs.stat(path).st_mtime_ns for path in journals if fs.exists(path)), default=0)


def _store(
    fs: FileSystem, fd: int, path: Path, mine: meta.Meta, lock: Lock | None, seen: meta.Meta | None
) -> tuple[meta.Meta, bool]:
    """Put `meta` into the sidecar, in the place of what was `seen` there. A reader that may not gets an identity for
    itself.

    `commit` comes first: it begins with the word that nothing of this log is ours. So `meta` never stands without an
    entry of its generation, and where it does, `commit` was lost.
    """
    sidecar = filenames.sidecar_path(path)
    own: Lock | None = None
    try:
        _make_folder(fs, sidecar)
        if lock is None:
            own = Lock(fs, sidecar / filenames.LOCK, path)
            other = _known(fs, path, repair=False).meta
            if other is not None and other != seen:
                return other, True  # another reader was sooner
            if fs.exists(sidecar / filenames.REDO):
                return _for_now(fs, fd, mine), False  # the next writer finishes the repair, and finds out
        redo.append_entry(fs, sidecar, Tail().entry(journal.CLOSED, mine.generation, NO_CHANGE))
        fs.replace_file(sidecar / filenames.META, meta.encode(mine))
    except LogLocked:
        return _for_now(fs, fd, mine), False
    except OSError as error:
        if lock is not None:
            raise LogWriteFailed(f"its sidecar cannot be written: {osfile.reason(error)}", path=path) from error
        if error.errno not in _DONE_WITHOUT:
            raise LogError(f"its sidecar cannot be written: {osfile.reason(error)}", path=path) from error
        return _for_now(fs, fd, mine), False
    finally:
        if own is not None:
            own.close()
    return mine, True


def _succeed(
    fs: FileSystem, fd: int, path: Path, old: meta.Meta, block_size: int, codec: str, lock: Lock | None, later: int = 0
) -> tuple[meta.Meta, bool]:
    """The next generation, after `later` too: another log in the same file."""
    mine = meta.Meta(block_size, codec, meta.new_identity(), max(old.generation, later) + 1)
    return _store(fs, fd, path, mine, lock, old)


def _for_now(fs: FileSystem, fd: int, mine: meta.Meta) -> meta.Meta:
    """An identity without a sidecar to keep it: of this file, as long as its first block has these lengths."""
    status = fs.fstat(fd)
    text = f"{status.st_dev} {status.st_ino} {mine.block_size} {first_chain(fs, fd, mine.block_size)}"
    return mine._replace(identity=blake2b(text.encode(), digest_size=16).digest())


def follow(opened: Opened, options: OpenOptions) -> Opened:
    """As a reader: see what has changed. The same object with a new `found`, or a new one for another log."""
    fs, path = opened.fs, opened.path
    later = opened.deletions.superseded_by
    try:
        unfinished.refuse(fs, path)
        same_file = fs.is_at(path, opened.fd)
        known = _known(fs, path, repair=False).meta
        same_log = known == opened.meta if opened.stored else known is None and opened.recovery.tail.end > 0
        if same_file and same_log:
            found = _find_end(
                fs, opened.fd, opened.sidecar, opened.meta, opened.codec, opened.journal, opened.deletions, None
            )
            same_file = fs.is_at(path, opened.fd)
    except FileNotFoundError as error:
        raise NotALog("the file is gone", path=path) from error
    except OSError as error:
        raise opened.unreadable(error) from error
    if same_file and same_log and not found.replaced and not opened.deletions.is_lost:
        if found.change != opened.recovery.change:
            opened.checksums.rebind(found.change)
        opened.recovery = found
        opened.deletions.stay(later)
        note(opened)
        return opened
    return open_log(path, options, read_only=True)


def _sync(path: Path, sync: Callable[[], None]) -> None:
    """As a reader: make durable what is seen, unless that is not allowed. Raises LogError."""
    try:
        sync()
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise LogError(f"cannot be synced: {error.strerror}", path=path) from error


def note(opened: Opened) -> None:
    """As a reader: make sure of what was found beyond the journal, and write it there for the next one.

    The next one then knows a log that was changed meanwhile from one that was not. If the sidecar cannot be
    written, or a writer is there, nothing is noted: the next reader looks for itself.
    """
    fs, found = opened.fs, opened.recovery
    if found.is_recorded or found.tail.end == 0:
        return
    # An index must never know records that a power failure can still take.
    _sync(opened.path, lambda: fs.fsync(opened.fd))
    _sync(opened.path, opened.journal.sync)
    base = opened.journal.state.base
    if not opened.stored or (base is not None and base.kind != journal.CLOSED):
        return  # after a crash the next writer repairs the file
    try:
        lock = Lock(fs, opened.sidecar / filenames.LOCK, opened.path)
        try:
            if opened.journal.poll().base == base and fs.is_at(opened.path, opened.fd):
                opened.deletions.sync()
                known = opened.deletions.known
                entry = found.tail.entry(journal.CLOSED, opened.meta.generation, found.change, known)
                journal.append_to(
                    fs, opened.sidecar / filenames.COMMIT, opened.journal, entry._replace(stamp=found.stamp)
                )
        finally:
            lock.close()
    except LogLocked:
        return
    except OSError as error:
        if error.errno not in _DONE_WITHOUT:
            raise LogError(f"its sidecar cannot be written: {osfile.reason(error)}", path=opened.path) from error
