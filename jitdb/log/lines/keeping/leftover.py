"""Sidecars of files of lines that are there no more.

A file that was renamed finds its sidecar again (moving.py), so nobody removes one of itself. What a sidecar of lines
holds can all be made again; one that holds anything else is none of these.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jitdb.log.io.filenames import CHECKPOINTS, INDEXES, LINES, LINES_LOCK, SIDECAR_SUFFIX, TAIL, log_beside

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
    if file is None or os.path.lexists(file) or sidecar.is_symlink() or not (sidecar / LINES).is_file():
        return False
    return all(entry.name in _MADE_AGAIN for entry in sidecar.iterdir())


def size_of(sidecar: Path) -> int:
    """Bytes of its files."""
    return sum(path.stat().st_size for path in sidecar.rglob("*") if path.is_file())


def _below(folder: str) -> Iterator[Path]:
    for top, folders, _ in os.walk(folder):
        yield from (Path(top, name) for name in folders if name.endswith(SIDECAR_SUFFIX) and name != SIDECAR_SUFFIX)
        folders[:] = [name for name in folders if not name.endswith(SIDECAR_SUFFIX) and not name.startswith(".")]
