"""What numbers are like, from their exact sums, and where quantiles stand among them: in Python's integers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple


class Described(NamedTuple):
    """What numbers are like: see stats.Stats."""

    count: int  # type: ignore[assignment]
    min: int | float | None = None
    max: int | float | None = None
    sum: int | float | None = None
    mean: float | None = None
    stddev: float | None = None

    @property
    def span(self) -> int | float | None:
        """From the least number to the largest."""
        return None if self.min is None or self.max is None else self.max - self.min

    @classmethod
    def of(cls, count: int, low: int | float, high: int | float, sums: tuple[int, int, int], whole: bool) -> Described:
        """So many finite numbers, at least one.

        low, high: the least and the largest
        sums:      of them and of their squares, each times two to a power and to twice that, which is the third
        whole:     whether all of them are
        """
        first, squares, point = sums
        total = first >> point if whole else _quotient(first, 1 << point)
        stddev = None
        if count > 1:
            spread = squares * count - first * first  # exact, so at least 0
            stddev = math.sqrt(_quotient(spread, (count * (count - 1)) << (2 * point)))
        return cls(count, low, high, total, _quotient(first, count << point), stddev)

    @classmethod
    def of_counts(cls, counts: Mapping[int | float, int]) -> Described:
        """How often each finite number is there."""
        if not counts:
            return NOTHING
        ratios = [(*number.as_integer_ratio(), count) for number, count in counts.items()]
        unit = max(divisor for _, divisor, _ in ratios)  # all of them are powers of two
        scaled = [(number * (unit // divisor), count) for number, divisor, count in ratios]
        first = sum(number * count for number, count in scaled)
        squares = sum(number * number * count for number, count in scaled)
        exact = first, squares, unit.bit_length() - 1
        return cls.of(sum(counts.values()), min(counts), max(counts), exact, unit == 1)


NOTHING: Final = Described(0)


def number_of(hi: float, lo: int) -> int | float:
    """The number of a pair: an int where it is whole."""
    return int(hi) + lo if lo or hi.is_integer() else hi


def _quotient(one: int, other: int) -> float:
    """The nearest double."""
    try:
        return one / other
    except OverflowError:
        return math.inf if one > 0 else -math.inf


# --- quantiles -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def as_written(share: float) -> tuple[int, int]:
    """The share as it is written, as a fraction: 0.1 is a tenth, not the nearest double, so of ten numbers it is the
    first.

    >>> as_written(0.25), as_written(1e-05), as_written(1.0)
    ((1, 4), (1, 100000), (1, 1))
    """
    digits, _, power = repr(share).partition("e")
    whole, _, rest = digits.partition(".")
    numerator, denominator = int(whole + rest), 10 ** (len(rest) - int(power or 0))
    common = math.gcd(numerator, denominator)
    return numerator // common, denominator // common


def place_at(share: float, count: int) -> int:
    """The place, in order, of the quantile of this share among so many numbers."""
    numerator, denominator = as_written(share)
    return max(-(-numerator * count // denominator) - 1, 0)


def quantiles_of(counts: Mapping[int | float, int], shares: Sequence[float]) -> list[int | float]:
    """Of numbers that are there so often."""
    from bisect import bisect_right

    numbers = sorted(counts)
    ends = list(accumulate(counts[number] for number in numbers))
    return [numbers[bisect_right(ends, place_at(share, ends[-1]))] for share in shares] if numbers else []
