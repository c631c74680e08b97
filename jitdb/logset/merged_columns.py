"""The fields of several logs as arrays, merged in the order of time or of arrival, some records at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jitdb.common.values import value_at, value_key
from jitdb.engine.reading.selecting import FieldBatch, joined_values
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.bundling import Part, Together
from jitdb.logset.member import fields_of

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

    from jitdb.engine.database import JITDB
    from jitdb.logset.asking import Asking
    from jitdb.logset.member import Member
    from jitdb.operators.question import Question

RowsOf: TypeAlias = "Callable[[list[Part], list[int], int, Unbundled], Iterator[FieldBatch]]"


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
        own = [ranks.get(path, -1) for path in member.paths]
        batches = of_one(db, part, asked, self._cancel) if end else iter(())
        return _Stream(batches, lambda batch: self._order(batch, of_logs(member, own, batch.offsets)))

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


# --- of one log, or of files that are asked together ----------------------------------------------------------------


def of_logs(member: Member, values: list[int], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """What there is for the log of each record, of one for each log."""
    begins = np.array(member.begins, np.int64)[: len(values)]
    return np.array(values, np.int64)[np.searchsorted(begins, offsets, "right") - 1]


def of_one(db: JITDB, part: Part, asked: Question, cancel: threading.Event | None) -> Iterator[FieldBatch]:
    """The batches of one log, or of several that are asked together, with the fields that the paths give."""
    member, select = part.member, asked.select or ()
    logs = [fields_of(path) for path in member.paths]
    given = next(log for log, path in zip(logs, member.paths, strict=True) if path)  # as all have that are asked
    own = tuple((name, path) for name, path in select if path[0] not in given)
    question = asked.changed(db=db, operation=part.asked, select=own)
    for batch in db.batches_to_merge(question, cancel):
        fields = iter(batch.fields)
        numbers = of_logs(member, list(range(len(logs))), batch.offsets)
        found = [shared(logs, path, numbers) if path[0] in given else next(fields) for _, path in select]
        yield FieldBatch(select, batch.seqs, batch.offsets, found, batch.keys)


def shared(logs: Sequence[Mapping[str, Any]], path: Any, numbers: NDArray[np.int64]) -> FieldValues:
    """The value of a field that the path of each record's log gives; `numbers`: which of the logs it is."""
    return chosen(FieldValues.of_keys([value_key(value_at(dict(log), path)) for log in logs]), numbers)
