"""What tells the text of a file from others: its first bytes, and those before the place up to which it was read.

Names and inodes do not tell it: rotation renames files, copies and compresses them, and inodes are used again. The text
up to a place that was read stays the same through all of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from jitdb.common.digests import blake2b

ENDS: Final = 4096  # bytes at either end; in cursors: never change it
_DIGEST: Final = 8  # bytes

Read: TypeAlias = Callable[[int, int], bytes]  # so many bytes of a text, from this one on; fewer at its end


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
        return cls(at, _digest(head), _digest(tail)) if len(head) == len(tail) == size else None

    @property
    def is_long(self) -> bool:
        """Whether two texts in which all this is equal are the same, whatever their names."""
        return self.at >= ENDS

    def fits(self, read: Read) -> bool:
        """Whether a text begins with this one."""
        size = min(ENDS, self.at)
        if _digest(read(size, 0)) != self.head:
            return False
        return self.at <= ENDS or _digest(read(size, self.at - size)) == self.tail


NOTHING_SEEN: Final = SeenText(0, b"", b"")


def begin_alike(one: Read, other: Read, size: int) -> bool:
    """Whether two texts have equal first bytes, as far as the ends of the first `size` tell."""
    most = min(ENDS, size)
    return one(most, 0) == other(most, 0) and one(most, size - most) == other(most, size - most)


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=_DIGEST).digest()
