"""The engine: a log, its indexes, and questions answered from them.

A question goes this way: plan (which indexes) -> fresh? else one scan for all that is stale -> evaluate (sets of live
records) -> order -> page -> decode. This is its face; manager.py keeps the indexes, paging.py hands records over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from jitdb.common import js_aliases
from jitdb.common.arguments import file_path, flag, whole_number
from jitdb.common.memory import limit as limit_memory
from jitdb.common.paths import SEQUENCE, parse_path
from jitdb.common.times import AUTO, Unit
from jitdb.common.words import shown
from jitdb.display.cells import printable
from jitdb.engine.budget import Budget
from jitdb.engine.checks import paths_of, unit_of
from jitdb.engine.declared_time import CoreFields, Times
from jitdb.engine.face.asker import Cancel
from jitdb.engine.face.one_log import OneLog
from jitdb.engine.hinting.evidence import remarks_of
from jitdb.engine.hinting.warned import QuestionWarnings
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import Bounds
from jitdb.engine.progress import Bar, Status
from jitdb.engine.roles import found_roles, found_time
from jitdb.errors import InvalidArgument
from jitdb.log.io.filenames import INDEXES
from jitdb.log.lines.keeping.places import shelf_at
from jitdb.log.objects.door import exists
from jitdb.log.objects.shelf import Shelf
from jitdb.log.source import LogSource
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.question import Feed as FeedOf
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.display.parts import Display
    from jitdb.engine.answering.firsts import Firsts
    from jitdb.engine.answering.summarizing import LogView
    from jitdb.engine.hinting.evidence import LogEvidence
    from jitdb.engine.reading.arrow_tables import ArrowAnswer
    from jitdb.engine.reading.feed import Feed
    from jitdb.engine.reading.known_columns import Columns, KnownColumns
    from jitdb.engine.reading.paging import Page, Pages
    from jitdb.engine.reading.selecting import FieldBatch
    from jitdb.engine.sets import LogRecordSet
    from jitdb.engine.showing.explanation import Explanation
    from jitdb.engine.showing.overview import Indexes, Known
    from jitdb.log.codecs import Codec
    from jitdb.operators.passages import Passages
    from jitdb.operators.summaries.summary import Summary

T = TypeVar("T")


class JITDB(OneLog):
    """A log that can be asked. Thread-safe.

    log:       a Log, or anything that is a LogSource
    folder:    where the index files lie; by default `indexes` in the log's sidecar; "memory" keeps them in memory
    timestamp: the field(s) that say when a record was made; of several, the earliest time counts. None: those of the
               usual names that the first records have
    time_unit: of times that are numbers: "s", "ms", "us", "ns"; "auto" tells it from the size of each
               (jitdb.common.times); "number" where what stands for the time is none, but a number to order by
    log_tz:    the zone of times that say none: "Europe/Berlin", "+02:00", "local" (that of this machine); None: UTC
    sequence:  the field behind `declared_sequence`
    threads:   of a scan; 0 is one a core, up to eight
    progress:  show a bar for scans longer than a second; by default in terminals and notebooks only
    follow:    see what other processes did to the log before each question, without refresh()
    max_indexes, max_index_bytes: the most indexes, and bytes of them, that questions may build; one that needs more is
               a TooManyIndexes error; prepare() is not bound, nor are the indexes that all answers need
    memory:    the most bytes that the databases of this process keep and work with, of all together (common/memory.py)
    max_bytes: of logs that may be read to build indexes; a question that needs more is a ScanTooLarge error, and reads
               nothing. None: any

    What can be asked of it stands in Asker and OneLog.
    """

    _looked_at: KnownColumns | None = None

    def __init__(
        self,
        log: LogSource,
        folder: str | os.PathLike[str] | None = None,
        *,
        timestamp: PathLike | Sequence[PathLike] | None = None,
        time_unit: Unit = AUTO,
        log_tz: str | None = None,
        sequence: PathLike = SEQUENCE,
        threads: int = 0,
        progress: bool | None = None,
        follow: bool = False,
        max_indexes: int | None = None,
        max_index_bytes: int | None = None,
        memory: int | None = None,
        max_bytes: int | Budget | None = None,
    ) -> None:
        if not isinstance(log, LogSource):
            raise InvalidArgument(f"a JITDB asks an open log, not {shown(log)}", remedy="jitdb.open(path) opens both")
        limit_memory(memory)
        self.log = log
        self._follows = flag("follow", follow, InvalidArgument)
        place = self._place_of(folder)
        named = None if timestamp is None else paths_of(timestamp)
        self._settings: dict[str, Any] = {
            "timestamp": timestamp, "time_unit": time_unit, "log_tz": log_tz, "sequence": sequence, "threads": threads,
            "progress": False,
        }  # fmt: skip
        self._core = CoreFields(named, (parse_path(sequence),), unit_of(time_unit, log_tz), lambda: found_time(log))
        self._progress = progress = None if progress is None else flag("progress", progress, InvalidArgument)
        self._threads = threads = whole_number("threads is a number", threads, 0, InvalidArgument)
        bounds = Bounds(
            _bound("max_indexes", max_indexes), _bound("max_index_bytes", max_index_bytes), Budget.of(max_bytes)
        )
        self._manager = IndexManager(log, place, self._core, threads, progress, bounds)
        self._warnings = QuestionWarnings(lambda: self.evidence(is_quick=True), log.path)

    def _place_of(self, folder: str | os.PathLike[str] | None) -> Callable[[], FilePath | None]:
        """What says where the index files are now."""
        if folder is None:
            return lambda: self.log.sidecar / INDEXES
        if isinstance(folder, str) and folder == "memory":
            return lambda: None
        if not file_path(folder):
            raise InvalidArgument(
                "a folder of indexes has a name", remedy="None is the usual one, 'memory' none at all"
            )
        given = FilePath(folder)
        return lambda: given

    def __repr__(self) -> str:
        return f"<JITDB {printable(str(self.log.path))} ({self.log.codec.name})>"

    def close(self) -> None:
        try:
            self._manager.close()
        finally:
            self.log.close()

    # --- answering -------------------------------------------------------------------------------------------------

    def _tell(self, asked: Question, is_empty: bool, paths: Sequence[Path] = ()) -> None:
        self._manager.tell_left_out(is_empty)
        super()._tell(asked, is_empty, paths)

    def _count(self, question: Question, cancel: Cancel) -> int:
        operation, manager = question.operation, self._manager

        def look(end: int) -> int:
            return manager.evaluator.count(operation, manager.records.horizon(question.as_of, end))

        return manager.ask(operation, False, cancel, look)

    def _summary(self, question: Question, cancel: Cancel) -> Any:
        from jitdb.engine.answering.summarizing import summarized

        return summarized(self._manager, question, cancel)

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

        known: fields that all of its records share; they replace fields of the same name
        """
        from jitdb.engine.answering.summarizing import viewed

        return viewed(self._manager, resolved(question, cancel), summary, work, known, False, cancel)

    def _page(self, question: Question, cancel: Cancel) -> Page:
        from jitdb.engine.reading.paging import one_page

        return one_page(self._manager, question, cancel)

    def _pages(self, question: Question, cancel: Cancel) -> Pages:
        from jitdb.engine.reading.paging import Pages

        return Pages(self._manager, question, cancel, self._tell)

    def pages_to_merge(self, question: Question, cancel: Cancel) -> Pages:
        """As pages(), with what orders each record (Pages.times), and where it begins."""
        pages = self._pages(resolved(question, cancel), cancel)
        pages.is_timed = True
        return pages

    def _passages(self, question: Question, cancel: threading.Event) -> Passages:
        from jitdb.engine.reading.log_passages import LogPassages

        return LogPassages(self._manager, question, cancel, self._tell)

    def _batches(self, question: Question, cancel: Cancel) -> Iterator[FieldBatch]:
        from jitdb.engine.reading.field_batches import FieldBatches

        return FieldBatches(self._manager, question, cancel, self._tell).batches()

    def batches_to_merge(self, question: Question, cancel: Cancel) -> Iterator[FieldBatch]:
        """As field_batches(), with what orders records among those of other logs: where each lies, and its declared
        time where that is their order.
        """
        from jitdb.engine.reading.field_batches import FieldBatches

        pages = FieldBatches(self._manager, resolved(question, cancel), cancel, self._tell)
        pages.is_keyed, pages.is_placed = question.order is True, True
        return pages.batches()

    def _leaf_paths(self, question: Question, cancel: Cancel) -> list[Path]:
        from jitdb.engine.reading.field_batches import LeafPaths

        return list(LeafPaths(self._manager, question, cancel).look())

    def known_columns(self, times: Times, cancel: Cancel) -> Columns:
        """See table_columns(); `times` are those of the set that the log is in."""
        if self._looked_at is None:
            from jitdb.engine.reading.known_columns import KnownColumns

            self._looked_at = KnownColumns(self._manager)
        return self._looked_at.look(times, cancel)

    def _table_batches(self, question: Question, schema: Any, cancel: Cancel) -> Iterator[Any]:
        yield from self._arrow(question, schema, self.times, (), cancel).reader()

    def _arrow(
        self, question: Question, schema: Any, times: Times | None, places: Sequence[str], cancel: Cancel
    ) -> ArrowAnswer:
        from jitdb.engine.reading.arrow_tables import ArrowAnswer
        from jitdb.engine.reading.field_batches import passes

        assert question.select is not None
        are_placed = schema is not None or "offsets" in places  # errors of a schema tell where a record lies
        batches = passes(self._manager, question, cancel, self._tell, are_placed=are_placed)
        return ArrowAnswer(question.select, batches, times, schema, places)

    def _record_set(self, question: Question, cancel: Cancel) -> LogRecordSet:
        from jitdb.engine.sets import set_of

        return set_of(self._manager, question, cancel)

    def _firsts(self, question: Question, cancel: Cancel) -> tuple[LogRecordSet, int, int]:
        from jitdb.engine.sets import LogRecordSet

        found = self.firsts(question, cancel, {}, is_whole=True)
        return LogRecordSet(self._manager, *found.packed()), len(found.seqs), found.total

    def firsts(self, question: Question, cancel: Cancel, known: Mapping[str, Any], *, is_whole: bool = False) -> Firsts:
        """This log's part of what dedup() leaves. `known`: see tally()."""
        from jitdb.engine.answering.firsts import first_of_each

        return first_of_each(self._manager, resolved(question, cancel), known, is_whole, cancel)

    def _feed(self, question: Question, cancel: Cancel) -> FeedOf:
        self.log.check_growing()
        if self.log.is_rotated:
            from jitdb.engine.following.follower import follow_name, is_of_places

            if not is_of_places(question):
                return follow_name(self, question)
        return self.feed_here(question)

    def feed_here(self, question: Question) -> Feed:
        """As feed(), of this log alone, whichever file has its name later. Raises QueryError."""
        from jitdb.engine.reading.feed import Feed

        return Feed(self._manager, self.log, question)

    def over(self, log: LogSource) -> JITDB:
        """Another log, asked as this one is, with indexes in memory."""
        return JITDB(log, "memory", **self._settings)

    # --- what there is to know; nothing of this scans the log ------------------------------------------------------

    def _display(self) -> Display:
        from jitdb.engine.showing.overview import overview

        return overview(self._manager)

    def sample(self, count: int) -> list[Any]:
        from jitdb.log.reading.sampling import sample

        return list(sample(self.log, whole_number("a sample is a number of records", count)))

    @property
    def times(self) -> Times:
        return self._core.times

    @property
    def messages(self) -> list[Path]:
        found = found_roles(self.log).message
        return [] if found is None else [found]

    def evidence(self, *, is_quick: bool = False) -> LogEvidence:
        from jitdb.engine.hinting.evidence import LogEvidence

        return LogEvidence(self._manager, is_quick=is_quick)

    def _state(self) -> object:
        return self.log.identity, self.log.durable_end

    def _remarks(self, question: Question, is_full: bool) -> list[str]:
        ordered, manager = question.order is True, self._manager
        return manager.look(lambda: remarks_of(manager, question.operation, ordered, is_full))

    def _explain(self, question: Question) -> Explanation:
        from jitdb.engine.showing.explanation import explained

        return self._manager.look(lambda: explained(self._manager, question))

    def explained_soon(self, question: Question) -> Explanation | None:
        from jitdb.engine.showing.explanation import explained_soon

        return explained_soon(self._manager, question)

    def indexes(self) -> Indexes:
        """The indexes that questions have left: what each is about, its size, and whether it is fresh."""
        from jitdb.engine.showing.overview import indexes_of

        return indexes_of(self._manager)

    def known(self) -> Known | None:
        """What the indexes know of all records: how many, up to which byte of the log, from when to when. None: the log
        must be read first.
        """
        from jitdb.engine.showing.overview import known_of

        return known_of(self._manager)

    @property
    def status(self) -> Status:
        """What the engine does now."""
        return self._manager.build_lock.status


def _bound(name: str, most: int | None) -> int | None:
    return None if most is None else whole_number(f"{name} is a number", most, 0, InvalidArgument)


@js_aliases.keywords("jitdb.open()", js_aliases.LOG)
def open(
    path: str | os.PathLike[str],
    indexes: str | os.PathLike[str] | Shelf | None = None,
    *,
    codec: str | Codec | None = None,
    block_size: int | None = None,
    read_only: bool = False,
    create: bool = False,
    allow_prefix: bool = False,
    each: str | Sequence[str] | None = None,
    format: str | None = None,
    timestamp: str | Sequence[str | Sequence[str]] | None = None,
    time_unit: Unit = AUTO,
    log_tz: str | None = None,
    sequence: str | Sequence[str] = SEQUENCE,
    threads: int = 0,
    progress: bool | None = None,
    follow: bool = False,
    max_indexes: int | None = None,
    max_index_bytes: int | None = None,
    memory: int | None = None,
    max_bytes: int | None = None,
) -> JITDB:
    """Open the log at `path`, or the JSON Lines, the Parquet or Arrow file that somebody else writes there, and ask it
    questions. Of a Parquet or Arrow file all rows are read first, and kept (see docs/formats.md).

    codec, block_size: found by looking, unless given; of a new log "msgpack" and 65,536 bytes
    indexes:   the folder of the index files; by default inside the log's sidecar folder; "memory" keeps them in memory
               (and nothing else of JSON Lines on disk); of an object in a store also a place in one
               ("s3://bucket/indexes"), by which machines share them
    read_only: open beside a process that writes; `refresh()` shows what it wrote
    follow:    each question sees what was written since the one before, also in another file that got this name
    create:    make a new log where there is none (otherwise that is an error: a misspelt path finds nothing)
    allow_prefix: of JSON Lines: text may stand before the JSON of a line, and lines without JSON are text (see
               docs/json-lines.md)
    each:      of JSON Lines: the path to the elements that are records, of batches in one line, such as
               "resourceLogs[].scopeLogs[].logRecords[]", or a list of keys and "[]"
    format:    of other lines: the name of a format, a pattern with groups (?P<name>...), or a log_format of nginx
               (docs/formats.md); by default what the first lines say
    The rest is explained at JITDB. Raises LogError.
    """
    from jitdb.engine.database import JITDB
    from jitdb.log.any_log import open_any
    from jitdb.log.lines.form import line_form

    form = line_form(flag("allow_prefix", allow_prefix, InvalidArgument), each, format)
    create, read_only = flag("create", create, InvalidArgument), flag("read_only", read_only, InvalidArgument)
    if not (create and not read_only) and not exists(file_path(path)):
        from jitdb.log.opening.open_log import no_such_log

        raise no_such_log(path, read_only=read_only)
    shelf = shelf_at(indexes)
    folder = None if shelf is not None or isinstance(indexes, Shelf) else indexes
    budget = Budget.of(max_bytes)
    log = open_any(
        path, codec=codec, block_size=block_size, read_only=read_only, folder=folder, form=form,
        bar=partial(Bar, shown=progress), shelf=shelf, **({} if budget is None else {"may_read": budget.check}),
    )  # fmt: skip
    try:
        return JITDB(
            log, folder, timestamp=timestamp, time_unit=time_unit, log_tz=log_tz, sequence=sequence, threads=threads,
            progress=progress, follow=follow, max_indexes=max_indexes, max_index_bytes=max_index_bytes, memory=memory,
            max_bytes=budget,
        )  # fmt: skip
    except BaseException:
        log.close()
        raise
