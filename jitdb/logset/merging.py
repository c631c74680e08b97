"""The answers of several logs as one, in the order of time, page by page.

Each log's pages come in its order with what orders them (Pages.times), so a merge of all is in order: by time, among
equal times by the logs' paths, then by the place in the log; descending is the reverse. By arrival, one log comes after
the other.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from jitdb.engine.reading.page import Page
from jitdb.logset.members import Member
from jitdb.logset.open_logs import OpenLogs
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.question import Question

_PORTION: Final = 1000  # records of one log that are read at once, at most


class Place(NamedTuple):
    """Where a record is, in a set of logs: what `as_offsets` gives."""

    path: str
    offset: int


class Part(NamedTuple):
    """What one log is asked."""

    member: Member
    operation: Operation


class MergedPages(Iterator[Page]):
    """See operators.question.Pages. The logs are open until it is at its end, or closed."""

    def __init__(
        self,
        logs: OpenLogs,
        parts: list[Part],
        question: Question,
        cancel: threading.Event | None,
        finish: Callable[[Any, Member], Any],
    ) -> None:
        self._logs, self._parts, self._cancel = logs, parts, cancel
        self._question = question
        self._finish = finish  # what is made of a record
        self._total = 0
        self._given = question.start_from
        self._records: Iterator[Any] | None = None
        self._held = ExitStack()
        self._closed = False

    def __next__(self) -> Page:
        page = self.read()
        if page is None:
            raise StopIteration
        return page

    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last, and after close()."""
        begin = time.perf_counter()
        if self._closed:
            return None
        if self._records is None:
            self._records = islice(self._merged(), self._question.start_from, None)
        data = list(islice(self._records, self._question.portion))
        self._given += len(data)
        if not data:
            self.close()
            return None
        return Page(data, self._total, self._given, 1e3 * (time.perf_counter() - begin))

    def close(self) -> None:
        self._closed = True
        self._held.close()

    @property
    def total(self) -> int:
        """How many records the answer has, before any is left out; known once a page was read."""
        return self._total

    def _merged(self) -> Iterator[Any]:
        descending = self._question.descending
        parts = reversed(self._parts) if descending else self._parts
        if self._question.sort_by == "arrival":
            streams = [self._stream(part, number) for number, part in enumerate(parts)]
            return (record for _, record in chain.from_iterable(streams))
        streams = [self._stream(part, number) for number, part in enumerate(parts)]
        # Of equal keys heapq.merge takes those of the earlier stream first, in both directions.
        merged = heapq.merge(*streams, key=_key, reverse=descending)
        return (record for _, record in merged)

    def _stream(self, part: Part, number: int) -> Iterator[tuple[Any, Any]]:
        """The records of one log with their times. Its first page is read at once, which tells how many there are."""
        db = self._held.enter_context(self._logs.using(part.member))
        limit = min(self._question.start_from + self._question.portion, _PORTION)
        asked = self._question.changed(db=db, operation=part.operation, start_from=0, limit=limit, batch=None)
        pages = db.pages(asked, cancel=self._cancel)
        pages.is_timed = self._question.sort_by != "arrival"
        first = pages.read()
        if first is None:
            return iter(())
        self._total += first.total

        def timed() -> Iterator[tuple[Any, Any]]:
            page: Page | None = first
            while page is not None:
                times: Sequence[Any] = pages.times or [None] * len(page.data)
                for when, record in zip(times, page.data, strict=True):
                    yield when, self._finish(record, part.member)
                page = pages.read()

        return timed()


def _key(timed: tuple[Any, Any]) -> Any:
    return timed[0]
