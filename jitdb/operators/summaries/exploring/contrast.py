"""The statistics of difference(): which values and intervals some records have more often than others do.

Each value is tested by its counts here and there (a G-test), and of each number the interval in which the shares differ
most. A test is only a gate, because records of a log are no independent draws: what chance would give in less than one
of a hundred such comparisons as a whole passes (Bonferroni). What passes is ranked by how far the shares are apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import UNDEFINED, value_of_key
from jitdb.operators.summaries.arithmetic.cells import Cells, added
from jitdb.operators.summaries.exploring.findings import Finding, Interval, Together
from jitdb.operators.summaries.summary import Opposed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.operators.summaries.exploring.facet_fields import FacetFields

ABSENT_KEY: Final = b"\0"  # that of no value
CANDIDATES: Final = 15  # findings that are looked at together: a bit each
MATCHING: Final = 1 << CANDIDATES  # the bit of the records that match

_SUPPORT: Final = 0.05  # of the records that match, that a finding is true of
_FEWEST: Final = 5  # of them
_LIFT: Final = 1.2  # how many times as large the share is as that of the others
_LIFT_OF_NONE: Final = 2.0  # the same of the lack of a field, which many records lack where they are of several kinds
_CHANCE: Final = 0.01  # that there is any finding where there is no difference
_BINS: Final = 64  # of numbers, in which intervals begin and end
_OF_A_FIELD: Final = 3  # values of it among the candidates
_COPY: Final = 0.95  # of the records of two findings, that both are true of: then they say the same
_KEPT: Final = 0.85  # of the records that match, that another term must leave
_GAIN: Final = 1.5  # how many times as large it must make the lift
_GROUPS: Final = 3  # of such findings, that are told


class Surveyed(NamedTuple):
    """What one log has: how many records are matching, how many are not, and what fields hold in both."""

    matching: int
    others: int
    values: list[Opposed]
    numbers: list[tuple[Cells, Cells]]


class Candidate(NamedTuple):
    """A finding before it is looked at with others. `held`: its value's key, or an interval."""

    path: Path
    held: bytes | Interval
    here: int
    there: int


class Settled(NamedTuple):
    """What passes the gate, the farthest apart first, and how many values and intervals were looked at."""

    matching: int
    others: int
    candidates: list[Candidate]
    compared: int


def fewest_of(matching: int) -> int:
    """Of how many of the records that match a finding must be true."""
    return max(_FEWEST, math.ceil(_SUPPORT * matching))


def candidates_of(fields: FacetFields, surveys: Sequence[Surveyed]) -> Settled:
    """The candidates of all logs together."""
    matching, others = sum(part.matching for part in surveys), sum(part.others for part in surveys)
    found: list[Candidate] = []
    compared = 0
    if matching and others:
        for at, path in enumerate(fields.values):
            opposed = _together([part.values[at] for part in surveys])
            compared += opposed.distinct
            found += (
                Candidate(path, key, here, there)
                for key, here, there in zip(opposed.keys, opposed.here.tolist(), opposed.there.tolist(), strict=True)
            )
        for at, path in enumerate(fields.numbers):
            here, there = (added(part.numbers[at][side] for part in surveys) for side in (0, 1))
            interval, looked_at = _farthest(path, here, there, matching, others)
            compared += looked_at
            found += interval
    passed = [each for each in found if _passes(each, matching, others, compared)]
    passed.sort(key=lambda each: each.there / max(1, others) - each.here / max(1, matching))
    return Settled(matching, others, list(_first(passed)), compared)


def _together(parts: Sequence[Opposed]) -> Opposed:
    if len(parts) == 1:
        return parts[0]
    here: Counter[bytes] = Counter()
    there: Counter[bytes] = Counter()
    for part in parts:
        for counts, own in ((here, part.here), (there, part.there)):
            for key, count in zip(part.keys, own.tolist(), strict=True):
                counts[key] += count
    keys = list(here)
    own, other = (np.array([counts[key] for key in keys], np.int64) for counts in (here, there))
    return Opposed(keys, own, other, sum(count > 0 and key != ABSENT_KEY for key, count in here.items()))


def _first(passed: Sequence[Candidate]) -> Iterator[Candidate]:
    """Not too many, and not too many of one field."""
    of_field: Counter[Path] = Counter()
    taken = 0
    for each in passed:
        of_field[each.path] += 1
        if of_field[each.path] <= _OF_A_FIELD and taken < CANDIDATES:
            taken += 1
            yield each


def _passes(each: Candidate, matching: int, others: int, compared: int) -> bool:
    least = _LIFT_OF_NONE if each.held == ABSENT_KEY else _LIFT
    if each.here < fewest_of(matching) or each.here * others < least * each.there * matching:
        return False
    return _log_chance(each.here, each.there, matching, others) + math.log(max(1, compared)) < math.log(_CHANCE)


def _log_chance(here: int, there: int, matching: int, others: int) -> float:
    """The logarithm of how probable so large a difference, or a larger one, is by chance alone: a G-test.

    >>> round(_log_chance(50, 50, 100, 100), 3), _log_chance(90, 10, 100, 100) < -60
    (0.0, True)
    """
    total, both = here + there, matching + others
    cells = (
        (here, total * matching), (there, total * others),
        (matching - here, (both - total) * matching), (others - there, (both - total) * others),
    )  # fmt: skip
    statistic = 2 * sum(seen * math.log(seen * both / expected) for seen, expected in cells if seen)
    statistic = max(0.0, statistic)
    if statistic < 1400:
        return math.log(math.erfc(math.sqrt(statistic / 2)))
    return -statistic / 2 - 0.5 * math.log(math.pi * statistic / 2)  # beyond what erfc can tell from 0


def _farthest(
    path: Path, here: Cells, there: Cells, matching: int, others: int
) -> tuple[list[Candidate], int]:  # fmt: skip
    """The interval of a number in which the shares differ most, and how many intervals were looked at.

    It is looked for in bins of the numbers of both sides, and its ends then in the cells of the bins at its ends.
    """
    if not len(here.places):
        return [], 0
    shift = max(here.shift, there.shift)
    here, there = here.coarser(shift), there.coarser(shift)
    places = np.union1d(here.places, there.places)
    of_these, of_others = here.at(places), there.at(places)
    weights = np.cumsum(of_these / matching + of_others / others)
    bins = np.minimum(np.append(0, weights[:-1]) / weights[-1] * _BINS, _BINS - 1).astype(np.int64)
    begins = np.append(np.flatnonzero(np.diff(bins, prepend=-1)), len(places))
    gains = np.append(0.0, np.cumsum(of_these / matching - of_others / others))  # of the cells before each
    first, last = _widest(gains[begins])
    count = len(begins) * (len(begins) - 1) // 2
    if (first, last) == (0, len(begins) - 1):
        return [], count  # all who have a number
    lows = np.arange(begins[first], begins[first + 1]) if first else np.zeros(1, np.int64)
    highs = np.arange(begins[last - 1], begins[last]) + 1 if last < len(begins) - 1 else begins[-1:]
    begin, end = int(lows[np.argmin(gains[lows])]), int(highs[np.argmax(gains[highs])])
    if begin >= end:
        begin, end = int(begins[first]), int(begins[last])
    lows_of, highs_of = Cells(shift, places, of_these).bounds()
    low = -math.inf if begin == 0 else _round(highs_of[begin - 1], lows_of[begin])
    high = math.inf if end == len(places) else _round(highs_of[end - 1], lows_of[end])
    found = Candidate(path, Interval(low, high), int(of_these[begin:end].sum()), int(of_others[begin:end].sum()))
    return [found], count + len(lows) * len(highs)


def _round(low: float, high: float) -> float:
    """A number between two, of few digits where there is one: no number of a record is between them.

    >>> _round(20.0, 4992.0), _round(4984.0, 4992.0), _round(4992.0, 4992.0)
    (4900.0, 4990.0, 4992.0)
    """
    for digits in (2, 3):
        size = 10.0 ** (math.floor(math.log10(abs(high))) + 1 - digits) if high and math.isfinite(high) else 1.0
        found = float(f"{math.floor(high / size) * size:.12g}")
        if low <= found <= high:
            return found
    return float(high)


def _widest(gains: NDArray[np.float64]) -> tuple[int, int]:
    """Two of these, of which the second one is larger by the most."""
    least = np.minimum.accumulate(gains[:-1])
    last = int(np.argmax(gains[1:] - least)) + 1
    return int(np.argmin(gains[:last])), last


# --- what goes together ----------------------------------------------------------------------------------------------


def no_masks() -> NDArray[np.int64]:
    return np.zeros(2 * MATCHING, np.int64)


class Masks(NamedTuple):
    """Which candidates records have, as the bits of a number, and how many have the same: of the records that match,
    and of the others.
    """

    bits: NDArray[np.int64]
    here: NDArray[np.int64]
    there: NDArray[np.int64]

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> Masks:
        both = counts.reshape(2, MATCHING)
        bits = np.flatnonzero(both.any(axis=0))
        return cls(bits, both[1, bits], both[0, bits])

    def having(self, terms: Sequence[int]) -> tuple[int, int]:
        """How many have all of these candidates."""
        wanted = sum(1 << term for term in terms)
        there = self.bits & wanted == wanted
        return int(self.here[there].sum()), int(self.there[there].sum())

    def share_of_both(self, one: int, other: int) -> float:
        """Of the records that have one of two candidates, the share that has both."""
        of_one, of_other = self.bits >> one & 1, self.bits >> other & 1
        counts = self.here + self.there
        either = int(counts[(of_one | of_other) == 1].sum())
        return int(counts[(of_one & of_other) == 1].sum()) / either if either else 0.0


def told(
    settled: Settled, counts: NDArray[np.int64], limit: int | None
) -> tuple[tuple[Finding, ...], tuple[Together, ...]]:
    """The findings, and those that go together."""
    masks = Masks.of(counts)
    found = [_finding(each, settled) for each in settled.candidates]
    copies: dict[int, list[int]] = {}
    for number in range(len(found)):
        of = next((first for first in copies if masks.share_of_both(first, number) > _COPY), number)
        copies.setdefault(of, []).append(number)
    findings = {
        first: found[first]._replace(same_as=tuple(found[other] for other in others[1:]))
        for first, others in copies.items()
    }
    groups = tuple(_groups(settled, findings, masks))
    return tuple(findings.values())[:limit], groups


def _finding(each: Candidate, settled: Settled) -> Finding:
    value: Any = each.held
    if isinstance(value, bytes):
        value = UNDEFINED if value == ABSENT_KEY else value_of_key(value)
    share, other = each.here / settled.matching, each.there / settled.others
    return Finding(each.path, value, each.here, each.there, share, other)


def _groups(settled: Settled, findings: dict[int, Finding], masks: Masks) -> Iterator[Together]:
    """Findings that go together: from each one on, those that make the lift largest and leave most records; then all
    others that are true of these.
    """
    best: dict[frozenset[int], tuple[int, int]] = {}
    for first in findings:
        terms = _grown([first], findings, masks)
        here, there = masks.having(terms)
        if len(terms) > 1 and here >= fewest_of(settled.matching):
            best[frozenset(terms)] = here, there
    taken: list[frozenset[int]] = []
    for group in sorted(best, key=lambda group: (-_lift(*best[group]), -len(group), sorted(group))):
        here, there = best[group]
        if len(taken) < _GROUPS and all(2 * masks.having([*(group | other)])[0] <= here for other in taken):
            taken.append(group)
            told = tuple(findings[term] for term in sorted(group))
            yield Together(told, here, there, here / settled.matching, there / settled.others)


def _grown(terms: list[int], findings: Collection[int], masks: Masks) -> list[int]:
    here, there = masks.having(terms)
    while True:
        more = [(*masks.having([*terms, other]), other) for other in findings if other not in terms]
        fits = [(_lift(*counts), other) for *counts, other in more if counts[0] >= _KEPT * here]
        lift, other = max(fits, default=(0.0, 0), key=lambda each: (each[0], -each[1]))
        if lift <= _GAIN * _lift(here, there):
            return [*terms, *(other for kept, _, other in more if kept >= _COPY * here)]
        terms = [*terms, other]
        here, there = masks.having(terms)


def _lift(here: int, there: int) -> float:
    return (here + 1) / (there + 1)
