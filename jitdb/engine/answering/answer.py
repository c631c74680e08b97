"""An answer: the set of matching records at one moment, put in order as far as somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.roaring import bitmap_of, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.order import Order


class Answer:
    """The records that a question is true of, as of one state of the log. Guarded by the engine's lock."""

    def __init__(self, bitmap: BitMap, order: Order) -> None:
        self.total = len(bitmap)
        self._bitmap = bitmap
        self._order = order
        self._members: NDArray[np.uint32] | None = None
        self._ordered: dict[bool, NDArray[np.uint32]] = {}

    def page(self, start: int, limit: int | None, descending: bool, arrival: bool) -> NDArray[np.uint32]:
        """The seqs of the answers [start, start + limit), in order; all from `start` on without a limit."""
        if self._members is None:
            self._members = members_of(self._bitmap)
        stop = self.total if limit is None else min(start + limit, self.total)
        if start >= stop:
            return self._members[:0]
        if arrival:
            ordered = self._members[::-1] if descending else self._members
        else:
            ordered = self._declared(stop, descending)
        return ordered[start:stop]

    def rest(self, start: int, descending: bool, arrival: bool) -> BitMap:
        """The answers from `start` on, in no order, when those before were asked for with page(). Reads no index."""
        if start == 0:
            return self._bitmap
        if arrival:
            assert self._members is not None
            passed = self._members[::-1][:start] if descending else self._members[:start]
        else:
            passed = self._ordered[descending][:start]
        return self._bitmap - bitmap_of(passed)

    def _declared(self, stop: int, descending: bool) -> NDArray[np.uint32]:
        """At least the first `stop` answers in declared order. Whoever pages on gets four times as many sorted at once.

        What was put in order once stays so, and the others come behind it: where the column was built again meanwhile,
        records that were deleted since have no time in it any more, and would stand elsewhere.
        """
        assert self._members is not None
        ordered = self._ordered.get(descending, self._members[:0])
        if len(ordered) < stop:
            wanted = min(max(stop, 4 * len(ordered)), self.total) - len(ordered)
            others = members_of(self._bitmap - bitmap_of(ordered)) if len(ordered) else self._members
            ordered = np.concatenate([ordered, self._order.first(others, wanted, descending)])
            self._ordered[descending] = ordered
        return ordered
