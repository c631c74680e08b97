"""The file `lines`, in which processes tell each other what is known of a file, and the lock that guards it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from jitdb.log.io import osfile
from jitdb.log.io.filenames import LINES, LINES_LOCK
from jitdb.log.lines.keeping.known import Known

_PATIENCE: Final = 2.0  # seconds to wait for another process, which needs a millisecond
_PAUSE: Final = 0.002


def stored_in(folder: Path) -> Known | None:
    """What is told there; None where that is nothing, or was damaged."""
    with suppress(OSError):
        data = osfile.fs.read_if_there(folder / LINES)
        return None if data is None else Known.unpack(data)
    return None


def write_known(folder: Path, known: Known) -> None:
    """In place: who holds the lock sees no half of it. Not durably: what a power failure takes is found anew."""
    with osfile.Descriptor(osfile.fs, folder / LINES, os.O_WRONLY | os.O_CREAT) as fd:
        osfile.fs.write(fd, known.pack(), 0)


@contextmanager
def locked(folder: Path, *, make: bool = True) -> Iterator[None]:
    """Hold the lock of the folder; `make` it, if it is not there. Raises OSError."""
    late = time.monotonic() + _PATIENCE
    while True:
        with ExitStack() as held:
            if not make and not folder.is_dir():
                raise FileNotFoundError(f"{folder} is not there")
            if _is_taken(folder, held, late):
                yield
                return
        if time.monotonic() > late:
            raise TimeoutError(f"{folder} is moved again and again")


def _is_taken(folder: Path, held: ExitStack, late: float) -> bool:
    """Take the lock of the folder; False where that went along with a file that was renamed. Raises OSError."""
    osfile.fs.make_folders(folder)
    try:
        lock = held.enter_context(osfile.Descriptor(osfile.fs, folder / LINES_LOCK, os.O_RDWR | os.O_CREAT))
        while not osfile.fs.lock(lock):
            if time.monotonic() > late:
                raise TimeoutError(f"{folder / LINES_LOCK} is held by another process")
            time.sleep(_PAUSE)
        return osfile.fs.is_at(folder / LINES_LOCK, lock)
    except FileNotFoundError:
        return False
