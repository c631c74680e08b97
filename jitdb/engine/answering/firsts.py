"""The first record of each value of some fields, or the last, in the order of a question: one log's part.

Each record's values are a number, as where groups are counted (coded.py), so numbers are sorted. Only of the records
that are found, and only for several logs, are the values themselves looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitdb.engine.answering.coded import numbered
from jitdb.engine.answering.order import Answer
from jitdb.engine.answering.summarizing import LogView, viewed
from jitdb.indexes.kinds.roaring import bitmap_of, dump, members_of
from jitdb.operators.summaries.summary import Keys, Summary

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.engine.manager import IndexManager
    from jitdb.operators.nodes.selection import SortKeys
    from jitdb.operators.question import Question


class Firsts(NamedTuple):
    """Records of one generation of a log.

    total:  of how many they were chosen
    keys:   of the values of each, and `places` what orders it among those of all logs (Order.times); empty where this
            log is all that is asked
    """

    log: bytes
    generation: int
    total: int
    seqs: NDArray[np.uint32]
    keys: list[Keys]
    places: list[Any]

    def packed(self, chosen: Any = slice(None)) -> tuple[bytes, int, bytes]:
        """Some of them, as a set is made of (engine/sets.py)."""
        return self.log, self.generation, dump(bitmap_of(np.sort(self.seqs[chosen])))


class FirstsAsked(Summary[Firsts]):
    """Which indexes it takes, and what they say."""

    __slots__ = __match_args__ = ("paths", "last", "sorted_by")

    paths: tuple[Path, ...]
    last: bool
    sorted_by: bool | SortKeys

    @property
    def values_of(self) -> tuple[Path, ...]:
        return self.paths

    def found(self, view: LogView) -> Firsts:
        """In one log. Raises IndexDamaged."""
        columns = [view.coded(path) for path in self.paths]
        codes = [column.codes(view.members) for column in columns]
        members, order = members_of(view.matches), view.manager.order(self.sorted_by)
        seqs = Answer(view.matches, order).page(0, None, descending=False)
        at = np.arange(len(members)) if order is None else places_among(members, seqs)
        at = at[np.logical_and.reduce([own != 0 for own in codes])[at]]
        if self.last:
            at = at[::-1]
        numbers, size = numbered(codes, list(map(len, columns)))
        at = at[_firsts(numbers[at], size)]
        seqs = members[at]
        keys: list[Keys] = []
        places: list[Any] = []
        if not view.is_whole:
            values = [map(column.key, own[at].tolist()) for column, own in zip(columns, codes, strict=True)]
            keys = list(zip(*values, strict=True))
            places = [()] * len(at) if order is None or not len(at) else order.times(seqs, descending=False)
        log = view.manager.records.log
        return Firsts(log.identity, log.generation, len(members), seqs, keys, places)


def places_among(members: NDArray[np.uint32], seqs: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Where these of the members (ascending seqs) stand among them."""
    if len(members) and int(members[-1]) - int(members[0]) == len(members) - 1:
        return seqs.astype(np.int64) - int(members[0])
    return np.searchsorted(members, seqs).astype(np.int64)


def _firsts(numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Where each of these numbers, all below a size, comes first."""
    if size > max(1 << 16, 4 * len(numbers)):
        return np.unique(numbers, return_index=True)[1]
    firsts = np.full(size, len(numbers))
    np.minimum.at(firsts, numbers, np.arange(len(numbers)))
    return firsts[firsts < len(numbers)]


def first_of_each(
    manager: IndexManager,
    question: Question,
    known: Mapping[str, Any],
    is_whole: bool,
    cancel: threading.Event | None,
) -> Firsts:
    """See Question.dedup. The other arguments are those of viewed(). Raises QueryError, QueryCancelled, LogError."""
    assert question.dedup is not None
    asked = FirstsAsked(*question.dedup, question.order)
    return viewed(manager, question, asked, asked.found, known, is_whole, cancel)
