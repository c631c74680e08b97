"""Sets of records of one log: their seqs as of one generation of the log, which a compaction renumbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.roaring import bitmap_of, dump, members_of
from jitdb.operators.nodes.operation import EVERYTHING
from jitdb.operators.sets import Members, RecordSet, Sizes

if TYPE_CHECKING:
    import threading

    from jitdb.engine.manager import IndexManager
    from jitdb.operators.question import Question

T = TypeVar("T")

_COMBINED: Final[dict[str, Callable[[BitMap, BitMap], BitMap]]] = {
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "-": lambda one, other: one - other,
    "^": lambda one, other: one ^ other,
}


class LogRecordSet(RecordSet, Members):
    """Records of a log, whose indexes are asked about them."""

    __slots__ = ("manager",)

    manager: IndexManager

    def __init__(self, manager: IndexManager, log: bytes, generation: int, packed: bytes) -> None:
        self._keep(log, generation, packed)
        object.__setattr__(self, "manager", manager)

    def __len__(self) -> int:
        return self._ask(lambda manager, end: manager.evaluator.count(self, end))

    def __iter__(self) -> Iterator[int]:
        """The offsets of the records, in the order of the log."""
        return iter(self.offsets.tolist())

    def __contains__(self, place: object) -> bool:
        """Whether the record at this offset is one of them."""
        if not isinstance(place, int | np.integer) or isinstance(place, bool) or not 0 <= place < 1 << 63:
            return False
        offset = np.array([place], np.int64)
        return self._ask(
            lambda manager, end: bool(manager.records.seqs_at(offset) & manager.evaluator.matches(self, end))
        )

    @property
    def offsets(self) -> Any:
        """int64, where they begin in the log, ascending."""
        return self._ask(
            lambda manager, end: manager.records.offsets_of(members_of(manager.evaluator.matches(self, end)))
        )

    def _combined(self, other: LogRecordSet, how: str) -> LogRecordSet:
        def combine(manager: IndexManager, end: int) -> BitMap:
            return _COMBINED[how](manager.evaluator.matches(self, end), manager.evaluator.matches(other, end))

        return self._made(self._ask(lambda manager, end: _packed(manager, combine(manager, end))))

    def _sizes(self, other: LogRecordSet) -> Sizes:
        def count(manager: IndexManager, end: int) -> Sizes:
            one, two = manager.evaluator.matches(self, end), manager.evaluator.matches(other, end)
            return Sizes(len(one), len(two), int(one.intersection_cardinality(two)))

        return self._ask(count)

    def renewed(self) -> LogRecordSet:
        """The same, as of now: without deleted ones, of the present generation."""
        return self._made(self._ask(lambda manager, end: _packed(manager, manager.evaluator.matches(self, end))))

    def _made(self, parts: tuple[bytes, int, bytes]) -> LogRecordSet:
        return LogRecordSet(self.manager, *parts)

    def _ask(self, work: Callable[[IndexManager, int], T]) -> T:
        return self.manager.ask(EVERYTHING, False, None, lambda end: work(self.manager, end))

    def __reduce__(self) -> tuple[Any, ...]:
        return Members, (self.log, self.generation, self.packed)


def _packed(manager: IndexManager, seqs: BitMap) -> tuple[bytes, int, bytes]:
    log = manager.records.log
    return log.identity, log.generation, dump(BitMap(seqs))


def set_of(manager: IndexManager, question: Question, cancel: threading.Event | None) -> LogRecordSet:
    """The records that the question gives: all that match, or where it says so those of one page."""
    start, limit = question.start_from, question.limit
    is_part = bool(start) or limit is not None
    order = question.order if is_part else False

    def look(end: int) -> tuple[bytes, int, bytes]:
        end = manager.records.horizon(question.as_of, end)
        if not is_part:
            return _packed(manager, manager.evaluator.matches(question.operation, end))
        answer = manager.answer(question.operation, end, order)
        return _packed(manager, bitmap_of(np.sort(answer.page(start, limit, question.descending))))

    return LogRecordSet(manager, *manager.ask(question.operation, order, cancel, look))
