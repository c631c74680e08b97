"""Columns: a number per record, for ranges and order.

Segment kind NUMBERS (docs/format-index.md): the numbers, packed where they can be (packing.py), else as pairs
(jitdb.common.values explains them), and the extremes of each zone of 4,096 records.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from jitdb.common.values import split_number
from jitdb.indexes.kinds import packing
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.casting import smallest_numbers
from jitdb.indexes.kinds.columns import (
    ALL_WHOLE,
    HAS_RESTS,
    NumbersShape,
    head_of,
    number_range,
    packing_of,
    seen_by,
)
from jitdb.indexes.kinds.content import Content
from jitdb.indexes.kinds.offsets import bytes_of
from jitdb.indexes.kinds.roaring import differing
from jitdb.indexes.segment import NUMBERS, SPAN, ZONE, Run, Segment, make_segment

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.kinds.content import Places

Comparison = Literal["gt", "gte", "lt", "lte"]
_RELATIONS: Final[dict[Comparison, Callable[[Any, Any], Any]]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip
_NO_REST: Final = 1025  # a rest is 1,024 at most: half the distance of the doubles below 2**64
_MOST_REST: Final = 2**15 - 1  # larger than any of a number, or of a time


class Extent(NamedTuple):
    """The extremes of a column's numbers: of all, in its head, and of each zone."""

    low: float
    high: float
    rests: bool  # some lo is not 0
    whole: bool
    zones: NDArray[np.float64]  # two rows: smallest hi, -inf where a record has none; largest, -inf where none has


def extent_of(hi: NDArray[np.float64], lo: NDArray[np.int16] | None) -> Extent:
    """That of a column, by looking."""
    from jitdb.indexes.kinds.kernels.numbers import measure_zones

    zones = np.empty((2, -(-len(hi) // ZONE)))
    return Extent(*measure_zones(hi, np.empty(0, np.int16) if lo is None else lo, ZONE, *zones), zones)


def load_numbers(segment: Segment, *, keep: bool = True) -> tuple[NDArray[np.float64], NDArray[np.int16] | None]:
    """hi and lo of each record; lo is None when all are 0. `keep`: as for blob(). Raises IndexDamaged."""
    has_rests, how = bool(number_range(segment)[2] & HAS_RESTS), packing_of(segment)
    if how == packing.NONE:
        hi = np.frombuffer(segment.blob(0, keep=keep), "<f8")
        return hi, np.frombuffer(segment.blob(1, keep=keep), "<i2") if has_rests else None
    size = segment.count * (10 if has_rests else 8)
    unpack = partial(how.unpacked, count=segment.count, has_rests=has_rests)
    return segment.decoded(0, size, unpack, keep=keep)


def load_extremes(segment: Segment) -> NDArray[np.float64]:
    """Bounds of hi in each zone, as Extent has them, without reading the column. Raises IndexDamaged."""
    return np.frombuffer(segment.blob(len(segment.table) - 1), "<f8").reshape(2, -1)


def is_range_true(segment: Segment) -> bool:
    """Whether its numbers are within the extremes that it has for all and for each zone, which answer questions.

    Raises IndexDamaged.
    """
    hi, lo = load_numbers(segment)
    (low, high, flags), found = number_range(segment), extent_of(hi, lo)
    said, zones = load_extremes(segment), found.zones
    are_bounds = bool((said[0] <= zones[0]).all() and (zones[1] <= said[1]).all())
    return are_bounds and low <= found.low and found.high <= high and (found.whole or not flags & ALL_WHOLE)


def compare(segment: Segment, relation: Comparison, value: int | float) -> NDArray[np.bool_] | None:
    """Which records stand in this relation to the number: a mask, or None where no record of the segment does.

    Exact for integers of any size: only where `hi` is equal do the rests decide.
    """
    bound, rest = split_number(value)
    low, high, _ = number_range(segment)
    above = relation in ("gt", "gte")
    if low > high or (high < bound if above else low > bound):
        return None
    if (low > bound if above else high < bound) and not np.isneginf(load_extremes(segment)[0]).any():
        return np.ones(segment.count, np.bool_)  # each record has a number
    hi, lo = load_numbers(segment)
    holds = _RELATIONS[relation]
    if lo is None and rest == 0:
        return np.asarray(holds(hi, bound))
    # A rest larger than any in a column compares as the first one past them does, and fits numpy's integers.
    rest = max(-_NO_REST, min(rest, _NO_REST))
    tied = holds(np.int16(0) if lo is None else lo, np.int16(rest))
    return np.asarray((hi > bound if above else hi < bound) | ((hi == bound) & tied))


class Numbers(NumbersShape, Content):
    """hi and lo (None: all 0) of each record. `seen`: bits of seen.py; some may be of records that were beside these,
    or that were deleted since.
    """

    def __init__(self, hi: NDArray[np.float64], lo: NDArray[np.int16] | None, first: int, seen: int = 0) -> None:
        self.hi, self.lo = hi, lo
        self.first, self.count = first, len(hi)
        self._seen = seen

    @classmethod
    def of(cls, segment: Segment) -> Numbers:
        return cls(*load_numbers(segment), segment.first_in_span, seen_by(segment))

    def take(self, places: Places) -> Numbers:
        lo = None if self.lo is None else places.column(self.lo)
        return Numbers(places.column(self.hi), lo, places.first, self._seen)

    @classmethod
    def concat(cls, parts: Sequence[Numbers]) -> Numbers:
        hi = np.concatenate([part.hi for part in parts])
        lo = None
        if any(part.lo is not None for part in parts):
            lo = np.concatenate([part.rests for part in parts])
        return cls(hi, lo, parts[0].first, reduce(operator.or_, (part._seen for part in parts)))

    @property
    def rests(self) -> NDArray[np.int16]:
        """lo, also where all are 0."""
        return np.zeros(self.count, np.int16) if self.lo is None else self.lo

    def segment(self, run: Run) -> Segment:
        extent = extent_of(self.hi, self.lo)
        flags = (HAS_RESTS if extent.rests else 0) | (ALL_WHOLE if extent.whole else 0) | self._seen
        how, codes = packing.packed(self.hi, self.rests if extent.rests else None, extent.whole)
        blobs = [bytes_of(codes if how != packing.NONE else self.hi.astype("<f8", copy=False))]
        if extent.rests and how == packing.NONE:
            blobs.append(bytes_of(self.rests.astype("<i2", copy=False)))
        blobs.append(bytes_of(extent.zones.astype("<f8", copy=False).ravel()))
        return make_segment(NUMBERS, run, head_of(extent.low, extent.high, flags, how), blobs)

    def differing(self, other: Numbers) -> BitMap:
        return differing(self.hi, other.hi) | differing(self.rests, other.rests)


class NumbersBuilder(Builder):
    """The smallest number that a record holds in any of the fields; with a `unit`, the earliest time."""

    def __init__(self, rows: tuple[int, ...], unit: str | None = None) -> None:
        self._rows = rows
        self._unit = unit

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        hi = np.empty(len(batch.records), np.float64)
        lo = np.empty(len(batch.records), np.int16)
        fields = [batch.fields[row] for row in self._rows]
        seen = smallest_numbers(fields, hi, lo, self._unit)
        return Piece(len(batch.records), (hi, lo if lo.any() else None), seen=seen)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        parts = [Numbers(piece.arrays[0], piece.arrays[1], seq % SPAN, piece.seen) for seq, piece in pieces]
        return Numbers.concat(parts).segment(run)


class ExtremesBuilder(NumbersBuilder):
    """The smallest, or the largest, of the numbers or times that a record owns."""

    def __init__(self, values: ValueSource, largest: bool, unit: str | None = None) -> None:
        super().__init__((), unit)
        self._values = values
        self._extreme = (np.fmax, np.maximum, -_MOST_REST) if largest else (np.fmin, np.minimum, _MOST_REST)

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        assert owners is not None
        all_hi, all_lo = np.empty(len(owners), np.float64), np.empty(len(owners), np.int16)
        seen = smallest_numbers([values], all_hi, all_lo, self._unit)
        hi = np.full(len(batch.records), np.nan)
        lo = np.zeros(len(batch.records), np.int16)
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        if len(begins):
            of_numbers, of_rests, no_rest = self._extreme
            firsts = owners[begins]
            hi[firsts] = of_numbers.reduceat(all_hi, begins)
            ties = np.where(all_hi == hi[owners], all_lo, np.int16(no_rest))  # only of those that are equal rests count
            lo[firsts] = np.where(np.isnan(hi[firsts]), 0, of_rests.reduceat(ties, begins))
        return Piece(len(batch.records), (hi, lo if lo.any() else None), seen=seen)
