"""The columns of several logs as one table: each log's in its order, then all put in the order of time at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.values import value_at, value_key
from jitdb.engine.reading.arrow_tables import ArrowAnswer
from jitdb.engine.reading.selecting import FieldBatch
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    import threading

    import pyarrow as pa
    from numpy.typing import NDArray

    from jitdb.engine.database import JITDB
    from jitdb.engine.declared_time import Times
    from jitdb.logset.asking import Asking
    from jitdb.logset.bundling import Part
    from jitdb.operators.question import Question


class SetColumns(ArrowAnswer):
    """An answer of several logs, in the order of time or of arrival. As a table no record of it is an object.

    question: selects fields, and is about all records that match
    merged:   the batches in order, a record after the other: what is streamed
    """

    def __init__(
        self,
        question: Question,
        asking: Asking,
        merged: Callable[[], Iterator[FieldBatch]],
        times: Times | None,
        schema: pa.Schema | None,
        cancel: threading.Event | None,
    ) -> None:
        assert question.select is not None
        super().__init__(question.select, merged, times, schema)
        self._question, self._asking, self._cancel = question, asking, cancel
        self._keys: list[NDArray[np.float64]] = []
        self._whole = ArrowAnswer(question.select, self._each, times, schema)

    def table(self) -> pa.Table:
        """All of it. Raises as ArrowAnswer.table() does."""
        table, question = self._whole.table(), self._question
        places = np.arange(len(table))
        if question.order is True and self._keys:
            hi, lo = np.concatenate(self._keys, axis=1)
            places = np.lexsort([lo, hi, ~np.isnan(hi)])  # which is stable: of one time, by paths and places
        if question.descending:
            places = places[::-1]
        return table.take(places) if question.order is True or question.descending else table

    def _each(self) -> Iterator[FieldBatch]:
        self._keys = []
        asking, asked = self._asking, self._question.changed(descending=False)
        for part in asking.parts(asked.operation):
            with asking.using(part.member) as db:
                for batch in _of_one(db, part, asked, self._cancel):
                    if batch.keys is not None:
                        self._keys.append(batch.keys)
                    yield batch


def _of_one(db: JITDB, part: Part, asked: Question, cancel: threading.Event | None) -> Iterator[FieldBatch]:
    """The batches of one log, with the fields that its path gives."""
    shared, select = part.member.fields, asked.select or ()
    own = tuple((name, path) for name, path in select if path[0] not in shared)
    question = asked.changed(db=db, operation=part.operation, select=own)
    for batch in db.batches_to_merge(question, cancel):
        fields = iter(batch.fields)
        found = [constant(shared, path, len(batch)) if path[0] in shared else next(fields) for _, path in select]
        nowhere = np.full(len(batch), -1)
        yield FieldBatch(select, nowhere, nowhere, found, batch.keys)


def constant(shared: Mapping[str, Any], path: Any, count: int) -> FieldValues:
    """The same value for `count` records."""
    return chosen(FieldValues.of_keys([value_key(value_at(dict(shared), path))]), np.zeros(count, np.int64))
