"""The engine: a log, its indexes, and questions answered from them.

A question goes this way: plan (which indexes) -> fresh? else one scan for all that is stale -> evaluate (sets of live
records) -> order -> page -> decode. This is its face; manager.py keeps the indexes, paging.py hands records over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from jitdb.common.arguments import file_path, flag, whole_number
from jitdb.common.paths import SEQUENCE, parse_path
from jitdb.common.times import AUTO, Unit
from jitdb.common.words import shown
from jitdb.engine.checks import paths_of, question_of, unit_of
from jitdb.engine.declared_time import CoreFields, found_time
from jitdb.engine.face.base import Asked, Cancel
from jitdb.engine.face.contexts import Contexts
from jitdb.engine.face.introspection import Introspection
from jitdb.engine.face.keeping import Keeping
from jitdb.engine.face.lookups import Lookups
from jitdb.engine.hinting.evidence import QuestionWarnings
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import Bounds
from jitdb.errors import InvalidArgument, QueryError
from jitdb.log.io.filenames import INDEXES
from jitdb.log.source import LogSource
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.question import Feed as FeedOf
from jitdb.operators.question import Live, Question, Settings
from jitdb.operators.summaries.asking import Summaries
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.display.parts import Display
    from jitdb.engine.answering.summarizing import LogView
    from jitdb.engine.reading.arrow_tables import ArrowAnswer
    from jitdb.engine.reading.feed import Feed
    from jitdb.engine.reading.page import Page
    from jitdb.engine.reading.paging import Pages
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.engine.sets import LogRecordSet, SavedSets
    from jitdb.operators.passages import Passages
    from jitdb.operators.queries import Query
    from jitdb.operators.running.iterate import Results
    from jitdb.operators.summaries.fields import FieldNames
    from jitdb.operators.summaries.summary import Summary


T = TypeVar("T")


class JITDB(Lookups, Keeping, Introspection, Contexts, Summaries):
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
        self._settings: dict[str, Any] = {
            "timestamp": timestamp, "time_unit": time_unit, "sequence": sequence, "threads": threads, "progress": False,
        }  # fmt: skip
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

    def __enter__(self) -> JITDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self, question: Asked, settings: Settings, limit: int | None = None) -> Question:
        return question_of(self, question, settings, limit)

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
        from jitdb.engine.answering.summarizing import summarized

        asked = resolved(question, cancel)
        found = summarized(self._manager, asked, cancel)
        assert asked.summary is not None
        is_empty = found.missing == found.total
        self._tell(asked, is_empty, asked.summary.paths if is_empty and found.total else ())
        return found

    def tally(
        self,
        question: Question,
        summary: Summary[Any],
        work: Callable[[LogView], T],
        known: Mapping[str, Any],
        *,
        cancel: Cancel = None,
    ) -> T:
        """This log's part of a summary of several: see operators/summaries/summary.py.

        known: fields that all of its records have, in the place of their own
        """
        from jitdb.engine.answering.summarizing import viewed

        return viewed(self._manager, resolved(question, cancel), summary, work, known, False, cancel)

    def _summarized(self, asked: Summary[Any], where: Operation | None) -> Any:
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

    def _passages(self, question: Question, cancel: threading.Event) -> Passages:
        from jitdb.engine.reading.log_passages import LogPassages

        return LogPassages(self._manager, resolved(question, cancel), cancel, self._tell)

    def field_batches(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        keyed: bool = False,
        cancel: Cancel = None,
        **settings: Unpack[Settings],
    ) -> Iterator[FieldBatch]:
        """The selected fields of the matching records as arrays, `limit` records at a time, in order: for tables.

        keyed: with their declared times, where they come in that order

        Raises QueryError where no fields are selected.
        """
        from jitdb.engine.reading.field_batches import FieldBatches

        asked = resolved(self._asked(question, settings, limit), cancel)
        if asked.select is None:
            raise QueryError("columns are made of selected fields", remedy='select=["size", "user.name"]')
        pages = FieldBatches(self._manager, asked, cancel, self._tell)
        pages.is_keyed = keyed
        return pages.batches()

    def leaf_paths(self, question: Asked = None, *, cancel: Cancel = None) -> list[Path]:
        """All fields of the records that match which hold no maps, or empty ones, in the order in which they come.

        Raises QueryError where these are too many to be columns.
        """
        from jitdb.engine.reading.field_batches import LeafPaths

        asked = resolved(self._asked(question, {}), cancel)
        return list(LeafPaths(self._manager, asked, cancel).look())

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

        select: without it, all fields that these records have, which are gone through once more for it
        schema: a pyarrow.Schema, of the types that columns are to have; without it, their values tell
        times:  whether what is times by all its values becomes timestamps
        places: columns "seqs" and "offsets", before the others

        See Query.to_arrow. Raises QueryError, LogError, MissingLibrary.
        """
        from jitdb.engine.reading.field_batches import Passes, columns_of
        from jitdb.errors import library

        library("pyarrow")
        from jitdb.engine.reading.arrow_tables import ArrowAnswer

        asked = resolved(self._asked(question, settings, limit), cancel)
        select = columns_of(self, asked, cancel)
        passes = Passes(self._manager, asked.changed(select=select), cancel, self._tell)
        return ArrowAnswer(select, passes, self.times if times else None, schema, places)

    def feed(
        self,
        question: Asked = None,
        *,
        limit: int | None = None,
        old: bool = False,
        after: str | None = None,
        as_offsets: bool = False,
        cancel: Cancel = None,
    ) -> FeedOf:
        """The matching records that come, without waiting for any: what live() is made of.

        limit:      at most so many records a portion
        old:        those that are there already come first
        after:      a cursor: those behind it, whether they are there already or not
        as_offsets: their offsets instead

        Raises QueryError for a cursor of another log.
        """
        asked = self._asked(question, {"as_offsets": as_offsets}, limit)
        if asked is not question:
            asked = asked.changed(live=Live(flag("old", old), after))
        asked = resolved(asked, cancel)
        if self.log.is_rotated:
            from jitdb.engine.following.one_log import follow_name, is_of_places

            if not is_of_places(asked):
                return follow_name(self, asked)
        return self.feed_here(asked)

    def feed_here(self, question: Question) -> Feed:
        """The same of this log alone, whichever file has its name later. Raises QueryError."""
        from jitdb.engine.reading.feed import Feed

        return Feed(self._manager, self.log, question)

    def over(self, log: LogSource) -> JITDB:
        """Another log, asked as this one is, with indexes in memory."""
        return JITDB(log, "memory", **self._settings)

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
        from jitdb.engine.sets import set_of

        return set_of(self._manager, resolved(self._asked(question, settings, limit), cancel), cancel)

    @property
    def sets(self) -> SavedSets:
        """Sets of records that are kept under names: `db.sets["suspicious"] = db.query(...).set()`."""
        from jitdb.engine.sets import SavedSets

        if self._sets is None:
            self._sets = SavedSets(self._manager)
        return self._sets

    def first_look(self, question: Question) -> Display:
        """What there is to see of a question before it is asked: its plan, and its first answers where indexes have
        them already. Scans nothing.
        """
        from jitdb.engine.showing.explanation import first_look

        return first_look(question, self.explained_soon, self.paginate)


def _bound(name: str, most: int | None) -> int | None:
    return None if most is None else whole_number(f"{name} is a number", most, 0, InvalidArgument)
