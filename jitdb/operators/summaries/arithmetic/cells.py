"""In which cells of the doubles the numbers of records lie: few counts that say where most are, however many there are.

A cell is 2**shift neighbouring doubles. In the order of their bits as integers, doubles that are twice as large are as
far apart anywhere, so cells of numbers from 1 to a million are wide where numbers are large, and those of numbers that
are all alike are narrow. A cell begins at a multiple of its size, so cells of several logs, or parts of one, add up:
narrow ones are parts of wide ones.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jitdb.operators.summaries.arithmetic.described import number_of
from jitdb.operators.summaries.arithmetic.numbers import Numbers, joined
from jitdb.operators.summaries.arithmetic.quantiles import places_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST: Final = 1 << 12  # cells from the least to the largest number, about
COARSEST: Final = 45  # the largest shift: 128 cells from a number to its double
_SORTED: Final = 1 << 17  # numbers that take no time to sort
_SIGNLESS: Final = (1 << 63) - 1


class Cells(NamedTuple):
    """How many numbers are in each cell that has some.

    shift:  what cells these are
    places: their numbers, ascending: the doubles in them, as integers, divided by 2**shift
    """

    shift: int
    places: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def coarser(self, shift: int) -> Cells:
        """The same in cells of this size, which is no smaller."""
        if shift == self.shift:
            return self
        wide = self.places >> (shift - self.shift)
        begins = np.flatnonzero(np.diff(wide, prepend=wide[:1] - 1))
        counts = np.add.reduceat(self.counts, begins) if len(wide) else self.counts
        return Cells(shift, wide[begins], counts)

    def without(self, others: Cells) -> Cells:
        """Less these, which are among them."""
        counts = self.counts.copy()
        counts[np.searchsorted(self.places, others.places)] -= others.counts
        there = counts > 0
        return Cells(self.shift, self.places[there], counts[there])

    def at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of these cells, which may have none."""
        if not len(self.places):
            return np.zeros(len(places), np.int64)
        found = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        return np.where(self.places[found] == places, self.counts[found], 0)

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least double of each cell, and that of the next one."""
        return doubles_at(self.places << self.shift), doubles_at((self.places + 1) << self.shift)


NO_CELLS: Final = Cells(0, np.empty(0, np.int64), np.empty(0, np.int64))


def added(parts: Iterable[Cells]) -> Cells:
    """All of them together."""
    held = [part for part in parts if len(part.places)]
    if len(held) < 2:
        return held[0] if held else NO_CELLS
    shift = max(part.shift for part in held)
    held = [part.coarser(shift) for part in held]
    places, numbers = np.unique(np.concatenate([part.places for part in held]), return_inverse=True)
    counts = np.zeros(len(places), np.int64)
    np.add.at(counts, numbers, np.concatenate([part.counts for part in held]))
    return Cells(shift, places, counts)


def shift_for(low: float, high: float) -> int:
    """How large cells are for numbers from `low` to `high`.

    >>> shift_for(0.5, 1000.0), shift_for(270.0, 310.0)
    (44, 38)
    """
    span = in_order(high) - in_order(low)
    return min(COARSEST, max(0, (span // _MOST).bit_length()))


def in_order(number: float) -> int:
    """A double as an integer, the larger the larger it is; both zeros are 0."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number or 0.0))
    return int(bits if bits >= 0 else bits ^ _SIGNLESS)


def doubles_at(places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The doubles that are these integers in in_order(); beyond the largest, infinity."""
    places = np.clip(places, in_order(-math.inf), in_order(math.inf))
    return np.where(places < 0, places ^ _SIGNLESS, places).view(np.float64)


def cells_of_one(number: float, count: int) -> Cells:
    """Those of so many numbers that are all the same."""
    if number != number or not count:
        return NO_CELLS
    return Cells(0, np.array([in_order(number)]), np.array([count]))


def cells_of(numbers: Numbers, cells: Cells) -> NDArray[np.int64]:
    """The place of each number, none of which is NaN, as these cells have them."""
    bits = (numbers.hi + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ _SIGNLESS, bits) >> cells.shift


class Wanted(NamedTuple):
    """Numbers that are looked for among some, by their places in order, and the cells that hold them.

    cells:   these cells, without counts
    places:  of each number which of the cells has it
    within:  and how many of that cell are before it
    """

    cells: Cells
    places: NDArray[np.int64]
    within: NDArray[np.int64]

    @classmethod
    def at(cls, cells: Cells, shares: Sequence[float]) -> Wanted:
        """Those at these shares of all numbers, from 0, the least, to 1, the largest: as quantiles of stats() are."""
        ends = np.cumsum(cells.counts)
        total = np.array([cells.total])
        ranks = np.concatenate([np.empty(0, np.int64), *(places_at(share, total) for share in shares)])
        found = np.searchsorted(ends, ranks, side="right")
        places = cells.places[found]
        within = ranks - (ends - cells.counts)[found]
        unique = np.unique(places)
        return cls(Cells(cells.shift, unique, np.zeros(len(unique), np.int64)), places, within)

    def found(self, parts: Sequence[Taken]) -> list[int | float]:
        """These numbers, of all numbers in the cells."""
        numbers, counts = joined([part.numbers for part in parts]), None
        if any(part.counts is not None for part in parts):
            counts = np.concatenate([part.each for part in parts])
        own = cells_of(numbers, self.cells)
        given = []
        for place, within in zip(self.places.tolist(), self.within.tolist(), strict=True):
            there = own == place
            hi, lo = numbers.hi[there], None if numbers.lo is None else numbers.lo[there]
            if counts is None and lo is None:
                given.append(_plain(float(np.partition(hi, within)[within]), 0))
                continue
            order = np.argsort(hi) if lo is None else np.lexsort((lo, hi))
            at = order[within if counts is None else np.searchsorted(np.cumsum(counts[there][order]), within, "right")]
            given.append(_plain(float(hi[at]), 0 if lo is None else int(lo[at])))
        return given


def _plain(hi: float, lo: int) -> int | float:
    """The number of a pair; of one that no integer of 64 bits is, the double."""
    return hi if abs(hi) > 2**64 else number_of(hi, lo)


class Taken(NamedTuple):
    """Numbers in some cells. `counts`: how often each is there; None: once."""

    numbers: Numbers
    counts: NDArray[np.int64] | None = None

    @property
    def each(self) -> NDArray[np.int64]:
        return np.ones(len(self.numbers.hi), np.int64) if self.counts is None else self.counts

    def shorter(self) -> Taken:
        """The same; many numbers, each once."""
        hi, lo = self.numbers
        if len(hi) <= _SORTED or lo is not None:
            return self
        hi, counts = np.unique(hi, return_counts=True)
        return Taken(Numbers(hi, None), counts)
