"""Counting the values of a field that has too many to number them all at once: one that is nearly unique, say.

Most of such values stand in one segment alone, so nothing is to be added up for them. Which ones these are, 32-bit
hashes tell, four bytes a value: a value whose hash no other one has. Only the others are numbered, so many at a time.
Of the rest, the first ones are kept. A segment's values are read from its file once for the hashes, and once more for
each of these parts; so memory is that of one segment, and of one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common import memory
from jitdb.common.sorting import each_once
from jitdb.engine.answering.coded import first_values
from jitdb.engine.answering.coded_column import REPEATED
from jitdb.indexes.kinds.dictionary import chosen, code_counts, dictionary_values
from jitdb.indexes.numbering import NumberingTable
from jitdb.operators.summaries.summary import Keys, Ranked
from jitdb.operators.summaries.value_counts import in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.members import Members
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues

_WEIGHT: Final = 64  # bytes that a value takes while it is numbered, about
MANY: Final = 1 << 19  # values that are numbered at once: each takes some 230 bytes, with what it weighs itself


def are_many(values: int) -> bool:
    """Whether so many are to be counted here."""
    return values > MANY


def ranked_apart(segments: Sequence[Segment], members: Members, limit: int) -> Ranked | None:
    """The most frequent values of these records; None where most are in several segments, so that these are better
    numbered, once and for all. Raises IndexDamaged.
    """
    missing, hashes = 0, [np.empty(0, np.uint32)]
    for values, there, counts, lacking in _counted(segments, members):
        missing += lacking
        hashes.append(_hashes(chosen(values, there)))
        del values, counts
    every = np.concatenate(hashes)
    hashes.clear()
    repeated, different = _repeated(every)
    if different <= memory.work() // _WEIGHT and len(every) > REPEATED * different:
        return None
    del every
    first: list[tuple[Keys, int]] = []
    distinct = 0
    for begin in range(0, max(1, len(repeated)), MANY):
        table, sums = NumberingTable(), np.zeros(1, np.int64)
        for values, there, counts, _ in _counted(segments, members):
            own = _hashes(chosen(values, there))
            some = _is_in(repeated[begin : begin + MANY], own)
            numbers = table.number(chosen(values, there[some]), np.zeros(np.count_nonzero(some), np.uint8))
            assert numbers is not None  # without limits, it is never full
            sums = np.append(sums, np.zeros(table.filled - len(sums), np.int64))
            sums[numbers] += counts[some]  # no two values of a segment are one
            if not begin:
                alone = ~(some if len(repeated) <= MANY else _is_in(repeated, own))
                distinct += int(np.count_nonzero(alone))
                first = in_order([*first, *_first(values, there[alone], counts[alone], limit)], limit)
        there = np.flatnonzero(sums[1:])
        distinct += len(there)
        first = in_order([*first, *_first(table.distinct_values(), there, sums[1 + there], limit)], limit)
    return Ranked(first, distinct, len(members), missing)


def _counted(
    segments: Sequence[Segment], members: Members
) -> Iterator[tuple[FieldValues, NDArray[np.int64], NDArray[np.int64], int]]:
    """For each segment that has some of the records: its values, the numbers of those that these records have, how many
    have each, and how many have none.
    """
    for segment in segments:
        within = members.within(segment)
        if within is None:
            continue
        counts = code_counts(segment, *within, keep=False)
        there = np.flatnonzero(counts[1:])
        yield dictionary_values(segment, keep=False), there, counts[1 + there], int(counts[0])


def _hashes(values: FieldValues) -> NDArray[np.uint32]:
    """Of arrays and maps all are alike."""
    from jitdb.indexes.hash_kernels import hash_scalars

    _, buffer, kind, start, length, number = values
    out = np.zeros(len(kind), np.uint32)
    hash_scalars(buffer, kind, start.astype(np.int64), length, number, len(kind), out)
    return out


def _repeated(hashes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], int]:
    """Those that stand there more than once, ascending, each once; and how many different ones there are.

    Sorts what is given.
    """
    hashes.sort()
    again = hashes[1:][hashes[1:] == hashes[:-1]]
    different = len(hashes) - len(again)
    return each_once(again), different


def _first(
    values: FieldValues, numbers: NDArray[np.int64], counts: NDArray[np.int64], limit: int
) -> list[tuple[Keys, int]]:  # fmt: skip
    return first_values(lambda at: chosen(values, at), numbers, counts, limit)


def _is_in(some: NDArray[np.uint32], hashes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Which of the hashes are among some, which ascend."""
    found = np.zeros(len(hashes), np.bool_)
    if len(some):
        heads = np.zeros(1 << 16, np.bool_)  # few of them: most hashes need no search
        heads[some >> np.uint32(16)] = True
        near = np.flatnonzero(heads[hashes >> np.uint32(16)])
        places = np.minimum(np.searchsorted(some, hashes[near]), len(some) - 1)
        found[near] = some[places] == hashes[near]
    return found
