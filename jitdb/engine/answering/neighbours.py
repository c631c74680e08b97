"""Which records stand around the answers: before and after them in the log's order or in time, among all records or
among those that have the same value in a field.

The records are put in a line, by value first where one is asked for. Around each answer's place in it a range is taken,
within its value; ranges that overlap or touch are one passage. Everything is done with arrays of seqs and codes, which
indexes have, so no record is read for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jitdb.indexes.kinds.roaring import members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.engine.answering.coded_column import CodedColumn
    from jitdb.engine.answering.order import SomeOrder


class Line(NamedTuple):
    """Records in order (seqs), and the code of each one's value, which then ascends; None where there is one line."""

    seqs: NDArray[np.uint32]
    codes: NDArray[np.uint32] | None


class Neighbours(NamedTuple):
    """Passages, one behind the other, in the order of the first answer in each.

    seqs:   of all their records
    marked: which of them are answers
    starts: where each passage begins; its end is the next one's beginning
    """

    seqs: NDArray[np.uint32]
    marked: NDArray[np.bool_]
    starts: NDArray[np.int64]


def line_of(universe: BitMap, chosen: NDArray[np.uint32], order: SomeOrder | None, column: CodedColumn | None) -> Line:
    """The records of the universe that may stand around the chosen ones, which are among them.

    order:  None for that of the log
    column: of the field whose value they share; None where they need not

    Guarded by the engine's lock; raises IndexDamaged, IndexBehind.
    """
    seqs, codes = members_of(universe), None
    if column is not None:
        codes = column.codes(universe)
        wanted = np.zeros(len(column), np.bool_)
        wanted[codes[seqs.searchsorted(chosen)]] = True
        kept = wanted[codes]
        seqs, codes = seqs[kept], codes[kept]
    line = seqs if order is None else order.first(seqs, len(seqs), False)
    if codes is None:
        return Line(line, None)
    codes = codes[seqs.searchsorted(line)]
    by_value = np.argsort(codes, kind="stable")
    return Line(line[by_value], codes[by_value])


def neighbours(line: Line, chosen: NDArray[np.uint32], before: int, after: int, descending: bool) -> Neighbours:
    """The chosen records (all of them are in the line) with so many before and after each.

    chosen:     in the order of the answer
    descending: the answer's order is the reverse of the line's, and each passage comes so, too
    """
    if not len(chosen):
        return Neighbours(chosen, np.empty(0, np.bool_), np.empty(0, np.int64))
    seqs, codes = line
    place_of = np.empty(int(seqs.max()) + 1, np.int64)
    place_of[seqs] = np.arange(len(seqs))
    places = place_of[chosen]
    rank = np.argsort(places)  # of the answers in the line
    places = places[rank]
    first, stop = np.maximum(places - before, 0), np.minimum(places + after + 1, len(seqs))
    begins = first[1:] > stop[:-1]
    if codes is not None:
        own = codes[places]
        first = np.maximum(first, codes.searchsorted(own))
        stop = np.minimum(stop, codes.searchsorted(own, side="right"))
        begins = (first[1:] > stop[:-1]) | (own[1:] != own[:-1])
    heads = np.append(0, np.flatnonzero(begins) + 1)
    low, high = first[heads], stop[np.append(heads[1:], len(places)) - 1]
    turn = np.argsort(np.minimum.reduceat(rank, heads))
    low, high = low[turn], high[turn]
    starts = np.cumsum(high - low) - (high - low)
    total = int((high - low).sum())
    if descending:
        chain = np.repeat(high - 1 + starts, high - low) - np.arange(total)
    else:
        chain = np.repeat(low - starts, high - low) + np.arange(total)
    is_answer = np.zeros(len(seqs), np.bool_)
    is_answer[places] = True
    return Neighbours(seqs[chain], is_answer[chain], starts)
