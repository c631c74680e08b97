"""Quantiles of many groups of numbers: exact, each the number of a record.

Whole numbers within a small extent are counted (ordered.py), so memory does not follow the log. Other numbers of some
groups are put side by side and sorted, then those of the next ones, so many at a time. Of a group that has more, its
numbers are counted by parts of the doubles first, and only parts that hold a quantile are sorted. For several logs,
which are asked once, each gives how often its groups have which number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.common import memory
from jitdb.operators.summaries.arithmetic.described import as_written, number_of, place_at
from jitdb.operators.summaries.arithmetic.numbers import Moments, Numbers, of_kernels
from jitdb.operators.summaries.arithmetic.ordered import CELLS, Ordered, Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The numbers of some records, and the group of each: below 0 it is none.
Stream: TypeAlias = "Iterable[tuple[Numbers, NDArray[np.int64] | None]]"

_NUMBERS: Final = 1 << 22  # of groups that are put side by side: 32 MiB
_PART_BITS: Final = 16  # parts of the doubles in which numbers are counted: half a megabyte
_SMALL: Final = 1 << 30  # of a share's numerator and denominator: times a count they fit 64 bits


class Quantiles(NamedTuple):
    """Those of some groups, a row each: pairs (jitdb.common.values)."""

    hi: NDArray[np.float64]
    lo: NDArray[np.int16] | None


class Measured(NamedTuple):
    """What the numbers of each group are like.

    quantiles: those of some groups, and `rows` which row of them is that of a group, -1 without; or else
    ordered:   the numbers of all groups, each once and how often it is there: of one of several logs
    """

    moments: Moments
    quantiles: Quantiles
    rows: NDArray[np.int64]
    ordered: Ordered | None

    def values(self, begin: int, end: int) -> list[list[int | float]]:
        """The quantiles of these groups; nothing of those without."""
        rows, shares = self.rows[begin:end], self.quantiles.hi.shape[1]
        hi = self.quantiles.hi[rows].tolist() if len(self.quantiles.hi) else [[]] * len(rows)
        lo = repeat([0] * shares) if self.quantiles.lo is None else self.quantiles.lo[rows].tolist()
        return [
            list(map(number_of, *pair)) if row >= 0 else [] for row, *pair in zip(rows.tolist(), hi, lo, strict=False)
        ]

    def column(self, at: int) -> NDArray[np.float64] | list[int | float | None]:
        """One of the quantiles of each group; NaN, or None, without."""
        hi, lo = self.quantiles
        if lo is None:
            return np.append(hi[:, at], np.nan)[self.rows]
        found = list(map(number_of, hi[:, at].tolist(), lo[:, at].tolist()))
        return [found[row] if row >= 0 else None for row in self.rows.tolist()]


def measured(
    stream: Callable[[], Stream],
    moments: Moments,
    shares: Sequence[float],
    chosen: NDArray[np.int64] | None,
    tally: Tally | None = None,
) -> Measured:
    """With the quantiles of the chosen groups; None: with what those of several logs together are found from.

    stream: gives what the moments were made of, as often as needed
    tally:  what they follow from, if all numbers are in one
    """
    if chosen is None:
        parts = [found.counted() for _, found in _in_batches(stream, moments, np.arange(len(moments)), tally)]
        ends = np.cumsum([0, *(len(part.ends) for part in parts)])
        whole = joined(parts, [np.arange(begin, end) for begin, end in pairwise(ends.tolist())], len(moments))
        return Measured(moments, *_found([], [], len(moments), shares), whole)
    chosen = chosen[moments.counts[chosen] > 0]
    found, batches = [], []
    if tally is None and not moments.has_rests and not _cells(moments, chosen)[1]:
        large = moments.counts[chosen] > _most_numbers()
        for group in chosen[large].tolist() if shares else []:
            found.append(Quantiles(_selected(stream, moments, group, shares)[np.newaxis], None))
            batches.append(np.array([group]))
        chosen = chosen[~large]
    for some, numbers in _in_batches(stream, moments, chosen if shares else chosen[:0], tally):
        found.append(of_ordered(numbers, moments.counts[some], shares))
        batches.append(some)
    return Measured(moments, *_found(found, batches, len(moments), shares), None)


def merged(
    parts: Sequence[Measured], to: Sequence[NDArray[np.int64]], groups: int, shares: Sequence[float]
) -> Measured:  # fmt: skip
    """That of so many groups, one or none of which each group of each part comes to."""
    if len(parts) == 1 and len(to[0]) == groups and (to[0] == np.arange(groups)).all():
        moments = parts[0].moments
    else:
        moments = Moments(groups)
        for part, numbers in zip(parts, to, strict=True):
            moments.merge(part.moments, numbers)
    held = [part.ordered for part in parts if part.ordered is not None]
    if len(held) < len(parts):  # one log, each of whose groups comes to one of its own
        ((whole,), (numbers,)) = parts, to
        rows = np.full(groups, -1)
        rows[numbers] = whole.rows
        return Measured(moments, whole.quantiles, rows, None)
    there = np.flatnonzero(moments.counts)
    together = joined(held, to, groups).of(there)
    found = [of_ordered(together, moments.counts[there], shares)] if shares and len(there) else []
    return Measured(moments, *_found(found, [there][: len(found)], groups, shares), None)


def _found(
    parts: Sequence[Quantiles], batches: Sequence[NDArray[np.int64]], groups: int, shares: Sequence[float]
) -> tuple[Quantiles, NDArray[np.int64]]:
    """The quantiles of some groups after the other, and the row of each of all groups."""
    hi = np.concatenate([np.empty((0, len(shares))), *(part.hi for part in parts)])
    rests = [np.zeros(part.hi.shape, np.int16) if part.lo is None else part.lo for part in parts]
    lo = np.concatenate(rests) if any(part.lo is not None for part in parts) else None
    rows = np.full(groups, -1)
    rows[np.concatenate([np.empty(0, np.int64), *batches])] = np.arange(len(hi))
    return Quantiles(hi, lo), rows


def of_ordered(found: Ordered, counts: NDArray[np.int64], shares: Sequence[float]) -> Quantiles:
    """Those of all groups; `counts`: how many numbers each has."""
    each = [found.at(places_at(share, counts)) for share in shares]
    lo = None if found.lo is None else np.stack([lo for _, lo in each if lo is not None], axis=1)
    return Quantiles(np.stack([hi for hi, _ in each], axis=1), lo)


def joined(parts: Sequence[Ordered], to: Sequence[NDArray[np.int64]], groups: int) -> Ordered:
    """The numbers (counted) of so many groups, each of which has those of the groups of parts that come to it."""
    own = np.concatenate([np.empty(0, np.int64), *map(np.repeat, to, (part.sizes for part in parts))])
    hi = np.concatenate([np.empty(0), *(part.hi for part in parts)])
    counts = np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts if part.counts is not None)])
    lo = None
    if any(part.lo is not None for part in parts):
        lo = np.concatenate([np.zeros(len(part.hi), np.int16) if part.lo is None else part.lo for part in parts])
    if (np.diff(np.concatenate([*to, [groups]])) <= 0).any():  # else all are in order
        order = np.lexsort((hi, own) if lo is None else (lo, hi, own))
        own, hi, lo, counts = own[order], hi[order], None if lo is None else lo[order], counts[order]
    return Ordered(np.searchsorted(own, np.arange(1, groups + 1)), hi, lo, counts)


def _most_numbers() -> int:
    """That are put side by side."""
    return min(_NUMBERS, memory.work() // 8)


def _selected(
    stream: Callable[[], Stream], moments: Moments, group: int, shares: Sequence[float]
) -> NDArray[np.float64]:  # fmt: skip
    """The quantiles of a group of many numbers: these are counted in parts of the doubles between the least and the
    largest, then only those of the parts that hold the quantiles are sorted, or counted in smaller parts.
    """
    places = np.concatenate([places_at(share, moments.counts[[group]]) for share in shares])
    low, high = moments.ends[:, group].tolist()
    ends = np.array([low or -0.0, high or 0.0]).view(np.int64).tolist()  # which of the zeros is there, nobody knows
    least, largest = map(_in_order, ends)
    return _from_parts(stream, group, least, largest - least, places)


def _from_parts(
    stream: Callable[[], Stream], group: int, least: int, size: int, places: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The numbers at these places among those of a group that are the double `least`, or one of so many behind it, in
    the order of doubles.
    """
    from jitdb.operators.summaries.arithmetic import summary_kernels as kernels

    shift = max(0, size.bit_length() - _PART_BITS)
    cells = np.zeros((size >> shift) + 1, np.int64)
    for numbers, own in stream():
        kernels.count_parts(numbers.doubles, of_kernels(own), group, least, shift, cells)
    ends = np.cumsum(cells)
    parts = np.searchsorted(ends, places, side="right")
    if not shift:  # each part is one double
        return np.array([_in_order(least + part) for part in parts.tolist()], np.int64).view(np.float64)
    wanted = np.zeros(len(cells), np.bool_)
    wanted[parts] = True
    size = int(cells[wanted].sum())
    if size <= _most_numbers():
        found, taken = np.empty(size), 0
        for numbers, own in stream():
            taken = kernels.take_parts(numbers.doubles, of_kernels(own), group, least, shift, wanted, found, taken)
        found.sort()
        left_out: NDArray[np.int64] = np.cumsum(np.where(wanted, 0, cells))
        return np.asarray(found[places - left_out[parts]])
    out = np.empty(len(places))
    for part in np.unique(parts).tolist():
        own_places = places[parts == part] - int(ends[part] - cells[part])
        out[parts == part] = _from_parts(stream, group, least + (part << shift), (1 << shift) - 1, own_places)
    return out


def _in_order(bits: int) -> int:
    """The bits of a double as an integer that is the larger, the larger the double; of that, the bits."""
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def _in_batches(
    stream: Callable[[], Stream], moments: Moments, groups: NDArray[np.int64], tally: Tally | None
) -> Iterator[tuple[NDArray[np.int64], Ordered]]:
    """The numbers of these groups, as many groups at a time as the bounds allow."""
    if not len(groups):
        return
    if tally is not None:
        yield groups, tally.ordered(groups)
        return
    counts = moments.counts[groups]
    least, width = _cells(moments, groups)
    if width:
        tally = Tally(least, width, _rows(moments, groups))
        for numbers, own in stream():
            tally.add(numbers, own)
        yield groups, tally.ordered()
        return
    begin = 0
    while begin < len(groups):
        sums = np.cumsum(counts[begin:])
        end = begin + max(1, int(np.searchsorted(sums, _most_numbers(), side="right")))
        some = groups[begin:end]
        yield some, _sorted(stream, _rows(moments, some), sums[: end - begin], moments.has_rests)
        begin = end


def _cells(moments: Moments, groups: NDArray[np.int64]) -> tuple[int, int]:
    """The least number of these groups, and how many there can be up to the largest: 0 where some may not be whole, or
    cells for each of them in each group are too many.
    """
    there = groups[moments.counts[groups] > 0]
    if not len(there) or moments.has_rests or moments.fractions[there].any():
        return 0, 0
    low, high = float(moments.ends[0, there].min()), float(moments.ends[1, there].max())
    if max(-low, high) >= 1 << 53:
        return 0, 0
    least, width = int(low), int(high) - int(low) + 1
    records = int(moments.counts[there].sum())
    fits = width * len(groups) <= max(CELLS, min(records, 2 * _most_numbers()))  # 4 bytes each
    return (least, width) if fits else (0, 0)


def _rows(moments: Moments, groups: NDArray[np.int64]) -> NDArray[np.int64]:
    rows = np.full(len(moments), -1)
    rows[groups] = np.arange(len(groups))
    return rows


def _sorted(
    stream: Callable[[], Stream], rows: NDArray[np.int64], ends: NDArray[np.int64], has_rests: bool
) -> Ordered:  # fmt: skip
    from jitdb.operators.summaries.arithmetic import summary_kernels as kernels

    begins = np.append(0, ends[:-1])
    hi, lo = np.empty(int(ends[-1])), np.zeros(int(ends[-1]) if has_rests else 0, np.int16)
    nexts = begins.copy()
    for numbers, own in stream():
        kernels.put_numbers(numbers.doubles, numbers.rests, of_kernels(own), rows, nexts, hi, lo)
    if has_rests:
        order = np.lexsort((lo, hi, np.repeat(np.arange(len(ends)), ends - begins)))
        return Ordered(ends, hi[order], lo[order])
    kernels.sort_runs(hi, ends)
    for run in np.flatnonzero(ends - begins > kernels.LONGEST).tolist():
        hi[begins[run] : ends[run]].sort()
    return Ordered(ends, hi, None)


def places_at(share: float, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place, in order, of the quantile of this share in each group."""
    numerator, denominator = as_written(share)
    if denominator > _SMALL:  # a product might not fit
        return np.array([place_at(share, count) for count in counts.tolist()], np.int64)
    places: NDArray[np.int64] = np.maximum(-(-numerator * counts // denominator) - 1, 0)
    return places
