"""Keeping the indexes of a database up to date and in order, and answering under their lock.

Two locks: `_turns` lets one scan run at a time, and whoever needs the same indexes waits for it; `state` guards the
indexes in memory for the microseconds that an evaluation takes, so questions whose indexes are fresh are answered while
a scan runs. Who needs both takes `_turns` first.

What can be wrong, and what is done about it:

    an index is stale                     one scan for all that are
    an index is damaged                   it is dropped, and so it is stale
    indexes count different records       a damaged block hides records that it did not hide before: all are dropped
    a block of the log is damaged         its records are left out, with a warning; the index of offsets lists it
    such a block was repaired since         all are dropped: they were made without its records
    records are not where they should be  the indexes are of another copy of the log: all are dropped
    the last record is another one        that index is of another copy: it is dropped when it is read (copies.py)
    the log is another one                truncated or replaced: its indexes are others too
    somebody else changed the file        it is read once: are these the bytes that were indexed? (contents.py)
    the log was compacted                 its indexes are taken over, without a scan (carry.py)
    so it was beneath a reader            the log is refreshed: what was deleted since is told of in its new files
    another process builds the same       wait until it is done, then go on from what it built (indexes/locks.py)
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from jitdb.common.forking import begins_anew
from jitdb.engine.answering.answer import Answer
from jitdb.engine.answering.evaluate import Evaluator, Unconfirmed
from jitdb.engine.answering.order import Order
from jitdb.engine.bounds import UNBOUND, Bounds
from jitdb.engine.building.build_lock import LONGEST_PAUSE, SHORTEST_PAUSE, Turns
from jitdb.engine.building.factory import Workshop
from jitdb.engine.catalog.catalog import Catalog
from jitdb.engine.catalog.contents import Content, content_of
from jitdb.engine.damage import DamageReport, damage_in
from jitdb.engine.plan import CoreFields, Plan, Requirement, requirements
from jitdb.engine.progress import Status
from jitdb.engine.records import MAX_RECORDS, Records
from jitdb.errors import (
    IndexBehind,
    IndexDamaged,
    IndexForeign,
    IndexWarning,
    LogClosed,
    LogCorrupt,
    LogError,
    LogSuperseded,
    QueryError,
    TooManyIndexes,
)
from jitdb.indexes.files.file import LogName
from jitdb.indexes.files.folder import known_indexes, remove_locked
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import OFFSETS, IndexSpec, deleted_spec
from jitdb.log.io import osfile
from jitdb.operators.nodes.operations import Operation

if TYPE_CHECKING:
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource

T = TypeVar("T")

_ANSWERS: Final = 64  # whole answers that are remembered, for paging on
_PLANS: Final = 4096
_A_MOMENT: Final = 0.001  # seconds between looks at a log that is changing


class Upkeep:
    """The indexes of one log, and what is remembered of the answers that they gave.

    `state` is to be held by whoever uses `records`, `evaluator`, plan(), answer() or declared().
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
        self.state = threading.RLock()
        self._log = log
        self._folder = folder
        self._core = core
        self._threads = threads
        self._show_progress = show_progress
        self._bounds = bounds
        self._turns = Turns(folder)
        self._token: bytes | None = None  # of the log, whose content these indexes are of; None: nobody looked yet
        self._open_indexes()
        begins_anew(self)

    def _open_indexes(self, content: bytes = b"", before: Catalog | None = None, *, quiet: bool = False) -> None:
        self._name = self._name_now()._replace(content=content)
        # Without a stored identity, index files could not be told from those of another log.
        self._is_stored = self._stored()
        self._misfit_at = -1  # where the log ended when its indexes turned out to be another copy's
        self._begin(before, quiet=quiet)

    def _begin(self, before: Catalog | None = None, *, quiet: bool = False) -> None:
        self._catalog = Catalog(
            self._folder, self._name, stored=self._is_stored, source=self._log, before=before, quiet=quiet
        )
        self._doubted: set[str] = set()  # names of indexes that seemed damaged, and were not when looked at again
        self._damage = DamageReport(self._log)
        self._number_anew()

    def _number_anew(self) -> None:
        """Forget all that speaks of records by their seqs."""
        self.records = Records(self._log, self._catalog)
        self.evaluator = Evaluator(self._catalog, self.records, self._core)
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._plans: dict[Any, Plan] = {}
        self._orders: dict[IndexSpec, Order] = {}

    def begin_anew(self) -> None:
        """In a forked child: what other threads were at in the parent was left half done here."""
        self.state = threading.RLock()
        self._turns = Turns(self._folder)
        self._begin()

    @property
    def status(self) -> Status:
        """What is done now."""
        return self._turns.status

    def close(self) -> None:
        """Close the index files."""
        with self.state:
            self._catalog.close()

    # --- asking ----------------------------------------------------------------------------------------------------

    def ask(self, operation: Operation, ordered: bool, cancel: threading.Event | None, answer: Callable[[int], T]) -> T:
        """`answer(end_seq)` under the lock, with all indexes fresh; they know every record below end_seq.

        `ordered`: the declared order is needed too. Raises QueryCancelled, LogError, and what the user's functions do.
        """
        unread: Unconfirmed | None = None
        records, end = self.records, self._log.durable_end
        while True:
            try:
                if unread is not None:
                    read, unread = unread.read, None
                    read(cancel)
                damaged: list[int] = []
                with self.state:
                    is_another = self._is_unsettled()
                    if records is not self.records:
                        records, end = self.records, self._log.durable_end
                    plan = Plan((), ()) if is_another else self.plan(operation, ordered)
                    stale = plan.stale(end)  # where the log ended when it was asked: a writer may be faster than we are
                    # Not the plan's needs: these are the functions of this very question.
                    needs = self._needs(operation, ordered) if stale else ()
                    if not stale and not is_another:
                        end_seq = self._horizon(plan)
                        if end_seq is not None:
                            records.note_deletions()
                            damaged = records.unseen_damage()
                            if not damaged:
                                found = answer(end_seq)
                                if not self._is_unsettled():
                                    return found
                                is_another = True
                if is_another:
                    self.follow(cancel)
                elif stale:
                    self.build(needs, cancel, self._bounds)
                elif damaged:
                    self._leave_out(records, damaged, cancel)
                else:
                    self._start_over(records, cancel)
            except Unconfirmed as many:
                unread = many
            except IndexDamaged as damage:
                self.mend(damage, cancel, records)
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
        deleted = self.records.note_changes()
        key = (operation.identity, ordered, deleted)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._made(self._needs(operation, ordered))
            if len(self._plans) > _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _needs(self, operation: Operation, ordered: bool) -> tuple[Requirement, ...]:
        return self._core_needs()[: 3 if ordered else 2] + requirements(operation, self._core)

    def _core_needs(self) -> tuple[Requirement, ...]:
        """What every answer needs (where records lie, which are deleted), and what any page may."""
        return (
            Requirement(OFFSETS),
            Requirement(self.records.note_changes()),
            Requirement(self._core.column("timestamp")),
            Requirement(self._core.column("sequence")),
        )

    def _made(self, needs: Sequence[Requirement]) -> Plan:
        once = {need.spec: need for need in needs}
        return Plan(tuple(once.values()), tuple(self._catalog.get(spec) for spec in once))

    def _horizon(self, plan: Plan) -> int | None:
        """How many records all indexes know, and this process sees; None when they do not speak of the same records.

        Mostly all end at the same record. Some were brought further by other questions since this one was asked, or by
        another process, which sees more of the log. They must count what they have in common alike: that they do not
        where a damaged block hides records of one that it did not hide of another.
        """
        ends, visible = plan.ends(), self._log.durable_end
        seqs = {seq for _, seq in ends}
        if len(ends) == 1 and max(ends)[0] <= visible:
            return seqs.pop()
        records, known = self.records, self._catalog.get(OFFSETS).reached
        if any(index.reached <= known and records.rank(index.reached) != index.end_seq for index in plan.indexes):
            return None
        return min(records.rank(visible), *seqs)

    # --- remembering -----------------------------------------------------------------------------------------------

    def answer(self, operation: Operation, end_seq: int) -> Answer:
        """The whole answer, to be paged through."""
        key = (operation.identity, end_seq, self.records.deletions)
        answer = self._answers.get(key)
        if answer is None:
            answer = Answer(self.evaluator.matches(operation, end_seq), self.declared())
            self._answers[key] = answer
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        return answer

    def declared(self) -> Order:
        """The order by time."""
        spec = self._core.column("timestamp")
        if spec not in self._orders:
            self._orders[spec] = Order(self._catalog.get(spec))
        return self._orders[spec]

    def _forget(self) -> None:
        self.evaluator.forget()
        self._answers.clear()
        self._orders.clear()
        self._plans.clear()

    # --- another log -----------------------------------------------------------------------------------------------

    def changed(self, records: Records) -> bool:
        """Whether seqs and offsets that were taken from these records mean nothing any more."""
        return records is not self.records or self._is_another()

    def _name_now(self) -> LogName:
        """The log's name, once refresh() in another thread is done with changing it."""
        while True:
            name = LogName(self._log.identity, self._log.generation)
            if name.identity and name.identity == self._log.identity:
                return name
            time.sleep(_A_MOMENT)

    def _is_another(self) -> bool:
        return self._log.identity != self._name.identity or self._log.generation != self._name.generation

    def _is_unsettled(self) -> bool:
        """Whether it is another log, or nobody looked yet whether it holds other bytes."""
        return self._log.foreign_change_token() != self._token or self._is_another()

    def follow(self, cancel: threading.Event | None) -> None:
        """Where the log was truncated, replaced or compacted, its records have other seqs, and it other indexes.

        So it has where somebody else changed the bytes that were indexed. Raises LogError, QueryCancelled.
        """
        if not self._is_unsettled():
            return
        with self._turns.alone(cancel, takes_locks=False):
            while self._is_unsettled():
                try:
                    self._settle(cancel)
                except LogSuperseded:
                    self._log.refresh()

    def _settle(self, cancel: threading.Event | None) -> None:
        token, name = self._log.foreign_change_token(), self._name_now()
        if (token, name.identity) == (self._token, self._name.identity):  # compacted, no more
            content = Content(self._name.content)
        else:
            with self.state:
                held = [] if self._is_another() else list(self._catalog.opened())
            content = content_of(self._log, self._folder if self._stored() else None, token, held, cancel)
        with self.state:
            if self._name_now() != name:
                return  # and again
            if name._replace(content=content.name) != self._name:
                self._open_indexes(content.name, self._catalog, quiet=content.by_deletion)
            if content.deleted:
                self._catalog.take_over(self._catalog.get(deleted_spec(token)), content.deleted)
            self._token = token

    def _stored(self) -> bool:
        return self._log.identity_is_stored

    # --- damage ----------------------------------------------------------------------------------------------------

    def mend(self, damage: IndexDamaged, cancel: threading.Event | None, records: Records | None = None) -> None:
        """Drop the damaged index, if it is still damaged when nobody else writes to it.

        `records`: those that were read when it was met, if not the present ones.
        """
        if isinstance(damage, IndexBehind):
            return  # the next question finds it stale
        if isinstance(damage, IndexForeign):
            self._misfit(damage, cancel, records or self.records)
            return
        with self._turns.alone(cancel):
            with self.state:
                index = self._named(damage)
            with self._locked([index], cancel), self.state, suppress(LogSuperseded):  # then it is of no use any more
                if not self._catch_up([index]) and self._is_damaged(index, damage):
                    self._drop(index, damage)

    def forget_files(self, names: Collection[str], cancel: threading.Event | None = None) -> None:
        """Remove these files from the folder. What needs them builds them anew. Raises LogError where that fails."""
        with self._turns.alone(cancel):
            try:
                if self._folder is not None:
                    remove_locked(osfile.fs, self._folder, names)  # which may wait for other processes
            except OSError as error:
                raise LogError(f"an index cannot be removed: {osfile.reason(error)}", path=self._log.path) from error
            finally:
                with self.state:
                    for index in self._catalog.opened():
                        if index.spec.file_name() in names:
                            index.clear()
                    self._number_anew()

    def index_names(self) -> dict[str, IndexSpec | None]:
        """The indexes that there are, in files or in memory, by the names of their files; None: its head is damaged."""
        with self.state:
            held = {index.spec.file_name(): index.spec for index in self._catalog.opened() if index.segments}
        return {**known_indexes(osfile.fs, self._folder), **held}

    def _misfit(self, damage: IndexForeign, cancel: threading.Event | None, records: Records) -> None:
        """The log has no records where its indexes say: they are of another copy of it. All are built anew, once."""
        with self.state:
            again = self._misfit_at == self._log.durable_end
            if self.changed(records):
                return  # it became another one while it was read
        if again:
            raise damage.__cause__ or damage
        self._misfit_at = self._log.durable_end
        self._start_over(records, cancel)

    def _named(self, damage: IndexDamaged) -> Index:
        for index in self._catalog.opened():
            if index.name == damage.path:
                return index
        raise damage

    def _is_damaged(self, index: Index, damage: IndexDamaged) -> bool:
        """Look again. One that seems damaged for the second time is taken for it."""
        try:
            index.verify()
        except (IndexDamaged, OSError):
            return True
        is_again = damage.path in self._doubted
        self._doubted.add(damage.path)
        return is_again

    def _drop(self, index: Index, damage: IndexDamaged) -> None:
        """Drop the index, whose lock is held; the next look finds it stale."""
        self._doubted.discard(damage.path)
        self._catalog.discard(index, damage)
        self._forget()

    def _start_over(self, records: Records, cancel: threading.Event | None) -> None:
        """Drop all indexes: some were made when the log was damaged otherwise than it is now."""
        with self._turns.alone(cancel):
            with self.state:
                indexes = self._catalog.everything()
            with self._locked(indexes, cancel), self.state:
                if records is not self.records or self._catch_up(indexes):
                    return  # another thread or process was sooner
                self._catalog.discard_all()
                self._number_anew()
        text = (
            "its indexes do not speak of the same records: the log was damaged, or repaired, since some of them were "
            "built, or they are of another copy of it. They are rebuilt. What was answered before may be wrong"
        )
        warnings.warn(IndexWarning(text, path=self._log.path), stacklevel=4)

    def set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        try:
            with self.state:
                lost = self.records.set_aside(fault)
        except IndexDamaged as damage:
            self.mend(damage, None)  # the next to read the block comes here again
            return
        self._damage.left_out([fault], lost)
        if fault.block is not None and damage_in(self._log, fault.block) is not None:
            self._list([fault.block], None)

    def _leave_out(self, records: Records, blocks: Sequence[int], cancel: threading.Event | None) -> None:
        """Go on without the records of blocks that somebody found damaged, if they still are."""
        faults = [fault for block in blocks if (fault := damage_in(self._log, block)) is not None]
        if len(faults) < len(blocks):
            self._start_over(records, cancel)
            return
        with self.state:
            if records is not self.records:
                return
            lost = records.leave_out(faults)
        self._damage.left_out(faults, lost)

    def _list(self, blocks: Sequence[int], cancel: threading.Event | None, locked: bool = False) -> None:
        """Let all who use these indexes, now and later, know of damaged blocks."""
        with self.state:
            offsets = [] if locked else [self._catalog.get(OFFSETS)]
        with self._locked(offsets, cancel), self.state, suppress(LogSuperseded):  # then the blocks are others
            self._catch_up(offsets)
            try:
                self._catalog.list_damaged(blocks, self._log.block_size)
            except IndexDamaged as damage:
                if locked:
                    raise  # the scan that has the lock is at it
                self._drop(offsets[0], damage)

    # --- scanning --------------------------------------------------------------------------------------------------

    def prepare(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes, and those that any page may need, up to date."""
        while True:
            self.follow(cancel)
            with self.state:
                records, core = self.records, self._core_needs()
            try:
                self.build((*core, *needs), cancel)
                with self.state:
                    damaged = records.unseen_damage()
                if damaged:
                    self._leave_out(records, damaged, cancel)
                elif not self.changed(records):
                    return
            except IndexDamaged as damage:
                self.mend(damage, cancel)
            except (LogError, OSError):
                if not self.changed(records):
                    raise

    def build(self, needs: Sequence[Requirement], cancel: threading.Event | None, bounds: Bounds = UNBOUND) -> None:
        """Bring these indexes up to date, after whoever does so now, in this process or another.

        Raises TooManyIndexes where new ones would be more than these bounds allow.
        """
        with self._turns.alone(cancel):
            pause = SHORTEST_PAUSE
            while True:
                with self.state:
                    stale = self._stale(needs)
                    self._check_bounds(stale, bounds)
                    indexes = [*stale.indexes, *(self._catalog.witnesses() if stale.indexes else ())]
                    held = self._catalog.lock(indexes)
                if held is None:
                    pause = self._wait(indexes, pause, cancel)
                    continue
                with held:
                    if self._build(stale, cancel):
                        return

    def _check_bounds(self, plan: Plan, bounds: Bounds) -> None:
        if bounds == UNBOUND:
            return
        core = {need.spec for need in self._core_needs()}
        new = [index for index in plan.indexes if not index.segments and index.spec not in core]
        if new:
            there = [index for index in self._catalog.everything() if index.segments and index.spec not in core]
            try:
                bounds.check(self._log.path, len(new), len(there), sum(index.size for index in there))
            except TooManyIndexes:
                self._let_go(new)
                raise

    def _let_go(self, indexes: Sequence[Index]) -> None:
        """Forget indexes of which nothing was built, in our turn to build: strangers may ask for any number."""
        self._catalog.let_go(indexes)
        gone = {index.spec for index in indexes}
        kept = [(key, plan) for key, plan in self._plans.items() if gone.isdisjoint(need.spec for need in plan.needs)]
        self._plans = dict(kept)

    def _stale(self, needs: Sequence[Requirement]) -> Plan:
        """Those of these indexes that are to be built, if any, and those that any page needs: we scan anyway."""
        end = self._log.durable_end
        if not self._made(needs).stale(end):
            return Plan((), ())
        return self._made((*needs, *self._core_needs())).only_stale(end)

    def _build(self, plan: Plan, cancel: threading.Event | None) -> bool:
        """Bring these indexes up to date, whose locks are held; False when one was damaged: look again."""
        with self.state:
            self._catch_up(list({*plan.indexes, *(self._catalog.witnesses() if plan.indexes else ())}))
            rest = plan.only_stale(self._log.durable_end)
        try:
            if rest.needs:
                self._scan(rest.needs, cancel)
                with self.state:
                    self._catalog.finish(rest.indexes)
        except IndexDamaged as damage:
            with self.state:
                self._catalog.check_same()  # an index does not fit another log: that is no damage
                self._drop(self._named(damage), damage)
            return False
        with self.state:
            self._doubted.clear()
            self._catalog.tidy(plan.indexes)
        return True

    def refuse_within(self) -> None:
        """Raise QueryError in a function of the user that a scan calls."""
        self._turns.refuse_within()

    def remap(self, progress: Callable[[int, int], object] = lambda done, total: None) -> None:
        """Take over all indexes there are, asked for so far or not, from earlier generations of the log.

        `progress` gets how many of them are done, and how many there are.
        """

        def work() -> None:
            with self.state:
                indexes = self._catalog.older()
            for done, index in enumerate(indexes):
                progress(done, len(indexes))
                with self._locked([index], None), self.state:
                    self._catch_up([index])
            progress(len(indexes), len(indexes))

        self._alone(work)

    def reindex(self, offset: int) -> None:
        """Let all indexes forget the records from this offset on, so that the next question looks at them again."""

        def work() -> None:
            with self.state:
                indexes = self._catalog.everything()
            with self._locked(indexes, None), self.state:
                self._catch_up(indexes)
                for index in indexes:
                    try:
                        self._catalog.cut(index, offset)
                    except IndexDamaged as damage:  # what is left of it cannot be kept
                        self._drop(index, damage)
                self._forget()

        self._alone(work)

    def _alone(self, work: Callable[[], None]) -> None:
        """Do it to the indexes of the log as it is; again, where that was compacted meanwhile."""
        while True:
            self.follow(None)
            try:
                with self._turns.alone(None):
                    return work()
            except LogSuperseded:
                self._log.refresh()

    def _catch_up(self, indexes: Sequence[Index]) -> bool:
        """Take over what other processes did to these, whose locks are held; whether there was anything."""
        before = [(index.end_seq, index.end_offset) for index in indexes]
        # The offsets of records first: where the log was compacted, the others go by them.
        replaced = [self._catalog.catch_up(index) for index in sorted(indexes, key=lambda index: index.spec != OFFSETS)]
        if any(replaced):
            self._forget()
        return any(replaced) or before != [(index.end_seq, index.end_offset) for index in indexes]

    # --- one at a time ---------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, indexes: Sequence[Index], cancel: threading.Event | None) -> Iterator[None]:
        """Hold the locks of these indexes' files, once other processes are done with them."""
        pause = SHORTEST_PAUSE
        while (held := self._catalog.lock(indexes)) is None:
            pause = self._wait(indexes, pause, cancel)
        with held:
            yield

    def _wait(self, indexes: Sequence[Index], pause: float, cancel: threading.Event | None) -> float:
        """Wait for who builds one of these, and see what is there by then; how long to wait the next time."""
        self._turns.wait(indexes, self._log.durable_end, pause, cancel)
        with self.state:
            replaced = [self._catalog.glance(index) for index in indexes]  # all of them: no any()
            if any(replaced):
                self._forget()
        return min(2 * pause, LONGEST_PAUSE)

    # --- scanning --------------------------------------------------------------------------------------------------

    def _scan(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        workshop = Workshop(self._log.codec)
        targets = workshop.targets(needs, self._catalog, self._emit)
        holds_offsets = any(need.spec == OFFSETS for need in needs)
        scan = workshop.scan(
            self._log, targets, self._turns, self._threads, self._show_progress, cancel,
            lambda blocks: self._list(blocks, cancel, holds_offsets), self._pass,
        )  # fmt: skip
        with self.state:
            listed = self.records.damaged_blocks()
        self._damage.broken_at([*scan.faults, *scan.hidden(listed)])

    def _pass(self, end: int, crc: int) -> None:
        with self.state:
            if not self._is_another():
                self._catalog.note(end, crc)

    def _emit(self, index: Index, segment: Segment, early: bool = False) -> None:
        if segment.end_seq > MAX_RECORDS:
            raise QueryError(
                f"more than {MAX_RECORDS:,} records cannot be indexed", path=self._log.path, remedy="split the log"
            )
        with self.state:
            self._catalog.check_same()
            self._catalog.append(index, segment, early)
