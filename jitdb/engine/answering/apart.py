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

from jitdb.engine.answering.coded import CodedColumn, first_values, ranked_values
from jitdb.indexes.kinds.dictionary import chosen, code_counts, count_of, dictionary_values
from jitdb.operators.summaries.summary import Keys, Ranked
from jitdb.operators.summaries.value_counts import in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.answering.members import Members
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues

MANY: Final = 1 << 19  # values that are numbered at once: each takes some 230 bytes, with what it weighs itself


def are_many(segments: Sequence[Segment]) -> bool:
    """Whether the values in these segments (DICTIONARY) are to be counted here."""
    return sum(map(count_of, segments)) > MANY


def ranked_apart(segments: Sequence[Segment], members: Members, limit: int) -> Ranked:
    """The most frequent values of these records. Raises IndexDamaged."""
    missing, hashes = 0, [np.empty(0, np.uint32)]
    for values, there, counts, lacking in _counted(segments, members):
        missing += lacking
        hashes.append(_hashes(chosen(values, there)))
        del values, counts
    repeated = _repeated(np.concatenate(hashes))
    hashes.clear()
    first: list[tuple[Keys, int]] = []
    distinct = 0
    for begin in range(0, max(1, len(repeated)), MANY):
        column, sums = CodedColumn(), np.zeros(1, np.int64)
        for values, there, counts, _ in _counted(segments, members):
            own = _hashes(chosen(values, there))
            some = _is_in(repeated[begin : begin + MANY], own)
            numbers = column.number(chosen(values, there[some]))
            sums = np.append(sums, np.zeros(len(column) - len(sums), np.int64))
            sums[numbers] += counts[some]  # no two values of a segment are one
            if not begin:
                alone = ~(some if len(repeated) <= MANY else _is_in(repeated, own))
                distinct += int(np.count_nonzero(alone))
                first = in_order([*first, *first_values(values, there[alone], counts[alone], limit)], limit)
        found = ranked_values(column, sums, 0, limit)
        distinct += found.distinct
        first = in_order([*first, *found.pairs], limit)
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


def _repeated(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Those that stand there more than once, ascending, each once. Sorts what is given."""
    hashes.sort()
    again = hashes[1:][hashes[1:] == hashes[:-1]]
    return np.unique(again)


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
