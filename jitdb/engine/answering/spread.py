"""The numbers of a field in cells (operators/summaries/arithmetic/cells.py), and those of some cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.engine.answering.members import NOWHERE
from jitdb.indexes.kinds.columns import number_range
from jitdb.indexes.kinds.numbers import load_numbers
from jitdb.operators.summaries.arithmetic.cells import NO_CELLS, Cells, Taken, added, in_order, shift_for
from jitdb.operators.summaries.arithmetic.numbers import Numbers
from jitdb.operators.summaries.arithmetic.summary_kernels import choose_in_cells, count_chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.members import Members, Within
    from jitdb.indexes.segment import Segment

_BLOB: Final = 1  # by whose place the cells of a whole segment are kept; its numbers are by that of blob 0
_SIZE: Final = 16 << 12  # bytes that these take, about


def cells_in(segments: Sequence[Segment], members: Members) -> Cells:
    """In which cells the numbers of these records lie. Raises IndexDamaged."""
    return added(_cells(segment, within) for segment, within in _there(segments, members))


def numbers_in(segments: Sequence[Segment], members: Members, cells: Cells) -> list[Taken]:
    """The numbers of these records that lie in these cells. Raises IndexDamaged."""
    if not len(cells.places):
        return []
    first = int(cells.places[0])
    wanted = np.zeros(int(cells.places[-1]) - first + 1, np.bool_)
    wanted[cells.places - first] = True
    found = []
    for segment, within in _there(segments, members):
        hi, lo = load_numbers(segment)
        begin, end, places = _run(segment, within)
        out = np.empty(len(places) or end - begin, np.uint32)
        chosen = out[: choose_in_cells(hi, begin, end, places, cells.shift, first, wanted, out)]
        if within.others:
            chosen = chosen[_is_left(chosen, within.places)]
        found.append(Taken(Numbers(hi[chosen], None if lo is None else lo[chosen])).shorter())
    return found


def _there(segments: Sequence[Segment], members: Members) -> Iterator[tuple[Segment, Within]]:
    for segment in segments:
        low, high, _ = number_range(segment)
        within = members.within(segment) if low <= high else None
        if within is not None:
            yield segment, within


def _run(segment: Segment, within: Within) -> tuple[int, int, NDArray[np.uint32]]:
    """What to go through: a run of records, or places."""
    if within.others:
        return 0, segment.count, NOWHERE
    if isinstance(within.places, slice):
        return within.places.start, within.places.stop, NOWHERE
    return 0, 0, within.places


def _is_left(places: NDArray[np.uint32], others: Any) -> NDArray[np.bool_]:
    """Which of these places are none of the others; both ascend."""
    if not len(others):
        return np.ones(len(places), np.bool_)
    found = np.minimum(np.searchsorted(others, places), len(others) - 1)
    return np.asarray(others[found] != places)


def _cells(segment: Segment, within: Within) -> Cells:
    if not within.others:
        return _counted(segment, *_run(segment, within))
    every = segment.derived(_BLOB, _SIZE, lambda: _counted(segment, 0, segment.count, NOWHERE))
    assert not isinstance(within.places, slice)
    return every.without(_counted(segment, 0, 0, within.places))


def _counted(segment: Segment, begin: int, end: int, places: NDArray[np.uint32]) -> Cells:
    hi, _ = load_numbers(segment)
    low, high, _ = number_range(segment)
    shift = shift_for(low, high)
    first = in_order(low) >> shift
    cells = np.zeros((in_order(high) >> shift) - first + 1, np.int64)
    count_chosen(hi, begin, end, places, shift, first, cells)
    there = np.flatnonzero(cells)
    return Cells(shift, there + first, cells[there]) if len(there) else NO_CELLS
