"""What can be asked of a database, whether it is one log (JITDB) or many (LogSet).

Each method takes an operation, or its expression as text (None: all records), with settings; or a Question, which has
its own. It makes a question
ready (checked settings, resolved tasks) and hands it to a method `_…`, which one log and many each have their own of.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, Unpack

from jitdb.common.arguments import flag
from jitdb.display.shown import Shown
from jitdb.engine.checks import question_of
from jitdb.engine.hinting.warned import QuestionWarnings
from jitdb.engine.roles import is_time_name, time_meant
from jitdb.errors import QueryError, Remedy, library
from jitdb.operators.nodes.operation import EVERYTHING, Operation
from jitdb.operators.nodes.selection import SelectField, named, selection
from jitdb.operators.question import Context, Live, Question, Settings
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.summaries.exploring.facet_fields import SAMPLE, FacetFields, facet_fields
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.display.parts import Display
    from jitdb.engine.declared_time import Times
    from jitdb.engine.hinting.knowledge import Evidence
    from jitdb.engine.reading.arrow_tables import ArrowAnswer, KnownColumn
    from jitdb.engine.reading.known_columns import Columns
    from jitdb.engine.reading.paging import Page, PagesOf
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.operators.nodes.field_ref import PathLike
    from jitdb.operators.nodes.selection import Selection
    from jitdb.operators.passages import Passages
    from jitdb.operators.queries import Query
    from jitdb.operators.question import Explained, Feed
    from jitdb.operators.running.aio import Aio
    from jitdb.operators.running.iterate import Results
    from jitdb.operators.summaries.fields import FieldNames, Logs
    from jitdb.operators.summaries.found import Found, OfLog
    from jitdb.operators.summaries.summary import Summary

Asked: TypeAlias = str | Operation | Question | None
Cancel: TypeAlias = threading.Event | None

_MATCHING: Final = 25  # records, the first and the last that match, which are looked at for fields


class Asker(Summaries, Shown, ABC):
    """`cancel`, here and below: an event that ends a scan soon when it is set, from any thread (QueryCancelled).

    warns_of_questions: set it to False to get no QuestionWarning about fields and values that no record has
    """

    warns_of_questions = True
    _follows = False  # whether each question sees what came since the one before, without refresh()
    _names: FieldNames | None = None
    _facet_fields: tuple[object, dict[Hashable, FacetFields]] = None, {}  # of a state of the log, and of conditions
    _warnings: QuestionWarnings

    # What one log and many have for themselves. A question comes ready: checked, its tasks resolved.
    _count: Callable[[Question, Cancel], int]  # how many records match, `start_from` or not
    _summary: Callable[[Question, Cancel], Any]  # the Result of the question's summary
    _page: Callable[[Question, Cancel], Page]  # the records, at most `limit`, after `start_from`
    _leaf_paths: Callable[[Question, Cancel], list[Path]]  # the fields that the records have
    known_columns: Callable[[Times, Cancel], Columns]  # all fields of all records, with what their values are
    # the selected fields of what matches, with the types of a schema, a log after the other
    _table_batches: Callable[[Question, Any, Cancel], Iterator[Any]]
    _record_set: Callable[[Question, Cancel], Any]  # the records as a RecordSet
    # the records that the question's dedup() leaves, as an operation; how many they are, and of how many
    _firsts: Callable[[Question, Cancel], tuple[Operation, int, int]]
    _feed: Callable[[Question, Cancel], Feed]  # the answer to a live question
    _explain: Callable[[Question], Explained]  # how it would be answered
    explained_soon: Callable[[Question], Any]  # the same with its order; None where only a scan could tell
    _remarks: Callable[[Question, bool], list[str]]  # see remarks()
    _state: Callable[[], object]  # changes whenever there may be new fields
    _look: Callable[[], object]  # sees what came since the last look; where nothing did, in microseconds
    evidence: Callable[[], Evidence]  # what existing indexes say of fields and values, for hints
    # These call `_tell` themselves, once they know whether there is an answer.
    _pages: Callable[[Question, Cancel], PagesOf]  # the records page by page
    _passages: Callable[[Question, threading.Event], Passages]  # with those around them
    _batches: Callable[[Question, Cancel], Iterator[FieldBatch]]  # the selected fields, `portion` records at a time
    _arrow: Callable[[Question, Any, Times | None, Sequence[str], Cancel], ArrowAnswer]  # as columns

    @property
    @abstractmethod
    def times(self) -> Times:
        """The fields that say when a record was made, and the unit of numbers in them."""

    @property
    @abstractmethod
    def messages(self) -> list[Path]:
        """The fields of usual names that say what happened: that of most logs first. Raises LogError."""

    @abstractmethod
    def sample(self, count: int) -> list[Any]:
        """At most `count` live records from all over the log; the same ones while the log is unchanged.

        Records that cannot be decoded are left out. Raises LogError.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the log and the index files."""

    # --- asking ----------------------------------------------------------------------------------------------------

    def _asked(self, question: Asked, settings: Mapping[str, Any], limit: int | None = None) -> Question:
        if self._follows:
            self._look()
        return question_of(self, question, settings, limit)

    def _ready(
        self, question: Asked, settings: Mapping[str, Any], limit: int | None = None, cancel: Cancel = None
    ) -> Question:
        """The question with what its tasks give in their places, and the records that dedup() leaves."""
        asked = resolved(self._asked(question, settings, limit), cancel)
        if asked.dedup is None:
            return asked
        found, chosen, total = self._firsts(asked, cancel)
        self._tell(asked, not chosen, asked.dedup.paths if total and not chosen else ())
        return asked.changed(operation=found, dedup=None)

    def _tell(self, asked: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        """Warn of what the answered question asks for and no record has. `paths`: no record of it has these."""
        if self.warns_of_questions:
            self._warnings.tell(asked, is_empty, paths)

    def query(self, *operations: str | Operation | None) -> Query:
        """The records of which all `operations` are true, to be asked for in any way: see Query.

        db.query("type == 'post'").descending().page(10)
        """
        from jitdb.operators.queries import Query

        return Query(Question(db=self)).where(*operations)

    @property
    def aio(self) -> Aio:
        """The same database for async programs: `await db.aio.count("status >= 500")`, and so on for every word."""
        from jitdb.operators.running.aio import Aio

        return Aio(self)

    def count(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> int:
        """How many live records match, after the first `start_from`; never negative.

        as_of: an earlier state of the log: the records up to and with the one at that offset (or before that cursor),
               without those that were deleted since; of one log only
        """
        asked = self._ready(question, settings, None, cancel)
        found = self._count(asked, cancel)
        self._tell(asked, not found)
        return max(0, found - asked.start_from)

    def summarize(self, question: Question, *, cancel: Cancel = None) -> Any:
        """The Result of the question's `summary`: see value_counts() and its siblings."""
        asked = self._ready(question, {}, None, cancel)
        summary = asked.summary
        assert summary is not None
        asked = summary.ready(asked, self)
        assert asked.summary is not None
        found = self._summary(asked, cancel)
        lacking = [path for path in summary.named if found.total and self.evidence().lack(path)]
        if lacking:
            self._tell(Question(), True, lacking)
        if summary.others is not None:
            self._tell(Question(operation=summary.others), not found.others)
        is_empty = found.missing == found.total
        self._tell(asked, is_empty, asked.summary.paths if is_empty and found.total else ())
        if asked.summary.condition is not None:
            self._tell(Question(operation=asked.summary.condition), not found.matching)
        return found

    def _summarized(self, asked: Summary[Any], where: str | Operation | None) -> Any:
        return self.summarize(self._asked(where, {}).changed(summary=asked))

    def all(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> list[Any]:
        """Every matching record (or its offset), in order."""
        return self.paginate(question, cancel=cancel, **settings).data

    def paginate(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> Page:
        """At most `limit` matching records after the first `start_from`; without `limit`, all."""
        asked = self._ready(question, settings, limit, cancel)
        page = self._page(asked, cancel)
        self._tell(asked, not page.total)
        return page

    def pages(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> PagesOf:
        """The answer as it stands when the first page is read, page by page.

        Records that come later are not in it; records deleted meanwhile are left out of the pages still to come.
        """
        return self._pages(self._ready(question, settings, limit, cancel), cancel)

    def context(
        self,
        question: Asked = None,
        before: int = 0,
        after: int = 0,
        *,
        same: PathLike | None = None,
        among: str | Operation | None = None,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Passages:
        """The answers among the records around them: an iterator, also for `async for`, of passages, each a list of
        Seen (record, is_match, place), in the order of the answer. Contexts that overlap or touch are one passage.

        before, after: how many earlier and later records: by their times, or (sort_by="arrival") in the log
        same:  only records that have in this field what the answer has; those without it belong together, too
        among: only records of which this is true
        limit: of answers

        `is_match` marks the answers that the question has without context; `total` is how many there are. The scan of
        the question builds the index of `same`, too. In a set of logs the records around one are of its own log. Raises
        QueryError, LogError.
        """
        asked = self._ready(question, settings, limit, cancel)
        if asked.context is None:
            among = None if among is None else self._ready(among, {}).operation
            asked = asked.changed(context=Context.around(before, after, same, among))
        return self._passages(asked, threading.Event() if cancel is None else cancel)

    def field_batches(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> Iterator[FieldBatch]:
        """The selected fields of the matching records as arrays, `limit` records at a time, in order: for tables.

        Raises QueryError where no fields are selected.
        """
        asked = self._ready(question, settings, limit, cancel)
        if asked.select is None:
            raise QueryError("columns are made of selected fields", remedy='select=["size", "user.name"]')
        return self._batches(asked, cancel)

    def leaf_paths(self, question: Asked = None, *, cancel: Cancel = None) -> list[Path]:
        """All fields of the matching records that hold no maps, or empty ones, in the order in which they come.

        Raises QueryError where they are too many to be columns.
        """
        return self._leaf_paths(self._ready(question, {}, None, cancel), cancel)

    def table_columns(self, fields: Sequence[SelectField] | None = None, *, cancel: Cancel = None) -> list[KnownColumn]:
        """All fields that any record has, or those that are named, as columns of types that hold all their values.

        The first time all records are looked at, later those that came since: it is kept with the indexes. Records that
        were deleted count. Fields that are named and hold maps, or are paths to any element, are looked at each time.
        Raises QueryError for more fields than a table can have, LogError, MissingLibrary.
        """
        library("pyarrow")
        if self._follows:
            self._look()
        found = {path: column.known() for path, column in self.known_columns(self.times, cancel).items()}
        wanted = named(found) if fields is None else selection("columns", fields)
        others = tuple((name, path) for name, path in wanted if path not in found)
        if others:
            answer = self._arrow(Question(db=self, select=others, sort_by="arrival"), None, self.times, (), cancel)
            found.update({column.path: column for column in answer.known()})
        return [found[path]._replace(name=name) for name, path in wanted]

    def table_batches(self, question: Asked, schema: Any, *, cancel: Cancel = None) -> Iterator[Any]:
        """The selected fields of the matching records as pyarrow.RecordBatches of this schema, in the order of the log,
        a log after the other. Raises QueryError where a value is none of its type, LogError, MissingLibrary.
        """
        library("pyarrow")
        return self._table_batches(self._ready(question, {"sort_by": "arrival"}, None, cancel), schema, cancel)

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
        """The selected fields of the matching records, at most `limit`, as Arrow's columns: a table, or batches.

        select: without it, all fields that these records have, which takes one more pass over them
        schema: a pyarrow.Schema, for the types of the columns; without it, their values decide
        times:  whether fields whose values all are times become timestamps
        places: columns "seqs" and "offsets", before the others; of one log only

        See Query.to_arrow. Raises QueryError, LogError, MissingLibrary.
        """
        library("pyarrow")
        asked = self._ready(question, settings, limit, cancel)
        asked = asked.changed(select=self.selected_fields(asked, cancel))
        return self._arrow(asked, schema, self.times if times else None, places, cancel)

    def selected_fields(self, question: Question, cancel: Cancel = None) -> Selection:
        """The fields that the question selects; else all that its records have, which are read to find them.

        Raises QueryError where they have none, and where they have too many.
        """
        if question.select is not None:
            return question.select
        paths = self.leaf_paths(question, cancel=cancel)
        if not paths:
            first = self.paginate(question.changed(limit=1, batch=None), cancel=cancel).data
            if any(not isinstance(record, dict) for record in first):
                raise QueryError(
                    "these records have no fields to make columns of",
                    remedy=Remedy("go through them: for record in query", "--format ndjson writes them as they are"),
                )
        return named(paths)

    def record_set(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> Any:
        """The matching records, at most `limit`, as a value that stands for them: see operators/sets.py."""
        return self._record_set(self._ready(question, settings, limit, cancel), cancel)

    def feed(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        old: bool = False,
        after: str | None = None,
        as_offsets: bool = False,
        cancel: Cancel = None,
    ) -> Feed:
        """The matching records that come, without waiting for any: what live() is made of.

        limit:      most records of a portion
        old:        those that are there already come first
        after:      a cursor: those behind it, whether they are there already or not
        as_offsets: their offsets instead

        Raises QueryError for a cursor of another log.
        """
        asked = self._asked(question, {"as_offsets": as_offsets}, limit)
        if asked is not question:
            asked = asked.changed(live=Live(flag("old", old), after))
        return self._feed(resolved(asked, cancel), cancel)

    def live(self, operation: str | Operation | None = None, *, old: bool = False, after: str | None = None) -> Results:
        """The matching records as they come, one by one, in the order of the log: a loop over it waits for more.

        `.cursor` is the place behind the last record, for a later `after`; close() ends it from any thread. For async
        loops: `async for record in db.query(operation).live()`.
        """
        return iter(self.query(operation).live(old, after))

    def condition(self, where: Operation) -> Operation:
        """The condition with what its tasks give in their places. Raises what they raise."""
        return self._ready(where, {}).operation

    def facet_fields(self, where: Operation = EVERYTHING) -> FacetFields:
        """The fields worth counting, by a sample of all records, and by some of those that match: what few records
        have, a sample of all may lack. Raises LogError.
        """
        state = self._state()
        if not self._facet_fields[1] or self._facet_fields[0] != state:
            every = facet_fields(self.sample(SAMPLE), self.is_time)
            self._facet_fields = state, {EVERYTHING.identity: every}
        known = self._facet_fields[1]
        if where.identity not in known:
            ends = (
                self.paginate(where, limit=_MATCHING, sort_by="arrival", descending=last).data for last in (False, True)
            )
            every = known[EVERYTHING.identity]
            some = facet_fields([record for page in ends for record in page], self.is_time, every.plain)
            known[where.identity] = every.with_more(some)
        return known[where.identity]

    def is_time(self, path: Path, value: Any) -> bool:
        """Whether this value of a field is a time of a record: its name, or the declared time, says so."""
        if is_time_name(path) and isinstance(value, str):
            return True
        return path in self.times.paths or time_meant(path, value) is not None

    def find(self, text: str, where: str | Operation | None = None, *, ignore_case: bool = False) -> Found:
        """In which fields of how many records a text stands, and in which logs; of `where`, only these records.

        The number of records is exact; the fields are those of the first 10,000 of them. The records themselves:
        db.query(anywhere(text)).
        """
        from jitdb.operators.nodes.anywhere import anywhere
        from jitdb.operators.summaries.found import found_in

        query = self.query(anywhere(text, ignore_case=ignore_case), where)
        return found_in(text, ignore_case, self._by_log(query.sort_by_arrival()), query.count())

    def _by_log(self, query: Query) -> Iterator[OfLog]:
        """The records, each with its log."""
        from jitdb.operators.summaries.found import OfLog

        return (OfLog("", record, ()) for record in query)

    # --- what there is to know -------------------------------------------------------------------------------------

    @property
    def fields(self) -> FieldNames:
        """The fields that records have: `db.fields()` lists them, from a sample; `db.fields.user.name` is one of them,
        to ask with.
        """
        from jitdb.operators.summaries.fields import FieldNames, all_records

        if self._follows:
            self._look()
        if self._names is None:
            self._names = FieldNames(self.sample, self._state, lambda: all_records(self), self._logs_looked_at)
        return self._names

    def _logs_looked_at(self, sample: int | None) -> Logs:
        """Of how many logs a sample of so many records is; None: all records."""
        from jitdb.operators.summaries.fields import ONE

        return ONE

    @property
    def declared_time(self) -> tuple[Path, ...]:
        """The fields that say when a record was made: those that were named, or were found."""
        return self.times.paths

    def remarks(self, question: Asked = None, *, is_full: bool = True) -> list[str]:
        """What is worth knowing of the answer: which values of compared fields are no numbers or times, and how the
        others were read; of a question in order of time, of the declared time too. Builds no index.

        is_full: False: only what may make the answer another one than expected
        """
        return self._remarks(resolved(self._asked(question, {})), is_full)

    def hints(self, question: Asked = None, *, is_empty: bool = True) -> list[str]:
        """The fields that the question names and no record has; of an empty answer, also the values that the log spells
        otherwise. Each with what would find something, from existing indexes and a sample of records. And the fields
        whose text is taken as numbers.

        In Python the same comes once as a QuestionWarning.
        """
        from jitdb.engine.hinting.hints import hints_about

        return hints_about(self.evidence(), resolved(self._asked(question, {})), is_empty)

    def explain(self, question: Asked = None) -> Any:
        """How the question would be answered: its indexes, how much of the log they cover, what must still be read."""
        return self._explain(resolved(self._asked(question, {})))

    def first_look(self, question: Question) -> Display:
        """A question before it is asked: its plan, and its first answers where indexes have them. Scans nothing."""
        from jitdb.engine.showing.explanation import first_look

        return first_look(question, self.explained_soon, self.paginate)

    def explore(self, where: str | None = None, *, port: int = 0) -> Any:
        """A page to look at it in a browser, served on this machine alone: what this gives shows itself as a link in a
        notebook, and has its `address` and close(). See docs/exploring.md.

        where: the question that it begins with, as text
        port:  0 is any that is free

        Raises OSError where the port is taken.
        """
        from importlib import import_module

        # The page stands above all that is asked here, so it is called by its name, and nothing of it is known.
        return import_module("jitdb.explorer.link").Explored(self, where or "", port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
