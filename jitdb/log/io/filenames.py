"""Every file name of a log and of the sidecar folder beside it. Names are on disk: never change them."""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

from jitdb.common.arguments import file_path
from jitdb.errors import LogError

TEMPORARY_SUFFIX: Final = ".tmp"
SIDECAR_SUFFIX: Final = ".jitdb"  # ssb.log has its sidecar in ssb.log.jitdb/
COMPACTION_SUFFIX: Final = ".compaction"  # an unfinished compaction of async-append-only-log

META: Final = "meta"  # what the log is: block size, codec, identity (meta.py)
COMMIT: Final = "commit"  # up to where the log is durable (journal.py)
CHECKSUMS: Final = "checksums"  # a CRC per sealed block (checksums.py)
DELETIONS: Final = "deletions"  # which records were deleted, in order (deletions.py)
LOCK: Final = "lock"  # held by the one writer (writing/writer.py)
INDEXES: Final = "indexes"  # a folder that belongs to the engine
SPANS: Final = "spans"  # in it, a folder of segments that lie in files of their own (indexes/files/span_file.py)
SETS: Final = "sets"  # a folder of sets of records that somebody named; the engine's, too
LINES: Final = "lines"  # what is known of a file of lines that somebody else writes (lines/keeping/known.py)
CHECKPOINTS: Final = "checkpoints"  # where a gzip file can be decompressed from (lines/files/checkpoints.py)
TAIL: Final = "tail"  # the end of the text of a compressed file (lines/files/checkpoints.py)
LINES_LOCK: Final = "lines-lock"  # held while these are read and written
ROWS: Final = "rows"  # of a Parquet or Arrow file: a folder of logs of what is in it (columnar/keeping.py)
ROWS_LOCK: Final = "rows-lock"  # held while such a log is made

# Of files that others write, one hidden folder beside them holds all that is kept; in it is a folder for each:
STORE: Final = SIDECAR_SUFFIX
BUNDLED: Final = "members"  # the files of a bundle (lines/bundles/bundle.py), whose folder is named by its identity
_BUNDLE: Final = re.compile("[0-9a-f]{32}")

_LINKS: Final = 40  # in a chain; Linux follows as many
_STICKY: Final = stat.S_ISVTX | stat.S_IWOTH
_NO_NAME: Final = ("", os.curdir, os.pardir)
_DEEPEST: Final = 4  # names: a.log.jitdb/prefix/indexes/FILE, .jitdb/INODE-table/rows/NAME/log

_MOVED: Final = "moved-"  # which records a compaction removed (removals.py)

# While another log takes the log's place (swap.py):
NEXT: Final = "next"  # what the log is from now on
NEXT_LOG: Final = "next-log"  # its records
NEXT_CHECKSUMS: Final = "next-checksums"
NEXT_DELETIONS: Final = "next-deletions"
LARGER: Final = "larger" + TEMPORARY_SUFFIX  # a folder: a new log with larger blocks, on its way to the log's place
NEXT_FILES: Final = (NEXT, NEXT_LOG, NEXT_CHECKSUMS, NEXT_DELETIONS)


def log_path(path: str | os.PathLike[str]) -> Path:
    """The log's own file, links resolved: two names of one log must lead to one sidecar and one lock.

    Raises InvalidArgument, LogError as followed() does.
    """
    return followed(file_path(path))


def followed(path: str, *, is_written: bool = False) -> Path:
    """Where a path leads: links resolved, as open() does, and as Linux does where it protects links from others.

    In a sticky folder that all may write (/tmp), a link is followed only if it belongs to us or to the folder's owner:
    others could choose what is read and overwritten.

    is_written: files that others put there are refused, too, as what is written would be theirs

    Raises LogError.
    """
    text = path.rstrip(os.sep) or path
    for _ in range(_LINKS):
        folder = os.path.dirname(text)
        try:
            found, around = os.lstat(text), os.stat(folder or os.curdir)
        except OSError:
            break
        is_link = stat.S_ISLNK(found.st_mode)
        is_open_to_all = around.st_mode & _STICKY == _STICKY
        if is_open_to_all and (is_link or is_written) and found.st_uid not in (os.geteuid(), around.st_uid):
            what = "link" if is_link else "file"
            raise LogError(
                f"this is a {what} that user {found.st_uid} put where all may make files, and is not "
                f"{'followed' if is_link else 'written to'}",
                path=text,
                remedy="name a file in a folder of your own",
            )
        if not is_link:
            break
        text = os.path.join(folder, os.readlink(text))
    folder, name = os.path.split(text)
    # The last name is not resolved again: a link that replaced it meanwhile was not checked.
    return Path(os.path.realpath(folder), name) if name not in _NO_NAME else Path(os.path.realpath(text))


def sidecar_path(log: Path) -> Path:
    """The folder beside the log for what the log's file cannot hold."""
    return log.with_name(log.name + SIDECAR_SUFFIX)


def log_beside(path: str | os.PathLike[str]) -> Path | None:
    """The log in whose sidecar this file or folder is; None elsewhere.

    In the store of a folder's files it is what tells of them (`lines`, or of a bundle `members`), which has the owner
    and the permissions of the log; for the store itself it is that folder.
    """
    beside = _beside(os.fspath(path))
    return None if beside is None else beside[0]


def folders_beside(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders of a sidecar, or of a store, that lead to this file or folder, the outermost last.

    >>> folders_beside("/logs/a.log.jitdb/indexes/b.index"), folders_beside("/logs/a.log")
    (('/logs/a.log.jitdb/indexes', '/logs/a.log.jitdb'), ())
    """
    beside = _beside(os.fspath(path))
    return () if beside is None else beside[1]


@lru_cache(maxsize=256)  # needed each time that a file is opened
def _beside(text: str) -> tuple[Path, tuple[str, ...]] | None:
    folders = list[str]()
    for _ in range(_DEEPEST):
        text, slash, name = text.rstrip("/").rpartition("/")
        if name == STORE:
            return Path(text + slash), tuple(folders)
        if name.endswith(SIDECAR_SUFFIX):
            return Path(text + slash, name.removesuffix(SIDECAR_SUFFIX)), tuple(folders)
        folders.append(text)
        if text.endswith(f"/{STORE}") and name != LINES_LOCK:
            return Path(text, name, BUNDLED if is_bundle_name(name) else LINES), tuple(folders)
    return None


def is_bundle_name(name: str) -> bool:
    """Whether a folder of this name in a store is that of a bundle."""
    return _BUNDLE.fullmatch(name) is not None


def is_in_sidecar(path: str) -> bool:
    """Whether it is the folder of a sidecar or a store, or lies in one, by the names of the folders.

    >>> is_in_sidecar("app.log.jitdb/lines"), is_in_sidecar("logs/app.log")
    (True, False)
    """
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return any(part.endswith(SIDECAR_SUFFIX) for part in folder.split(os.sep))


def without_sidecars(paths: list[str]) -> list[str]:
    """The paths without sidecars, which a shell's pattern matches, too; all paths if there is nothing else."""
    return [path for path in paths if not is_in_sidecar(path)] or paths


def torn_name(offset: int, number: int) -> str:
    """The file with bytes that were cut off the log at `offset`; `number` distinguishes several."""
    return f"torn-{offset}-{number}"


def moved_name(generation: int) -> str:
    """The file with the records that were removed by the compaction that made this generation."""
    return f"{_MOVED}{generation}"


def is_moved_name(name: str) -> bool:
    return name.startswith(_MOVED) and name[len(_MOVED) :].isdecimal()


def damaged_name(block: int, number: int) -> str:
    """The file with a block as it was before it was repaired; `number` distinguishes several."""
    return f"damaged-{block}-{number}"


def is_set_aside(name: str) -> bool:
    """Whether the file of this name has bytes of the log that were set aside."""
    return name.startswith(("torn-", "damaged-"))


def temporary_name(name: str) -> str:
    """The file that is renamed to `name` once it is written; two processes use different ones."""
    return f"{name}.{os.getpid()}{TEMPORARY_SUFFIX}"
