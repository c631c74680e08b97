"""What the numbers of records are like, of one group or of many at once: how many, their extremes, their sums.

Sums are exact, of whole numbers and of others, and rounded once, at the end, so they depend neither on the order of the
records nor on how many logs these are in. What is kept of a group does not grow with its records; the arrays of many
groups are added to by kernels, a part of the log at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.operators.summaries.arithmetic.described import NOTHING, Described, number_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_RESTS: Final = np.empty(0, np.int16)
_ONE_GROUP: Final = np.empty(0, np.int64)
_DIGIT: Final = 32  # bits, as in summary_kernels
_SUMS: Final = 5  # of a row the first digit, as there
_LEAST: Final = -1074  # no bit of a double stands for less than 2 to this power
_BITS: Final = 53  # of a double
_EXACT: Final = 1 << 53  # below which doubles hold all whole numbers


class Numbers(NamedTuple):
    """A number a record, in pairs (jitdb.common.values); NaN where it has none. `lo` is None where all are 0."""

    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None

    @property
    def doubles(self) -> NDArray[np.float64]:
        """hi as kernels take it: side by side."""
        return np.ascontiguousarray(self.hi, np.float64)

    @property
    def rests(self) -> NDArray[np.int16]:
        """lo as kernels take it: empty where all are 0."""
        return _NO_RESTS if self.lo is None else np.ascontiguousarray(self.lo)


def of_kernels(groups: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The group of each number as kernels take them: empty where there is one."""
    return _ONE_GROUP if groups is None else groups


def joined(parts: Sequence[Numbers]) -> Numbers:
    if len(parts) == 1:
        return parts[0]
    rests = [np.zeros(len(part.hi), np.int16) if part.lo is None else part.lo for part in parts]
    has_rests = any(part.lo is not None for part in parts)
    hi = np.concatenate([np.empty(0), *(part.hi for part in parts)])
    return Numbers(hi, np.concatenate(rests) if has_rests else None)


def known(numbers: Numbers) -> Numbers:
    """The numbers without missing ones."""
    hi, lo = numbers
    there = hi == hi
    if there.all():
        return numbers
    return Numbers(hi[there], None if lo is None else lo[there])


class Moments:
    """Of each of some groups the numbers that were added to it: how many, the extremes, and the exact sums of them and
    of their squares, in digits (summary_kernels).
    """

    def __init__(self, groups: int = 0) -> None:
        # As summary_kernels has them, with two digits, which integers need.
        self._rows = np.zeros((groups, _SUMS + 6), np.int64)
        self._below = 0  # digits of sums behind the point
        self._waiting = 0  # numbers since digits were carried
        self.fractions = np.zeros(groups, np.bool_)
        self.has_rests = False
        self.ends[:] = [[math.inf], [-math.inf]]

    @classmethod
    def of_sums(
        cls, groups: int, some: NDArray[np.int64], ends: NDArray[np.int64], sums: Sequence[tuple[int, int, int]]
    ) -> Moments:
        """Of some of the groups, which alone have numbers, all of them whole: their ends, and how many they are, their
        sum, and that of their squares.
        """
        self = cls(groups)
        self.ends[:, some] = ends
        low = (1 << _DIGIT) - 1
        self._rows[some, 0] = [count for count, *_ in sums]
        for place in (0, 1):
            self._sums[some, place] = [total >> _DIGIT if place else total & low for _, total, _ in sums]
        for place in range(4):
            above = low if place < 3 else -1
            self._squares[some, place] = [squares >> _DIGIT * place & above for *_, squares in sums]
        return self

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._rows[:, 0]

    @property
    def ends(self) -> NDArray[np.float64]:
        """Two rows: hi of the least number of each group, and of the largest."""
        return self._rows[:, 1:3].view(np.float64).T

    @property
    def rests(self) -> NDArray[np.int64]:
        """And lo."""
        return self._rows[:, 3:_SUMS].T

    @property
    def _digits(self) -> int:
        return (self._rows.shape[1] - _SUMS) // 3

    @property
    def _sums(self) -> NDArray[np.int64]:
        return self._rows[:, _SUMS : _SUMS + self._digits]

    @property
    def _squares(self) -> NDArray[np.int64]:
        return self._rows[:, _SUMS + self._digits :]

    def grow(self, groups: int) -> None:
        """Make it so many groups."""
        if groups > len(self):
            more = Moments(groups - len(self))
            if (more._below, more._digits) != (self._below, self._digits):
                more._widen(self._below, self._digits)
            if len(self):
                more._rows = np.vstack([self._rows, more._rows])
            self._rows, self.fractions = more._rows, np.append(self.fractions, more.fractions)

    def add(self, numbers: Numbers, groups: NDArray[np.int64] | None = None) -> None:
        """Each number to its group, none where that is below 0; all to the first without groups."""
        from jitdb.operators.summaries.arithmetic import summary_kernels as kernels

        hi, own = numbers.doubles, of_kernels(groups)
        self.has_rests |= numbers.lo is not None
        self._waiting += len(hi)
        if self._waiting > kernels.WAITING:
            self._carry()
            self._waiting = len(hi)
        done = 0
        while done < len(hi):
            done = kernels.add_numbers(hi, numbers.rests, own, done, self._below, self._rows, self.fractions)
            if done < len(hi):
                self._make_room(float(hi[done]))

    def _make_room(self, number: float) -> None:
        """Have digits for it."""
        if number.is_integer() and abs(number) < _EXACT:
            self._widen(self._below, max(self._digits, self._below + 2))
            return
        lowest = max(math.frexp(number)[1] - _BITS, _LEAST)  # the power of two that its last bit stands for
        below = max(self._below, -(lowest // _DIGIT))
        above = max(self._digits - self._below, (lowest + _DIGIT * below) // _DIGIT + 3 - below)
        self._widen(below, below + above)

    def _widen(self, below: int, digits: int) -> None:
        left = below - self._below
        right = digits - self._digits - left
        sums, squares = ((0, 0), (left, right)), ((0, 0), (2 * left, 2 * right))
        self._rows = np.hstack([self._rows[:, :_SUMS], np.pad(self._sums, sums), np.pad(self._squares, squares)])
        self._below = below

    def _carry(self) -> None:
        for digits in (self._sums, self._squares):
            over = digits[:, :-1] >> _DIGIT
            digits[:, :-1] -= over << _DIGIT
            digits[:, 1:] += over

    def merge(self, other: Moments, to: NDArray[np.int64]) -> None:
        """Add what the groups of another one have, each to one of these."""
        below = max(self._below, other._below)
        above = max(each._digits - each._below for each in (self, other))
        for each in (self, other):
            each._widen(below, below + above)
            each._carry()
        self.has_rests |= other.has_rests
        np.add.at(self.counts, to, other.counts)
        np.logical_or.at(self.fractions, to, other.fractions)
        np.add.at(self._rows[:, _SUMS:], to, other._rows[:, _SUMS:])
        own, is_first = np.append(np.arange(len(self)), to), np.ones(len(self) + len(to), np.bool_)
        for end, sign in ((0, 1), (1, -1)):
            hi = np.append(self.ends[end], other.ends[end])
            rests = np.append(self.rests[end], other.rests[end])
            order = np.lexsort((sign * rests, sign * hi, own))
            is_first[1:] = np.diff(own[order]) != 0
            self.ends[end], self.rests[end] = hi[order[is_first]], rests[order[is_first]]

    def weights(self, name: str) -> NDArray[np.float64] | Sequence[Any]:
        """One of the parts of Described for each group: NaN, or None, where it has no number."""
        found: NDArray[np.float64] | None = None
        if name == "count":
            return self.counts.astype(np.float64)
        if name in ("min", "max") and not self.has_rests:
            found = self.ends[("min", "max").index(name)]
        elif name == "span" and not self.has_rests:
            with np.errstate(invalid="ignore"):  # of infinities, and of none
                spans = self.ends[1] - self.ends[0]
            found = None if (spans[np.isfinite(spans)] >= _EXACT).any() else spans
        elif name in ("sum", "mean") and not self._below and self._are_small():
            found = (self._sums << (_DIGIT * np.arange(self._sums.shape[1]))).sum(axis=1).astype(np.float64)
            found = found if name == "sum" else found / np.maximum(self.counts, 1)
        if found is not None:
            return np.where(self.counts, found, np.nan)
        return [getattr(each, name) for each in self.described(0, len(self))]

    def _are_small(self) -> bool:
        """Whether doubles are exact for all sums."""
        with np.errstate(over="ignore"):
            most = np.abs(np.where(self.counts, self.ends, 0.0)) * self.counts
        return bool((most < _EXACT).all())

    def described(self, begin: int, end: int) -> list[Described]:
        """What the numbers of these groups are like."""
        some = slice(begin, end)
        columns = (self.counts[some], *self.ends[:, some], *self.rests[:, some], self.fractions[some])
        digits = (self._sums[some], self._squares[some])
        rows = zip(*(column.tolist() for column in (*columns, *digits)), strict=True)
        return [self._described(*row) for row in rows]

    def _described(
        self, count: int, low: float, high: float, low_rest: int, high_rest: int, has_fractions: bool,
        sums: list[int], squares: list[int],
    ) -> Described:  # fmt: skip
        if not count:
            return NOTHING
        least, largest = number_of(low, low_rest), number_of(high, high_rest)
        if not (math.isfinite(low) and math.isfinite(high)):
            total = low + high
            return Described(count, least, largest, total, total, math.nan if count > 1 else None)
        exact = _integer(sums), _integer(squares), _DIGIT * self._below
        return Described.of(count, least, largest, exact, not has_fractions)


def _integer(digits: Sequence[int]) -> int:
    whole = 0
    for digit in reversed(digits):
        whole = (whole << _DIGIT) + digit
    return whole
