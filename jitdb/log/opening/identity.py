"""Which log is it? What `meta` says, also while a swap or a repair is on its way, and what a log without one gets."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogCorrupt, LogError, LogLocked, LogWarning, LogWriteFailed
from jitdb.log.io import filenames, osfile
from jitdb.log.io.lock import Lock
from jitdb.log.io.osfile import NOT_ALLOWED, FileSystem
from jitdb.log.opening import redo, swap
from jitdb.log.opening.recovery import NO_CHANGE
from jitdb.log.opening.tail import Tail, first_chain
from jitdb.log.sidecar import journal, meta
from jitdb.log.sidecar.meta import Meta

DONE_WITHOUT: Final = (*NOT_ALLOWED, *osfile.NO_ROOM)  # a reader does without what it cannot write


class SidecarState(NamedTuple):
    """What the sidecar says of the log."""

    meta: Meta | None
    first: journal.Entry | None = None  # where the log ended when it was put in the old one's place (swap.py)


def read_sidecar(fs: FileSystem, path: Path, *, warn: bool = False) -> SidecarState:
    """What the sidecar of the log at `path` says. `warn`: of a `meta` that is damaged, which counts as none."""
    pending = swap.unfinished(fs, path)
    if pending is not None:
        return SidecarState(pending.meta, pending.entry)
    sidecar = filenames.sidecar_path(path)
    try:
        known = meta.read(fs, sidecar / filenames.META)
        return SidecarState(known if known is None else redo.effective_meta(fs, sidecar, known))
    except LogCorrupt as error:
        if warn:
            text = f"{error.reason}; the log gets a new identity, its indexes are built anew"
            warnings.warn(LogWarning(text, path=error.path), stacklevel=7)
        return SidecarState(None)


def stored_meta(path: str | os.PathLike[str]) -> Meta | None:
    """What the sidecar says the log is by now; None where nothing tells. Raises LogError, OSError."""
    return read_sidecar(osfile.fs, filenames.log_path(path)).meta


def last_entry(fs: FileSystem, path: Path, known: SidecarState) -> journal.Entry | None:
    """The last settled entry of the log's journal."""
    if known.meta is None:
        return None
    commit = filenames.sidecar_path(path) / filenames.COMMIT
    with closing(journal.JournalReader(fs, commit, known.meta.generation, known.first)) as reader:
        return reader.poll().base


def make_folder(fs: FileSystem, folder: Path) -> None:
    """The sidecar's folder, or its permissions as the log's are by now."""
    try:
        fs.make_folder(folder)
    except FileExistsError:
        fs.share_folder(folder)
        return
    fs.sync_folder(folder.parent)


def store(fs: FileSystem, fd: int, path: Path, mine: Meta, lock: Lock | None, seen: Meta | None) -> tuple[Meta, bool]:
    """Put `meta` into the sidecar, in the place of what was `seen` there; gives what the log is, and whether that is
    stored. A reader that may not gets an identity for itself.

    `commit` comes first: it begins with the word that nothing of this log is ours. So `meta` never stands without an
    entry of its generation, and where it does, `commit` was lost.
    """
    sidecar = filenames.sidecar_path(path)
    own: Lock | None = None
    try:
        make_folder(fs, sidecar)
        if lock is None:
            own = Lock(fs, sidecar / filenames.LOCK, path)
            other = read_sidecar(fs, path).meta
            if other is not None and other != seen:
                return other, True  # another reader was sooner
            if fs.exists(sidecar / filenames.REDO):
                return for_now(fs, fd, mine), False  # the next writer finishes the repair, and finds out
        redo.append_entry(fs, sidecar, Tail().entry(journal.CLOSED, mine.generation, NO_CHANGE))
        fs.replace_file(sidecar / filenames.META, meta.encode(mine))
    except LogLocked:
        return for_now(fs, fd, mine), False
    except OSError as error:
        if lock is None and error.errno in DONE_WITHOUT:
            return for_now(fs, fd, mine), False
        kind = LogError if lock is None else LogWriteFailed
        raise kind(f"its sidecar cannot be written: {osfile.reason(error)}", path=path) from error
    finally:
        if own is not None:
            own.close()
    return mine, True


def for_now(fs: FileSystem, fd: int, mine: Meta) -> Meta:
    """An identity without a sidecar to keep it: of this file, as long as its first block has these lengths."""
    from hashlib import blake2b

    status = fs.fstat(fd)
    text = f"{status.st_dev} {status.st_ino} {mine.block_size} {first_chain(fs, fd, mine.block_size)}"
    return mine._replace(identity=blake2b(text.encode(), digest_size=16).digest())


def successor(old: Meta, block_size: int, codec: str, later: int = 0) -> Meta:
    """The next generation, after `later` too: another log in the same file."""
    return Meta(block_size, codec, meta.new_identity(), max(old.generation, later) + 1)
