"""What numbers are like, of many groups at once: of whole numbers, of which a double holds all sums, without a loop."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.engine.counting.numbers import Described, Numbers, as_written, described

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXACT: Final = 1 << 53  # below which doubles add whole numbers exactly, in any order
_LARGE: Final = 64  # numbers of a group, from which on it is sorted by itself
_SMALL: Final = 1 << 20  # of a share's denominator: times a count it fits 64 bits


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
    return [_of(shares, *map(int, row)) if exact else None for exact, *row in rows]


def _of(shares: Sequence[float], count: int, low: int, high: int, total: int, squares: int, *values: int) -> Described:
    pairs = tuple(zip(map(float, shares), values, strict=True))
    return Described(count, low, high, total, total / count, _deviation(count, total, squares), pairs)


def _places(share: float, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which number in order is the smallest that so many do not exceed."""
    exact = as_written(share)
    places: NDArray[np.int64] = np.maximum(-(-exact.numerator * counts // exact.denominator) - 1, 0)
    return places


def _deviation(count: int, total: int, squares: int) -> float | None:
    """Of a sample, by exact sums."""
    return math.sqrt((squares * count - total * total) / (count * (count - 1))) if count > 1 else None
