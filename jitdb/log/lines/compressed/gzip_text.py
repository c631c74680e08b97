"""The text of a gzip file: decompressed in order for scans, and from the nearest checkpoint for single records."""

from __future__ import annotations

import sys
import threading
import warnings
from bisect import bisect_right
from operator import attrgetter
from pathlib import Path
from typing import Final

from jitdb.common.forking import fork_safe
from jitdb.errors import LogCorrupt, LogError, LogWarning
from jitdb.log.io import osfile
from jitdb.log.lines.compressed.checkpoints import Checkpoints
from jitdb.log.lines.compressed.gzip_stream import GzipStream, Members
from jitdb.log.lines.compressed.pieces import PIECES
from jitdb.log.lines.compressed.points import SPACING
from jitdb.log.lines.compressed.runs import PIECE, Run, head_of
from jitdb.log.lines.compressed.stored import Stored
from jitdb.log.lines.compressed.text import Text

NEAR: Final = 4 * SPACING  # bytes of text that are decompressed for a record, rather than to look for checkpoints
_LEAST: Final = 18  # bytes of a member
_USUAL: Final = 64  # times that text is longer than it is compressed, at most
_TRAILER: Final = 4  # bytes at the end of a member: how long its text is, modulo 2**32


class GzipText(Text):
    """See Text.

    folder: where checkpoints are kept; None: in a file without a name
    name:   what the checkpoints there are known by: that of the file as it is
    """

    def __init__(self, stored: Stored, folder: Path | None, name: bytes) -> None:
        super().__init__(stored)
        self._lock = fork_safe(threading.RLock())
        self._checkpoints: Checkpoints | None = Checkpoints(stored, folder, name)
        self._starts = [Members()]  # what is before some members, with SPACING bytes of text between them at least
        self._run: Run[GzipStream] | None = None  # that reads
        self._last: Run[GzipStream] | None = None  # that came to the end, in a member that has none yet
        self._whole = Members()  # as far as somebody came
        self._end: int | None = None  # of the text, for certain
        self._lines = 0  # where they end then

    def head(self, size: int) -> bytes:
        return head_of([GzipStream(self.stored, Members(), lambda _: None)], size)

    def guess(self) -> int | None:
        """The last four bytes of a file of one whole member say how long its text is, modulo 2**32."""
        if self._whole.stored or self._last is not None or self.stored.stop < _LEAST:
            return None
        size = int.from_bytes(self.stored.read(_TRAILER, self.stored.stop - _TRAILER), "little")
        return size if self.stored.stop < size < _USUAL * self.stored.stop else None

    def grew(self) -> None:
        self._end = None

    def finish(self) -> int:
        with self._lock:
            if self._end is not None:
                return self._lines
            if self._checkpoints is not None and not self._whole.stored:
                self._begins(self._checkpoints.load())
            run = self._best_run(sys.maxsize)
            run.to_end()
            self._end, self._lines, self._whole = run.stream.position, run.stream.lines_end, run.stream.whole
            if self._checkpoints is not None:
                self._checkpoints.note(self._whole)
            self._run = None
            self._last = run if run.stream.is_inside else None
            self.unfinished = run.stream.whole.stored if run.stream.is_inside else None
            return self._lines

    def part(self, offset: int, size: int, is_random: bool) -> bytes:
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
            if held is not None and len(held) >= needed:
                return held
            if is_random and self._is_far(begin):
                held = self._from_checkpoint(begin, needed)
                if held is not None:
                    PIECES.put(key, held)
                    return held
            self._run = self._best_run(number)
            return self._run.piece(number)

    def _is_far(self, begin: int) -> bool:
        """Whether much must be decompressed before this byte of the text."""
        start = self._start_before(begin).text
        return all(run is None or not 0 <= begin - run.stream.position <= NEAR for run in (self._run, self._last)) and (
            begin - start > NEAR
        )

    def _start_before(self, begin: int) -> Members:
        return self._starts[bisect_right(self._starts, begin, key=attrgetter("text")) - 1]

    def _best_run(self, number: int) -> Run[GzipStream]:
        """The one that is next before this piece, which may be new."""
        runs = [run for run in (self._run, self._last) if run is not None and run.number <= number]
        best = max(runs, key=lambda run: run.stream.position, default=None)
        start = self._start_before(number * PIECE)
        if best is None or start.text > best.stream.position:
            return Run(GzipStream(self.stored, start, self._begins), self.number)
        return best

    def _begins(self, before: Members) -> None:
        if before.text >= self._starts[-1].text + SPACING:
            self._starts.append(before)

    def _from_checkpoint(self, begin: int, needed: int) -> bytes | None:
        """A piece, of which so much is needed; None where that cannot be had by a checkpoint."""
        self.settle()
        points, end = self._checkpoints, min(begin + needed, self._end or 0)
        if points is None or not begin < end <= self._whole.text:
            return None
        try:
            for _ in range(2):  # what was found damaged is made anew
                points.extend(end)
                piece = points.read(min(PIECE, self._whole.text - begin), begin)
                if piece is not None:
                    return piece
        except LogCorrupt:
            raise
        except (LogError, OSError) as error:
            said = error.reason if isinstance(error, LogError) else osfile.reason(error)
            warnings.warn(
                LogWarning(
                    f"each record is decompressed from the beginning of its gzip member, for there are no checkpoints: "
                    f"{said}",
                    path=self.stored.path,
                    remedy=error.remedy if isinstance(error, LogError) else None,
                ),
                stacklevel=2,
            )
            self._checkpoints = None
        return None
