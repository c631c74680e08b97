"""The numbers of groups in order, and how often each is there; and what counts whole numbers so in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.operators.summaries.arithmetic.numbers import Moments, Numbers, of_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELLS: Final = 1 << 21  # 8 MiB
_FEW: Final = 1 << 14  # cells that are looked through in no time
_GROUPS: Final = 1 << 16  # whose sums are made one by one
_HALF: Final = 24  # bits: squares of places in a group's cells have twice as many at most


class Ordered(NamedTuple):
    """The numbers of some groups, one group behind the other, each in order.

    ends:   where each group ends
    counts: how often each number is there; None: once
    """

    ends: NDArray[np.int64]
    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None
    counts: NDArray[np.int64] | None = None

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)

    def of(self, groups: NDArray[np.int64]) -> Ordered:
        """The same without the other groups, which are empty."""
        return self._replace(ends=self.ends[groups])

    def at(self, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
        """The number at a place of each group, which is not empty."""
        begins = np.append(0, self.ends[:-1])
        if self.counts is None:
            chosen = begins + places
        else:
            sums = np.append(0, np.cumsum(self.counts))
            chosen = np.searchsorted(sums, sums[begins] + places, side="right") - 1
        return self.hi[chosen], None if self.lo is None else self.lo[chosen]

    def counted(self) -> Ordered:
        """The same, each number of a group once."""
        if self.counts is not None or not len(self.hi):
            return self
        is_new = np.ones(len(self.hi), np.bool_)
        is_new[1:] = self.hi[1:] != self.hi[:-1]
        if self.lo is not None:
            is_new[1:] |= self.lo[1:] != self.lo[:-1]
        is_new[self.ends[self.ends < len(self.hi)]] = True
        begins = np.flatnonzero(is_new)
        ends = np.searchsorted(begins, self.ends)
        counts = np.diff(begins, append=len(self.hi))
        return Ordered(ends, self.hi[begins], None if self.lo is None else self.lo[begins], counts)


class Tally:
    """Whole numbers within a small extent, counted in one pass: a cell for each of them and each row of groups. What
    they are like, and their quantiles, follows from that.

    rows:     the row of each group, -1 for none
    is_right: whether all numbers were so; else an index says what is not true of them
    """

    def __init__(self, least: int, width: int, rows: NDArray[np.int64]) -> None:
        self.is_right = True
        self._least, self._width, self._rows = least, width, rows
        self._cells = np.zeros(int(rows.max(initial=-1) + 1) * width, np.uint32)

    @classmethod
    def of(cls, extent: tuple[int, int] | None, groups: int, records: int) -> Tally | None:
        """For so many records, whose numbers are within this extent; None where that is not worth it.

        extent: the least number, and the largest; None where some may not be whole
        """
        if extent is None or groups > _GROUPS:
            return None
        width = extent[1] - extent[0] + 1
        fits = width * groups <= min(CELLS, max(_FEW, records))
        return cls(extent[0], width, np.arange(groups)) if fits else None

    def add(self, numbers: Numbers, groups: NDArray[np.int64] | None) -> None:
        """Each number to its group; all to the first without groups."""
        from jitdb.operators.summaries.arithmetic.summary_kernels import count_cells

        own = of_kernels(groups)
        self.is_right &= not count_cells(numbers.doubles, own, self._rows, self._least, self._width, self._cells)

    def ordered(self, rows: NDArray[np.int64] | None = None) -> Ordered:
        """The numbers of all rows, or of these."""
        cells = self._cells if rows is None else self._cells.reshape(-1, self._width)[rows].ravel()
        there = np.flatnonzero(cells)
        ends = np.searchsorted(there, np.arange(self._width, len(cells) + 1, self._width))
        numbers = (there % self._width + self._least).astype(np.float64)
        return Ordered(ends, numbers, None, cells[there].astype(np.int64))

    def moments(self) -> Moments:
        """What the numbers of each row are like. Sums are exact."""
        there = np.flatnonzero(self._cells)
        rows, places = np.divmod(there, self._width)
        counts = self._cells[there].astype(np.int64)
        begins = np.flatnonzero(np.diff(rows, prepend=-1))
        squares = places * places
        half = np.int64((1 << _HALF) - 1)
        terms = (counts, places * counts, (squares & half) * counts, (squares >> _HALF) * counts)
        added = [np.add.reduceat(term, begins).tolist() if len(begins) else [] for term in terms]
        sums = [
            (count, of_places + self._least * count,
             (high << _HALF) + low + self._least * (2 * of_places + self._least * count))
            for count, of_places, low, high in zip(*added, strict=True)
        ]  # fmt: skip
        ends = places[[begins, np.append(begins[1:], len(there)) - 1]] if len(begins) else np.empty((2, 0), np.int64)
        return Moments.of_sums(len(self._rows), rows[begins], ends + self._least, sums)
