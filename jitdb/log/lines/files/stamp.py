"""What stat tells of a file, at some moment."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.log.io import osfile

_TICK: Final = 20_000_000  # nanoseconds: the clock of files moves on at least so often

_HALF: Final = 1 << 63


class Stamp(NamedTuple):
    """What stat tells of a file."""

    device: int
    inode: int
    size: int  # bytes
    mtime: int  # nanoseconds, in 64 bits: times beyond 1677 and 2262, which a file may be given, wrap around
    ctime: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        return cls(found.st_dev, found.st_ino, found.st_size, _wrapped(found.st_mtime_ns), _wrapped(found.st_ctime_ns))

    def is_settled(self) -> bool:
        """Whether a change from now on shows: the times in it are older than the system's clock ticks."""
        return time.time_ns() - max(self.mtime, self.ctime) > _TICK

    def is_of(self, other: Stamp) -> bool:
        """Whether both are of the same file, as it was at two moments."""
        return self[:2] == other[:2]


def _wrapped(time: int) -> int:
    return (time + _HALF) % (2 * _HALF) - _HALF


def stamp_at(path: Path) -> Stamp | None:
    """That of the file of this name; None where there is none."""
    found = osfile.fs.find(path)
    return Stamp.of(found) if found is not None and stat.S_ISREG(found.st_mode) else None
