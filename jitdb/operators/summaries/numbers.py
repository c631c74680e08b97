"""What the numbers of records are like as a whole, of one group or of many at once.

Sums are exact, and rounded once, at the end, so they depend neither on the order of the records nor on how many logs
these are in. Of whole numbers of which a double holds all sums, many groups are added up without a loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXACT: Final = 1 << 53  # below which doubles add whole numbers exactly, in any order
_LARGE: Final = 64  # numbers of a group, from which on it is sorted by itself
_SMALL: Final = 1 << 20  # of a share's denominator: times a count it fits 64 bits


class Numbers(NamedTuple):
    """A number a record, in pairs (jitdb.common.values); NaN where it has none. `lo` is None where all are 0."""

    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None


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


def parted(numbers: Numbers, places: NDArray[np.int64], count: int) -> list[Numbers]:
    """The numbers of the records of each place below `count`, without those where there is none."""
    there = np.flatnonzero((numbers.hi == numbers.hi) & (places < count))
    places = places[there].astype(np.uint16 if count < 1 << 16 else np.int64)  # 16 bits are sorted by radix
    order = np.argsort(places, kind="stable")
    hi, lo = numbers.hi[there][order], None if numbers.lo is None else numbers.lo[there][order]
    bounds = np.searchsorted(places[order], np.arange(count + 1, dtype=np.int64)).tolist()
    return [Numbers(hi[begin:end], None if lo is None else lo[begin:end]) for begin, end in pairwise(bounds)]


class Described(NamedTuple):
    """What numbers are like: see stats.Stats."""

    count: int  # type: ignore[assignment]
    min: int | float | None = None
    max: int | float | None = None
    sum: int | float | None = None
    mean: float | None = None
    stddev: float | None = None
    quantiles: tuple[tuple[float, int | float], ...] = ()


def described(numbers: Numbers, shares: Sequence[float]) -> Described:
    """Of numbers that are all there."""
    hi = numbers.hi
    count = len(hi)
    if not count:
        return Described(0)
    places = [max(0, math.ceil(as_written(share) * count) - 1) for share in shares]
    first, last, *quantiles = _smallest(numbers, [0, count - 1, *places])
    pairs = tuple(zip(map(float, shares), quantiles, strict=True))
    if not (math.isfinite(first) and math.isfinite(last)):
        total = float(first) + float(last)
        return Described(count, first, last, total, total, math.nan if count > 1 else None, pairs)
    exact = exact_sum(numbers)
    is_whole = exact.denominator == 1 and bool((hi == np.floor(hi)).all())
    mean = exact / count
    return Described(
        count, first, last, int(exact) if is_whole else _double(exact), _double(mean), _deviation(numbers, mean), pairs
    )


@lru_cache(maxsize=64)
def as_written(share: float) -> Fraction:
    """The share as it is written: 0.1 is a tenth, not the nearest double, so of ten numbers it is the first."""
    return Fraction(repr(share))


def _smallest(numbers: Numbers, places: Sequence[int]) -> list[int | float]:
    """The numbers at these places of all in order."""
    hi, lo = numbers
    if lo is None:
        ordered = np.sort(hi)  # which vector instructions do faster than partition() finds several places
        return [number_of(float(ordered[place]), 0) for place in places]
    order = np.lexsort((lo, hi))
    return [number_of(float(hi[order[place]]), int(lo[order[place]])) for place in places]


def number_of(hi: float, lo: int) -> int | float:
    """The number of a pair: an int where it is whole."""
    return int(hi) + lo if lo or hi.is_integer() else hi


def exact_sum(numbers: Numbers) -> Fraction:
    """That of numbers which are all finite."""
    from jitdb.operators.summaries import summary_kernels as kernels

    hi, lo = numbers
    total = Fraction(0 if lo is None else int(lo.sum(dtype=np.int64)))
    high, low = np.zeros(kernels.EXPONENTS, np.int64), np.zeros(kernels.EXPONENTS, np.int64)
    kernels.add_by_exponents(np.ascontiguousarray(hi, np.float64).view(np.int64), high, low)
    there = np.flatnonzero(high | low)
    if not len(there):
        return total
    least, whole = int(there[0]), 0
    for exponent, up, down in zip(there.tolist(), high[there].tolist(), low[there].tolist(), strict=True):
        whole += ((up << kernels.HALF) + down) << (exponent - least)
    return total + whole * Fraction(2) ** (least - kernels.LEAST)


def _double(number: Fraction) -> float:
    """The nearest one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _deviation(numbers: Numbers, mean: Fraction) -> float | None:
    """Of a sample: distances and squares in doubles, their sums exact, so that the order of records does not
    matter. The error of the rounded mean is subtracted again.
    """
    hi, lo = numbers
    if len(hi) < 2:
        return None
    middle = _double(mean)
    with np.errstate(over="ignore"):
        apart = hi - middle if lo is None else (hi - middle) + lo
        squares = apart * apart
    if not np.isfinite(squares).all():
        return math.inf
    spread = exact_sum(Numbers(squares, None)) - exact_sum(Numbers(apart, None)) ** 2 / len(hi)
    return math.sqrt(_double(max(spread, Fraction(0)) / (len(hi) - 1)))


def described_each(groups: Sequence[Numbers], shares: Sequence[float]) -> Iterator[Described]:
    """As described(), of each group."""
    found = iter(_together([numbers.hi for numbers in groups if _may_be_small(numbers)], shares))
    for numbers in groups:
        one = next(found) if _may_be_small(numbers) else None
        yield described(numbers, shares) if one is None else one


def _may_be_small(numbers: Numbers) -> bool:
    return numbers.lo is None and len(numbers.hi) > 0


def _together(groups: Sequence[NDArray[np.float64]], shares: Sequence[float]) -> list[Described | None]:
    """None of a group whose sums may not be exact."""
    if not groups or any(as_written(share).denominator > _SMALL for share in shares):
        return [None] * len(groups)
    counts = np.fromiter(map(len, groups), np.int64, len(groups))
    starts = np.cumsum(counts) - counts
    if counts.sum() > _LARGE * len(groups):  # vector instructions sort one, not pairs
        ordered = np.concatenate([np.sort(group) for group in groups])
    else:
        numbers = np.concatenate(groups)
        ordered = numbers[np.lexsort((numbers, np.repeat(np.arange(len(groups)), counts)))]
    first, last = ordered[starts], ordered[starts + counts - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.maximum(np.abs(first), np.abs(last))
        is_exact = (sizes * sizes * counts < _EXACT) & np.logical_and.reduceat(ordered == np.floor(ordered), starts)
        sums, squares = np.add.reduceat(ordered, starts), np.add.reduceat(ordered * ordered, starts)
    quantiles = [ordered[starts + _places(share, counts)] for share in shares]
    rows = zip(*(each.tolist() for each in (is_exact, counts, first, last, sums, squares, *quantiles)), strict=True)
    return [_group(shares, *map(int, row)) if exact else None for exact, *row in rows]


def _group(
    shares: Sequence[float], count: int, low: int, high: int, total: int, squares: int, *values: int
) -> Described:
    pairs = tuple(zip(map(float, shares), values, strict=True))
    return Described(count, low, high, total, total / count, _exact_deviation(count, total, squares), pairs)


def _places(share: float, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place, in order, of the quantile of this share in each group."""
    exact = as_written(share)
    places: NDArray[np.int64] = np.maximum(-(-exact.numerator * counts // exact.denominator) - 1, 0)
    return places


def _exact_deviation(count: int, total: int, squares: int) -> float | None:
    """Of a sample, by exact sums."""
    return math.sqrt((squares * count - total * total) / (count * (count - 1))) if count > 1 else None
