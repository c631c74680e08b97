"""What tells a file, and its text, from others.

A file is known by its stamp, what stat says of it. Its text is known by its first bytes, and those before the place up
to which it was read: rotation renames files, copies and compresses them, and inodes are used again, but the text before
that place stays the same through all of that.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.digests import blake2b
from jitdb.log.objects.door import fs_of

ENDS: Final = 4096  # bytes at either end of a text; in cursors: never change it
_DIGEST: Final = 8  # bytes
_TICK: Final = 20_000_000  # nanoseconds: the clock of files moves on at least so often
_HALF: Final = 1 << 63

Read: TypeAlias = Callable[[int, int], bytes]  # so many bytes of a text, from this one on; fewer at its end


class Stamp(NamedTuple):
    """What stat says of a file, at some moment."""

    device: int
    inode: int
    size: int  # bytes
    mtime: int  # nanoseconds, in 64 bits: times beyond 1677 and 2262, which a file may be given, wrap around
    ctime: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        return cls(found.st_dev, found.st_ino, found.st_size, _wrapped(found.st_mtime_ns), _wrapped(found.st_ctime_ns))

    def is_settled(self, at: int | None = None) -> bool:
        """Whether a change from now (or `at`) on shows: the times in it are older than the system's clock ticks."""
        return (time.time_ns() if at is None else at) - max(self.mtime, self.ctime) > _TICK

    def is_of(self, other: Stamp) -> bool:
        """Whether both are of the same file, as it was at two moments."""
        return self[:2] == other[:2]


def _wrapped(time: int) -> int:
    return (time + _HALF) % (2 * _HALF) - _HALF


def are_settled(stamps: Iterable[Stamp | None], at: int) -> bool:
    """Whether a change of any of these files from this moment on shows."""
    return all(stamp is None or stamp.is_settled(at) for stamp in stamps)


def stamp_at(path: str | os.PathLike[str]) -> Stamp | None:
    """That of the file of this name; None where there is none."""
    found = fs_of(path).find(path)
    return Stamp.of(found) if found is not None and stat.S_ISREG(found.st_mode) else None


class SeenText(NamedTuple):
    """The text before the byte `at`: digests of its first and its last 4,096 bytes, or of all, if there are fewer."""

    at: int
    head: bytes
    tail: bytes

    @classmethod
    def of(cls, read: Read, at: int) -> SeenText | None:
        """At least its first line, or what is there of that: a byte tells nothing. None where the text is shorter."""
        head = read(ENDS, 0)
        at = at and max(at, head.find(b"\n") + 1 or len(head))
        size = min(ENDS, at)
        head = head[:size]
        tail = head if at <= ENDS else read(size, at - size)
        return cls(at, digest(head), digest(tail)) if len(head) == len(tail) == size else None

    @property
    def is_long(self) -> bool:
        """Whether two texts in which all this is equal are the same, whatever their names."""
        return self.at >= ENDS

    def fits(self, read: Read) -> bool:
        """Whether a text begins with this one."""
        size = min(ENDS, self.at)
        if digest(read(size, 0)) != self.head:
            return False
        return self.at <= ENDS or digest(read(size, self.at - size)) == self.tail


NOTHING_SEEN: Final = SeenText(0, b"", b"")


def begin_alike(one: Read, other: Read, size: int) -> bool:
    """Whether two texts have equal first bytes, as far as the ends of the first `size` tell."""
    most = min(ENDS, size)
    return one(most, 0) == other(most, 0) and one(most, size - most) == other(most, size - most)


def digest(text: bytes) -> bytes:
    """What a text is known by: eight bytes."""
    return blake2b(text, digest_size=_DIGEST).digest()
