"""A set of logs that is asked as one: counts add up, pages are merged in the order of time, live ones see new files.

Each log has its own indexes, beside it as always, so what one file gains or loses costs the others nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypeVar, Unpack

from jitdb.common.times import AUTO
from jitdb.display.shown import Shown
from jitdb.engine.checks import question_of
from jitdb.engine.database import JITDB
from jitdb.engine.declared_time import Times
from jitdb.engine.face.contexts import Contexts
from jitdb.engine.hinting.evidence import QuestionWarnings
from jitdb.errors import QueryError
from jitdb.log.lines.bundles.bundled_lines import Unbundled
from jitdb.logset.answering.merging import MergedPages, Part, Place, Stream
from jitdb.logset.asking import Asking
from jitdb.logset.counting.counted_bundles import Bundles, Together
from jitdb.logset.counting.counts import Counts
from jitdb.logset.members.finding import Member, Where, fields_of, find_members
from jitdb.logset.members.open_logs import OpenLogs
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.selection import selected
from jitdb.operators.question import Question, Settings
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.summaries.summary import Matches
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.display.parts import Display
    from jitdb.engine.answering.summarizing import LogView
    from jitdb.engine.face.base import Asked, Cancel
    from jitdb.engine.following.follower import Follower
    from jitdb.engine.hinting.hints import Evidence
    from jitdb.engine.reading.arrow_tables import ArrowAnswer
    from jitdb.engine.reading.page import Page
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.engine.sets import LogRecordSet
    from jitdb.engine.showing.explanation import Explanation, SetExplanation
    from jitdb.log.lines.windows import LineOpener
    from jitdb.log.source import LogSource
    from jitdb.logset.answering.context import SetPassages
    from jitdb.logset.sets import Logs, LogSetRecordSet, SavedLogSets
    from jitdb.operators.nodes.selection import Selection
    from jitdb.operators.queries import Query
    from jitdb.operators.summaries.fields import FieldNames
    from jitdb.operators.summaries.summary import Summary

T = TypeVar("T")

_SAMPLED: Final = 10  # logs that a sample is taken from
_LOOKED_AT: Final = 20  # logs that a look at a question opens

AnyDatabase: TypeAlias = "JITDB | LogSet"


class LogSet(Contexts, Summaries, Shown):
    """Logs that can be asked as one. Thread-safe; the logs are opened read-only, when a question needs them.

    where:    files, patterns and folders (members.py); which files these are is looked up when the set is made, by
              refresh(), and by live questions
    open_log: opens one of them; by default as jitdb.open does, read-only
    lines, over: how files of lines are opened, and parts of them asked, while they are followed
    labelled: let each record that is a dict have the fields that its log's path gives: `_path`, and those of folders
              `name=value`
    threads:  that scan at the same time; 0 is one a core

    Questions can ask for those fields in any case, and a log in which nothing can match by them is not opened. A
    record's own field of the same name is not seen by questions.

    warns_of_questions: as of a JITDB

    Raises LogError where a file or folder is not there.
    """

    warns_of_questions = True

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
    ) -> None:
        self._where: list[Where] = [where] if isinstance(where, str | os.PathLike) else list(where)
        self._labelled = labelled
        self._lines, self._over = lines, over
        self._logs = OpenLogs(partial(_without_warning, open_log))
        self._asking = Asking(self._where, self._logs, bundles, threads, progress)
        self._warnings = QuestionWarnings(lambda: self._evidence(), None)
        self._names: FieldNames | None = None
        self._counts = Counts()

    # --- questions -------------------------------------------------------------------------------------------------

    def query(self, *operations: Operation | None) -> Query:
        """As JITDB.query: the records of which all `operations` are true, to be asked for in any way."""
        from jitdb.operators.queries import Query

        return Query(Question(db=self)).where(*operations)

    def count(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> int:
        """How many live records of all logs match, after the first `start_from`; never negative."""
        asked = self._asked(question, settings, None, cancel)

        def count(db: JITDB, part: Part) -> int:
            return self._counts.asked(part, db.log, lambda: one(db, part))

        def one(db: JITDB, part: Part) -> int:
            if not isinstance(part.member, Together) or part.member.is_whole:
                return db.count(part.operation, cancel=cancel)
            matches, within = Matches(), part.member.within
            own = asked.changed(db=db, operation=part.operation)
            return db.tally(own, matches, lambda view: matches.count(within(view), None), {}, cancel=cancel)

        def counted(parts: list[Part]) -> int:
            known = [(part, self._counts.of(part)) for part in parts]
            unknown = self._asking.of_each([part for part, found in known if found is None], count)
            return sum(unknown) + sum(found for _, found in known if found is not None)

        found = self._asking.of_together(asked, counted)
        self._tell(asked, not found)
        return max(0, found - asked.start_from)

    def summarize(self, question: Question, *, cancel: Cancel = None) -> Any:
        """As JITDB.summarize: the counts of all logs added up. Fields that logs' paths give are counted, too."""
        assert question.summary is not None
        asked = self._asked(question, {}, None, cancel)

        def counted(parts: list[Part]) -> Any:
            summary = question.summary
            assert summary is not None

            def each(work: Callable[[LogView], T]) -> list[T]:
                def one(db: JITDB, part: Part) -> T:
                    own, member = asked.changed(db=db, operation=part.operation), part.member
                    of_these = (lambda view: work(member.within(view))) if isinstance(member, Together) else work
                    return db.tally(own, summary, of_these, member.fields, cancel=cancel)

                return self._asking.of_each(parts, one, summary)

            settled = summary.settled(each(summary.survey) if summary.surveys else [])
            return summary.result(each(lambda view: summary.count(view, settled)), settled)

        found = self._asking.of_together(asked, counted)
        assert asked.summary is not None
        is_empty = found.missing == found.total
        self._tell(asked, is_empty, asked.summary.paths if is_empty and found.total else ())
        return found

    def _summarized(self, asked: Summary[Any], where: Operation | None) -> Any:
        return self.summarize(self._asked(where, {}, None, None).changed(summary=asked))

    def all(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> list[Any]:
        """Every matching record (or its Place), in the order of time."""
        asked = self._asked(question, settings, None, cancel)
        pages = self._merged(asked.changed(limit=None, batch=1000), cancel)
        return [record for page in iter(pages.read, None) for record in page.data]

    def paginate(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> Page:
        """At most `limit` matching records after the first `start_from`; without `limit`, all."""
        from jitdb.engine.reading.page import Page

        asked = self._asked(question, settings, limit, cancel)
        pages = self._merged(asked if asked.limit else asked.changed(batch=1000), cancel)
        page = pages.read()
        if page is None:
            return Page([], pages.total, asked.start_from, 0.0, asked.select)
        if asked.limit is None:
            for more in iter(pages.read, None):
                page.data.extend(more.data)
        pages.close()
        return Page(page.data, page.total, asked.start_from + len(page.data), page.duration, page.select)

    def pages(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> MergedPages:
        """The answer as each log stands when the first page is asked for, page by page."""
        return self._merged(self._asked(question, settings, limit, cancel), cancel)

    def field_batches(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> Iterator[FieldBatch]:
        """As JITDB.field_batches, merged; each field is under its name."""
        from jitdb.engine.reading.selecting import batch_of_rows

        asked = self._asked(question, settings, limit, cancel)
        if asked.select is None:
            raise QueryError("columns are made of selected fields", remedy='select=["size", "user.name"]')
        select = asked.select
        return (batch_of_rows(select, page.data) for page in iter(self._merged(asked, cancel).read, None))

    def leaf_paths(self, question: Asked = None, *, cancel: Cancel = None) -> list[Path]:
        """As JITDB.leaf_paths, of all logs; without a limit those too that `start_from` passes over."""
        from jitdb.display.columns import leaf_fields

        asked = self._asked(question, {}, None, cancel)
        if asked.limit is not None:
            page = self.paginate(asked.changed(batch=None, select=None), cancel=cancel)
            return list(leaf_fields(page.data).values())

        def of_one(db: JITDB, part: Part) -> list[Path]:
            own = db.leaf_paths(asked.changed(db=db, operation=part.operation, start_from=0), cancel=cancel)
            return [*own, *((name,) for name in part.member.fields if own and self._labelled)]

        found = self._asking.of_each(self._asking.parts(asked.operation), of_one)
        return list(dict.fromkeys(path for paths in found for path in paths))

    def arrow(
        self,
        question: Asked = None,
        *,
        schema: Any = None,
        times: bool = True,
        places: Sequence[str] = (),
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> ArrowAnswer:
        """As JITDB.arrow, merged, but for places: a record's is in its log."""
        from jitdb.engine.reading.field_batches import columns_of, first_of, portion_of
        from jitdb.errors import library

        library("pyarrow")
        from jitdb.engine.reading.arrow_tables import ArrowAnswer

        if places:
            raise QueryError("seqs and offsets are of one log, and this asks several", remedy="as_offsets() names both")
        asked = self._asked(question, settings, limit, cancel)
        select = columns_of(self, asked, cancel)
        portions, most = asked.changed(select=select, limit=portion_of(asked), batch=None), asked.limit

        def merged() -> Iterator[FieldBatch]:
            return first_of(self.field_batches(portions, cancel=cancel), most)

        known = self.times if times else None
        if most is not None or asked.start_from or not isinstance(asked.order, bool):  # not all that match
            return ArrowAnswer(select, merged, known, schema)
        from jitdb.logset.answering.columns import SetColumns

        return SetColumns(
            portions, lambda: self._asking.parts(asked.operation), self._logs.using, merged, known, schema, cancel
        )

    @property
    def times(self) -> Times:
        """The fields that say when a record was made, and the unit of numbers in them, as the first log has them."""
        for member in self._asking.members[:1]:
            with self._logs.using(member) as db:
                return db.times
        return Times((), AUTO)

    def _passages(self, question: Question, cancel: threading.Event) -> SetPassages:
        """Those of all logs in the order of their first answers."""
        from jitdb.logset.answering.context import SetPassages

        asked = self._asked(question, {}, None, cancel)
        assert asked.context is not None
        pages = self._merged(asked.changed(as_offsets=True, context=asked.context._replace(among=None)), cancel)
        return SetPassages(pages, asked, self._asking.members, self._logs.using, self._finishing(asked), cancel)

    def feed(self, question: Question, *, cancel: Cancel = None) -> Follower:
        """The answer to a live question: see operators.question.Feed."""
        from jitdb.engine.following.followed import Files
        from jitdb.engine.following.follower import Follower

        asked = resolved(question, cancel)
        finish = self._finishing(asked)
        find_members(self._where)  # what is named is there
        files = Files(
            lambda: [member.path for member in find_members(self._where, is_following=True)],
            frozenset(os.fspath(place) for place in self._where if os.path.isfile(place)),
            self._lines, self._over, lambda path: self._logs.using(Member(path)),
            cache(lambda path: asked.operation.narrowed(fields_of(path))),
            lambda record, path: finish(record, Member(path)), self._logs.most,
        )  # fmt: skip
        return Follower(asked, files)

    def record_set(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> LogSetRecordSet:
        """As JITDB.record_set: of each log those that match."""
        from jitdb.logset.sets import set_of_logs, set_of_places

        asked = self._asked(question, settings, limit, cancel)
        if asked.limit is not None or asked.start_from:
            return set_of_places(self._each_log(), self.paginate(asked.changed(as_offsets=True, select=None)).data)

        def one(db: JITDB, part: Part) -> tuple[str, LogRecordSet]:
            return part.member.path, db.record_set(part.operation, cancel=cancel)

        return set_of_logs(self._each_log(), self._asking.of_each(self._asking.parts(asked.operation), one))

    @property
    def sets(self) -> SavedLogSets:
        """As JITDB.sets; each log keeps its part."""
        from jitdb.logset.sets import SavedLogSets

        return SavedLogSets(self._each_log())

    def _each_log(self) -> Logs:
        from jitdb.logset.sets import Logs

        return Logs(lambda: self._asking.members, self._logs.using)

    def sample(self, count: int) -> list[Any]:
        """At most so many live records, of logs from all over the set."""
        step = max(len(self._asking.members) // _SAMPLED, 1)
        found: list[Any] = []
        for member in self._asking.members[::step][:_SAMPLED]:
            with self._logs.using(member) as db:
                found += db.sample(-(-count // min(len(self._asking.members), _SAMPLED)))
        return found[:count]

    @property
    def fields(self) -> FieldNames:
        """As JITDB.fields, of logs from all over the set."""
        from jitdb.operators.summaries.fields import FieldNames, all_records

        if self._names is None:
            self._names = FieldNames(self.sample, lambda: tuple(self._asking.members), lambda: all_records(self))
        return self._names

    @property
    def declared_time(self) -> tuple[Path, ...]:
        """As JITDB.declared_time, of the first log."""
        return self.times.paths

    def remarks(self, question: Asked = None, *, is_full: bool = True) -> list[str]:
        """As JITDB.remarks, of some of the logs that are asked."""
        asked = self._asked(question, {}, None, None)
        found: dict[str, None] = {}
        for part in self._asking.parts(asked.operation)[:_SAMPLED]:
            with self._logs.using(part.member) as db:
                found |= dict.fromkeys(db.remarks(asked.changed(db=db, operation=part.operation), is_full=is_full))
        return list(found)

    def hints(self, question: Asked = None, *, is_empty: bool = True) -> list[str]:
        """As JITDB.hints, of all logs together."""
        from jitdb.engine.hinting.hints import hints_about

        with suppress(Unbundled):  # a file was changed just now: who asks again hears it
            return hints_about(self._evidence(), self._asked(question, {}, None, None).operation, is_empty)
        return []

    def _evidence(self) -> Evidence:
        from jitdb.logset.evidence import SetEvidence

        def parts(operation: Operation) -> list[Part]:
            return self._asking.together(Question(db=self, operation=operation))

        return SetEvidence(parts, self._logs.using, self.remarks, self.sample)

    def _tell(self, asked: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        if self.warns_of_questions:
            self._warnings.tell(asked.operation, is_empty, paths)

    def explain(self, question: Asked = None) -> SetExplanation:
        """How the question would be answered: JITDB.explain of each log that would be asked, by path, and sums."""
        from jitdb.engine.showing.explanation import SetExplanation

        asked = self._asked(question, {}, None, None)
        parts = self._asking.parts(asked.operation)

        def of_one(db: JITDB, part: Part) -> tuple[str, Explanation]:
            return part.member.path, db.explain(asked.changed(db=db, operation=part.operation))

        told = dict(self._asking.of_each(parts, of_one))
        return SetExplanation.of(repr(asked.operation), told, len(self._asking.members) - len(parts))

    def first_look(self, question: Question) -> Display:
        """As JITDB.first_look. Of more logs than are soon looked at, the question alone."""
        from jitdb.display.parts import Code, Display, Note
        from jitdb.engine.showing.explanation import first_look

        if len(self._asking.members) > _LOOKED_AT:
            said = Note(f"of {len(self._asking.members):,} logs: explain() looks at all of them, page() asks")
            return Display("Query", "not asked yet", [Code(repr(question)), said])
        return first_look(question, self._explained_soon, self.paginate)

    def _explained_soon(self, question: Question) -> SetExplanation | None:
        from jitdb.engine.showing.explanation import SetExplanation

        asked = self._asked(question, {}, None, None)
        told = {}
        parts = self._asking.parts(asked.operation)
        for part in parts:
            with self._logs.using(part.member) as db:
                found = db.explained_soon(asked.changed(db=db, operation=part.operation))
            if found is None:
                return None
            told[part.member.path] = found
        return SetExplanation.of(repr(asked.operation), told, len(self._asking.members) - len(parts))

    def _display(self) -> Display:
        from jitdb.logset.overview import overview

        return overview(self._where, self._asking.members, self._logs, self.sample, lambda: self.times)

    def prepare(self, *operations: Operation) -> None:
        """Bring the indexes of these questions up to date, in all logs."""
        for operation in operations:
            parts = self._asking.parts(self._asked(operation, {}, None, None).operation)
            self._asking.of_each(parts, lambda db, part: db.prepare(part.operation))

    @contextmanager
    def using(self, path: str) -> Iterator[JITDB]:
        """The database of the member with this path, open as long as the context lasts. Raises LogError."""
        try:
            with self._logs.using(Member(path)) as db:
                yield db
        finally:
            self._counts.forget()

    # --- the logs --------------------------------------------------------------------------------------------------

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
        self._logs.close()

    def __enter__(self) -> LogSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._asking.members)

    def __iter__(self) -> NoReturn:
        raise QueryError("a set of logs is gone through by its records or its logs", remedy="query() or .members")

    def __repr__(self) -> str:
        return f"<LogSet of {len(self._asking.members):,} logs: {', '.join(map(str, self._where))}>"

    # --- asking ----------------------------------------------------------------------------------------------------

    def _asked(self, question: Asked, settings: Mapping[str, Any], limit: int | None, cancel: Cancel) -> Question:
        question = question_of(self, question, settings, limit)
        if question.as_of is not None:
            raise QueryError(
                "as_of() is a place in one log, and this asks several", remedy="ask that log: jitdb.open()"
            )
        return resolved(question, cancel)

    def _merged(self, question: Question, cancel: Cancel) -> MergedPages:
        def begin() -> list[Stream]:
            parts = self._asking.parts(question.operation)

            def one(db: JITDB, part: Part) -> Stream:
                stream = Stream(self._logs, part, question, cancel, self._finishing(question), len(parts))
                stream.begin(db)
                return stream

            return self._asking.of_each(parts, one)

        return MergedPages(question, begin, self._tell)

    def _finishing(self, question: Question) -> Callable[[Any, Member], Any]:
        """What is made of each record, or offset, of a log."""
        if question.as_offsets:
            return lambda offset, member: Place(member.path, offset)
        select = question.select
        if select is not None:
            return lambda record, member: _with_shared(record, member, select)
        if self._labelled:
            return lambda record, member: {**record, **member.fields} if isinstance(record, dict) else record
        return lambda record, member: record


def _without_warning(open_log: Callable[[Member], JITDB], member: Member) -> JITDB:
    """Nothing in one log is no empty answer of the set."""
    db = open_log(member)
    db.warns_of_questions = False
    return db


def _with_shared(record: dict[str, Any], member: Member, select: Selection) -> dict[str, Any]:
    """What was selected of a record, with what all records of its log have by its path."""
    shared = member.fields
    if not any(path[0] in shared for _, path in select):
        return record
    found = {**record, **selected(dict(shared), tuple((name, path) for name, path in select if path[0] in shared))}
    return {name: found[name] for name, _ in select if name in found}
