"""The numbers of records that were chosen, from a column, and what they are like as a whole.

Sums are exact, and rounded once where they are told: so they do not depend on the order of the records, or on how many
logs these are in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jitdb.indexes.kinds.numbers import load_numbers
from jitdb.indexes.kinds.roaring import bitmap_of_range, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.segment import Segment


class Numbers(NamedTuple):
    """A number a record, in pairs (jitdb.common.values); NaN where it has none. `lo` is None where all are 0."""

    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None


def chosen_numbers(segments: Sequence[Segment], matches: BitMap) -> Iterator[Numbers]:
    """Those of these records, ascending, segment by segment. Raises IndexDamaged."""
    for segment in segments:
        there = matches & bitmap_of_range(segment.first_seq, segment.end_seq)
        if not there:
            continue
        hi, lo = load_numbers(segment)
        if len(there) != segment.count:
            places = members_of(there) - np.uint32(segment.first_seq)
            hi, lo = hi[places], None if lo is None else lo[places]
        yield Numbers(hi, lo)


def joined(parts: Sequence[Numbers]) -> Numbers:
    if len(parts) == 1:
        return parts[0]
    rests = [np.zeros(len(part.hi), np.int16) if part.lo is None else part.lo for part in parts]
    has_rests = any(part.lo is not None for part in parts)
    hi = np.concatenate([np.empty(0), *(part.hi for part in parts)])
    return Numbers(hi, np.concatenate(rests) if has_rests else None)


def known(numbers: Numbers) -> Numbers:
    """Without the places where there is none."""
    hi, lo = numbers
    there = hi == hi
    if there.all():
        return numbers
    return Numbers(hi[there], None if lo is None else lo[there])


class Described(NamedTuple):
    """What numbers are like: see operators.summaries.stats.Stats."""

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
        total = float(first) + float(last) if math.isinf(first) and math.isinf(last) else math.nan
        total = float(last) if math.isinf(last) and not math.isinf(first) else total
        total = float(first) if math.isinf(first) and not math.isinf(last) else total
        return Described(count, first, last, total, total, math.nan if count > 1 else None, pairs)
    exact = exact_sum(numbers)
    is_whole = exact.denominator == 1 and bool((hi == np.floor(hi)).all())
    mean = exact / count
    return Described(
        count, first, last, int(exact) if is_whole else _double(exact), _double(mean), _deviation(numbers, mean), pairs
    )


@lru_cache(maxsize=64)
def as_written(share: float) -> Fraction:
    """A tenth is a tenth, not the double nearest to it: of ten numbers it is the first."""
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
    from jitdb.engine.counting import sum_kernels as kernels

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
    """Of a sample: distances and squares in doubles, their sums exact, so that the order of records is nothing to it.
    What the rounded mean is beside the true one is taken off again.
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
