"""Keeping the indexes of a database up to date and in order, and answering under their lock.

Three locks are taken, in this order. The build lock (building/build_lock.py) lets one scan run at a time; questions
that need the same indexes wait for it. The locks of index files keep other processes from writing to them. `lock`
guards the indexes in memory for the microseconds of an evaluation, so questions whose indexes are fresh are answered
while a scan runs. No function of the user is called with `lock` held.

What can be wrong, and what is done about it:

    an index is stale                     one scan brings all stale ones up to date (maintenance/updater.py)
    an index is damaged                   it is dropped, and so it is stale
    indexes count different records       a damaged block hides records that it did not hide before: all are dropped
    a block of the log is damaged         its records are left out, with a warning; the index of offsets lists it
    such a block was repaired since       all are dropped: they were made without its records
    records are not where they should be  the indexes are of another copy of the log: all are dropped
    the last record is another one        that index is of another copy: it is dropped when it is read (copies.py)
    the log is another one                it was truncated or replaced, and has other indexes
    another program changed the file      it is read once: are these the bytes that were indexed? (log_content.py)
    the log was compacted                 its indexes are renumbered, without a scan (carry.py)
    it was compacted beneath a reader     the log is refreshed: its new files say what was deleted since
    another process builds the same       wait until it is done, then go on from what it built (indexes/files/folder.py)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from jitdb.engine.answering.evaluate import Unconfirmed
from jitdb.engine.maintenance.updater import IndexUpdater
from jitdb.engine.plan import UNBOUND, Bounds, Needs, Plan
from jitdb.errors import IndexDamaged, LogClosed, LogCorrupt, LogError, LogSuperseded, QueryError
from jitdb.indexes.files.folder import known_indexes, remove_locked
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import IndexSpec, Requirement
from jitdb.log.io import osfile
from jitdb.operators.nodes.operation import EVERYTHING, Operation

if TYPE_CHECKING:
    from jitdb.operators.nodes.selection import SortKeys

T = TypeVar("T")


class IndexManager(IndexUpdater):
    """The indexes of one log, up to date and sound when a question is answered."""

    def close(self) -> None:
        with self.lock:
            self.forget()  # others may remember as much more
            self.catalog.close()

    # --- asking ----------------------------------------------------------------------------------------------------

    def ask(
        self,
        operation: Operation,
        order: bool | SortKeys,
        cancel: threading.Event | None,
        answer: Callable[[int], T],
        also: Needs = (),
        bounds: Bounds | None = None,
    ) -> T:
        """`answer(end_seq)` under the lock, with all indexes fresh: they know every record below end_seq.

        order: what the answer is sorted by (Question.order), which may need indexes of its own
        also:  more indexes that are needed
        bounds: on new indexes, if not those of the database

        Raises QueryCancelled, LogError, and what the user's functions raise.
        """
        while True:
            try:
                with self.log.guessing():
                    return self._ask(operation, order, cancel, answer, also, bounds or self._bounds)
            except LogSuperseded:
                self.log.refresh()

    def _ask(
        self,
        operation: Operation,
        order: bool | SortKeys,
        cancel: threading.Event | None,
        answer: Callable[[int], T],
        also: Needs,
        bounds: Bounds,
    ) -> T:
        unread = None
        records, end = self.records, self.log.durable_end
        while True:
            try:
                if unread is not None:
                    read, unread = unread.read, None
                    read(cancel)
                damaged: list[int] = []
                with self.lock:
                    is_unknown = self.is_unknown()
                    if records is not self.records or end > self.log.durable_end:  # it was a guess
                        records, end = self.records, self.log.durable_end
                    plan = Plan((), ()) if is_unknown else self.plan(operation, order, also)
                    stale = plan.stale(end)  # the end when this was asked: a writer may be faster than scans
                    # Not the plan's: these needs have the functions of this very question.
                    needs = self.needs_of(operation, order, also) if stale else ()
                    if not stale and not is_unknown:
                        end_seq = self.horizon(plan)
                        if end_seq is not None:
                            records.note_deletions()
                            damaged = records.unseen_damage()
                            if not damaged:
                                found = answer(end_seq)
                                if not self.is_unknown():
                                    return found
                                is_unknown = True
                if is_unknown:
                    self.follow(cancel)
                elif stale:
                    self.build(needs, cancel, bounds)
                elif damaged:
                    self.leave_out(records, damaged, cancel)
                else:
                    self.drop_all(records, cancel)
            except Unconfirmed as many:
                unread = many
            except IndexDamaged as damage:
                self.drop_damaged(damage, cancel, records)
            except LogSuperseded:
                self.log.refresh()
            except (LogError, QueryError, OSError) as error:
                if not isinstance(error, LogClosed) and self.changed(records):
                    continue  # the log changed while it was read, or while a cursor was compared with it
                if not isinstance(error, LogCorrupt):
                    raise
                self.set_aside(error)

    def look(self, work: Callable[[], T]) -> T:
        """`work()` under the lock, with indexes that may be stale; drops those that are still empty afterwards."""

        while True:
            self.follow(None)
            try:
                with self.lock, self.leaving_nothing():
                    return work()
            except IndexDamaged as damage:
                self.drop_damaged(damage, None)

    # --- maintenance -----------------------------------------------------------------------------------------------

    def prepare(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes up to date, and those that every page needs."""
        while True:
            records = self.ask(EVERYTHING, True, cancel, lambda _: self.records, tuple(needs), UNBOUND)
            try:
                self._keep([need.spec for need in needs], cancel)
            except IndexDamaged as damage:
                self.drop_damaged(damage, cancel)
            except LogSuperseded:
                self.log.refresh()
            else:
                if not self.changed(records):
                    return

    def _keep(self, specs: Sequence[IndexSpec], cancel: threading.Event | None) -> None:
        """Give these indexes files even where no record has a value in their fields."""

        def waiting() -> list[Index]:
            return [index for spec in specs if (index := self.catalog.get(spec)).is_waiting]

        with self.lock:
            if not waiting():
                return
        with self.build_lock.alone(cancel), self._changing(waiting, cancel) as (indexes, _):
            self.catalog.keep(indexes)

    def remap(self) -> None:
        """Take over all indexes from earlier generations of the log, whether they were asked for or not."""

        def work() -> None:
            with self.lock:
                indexes = self.catalog.older()
            for index in indexes:  # questions are answered in between
                with self._changing(partial(list, [index]), None):
                    pass

        self._alone(work)

    def reindex(self, offset: int) -> None:
        """Make all indexes forget the records from this offset on: the next question scans them again."""

        def work() -> None:
            with self._changing(lambda: self.catalog.everything(), None) as (indexes, _):
                for index in indexes:
                    try:
                        self.catalog.cut(index, offset)
                    except IndexDamaged as damage:  # what is left of it cannot be kept
                        self._drop(index, damage)
                self.forget()

        self._alone(work)

    def _alone(self, work: Callable[[], None]) -> None:
        """Do this to the indexes of the log as it is; again if that was compacted meanwhile."""
        while True:
            self.follow(None)
            try:
                with self.build_lock.alone(None):
                    return work()
            except LogSuperseded:
                self.log.refresh()

    def forget_files(self, names: Collection[str]) -> None:
        """Remove these files from the folder; questions that need them build them again. Raises LogError."""
        with self.build_lock.alone(None):
            try:
                if self.folder is not None:
                    remove_locked(osfile.fs, self.folder, names)  # which may wait for other processes
            except OSError as error:
                raise LogError(f"an index cannot be removed: {osfile.reason(error)}", path=self.log.path) from error
            finally:
                with self.lock:
                    for index in self.catalog.opened():
                        if index.spec.file_name() in names:
                            index.clear()
                    self.renumber()

    def opened(self) -> list[Index]:
        with self.lock:
            return list(self.catalog.opened())

    def index_names(self) -> dict[str, IndexSpec | None]:
        """All indexes, in files or in memory, by the names of their files; None: its head is damaged."""
        held = {index.spec.file_name(): index.spec for index in self.opened() if index.segments}
        return {**known_indexes(osfile.fs, self.folder), **held}
