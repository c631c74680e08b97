"""Every file name of a log and of the sidecar folder beside it. Names are on disk: never change them."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

from jitdb.common.arguments import file_path

TEMPORARY_SUFFIX: Final = ".tmp"
SIDECAR_SUFFIX: Final = ".jitdb"  # ssb.log has its sidecar in ssb.log.jitdb/
COMPACTION_SUFFIX: Final = ".compaction"  # async-append-only-log has not finished one (foreign_compaction.py)

META: Final = "meta"  # what the log is: block size, codec, identity (meta.py)
COMMIT: Final = "commit"  # up to where the log is durable (journal.py)
CHECKSUMS: Final = "checksums"  # a CRC per sealed block (checksums.py)
DELETIONS: Final = "deletions"  # which records were deleted, in order (deletions.py)
LOCK: Final = "lock"  # held by the one writer (lock.py)
INDEXES: Final = "indexes"  # a folder that belongs to the engine
SETS: Final = "sets"  # a folder of sets of records that somebody named; the engine's, too
LINES: Final = "lines"  # what is known of a file of lines that somebody else writes (lines/keeping/known.py)
CHECKPOINTS: Final = "checkpoints"  # where a gzip file can be decompressed from (lines/compressed/checkpoints.py)
TAIL: Final = "tail"  # the end of the text of a compressed file (lines/files/kept_tail.py)
LINES_LOCK: Final = "lines-lock"  # held while that is looked at and written

BUNDLED: Final = "members"  # the files of a bundle (lines/bundles/bundle.py), in a folder of its own in:
BUNDLES: Final = SIDECAR_SUFFIX

_DEEPEST: Final = 4  # names: a.log.jitdb/prefix/indexes/FILE

REDO: Final = "mend"  # a block that is being repaired (redo.py)
_MOVED: Final = "moved-"  # which records a compaction removed (removals.py)

# While a compacted log takes the place of the old one (swap.py):
NEXT: Final = "next"  # what the log is from now on
NEXT_LOG: Final = "next-log"  # its records
NEXT_CHECKSUMS: Final = "next-checksums"
NEXT_DELETIONS: Final = "next-deletions"
LARGER: Final = "larger" + TEMPORARY_SUFFIX  # a folder: a new log with larger blocks, on its way to the log's place
NEXT_FILES: Final = (NEXT, NEXT_LOG, NEXT_CHECKSUMS, NEXT_DELETIONS)


def log_path(path: str | os.PathLike[str]) -> Path:
    """The log's own file, links resolved: two names of one log must lead to one sidecar and one lock."""
    return Path(os.path.realpath(file_path(path)))


def sidecar_path(log: Path) -> Path:
    """The folder beside the log for what the log's file cannot hold."""
    return log.with_name(log.name + SIDECAR_SUFFIX)


def log_beside(path: str | os.PathLike[str]) -> Path | None:
    """The log in whose sidecar, or whose folder of indexes, this file or folder is; None elsewhere.

    In the folder of a bundle it is the list of the files, which has their owner and permissions.
    """
    beside = _beside(os.fspath(path))
    return None if beside is None else beside[0]


def folders_beside(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders of a sidecar, or of bundles, that lead to this file or folder, the outermost last.

    >>> folders_beside("/logs/a.log.jitdb/indexes/b.index"), folders_beside("/logs/a.log")
    (('/logs/a.log.jitdb/indexes', '/logs/a.log.jitdb'), ())
    """
    beside = _beside(os.fspath(path))
    return () if beside is None else beside[1]


@lru_cache(maxsize=256)  # it is asked each time that a file is opened
def _beside(text: str) -> tuple[Path, tuple[str, ...]] | None:
    folders = list[str]()
    for _ in range(_DEEPEST):
        text, slash, name = text.rstrip("/").rpartition("/")
        if name.endswith(SIDECAR_SUFFIX) and name != SIDECAR_SUFFIX:
            return Path(text + slash, name.removesuffix(SIDECAR_SUFFIX)), tuple(folders)
        folders.append(text)
        if text.endswith(f"/{BUNDLES}"):
            return Path(text, name, BUNDLED), tuple(folders)
    return None


def is_in_sidecar(path: str) -> bool:
    """Whether it is the folder of a sidecar or of bundles, or lies in one, by the names of the folders.

    >>> is_in_sidecar("app.log.jitdb/lines"), is_in_sidecar("logs/app.log")
    (True, False)
    """
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    return any(part.endswith(SIDECAR_SUFFIX) for part in folder.split(os.sep))


def without_sidecars(paths: list[str]) -> list[str]:
    """The paths that are no sidecars, which a shell finds beside the logs, too; all where there is nothing else."""
    return [path for path in paths if not is_in_sidecar(path)] or paths


def torn_name(offset: int, number: int) -> str:
    """The file that keeps bytes which were cut off the log at `offset`; `number` tells several apart."""
    return f"torn-{offset}-{number}"


def moved_name(generation: int) -> str:
    """The file that tells which records the compaction removed that made this generation."""
    return f"{_MOVED}{generation}"


def is_moved_name(name: str) -> bool:
    return name.startswith(_MOVED) and name[len(_MOVED) :].isdecimal()


def damaged_name(block: int, number: int) -> str:
    """The file that keeps a block as it was before it was repaired; `number` tells several apart."""
    return f"damaged-{block}-{number}"


def is_set_aside(name: str) -> bool:
    """Whether the file of this name holds bytes of the log that are none of its records."""
    return name.startswith(("torn-", "damaged-"))


def temporary_name(name: str) -> str:
    """The file that is renamed to `name` once it is written; the pid keeps two processes apart."""
    return f"{name}.{os.getpid()}{TEMPORARY_SUFFIX}"
