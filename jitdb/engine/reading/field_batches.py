"""The selected fields of an answer as arrays, some thousand records at a time: what tables of any kind are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from jitdb.engine.answering.order import Order
from jitdb.engine.reading.paging import Located, Pages, read_fields
from jitdb.engine.reading.selecting import FieldBatch, Selector
from jitdb.engine.records import Records
from jitdb.errors import LogError, QueryError, Remedy
from jitdb.operators.nodes.selection import Selection, named

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from jitdb.common.paths import Path
    from jitdb.engine.answering.order import SomeOrder
    from jitdb.engine.manager import IndexManager
    from jitdb.operators.question import Question


class Asked(Protocol):
    """What columns are looked for in: a database, or a set of logs."""

    def paginate(self, question: Question, /, *, cancel: threading.Event | None = None) -> Any: ...

    def leaf_paths(self, question: Question, /, *, cancel: threading.Event | None = None) -> Sequence[Path]: ...


ROWS: Final = 1 << 13  # records of a batch, at most
_MOST_BYTES: Final = 64 << 20  # of the blocks of a batch, about, before it is made of fewer records
_FEWEST: Final = 64  # records of a batch, however large


class FieldBatches(Pages):
    """Pages of one FieldBatch each. The question selects fields. is_keyed: with the declared times of the records."""

    is_keyed = False
    _selector: Selector | None = None
    _keys: NDArray[np.float64] | None = None  # of the records that are read next

    def batches(self) -> Iterator[FieldBatch]:
        """All of them. Raises LogError, QueryError, DecodeError."""
        for page in iter(self.read, None):
            yield from page.data

    def _note(self, order: SomeOrder | None, seqs: NDArray[np.uint32]) -> None:
        self._keys = order.keys(seqs) if self.is_keyed and isinstance(order, Order) else None

    def _data(self, records: Records, found: Located) -> list[Any] | None:
        batch = self._batch(records, found)
        if batch is None or not len(batch):
            return None if batch is None else []
        if self._keys is not None:
            batch = batch.changed(keys=self._keys[:, np.isin(found.seqs, found.live)])
        return [batch]

    def _batch(self, records: Records, found: Located) -> FieldBatch | None:
        select = self._question.select
        assert select is not None
        if not select or not len(found.live):  # places alone, which indexes know
            return FieldBatch(select, found.live, found.offsets, [])
        if self._selector is None or self._selector.records is not records:
            self._selector = Selector(records, select)
        if self.portion > _FEWEST and _bytes_about(found.offsets, records.log.block_size) > _MOST_BYTES:
            self.portion = max(self.portion // 4, _FEWEST)
            return None
        return read_fields(self._manager, self._selector, found.live, found.offsets)


def _bytes_about(offsets: NDArray[np.int64], block_size: int) -> int:
    """How large the blocks are together in which these records lie, or less than _MOST_BYTES."""
    if int(offsets.max() - offsets.min()) < _MOST_BYTES:
        return 0
    return len(np.unique(offsets // block_size)) * block_size


class Passes:
    """An answer that is gone through once or more: each time the records that it had the first time, but for those that
    were deleted since. At most as many as the question's limit.
    """

    def __init__(
        self,
        manager: IndexManager,
        question: Question,
        cancel: threading.Event | None,
        tell: Callable[[Question, bool], object],
    ) -> None:
        self._manager, self._cancel, self._tell = manager, cancel, tell
        self._limit = question.limit
        self._question = question.changed(limit=portion_of(question), batch=None)

    def __call__(self) -> Iterator[FieldBatch]:
        return first_of(self._batches(), self._limit)

    def _batches(self) -> Iterator[FieldBatch]:
        pages = FieldBatches(self._manager, self._question, self._cancel, self._tell)
        page = pages.read()
        if page is not None and self._question.as_of is None:
            with suppress(LogError):  # it was compacted just now
                self._question = self._question.changed(as_of=pages.place())
        while page is not None:
            yield from page.data
            page = pages.read()


def columns_of(database: Asked, question: Question, cancel: threading.Event | None) -> Selection:
    """The fields that the question selects; else all that its records have, which are looked at for it.

    Raises QueryError where they have none, and where they have too many.
    """
    if question.select is not None:
        return question.select
    paths = database.leaf_paths(question, cancel=cancel)
    if not paths:
        first = database.paginate(question.changed(limit=1, batch=None), cancel=cancel).data
        if any(not isinstance(record, dict) for record in first):
            raise QueryError(
                "these records have no fields to make columns of",
                remedy=Remedy("go through them: for record in query", "--format ndjson writes them as they are"),
            )
    return named(paths)


def portion_of(question: Question) -> int:
    """How many records of it are looked at together."""
    return ROWS if question.limit is None else min(ROWS, question.limit)


def first_of(batches: Iterable[FieldBatch], most: int | None) -> Iterator[FieldBatch]:
    """The batches, until there are so many records in them."""
    left = most
    for batch in batches:
        if left is not None and len(batch) >= left:
            yield batch.first(left)
            return
        yield batch
        left = None if left is None else left - len(batch)
