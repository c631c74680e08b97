"""Where the tests find what is kept of a file that somebody else writes."""

from __future__ import annotations

from pathlib import Path

from jitdb.log.io.filenames import STORE
from jitdb.log.lines.keeping.places import entry_name


def entry_of(path: Path, tag: str = "") -> Path:
    """The folder of this file, which is there, in the store beside it."""
    return path.with_name(STORE) / entry_name(path.stat().st_ino, tag)


def entries_beside(folder: Path) -> set[str]:
    """The names of all entries in the store of this folder."""
    store = folder / STORE
    return {each.name for each in store.iterdir() if each.is_dir()} if store.exists() else set()
