"""The columns of several logs as one: as a table, each log's in its order, then all put in the order of time at once;
merged in that order, some records at a time; or a log after the other, for as many as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jitdb.common.values import value_at, value_key
from jitdb.engine.reading.arrow_tables import ArrowAnswer, Column, note_all
from jitdb.engine.reading.field_batches import portion_of
from jitdb.engine.reading.selecting import FieldBatch, joined_values
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.bundling import Part, Together
from jitdb.logset.member import fields_of
from jitdb.logset.passing import UNREADABLE

if TYPE_CHECKING:
    import threading

    import pyarrow as pa
    from numpy.typing import NDArray

    from jitdb.engine.database import JITDB
    from jitdb.engine.declared_time import Times
    from jitdb.engine.reading.known_columns import Columns
    from jitdb.logset.asking import Asking
    from jitdb.logset.member import Member
    from jitdb.operators.question import Question

RowsOf: TypeAlias = "Callable[[list[Part], list[int], int, Unbundled], Iterator[FieldBatch]]"


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
                for batch in _of_one(db, part, asked, self._cancel):
                    self._ranks.append(_of_logs(member, [ranks.get(path, -1) for path in member.paths], batch.offsets))
                    if batch.keys is not None:
                        self._keys.append(batch.keys)
                    yield batch
                if isinstance(member, Together):
                    member.check(db)


def _of_logs(member: Member, values: list[int], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """What there is for the log of each record, of one for each log."""
    begins = np.array(member.begins, np.int64)[: len(values)]
    return np.array(values, np.int64)[np.searchsorted(begins, offsets, "right") - 1]


def _of_one(db: JITDB, part: Part, asked: Question, cancel: threading.Event | None) -> Iterator[FieldBatch]:
    """The batches of one log, or of several that are asked together, with the fields that the paths give."""
    member, select = part.member, asked.select or ()
    logs = [fields_of(path) for path in member.paths]
    given = next(log for log, path in zip(logs, member.paths, strict=True) if path)  # as all have that are asked
    own = tuple((name, path) for name, path in select if path[0] not in given)
    question = asked.changed(db=db, operation=part.asked, select=own)
    for batch in db.batches_to_merge(question, cancel):
        fields = iter(batch.fields)
        numbers = _of_logs(member, list(range(len(logs))), batch.offsets)
        found = [shared(logs, path, numbers) if path[0] in given else next(fields) for _, path in select]
        yield FieldBatch(select, batch.seqs, batch.offsets, found, batch.keys)


def shared(logs: Sequence[Mapping[str, Any]], path: Any, numbers: NDArray[np.int64]) -> FieldValues:
    """The value of a field that the path of each record's log gives; `numbers`: which of the logs it is."""
    return chosen(FieldValues.of_keys([value_key(value_at(dict(log), path)) for log in logs]), numbers)


def constant(log: Mapping[str, Any], path: Any, count: int) -> FieldValues:
    """The same value for `count` records."""
    return shared([log], path, np.zeros(count, np.int64))


# --- in order --------------------------------------------------------------------------------------------------------


class MergedColumns:
    """The selected fields of all that matches, in the order of time or of arrival, some records at a time.

    question: asks for all records that match, `portion_of` it at a time
    rows:     the same as records in order, of a question, and of what is left of an answer; for many logs, and where
              files that are asked together change meanwhile
    """

    def __init__(self, question: Question, asking: Asking, rows: RowsOf, cancel: threading.Event | None) -> None:
        assert isinstance(question.order, bool)
        self._question, self._asking, self._rows, self._cancel = question, asking, rows, cancel
        self._given = 0

    def batches(self, parts: list[Part], ends: list[int]) -> Iterator[FieldBatch]:
        """parts: what each log is asked
        ends:  how many bytes each had then
        """
        try:
            with ExitStack() as stack:
                streams = [self._stream(part, end, stack) for part, end in zip(parts, ends, strict=True)]
                for batch in _in_order([stream for stream in streams if stream.load()]):
                    left = self._question.start_from - self._given
                    self._given += len(batch)
                    if left < len(batch):
                        yield batch.part(slice(max(left, 0), None))
        except Unbundled as error:
            yield from self._rows(parts, ends, max(self._given, self._question.start_from), error)

    def _stream(self, part: Part, end: int, stack: ExitStack) -> _Stream:
        member, asking = part.member, self._asking
        db = stack.enter_context(asking.using(member))
        asked = self._question.changed(start_from=0)
        if not isinstance(member, Together):
            asked = asked.changed(as_of=end - 1)
        ranks = {member.path: rank for rank, member in enumerate(asking.members)}
        of_logs = [ranks.get(path, -1) for path in member.paths]
        batches = _of_one(db, part, asked, self._cancel) if end else iter(())
        return _Stream(batches, lambda batch: self._order(batch, _of_logs(member, of_logs, batch.offsets)))

    def _order(self, batch: FieldBatch, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """What orders records among those of all logs: it ascends, the first row first."""
        rows = [ranks]
        if self._question.order:
            hi, lo = batch.keys if batch.keys is not None else np.full((2, len(batch)), np.nan)
            known = ~np.isnan(hi)
            rows = [known, np.where(known, hi, 0), np.where(known, lo, 0), ranks]
        found = np.array(rows, np.float64)
        return -found if self._question.descending else found


class _Stream:
    """The batches of one log, of which one is in hand: its records that were not given yet, and what orders them."""

    def __init__(self, batches: Iterator[FieldBatch], order: Callable[[FieldBatch], NDArray[np.float64]]) -> None:
        self._batches, self._order_of = batches, order

    def load(self) -> bool:
        """Take the next batch in hand, if there is one."""
        batch = next(self._batches, None)
        if batch is not None:
            self.batch, self.order = batch, self._order_of(batch)
        return batch is not None

    def taken_to(self, last: tuple[float, ...]) -> tuple[FieldBatch, NDArray[np.float64]] | None:
        """Give the records that are not behind this place."""
        is_before, is_equal = (np.full(len(self.batch), flag) for flag in (False, True))
        for row, end in zip(self.order, last, strict=True):
            is_before |= is_equal & (row < end)
            is_equal &= row == end
        count = int(np.count_nonzero(is_before | is_equal))
        if not count:
            return None
        found = self.batch.first(count), self.order[:, :count]
        self.batch, self.order = self.batch.part(slice(count, None)), self.order[:, count:]
        return found


def _in_order(streams: list[_Stream]) -> Iterator[FieldBatch]:
    """What streams with a batch in hand give, in order."""
    while streams:
        # Up to here nothing is missing: what a stream gives later is behind its batch.
        last = min(tuple(stream.order[:, -1].tolist()) for stream in streams)
        taken = [found for stream in streams if (found := stream.taken_to(last)) is not None]
        yield taken[0][0] if len(taken) == 1 else _joined(*zip(*taken, strict=True))
        streams = [stream for stream in streams if len(stream.batch) or stream.load()]


def _joined(batches: Sequence[FieldBatch], orders: Sequence[NDArray[np.float64]]) -> FieldBatch:
    """Several batches as one, in order."""
    ordered = np.lexsort(np.concatenate(orders, axis=1)[::-1])
    places = np.empty(len(ordered), np.int64)
    places[ordered] = np.arange(len(ordered))
    ends = np.cumsum([len(batch) for batch in batches])
    at = np.split(places, ends[:-1])
    select, nowhere = batches[0].selection, np.full(len(ordered), -1)
    fields = [
        joined_values([batch.values(number) for batch in batches], at, len(ordered)) for number in range(len(select))
    ]
    return FieldBatch(select, nowhere, nowhere, fields)


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
        answer = ArrowAnswer(asked.select, lambda: _of_one(db, part, asked, cancel), times, schema)
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
