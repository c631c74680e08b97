"""Keeping the indexes of a database up to date and in order, and answering under their lock.

Two locks: `_building` lets one scan run at a time, and whoever needs the same indexes waits for it; `state` guards the
indexes in memory for the microseconds that an evaluation takes, so questions whose indexes are fresh are answered while
a scan runs. Who needs both takes `_building` first.

What can be wrong, and what is done about it:

    an index is stale                     one scan for all that are
    an index is damaged                   it is dropped, and so it is stale
    indexes count different records       a damaged block hides records that it did not hide before: all are dropped
    a block of the log is damaged         its records are left out, with a warning
    the log is another one                truncated, replaced or compacted: its indexes are others too
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from jitdb.answer import Answer
from jitdb.building import Workshop, describe
from jitdb.catalog import Catalog
from jitdb.errors import IndexDamaged, IndexWarning, LogCorrupt, LogError, LogWarning, QueryCancelled, QueryError
from jitdb.evaluate import Evaluator
from jitdb.indexes.index import Index, LogName
from jitdb.indexes.spec import OFFSETS, IndexSpec
from jitdb.operators.operations import Operation
from jitdb.order import Order
from jitdb.plan import CoreFields, Requirement, requirements
from jitdb.progress import Bar, Status
from jitdb.records import MAX_RECORDS, Records

if TYPE_CHECKING:
    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource

T = TypeVar("T")

_ANSWERS: Final = 64  # whole answers that are remembered, for paging on
_PLANS: Final = 4096
_PATIENCE: Final = 0.05  # seconds between looks at `cancel` while another scan runs
_A_MOMENT: Final = 0.001  # seconds between looks at a log that is changing


class Plan(NamedTuple):
    """The indexes that a question needs."""

    needs: tuple[Requirement, ...]
    indexes: tuple[Index, ...]

    def ends(self) -> set[tuple[int, int]]:
        """Where its indexes end: the byte of the log, and how many records there are up to there."""
        return {(index.end_offset, index.end_seq) for index in self.indexes}

    def stale(self, end: int) -> bool:
        """Whether one of them does not reach this byte of the log."""
        return any(index.reached < end for index in self.indexes)


class Upkeep:
    """The indexes of one log, and what is remembered of the answers that they gave.

    `state` is to be held by whoever uses `records`, `evaluator`, plan(), answer() or declared().
    """

    def __init__(
        self, log: LogSource, folder: FilePath | None, core: CoreFields, threads: int, show_progress: bool | None
    ) -> None:
        self.state = threading.RLock()
        self.status = Status()
        self._log = log
        self._folder = folder
        self._core = core
        self._threads = threads
        self._show_progress = show_progress
        self._building = threading.Lock()
        self._open_indexes()

    def _open_indexes(self) -> None:
        self._name = self._name_now()
        # Without a stored identity, index files could not be told from those of another log.
        self._catalog = Catalog(self._folder, self._name, stored=getattr(self._log, "identity_is_stored", True))
        self._told: set[int] = set()  # offsets of damage in the log that was warned of
        self._number_anew()

    def _number_anew(self) -> None:
        """Forget all that speaks of records by their seqs."""
        self.records = Records(self._log, self._catalog)
        self.evaluator = Evaluator(self._catalog, self.records, self._core)
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._plans: dict[Any, Plan] = {}
        self._orders: dict[IndexSpec, Order] = {}

    # --- asking ----------------------------------------------------------------------------------------------------

    def ask(self, operation: Operation, ordered: bool, cancel: threading.Event | None, answer: Callable[[int], T]) -> T:
        """`answer(end_seq)` under the lock, with all indexes fresh; they know every record below end_seq.

        `ordered`: the declared order is needed too. Raises QueryCancelled, LogError, and what the user's functions do.
        """
        while True:
            try:
                with self.state:
                    is_another = self._is_another()
                    plan = self.plan(operation, ordered)
                    stale = plan.stale(self._log.durable_end)
                    records = self.records
                    if not stale and not is_another:
                        end_seq = self._horizon(plan)
                        if end_seq is not None:
                            records.note_deletions()
                            found = answer(end_seq)
                            if not self._is_another():
                                return found
                            is_another = True
                if is_another:
                    self.follow(cancel)
                elif stale:
                    self.build(plan.needs, cancel)
                else:
                    self._start_over(records, cancel)
            except IndexDamaged as damage:
                self.mend(damage, cancel)
            except (LogError, OSError) as error:
                if self._is_another():
                    continue  # it was read while it changed
                if not isinstance(error, LogCorrupt):
                    raise
                self.set_aside(error)

    def plan(self, operation: Operation, ordered: bool) -> Plan:
        """The indexes of a question; `ordered`: those of the declared order too."""
        deleted = self.records.note_changes()
        key = (operation.identity, ordered, deleted)
        plan = self._plans.get(key)
        if plan is None:
            always = self._core_needs()[: 3 if ordered else 2]
            plan = self._made(always + requirements(operation, self._core))
            if len(self._plans) > _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

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
        """How many records all indexes know; None when they do not speak of the same records.

        All reach the end of the log as it is seen here, so all end at its last record: but for those that another
        process wrote, which sees more of the log, and where a damaged block hides records that it did not hide before.
        """
        ends, visible = plan.ends(), self._log.durable_end
        within = {end for end in ends if end[0] <= visible}
        counts = {seq for _, seq in within}
        if len(within) < len(ends):
            counts.add(self.records.rank(visible))
        return counts.pop() if len(within) <= 1 and len(counts) == 1 else None

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

    def follow(self, cancel: threading.Event | None) -> None:
        """Where the log was truncated, replaced or compacted, it is another one: its indexes are others too."""
        if self._is_another():
            with self._alone(cancel), self.state:
                if self._is_another():
                    self._open_indexes()

    # --- damage ----------------------------------------------------------------------------------------------------

    def mend(self, damage: IndexDamaged, cancel: threading.Event | None) -> None:
        """Drop the damaged index, which no scan may be writing to meanwhile."""
        with self._alone(cancel), self.state:
            self._drop(damage)

    def _drop(self, damage: IndexDamaged) -> None:
        """Drop the damaged index; the next look finds it stale."""
        for index in list(self._catalog.opened()):
            if index.name == damage.path:
                self._catalog.discard(index, damage)
                self._forget()
                return
        raise damage

    def _start_over(self, records: Records, cancel: threading.Event | None) -> None:
        """Drop all indexes: one of them was made when a damaged block hid other records than it does now."""
        with self._alone(cancel), self.state:
            if records is not self.records:
                return  # another thread was sooner
            self._catalog.discard_all()
            self._number_anew()
        warnings.warn(
            f"{self._log.path}: its indexes do not speak of the same records: the log was damaged, or mended, since "
            f"some of them were built. They are rebuilt.",
            IndexWarning,
            stacklevel=4,
        )

    def set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        try:
            with self.state:
                lost = self.records.set_aside(fault)
        except IndexDamaged as damage:
            self.mend(damage, None)  # the next to read the block comes here again
            return
        warnings.warn(f"{fault}. {lost:,} records are left out of all answers.", LogWarning, stacklevel=4)

    def _warn_of(self, faults: Sequence[int]) -> None:
        fresh = sorted(set(faults) - self._told)
        self._told.update(fresh)
        if fresh:
            more = f" (and {len(fresh) - 1:,} more blocks)" if len(fresh) > 1 else ""
            warnings.warn(
                f"{self._log.path}: block {fresh[0] // self._log.block_size} is damaged at offset {fresh[0]:,}{more}: "
                f"the records behind it in this block are left out of all answers",
                LogWarning,
                stacklevel=6,
            )

    # --- scanning --------------------------------------------------------------------------------------------------

    def prepare(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes, and those that any page may need, up to date."""
        while True:
            self.follow(cancel)
            with self.state:
                core = self._core_needs()
            try:
                self.build((*core, *needs), cancel)
            except (LogError, OSError):
                if not self._is_another():
                    raise
            if not self._is_another():
                return

    def build(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes up to date, after whoever does so now."""
        with self._alone(cancel):
            while True:
                with self.state:
                    end = self._log.durable_end
                    if not self._made(needs).stale(end):
                        return
                    # While we scan anyway: the core columns too, which any page needs.
                    plan = self._made((*needs, *self._core_needs()))
                    stale = [need for need, index in zip(*plan, strict=True) if index.reached < end]
                try:
                    self._scan(stale, cancel)
                    return
                except IndexDamaged as damage:
                    with self.state:
                        self._drop(damage)

    @contextmanager
    def _alone(self, cancel: threading.Event | None) -> Iterator[None]:
        """Wait for the scan that runs, and let no other one begin."""
        while not self._building.acquire(timeout=_PATIENCE):
            if cancel is not None and cancel.is_set():
                raise QueryCancelled("the question was cancelled while another scan ran")
        try:
            yield
        finally:
            self._building.release()

    def _scan(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        from jitdb.scan import Scan

        workshop = Workshop(self._log.codec)
        targets = workshop.targets(needs, self._catalog, self._emit)
        scan = Scan(
            self._log, targets, workshop.paths, threads=self._threads,
            cancelled=cancel.is_set if cancel is not None else lambda: False,
        )  # fmt: skip
        names = describe(needs)
        size = scan.stop - scan.start
        with Bar(f"indexing {FilePath(self._log.path).name}", size, self._show_progress) as bar:

            def progress(position: int) -> None:
                self.status = Status("scanning", position - scan.start, size, names)
                bar(position - scan.start)

            progress(scan.start)
            try:
                scan.run(progress)
            finally:
                self.status = Status("idle", self.status.done, size, names)
        self._warn_of(scan.faults)

    def _emit(self, index: Index, segment: Segment) -> None:
        if segment.end_seq > MAX_RECORDS:
            raise QueryError(f"{self._log.path}: more than {MAX_RECORDS:,} records cannot be indexed; split the log")
        with self.state:
            self._catalog.append(index, segment)
