"""Folders that stores make."""

from __future__ import annotations

from pathlib import Path

from jitdb.log.io import osfile


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there; a power failure takes none of them.

    Raises OSError.
    """
    fs, missing = osfile.fs, []
    while not fs.exists(folder):
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        try:
            fs.make_folder(each)
        except FileExistsError:  # somebody else was sooner
            continue
        fs.sync_folder(each.parent)
