"""What can be asked of one log only: to bring it up to date, check it, repair it, delete from it; and, for stores that
are built on a log, what its indexes know: values one by one, and columns, without reading a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from jitdb.common import js_aliases
from jitdb.common.arguments import function, progress_function, whole_number
from jitdb.common.paths import Path, single
from jitdb.engine.checks import dropped_names, operations_of, paths_of
from jitdb.engine.declared_time import CoreFields
from jitdb.engine.face.asker import Asker, Cancel
from jitdb.engine.manager import IndexManager
from jitdb.engine.plan import requirements
from jitdb.engine.progress import Bar
from jitdb.errors import InvalidOffset, QueryError, RecordDeleted
from jitdb.indexes.spec import Requirement
from jitdb.log.source import LogSource, MaintainedSource
from jitdb.operators.nodes.compare import gt
from jitdb.operators.nodes.equal import equal, includes
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import Operation, and_
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    from jitdb.engine.answering.finder import Columns, Finder
    from jitdb.engine.checking.report import Report
    from jitdb.engine.sets import SavedSets
    from jitdb.log.maintenance.report import Compaction, RepairReport

Progress: TypeAlias = Callable[[int, int], object]


class OneLog(Asker):
    """All of it is exact beside readers and writers in other processes; JITDB adds what is asked of many logs, too."""

    log: LogSource
    _manager: IndexManager
    _core: CoreFields
    _progress: bool | None
    _threads: int
    _sets: SavedSets | None = None

    @property
    def folder(self) -> FilePath | None:
        """Where the index files lie; None: in memory. Files of lines have others when another file has their name."""
        return self._manager.folder

    if not TYPE_CHECKING:  # a checker knows which names there are

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                js_aliases.no_such_name("a JITDB", name, js_aliases.DATABASE, dir(type(self))), name=name
            )

    @property
    def sets(self) -> SavedSets:
        """Sets of records that are kept under names: `db.sets["suspicious"] = db.query(...).set()`."""
        from jitdb.engine.sets import SavedSets

        if self._sets is None:
            self._sets = SavedSets(self._manager)
        return self._sets

    def _operation(self, operation: str | Operation | None, cancel: Cancel = None) -> Operation:
        return self._ready(operation, {}, None, cancel).operation

    def _needs_of(self, operations: Sequence[str | Operation | None], cancel: Cancel = None) -> list[Requirement]:
        asked = [self._operation(operation, cancel) for operation in operations_of(operations)]
        return self._manager.look(lambda: [need for each in asked for need in self._manager.leaf_needs(each)])

    def on_ready(self, callback: Callable[[], object] | None = None) -> None:
        """Call back when the database can be asked. Indexes are read when they are needed, so that is at once."""
        if callback is not None:
            function("on_ready() takes a function without arguments", callback, 0)
            callback()

    def prepare(self, *operations: str | Operation, cancel: Cancel = None) -> float:
        """Bring the indexes of these questions up to date, in one scan; gives the milliseconds it took."""
        begin = time.perf_counter()
        needs = self._needs_of(operations, cancel)
        self._manager.prepare(needs, cancel)
        return 1e3 * (time.perf_counter() - begin)

    def _look(self) -> bool:
        return self.log.refresh()

    def refresh(self) -> bool:
        """See what other processes did to the log; True if there was anything. One opened with `follow` does that
        before each question.
        """
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
        that needs one of them builds it anew. Other processes may use them: this waits for one that builds, while
        one that reads goes on. Raises QueryError for a name or path that no index has, with the nearest.
        """
        self._manager.follow(None)
        names = dropped_names(which, self._manager.index_names(), self._core)
        self._manager.forget_files(names)
        return names

    def delete(self, *operations: str | Operation, cancel: Cancel = None) -> int:
        """Delete the records of which all `operations` are true, and give how many these were: all of them or none.

        They are gone from all answers, and zeros on the disk when this returns; compact() gives their room back. What
        is appended meanwhile stays. Raises LogReadOnly where the log is only read, QueryError without an operation,
        LogWriteFailed, LogError.
        """
        log = self._maintained("deleted from")
        if not operations:
            raise QueryError("delete() takes the operations that say which records", remedy="all are everything()")
        asked = and_(
            *(operation_of(each, "delete() takes operations") for each in operations)
        )  # None, a condition left out elsewhere, would be all records
        from jitdb.engine.reading.paging import offsets_of

        while True:
            generation = log.generation
            found = self._ready(asked, {"sort_by": "arrival"}, None, cancel)
            offsets = offsets_of(self._manager, found, cancel)
            self._tell(found, not len(offsets))
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
        operations: Sequence[str | Operation] = (),
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

    def repair(self, *, operations: Sequence[str | Operation] = (), progress: Progress | None = None) -> RepairReport:
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
        """A function that passes progress on: to a bar, and to the user's function."""
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

    # --- for stores --------------------------------------------------------------------------------------------------

    def lookup(self, operation: str | Operation, seq: int) -> bool:
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
        where: str | Operation | None = None,
    ) -> Columns:
        """What indexes know of the live records, as arrays, without reading one of them: for stores built on a log.

        numbers: fields whose numbers are wanted, from their columns
        values:  fields of few values, from bitmaps: each record's is given as the number of the value
        start:   only records from this seq on
        where:   only records that match

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import columns_of

        first, manager = whole_number("a seq is the ordinal of a record", start), self._manager
        compared = [gt(0, path) for path in _each(numbers)]
        equated = [equal(path, None, prefix=False) for path in _each(values)]
        asked = self._operation(where)

        def look(end: int) -> Columns:
            known, coded = (
                [manager.catalog.get(need.spec) for leaf in leaves for need in requirements(leaf, self._core)]
                for leaves in (compared, equated)
            )
            return columns_of(manager.records, known, coded, first, end, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, *compared, *equated), False, None, look)

    def distinct(self, path: PathLike, where: str | Operation | None = None) -> list[Any]:
        """The values that a field of few values has in the records that match, or in all, in no order; none is read.

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import values_in

        (field_path,) = paths_of(path)
        leaf, manager = equal(field_path, None, prefix=False), self._manager
        asked = self._operation(where)
        (need,) = self._needs_of((leaf,))

        def look(end: int) -> list[Any]:
            return values_in(manager.catalog.get(need.spec).segments, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, leaf), False, None, look)


def _each(paths: Sequence[PathLike]) -> list[Path]:
    """Paths of columns. Raises QueryError for one that may lead to many values in a record."""
    return [single(path, "a column") for path in paths_of(paths)] if len(paths) else []
