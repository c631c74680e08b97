"""Sidecars of files of lines that are there no more.

A file that was renamed finds its sidecar again (moving.py), so nobody removes one of itself. One that was compressed
has a new one, and the old one is removed. What a sidecar of lines holds can all be made again; one that holds anything
else is none of these.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from jitdb.common.zlib import crc32
from jitdb.errors import LogError
from jitdb.log.io import osfile
from jitdb.log.io.filenames import CHECKPOINTS, INDEXES, LINES, LINES_LOCK, SIDECAR_SUFFIX, TAIL, log_beside
from jitdb.log.lines.files.file import ENDS
from jitdb.log.lines.files.opening import head_of
from jitdb.log.lines.files.rotated_names import family, is_packed, unpacked_name
from jitdb.log.lines.form import TAG
from jitdb.log.lines.keeping.known import Known
from jitdb.log.lines.keeping.moving import Places, names_before, renamed
from jitdb.log.lines.keeping.storing import locked, stored_in

_MADE_AGAIN: Final = frozenset({LINES, LINES_LOCK, CHECKPOINTS, TAIL, INDEXES})


def leftovers(where: str) -> list[Path]:
    """Those below a folder, or of the files that a path or a pattern means."""
    if os.path.isdir(where):
        found = _below(where)
    else:
        found = (Path(path) for path in glob.iglob(f"{where}{SIDECAR_SUFFIX}", recursive=True))
    return sorted(filter(is_leftover, found))


def is_leftover(sidecar: Path) -> bool:
    """Whether it is one."""
    file = log_beside(sidecar)
    return file is not None and _is_left_by(file, sidecar)


def size_of(sidecar: Path) -> int:
    """Bytes of its files."""
    return sum(path.stat().st_size for path in sidecar.rglob("*") if path.is_file())


def remove_of_packed(path: Path, places: Places) -> None:
    """Remove the sidecars that files had before they became this one, or another of its family, by compression.

    Only those whose file is there under no name, while a compressed file begins with the text that it had.
    """
    for packed in [path] if is_packed(path.name) else _packed(path):
        name = unpacked_name(packed.name)
        for before in (name, *names_before(name)):
            file = packed.with_name(before)
            with suppress(OSError, LogError):
                _remove_if_packed(file, places.folder(file), packed)


def _packed(path: Path) -> list[Path]:
    """The compressed files of its family."""
    first = family(path.name)
    names = [name for name in osfile.fs.listdir(path.parent) if is_packed(name) and family(name) == first]
    return [path.with_name(name) for name in names]


def _remove_if_packed(file: Path, sidecar: Path, packed: Path) -> None:
    if not _is_left_by(file, sidecar):
        return
    with ExitStack() as locks:
        for folder in _parts(sidecar):
            locks.enter_context(locked(folder, make=False))
        if _is_left_by(file, sidecar) and all(_became(packed, file, stored_in(part)) for part in _parts(sidecar)):
            aside = sidecar.with_name(f".{sidecar.name.removesuffix(SIDECAR_SUFFIX)}.{os.getpid()}{SIDECAR_SUFFIX}")
            osfile.fs.rename(sidecar, aside)  # at once: a name that the next file may need
            osfile.fs.remove(aside)


def _became(packed: Path, file: Path, known: Known | None) -> bool:
    """Whether the file of which this is known is there no more, and the compressed one begins with its text."""
    if known is None or not known.end or not _begins(packed, known):
        return False
    there = renamed(file, known.stamp)  # or a new file that has its inode
    return there is None or not _begins(there, known)


def _begins(path: Path, known: Known) -> bool:
    size = min(known.end, ENDS)
    head = head_of(path, size)
    return len(head) >= size and crc32(head[:size]) == known.head


def _is_left_by(file: Path, sidecar: Path) -> bool:
    """Whether it is that of a file which is there no more, and holds nothing but what can be made again."""
    if os.path.lexists(file) or sidecar.is_symlink() or not sidecar.is_dir():
        return False
    parts = _parts(sidecar)
    others = (entry.name for folder in {sidecar, *parts} for entry in folder.iterdir() if entry not in parts)
    return bool(parts) and all(name in _MADE_AGAIN for name in others)


def _parts(sidecar: Path) -> list[Path]:
    """Its folders that tell of the file: one for each form in which the file was asked."""
    forms = [entry for entry in sidecar.iterdir() if TAG.fullmatch(entry.name) and not entry.is_symlink()]
    return sorted(folder for folder in (sidecar, *forms) if (folder / LINES).is_file())


def _below(folder: str) -> Iterator[Path]:
    for top, folders, _ in os.walk(folder):
        yield from (Path(top, name) for name in folders if name.endswith(SIDECAR_SUFFIX) and name != SIDECAR_SUFFIX)
        folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
