"""The engine: a log, its indexes, and questions answered from them.

A question goes this way: plan (which indexes) -> fresh? else one scan for all that is stale -> evaluate (sets of live
records) -> order -> page -> decode. This is its face; manager.py keeps the indexes, paging.py hands records over.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, Unpack

from jitdb.common import js_aliases
from jitdb.common.arguments import file_path, flag, function, progress_function, whole_number
from jitdb.common.paths import SEQUENCE, Path, parse_path, single
from jitdb.common.times import AUTO, Unit
from jitdb.common.words import shown
from jitdb.display.shown import Shown
from jitdb.engine.checks import (
    around,
    dropped_names,
    operation_of,
    operations_of,
    paths_of,
    question_of,
    unit_of,
)
from jitdb.engine.declared_time import Times, found_time
from jitdb.engine.hinting.telling import QuestionWarnings
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import Bounds, CoreFields, Requirement, requirements
from jitdb.engine.progress import Bar, Status
from jitdb.engine.remarks import remarks_of
from jitdb.errors import InvalidArgument, InvalidOffset, QueryError, RecordDeleted
from jitdb.log.io.filenames import INDEXES
from jitdb.log.maintained import MaintainedSource
from jitdb.log.source import LogSource
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.making import and_, equal, gt, includes
from jitdb.operators.nodes.operations import Operation
from jitdb.operators.question import EVERYTHING, Live, Question, Settings
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.display.parts import Display
    from jitdb.engine.answering.columns import Columns
    from jitdb.engine.answering.finder import Finder
    from jitdb.engine.checking.report import Report
    from jitdb.engine.counting.counters import Counter, View
    from jitdb.engine.hinting.evidence import LogEvidence
    from jitdb.engine.reading.arrow_tables import ArrowAnswer
    from jitdb.engine.reading.context import Passages
    from jitdb.engine.reading.feed import Feed
    from jitdb.engine.reading.page import Page
    from jitdb.engine.reading.paging import Pages
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.engine.sets.record_set import LogRecordSet
    from jitdb.engine.sets.saved import SavedSets
    from jitdb.engine.showing.explanation import Explanation
    from jitdb.engine.showing.listing import Indexes
    from jitdb.engine.showing.overview import Known
    from jitdb.log.compaction.compact import Compaction
    from jitdb.log.repair.report import RepairReport
    from jitdb.operators.queries import Query
    from jitdb.operators.running.iterate import Results
    from jitdb.operators.summaries.asked import Summary
    from jitdb.operators.summaries.names import FieldNames

T = TypeVar("T")

Asked: TypeAlias = Operation | Question | None
Cancel: TypeAlias = threading.Event | None
Progress: TypeAlias = Callable[[int, int], object]


class JITDB(Summaries, Shown):
    """A log that can be asked. Thread-safe.

    log:       a Log, or anything that is a LogSource
    folder:    where the index files lie; by default `indexes` in the log's sidecar; "memory" keeps them in memory
    timestamp: the field(s) that say when a record was made; of several, the earliest time counts. None: those of the
               usual names that the first records have
    time_unit: of times that are numbers: "s", "ms", "us", "ns"; "auto" tells it from the size of each
               (jitdb.common.times); "number" where what stands for the time is none, but a number to order by
    sequence:  the field behind `declared_sequence`
    threads:   of a scan; 0 is one a core, up to eight
    progress:  show a bar for scans longer than a second; by default in terminals and notebooks only
    max_indexes, max_index_bytes: once there are so many indexes, or they take so much, a question that needs another
               one is a TooManyIndexes error; prepare() is not bound, nor is what all answers need

    warns_of_questions: may be set to False, so that nobody is warned of what no record has (QuestionWarning)
    """

    warns_of_questions = True

    def __init__(
        self,
        log: LogSource,
        folder: str | os.PathLike[str] | None = None,
        *,
        timestamp: PathLike | Sequence[PathLike] | None = None,
        time_unit: Unit = AUTO,
        sequence: PathLike = SEQUENCE,
        threads: int = 0,
        progress: bool | None = None,
        max_indexes: int | None = None,
        max_index_bytes: int | None = None,
    ) -> None:
        if not isinstance(log, LogSource):
            raise InvalidArgument(f"a JITDB asks an open log, not {shown(log)}", remedy="jitdb.open(path) opens both")
        self.log = log
        self.folder = self._folder_of(folder)
        named = None if timestamp is None else paths_of(timestamp)
        self._core = CoreFields(named, (parse_path(sequence),), unit_of(time_unit), lambda: found_time(log))
        self._names: FieldNames | None = None
        self._progress = progress = None if progress is None else flag("progress", progress, InvalidArgument)
        self._threads = threads = whole_number("threads is a number", threads, 0, InvalidArgument)
        bounds = Bounds(_bound("max_indexes", max_indexes), _bound("max_index_bytes", max_index_bytes))
        self._manager = IndexManager(log, self.folder, self._core, threads, progress, bounds)
        self._sets: SavedSets | None = None
        self._warnings = QuestionWarnings(lambda: self.evidence(), log.path)

    def _folder_of(self, folder: str | os.PathLike[str] | None) -> FilePath | None:
        if folder is None:
            return self.log.sidecar / INDEXES
        if isinstance(folder, str) and folder == "memory":
            return None
        if not file_path(folder):
            raise InvalidArgument(
                "a folder of indexes has a name", remedy="None is the usual one, 'memory' none at all"
            )
        return FilePath(folder)

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                js_aliases.no_such_name("a JITDB", name, js_aliases.DATABASE, dir(type(self))), name=name
            )

    def __repr__(self) -> str:
        return f"<JITDB {self.log.path} ({self.log.codec.name})>"

    def _display(self) -> Display:
        from jitdb.engine.showing.overview import overview

        return overview(self._manager)

    def __enter__(self) -> JITDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- questions -------------------------------------------------------------------------------------------------

    def query(self, *operations: Operation | None) -> Query:
        """The records of which all `operations` are true, to be asked for in any way: see Query.

        db.query(field("type") == "post").descending().page(10)
        """
        from jitdb.operators.queries import Query

        return Query(Question(db=self)).where(*operations)

    def count(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> int:
        """How many live records match, after the first `start_from`; never negative.

        question: here and below, an operation, None for all records, or a Question with its own settings
        as_of:    an earlier state of the log: the records up to and with the one at that offset (or before that
                  cursor), without those that were deleted since
        """
        asked = resolved(self._asked(question, settings), cancel)
        operation, manager = asked.operation, self._manager

        def look(end: int) -> int:
            return manager.evaluator.count(operation, manager.records.horizon(asked.as_of, end))

        found = manager.ask(operation, False, cancel, look)
        self._tell(asked, not found)
        return max(0, found - asked.start_from)

    def summarize(self, question: Question, *, cancel: Cancel = None) -> Any:
        """What the question's `summary` asks of its records: value_counts() and its like, which see."""
        from jitdb.engine.counting.summarizing import summarized

        asked = resolved(question, cancel)
        found = summarized(self._manager, asked, cancel)
        assert asked.summary is not None
        is_empty = found.missing == found.total
        self._tell(asked, is_empty, asked.summary.paths if is_empty and found.total else ())
        return found

    def tally(
        self,
        question: Question,
        counter: Counter[Any, Any],
        work: Callable[[View], T],
        known: Mapping[str, Any],
        *,
        cancel: Cancel = None,
    ) -> T:
        """This log's part of a summary of several: see engine/counting/counters.py.

        known: fields that all of its records have, in the place of their own
        """
        from jitdb.engine.counting.summarizing import viewed

        return viewed(self._manager, resolved(question, cancel), counter, work, known, False, cancel)

    def _summarized(self, asked: Summary, where: Operation | None) -> Any:
        return self.summarize(self._asked(where, {}).changed(summary=asked))

    def all(self, question: Asked = None, *, cancel: Cancel = None, **settings: Unpack[Settings]) -> list[Any]:
        """Every matching record (or its offset), in order."""
        return self._page(resolved(self._asked(question, settings), cancel), cancel).data

    def paginate(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Page:
        """At most `limit` matching records after the first `start_from`; without `limit`, all."""
        return self._page(resolved(self._asked(question, settings, limit), cancel), cancel)

    def _page(self, asked: Question, cancel: Cancel) -> Page:
        from jitdb.engine.reading.paging import one_page

        page = one_page(self._manager, asked, cancel)
        self._tell(asked, not page.total)
        return page

    def pages(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Pages:
        """The answer as it stands when the first page is asked for, page by page.

        Records that come later are not in it; records deleted meanwhile are left out of the pages still to come.
        """
        from jitdb.engine.reading.paging import Pages

        asked = resolved(self._asked(question, settings, limit), cancel)
        return Pages(self._manager, asked, cancel, self._tell)

    def context(
        self,
        question: Asked = None,
        before: int = 0,
        after: int = 0,
        *,
        same: PathLike | None = None,
        among: Operation | None = None,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Passages:
        """The answers among the records around them: an iterator of passages, each a list of Seen (record, is_match,
        place), in the order of the answer. Where contexts overlap or touch they are one passage.

        before, after: so many that are earlier, and later: by their times, or (sort_by="arrival") in the log
        same:  only records that have in this field what the answer has; those without it belong together, too
        among: only records of which this is true
        limit: of answers

        What is_match marks are the answers that the question has without context; `total` is how many there are. The
        index of `same` is built in the scan of the question's own. Raises QueryError, LogError.
        """
        from jitdb.engine.reading.context import Passages

        asked = self._asked(question, settings, limit)
        asked = asked if asked.around is not None else around(asked, before, after, same, among)
        return Passages(self._manager, resolved(asked, cancel), cancel, self._tell)

    def field_batches(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Iterator[FieldBatch]:
        """The selected fields of the matching records as arrays, `limit` records at a time, in order: for tables.

        Raises QueryError where no fields are selected.
        """
        from jitdb.engine.reading.field_batches import FieldBatches

        asked = resolved(self._asked(question, settings, limit), cancel)
        if asked.select is None:
            raise QueryError("columns are made of selected fields", remedy='select=["size", "user.name"]')
        return FieldBatches(self._manager, asked, cancel, self._tell).batches()

    def _tell(self, asked: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        """It was answered: warn of what no record has. `paths`: none of its records has one of these fields."""
        if is_empty:
            self._manager.tell_left_out()
        if self.warns_of_questions:
            self._warnings.tell(asked.operation, is_empty, paths)

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

        select: without it, the fields of the first records, and of some from all over the log
        schema: a pyarrow.Schema, of the types that columns are to have; without it, their values tell
        times:  whether what is times by all its values becomes timestamps
        places: columns "seqs" and "offsets", before the others

        See Query.to_arrow. Raises QueryError, LogError, MissingLibrary.
        """
        from jitdb.common.libraries import library
        from jitdb.engine.reading.field_batches import Passes, columns_of

        library("pyarrow")
        from jitdb.engine.reading.arrow_tables import ArrowAnswer

        asked = resolved(self._asked(question, settings, limit), cancel)
        select = columns_of(self, asked, cancel)
        passes = Passes(self._manager, asked.changed(select=select), cancel, self._tell)
        return ArrowAnswer(select, passes, self.times if times else None, schema, places)

    def _asked(self, question: Asked, settings: Settings, limit: int | None = None) -> Question:
        return question_of(self, question, settings, limit)

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

        limit:      at most so many records a portion
        old:        those that are there already come first
        after:      a cursor: those behind it, whether they are there already or not
        as_offsets: their offsets instead

        Raises QueryError for a cursor of another log.
        """
        from jitdb.engine.reading.feed import Feed

        asked = self._asked(question, {"as_offsets": as_offsets}, limit)
        if asked is not question:
            asked = asked.changed(live=Live(flag("old", old), after))
        return Feed(self._manager, self.log, resolved(asked, cancel))

    def live(self, operation: Operation | None = None, *, old: bool = False, after: str | None = None) -> Results:
        """The matching records as they come, one by one, in the order of the log: a loop over it waits for more.

        `.cursor` is the place behind the last record, for a later `after`; close() ends it from any thread. For async
        loops: `async for record in db.query(operation).live()`.
        """
        return iter(self.query(operation).live(old, after))

    def record_set(
        self, question: Asked = None, *, limit: int | None = None, cancel: Cancel = None, **settings: Unpack[Settings]
    ) -> LogRecordSet:
        """The matching records, at most `limit`, as a value that stands for them: see operators/sets.py."""
        from jitdb.engine.sets.record_set import set_of

        return set_of(self, self._manager, resolved(self._asked(question, settings, limit), cancel), cancel)

    @property
    def sets(self) -> SavedSets:
        """Sets of records that are kept under names: `db.sets["suspicious"] = db.query(...).set()`."""
        from jitdb.engine.sets.saved import SavedSets

        if self._sets is None:
            self._sets = SavedSets(self, self._manager)
        return self._sets

    def prepare(self, *operations: Operation, cancel: Cancel = None) -> float:
        """Bring the indexes of these questions up to date, in one scan; gives the milliseconds it took."""
        begin = time.perf_counter()
        needs = self._needs_of(operations, cancel)
        self._manager.prepare(needs, cancel)
        return 1e3 * (time.perf_counter() - begin)

    def lookup(self, operation: Operation, seq: int) -> bool:
        """Whether the operation is true of the record with this seq."""
        number = whole_number("a seq is the ordinal of a record", seq)
        asked, manager = self._operation(operation), self._manager
        return manager.ask(
            asked, False, None, lambda end: number < end and number in manager.evaluator.matches(asked, end)
        )

    def finder(self, path: PathLike, *, elements: bool = False) -> Finder:
        """The field's index as it is now, to look up values one by one, in microseconds: for stores built on a log.

        elements: of a field of lists, look up what stands in them

        What is appended later is not in it. Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import Finder

        (field_path,) = paths_of(path)
        leaf, manager = includes(field_path, None) if elements else equal(field_path, None), self._manager
        (need,) = self._needs_of((leaf,))

        def look(end: int) -> Finder:
            segments, records = manager.catalog.get(need.spec).segments, manager.records
            return Finder(segments, records.offset_segments(), records.deleted, end)

        return manager.ask(leaf, False, None, look)

    def columns(
        self,
        numbers: Sequence[PathLike] = (),
        values: Sequence[PathLike] = (),
        *,
        start: int = 0,
        where: Operation | None = None,
    ) -> Columns:
        """What indexes know of the live records, as arrays, without reading one of them: for stores built on a log.

        numbers: fields whose numbers are wanted, from their columns
        values:  fields of few values, from bitmaps: each record's is given as the number of the value
        start:   only records from this seq on
        where:   only records that match

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.columns import columns_of

        first, manager = whole_number("a seq is the ordinal of a record", start), self._manager
        compared = [gt(0, path) for path in _each(numbers)]
        equated = [equal(path, None, prefix=False) for path in _each(values)]
        asked = EVERYTHING if where is None else resolved(self._asked(where, {})).operation

        def look(end: int) -> Columns:
            known, coded = (
                [manager.catalog.get(need.spec) for leaf in leaves for need in requirements(leaf, self._core)]
                for leaves in (compared, equated)
            )
            return columns_of(manager.records, known, coded, first, end, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, *compared, *equated), False, None, look)

    def distinct(self, path: PathLike, where: Operation | None = None) -> list[Any]:
        """The values that a field of few values has in the records that match, or in all, in no order; none is read.

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.columns import values_in

        (field_path,) = paths_of(path)
        leaf, manager = equal(field_path, None, prefix=False), self._manager
        asked = EVERYTHING if where is None else resolved(self._asked(where, {})).operation
        (need,) = self._needs_of((leaf,))

        def look(end: int) -> list[Any]:
            return values_in(manager.catalog.get(need.spec).segments, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, leaf), False, None, look)

    def sample(self, count: int) -> list[Any]:
        """At most so many live records from all over the log; the same ones as long as it is the same.

        Records that cannot be decoded are left out. Raises LogError.
        """
        from jitdb.log.reading.sampling import sample

        return list(sample(self.log, whole_number("a sample is a number of records", count)))

    @property
    def fields(self) -> FieldNames:
        """The fields that records have: `db.fields()` tells of them, by a sample; `db.fields.user.name` is one of them,
        to ask with.
        """
        from jitdb.operators.summaries.names import FieldNames

        if self._names is None:
            self._names = FieldNames(self.sample, lambda: (self.log.identity, self.log.durable_end))
        return self._names

    @property
    def times(self) -> Times:
        """The same, and the unit of those of them that are numbers."""
        return Times(self._core.timestamp, self._core.unit)

    @property
    def declared_time(self) -> tuple[Path, ...]:
        """The fields that say when a record was made: those that were named, or were found."""
        return self._core.timestamp

    def remarks(self, question: Asked = None) -> list[str]:
        """What is worth knowing of the answer: which values of the fields compared are no numbers or times, and how
        the others were taken; of a question that is to be ordered, of the declared time too. Builds no index.
        """
        asked = resolved(self._asked(question, {}))
        ordered, manager = asked.order is True, self._manager
        return manager.look(lambda: remarks_of(manager.catalog, self._core, asked.operation, ordered))

    def hints(self, question: Asked = None, *, is_empty: bool = True) -> list[str]:
        """What the question asks for that no record has: fields, and where the answer is nothing values that the log
        spells otherwise, each with what would find something. From indexes that are there, and the names of fields in
        some records. Who asks in Python is warned of it (QuestionWarning), once.
        """
        from jitdb.engine.hinting.hints import hints_about

        return hints_about(self.evidence(), resolved(self._asked(question, {})).operation, is_empty)

    def evidence(self) -> LogEvidence:
        """What the indexes that are there say of fields and values: what hints are taken from."""
        from jitdb.engine.hinting.evidence import LogEvidence

        return LogEvidence(self._manager)

    def explain(self, question: Asked = None) -> Explanation:
        """How the question would be answered: its indexes, what of the log they cover, and what must be read of it."""
        from jitdb.engine.showing.explanation import explained

        asked = resolved(self._asked(question, {}))
        return self._manager.look(lambda: explained(self._manager, asked))

    def indexes(self) -> Indexes:
        """The indexes that questions have left: what each is about, its size, and whether it is fresh."""
        from jitdb.engine.showing.listing import describe_indexes, indexes_in_memory

        if self.folder is None:
            return indexes_in_memory(self._manager.opened(), self.log.durable_end)
        return describe_indexes(self.folder, self.log)

    def known(self) -> Known | None:
        """What the indexes say of all records as they are, without a scan: how many, up to which byte of the log, of
        which time. None where somebody has to read the log first.
        """
        from jitdb.engine.showing.overview import known_of

        return known_of(self._manager)

    def first_look(self, question: Question) -> Display:
        """What there is to see of a question before it is asked: its plan, and its first answers where indexes have
        them already. Scans nothing.
        """
        from jitdb.engine.showing.first_look import first_look

        return first_look(question, self.explained_soon, self.paginate)

    def explained_soon(self, question: Question) -> Explanation | None:
        """As explain(), with what the order of the answers takes; None where only a scan could tell."""
        from jitdb.engine.showing.first_look import explained_soon

        return explained_soon(self._manager, question)

    # --- maintenance -----------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """What the engine does now."""
        return self._manager.build_lock.status

    def on_ready(self, callback: Callable[[], object] | None = None) -> None:
        """Call back when the database can be asked. Indexes are read when they are needed, so that is at once."""
        if callback is not None:
            function("on_ready() takes a function without arguments", callback, 0)
            callback()

    def refresh(self) -> bool:
        """See what other processes did to the log; True if there was anything."""
        changed = self.log.refresh()
        self._manager.follow(None)
        return changed

    def reindex(self, offset: int = 0) -> None:
        """Forget what was indexed of the records from this offset of the log on: the next question looks at them again.

        For predicates and other functions whose answer depends on more than the record, once that changed (where the
        function itself changed, raise its `version`). All indexes of the log are cut, those too that were not asked for
        yet, and those that other processes share; these see it when they index next. An index may forget more than
        asked, back to where one of its segments begins.

        Raises QueryError unless the offset is an integer, 0 or more.
        """
        self._manager.reindex(whole_number("reindex() begins at an offset of the log", offset))

    def drop_index(self, *which: PathLike | Operation) -> tuple[str, ...]:
        """Remove index files, to give their room back; gives the names of those that were removed.

        which: names of index files, as explain() has them; paths, whose indexes of each kind are meant; or questions,
               whose indexes are

        Files that are damaged, or of another log, can be named too; what is no index file cannot. The next question
        that needs one of them builds it anew. Others may be using them: who builds one is waited for,
        and who reads one goes on. Raises QueryError for a name or path that no index has, with the nearest.
        """
        self._manager.follow(None)
        names = dropped_names(which, self._manager.index_names(), self._core)
        self._manager.forget_files(names)
        return names

    def delete(self, *operations: Operation, cancel: Cancel = None) -> int:
        """Delete the records of which all `operations` are true, and give how many these were: all of them or none.

        They are gone from all answers, and zeros on the disk when this returns; compact() gives their room back. What
        is appended meanwhile stays. Raises LogReadOnly where the log is only read, QueryError without an operation,
        LogWriteFailed, LogError.
        """
        log = self._maintained("deleted from")
        if not operations:
            raise QueryError("delete() takes the operations that say which records", remedy="all are everything()")
        asked = and_(*map(operation_of, operations))  # None, a condition left out elsewhere, would be all records
        while True:
            generation = log.generation
            offsets = self.all(asked, as_offsets=True, sort_by="arrival", cancel=cancel)
            try:
                log.delete_many(offsets, generation)
            except RecordDeleted:
                continue  # by another thread, since we asked
            except InvalidOffset:
                if generation == log.generation:
                    raise
                continue  # it was compacted since we asked
            log.flush()
            return len(offsets)

    def compact(self, progress: Progress | None = None) -> Compaction:
        """Remove deleted records for good, and give their room back: see Log.compact. Indexes are taken over.

        Raises LogCorrupt for a damaged log (repair it first), LogReadOnly, LogWriteFailed, LogError.
        """
        log = self._maintained("compacted")
        self._manager.build_lock.refuse_within()
        with self._telling("compacting", progress) as tell:
            done = log.compact(tell)
        self._manager.remap()
        self.sets.carry()
        return done

    def verify(
        self,
        sample: float | int | None = None,
        *,
        operations: Sequence[Operation] = (),
        progress: Progress | None = None,
    ) -> Report:
        """Whether the log and its indexes are what was written, and the indexes say what the records do.

        sample:     compare a part of the records only, chosen by chance: a float up to 1, or about so many of them
        operations: questions with predicates or functions, whose indexes cannot be checked without them

        Changes nothing. The whole log is read in any case, and once more for the indexes unless a sample is asked for.
        Raises LogError, QueryError.
        """
        from jitdb.engine.checking.check_indexes import verify_database
        from jitdb.engine.checking.report import check_sample

        needs = self._needs_of(operations)
        part = check_sample(sample)
        with self._telling("verifying", progress) as tell:
            return verify_database(self.log, self.folder, needs, part, self._threads, tell)

    def _operation(self, operation: Operation | None, cancel: Cancel = None) -> Operation:
        return resolved(self._asked(operation, {}), cancel).operation

    def _needs_of(self, operations: Sequence[Operation | None], cancel: Cancel = None) -> list[Requirement]:
        asked = [self._operation(operation, cancel) for operation in operations_of(operations)]
        return self._manager.look(lambda: [need for each in asked for need in self._manager.leaf_needs(each)])

    def repair(self, *, operations: Sequence[Operation] = (), progress: Progress | None = None) -> RepairReport:
        """Repair the log: see Log.repair. Indexes that are damaged, void or wrong are dropped, and built again.

        operations: questions with predicates or functions, whose indexes cannot be checked and built without them

        Raises LogReadOnly, LogWriteFailed, LogError.
        """
        from jitdb.engine.checking.check_indexes import repair_database

        log = self._maintained("repaired")
        needs = self._needs_of(operations)
        with self._telling("repairing", progress) as tell:
            return repair_database(log, self.folder, self._manager, needs, self._threads, tell)

    @contextmanager
    def _telling(self, work: str, progress: Progress | None) -> Iterator[Callable[[int, int], object]]:
        """What to tell of the progress of this work: a bar, and the function of the user."""
        progress_function(progress)
        with Bar(f"{work} {self.log.path.name}", self.log.durable_end, self._progress) as bar:

            def tell(done: int, total: int) -> None:
                bar(done)
                if progress is not None:
                    progress(done, total)

            yield tell

    def _maintained(self, done: str) -> MaintainedSource:
        if isinstance(self.log, MaintainedSource):
            return self.log
        raise self.log.refusal(done)

    def close(self) -> None:
        """Close the log and the index files."""
        try:
            self._manager.close()
        finally:
            self.log.close()


def _each(paths: Sequence[PathLike]) -> list[Path]:
    """Paths of columns. Raises QueryError for one that may lead to many values in a record."""
    return [single(path, "a column") for path in paths_of(paths)] if len(paths) else []


def _bound(name: str, most: int | None) -> int | None:
    return None if most is None else whole_number(f"{name} is a number", most, 0, InvalidArgument)
