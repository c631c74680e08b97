"""Binding a log's file to its sidecar: do they belong together, and where does the log end?"""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyroaring import BitMap64

from jitdb.errors import LogClosed, LogCorrupt, LogError, LogLocked, LogWarning, LogWriteFailed, outside
from jitdb.log.codecs import Codec, find_codec
from jitdb.log.io import filenames, osfile
from jitdb.log.io.osfile import NOT_ALLOWED, Descriptor, FileSystem, Lock, has_writer
from jitdb.log.opening import swap
from jitdb.log.opening.format import LogFormat, OpenOptions, resolve_format
from jitdb.log.opening.recovery import NO_CHANGE, Look, Recovery, Tail, first_chain
from jitdb.log.sidecar import deletions, journal, meta
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.sidecar.journal import JournalReader
from jitdb.log.sidecar.meta import Meta

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from jitdb.log.sidecar.removals import Removals


_LOOKS: Final = 5  # until no writer came or went meanwhile: the second is nearly always the last


class Opened:
    """One log as it was opened. Closes itself when nobody holds it any more."""

    def __init__(
        self,
        fs: FileSystem,
        path: Path,
        file: Descriptor,
        options: OpenOptions,
        codec: Codec,
        meta: Meta,
        stored: bool,
        journal: JournalReader,
        lock: Lock | None,
    ) -> None:
        self.fs, self.path, self.file, self.options = fs, path, file, options
        self.sidecar = sidecar = filenames.sidecar_path(path)
        self.codec, self.meta = codec, meta
        self.stored = stored  # whether `meta` is in the sidecar; if not, the identity holds for this process only
        self.journal = journal
        self.deletions = DeletionReader(fs, sidecar / filenames.DELETIONS, meta.generation)
        self.lock = lock  # a writer's
        self.is_closed = False  # also while its files are being closed
        self.recovery = self.examine()
        self.checksums = Checksums(fs, sidecar / filenames.CHECKSUMS, meta.generation, self.recovery.change)
        self.notices: list[str] = []  # what was found and done when it was opened

    def examine(self) -> Recovery:
        """Where the log ends. A reader looks again if a writer came meanwhile, as what it saw may be half written."""
        fs, mine, is_written_here = self.fs, self.meta, self.lock is not None
        # A log that is opened as raw bytes is examined by its own codec.
        codec = self.codec if self.codec.name == mine.codec else find_codec(mine.codec) or self.codec
        for _ in range(_LOOKS):
            state = self.journal.poll()
            self.deletions.poll()  # after the journal of commits, which says what must be in it
            alive = not is_written_here and has_writer(fs, self.sidecar / filenames.LOCK)
            journals = map(fs.find, (self.sidecar / filenames.COMMIT, self.sidecar / filenames.DELETIONS))
            last_word = max((each.st_mtime_ns for each in journals if each is not None), default=0)
            found = Look(
                fs, self.fd, mine.block_size, codec, state,
                writer_alive=alive, deletions=self.deletions, last_word=last_word,
            ).recover()  # fmt: skip
            if is_written_here or alive or found.is_recorded:
                break
            if not has_writer(fs, self.sidecar / filenames.LOCK) and self.journal.poll() == state:
                break
        return found

    @property
    def fd(self) -> int:
        """The log's file; -1 once it is closed."""
        return self.file.number

    def read(self, size: int, offset: int) -> bytes:
        """Bytes of the log's file, fewer than `size` only at its end. Raises LogClosed, LogError."""
        try:
            return self.fs.read(self.fd, size, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the buffer from the log's file; fewer bytes only at its end. Raises LogClosed, LogError."""
        try:
            return self.fs.read_into(self.fd, buffer, offset)
        except OSError as error:
            raise self.unreadable(error, offset) from error

    @contextmanager
    def reading(self, offset: int | None = None) -> Iterator[None]:
        """Within, an OSError becomes LogClosed or LogError."""
        try:
            yield
        except OSError as error:
            raise self.unreadable(error, offset) from error

    def deleted(self, after: int, *, looks: bool) -> tuple[int, npt.NDArray[np.int64]]:
        """See LogSource.deletions. `looks`: for deletions by other processes, too. Raises LogSuperseded, LogError."""
        position = self.deletion_position(after, looks=looks)
        with self.reading():
            return position, self.deletions.between(after, position)

    def deletion_position(self, after: int = 0, *, looks: bool) -> int:
        """Of deleted(), the position alone. Raises as it does."""
        try:  # reading() would cost each question some microseconds
            if looks:
                self.deletions.look(self.path)
            elif after > self.deletions.position:  # the caller saw what our writer wrote just now
                self.deletions.poll()
            return self.deletions.position
        except OSError as error:
            raise self.unreadable(error) from error

    def unapplied(self, *, look: bool) -> BitMap64:
        if look:
            with self.reading():
                self.deletions.poll()
        return BitMap64(self.deletions.unapplied.offsets)

    def removals(self, generation: int) -> list[Removals] | None:
        from jitdb.log.sidecar.removals import read_since

        with self.reading():
            return read_since(self.fs, self.sidecar, self.meta, generation)

    def closed(self) -> LogClosed:
        return LogClosed("the log was closed", path=self.path)

    def unreadable(self, error: OSError, offset: int | None = None) -> LogError:
        """The error for a file that cannot be read, or a log that was closed."""
        if self.is_closed:
            return self.closed()
        return LogError(f"cannot be read: {osfile.reason(error)}", path=self.path, offset=offset)

    def close(self) -> None:
        """Close all files; a writer's lock is released last."""
        self.is_closed = True
        for each in (self.journal, self.deletions, self.checksums, self.file, self.lock):
            if each is not None:
                each.close()


_DONE_WITHOUT: Final = (*NOT_ALLOWED, *osfile.NO_ROOM)  # a reader can do without writing
_CANNOT_SYNC: Final = (*NOT_ALLOWED, errno.EINVAL, errno.EBADF)


class FileReplaced(Exception):
    """Another file has the name of the open one now."""


def bind(fs: FileSystem, path: Path, file: Descriptor, options: OpenOptions, lock: Lock | None) -> Opened:
    """The log in the open file. Raises FileReplaced, NotALog, LogError, OSError.

    If sidecar and file are of one log, it has the sidecar's identity, by which indexes know it. Otherwise it gets
    another one, of a later generation than any that is found.
    """
    fd, sidecar = file.number, filenames.sidecar_path(path)
    state = read_sidecar(fs, path, warn=True)
    known = state.meta
    if state.first is not None and lock is None:
        _sync(path, lambda: fs.sync_folder(path.parent))  # the process that renamed it may have died before it synced
    entries = journal.JournalReader(
        fs, sidecar / filenames.COMMIT, 0 if known is None else known.generation, state.first
    )
    base, of_commit = entries.poll().base, entries.last_generation
    later = max(of_commit, deletions.last_generation(fs, sidecar / filenames.DELETIONS))
    # store() writes a generation to `commit` before `meta`: where it is missing, `commit` was lost or is another log's.
    apart = known is not None and state.first is None and not of_commit == known.generation >= later
    if not fs.is_at(path, fd) or (apart and read_sidecar(fs, path).meta != known):
        raise FileReplaced
    form = resolve_format(fs, fd, path, options, known, base)
    if known is None:
        mine, stored = Meta(form.block_size, form.codec_name, meta.new_identity(), later + 1), False
        if lock is None and fs.size(fd) == 0:  # nothing to index yet: the first writer decides what it is
            mine = for_now(fs, fd, mine)
        else:
            mine, stored = store(fs, fd, path, mine, lock, None)
    elif apart or (known.block_size, known.codec) != (form.block_size, form.codec_name):
        if apart:
            reason = (
                f"is of generation {known.generation}, expected {later} as the files beside it: files of different "
                f"copies of the log stand together"
                if of_commit
                else f"stands without {filenames.COMMIT}, which is missing or tells nothing: they may be of different "
                f"copies"
            )
            what = f"{sidecar.name}/{filenames.META} {reason}"
            _warn(path, f"{what}. It counts as a new log, its indexes are built anew")
        mine, stored = renew(fs, fd, path, known, form, lock, later if apart else 0)
    else:
        mine, stored = known, True
    if mine != known:
        entries = journal.JournalReader(fs, sidecar / filenames.COMMIT, mine.generation, state.first)
    opened = Opened(fs, path, file, options, form.codec, mine, stored, entries, lock)
    if not fs.is_at(path, fd):
        raise FileReplaced
    if opened.recovery.replaced:
        wanted, end = base.end if base else 0, opened.recovery.tail.end
        found = f"expected its records to end at byte {wanted:,}, got {end:,}"
        if wanted == end:
            found = f"its records end at byte {end:,}, as expected, but are not known to be those that were written"
        _warn(
            path,
            f"this is not the log that its sidecar tells of (it was truncated, replaced or compacted by another "
            f"program; {found}): it counts as a new log, its indexes are built anew",
        )
        opened.journal.close()
        opened.deletions.close()
        form = resolve_format(fs, fd, path, options, mine, None)
        mine, stored = renew(fs, fd, path, mine, form, lock)
        entries = journal.JournalReader(fs, sidecar / filenames.COMMIT, mine.generation)
        opened = Opened(fs, path, file, options, form.codec, mine, stored, entries, lock)
    opened.notices = _notices(opened)
    for notice in opened.notices:
        _warn(path, notice)
    return opened


def record_recovery(opened: Opened) -> None:
    """For a reader: make durable what was found beyond the journal, and note it there, so that the next process
    recognises the log. Notes nothing if the sidecar cannot be written, or a writer is there.
    """
    fs, found = opened.fs, opened.recovery
    if found.is_recorded or found.tail.end == 0:
        return
    # An index must never know records that a power failure can still remove.
    _sync(opened.path, lambda: fs.fsync(opened.fd))
    _sync(opened.path, opened.journal.sync)
    base = opened.journal.state.base
    if not opened.stored or (base is not None and base.kind != journal.CLOSED):
        return  # after a crash the next writer repairs the file
    try:
        with closing(Lock(fs, opened.sidecar / filenames.LOCK, opened.path)):
            if opened.journal.poll().base == base and fs.is_at(opened.path, opened.fd):
                opened.deletions.sync()
                entry = found.tail.entry(journal.CLOSED, opened.meta.generation, found.change, opened.deletions.known)
                journal.append_entry(fs, opened.sidecar / filenames.COMMIT, entry._replace(stamp=found.stamp))
                opened.journal.poll()
    except LogLocked:
        return
    except OSError as error:
        if error.errno not in _DONE_WITHOUT:
            raise LogError(f"its sidecar cannot be written: {osfile.reason(error)}", path=opened.path) from error


def _sync(path: Path, sync: Callable[[], None]) -> None:
    """For a reader: make durable what it sees, if it may. Raises LogError."""
    try:
        sync()
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise LogError(f"cannot be synced: {error.strerror}", path=path) from error


def _notices(opened: Opened) -> list[str]:
    found, sidecar, notices = opened.recovery, opened.sidecar.name, []
    if found.lost:
        notices.append(
            f"{sidecar}/{filenames.DELETIONS} is not the journal of deletions that the log was left "
            f"with ({found.lost}): which records are deleted is found by reading the log"
        )
    if found.unacknowledged and (opened.lock is None or found.is_accepted):  # otherwise the writer warns
        what = (
            f"{sidecar}/{filenames.COMMIT} tells of the log up to byte {found.unacknowledged.start:,}, and "
            f"whole records follow up to byte {found.unacknowledged.stop:,}"
        )
        notices.append(
            f"{what}, which were written later: it is of an earlier moment than the log, or another program "
            f"appended them after a crash. They count as well"
            if found.is_accepted
            else f"{what}. After a power failure they were never acknowledged; else it is of an earlier moment than "
            f"the log. They are left out, and a writer sets them aside: to have them, move {sidecar} away "
            f"before that, and the log is opened as its file is"
        )
    return notices


def _warn(path: Path, text: str) -> None:
    warnings.warn(LogWarning(text, path=path), stacklevel=outside())


class SidecarState(NamedTuple):
    meta: Meta | None
    first: journal.Entry | None = None  # where the log ended when it replaced the old one (swap.py)


def read_sidecar(fs: FileSystem, path: Path, *, warn: bool = False) -> SidecarState:
    """What the sidecar of the log at `path` says. A damaged `meta` counts as none; `warn` of it."""
    pending = swap.unfinished(fs, path)
    if pending is not None:
        return SidecarState(pending.meta, pending.entry)
    sidecar = filenames.sidecar_path(path)
    try:
        return SidecarState(meta.read(fs, sidecar / filenames.META))
    except LogCorrupt as error:
        if warn:
            text = f"{error.reason}; the log gets a new identity, its indexes are built anew"
            warnings.warn(LogWarning(text, path=error.path), stacklevel=outside())
        return SidecarState(None)


def stored_meta(path: str | os.PathLike[str]) -> Meta | None:
    """The present `meta` of the log; None without one. Raises LogError, OSError."""
    return read_sidecar(osfile.fs, filenames.log_path(path)).meta


def make_folder(fs: FileSystem, folder: Path) -> None:
    """Make the sidecar's folder, or give it the log's present permissions."""
    try:
        fs.make_folder(folder)
    except FileExistsError:
        fs.share_folder(folder)
        return
    fs.sync_folder(folder.parent)


def store(fs: FileSystem, fd: int, path: Path, mine: Meta, lock: Lock | None, seen: Meta | None) -> tuple[Meta, bool]:
    """Replace the `meta` that was `seen` in the sidecar; gives the log's `meta`, and whether it is stored. A reader
    that may not write gets an identity for itself. `commit` is written first, with an entry of this generation: if
    `meta` is there without one, `commit` was lost.
    """
    sidecar = filenames.sidecar_path(path)
    own: Lock | None = None
    try:
        make_folder(fs, sidecar)
        if lock is None:
            own = Lock(fs, sidecar / filenames.LOCK, path)
            other = read_sidecar(fs, path).meta
            if other is not None and other != seen:
                return other, True  # another reader stored one first
        journal.append_entry(fs, sidecar / filenames.COMMIT, Tail().entry(journal.CLOSED, mine.generation, NO_CHANGE))
        fs.replace_file(sidecar / filenames.META, meta.encode(mine))
    except LogLocked:
        return for_now(fs, fd, mine), False
    except OSError as error:
        if lock is None and error.errno in _DONE_WITHOUT:
            return for_now(fs, fd, mine), False
        kind = LogError if lock is None else LogWriteFailed
        raise kind(f"its sidecar cannot be written: {osfile.reason(error)}", path=path) from error
    finally:
        if own is not None:
            own.close()
    return mine, True


def for_now(fs: FileSystem, fd: int, mine: Meta) -> Meta:
    """An identity without a sidecar: of this file, as long as the chain of lengths of its first block is this one."""
    from jitdb.common.digests import blake2b

    status = fs.fstat(fd)
    text = f"{status.st_dev} {status.st_ino} {mine.block_size} {first_chain(fs, fd, mine.block_size)}"
    return mine._replace(identity=blake2b(text.encode(), digest_size=16).digest())


def renew(
    fs: FileSystem, fd: int, path: Path, old: Meta, form: LogFormat, lock: Lock | None, later: int = 0
) -> tuple[Meta, bool]:
    """store() a new identity, because the file holds another log; of a generation after `old` and `later`."""
    new = Meta(form.block_size, form.codec_name, meta.new_identity(), max(old.generation, later) + 1)
    return store(fs, fd, path, new, lock, old)
