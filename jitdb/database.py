"""The engine: a log, its indexes, and questions answered from them.

A question goes this way: plan (which indexes) -> fresh? else one scan for all that is stale -> evaluate (sets of live
records) -> order -> page -> decode. Two locks: `_building` lets one scan run at a time, and whoever needs the same
indexes waits for it; `_state` guards the indexes in memory for the microseconds that an evaluation takes, so questions
whose indexes are fresh are answered while a scan runs.
"""

from __future__ import annotations

import os
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
from jitdb.errors import (
    IndexDamaged,
    IndexWarning,
    LogCorrupt,
    LogError,
    LogWarning,
    QueryCancelled,
    QueryError,
)  # fmt: skip
from jitdb.evaluate import Evaluator
from jitdb.indexes.index import Index, LogName
from jitdb.indexes.roaring import bitmap_of
from jitdb.indexes.spec import OFFSETS, IndexSpec
from jitdb.operators.operations import Everything, Operation
from jitdb.order import Order
from jitdb.page import Page
from jitdb.paths import parse_path
from jitdb.plan import CoreFields, Requirement, requirements
from jitdb.progress import Bar, Status
from jitdb.records import MAX_RECORDS, Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.indexes.segment import Segment
    from jitdb.log.source import LogSource

T = TypeVar("T")
PathLike = str | Sequence[str]

_ANSWERS: Final = 64  # whole answers that are remembered, for paging on
_PLANS: Final = 4096
_EVERYTHING: Final = Everything()
_PATIENCE: Final = 0.05  # seconds between looks at `cancel` while another scan runs


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


class JITDB:
    """A log that can be asked. Thread-safe.

    log:       a Log, or anything that is a LogSource
    folder:    where the index files lie; by default `indexes` in the log's sidecar; None keeps them in memory
    timestamp: the field(s) that say when a record was made; of several, the smallest number counts
    sequence:  the field behind `gt(…, "sequence")`
    threads:   of a scan; 0 is one a core, up to eight
    progress:  show a bar for scans longer than a second; by default in terminals and notebooks only
    """

    def __init__(
        self,
        log: LogSource,
        folder: str | os.PathLike[str] | None = "",
        *,
        timestamp: PathLike | Sequence[PathLike] = ("timestamp", "value.timestamp"),
        sequence: PathLike = "value.sequence",
        threads: int = 0,
        progress: bool | None = None,
    ) -> None:
        self.log = log
        self.folder = log.sidecar / "indexes" if folder == "" else None if folder is None else FilePath(folder)
        self._core = CoreFields(_paths(timestamp), (parse_path(sequence),))
        self._threads = threads
        self._show_progress = progress
        self._building = threading.Lock()
        self._state = threading.RLock()
        self._status = Status()
        self._open_indexes()

    def __repr__(self) -> str:
        return f"<JITDB {self.log.path} ({self.log.codec.name})>"

    def __enter__(self) -> JITDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- questions -------------------------------------------------------------------------------------------------

    def count(
        self, operation: Operation | None = None, *, start_from: int = 0, cancel: threading.Event | None = None
    ) -> int:
        """How many live records match, after the first `start_from`; never negative."""
        operation = _checked(operation, start_from)
        total = self._ask(operation, False, cancel, lambda end: self._evaluator.count(operation, end))
        return max(0, total - start_from)

    def all(
        self,
        operation: Operation | None = None,
        *,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: str = "declared",
        cancel: threading.Event | None = None,
    ) -> list[Any]:
        """Every matching record (or its offset), in order."""
        page = self._page(operation, start_from, None, descending, as_offsets, sort_by, cancel)
        return page.data

    def paginate(
        self,
        operation: Operation | None = None,
        *,
        limit: int,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: str = "declared",
        cancel: threading.Event | None = None,
    ) -> Page:
        """At most `limit` matching records after the first `start_from`."""
        return self._page(operation, start_from, _checked_limit(limit), descending, as_offsets, sort_by, cancel)

    def pages(
        self,
        operation: Operation | None = None,
        *,
        limit: int,
        start_from: int = 0,
        descending: bool = False,
        as_offsets: bool = False,
        sort_by: str = "declared",
        cancel: threading.Event | None = None,
    ) -> Iterator[Page]:
        """The answer as it stands when the first page is asked for, page by page.

        Records that come later are not in it; records deleted meanwhile are left out of the pages still to come.
        """
        _checked_limit(limit)
        operation = _checked(operation, start_from)
        arrival = _checked_sort(sort_by)
        return self._pages(operation, limit, start_from, descending, as_offsets, arrival, cancel)

    def prepare(self, *operations: Operation, cancel: threading.Event | None = None) -> float:
        """Bring the indexes of these questions up to date, in one scan; gives the milliseconds it took."""
        begin = time.perf_counter()
        asked = [need for operation in operations for need in requirements(_checked(operation, 0), self._core)]
        self._follow(cancel)
        with self._state:
            core = self._core_needs()
        self._build((*core, *asked), cancel)
        return 1e3 * (time.perf_counter() - begin)

    def lookup(self, operation: Operation, seq: int) -> bool:
        """Whether the operation is true of the record with this seq."""
        if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
            raise QueryError(f"a seq is an integer of 0 or more, not {seq!r}")
        operation = _checked(operation, 0)
        return self._ask(
            operation, False, None, lambda end: seq < end and seq in self._evaluator.matches(operation, end)
        )

    def explain(self, operation: Operation | None = None) -> dict[str, Any]:
        """How the question would be answered: its indexes, what of the log they cover, and what must be scanned."""
        operation = _checked(operation, 0)
        self._follow(None)
        with self._state:
            end = self.log.durable_end
            found = []
            plan = self._plan(operation, ordered=False)
            for need, index in zip(*plan, strict=True):
                found.append(
                    {
                        "index": need.spec.file_name(),
                        "form": need.spec.form,
                        "records": index.end_seq,
                        "bytes": index.size,
                        "stale_bytes": max(0, end - index.reached),
                    }
                )
        return {
            "where": operation.describe(),
            "indexes": found,
            "scan_bytes": max([0, *(row["stale_bytes"] for row in found)]),  # type: ignore[type-var]
        }

    # --- upkeep ----------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """What the engine does now."""
        return self._status

    def on_ready(self, callback: Callable[[], object] | None = None) -> None:
        """Call back when the database can be asked. Indexes are read when they are needed, so that is at once."""
        if callback is not None:
            callback()

    def refresh(self) -> bool:
        """See what other processes did to the log; True if there was anything."""
        changed = self.log.refresh()
        self._follow(None)
        return changed

    def close(self) -> None:
        """Close the log. Index files need no closing."""
        self.log.close()

    # --- the way of a question -------------------------------------------------------------------------------------

    def _open_indexes(self) -> None:
        self._name = self._name_now()
        # Without a stored identity, index files could not be told from those of another log.
        self._catalog = Catalog(self.folder, self._name, stored=getattr(self.log, "identity_is_stored", True))
        self._told: set[int] = set()  # offsets of damage in the log that was warned of
        self._number_anew()

    def _number_anew(self) -> None:
        """Forget all that speaks of records by their seqs."""
        self._records = Records(self.log, self._catalog)
        self._evaluator = Evaluator(self._catalog, self._records, self._core)
        self._answers: OrderedDict[Any, Answer] = OrderedDict()
        self._plans: dict[Any, Plan] = {}
        self._orders: dict[IndexSpec, Order] = {}

    def _name_now(self) -> LogName:
        return LogName(self.log.identity, self.log.generation)

    def _follow(self, cancel: threading.Event | None) -> None:
        """Where the log was truncated, replaced or compacted, it is another one: its indexes are others too."""
        if self._name_now() != self._name:
            with self._alone(cancel), self._state:
                if self._name_now() != self._name:
                    self._open_indexes()

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

    def _core_needs(self) -> tuple[Requirement, ...]:
        """What every answer needs (where records lie, which are deleted), and what any page may."""
        return (
            Requirement(OFFSETS),
            Requirement(self._records.note_changes()),
            Requirement(self._core.column("timestamp")),
            Requirement(self._core.column("sequence")),
        )

    def _plan(self, operation: Operation, ordered: bool) -> Plan:
        """The indexes of a question; `ordered`: those of the declared order too."""
        deleted = self._records.note_changes()
        key = (operation.identity, ordered, deleted)
        plan = self._plans.get(key)
        if plan is None:
            always = self._core_needs()[: 3 if ordered else 2]
            plan = self._made(always + requirements(operation, self._core))
            if len(self._plans) > _PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _made(self, needs: Sequence[Requirement]) -> Plan:
        once = {need.spec: need for need in needs}
        return Plan(tuple(once.values()), tuple(self._catalog.get(spec) for spec in once))

    def _ask(
        self,
        operation: Operation,
        ordered: bool,
        cancel: threading.Event | None,
        answer: Callable[[int], T],
    ) -> T:
        """`answer(end_seq)` under the lock, with all indexes fresh; they know every record below end_seq."""
        while True:
            self._follow(cancel)
            try:
                with self._state:
                    if self._name_now() != self._name:
                        continue
                    plan = self._plan(operation, ordered)
                    records = self._records
                    stale = plan.stale(self.log.durable_end)
                    if not stale:
                        end_seq = self._horizon(plan)
                        if end_seq is not None:
                            records.note_deletions()
                            return answer(end_seq)
                if stale:
                    self._build(plan.needs, cancel)
                else:
                    self._start_over(records, cancel)
            except IndexDamaged as damage:
                self._mend(damage, cancel)
            except LogCorrupt as fault:
                self._set_aside(fault)

    def _horizon(self, plan: Plan) -> int | None:
        """How many records all indexes know; None when they do not count the same records.

        They end at different bytes where another process, which sees more of the log, wrote some of them, and where a
        damaged block hides records now that it did not hide before.
        """
        ends, visible = plan.ends(), self.log.durable_end
        end_seq = min(seq for _, seq in ends)
        if len(ends) == 1 and max(ends)[0] <= visible:
            return end_seq
        known = self._catalog.get(OFFSETS).end_offset
        if any(seq != self._records.rank(offset) for offset, seq in ends if offset <= known):
            return None
        return min(end_seq, self._records.rank(visible))

    def _start_over(self, records: Records, cancel: threading.Event | None) -> None:
        """Drop all indexes: one of them was made when a damaged block hid other records than it does now."""
        with self._alone(cancel), self._state:
            if records is not self._records:
                return  # another thread was sooner
            self._catalog.discard_all()
            self._number_anew()
        warnings.warn(
            f"{self.log.path}: its indexes do not speak of the same records: the log was damaged, or mended, since "
            f"some of them were built. They are rebuilt.",
            IndexWarning,
            stacklevel=4,
        )

    def _mend(self, damage: IndexDamaged, cancel: threading.Event | None) -> None:
        """Drop the damaged index, which no scan may be writing to meanwhile."""
        with self._alone(cancel), self._state:
            self._drop(damage)

    def _drop(self, damage: IndexDamaged) -> None:
        """Drop the damaged index; the next look finds it stale."""
        for index in list(self._catalog.opened()):
            if index.name == damage.path:
                self._catalog.discard(index, damage)
                self._forget()
                return
        raise damage

    def _forget(self) -> None:
        self._evaluator.forget()
        self._answers.clear()
        self._orders.clear()
        self._plans.clear()

    def _set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        with self._state:
            lost = self._records.set_aside(fault)
        warnings.warn(f"{fault}. {lost:,} records are left out of all answers.", LogWarning, stacklevel=4)

    def _build(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        """Bring these indexes up to date, after whoever does so now."""
        with self._alone(cancel):
            while True:
                with self._state:
                    end = self.log.durable_end
                    if not self._made(needs).stale(end):
                        return
                    # While we scan anyway: the core columns too, which any page needs.
                    plan = self._made((*needs, *self._core_needs()))
                    stale = [need for need, index in zip(*plan, strict=True) if index.reached < end]
                try:
                    self._scan(stale, cancel)
                    return
                except IndexDamaged as damage:
                    with self._state:
                        self._drop(damage)

    def _scan(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        from jitdb.scan import Scan

        workshop = Workshop(self.log.codec)
        targets = workshop.targets(needs, self._catalog, self._emit)
        scan = Scan(
            self.log, targets, workshop.paths, threads=self._threads,
            cancelled=cancel.is_set if cancel is not None else lambda: False,
        )  # fmt: skip
        names = describe(needs)
        size = scan.stop - scan.start
        with Bar(f"indexing {FilePath(self.log.path).name}", size, self._show_progress) as bar:

            def progress(position: int) -> None:
                self._status = Status("scanning", position - scan.start, size, names)
                bar(position - scan.start)

            progress(scan.start)
            try:
                scan.run(progress)
            finally:
                self._status = Status("idle", self._status.done, size, names)
        self._warn_of(scan.faults)

    def _warn_of(self, faults: Sequence[int]) -> None:
        fresh = sorted(set(faults) - self._told)
        self._told.update(fresh)
        if fresh:
            more = f" (and {len(fresh) - 1:,} more blocks)" if len(fresh) > 1 else ""
            warnings.warn(
                f"{self.log.path}: block {fresh[0] // self.log.block_size} is damaged at offset {fresh[0]:,}{more}: "
                f"the records behind it in this block are left out of all answers",
                LogWarning,
                stacklevel=6,
            )

    def _emit(self, index: Index, segment: Segment) -> None:
        if segment.end_seq > MAX_RECORDS:
            raise QueryError(f"{self.log.path}: more than {MAX_RECORDS:,} records cannot be indexed; split the log")
        with self._state:
            self._catalog.append(index, segment)

    # --- answers ---------------------------------------------------------------------------------------------------

    def _answer(self, operation: Operation, end_seq: int) -> Answer:
        key = (operation.identity, end_seq, self._records.deletions)
        answer = self._answers.get(key)
        if answer is None:
            answer = Answer(self._evaluator.matches(operation, end_seq), self._declared())
            self._answers[key] = answer
            if len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
        else:
            self._answers.move_to_end(key)
        return answer

    def _declared(self) -> Order:
        spec = self._core.column("timestamp")
        if spec not in self._orders:
            self._orders[spec] = Order(self._catalog.get(spec))
        return self._orders[spec]

    def _page(
        self,
        operation: Operation | None,
        start: int,
        limit: int | None,
        descending: bool,
        as_offsets: bool,
        sort_by: str,
        cancel: threading.Event | None,
    ) -> Page:
        begin = time.perf_counter()
        operation = _checked(operation, start)
        arrival = _checked_sort(sort_by)

        def look(end: int) -> tuple[Records, int, NDArray[np.uint32], NDArray[np.int64]]:
            answer = self._answer(operation, end)
            seqs = answer.page(start, limit, descending, arrival)
            return self._records, answer.total, seqs, self._records.offsets_of(seqs)

        while True:
            records, total, seqs, offsets = self._ask(operation, not arrival, cancel, look)
            data = offsets.tolist() if as_offsets else self._decoded(records, seqs, offsets)
            if data is not None:
                duration = 1e3 * (time.perf_counter() - begin)
                return Page(data, total, start + len(data), duration)

    def _decoded(self, records: Records, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]) -> list[Any] | None:
        """The records; None when the question must be asked again: some are deleted, damaged, or the log is another."""
        try:
            found = records.read(offsets)
        except LogCorrupt as fault:
            if not self._changed(records):
                self._set_aside(fault)
            return None
        except LogError:
            if self._changed(records):
                return None
            raise
        if self._changed(records):
            return None
        gone = [number for number, record in enumerate(found) if record is None]
        if gone:
            with self._state:
                records.add_deleted(bitmap_of(seqs[gone]))
            return None
        return [records.decode(record, offset) for record, offset in zip(found, offsets.tolist(), strict=True)]  # type: ignore[arg-type]

    def _changed(self, records: Records) -> bool:
        """Whether seqs and offsets that were taken from these records mean nothing any more."""
        return records is not self._records or self._name_now() != self._name

    def _pages(
        self,
        operation: Operation,
        limit: int,
        start: int,
        descending: bool,
        as_offsets: bool,
        arrival: bool,
        cancel: threading.Event | None,
    ) -> Iterator[Page]:
        def look(end: int) -> tuple[Records, Answer]:
            return self._records, self._answer(operation, end)

        begin = time.perf_counter()
        records, answer = self._ask(operation, not arrival, cancel, look)
        total, passed, begun = answer.total, 0, False  # `passed`: answers that came before those of `answer`
        while start < answer.total:
            try:
                with self._state:
                    if self._changed(records):
                        raise LogError(
                            "the log was truncated, replaced or damaged while its records were read page by page; "
                            "ask again",
                            path=self.log.path,
                        )
                    records.note_deletions()
                    seqs = answer.page(start, limit, descending, arrival)
                    live = records.live_among(seqs)
                    offsets = records.offsets_of(live)
            except IndexDamaged as damage:
                self._mend(damage, cancel)
                if not begun:
                    records, answer = self._ask(operation, not arrival, cancel, look)
                    total = answer.total
                    continue
                # What orders the answer, or tells where its records lie, is built again, and deleted records stand
                # elsewhere in it then: go on with an answer of those that are still to come.
                rest = answer.rest(start, descending, arrival)
                self._ask(_EVERYTHING, not arrival, cancel, lambda end: None)
                with self._state:
                    answer = Answer(rest - records.deleted, self._declared())
                passed, start = passed + start, 0
                continue
            begun = True
            data = offsets.tolist() if as_offsets else self._decoded(records, live, offsets)
            if data is None:
                continue  # some were deleted just now: look again
            start += len(seqs)
            if data:
                yield Page(data, total, passed + start, 1e3 * (time.perf_counter() - begin))
            begin = time.perf_counter()


def _paths(paths: PathLike | Sequence[PathLike]) -> tuple[Any, ...]:
    """One path or several; a plain string is one path."""
    if isinstance(paths, str):
        return (parse_path(paths),)
    return tuple(parse_path(path) for path in paths)


def _checked(operation: Operation | None, start_from: int) -> Operation:
    if not isinstance(start_from, int) or isinstance(start_from, bool) or start_from < 0:
        raise QueryError(f"start_from is a number of answers to skip, 0 or more, not {start_from!r}")
    if operation is None:
        return _EVERYTHING
    if not isinstance(operation, Operation):
        raise QueryError(f"a question is an operation, such as equal('value.content.type', 'post'), not {operation!r}")
    return operation


def _checked_limit(limit: int) -> int:
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise QueryError(f"limit is a number of records, 1 or more, not {limit!r}")
    return limit


def _checked_sort(sort_by: str) -> bool:
    if sort_by not in ("declared", "arrival"):
        raise QueryError(f"sort_by is 'declared' or 'arrival', not {sort_by!r}")
    return sort_by == "arrival"
