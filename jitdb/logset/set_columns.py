"""The columns of several logs as one table of Arrow: each log's in its order, then all put in the order of time at
once; or a log after the other, for as many as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.engine.reading.arrow_tables import ArrowAnswer, Column, note_all
from jitdb.engine.reading.field_batches import portion_of
from jitdb.engine.reading.selecting import FieldBatch
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.bundling import Part, Together
from jitdb.logset.member import fields_of
from jitdb.logset.merged_columns import of_logs, of_one, shared
from jitdb.logset.passing import UNREADABLE

if TYPE_CHECKING:
    import threading

    import pyarrow as pa
    from numpy.typing import NDArray

    from jitdb.engine.declared_time import Times
    from jitdb.engine.reading.known_columns import Columns
    from jitdb.logset.asking import Asking
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
        self._ranks: list[NDArray[np.int64]] = []  # of the paths of their logs
        self._parts: list[Part] = []
        self._whole = ArrowAnswer(question.select, self._each, times, schema)

    def table(self) -> pa.Table:
        """All of it. Raises as ArrowAnswer.table() does."""

        def asked(parts: list[Part]) -> pa.Table:
            self._parts = parts
            return self._whole.table()

        question = self._question
        table = self._asking.of_together(question, asked, in_order=True)
        if not len(table):
            return table
        orders = [np.concatenate(self._ranks)]
        if question.order is True and self._keys:
            hi, lo = np.concatenate(self._keys, axis=1)
            orders += [lo, hi, ~np.isnan(hi)]
        places = np.lexsort(orders)  # which is stable: of one path, by places
        return table.take(places[::-1] if question.descending else places)

    def _each(self) -> Iterator[FieldBatch]:
        self._keys, self._ranks = [], []
        asking, asked = self._asking, self._question.changed(descending=False)
        ranks = {member.path: rank for rank, member in enumerate(asking.members)}
        for part in self._parts:
            member = part.member
            with asking.using(member) as db:
                for batch in of_one(db, part, asked, self._cancel):
                    self._ranks.append(of_logs(member, [ranks.get(path, -1) for path in member.paths], batch.offsets))
                    if batch.keys is not None:
                        self._keys.append(batch.keys)
                    yield batch
                if isinstance(member, Together):
                    member.check(db)


def constant(log: Mapping[str, Any], path: Any, count: int) -> FieldValues:
    """The same value for `count` records."""
    return shared([log], path, np.zeros(count, np.int64))


# --- a log after the other -------------------------------------------------------------------------------------------


def batches_by_log(
    asking: Asking, question: Question, schema: pa.Schema, times: Times, cancel: threading.Event | None
) -> Iterator[pa.RecordBatch]:
    """The selected fields of all that matches, of one log, or of small ones that are asked together, after the other.

    Files that changed while they were asked together are asked one by one, so what is read of these is in memory first.
    """
    asked = question.changed(limit=portion_of(question), batch=None)
    ahead = asking.together(asked)[::-1]
    while ahead:
        part = ahead.pop()
        try:
            batches = _of_part(asking, part, asked, schema, times, cancel)
            if isinstance(part.member, Together):
                yield from list(batches)
            else:
                yield from batches
        except Unbundled:
            assert isinstance(part.member, Together)
            ahead += [Part(member, question.operation.narrowed(member.fields)) for member in part.member.members[::-1]]
        except UNREADABLE as error:
            if not asking.passed.take(part.member, error):
                raise
            asking.open.drop(part.member)


def _of_part(
    asking: Asking, part: Part, asked: Question, schema: pa.Schema, times: Times, cancel: threading.Event | None
) -> Iterator[pa.RecordBatch]:
    assert asked.select is not None
    with asking.using(part.member) as db:
        answer = ArrowAnswer(asked.select, lambda: of_one(db, part, asked, cancel), times, schema)
        yield from answer.reader()
        if isinstance(part.member, Together):
            part.member.check(db)


def with_shared(found: Columns, paths: Sequence[str], times: Times, labelled: bool) -> Columns:
    """The columns of logs at these paths, with the fields that the paths give: they are seen in the place of the
    records' own. labelled: also those that no record has
    """
    logs = [fields_of(path) for path in paths if path]
    for name in dict.fromkeys(name for log in logs for name in log) if found else ():
        path = (name,)
        if labelled or path in found:
            column, nowhere = Column(name, path, times), np.full(len(logs), -1)
            values = shared(logs, path, np.arange(len(logs)))
            note_all([column], FieldBatch(((name, path),), nowhere, nowhere, [values]))
            if path in found and not all(name in log for log in logs):
                found[path].join(column)
            else:
                found[path] = column
    return found


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """The columns of several logs as those of one."""
    joined: Columns = {}
    for columns in parts:
        for path, column in columns.items():
            if path in joined:
                joined[path].join(column)
            else:
                joined[path] = column
    for above in {path[:size] for path in joined for size in range(1, len(path))} & set(joined):
        joined[above].note_maps()  # of a log that has no other values there
    return joined
