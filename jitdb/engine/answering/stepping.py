"""Which runs of a log are in one step of time: in a log that lies in the order of its time most are, so that nobody
need look at the times of their records. The extremes of zones tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from pyroaring import BitMap

from jitdb.engine.answering.coded import BitmapCodes, Coded
from jitdb.engine.answering.coded_column import CodedColumn
from jitdb.indexes.kinds.columns import HAS_RESTS, number_range
from jitdb.indexes.kinds.numbers import load_extremes, load_numbers
from jitdb.indexes.segment import ZONE
from jitdb.operators.summaries.arithmetic.bins import NOWHERE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.members import Members
    from jitdb.indexes.segment import Segment

Shared: TypeAlias = "Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]"

_PART: Final = 64  # records of a zone of several steps, that are looked at together
_BLOB: Final = 2  # by whose place the extremes of parts are kept
_REST: Final = 1 << 10  # nanoseconds, at most, from a double to the time that it stands for


class Runs(NamedTuple):
    """Runs of records, one behind the other, by their seqs.

    firsts, ends: where each begins, and the next one does
    steps:        the step that all of its records are in; NOWHERE where they may be in several
    """

    firsts: NDArray[np.int64]
    ends: NDArray[np.int64]
    steps: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.int64]:
        """The numbers of those whose step is known."""
        return np.flatnonzero(self.steps != NOWHERE)

    @property
    def records(self) -> BitMap:
        """Those of these runs."""
        found = BitMap()
        for first, end in zip(self.firsts[self.known].tolist(), self.ends[self.known].tolist(), strict=True):
            found.add_range(first, end)
        return found


def runs_of_steps(segments: Sequence[Segment], shared: Shared) -> Runs:
    """Those of a column of times; `shared`: as View.in_steps() has it. Raises IndexDamaged."""
    parts, end = [(np.empty(0, np.int64), np.empty(0, np.int64))], 0
    for segment in segments:
        parts.append(_steps(segment, shared))
        end = segment.end_seq
    first, step = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    begins = np.flatnonzero(np.append(step[:1] == step[:1], step[1:] != step[:-1]))
    return Runs(first[begins], np.append(first[begins][1:], end), step[begins])


def _steps(segment: Segment, shared: Shared) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where zones of a segment begin, and the step of each; of a zone of several steps, those of short parts of it."""
    low, high = load_extremes(segment)
    rest = _REST if number_range(segment)[2] & HAS_RESTS else 0
    steps = shared(low - rest, high + rest)
    firsts = segment.first_seq + ZONE * np.arange(len(low))
    mixed = np.flatnonzero(steps[: segment.count // ZONE] == NOWHERE)
    if not len(mixed):
        return firsts, steps
    some = segment.derived(_BLOB, segment.count * 16 // _PART, partial(_extremes, segment))[:, mixed]
    own = shared(some[0].ravel() - rest, some[1].ravel() + rest)
    own_firsts = (firsts[mixed, np.newaxis] + _PART * np.arange(ZONE // _PART)).ravel()
    left = np.ones(len(steps), np.bool_)
    left[mixed] = False
    found, numbers = np.append(firsts[left], own_firsts), np.append(steps[left], own)
    order = np.argsort(found, kind="stable")
    return found[order], numbers[order]


def _extremes(segment: Segment) -> NDArray[np.float64]:
    """The least and the largest time of each part of the full zones: [2, zones, parts]; NaN where a record has none."""
    times = load_numbers(segment)[0][: segment.count // ZONE * ZONE].reshape(-1, ZONE // _PART, _PART)
    return np.stack([times.min(axis=2), times.max(axis=2)])


def counted_in_runs(
    runs: Runs, members: Members, coded: Coded | None, places: NDArray[np.int64] | None, width: int
) -> list[tuple[int, NDArray[np.int64]]]:
    """Of each run whose step is known this step, and how many of the records are in it, by the places of their values
    modulo `width`; without a column, in all. Raises IndexDamaged.
    """
    known = runs.known
    if not len(known):
        return []
    ends = list(zip(runs.firsts[known].tolist(), runs.ends[known].tolist(), strict=True))
    counts = np.zeros((len(known), width), np.int64)
    if coded is None or places is None:
        counts[:, 0] = [members.records.range_cardinality(*run) for run in ends]
    elif isinstance(coded, CodedColumn):
        rows = np.full(len(runs.steps), -1)
        rows[known] = np.arange(len(known))
        coded.count_runs(members, runs.ends, rows, places % width, counts)
    elif isinstance(coded, BitmapCodes):
        for code, column in enumerate((places % width).tolist()):
            having = coded.having(coded.key(code), members.records)
            counts[:, column] += [having.range_cardinality(*run) for run in ends]
    else:
        counts[:, places[coded.code] % width] = [members.records.range_cardinality(*run) for run in ends]
    there = np.flatnonzero(counts.any(axis=1))
    return list(zip(runs.steps[known][there].tolist(), counts[there], strict=True))
