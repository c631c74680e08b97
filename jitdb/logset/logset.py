"""A set of logs that is asked as one: counts add up, pages are merged in the order of time, live ones see new files.

Each log has its own indexes, beside it as always, so what one file gains or loses costs the others nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import chain
from operator import sub
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar

from jitdb.common.times import AUTO
from jitdb.engine.database import JITDB
from jitdb.engine.declared_time import Times
from jitdb.engine.face.asker import Asker
from jitdb.engine.hinting.warned import QuestionWarnings
from jitdb.errors import QueryError
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.asking import Asking, Counts
from jitdb.logset.bundling import Bundles, Part, Together
from jitdb.logset.evidence import SAMPLED, SetEvidence
from jitdb.logset.keeping_up import Following
from jitdb.logset.member import Member, Where, fields_of, find_members
from jitdb.logset.merging import MergedPages, Place, SetPassages, Stream, rests
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.selection import selected
from jitdb.operators.question import Question
from jitdb.operators.summaries.arithmetic.calendar import Window
from jitdb.operators.summaries.fields import Logs

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.display.parts import Display
    from jitdb.engine.answering.summarizing import LogView
    from jitdb.engine.face.asker import Asked, Cancel
    from jitdb.engine.following.follower import Follower
    from jitdb.engine.reading.arrow_tables import ArrowAnswer
    from jitdb.engine.reading.known_columns import Columns
    from jitdb.engine.reading.paging import Page
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.engine.sets import LogRecordSet
    from jitdb.engine.showing.explanation import Explanation, SetExplanation
    from jitdb.log.lines.windows import LineOpener
    from jitdb.log.source import LogSource
    from jitdb.logset.record_sets import LogSetRecordSet, SavedLogSets
    from jitdb.operators.nodes.selection import Selection
    from jitdb.operators.queries import Query
    from jitdb.operators.summaries.found import OfLog

T = TypeVar("T")

_OF_EACH: Final = 4  # records of a log in a sample, at least, where there are many logs
_AT_ONCE: Final = 1000  # records of an answer without a limit that are merged at a time
_SIDE_BY_SIDE: Final = 64  # logs whose columns are merged: of each a batch is in memory
_LOOKED_AT: Final = 20  # logs that a look at a question opens

AnyDatabase: TypeAlias = "JITDB | LogSet"


class LogSet(Asker):
    """Logs that can be asked as one. Thread-safe; the logs are opened read-only, when a question needs them.

    where:    files, patterns and folders (member.py); which files these are is looked up when the set is made, by
              refresh(), by live questions, and with `follow`
    open_log: opens one of them; by default as jitdb.open does, read-only
    lines, over: how files of lines are opened, and parts of them asked, while they are followed
    labelled: let each record that is a dict have the fields that its log's path gives: `_path`, and those of folders
              `name=value`
    threads:  that scan at the same time; 0 is one a core
    follow:   each question sees what came since the one before, without refresh(): new, rotated and removed files too

    Questions can ask for those fields in any case, and a log in which nothing can match by them is not opened. A
    record's own field of the same name is not seen by questions.

    Raises LogError where a file or folder is not there.
    """

    def __init__(
        self,
        where: Where | Iterable[Where],
        open_log: Callable[[Member], JITDB],
        *,
        lines: LineOpener | None = None,
        over: Callable[[LogSource], JITDB] = JITDB,
        bundles: Bundles | None = None,
        labelled: bool = False,
        threads: int = 0,
        progress: bool | None = None,
        follow: bool = False,
    ) -> None:
        self._where: list[Where] = [where] if isinstance(where, str | os.PathLike) else list(where)
        self._labelled = labelled
        self._lines, self._over = lines, over
        self._asking = Asking(self._where, partial(_without_warning, open_log), bundles, threads, progress)
        self._follows, self._following = follow, Following(self._asking)
        self._look, self._asking.tells_at_once = self._following.look, not follow
        self._warnings = QuestionWarnings(lambda: self.evidence(), None)
        self._counts = Counts()

    # --- answering -------------------------------------------------------------------------------------------------

    def _asked(self, question: Asked, settings: Mapping[str, Any], limit: int | None = None) -> Question:
        asked = super()._asked(question, settings, limit)
        if asked.as_of is not None:
            raise QueryError(
                "as_of() is a place in one log, and this asks several", remedy="ask that log: jitdb.open()"
            )
        return asked

    def _count(self, question: Question, cancel: Cancel) -> int:
        def count(db: JITDB, part: Part) -> int:
            return self._counts.asked(part, db.log, lambda: db.count(part.asked, cancel=cancel))

        def counted(parts: list[Part]) -> int:
            known = [(part, self._counts.of(part)) for part in parts]
            unknown = self._asking.of_each([part for part, found in known if found is None], count)
            return sum(unknown) + sum(found for _, found in known if found is not None)

        return self._held(lambda: self._asking.of_together(question, counted))

    def _held(self, ask: Callable[[], T]) -> T:
        """What `ask` gives; in a set that is kept up to date, of logs that kept their names meanwhile."""
        return self._following.held(ask) if self._follows else ask()

    def _summary(self, question: Question, cancel: Cancel) -> Any:
        """The counts of all logs added up. Fields that logs' paths give are counted, too."""
        summary = question.summary
        assert summary is not None

        def counted(parts: list[Part]) -> Any:
            def each(work: Callable[[LogView], T]) -> list[T]:
                def one(db: JITDB, part: Part) -> T:
                    own = question.changed(db=db, operation=part.asked)
                    return db.tally(own, summary, work, part.member.fields, cancel=cancel)

                return self._asking.of_each(parts, one, summary)

            window = self.times.window(question.operation) if summary.has_steps else Window()
            settled = summary.settled(each(summary.survey) if summary.surveys else [], window)
            return summary.result(each(lambda view: summary.count(view, settled)), settled)

        return self._held(lambda: self._asking.of_together(question, counted))

    def _page(self, question: Question, cancel: Cancel) -> Page:
        from jitdb.engine.reading.paging import Page

        pages = self._pages(question if question.limit else question.changed(batch=_AT_ONCE), cancel)
        begin = time.perf_counter()
        found = [page for page in ([pages.read()] if question.limit else pages) if page is not None]
        pages.close()
        data = found[0].data if len(found) == 1 else [record for page in found for record in page.data]
        took = 1e3 * (time.perf_counter() - begin)
        return Page(data, pages.total, question.start_from + len(data), took, question.select)

    def _pages(
        self, question: Question, cancel: Cancel, finish: Callable[[Any, Member], Any] | None = None
    ) -> MergedPages:
        finish = finish or self._finishing(question)

        def begun(parts: list[Part]) -> list[Stream]:
            def one(db: JITDB, part: Part) -> Stream:
                stream = Stream(self._asking, part, question, cancel, finish, len(parts))
                stream.begin(db)
                return stream

            return self._asking.of_each(parts, one)

        def begin() -> list[Stream]:
            return self._asking.of_together(question, begun, in_order=True)

        return MergedPages(question, lambda: self._held(begin), self._tell)

    def _batches(self, question: Question, cancel: Cancel) -> Iterator[FieldBatch]:
        from jitdb.engine.reading.selecting import batch_of_rows
        from jitdb.logset.merged_columns import MergedColumns

        select = question.select
        assert select is not None

        def begun(parts: list[Part]) -> tuple[list[Part], list[tuple[int, int]]]:
            return parts, self._asking.of_each(parts, lambda db, part: (db.count(part.asked), db.log.durable_end))

        def rest(parts: list[Part], ends: list[int], given: int, error: Unbundled) -> Iterator[FieldBatch]:
            begin = partial(rests, self._asking, parts, ends, total, question, cancel, self._finishing(question), error)
            pages = MergedPages(question.changed(start_from=given), begin, lambda *_: None)
            return (batch_of_rows(select, page.data) for page in pages)

        if isinstance(question.order, bool):
            parts, known = self._held(lambda: self._asking.of_together(question, begun, in_order=True))
            total = sum(count for count, _ in known)
            if len(parts) <= _SIDE_BY_SIDE:
                self._tell(question, not total)
                columns = MergedColumns(question, self._asking, rest, cancel)
                yield from columns.batches(parts, [end for _, end in known])
                return
        for page in self._pages(question, cancel):
            yield batch_of_rows(select, page.data)

    def _leaf_paths(self, question: Question, cancel: Cancel) -> list[Path]:
        """Without a limit those too of the records that `start_from` skips."""
        from jitdb.display.columns import leaf_fields

        if question.limit is not None:
            return list(leaf_fields(self._page(question.changed(batch=None, select=None), cancel).data).values())

        def of_one(db: JITDB, part: Part) -> list[Path]:
            own = db.leaf_paths(question.changed(db=db, operation=part.asked, start_from=0), cancel=cancel)
            names = dict.fromkeys(name for path in part.member.paths if path for name in fields_of(path))
            return [*own, *((name,) for name in names if own and self._labelled)]

        def asked(parts: list[Part]) -> list[list[Path]]:
            return self._asking.of_each(parts, of_one)

        found = self._held(lambda: self._asking.of_together(question, asked, in_order=True))
        return list(dict.fromkeys(path for paths in found for path in paths))

    def known_columns(self, times: Times, cancel: Cancel) -> Columns:
        """See table_columns()."""
        from jitdb.logset.set_columns import joined_columns, with_shared

        def asked(parts: list[Part]) -> list[Columns]:
            def of_one(db: JITDB, part: Part) -> Columns:
                return with_shared(db.known_columns(times, cancel), part.member.paths, times, self._labelled)

            return self._asking.of_each(parts, of_one)

        return joined_columns(self._held(lambda: self._asking.of_together(Question(), asked)))

    def _table_batches(self, question: Question, schema: Any, cancel: Cancel) -> Iterator[Any]:
        from jitdb.logset.set_columns import batches_by_log

        if self._count(question, cancel):  # which brings the indexes of many logs up to date at once
            yield from batches_by_log(self._asking, question, schema, self.times, cancel)

    def _arrow(
        self, question: Question, schema: Any, times: Times | None, places: Sequence[str], cancel: Cancel
    ) -> ArrowAnswer:
        from jitdb.engine.reading.arrow_tables import ArrowAnswer
        from jitdb.engine.reading.field_batches import first_of, portion_of
        from jitdb.logset.set_columns import SetColumns

        if places:
            raise QueryError("seqs and offsets are of one log, and this asks several", remedy="as_offsets() names both")
        assert question.select is not None
        portions, most = question.changed(limit=portion_of(question), batch=None), question.limit

        def merged() -> Iterator[FieldBatch]:
            return first_of(self._batches(portions, cancel), most)

        if most is not None or question.start_from or not isinstance(question.order, bool):  # not all that match
            return ArrowAnswer(question.select, merged, times, schema)
        return SetColumns(portions, self._asking, merged, times, schema, cancel)

    def _passages(self, question: Question, cancel: threading.Event) -> SetPassages:
        """Those of all logs in the order of their first answers."""
        assert question.context is not None
        asked = question.changed(as_offsets=True, context=question.context._replace(among=None))
        pages = self._pages(asked, cancel)
        return SetPassages(pages, question, self._asking, self._finishing(question), cancel)

    def _by_log(self, query: Query) -> Iterator[OfLog]:
        from jitdb.operators.summaries.found import OfLog

        asked = self._ready(query.question.changed(batch=_AT_ONCE), {})
        pages = self._pages(asked, None, lambda record, member: OfLog(member.path, record, member.fields))
        return (record for page in iter(pages.read, None) for record in page.data)

    def _feed(self, question: Question, cancel: Cancel) -> Follower:
        from jitdb.engine.following.followed import Files
        from jitdb.engine.following.follower import Follower
        from jitdb.log.columnar.table_file import kind_at, refuse_following
        from jitdb.log.objects.door import refuse_following_object

        finish, named = self._finishing(question), [place for place in self._where if os.path.isfile(place)]
        for place in self._where:
            refuse_following_object(place)
        for path in named:
            refuse_following(path, kind_at(path))
        find_members(self._where)  # what is named is there
        files = Files(
            lambda: [member.path for member in find_members(self._where, is_following=True)],
            frozenset(os.fspath(path) for path in named),
            self._lines, self._over, self._asking.opened,
            cache(lambda path: question.operation.narrowed(fields_of(path))),
            lambda record, path: finish(record, Member(path)), self._asking.open.most,
            may_tell=self._asking.passed.take_turn,
        )  # fmt: skip
        return Follower(question, files)

    def _record_set(self, question: Question, cancel: Cancel) -> LogSetRecordSet:
        from jitdb.logset.record_sets import LogSetRecordSet, set_of_places

        if question.limit is not None or question.start_from:
            page = self._page(question.changed(as_offsets=True, select=None), cancel)
            return set_of_places(self._asking, page.data)

        def one(db: JITDB, part: Part) -> tuple[str, LogRecordSet]:
            return part.member.path, db.record_set(part.operation, cancel=cancel)

        parts = self._held(lambda: self._asking.of_each(self._asking.parts(question.operation), one))
        return LogSetRecordSet(self._asking, dict(parts))

    def _firsts(self, question: Question, cancel: Cancel) -> tuple[LogSetRecordSet, int, int]:
        from jitdb.logset.record_sets import firsts_of_logs

        return self._held(lambda: firsts_of_logs(self._asking, question, cancel))

    @property
    def sets(self) -> SavedLogSets:
        """Sets of records that are kept under names; each log keeps its part."""
        from jitdb.logset.record_sets import SavedLogSets

        return SavedLogSets(self._asking)

    def _finishing(self, question: Question) -> Callable[[Any, Member], Any]:
        """The function that makes an answer of a record, or offset, of a log."""
        if question.as_offsets:
            return lambda offset, member: Place(member.path, offset)
        if question.as_raw:
            return lambda text, member: text
        select = question.select
        if select is not None:
            return lambda record, member: _with_shared(record, member, select)
        if self._labelled:
            return lambda record, member: {**record, **member.fields} if isinstance(record, dict) else record
        return lambda record, member: record

    # --- what there is to know -------------------------------------------------------------------------------------

    def _display(self) -> Display:
        from jitdb.logset.overview import overview

        return overview(self._asking, self.sample, lambda: self.times)

    def sample(self, count: int) -> list[Any]:
        """At most `count` live records: some of each log, or, of many logs, of some all over the set."""
        sampled = self._sampled(count)
        ends = [number * count // max(len(sampled), 1) for number in range(len(sampled) + 1)]
        shares = map(sub, ends[1:], ends)
        found = self._asking.of_readable(sampled, lambda db: db.sample(next(shares)))
        records = list(chain.from_iterable(found))
        self._asking.tell()
        return records

    def _sampled(self, count: int) -> list[Member]:
        """The logs that a sample of so many records is taken from."""
        members = self._asking.members
        most = min(len(members), max(SAMPLED, count // _OF_EACH))
        return [members[number * len(members) // most] for number in range(most)]

    def _logs_looked_at(self, sample: int | None) -> Logs:
        every, passed = self._asking.members, self._asking.passed.errors
        looked_at = every if sample is None else self._sampled(sample)
        some, all_of_them = (len(set(members) - set(passed)) for members in (looked_at, every))
        return Logs(some, all_of_them, sample is not None and some > 1)

    @property
    def times(self) -> Times:
        """As the first log has them."""
        return next(self._asking.of_readable(self._asking.members, lambda db: db.times), Times((), AUTO))

    @property
    def messages(self) -> list[Path]:
        """Those of logs of each kind."""
        return self.evidence().messages()

    def evidence(self) -> SetEvidence:
        return SetEvidence(self, self._asking)

    def _state(self) -> object:
        return tuple(self._asking.members)

    def _remarks(self, question: Question, is_full: bool) -> list[str]:
        with suppress(Unbundled):  # a file changed just now: the next call sees it
            return self._remarks_of_some(question, is_full)
        return []

    def _remarks_of_some(self, question: Question, is_full: bool) -> list[str]:
        """Of some of the logs that are asked. What a bundle's columns saw may be in its other logs alone."""
        found: dict[str, None] = {}
        for part in self._asking.together(question)[:SAMPLED]:
            if isinstance(part.member, Together) and not part.member.is_whole:
                continue
            with self._asking.using(part.member) as db:
                found |= dict.fromkeys(db.remarks(question.changed(db=db, operation=part.operation), is_full=is_full))
        untimed = self.evidence().untimed(question.operation) if question.operation.compares("timestamp") else ()
        if untimed:
            from jitdb.engine.hinting.dialects import no_time

            found[no_time(untimed)] = None
        return list(found)

    def hints(self, question: Asked = None, *, is_empty: bool = True) -> list[str]:
        with suppress(Unbundled):  # a file changed just now: the next call sees it
            return super().hints(question, is_empty=is_empty)
        return []

    def _explain(self, question: Question) -> SetExplanation:
        """The explanation of each log that would be asked, by path, and their sums. No object is read for it."""
        from jitdb.engine.showing.explanation import of_unread

        parts, unread = self._asking.as_they_are(question)

        def of_one(db: JITDB, part: Part) -> tuple[str, Explanation]:
            return part.member.path, db.explain(question.changed(db=db, operation=part.operation))

        told = dict(self._asking.of_each(parts, of_one))
        told |= {part.member.path: of_unread(question, part.member.size) for part in unread}
        asked = sum(part.member.logs for part in (*parts, *unread))
        return self._explained(question, told, asked)

    def explained_soon(self, question: Question) -> SetExplanation | None:
        told: dict[str, Explanation] = {}
        parts, unread = self._asking.as_they_are(question)
        if unread:
            return None
        for part in parts:
            with self._asking.using(part.member) as db:
                found = db.explained_soon(question.changed(db=db, operation=part.operation))
            if found is None:
                return None
            told[part.member.path] = found
        return self._explained(question, told, sum(part.member.logs for part in parts))

    def _explained(self, question: Question, told: dict[str, Explanation], asked: int) -> SetExplanation:
        from jitdb.engine.showing.explanation import SetExplanation

        return SetExplanation.of(repr(question.operation), told, len(self._asking.members) - asked)

    def first_look(self, question: Question) -> Display:
        """As Asker.first_look; with many logs, only the question."""
        from jitdb.display.parts import Code, Display, Note

        if len(self._asking.members) > _LOOKED_AT:
            said = Note(f"of {len(self._asking.members):,} logs: explain() looks at all of them, page() asks")
            return Display("Query", "not asked yet", [Code(repr(question)), said])
        return super().first_look(question)

    # --- the logs --------------------------------------------------------------------------------------------------

    def prepare(self, *operations: str | Operation) -> None:
        """Bring the indexes of these questions up to date, in all logs."""
        for operation in operations:
            parts = self._asking.parts(self._ready(operation, {}).operation)
            self._asking.of_each(parts, lambda db, part: db.prepare(part.operation))

    @contextmanager
    def using(self, path: str) -> Iterator[JITDB]:
        """The database of the member with this path, open as long as the context lasts. Raises LogError."""
        try:
            with self._asking.using(Member(path)) as db:
                yield db
        finally:
            self._counts.forget()

    @property
    def where(self) -> tuple[Where, ...]:
        """The files, patterns and folders that it was made of."""
        return tuple(self._where)

    @property
    def members(self) -> tuple[Member, ...]:
        """The logs, ordered by their paths."""
        return tuple(self._asking.members)

    @property
    def scanning(self) -> tuple[int, int]:
        """How many logs are done, and of how many, while they are brought up to date; zeros at other times."""
        return self._asking.scanning

    def refresh(self) -> bool:
        """See which files there are now, and what was written to them; True if there was anything."""
        return self._asking.refresh()

    def close(self) -> None:
        """Close all logs."""
        self._asking.open.close()

    def __len__(self) -> int:
        return len(self._asking.members)

    def __iter__(self) -> NoReturn:
        raise QueryError("a set of logs is gone through by its records or its logs", remedy="query() or .members")

    def __repr__(self) -> str:
        return f"<LogSet of {len(self._asking.members):,} logs: {', '.join(map(str, self._where))}>"


def _without_warning(open_log: Callable[[Member], JITDB], member: Member) -> JITDB:
    """Silence the no-match warning of single members."""
    db = open_log(member)
    db.warns_of_questions = False
    return db


def _with_shared(record: dict[str, Any], member: Member, select: Selection) -> dict[str, Any]:
    """The selected fields of a record, with those that its log's path gives."""
    shared = member.fields
    if not any(path[0] in shared for _, path in select):
        return record
    found = {**record, **selected(dict(shared), tuple((name, path) for name, path in select if path[0] in shared))}
    return {name: found[name] for name, _ in select if name in found}
