"""The answers of several logs as one, in the order of time or by fields: page by page, or with the records around them.

Each log's pages come in its order with what orders them (Pages.times), so a merge of all is in order: by time, among
equal times by the logs' paths, then by the place in the log; descending is the reverse. By arrival, one log comes after
the other: all times are equal. A field that all records of a log share, by its path, is left out where that log sorts,
and put in between. A log need not stay open between two of its pages: one that was closed meanwhile is asked for the
rest, as of where it ended when it was asked first. Files that are asked together lie in their bundle by their paths, so
the order there is that of the set. Where one of them changes meanwhile, each is asked for its own rest.

The records around an answer are of its own log. So the answers are found first, as places in the order of all logs;
then each log says what stands around its own, and the passages of all come in the order of the first answer in each.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.values import value_at
from jitdb.engine.reading.paging import Page, PagesOf
from jitdb.errors import LogError, QueryError
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.asking import Asking
from jitdb.logset.bundling import Part, Together
from jitdb.logset.member import Member
from jitdb.operators.nodes.positions import offsets
from jitdb.operators.nodes.selection import selected
from jitdb.operators.passages import Passages, Seen
from jitdb.operators.question import Question

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.paging import Pages

_AT_ONCE: Final = 1000  # records of one log that are read at once, at most
_HELD: Final = 1 << 15  # records of all logs that are in memory, about
_FIRST: Final = 4  # a log's first page is this part of its share: many logs give no second one
_GROWTH: Final = 4


class Place(NamedTuple):
    """Where a record is, in a set of logs: what `as_offsets` gives."""

    path: str
    offset: int


class Stream(Iterator[tuple[Any, Any]]):
    """The answer of one log, or of files that are asked together, as pairs: what orders a record among all logs (of
    which the path of its log is the last), and what is made of the record.

    parts: how many logs are asked
    """

    def __init__(
        self,
        asking: Asking,
        part: Part,
        question: Question,
        cancel: threading.Event | None,
        finish: Callable[[Any, Member], Any],
        parts: int,
    ) -> None:
        self.total = 0
        self._asking, self._member, self._cancel, self._finish = asking, part.member, cancel, finish
        self._part, self._whole, self._parts = part, question, parts
        self._apart: Iterator[tuple[Any, Any]] | None = None  # the rest of files that were asked together
        self._shared = shared_places(question, part.member)
        question = without(question, self._shared)
        self._is_timed = question.order is not False
        wanted = question.start_from + question.portion
        self._most = min(_AT_ONCE, max(_HELD // parts, 16))
        first = min(wanted, max(self._most // _FIRST, 1)) if parts > 1 else min(wanted, _AT_ONCE)
        self._question = question.changed(operation=part.asked, start_from=0, limit=first, batch=None)
        self._db: JITDB | None = None
        self._pages: Pages | None = None
        self._place = ""
        self._given = 0  # records of the pages that were read
        self._given_of = Counter[str]()  # the same, by the paths of their logs
        self._records: list[Any] = []  # of the page in hand that are still to come, the next one last

    def begin(self, db: JITDB) -> None:
        """Read the first page, which tells how many records there are. Raises what JITDB.pages raises."""
        pages = self._asked(db, self._question)
        self._read(pages)
        if self._given < self.total:
            self._place = pages.place()
            self._db, self._pages = db, pages

    def _asked(self, db: JITDB, question: Question) -> Pages:
        return db.pages_to_merge(question.changed(db=db), self._cancel)

    def _read(self, pages: Pages) -> None:
        page = pages.read()
        if page is None:
            self._given = self.total
            return
        self._given, self.total = page.next_seq, page.total
        times = pages.times if self._is_timed else [()] * len(page.data)
        if self._shared:
            times = [with_shared(when, self._shared) for when in times]
        places = list(self._member.places(pages.offsets))
        data = [offset for _, offset in places] if self._question.as_offsets else page.data
        made = [
            ((when, member.path), self._finish(record, member))
            for when, record, (member, _) in zip(times, data, places, strict=True)
        ]
        self._given_of.update(member.path for member, _ in places)
        self._records = made[::-1]

    def __next__(self) -> tuple[Any, Any]:
        if not self._records and self._apart is None and self._given < self.total:
            try:
                self._go_on()
            except Unbundled as error:
                if not isinstance(self._member, Together):
                    raise
                self._apart = merged(self._of_files(self._member, error), self._whole.descending)
        if self._apart is not None:
            return next(self._apart)
        if not self._records:
            raise StopIteration
        return self._records.pop()  # type: ignore[no-any-return]

    def _of_files(self, together: Together, error: Unbundled) -> list[Iterator[tuple[Any, Any]]]:
        """The rests of the files, as they were when they were asked together."""
        streams, rests = list[Stream](), list[Iterator[tuple[Any, Any]]]()
        for member, now, size in _followed(together, error):
            part = Part(now, self._part.operation)
            stream = stream_to(size, self._asking, part, self._whole, self._cancel, self._finish, self._parts)
            streams.append(stream)
            rests.append(islice(stream, self._given_of[member.path], None))
        if sum(stream.total for stream in streams) != self.total:
            raise changed(self._member.path) from error
        return rests

    def _go_on(self) -> None:
        with self._asking.using(self._member) as db:
            if self._pages is None or db is not self._db:
                self._pages, self._db = self._rest(db), db
            self._pages.portion = min(self._most, self._pages.portion * _GROWTH)
            self._read(self._pages)

    def _rest(self, db: JITDB) -> Pages:
        """The rest of the answer, of a log that was closed since."""
        asked = self._question.changed(as_of=self._place, start_from=self._given)
        try:
            pages = self._asked(db, asked)
            is_same = db.count(asked.operation, as_of=self._place) == self.total
        except QueryError as error:
            raise changed(self._member.path) from error
        if not is_same:
            raise changed(self._member.path)
        return pages


def changed(path: str) -> LogError:
    return LogError(
        "it was not open while its records were read page by page, for there are many logs, and was changed meanwhile",
        path=path,
        remedy="ask again",
    )


def stream_to(
    end: int,
    asking: Asking,
    part: Part,
    question: Question,
    cancel: threading.Event | None,
    finish: Callable[[Any, Member], Any],
    parts: int,
) -> Stream:
    """The answer of one log as of where it ended then; it has begun."""
    stream = Stream(asking, part, question.changed(as_of=end - 1), cancel, finish, parts)
    with asking.using(part.member) as db:
        stream.begin(db)
    return stream


def _followed(together: Together, error: Unbundled) -> Iterator[tuple[Member, Member, int]]:
    """The files that were asked together, each with what it is now and how many bytes of it were asked."""
    for member, there in together.followed():
        if there is None:
            raise changed(together.path) from error
        yield member, *there


def rests(
    asking: Asking,
    parts: Sequence[Part],
    ends: Sequence[int],
    total: int,
    question: Question,
    cancel: threading.Event | None,
    finish: Callable[[Any, Member], Any],
    error: Unbundled,
) -> list[Stream]:
    """Streams of the answer of these parts as of where they ended, file by file; of `total` records, as it was then."""
    there: list[tuple[Part, int]] = []
    for part, end in zip(parts, ends, strict=True):
        if isinstance(part.member, Together):
            there += [(Part(now, part.operation), size) for _, now, size in _followed(part.member, error)]
        else:
            there.append((part, end))
    found = [stream_to(end, asking, part, question, cancel, finish, len(there)) for part, end in there]
    if sum(stream.total for stream in found) != total:
        raise changed(error.path or parts[0].member.path) from error
    return found


class MergedPages(PagesOf):
    """See operators.question.Pages. `begin` makes a stream for each log; `tell` is called with whether there is no
    answer, once the streams know.
    """

    def __init__(
        self, question: Question, begin: Callable[[], list[Stream]], tell: Callable[[Question, bool], object]
    ) -> None:
        self._question = question
        self._tell = tell
        self._begin = begin
        self._total = 0
        self._given = question.start_from
        self._records: Iterator[Any] | None = None
        self._closed = False

    def read(self) -> Page | None:
        """The next page, never an empty one; None after the last, and after close()."""
        begin = time.perf_counter()
        if self._closed:
            return None
        if self._records is None:
            self._records = islice(self._merged(), self._question.start_from, None)
            self._tell(self._question, not self._total)
        data = list(islice(self._records, self._question.portion))
        self._given += len(data)
        if not data:
            self.close()
            return None
        return Page(data, self._total, self._given, 1e3 * (time.perf_counter() - begin), self._question.select)

    def close(self) -> None:
        self._closed = True
        self._records = None

    @property
    def total(self) -> int:
        """How many records the answer has, skipped ones too; known once a page was read."""
        return self._total

    def _merged(self) -> Iterator[Any]:
        descending = self._question.descending
        streams = self._begin()
        self._total = sum(stream.total for stream in streams)
        return (record for _, record in merged(streams, descending))


def merged(streams: Sequence[Iterator[tuple[Any, Any]]], descending: bool) -> Iterator[tuple[Any, Any]]:
    return heapq.merge(*streams, key=itemgetter(0), reverse=descending)


def shared_places(question: Question, member: Member) -> dict[int, Any]:
    """The values by which all records of a log sort alike, by the number of the sort key."""
    from jitdb.engine.answering.order import place_of

    by = question.order
    keys = () if isinstance(by, bool) else by
    return {
        number: place_of(value_at(dict(member.fields), key.path), key, question.descending)
        for number, key in enumerate(keys)
        if key.path[0] in member.fields
    }


def with_shared(times: tuple[Any, ...], shared: Mapping[int, Any]) -> tuple[Any, ...]:
    """What orders a record of a log among all, from what orders it there."""
    found = list(times)
    for at, place in shared.items():
        found.insert(at, place)
    return tuple(found)


def without(question: Question, shared: Mapping[int, Any]) -> Question:
    """The question, sorted by the other fields only."""
    by = question.order
    if isinstance(by, bool) or not shared:
        return question
    rest = tuple(key for number, key in enumerate(by) if number not in shared)
    return question.changed(sort_by=rest or "arrival")


# --- among the records around them -----------------------------------------------------------------------------------


class _Passage(NamedTuple):
    """Where a passage lies. `rank`: of its first answer, among those of all logs."""

    rank: int
    member: Member
    generation: int
    seen: list[Seen]  # offsets


class SetPassages(Passages):
    """The passages around the records on these pages of places, found and read when they are asked for.

    finish: what is made of each record, or offset, of a log

    Raises LogError, also where a log was compacted or replaced since its passages were found.
    """

    def __init__(
        self,
        pages: MergedPages,
        question: Question,
        asking: Asking,
        finish: Callable[[Any, Member], Any],
        cancel: threading.Event,
    ) -> None:
        super().__init__(cancel)
        self._pages, self._question, self._asking, self._finish = pages, question, asking, finish
        self._places: list[Place] | None = None
        self._coming = self._all()

    def __next__(self) -> list[Seen]:
        return next(self._coming)

    @property
    def total(self) -> int:
        self._answers()
        return self._pages.total

    def _answers(self) -> list[Place]:
        if self._places is None:
            if self._question.limit is None:
                self._places = [place for page in iter(self._pages.read, None) for place in page.data]
            else:
                self._places = list(getattr(self._pages.read(), "data", []))
                self._pages.close()
        return self._places

    def _all(self) -> Iterator[list[Seen]]:
        ranks: dict[str, dict[int, int]] = {}
        for rank, place in enumerate(self._answers()):
            ranks.setdefault(place.path, {})[place.offset] = rank
        found: list[_Passage] = []
        for path, db in self._asking.each(ranks):
            found += _found(db, Member(path), self._question, ranks[path])
        for passage in sorted(found):
            with self._asking.using(passage.member) as db:
                yield _read(db, passage, self._question, self._finish)


def _found(db: JITDB, member: Member, question: Question, ranks: dict[int, int]) -> Iterator[_Passage]:
    context = question.context
    assert context is not None
    if context.among is not None:
        context = context._replace(among=context.among.narrowed(member.fields))
    generation = db.log.generation
    asked = question.changed(
        db=db, operation=offsets(list(ranks)), context=context, as_offsets=True, start_from=0, limit=None
    )
    for seen in db.context(asked):
        rank = min(ranks[each.place] for each in seen if each.is_match)
        yield _Passage(rank, member, generation, seen)


def _read(db: JITDB, passage: _Passage, question: Question, finish: Callable[[Any, Member], Any]) -> list[Seen]:
    log, member = db.log, passage.member
    if log.generation != passage.generation:
        from jitdb.engine.reading.paging import changed_meanwhile

        raise changed_meanwhile(log)
    at = [Place(member.path, each.place) for each in passage.seen]
    if question.as_offsets:
        return [Seen(place, each.is_match, place) for place, each in zip(at, passage.seen, strict=True)]
    select = question.select

    def decode(data: bytes) -> Any:
        record = log.codec.decode(data)
        return record if select is None else selected(record, select)

    offsets_at = [place.offset for place in at]
    found = log.get_many_text(offsets_at) if question.as_raw else log.get_many_raw(offsets_at)
    return [
        Seen(finish(data if question.as_raw else decode(data), member), each.is_match, place)
        for data, each, place in zip(found, passage.seen, at, strict=True)
        if data is not None
    ]
