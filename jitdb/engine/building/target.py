"""An index that a scan brings up to date: what it is fed, and the segments that come of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jitdb.errors import IndexDamaged
from jitdb.indexes.building.builders import Builder, Piece
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import SPAN, Segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BuildTarget:
    """An index to bring up to date, and who builds it. `emit` takes each finished segment.

    What it was fed lies in one list, so that it adds up wherever an exception (a Ctrl-C) leaves it.
    """

    def __init__(self, index: Index, builder: Builder, emit: Callable[..., None]) -> None:
        self.index = index
        self.builder = builder
        self.begin_seq, self.begin_offset = index.end_seq, index.end_offset
        self._emit = emit
        self._from = (self.begin_seq, self.begin_offset)  # what is emitted ends here
        self._fed: list[tuple[int, Piece, int]] = []  # first seq, piece, where its last record ends
        self._early = 0  # so many of them are in segments that were emitted early

    @property
    def next_seq(self) -> int:
        """The first record it was not fed yet."""
        if not self._fed:
            return self._from[0]
        seq, piece, _ = self._fed[-1]
        return seq + piece.records

    def feed(self, piece: Piece, seq: int, ends: NDArray[np.int64]) -> None:
        """Take the records of a slice that the index lacks; `seq` is that of the slice's first. Emits full spans."""
        at = self.next_seq - seq
        if self.next_seq == self.begin_seq:
            self._check_place(at, ends)
        while at < piece.records:
            first = seq + at
            stop = min(piece.records, at + SPAN - first % SPAN)
            self._fed.append((first, piece.cut(at, stop), int(ends[stop - 1])))
            at = stop
            if (seq + at) % SPAN == 0:
                self.take(self.make(last=False))

    @property
    def is_fed(self) -> bool:
        """Whether there is anything to make a segment of."""
        return bool(self._fed)

    def make(self, last: bool) -> Segment:
        """The segment of all it was fed since the last one was taken. Changes nothing."""
        return self._made(0, last)

    def make_rest(self) -> Segment | None:
        """The segment of what is not in one yet, not even in one that was emitted early. Changes nothing."""
        return self._made(self._early, False) if self._early < len(self._fed) else None

    def take(self, segment: Segment) -> None:
        """Hand on the segment that was made."""
        self._from = (segment.end_seq, segment.end_offset)
        self._fed, self._early = [], 0
        self._emit(segment)

    def save(self) -> None:
        """Emit what is in no segment yet, until the one of the whole span takes its place."""
        segment = self.make_rest()
        if segment is not None:
            self._emit(segment, True)
            self._early = len(self._fed)  # after it: emitted twice, it takes its own place

    def _made(self, begin: int, last: bool) -> Segment:
        first_seq, first_offset = self._from
        if begin:
            first_seq, first_offset = self._fed[begin][0], self._fed[begin - 1][2]
        run = (first_seq, self.next_seq - first_seq, first_offset, self._fed[-1][2])
        return self.builder.make([(seq, piece) for seq, piece, _ in self._fed[begin:]], run, last)

    def _check_place(self, at: int, ends: NDArray[np.int64]) -> None:
        """Whether the index's record number `at` of a slice begins where the index ends."""
        if 0 <= at < len(ends) and ends[at] > self.begin_offset and (at == 0 or ends[at - 1] == self.begin_offset):
            return
        raise IndexDamaged(
            f"{self.begin_seq} records are indexed up to byte {self.begin_offset}, where the log has another number of "
            f"them now: a block was damaged or repaired since",
            path=self.index.name,
        )
