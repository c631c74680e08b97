"""Binding a log's file to its sidecar: is the log that the sidecar tells of the one in the file, and where does it end?

`BINDINGS` says whose identity the log gets, by what its sidecar and its file are to each other.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Final

from jitdb.errors import LogError, LogWarning
from jitdb.log.codecs import Codec, find_codec
from jitdb.log.io import filenames
from jitdb.log.io.lock import Lock, has_writer
from jitdb.log.io.osfile import NOT_ALLOWED, Descriptor, FileSystem
from jitdb.log.opening.identity import SidecarState, for_now, read_sidecar, store, successor
from jitdb.log.opening.infer_block_size import with_block_size
from jitdb.log.opening.opened import Opened
from jitdb.log.opening.options import LogFormat, OpenOptions, resolve_format
from jitdb.log.opening.recovery import Look, Recovery
from jitdb.log.sidecar import deletions, journal
from jitdb.log.sidecar.checksums import Checksums
from jitdb.log.sidecar.deletions import DeletionReader
from jitdb.log.sidecar.meta import Meta, new_identity

LOOKS: Final = 5  # a writer that comes meanwhile stays, so the second look is the last one but by misfortune
_CANNOT_SYNC: Final = (*NOT_ALLOWED, errno.EINVAL, errno.EBADF)


class FileReplaced(Exception):
    """The file that is open is not the one of this name any more."""


class Match(Enum):
    """What a log's sidecar is to its file."""

    NONE = "there is no meta"
    APART = "meta and commit are of different moments, or of different logs"
    REFORMATTED = "the file has another block size or codec, which an empty log may get"
    WHOLE = "they tell of one log"
    REPLACED = "they tell of another log than the file holds"


class Identity(Enum):
    """Whose identity the log has, by which indexes know it."""

    FIRST = "one of its own, of the generation after any that is found"
    NEXT = "another one, and the next generation: its indexes are built anew"
    KEPT = "that of the sidecar"


BINDINGS: Final[dict[Match, Identity]] = {
    Match.NONE: Identity.FIRST,
    Match.APART: Identity.NEXT,
    Match.REFORMATTED: Identity.NEXT,
    Match.WHOLE: Identity.KEPT,
    Match.REPLACED: Identity.NEXT,
}


def bind(fs: FileSystem, path: Path, file: Descriptor, options: OpenOptions, lock: Lock | None) -> Opened:
    """The log in the open file. Raises FileReplaced, NotALog, LogError, OSError."""
    return _Binding(fs, path, file, options, lock).bind()


def check_place(fs: FileSystem, path: Path, fd: int) -> None:
    """Raise FileReplaced unless the open file is the one of this name."""
    try:
        if fs.is_at(path, fd):
            return
    except FileNotFoundError:
        pass
    raise FileReplaced


class _Binding:
    def __init__(self, fs: FileSystem, path: Path, file: Descriptor, options: OpenOptions, lock: Lock | None) -> None:
        self._fs, self._path, self._file, self._options, self._lock = fs, path, file, options, lock
        self._sidecar = filenames.sidecar_path(path)
        self._known = SidecarState(None)
        self._later = 0  # the last generation of which a file of the sidecar tells
        self._notices: list[str] = []

    def bind(self) -> Opened:
        """See bind()."""
        fs, path, fd = self._fs, self._path, self._file.number
        self._known = known = read_sidecar(fs, path, warn=True)
        if known.first is not None and self._lock is None:
            sync(path, lambda: fs.sync_folder(path.parent))  # who renamed it may have died before it did
        entries = self._entries(0 if known.meta is None else known.meta.generation, known.first)
        base, of_commit = entries.poll().base, entries.last_generation
        self._later = max(of_commit, deletions.last_generation(fs, self._sidecar / filenames.DELETIONS))
        # `commit` speaks of a generation before `meta` does, see store(): one that does not was lost, or is another's.
        apart = known.meta is not None and known.first is None and not of_commit == known.meta.generation >= self._later
        check_place(fs, path, fd)
        if apart and read_sidecar(fs, path).meta != known.meta:
            raise FileReplaced
        self._options = with_block_size(fs, path, fd, self._options, known)
        form = resolve_format(fs, fd, path, self._options, known.meta, base)
        if known.meta is None:
            match = Match.NONE
        elif apart:
            match = Match.APART
            self._warn_apart(known.meta, of_commit)
        else:
            is_whole = (known.meta.block_size, known.meta.codec) == (form.block_size, form.codec_name)
            match = Match.WHOLE if is_whole else Match.REFORMATTED
        mine, stored = self._identify(match, known.meta, form)
        if match is not Match.WHOLE:
            entries = self._entries(mine.generation, known.first)
        opened = self._open(mine, stored, form, entries)
        check_place(fs, path, fd)
        if opened.recovery.replaced:
            self._warn_replaced(base, opened.recovery)
            opened.journal.close()
            opened.deletions.close()
            form = resolve_format(fs, fd, path, self._options, opened.meta, None)
            mine, stored = self._identify(Match.REPLACED, opened.meta, form)
            opened = self._open(mine, stored, form, self._entries(mine.generation, None))
        self._notice(opened.recovery)
        opened.notices = self._notices
        return opened

    def _identify(self, match: Match, known: Meta | None, form: LogFormat) -> tuple[Meta, bool]:
        """What the log is, and whether that is stored."""
        fs, fd, identity = self._fs, self._file.number, BINDINGS[match]
        if known is not None and identity is Identity.KEPT:
            return known, True
        if known is not None:
            later = self._later if match is Match.APART else 0
            mine = successor(known, form.block_size, form.codec_name, later)
        else:
            mine = Meta(form.block_size, form.codec_name, new_identity(), self._later + 1)
            if self._lock is None and fs.size(fd) == 0:  # nothing to index: the first writer says what it is
                return for_now(fs, fd, mine), False
        return store(fs, fd, self._path, mine, self._lock, known)

    def _entries(self, generation: int, first: journal.Entry | None) -> journal.JournalReader:
        return journal.JournalReader(self._fs, self._sidecar / filenames.COMMIT, generation, first)

    def _open(self, mine: Meta, stored: bool, form: LogFormat, entries: journal.JournalReader) -> Opened:
        fs, sidecar, generation = self._fs, self._sidecar, mine.generation
        gone = DeletionReader(fs, sidecar / filenames.DELETIONS, generation)
        found = find_end(fs, self._file.number, sidecar, mine, form.codec, entries, gone, self._lock)
        return Opened(
            fs=fs,
            path=self._path,
            sidecar=sidecar,
            file=self._file,
            codec=form.codec,
            meta=mine,
            stored=stored,
            journal=entries,
            checksums=Checksums(fs, sidecar / filenames.CHECKSUMS, generation, found.change),
            deletions=gone,
            recovery=found,
            lock=self._lock,
            notices=[],
        )

    # --- what is said of it ----------------------------------------------------------------------------------------

    def _warn_apart(self, known: Meta, of_commit: int) -> None:
        commit = filenames.COMMIT
        reason = (
            f"is of generation {known.generation}, expected {self._later} as the files beside it: files of different "
            f"copies of the log stand together"
            if of_commit
            else f"stands without {commit}, which is missing or tells nothing: they may be of different copies"
        )
        self._warn(
            f"{self._sidecar.name}/{filenames.META} {reason}. It counts as a new log, its indexes are built anew"
        )

    def _warn_replaced(self, base: journal.Entry | None, found: Recovery) -> None:
        self._warn(
            f"this is not the log that its sidecar tells of (it was truncated, replaced or compacted by another "
            f"program; expected its records to end at byte {base.end if base else 0:,}, got {found.tail.end:,}): it "
            f"counts as a new log, its indexes are built anew"
        )

    def _notice(self, found: Recovery) -> None:
        if found.lost:
            self._notices.append(
                f"{self._sidecar.name}/{filenames.DELETIONS} is not the journal of deletions that the log was left "
                f"with ({found.lost}): which records are deleted is found by reading the log"
            )
        if found.unacknowledged and (self._lock is None or found.is_accepted):  # else the writer says what it does
            self._notices.append(self._of_unacknowledged(found))
        for notice in self._notices:
            self._warn(notice)

    def _of_unacknowledged(self, found: Recovery) -> str:
        what = (
            f"{self._sidecar.name}/{filenames.COMMIT} tells of the log up to byte {found.unacknowledged.start:,}, and "
            f"whole records follow up to byte {found.unacknowledged.stop:,}"
        )
        if found.is_accepted:
            return (
                f"{what}, which were written later: it is of an earlier moment than the log, or another program "
                f"appended them after a crash. They count as well"
            )
        return (
            f"{what}. After a power failure they were never acknowledged; else it is of an earlier moment than the "
            f"log. They are left out, and a writer sets them aside: to have them, move {self._sidecar.name} away "
            f"before that, and the log is opened as its file is"
        )

    def _warn(self, text: str) -> None:
        warnings.warn(LogWarning(text, path=self._path), stacklevel=7)


def find_end(
    fs: FileSystem,
    fd: int,
    sidecar: Path,
    mine: Meta,
    codec: Codec,
    entries: journal.JournalReader,
    deletions: DeletionReader,
    lock: Lock | None,
) -> Recovery:
    """Examine the log; as a reader again, if a writer came while we looked and what we saw may be half written."""
    if codec.name != mine.codec:
        codec = find_codec(mine.codec) or codec  # opened as raw bytes: what the log's own codec says counts
    for _ in range(LOOKS):
        state = entries.poll()
        deletions.poll()  # after the entries, which tell what must be in it
        alive = lock is None and has_writer(fs, sidecar / filenames.LOCK)
        found = Look(
            fs, fd, mine.block_size, codec, state,
            writer_alive=alive, deletions=deletions, last_word=_last_word(fs, sidecar),
        ).recover()  # fmt: skip
        if lock is not None or alive or found.is_recorded:
            break
        if not has_writer(fs, sidecar / filenames.LOCK) and entries.poll() == state:
            break
    return found


def _last_word(fs: FileSystem, sidecar: Path) -> int:
    """When a writer of ours last wrote to its journals, in nanoseconds."""
    journals = (sidecar / name for name in (filenames.COMMIT, filenames.DELETIONS))
    return max((fs.stat(path).st_mtime_ns for path in journals if fs.exists(path)), default=0)


def sync(path: Path, sync: Callable[[], None]) -> None:
    """As a reader: make durable what is seen, unless that is not allowed. Raises LogError."""
    try:
        sync()
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise LogError(f"cannot be synced: {error.strerror}", path=path) from error
