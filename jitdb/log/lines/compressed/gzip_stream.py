"""The members of a gzip file (RFC 1952), one after the other, and what stands between them and behind the last one.

Each member's CRC-32 and length are verified by zlib when its end is reached. Zeros behind a member are padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.common import zlib
from jitdb.log.lines.compressed.stored import Stored

if TYPE_CHECKING:
    from zlib_ng.zlib_ng import _Decompress

_MAGIC: Final = b"\x1f\x8b\x08"  # and the method deflate, the only one there is
_FEED: Final = 1 << 16  # bytes given to zlib at a time
_WITH_HEADER: Final = 31  # zlib's word for windows of 32 KiB, with gzip's header and trailer


class Members(NamedTuple):
    """Whole members, from the first one on: where they end in the file and in the text, and the lines of that."""

    stored: int = 0
    text: int = 0
    lines: int = 0


class GzipStream:
    """See runs.Stream. It goes on where the file has grown.

    whole:     the members that it has behind it
    lines_end: in the text, just past the last newline before `position`
    is_inside: whether it is in a member that goes on
    """

    def __init__(self, stored: Stored, base: Members, began: Callable[[Members], object]) -> None:
        """It begins behind `base`; `began` is told, at the beginning of each member, of those before."""
        self._stored, self._began = stored, began
        self.whole, self.position, self.lines_end = base, base.text, base.lines
        self._at = base.stored  # of the next byte to feed
        self._left = b""  # what was read of the file, and zlib has not taken yet
        self._member: _Decompress | None = None

    @property
    def is_inside(self) -> bool:
        return self._member is not None

    def read(self, most: int) -> bytes:
        """See Stream. Raises LogCorrupt, OSError."""
        while self._member is not None or self._find_member():
            assert self._member is not None
            data = self._left or self._stored.read(_FEED, self._at)
            self._at += 0 if self._left else len(data)
            try:
                text = self._member.decompress(data, most)
            except zlib.error as error:
                said = (
                    f"the gzip member behind byte {self.whole.stored:,} is damaged before byte {self._at:,} ({error})"
                )
                raise self._stored.corrupt(said, self._at) from error
            self._left = self._member.unconsumed_tail
            newline = text.rfind(b"\n")
            self.lines_end = self.lines_end if newline < 0 else self.position + newline + 1
            self.position += len(text)
            if self._member.eof:
                self._left, self._member = self._member.unused_data, None
                self.whole = Members(self._at - len(self._left), self.position, self.lines_end)
            if text:
                return text
            if not data:
                return b""
        return b""

    def _find_member(self) -> bool:
        """Whether another member begins behind the last one. Raises LogCorrupt."""
        while not (rest := self._left.lstrip(b"\0")):
            self._left = self._stored.read(_FEED, self._at)
            self._at += len(self._left)
            if not self._left:
                return False
        if len(rest) < len(_MAGIC):
            more = self._stored.read(len(_MAGIC) - len(rest), self._at)
            self._at += len(more)
            rest += more
        self._left, begin = rest, self._at - len(rest)
        if not rest.startswith(_MAGIC[: len(rest)]):
            raise self._stored.corrupt(
                f"behind the gzip member that ends at byte {self.whole.stored:,} is something else: {rest[:8]!r}", begin
            )
        if len(rest) < len(_MAGIC):
            return False
        self._member = zlib.decompressobj(_WITH_HEADER)
        self._began(self.whole._replace(stored=begin))
        return True
