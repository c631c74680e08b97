"""Folders that stores make, and how whoever meets a log tells that it is a store's."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from jitdb.errors import LogError
from jitdb.log.io import filenames, osfile

_MARK: Final = ".store"  # a file in each folder where logs of a store lie: the store's name, and a line end


class Store(NamedTuple):
    """What a person is told who is about to change its logs behind its back."""

    name: str
    remedy: str  # what to use instead


STORES: Final = {
    "cable": Store("a Cable store", "Cable.prune() takes posts out, and Cable.compact() gives their room back"),
    "hyperdb": Store("a HyperDB database", "`jitdb hyperdb put` and `jitdb hyperdb delete` write to it"),
    "spool": Store("a Spool", "Spool.delete_before() deletes messages, and Spool.compact() gives their room back"),
}


def mark(folder: Path, store: str) -> None:
    """Say whose logs lie in this folder, where that is not said yet. Raises LogError."""
    path, said = folder / _MARK, f"{store}\n".encode()
    try:
        if osfile.fs.read_if_there(path) != said:
            osfile.fs.replace_file(path, said)
    except OSError as error:
        raise LogError(f"it cannot be written to ({osfile.reason(error)})", path=folder) from error


def store_of(log: str) -> Store | None:
    """The store that keeps this log; None where nobody said that one does. Raises OSError.

    It is believed only if it is to the letter what mark() writes: where it is damaged, nothing is kept from anybody.
    """
    said = osfile.fs.read_if_there(filenames.log_path(log).parent / _MARK) or b""
    return next((store for name, store in STORES.items() if said == f"{name}\n".encode()), None)


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
