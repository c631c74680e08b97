"""Bins that are numbered through: those of a round width, for numbers, and steps of a calendar, for times.

A bin has the same number in every log, so the counts of many logs add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from jitdb.operators.summaries.arithmetic.calendar import BEGIN, END, Extent, check, spans
from jitdb.operators.summaries.arithmetic.numbers import Numbers
from jitdb.operators.summaries.summary import LACKING, OTHERS

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray

    from jitdb.operators.summaries.arithmetic.calendar import Step

_DAY: Final = 86_400 * 10**9
_NEAR: Final = 4000  # days, each of which a zone is asked for its offset: a few milliseconds
_FAR: Final = 9.2e18  # nanoseconds: beyond, in the years 1678 and 2261, times are doubles
NOWHERE: Final = np.iinfo(np.int64).min  # the step of what has no time


class Series(NamedTuple):
    """Counts of bins from the one with this number on: int64 [bins, columns]."""

    first: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, bins: NDArray[np.int64], columns: NDArray[np.int64] | None, width: int) -> Self | None:
        """Of a bin, and a column, for each record; None of none. A column below 0 counts from the last one. Raises
        QueryError where they are too far apart.
        """
        if not len(bins):
            return None
        first, last = int(bins.min()), int(bins.max())
        check(first, last)
        places = bins - first
        if width == 1 or columns is None:
            return cls(first, np.bincount(places)[:, np.newaxis])
        counts = np.bincount(places * width + columns % width, minlength=(last - first + 1) * width)
        return cls(first, counts.reshape(-1, width))

    @property
    def last(self) -> int:
        return self.first + len(self.counts) - 1


def added(parts: Sequence[Series | None]) -> Series | None:
    """All counts, from the first bin to the last."""
    there = [part for part in parts if part is not None]
    if len(there) < 2:
        return there[0] if there else None
    first, last = min(part.first for part in there), max(part.last for part in there)
    check(first, last)
    counts = np.zeros((last - first + 1, there[0].counts.shape[1]), np.int64)
    for part in there:
        counts[part.first - first : part.last - first + 1] += part.counts
    return Series(first, counts)


class Tally(NamedTuple):
    """What was counted of some records.

    missing: how many of the total are in no bin, nor below or above all
    """

    series: Series | None
    total: int
    missing: int
    below: int = 0
    above: int = 0

    @classmethod
    def of(cls, parts: Iterable[tuple[Series | None, int, int]], total: int) -> Self:
        """The sum of parts, each with its bins and the numbers of records below and above them; of `total` records."""
        held = list(parts)
        series = added([part for part, _, _ in held])
        below, above = sum(part[1] for part in held), sum(part[2] for part in held)
        return cls(
            series, total, total - below - above - (0 if series is None else int(series.counts.sum())), below, above
        )

    @classmethod
    def added(cls, tallies: Sequence[Self]) -> Self:
        sums = (sum(numbers) for numbers in zip(*(each[1:] for each in tallies), strict=True))
        return cls(added([each.series for each in tallies]), *sums) if tallies else cls(None, 0, 0)


def by_clock(
    times: Numbers, step: Step, columns: NDArray[np.int64] | None, width: int, zone: tzinfo | None
) -> Series | None:
    """As by_steps, by the clocks of a zone: each span between two changes of its offset is counted by itself."""
    if zone is None:
        return by_steps(times, step, columns, width)
    return added(
        [
            by_steps(some, shifted, None if columns is None else columns[inside], width)
            for inside, some, shifted in _by_offset(times, step, zone)
        ]
    )


def _by_offset(times: Numbers, step: Step, zone: tzinfo) -> Iterator[tuple[NDArray[np.bool_], Numbers, Step]]:
    """Which of the times are in each span, these, and the step by its clocks."""
    extent = calendar_extent(times)
    if extent.low > extent.high:
        return
    hi, lo = times
    rest = 0 if lo is None else lo
    for begin, end, offset in spans(zone, _days(hi, extent)):
        inside = ((hi > begin) | ((hi == begin) & (rest >= 0))) & ((hi < end) | ((hi == end) & (rest < 0)))
        some = Numbers(hi[inside], None if lo is None else lo[inside])
        yield inside, some, step.by_clock(offset)


def step_of_each(times: Numbers, step: Step, zone: tzinfo | None) -> NDArray[np.int64]:
    """The number of the step of each time, by the clocks of a zone; NOWHERE of what is outside of the calendar."""
    hi, lo = times
    found = np.full(len(hi), NOWHERE)
    if zone is not None:
        for inside, some, shifted in _by_offset(times, step, zone):
            found[inside] = step_of_each(some, shifted, None)
        return found
    size = _DAY if step.months else step.nanoseconds
    near = np.flatnonzero(np.abs(hi) < _FAR)
    whole = hi[near].astype(np.int64) + step.shift
    found[near] = (whole if lo is None else whole + lo[near]) // size
    far = np.flatnonzero((np.abs(hi) >= _FAR) & (hi >= BEGIN) & (hi < END))
    found[far] = np.floor((hi[far] + step.shift) / size).astype(np.int64)
    if step.months:
        there = found != NOWHERE
        found[there] = _months(found[there], step)
    return found


def shared_steps(
    low: NDArray[np.float64], high: NDArray[np.float64], step: Step, zone: tzinfo | None
) -> NDArray[np.int64]:
    """The number of the step that all times between two of each pair are in; NOWHERE where they may be in several."""
    first, last = (step_of_each(Numbers(ends, None), step, zone) for ends in (low, high))
    shared = first == last
    if zone is not None:  # clocks that go back show a step twice, and others between
        with np.errstate(invalid="ignore"):  # of zones without a time
            shared &= high - low < (_DAY if step.months else step.nanoseconds)
    return np.where(shared, first, NOWHERE)


def by_step_and_place(
    steps: NDArray[np.int64], places: NDArray[np.int64], many: int
) -> tuple[NDArray[np.int64], list[int], list[int]]:
    """The groups of records that have a step, and a place from 0 to below `many`: the number of each record's, and the
    step and the place of each group. Records of place OTHERS have that as number, the rest LACKING.

    Raises QueryError for steps that are too far apart.
    """
    has_step = steps != NOWHERE
    numbers = np.where(has_step & (places == OTHERS), np.int64(OTHERS), np.int64(LACKING))
    there = np.flatnonzero(has_step & (places >= 0))
    if not len(there):
        return numbers, [], []
    own = steps[there]
    first, last = int(own.min()), int(own.max())
    check(first, last)
    own = (own - first) * many + places[there]
    size = (last - first + 1) * many
    if size > max(1 << 16, 4 * len(own)):
        groups, own = np.unique(own, return_inverse=True)
    else:
        is_there = np.zeros(size, np.bool_)
        is_there[own] = True
        groups, own = np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[own]
    numbers[there] = own
    return numbers, (groups // many + first).tolist(), (groups % many).tolist()


def _days(times: NDArray[np.float64], extent: Extent) -> Iterable[int]:
    """The days of these times; where they are not far apart, those between, too, which costs less than a look."""
    first, last = (int(time // _DAY) for time in extent[:2])
    if last - first < _NEAR:
        return range(first, last + 1)
    days: list[int] = np.unique(times[(times >= BEGIN) & (times < END)] // _DAY).astype(np.int64).tolist()
    return days


def by_steps(times: Numbers, step: Step, columns: NDArray[np.int64] | None, width: int) -> Series | None:
    """Count times (nanoseconds since 1970) by step, and by column; None where there are none.

    A column below 0 counts from the last one. Times outside of the years 1 to 9999 are left out. Raises QueryError
    where they are too far apart.
    """
    from jitdb.operators.summaries.arithmetic import summary_kernels as kernels

    hi, lo = times
    low, high = (float(end.reduce(hi, initial=math.nan)) for end in (np.fmin, np.fmax))
    if low != low:
        return None
    size = _DAY if step.months else step.nanoseconds  # months are made of days
    if low <= -_FAR or high >= _FAR:
        near = np.abs(hi) < _FAR
        some = Numbers(hi[near], None if lo is None else lo[near])
        far = ~near & (hi >= BEGIN) & (hi < END)
        steps = step_of_each(Numbers(hi[far], None), step, None)
        of_near, of_far = (None, None) if columns is None else (columns[near], columns[far])
        return added([by_steps(some, step, of_near, width), Series.of(steps, of_far, width)])
    first, last = ((int(end) + step.shift) // size + by for end, by in ((low, -1), (high, 1)))  # rests reach beyond
    if not step.months:
        check(first + 2, last - 2)
    flat = np.zeros((last - first + 1) * width, np.int64)
    rests, places = np.empty(0, np.int16) if lo is None else lo, np.empty(0, np.int64) if columns is None else columns
    kernels.count_steps(hi, rests, places, width, size, step.shift, first, flat)
    counts = flat.reshape(-1, width)
    if step.months:
        months = _months(np.arange(first, last + 1), step)
        begins = np.flatnonzero(np.diff(months, prepend=months[0] - 1))
        first, counts = int(months[0]), np.add.reduceat(counts, begins)
    filled = np.flatnonzero(counts.any(axis=1))
    check(first + int(filled[0]), first + int(filled[-1]))
    return Series(first + int(filled[0]), counts[filled[0] : filled[-1] + 1])


def _months(days: NDArray[np.int64], step: Step) -> NDArray[np.int64]:
    return np.asarray(days.astype("M8[D]").astype("M8[M]").astype(np.int64) // step.months)


def calendar_extent(times: Numbers) -> Extent:
    """The extent of the times in the years 1 to 9999."""
    some = times.hi[(times.hi >= BEGIN) & (times.hi < END)]
    return Extent(float(some.min()), float(some.max())) if len(some) else Extent()


class Width(NamedTuple):
    """A round number: `digit` (1, 2 or 5) times ten to the `power`."""

    digit: int
    power: int

    def edge(self, number: int) -> float:
        """Where the bin with this number begins: the nearest double."""
        if self.power >= 0:
            return float(number * self.digit * 10**self.power)
        return float(number * self.digit / 10**-self.power)

    def number(self, value: float) -> int:
        """In which bin a number is."""
        found = math.floor(value / self.edge(1))  # but for rounding
        while self.edge(found) > value:
            found -= 1
        while self.edge(found + 1) <= value:
            found += 1
        return found


def extent_of(numbers: Numbers) -> Extent:
    """That of the finite ones."""
    finite = numbers.hi[np.isfinite(numbers.hi)]
    if not len(finite):
        return Extent()
    return Extent(float(finite.min()), float(finite.max()), bool((finite == np.floor(finite)).all()))


def round_width(extent: Extent, most: int) -> Width | None:
    """The smallest round width with which at most `most` bins cover the extent; None where there is no number."""
    low, high, whole = extent
    if low > high:
        return None
    most = max(most, 2)  # one on each side of 0
    size = max(abs(low), abs(high))
    # Doubles must tell edges apart, and bins of whole numbers must not be empty.
    least = max(2 * float(np.spacing(size)), 1.0 if whole else 0.0, high / most - low / most, 1e-300)
    if low == high:
        least = max(least, size / 100)
    power = math.floor(math.log10(least))
    widths = (Width(digit, at) for at in range(power - 1, power + 4) for digit in (1, 2, 5))
    wide = (width for width in widths if width.edge(1) >= least * (1 - 1e-9))
    return next(width for width in wide if width.number(high) - width.number(low) < most)


def bins_of(numbers: Numbers, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each number, exactly: -1 below the first edge, len(edges) - 1 from the last edge on."""
    hi, lo = numbers
    found = np.searchsorted(edges, hi, side="right").astype(np.int64) - 1
    if lo is not None:  # hi stands at an edge, and the number is below it
        found -= (lo < 0) & (found >= 0) & (edges[np.maximum(found, 0)] == hi)
    return found


def binned(numbers: Numbers, bins: Width | Sequence[float]) -> tuple[Series | None, int, int]:
    """The bins of these numbers, and how many numbers are below and above all bins."""
    first = 0
    if isinstance(bins, Width):
        low, high, _ = extent_of(numbers)
        if low > high:
            return None, int((numbers.hi < 0).sum()), int((numbers.hi > 0).sum())
        first, last = bins.number(low) - 1, bins.number(high) + 1  # rests may reach beyond
        check(first, last)
        edges = np.array([bins.edge(number) for number in range(first, last + 2)])
    else:
        edges = np.array(bins)
    found = bins_of(numbers, edges)
    below, above = int((found < 0).sum()), int((found == len(edges) - 1).sum())
    if below or above:
        found = found[(found >= 0) & (found < len(edges) - 1)]
    return Series.of(found + first, None, 1), below, above
