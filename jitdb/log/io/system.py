"""What not every system has, asked for once: Linux has all of it.

    byte_locks   locks of bytes that belong to an open file, not to a process    else a file for each (locks.py)
    preadv       reading into memory that is there                               else it is read, and copied
    fdatasync    syncing a file without its times                                else it is synced with them
    full_sync    macOS alone: without it, bytes may be in the disk's own cache when a sync returns

JITDB_WITHOUT=byte_locks,preadv does without some of them, to try on Linux what other systems do (CONTRIBUTING.md).
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from typing import Final

from jitdb.errors import InvalidArgument

NAMES: Final = ("byte_locks", "preadv", "fdatasync", "full_sync")
WITHOUT: Final = frozenset(filter(None, os.environ.get("JITDB_WITHOUT", "").split(",")))
if WITHOUT - {*NAMES}:
    raise InvalidArgument(f"JITDB_WITHOUT={','.join(sorted(WITHOUT))} names others than {', '.join(NAMES)}")


def fully_synced(command: int) -> Callable[[int], None]:
    """fsync by the command of fcntl that empties the disk's own cache, too; plain fsync for files that do not have it,
    such as those of other machines.
    """

    def fsync(fd: int) -> None:
        try:
            fcntl.fcntl(fd, command)
        except OSError:
            os.fsync(fd)

    return fsync


# Others than Linux may have them, with another `struct flock` than locks.py knows, or without excluding threads.
HAS_BYTE_LOCKS: Final = sys.platform == "linux" and "byte_locks" not in WITHOUT

HAS_PREADV: Final = hasattr(os, "preadv") and "preadv" not in WITHOUT

_FULL_SYNC: Final[int | None] = None if "full_sync" in WITHOUT else getattr(fcntl, "F_FULLFSYNC", None)

fsync: Final[Callable[[int], None]] = os.fsync if _FULL_SYNC is None else fully_synced(_FULL_SYNC)

# Without the modification time: much faster where bytes are overwritten.
fdatasync: Final[Callable[[int], None]] = (
    os.fdatasync if hasattr(os, "fdatasync") and not {"fdatasync"} & WITHOUT and _FULL_SYNC is None else fsync
)
