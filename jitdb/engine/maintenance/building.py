"""Bringing indexes up to date: one scan for all that are stale, after whoever builds them now."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from jitdb.engine.bounds import Bounds
from jitdb.engine.building.factory import IndexBuilderFactory
from jitdb.engine.maintenance.dropping import Dropping
from jitdb.engine.maintenance.exclusive import ExclusiveIndexes
from jitdb.engine.maintenance.freshness import stale_plan
from jitdb.engine.maintenance.state import IndexState
from jitdb.engine.plan import Plan, Requirement
from jitdb.engine.records import MAX_RECORDS
from jitdb.errors import IndexDamaged, QueryError
from jitdb.indexes.files.index import Index
from jitdb.indexes.segment import Segment
from jitdb.indexes.spec import OFFSETS


class IndexBuilding:
    """Scans the log for indexes."""

    def __init__(
        self,
        state: IndexState,
        exclusive: ExclusiveIndexes,
        dropping: Dropping,
        threads: int,
        show_progress: bool | None,
    ) -> None:
        self._state = state
        self._exclusive = exclusive
        self._dropping = dropping
        self._threads = threads
        self._show_progress = show_progress

    def build(self, needs: Sequence[Requirement], cancel: threading.Event | None, bounds: Bounds) -> None:
        """Bring these indexes up to date. Raises TooManyIndexes where new ones would be more than the bounds allow."""
        exclusive, is_done = self._exclusive, False
        plan = Plan((), ())

        def choose() -> list[Index]:
            nonlocal plan
            plan = stale_plan(self._state, needs, bounds)
            return self._written(plan)

        with exclusive.build_lock.alone(cancel):
            while not is_done:
                with exclusive.locked_as_needed(choose, cancel):
                    is_done = self._build(plan, cancel)

    def _written(self, plan: Plan) -> list[Index]:
        """The indexes that are written to when these are built."""
        return [*{*plan.indexes, *(self._state.catalog.fingerprint_indexes() if plan.indexes else ())}]

    def _build(self, plan: Plan, cancel: threading.Event | None) -> bool:
        """Bring these indexes up to date, which are locked; False when one was damaged: look again."""
        state, exclusive = self._state, self._exclusive
        with state.lock:
            exclusive.catch_up(self._written(plan))
            rest = plan.only_stale(state.log.durable_end)
        try:
            if rest.needs:
                self._scan(rest.needs, cancel)
                with state.lock:
                    state.catalog.finish(rest.indexes)
        except IndexDamaged as damage:
            with state.lock:
                state.catalog.check_same()  # an index does not fit another log: that is no damage
                exclusive.drop(exclusive.named(damage), damage)
            return False
        with state.lock:
            state.suspects.clear()
            state.catalog.tidy(plan.indexes)
        return True

    def _scan(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        state = self._state
        factory = IndexBuilderFactory(state.log.codec)
        targets = factory.targets(needs, state.catalog, self._append)
        holds_offsets = any(need.spec == OFFSETS for need in needs)
        scan = factory.scan(
            state.log, targets, self._exclusive.build_lock, self._threads, self._show_progress, cancel,
            lambda blocks: self._dropping.list_blocks(blocks, cancel, locked=holds_offsets), self._passed,
        )  # fmt: skip
        with state.lock:
            listed = state.records.damaged_blocks()
        state.damage.broken_at([*scan.faults, *scan.hidden(listed)])

    def _passed(self, end: int, crc: int) -> None:
        with self._state.lock:
            if not self._state.is_another():
                self._state.catalog.note(end, crc)

    def _append(self, index: Index, segment: Segment, early: bool = False) -> None:
        state = self._state
        if segment.end_seq > MAX_RECORDS:
            raise QueryError(
                f"more than {MAX_RECORDS:,} records cannot be indexed", path=state.log.path, remedy="split the log"
            )
        with state.lock:
            state.catalog.check_same()
            state.catalog.append(index, segment, early)
