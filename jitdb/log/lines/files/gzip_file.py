"""The text of a gzip file (RFC 1952): decompressed in order for scans, from the nearest checkpoint for single records.

Members stand one behind the other. Each one's CRC-32 and length are verified by zlib when its end is reached. Zeros
behind a member are padding.
"""

from __future__ import annotations

import sys
import threading
import warnings
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from jitdb.common import zlib
from jitdb.common.forking import fork_safe
from jitdb.errors import LogWarning
from jitdb.log.io import osfile
from jitdb.log.lines.files.checkpoints import Checkpoints, Members
from jitdb.log.lines.files.compressed_file import CompressedFile
from jitdb.log.lines.files.decompressing import PIECE, PIECES, Run, Stored, head_of

if TYPE_CHECKING:
    from zlib_ng.zlib_ng import _Decompress

APART: Final = 1 << 20  # bytes of text between members whose beginnings are remembered
NEAR: Final = 4 << 20  # bytes of text that are decompressed for a record, rather than to look for checkpoints

_MAGIC: Final = b"\x1f\x8b\x08"  # and the method deflate, the only one there is
_FEED: Final = 1 << 16  # bytes given to zlib at a time
_WITH_HEADER: Final = 31  # zlib's word for windows of 32 KiB, with gzip's header and trailer
_LEAST: Final = 18  # bytes of a member
_USUAL: Final = 64  # times that text is longer than it is compressed, at most
_TRAILER: Final = 4  # bytes at the end of a member: how long its text is, modulo 2**32


class GzipRun(Run):
    """See Run. It goes on where the file has grown.

    is_inside: whether it is in a member that goes on
    """

    def __init__(self, stored: Stored, text: int, base: Members, began: Callable[[Members], object]) -> None:
        """It begins behind `base`, and calls `began` at the beginning of each member with those before it."""
        super().__init__(text, base.text, base.lines)
        self._stored, self._began = stored, began
        self._before = base  # the members before the one that it is in
        self._at = self._end = base.stored  # of the next byte to feed; where the last member ended
        self._left = b""  # what was read of the file, and zlib has not taken yet
        self._member: _Decompress | None = None

    @property
    def is_inside(self) -> bool:
        return self._member is not None

    @property
    def whole(self) -> Members:
        """The members that it has behind it."""
        return self._before if self.is_inside else Members(self._end, self.position, self.lines_end)

    def decompressed(self, most: int) -> bytes:
        while self._member is not None or self._find_member():
            assert self._member is not None
            data = self._left or self._stored.read(_FEED, self._at)
            self._at += 0 if self._left else len(data)
            try:
                text = self._member.decompress(data, most)
            except zlib.error as error:
                said = f"the gzip member behind byte {self._end:,} is damaged before byte {self._at:,} ({error})"
                raise self._stored.corrupt(said, self._at) from error
            self._left = self._member.unconsumed_tail
            if self._member.eof:
                self._left, self._member = self._member.unused_data, None
                self._end = self._at - len(self._left)
            if text or not data:
                return text
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
                f"behind the gzip member that ends at byte {self._end:,} is something else", begin
            )
        if len(rest) < len(_MAGIC):
            return False
        self._before = self.whole
        self._member = zlib.decompressobj(_WITH_HEADER)
        self._began(self._before._replace(stored=begin))
        return True


class GzipFile(CompressedFile):
    """See CompressedFile."""

    compression = "gzip"

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._lock = fork_safe(threading.RLock())
        self._checkpoints: Checkpoints | None = Checkpoints(self.stored, self._folder, self._name)
        self._starts = [Members()]  # what is before some members
        self._run: GzipRun | None = None  # that reads
        self._paused: GzipRun | None = None  # at the end of the file, inside a member that is unfinished
        self._whole = Members()  # that are known so far
        self._end: int | None = None  # of the text, for certain
        self._lines_end = 0  # just past the last newline then

    def head(self, size: int) -> bytes:
        self.stored.stop = self.stamp().size
        return head_of([GzipRun(self.stored, 0, Members(), lambda _: None)], size)

    def _members(self) -> Members:
        return self._whole

    def _begun_behind(self, members: Members) -> int | None:
        rest = self.stored.read(_FEED, members.stored)
        return members.stored if rest.lstrip(b"\0").startswith(_MAGIC) else None

    def _begin_behind(self, members: Members) -> None:
        if not self._whole.stored:
            self._begins(members)

    def _begins(self, before: Members) -> None:
        if before.text >= self._starts[-1].text + APART:
            self._starts.append(before)

    def _grew(self) -> None:
        self._end = None

    def _guess(self) -> int | None:
        """The last four bytes of a file of one whole member say how long its text is, modulo 2**32."""
        if self._whole.stored or self._paused is not None or self.stored.stop < _LEAST:
            return None
        size = int.from_bytes(self.stored.read(_TRAILER, self.stored.stop - _TRAILER), "little")
        return size if self.stored.stop < size < _USUAL * self.stored.stop else None

    def _finish(self) -> tuple[int, int]:
        with self._lock:
            if self._end is None:
                run = self._best_run(sys.maxsize)
                run.to_end()
                self._end, self._lines_end, self._whole = run.position, run.lines_end, run.whole
                self._run, self._paused = None, run if run.is_inside else None
                self.unfinished = run.whole.stored if run.is_inside else None
            return self._lines_end, self._end

    def _part(self, offset: int, size: int, is_random: bool) -> bytes:
        number, inside = divmod(offset, PIECE)
        return self._piece(number, min(inside + size, PIECE), is_random)[inside : inside + size]

    def _piece(self, number: int, needed: int, is_random: bool) -> bytes:
        """A piece of the text, of which so many bytes are needed: fewer only at the end."""
        key, begin = (self.number, number), number * PIECE
        if self._end is not None:
            needed = min(needed, self._end - begin)
        held = PIECES.get(key)
        if needed <= 0 or (held is not None and len(held) >= needed):
            return held or b""
        with self._lock:
            held = PIECES.get(key)
            if held is None or len(held) < needed:
                held = self._from_checkpoint(begin, needed) if is_random and self._is_far(begin) else None
                if held is not None:
                    PIECES.put(key, held)
                else:
                    self._run = self._best_run(number)
                    held = self._run.piece(number)
            return held

    def _is_far(self, begin: int) -> bool:
        """Whether much must be decompressed before this byte of the text."""
        befores = [self._start_before(begin).text, *(run.position for run in (self._run, self._paused) if run)]
        return all(before > begin or begin - before > NEAR for before in befores)

    def _start_before(self, begin: int) -> Members:
        return self._starts[bisect_right(self._starts, begin, key=attrgetter("text")) - 1]

    def _best_run(self, number: int) -> GzipRun:
        """The one that is next before this piece, which may be new."""
        runs = [run for run in (self._run, self._paused) if run is not None and run.number <= number]
        best = max(runs, key=attrgetter("position"), default=None)
        start = self._start_before(number * PIECE)
        if best is None or start.text > best.position:
            return GzipRun(self.stored, self.number, start, self._begins)
        return best

    def _from_checkpoint(self, begin: int, needed: int) -> bytes | None:
        """A piece, of which so much is needed; None where that cannot be had by a checkpoint."""
        points, end = self._checkpoints, min(begin + needed, self._finish()[1])
        if points is None or not begin < end <= self._whole.text:
            return None
        try:
            return points.read(min(PIECE, self._whole.text - begin), begin, self._whole)
        except OSError as error:
            warnings.warn(
                LogWarning(
                    f"each record is decompressed from the beginning of its gzip member, for there are no checkpoints: "
                    f"{osfile.reason(error)}",
                    path=self.stored.path,
                ),
                stacklevel=2,
            )
            self._checkpoints = None
        return None


FILE: Final = GzipFile
