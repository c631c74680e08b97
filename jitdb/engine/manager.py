"""Keeping the indexes of a database up to date and in order, and answering under their lock.

Three things are held, in this order: the build lock (maintenance/exclusive.py) lets one scan run at a time, and whoever
needs the same indexes waits for it; the locks of index files keep other processes from writing to them; `lock` guards
the indexes in memory for the microseconds that an evaluation takes, so questions whose indexes are fresh are answered
while a scan runs. No function of the user is called with `lock` held.

What can be wrong, and what is done about it:

    an index is stale                     one scan for all that are (building.py)
    an index is damaged                   it is dropped, and so it is stale (dropping.py)
    indexes count different records       a damaged block hides records that it did not hide before: all are dropped
    a block of the log is damaged         its records are left out, with a warning; the index of offsets lists it
    such a block was repaired since       all are dropped: they were made without its records
    records are not where they should be  the indexes are of another copy of the log: all are dropped
    the last record is another one        that index is of another copy: it is dropped when it is read (copies.py)
    the log is another one                truncated or replaced: its indexes are others too (following.py)
    somebody else changed the file        it is read once: are these the bytes that were indexed? (log_content.py)
    the log was compacted                 its indexes are taken over, without a scan (carry.py)
    so it was beneath a reader            the log is refreshed: what was deleted since is told of in its new files
    another process builds the same       wait until it is done, then go on from what it built (indexes/locks.py)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, TypeVar

from jitdb.common.forking import begins_anew
from jitdb.engine.answering.answer import Answer
from jitdb.engine.answering.evaluate import Evaluator, Unconfirmed
from jitdb.engine.answering.order import Order
from jitdb.engine.bounds import UNBOUND, Bounds
from jitdb.engine.maintenance.building import IndexBuilding
from jitdb.engine.maintenance.dropping import Dropping
from jitdb.engine.maintenance.exclusive import ExclusiveIndexes
from jitdb.engine.maintenance.following import follow
from jitdb.engine.maintenance.freshness import core_needs, horizon, needs_of, plan_of
from jitdb.engine.maintenance.state import IndexState
from jitdb.engine.plan import CoreFields, Plan, Requirement
from jitdb.engine.progress import Status
from jitdb.engine.records import Records
from jitdb.errors import IndexDamaged, LogClosed, LogCorrupt, LogError, LogSuperseded, QueryError
from jitdb.indexes.files.folder import known_indexes, remove_locked
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import IndexSpec
from jitdb.log.io import osfile
from jitdb.operators.nodes.operations import Operation

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

T = TypeVar("T")


class IndexManager:
    """The indexes of one log, and what is remembered of the answers that they gave.

    `lock` is to be held by whoever uses `records`, `evaluator`, plan(), answer() or declared().
    """

    def __init__(
        self,
        log: LogSource,
        folder: FilePath | None,
        core: CoreFields,
        threads: int,
        show_progress: bool | None,
        bounds: Bounds = UNBOUND,
    ) -> None:
        self._log = log
        self._bounds = bounds
        self._state = IndexState(log, folder, core)
        self._exclusive = ExclusiveIndexes(self._state)
        self._dropping = Dropping(self._state, self._exclusive)
        self._building = IndexBuilding(self._state, self._exclusive, self._dropping, threads, show_progress)
        begins_anew(self)

    def begin_anew(self) -> None:
        """In a forked child: what other threads were at in the parent was left half done here."""
        self._state.begin_anew()
        self._exclusive.begin_anew()

    @property
    def lock(self) -> threading.RLock:
        """That of the indexes in memory."""
        return self._state.lock

    @property
    def records(self) -> Records:
        """The records that the indexes speak of. Others take their place when the log is another one."""
        return self._state.records

    @property
    def evaluator(self) -> Evaluator:
        """What answers from the indexes."""
        return self._state.answers.evaluator

    @property
    def status(self) -> Status:
        """What is done now."""
        return self._exclusive.build_lock.status

    def close(self) -> None:
        """Close the index files."""
        with self.lock:
            self._state.catalog.close()

    # --- asking ----------------------------------------------------------------------------------------------------

    def ask(self, operation: Operation, ordered: bool, cancel: threading.Event | None, answer: Callable[[int], T]) -> T:
        """`answer(end_seq)` under the lock, with all indexes fresh; they know every record below end_seq.

        `ordered`: the declared order is needed too. Raises QueryCancelled, LogError, and what the user's functions do.
        """
        state, unread = self._state, None
        records, end = state.records, self._log.durable_end
        while True:
            try:
                if unread is not None:
                    read, unread = unread.read, None
                    read(cancel)
                damaged: list[int] = []
                with state.lock:
                    is_unknown = state.is_unknown()
                    if records is not state.records:
                        records, end = state.records, self._log.durable_end
                    plan = Plan((), ()) if is_unknown else self.plan(operation, ordered)
                    stale = plan.stale(end)  # where the log ended when it was asked: a writer may be faster than we are
                    # Not the plan's needs: these are the functions of this very question.
                    needs = needs_of(state, operation, ordered) if stale else ()
                    if not stale and not is_unknown:
                        end_seq = horizon(state, plan)
                        if end_seq is not None:
                            records.note_deletions()
                            damaged = records.unseen_damage()
                            if not damaged:
                                found = answer(end_seq)
                                if not state.is_unknown():
                                    return found
                                is_unknown = True
                if is_unknown:
                    self.follow(cancel)
                elif stale:
                    self._building.build(needs, cancel, self._bounds)
                elif damaged:
                    self._dropping.leave_out(records, damaged, cancel)
                else:
                    self._dropping.drop_all(records, cancel)
            except Unconfirmed as many:
                unread = many
            except IndexDamaged as damage:
                self.drop_damaged(damage, cancel, records)
            except LogSuperseded:
                self._log.refresh()
            except (LogError, QueryError, OSError) as error:
                if not isinstance(error, LogClosed) and self.changed(records):
                    continue  # it was read while it changed, or a cursor was held against it then
                if not isinstance(error, LogCorrupt):
                    raise
                self.set_aside(error)

    def plan(self, operation: Operation, ordered: bool) -> Plan:
        """The indexes of a question; `ordered`: those of the declared order too."""
        return plan_of(self._state, operation, ordered)

    def answer(self, operation: Operation, end_seq: int) -> Answer:
        """The whole answer, to be paged through."""
        return self._state.answers.answer(operation, end_seq)

    def declared(self) -> Order:
        """The order by time."""
        return self._state.answers.declared()

    def look(self, work: Callable[[], T]) -> T:
        """`work()` under the lock, with the indexes of the log as it is, stale or not; it leaves none in memory of
        which there is nothing yet.
        """
        while True:
            self.follow(None)
            try:
                with self.lock, self._state.leaving_nothing():
                    return work()
            except IndexDamaged as damage:
                self.drop_damaged(damage, None)

    def changed(self, records: Records) -> bool:
        """Whether seqs and offsets that were taken from these records mean nothing any more."""
        return self._state.changed(records)

    def follow(self, cancel: threading.Event | None) -> None:
        """Where the log was truncated, replaced or compacted, its records have other seqs, and it other indexes.

        So it has where somebody else changed the bytes that were indexed. Raises LogError, QueryCancelled.
        """
        follow(self._state, self._exclusive.build_lock, cancel)

    def drop_damaged(
        self, damage: IndexDamaged, cancel: threading.Event | None, records: Records | None = None
    ) -> None:
        """See Dropping.drop_damaged."""
        self._dropping.drop_damaged(damage, cancel, records)

    def set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        self._dropping.set_aside(fault)

    # --- maintenance -----------------------------------------------------------------------------------------------

    def prepare(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes, and those that any page may need, up to date."""
        while True:
            self.follow(cancel)
            with self.lock:
                records, core = self.records, core_needs(self._state)
            try:
                self._building.build((*core, *needs), cancel, UNBOUND)
                with self.lock:
                    damaged = records.unseen_damage()
                if damaged:
                    self._dropping.leave_out(records, damaged, cancel)
                elif not self.changed(records):
                    return
            except IndexDamaged as damage:
                self.drop_damaged(damage, cancel)
            except (LogError, OSError):
                if not self.changed(records):
                    raise

    def refuse_within(self) -> None:
        """Raise QueryError in a function of the user that a scan calls."""
        self._exclusive.build_lock.refuse_within()

    def remap(self, progress: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Take over all indexes there are, asked for so far or not, from earlier generations of the log.

        `progress` gets how many of them are done, and how many there are.
        """

        def work() -> None:
            with self.lock:
                indexes = self._state.catalog.older()
            for done, index in enumerate(indexes):
                progress(done, len(indexes))
                with self._exclusive.locked([index], None), self.lock:
                    self._exclusive.catch_up([index])
            progress(len(indexes), len(indexes))

        self._alone(work)

    def reindex(self, offset: int) -> None:
        """Let all indexes forget the records from this offset on, so that the next question looks at them again."""

        def work() -> None:
            state, exclusive = self._state, self._exclusive
            with state.lock:
                indexes = state.catalog.everything()
            with exclusive.locked(indexes, None), state.lock:
                exclusive.catch_up(indexes)
                for index in indexes:
                    try:
                        state.catalog.cut(index, offset)
                    except IndexDamaged as damage:  # what is left of it cannot be kept
                        exclusive.drop(index, damage)
                state.answers.forget()

        self._alone(work)

    def _alone(self, work: Callable[[], None]) -> None:
        """Do it to the indexes of the log as it is; again, where that was compacted meanwhile."""
        while True:
            self.follow(None)
            try:
                with self._exclusive.build_lock.alone(None):
                    return work()
            except LogSuperseded:
                self._log.refresh()

    def forget_files(self, names: Collection[str], cancel: threading.Event | None = None) -> None:
        """Remove these files from the folder. What needs them builds them anew. Raises LogError where that fails."""
        state = self._state
        with self._exclusive.build_lock.alone(cancel):
            try:
                if state.folder is not None:
                    remove_locked(osfile.fs, state.folder, names)  # which may wait for other processes
            except OSError as error:
                raise LogError(f"an index cannot be removed: {osfile.reason(error)}", path=self._log.path) from error
            finally:
                with state.lock:
                    for index in state.catalog.opened():
                        if index.spec.file_name() in names:
                            index.clear()
                    state.renumber()

    def opened(self) -> list[Index]:
        """The indexes that are in memory."""
        with self.lock:
            return list(self._state.catalog.opened())

    def index_names(self) -> dict[str, IndexSpec | None]:
        """The indexes that there are, in files or in memory, by the names of their files; None: its head is damaged."""
        held = {index.spec.file_name(): index.spec for index in self.opened() if index.segments}
        return {**known_indexes(osfile.fs, self._state.folder), **held}
