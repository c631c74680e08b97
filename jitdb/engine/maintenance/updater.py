"""What is done about indexes that are stale, damaged or another log's, by one thread, with their files locked."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from jitdb.engine.building.build_lock import LONGEST_PAUSE, SHORTEST_PAUSE, works_for
from jitdb.engine.catalog.log_content import LogContent, content_of
from jitdb.engine.maintenance.state import IndexState
from jitdb.engine.plan import Bounds, Plan
from jitdb.engine.progress import Bar
from jitdb.engine.records import MAX_RECORDS, Records, damage_in
from jitdb.errors import (
    IndexBehind,
    IndexDamaged,
    IndexForeign,
    IndexWarning,
    LogCorrupt,
    LogError,
    LogSuperseded,
    QueryError,
)
from jitdb.indexes.files.index import Index
from jitdb.indexes.kinds.roaring import members_of
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.segment import Segment
from jitdb.indexes.spec import OFFSETS, IndexSpec, Requirement, deleted_spec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LISTED: Final = 1000  # records that are looked at together, and named
_LOOKED_AT: Final = 64  # times so many are looked at: a bad line behind more blank ones is not found


class IndexUpdater(IndexState):
    """Follows the log, brings indexes up to date, and goes on without what is damaged."""

    # --- the log as it is ------------------------------------------------------------------------------------------

    def follow(self, cancel: threading.Event | None) -> None:
        """Open other indexes if the log was truncated, replaced or compacted, or if another program changed its bytes.

        Raises LogError, QueryCancelled.
        """
        if not self.is_unknown():
            return
        with self.build_lock.alone(cancel, takes_locks=False):
            while self.is_unknown():
                try:
                    self._look_at_log(cancel)
                except LogSuperseded:
                    self.log.refresh()

    def _look_at_log(self, cancel: threading.Event | None) -> None:
        token, name = self.log.foreign_change_token(), self._name_now()
        if (token, name.identity) == (self.token, self.name.identity):  # it was only compacted
            content = LogContent(self.name.content)
        else:
            with self.lock:
                held = [] if self.is_another() else list(self.catalog.opened())
            folder = self.folder if self.log.identity_is_stored else None
            content = content_of(self.log, folder, token, held, cancel)
        with self.lock:
            if self._name_now() != name:
                return  # look again
            if name._replace(content=content.name) != self.name:
                self.open(content.name, self.catalog, quiet=content.by_deletion)
            if content.deleted:
                self.catalog.take_over(self.catalog.get(deleted_spec(token)), content.deleted)
            self.token = token

    # --- locks -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(
        self, choose: Callable[[], Sequence[Index]], cancel: threading.Event | None
    ) -> Iterator[tuple[Sequence[Index], bool]]:
        """Hold `lock` and the locks of the chosen indexes' files. Gives them, and whether others had changed them."""
        with self._locked(choose, cancel) as indexes, self.lock:
            yield indexes, self._catch_up(indexes)

    @contextmanager
    def _locked(
        self, choose: Callable[[], Sequence[Index]], cancel: threading.Event | None
    ) -> Iterator[Sequence[Index]]:
        """Hold the locks of the files of the indexes that `choose` gives, with `lock` held, anew after each wait."""
        pause = SHORTEST_PAUSE
        while True:
            with self.lock:
                indexes = choose()
                held = self.catalog.lock(indexes)
            if held is not None:
                break
            self.build_lock.wait(indexes, self.log.durable_end, pause, cancel)
            with self.lock:
                if sum(self.catalog.glance(index) for index in indexes):  # any() would not look at all of them
                    self.forget()
            pause = min(2 * pause, LONGEST_PAUSE)
        with held:
            yield indexes

    def _catch_up(self, indexes: Sequence[Index]) -> bool:
        """Take over what other processes did to these, which are locked; whether there was anything."""
        before = [(index.end_seq, index.end_offset) for index in indexes]
        # The offsets of records first: after a compaction, the others are renumbered by them.
        ordered = sorted(indexes, key=lambda index: index.spec != OFFSETS)
        is_changed = sum(self.catalog.catch_up(index) for index in ordered) > 0
        if is_changed:
            self.forget()
        return is_changed or before != [(index.end_seq, index.end_offset) for index in indexes]

    # --- stale indexes ---------------------------------------------------------------------------------------------

    def build(self, needs: Sequence[Requirement], cancel: threading.Event | None, bounds: Bounds) -> None:
        """Bring these indexes up to date. Raises TooManyIndexes if the bounds do not allow new ones."""
        is_done, plan = False, Plan((), ())

        def choose() -> list[Index]:
            nonlocal plan
            plan = self.stale_plan(needs, bounds)
            return self._written(plan)

        with self.build_lock.alone(cancel):
            while not is_done:
                with self._locked(choose, cancel):
                    is_done = self._build(plan, cancel)
        if self.log.shelf is not None:
            self.log.shelf.publish(self.log.sidecar, self.log.identity)

    def _written(self, plan: Plan) -> list[Index]:
        """The indexes whose files are written when these are built."""
        return [*{*plan.indexes, *(self.catalog.fingerprint_indexes() if plan.indexes else ())}]

    def _build(self, plan: Plan, cancel: threading.Event | None) -> bool:
        """Bring these indexes, which are locked, up to date. False: one was damaged, look again."""
        with self.lock:
            self._catch_up(self._written(plan))
            rest = plan.only_stale(self.log.durable_end)
            for index in rest.indexes:
                index.may_wait = self._may_be_mistyped(index.spec)
        try:
            if rest.needs:
                self._scan(rest.needs, cancel)
                with self.lock:
                    self.catalog.finish(rest.indexes)
        except IndexDamaged as damage:
            with self.lock:
                self.catalog.check_same()  # that an index does not fit another log is no damage
                self._drop(self._named(damage), damage)
            return False
        with self.lock:
            self.suspects.clear()
            self.catalog.tidy(plan.indexes)
        return True

    def _may_be_mistyped(self, spec: IndexSpec) -> bool:
        """Whether it is about a field that a question names, and not about the field of the time."""
        is_core = len(spec.paths) != 1 or spec.paths in (self.core.named, self.core.sequence)
        return not is_core and spec.is_of_values

    def _scan(self, needs: Sequence[Requirement], cancel: threading.Event | None) -> None:
        import numpy as np

        from jitdb.engine.building.filtering import filtered
        from jitdb.engine.building.scan import Scan  # imports all kernels, which fresh indexes do not need
        from jitdb.engine.building.targets import IndexBuilderFactory

        factory = IndexBuilderFactory(self.log)
        targets = factory.targets(needs, self.catalog, self._append)
        with self.lock:
            passed_over = filtered(self.log, targets, self.catalog)
        holds_offsets = any(need.spec == OFFSETS for need in needs)
        scan = Scan(
            self.log, targets, factory.paths, threads=self._threads, cancel=cancel, calls=factory.calls, saves=True,
            start_worker=partial(works_for, self.build_lock.builds()), passed=self._passed,
            damaged=lambda blocks: self._list_blocks(blocks, cancel, locked=holds_offsets), filtered=passed_over,
        )  # fmt: skip
        if self._bounds.budget is not None:
            self._bounds.budget.take(self.log, scan.start, scan.stop)
        parts = [(target.index.spec.file_name(), target.begin_offset) for target in targets]
        with (
            Bar(f"indexing {self.log.path.name}", scan.stop - scan.start, self._show_progress) as bar,
            self.build_lock.scanning(scan.start, scan.stop, parts, bar) as progress,
        ):
            scan.run(progress)
        with self.lock:
            listed = self.records.damaged_blocks()
        self.damage.broken_at([*scan.faults, *scan.hidden(listed)])
        self.damage.malformed(
            scan.left_out, scan.left_out_count, has_others=not scan.left_out or self._has_live_records()
        )
        if scan.left_out and self.log.framing.tells_what_came:
            with suppress(LogError):  # it was changed since: who follows it notices that, and reads it again
                with self.lock:
                    offsets = self.records.offsets_of(np.array(scan.left_out[:1], np.uint32))
                self.damage.came(self.log.get_many_text(offsets)[0] or b"", scan.left_out_count)

    def _has_live_records(self) -> bool:
        """Whether a record of those that were scanned is not left out."""
        with self.lock:
            index = self.catalog.get(self.records.deleted_spec)
            return len(records_in_sets(index.since(0))) < index.end_seq

    def _passed(self, end: int, crc: int) -> None:
        with self.lock:
            if not self.is_another():
                self.catalog.note(end, crc)

    def _append(self, index: Index, segment: Segment, early: bool = False) -> None:
        if segment.end_seq > MAX_RECORDS:
            raise QueryError(
                f"more than {MAX_RECORDS:,} records cannot be indexed", path=self.log.path, remedy="split the log"
            )
        with self.lock:
            self.catalog.check_same()
            if not self.log.framing.is_blocked and self.is_unknown():
                # Each block may be whole, read before the change or after it; a record that crosses blocks may not.
                raise LogSuperseded("it was changed while it was scanned", path=self.log.path)
            self.catalog.append(index, segment, early)

    def tell_left_out(self, is_empty: bool) -> None:
        """After an answer: warn, once, of records that no codec can read, and of lines of text beside JSON.

        A scan warns of the former anyway; this is for those who find the indexes ready. What counts as deleted may be
        blank lines: of an answer that is not empty, only the first are looked at.
        """
        report, log = self.damage, self.log
        if not log.framing.tells_malformed or not len(self.records.deleted):
            return
        if report.has_malformed and report.has_texts:
            return
        with self.lock:
            records = self.records
            seqs = members_of(records.deleted[: (_LOOKED_AT if is_empty else 1) * LISTED])
            offsets = records.offsets_of(seqs).tolist()
        for first in range(0, len(seqs), LISTED):
            if report.has_malformed and report.has_texts:
                return
            with suppress(LogError):  # it was changed since: the next answer notices that
                self._tell_of(seqs[first : first + LISTED], offsets[first : first + LISTED], first)
        report.has_malformed = report.has_texts = True

    def _tell_of(self, seqs: NDArray[np.uint32], offsets: Sequence[int], first: int) -> None:
        """The same of some of the records that count as deleted, of which as many are before these."""
        report, log = self.damage, self.log
        is_all = first + LISTED >= len(self.records.deleted)
        if not report.has_malformed and (wrong := log.unreadable(offsets)):
            found = seqs[wrong].tolist()
            report.malformed(found, len(wrong), is_all=is_all, has_others=self._has_live_records())
        if not report.has_texts and (texts := log.texts_at(offsets)):
            report.texts(seqs[texts].tolist(), is_all=is_all)

    # --- damaged indexes -------------------------------------------------------------------------------------------

    def drop_damaged(
        self, damage: IndexDamaged, cancel: threading.Event | None, records: Records | None = None
    ) -> None:
        """Drop the damaged index, if it is still damaged when nobody else writes to it.

        `records`: those that were being read, if not the present ones.
        """
        with self.lock:
            if self.coded.drop(damage):
                self.forget()
                return
        if isinstance(damage, IndexBehind):
            return  # the next question finds it stale
        if isinstance(damage, IndexForeign):
            self._drop_misfits(damage, cancel, records or self.records)
            return
        with (
            self.build_lock.alone(cancel),
            suppress(LogSuperseded),  # then nobody uses it any more
            self._changing(lambda: [self._named(damage)], cancel) as ((index,), is_changed),
        ):
            if not is_changed and self._is_damaged(index, damage):
                self._drop(index, damage)

    def _named(self, damage: IndexDamaged) -> Index:
        """The index that the error is about. Raises the error if it is none of these."""
        for index in self.catalog.opened():
            if index.name == damage.path:
                return index
        raise damage

    def _is_damaged(self, index: Index, damage: IndexDamaged) -> bool:
        """Look again. An index that seems damaged for the second time is taken for damaged."""
        try:
            index.verify()
        except (IndexDamaged, OSError):
            return True
        is_again = damage.path in self.suspects
        self.suspects.add(damage.path)
        return is_again

    def _drop(self, index: Index, damage: IndexDamaged) -> None:
        """Drop an index that is locked; the next question finds it stale."""
        self.suspects.discard(damage.path)
        self.catalog.discard(index, damage)
        self.forget()

    def _drop_misfits(self, damage: IndexForeign, cancel: threading.Event | None, records: Records) -> None:
        """The log has no records where its indexes say, so they are of another copy of it: build all anew, once."""
        with self.lock:
            if self.changed(records):
                return  # it became another one while it was read
            is_again, self.misfit_at = self.misfit_at == self.log.durable_end, self.log.durable_end
        if is_again:
            raise damage.__cause__ or damage
        self.drop_all(records, cancel)

    def drop_all(self, records: Records, cancel: threading.Event | None) -> None:
        """Drop all indexes: some were made when other blocks of the log were damaged than are now."""
        with (
            self.build_lock.alone(cancel),
            self._changing(lambda: self.catalog.everything(), cancel) as (_, is_changed),
        ):
            if records is not self.records or is_changed:
                return  # another thread or process was faster
            self.catalog.discard_all()
            self.renumber()
        text = (
            "its indexes do not speak of the same records: the log was damaged, or repaired, since some of them were "
            "built, or they are of another copy of it. They are rebuilt. What was answered before may be wrong"
        )
        warnings.warn(IndexWarning(text, path=self.log.path), stacklevel=4)

    # --- damaged blocks of the log ---------------------------------------------------------------------------------

    def set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        try:
            with self.lock:
                lost = self.records.set_aside(fault)
        except IndexDamaged as damage:
            self.drop_damaged(damage, None)  # the next read of the block comes here again
            return
        self.damage.left_out([fault], lost)
        if fault.block is not None and damage_in(self.log, fault.block) is not None:
            self._list_blocks([fault.block], None)

    def leave_out(self, records: Records, blocks: Sequence[int], cancel: threading.Event | None) -> None:
        """Go on without the records of blocks that were found damaged, if they still are."""
        faults = [fault for block in blocks if (fault := damage_in(self.log, block)) is not None]
        if len(faults) < len(blocks):
            self.drop_all(records, cancel)
            return
        with self.lock:
            if records is not self.records:
                return
            lost = records.leave_out(faults)
        self.damage.left_out(faults, lost)

    def _list_blocks(self, blocks: Sequence[int], cancel: threading.Event | None, *, locked: bool = False) -> None:
        """List damaged blocks in the index of offsets, for all who use it. `locked`: its lock is held already."""
        with (
            suppress(LogSuperseded),  # then the blocks are others
            self._changing(lambda: [] if locked else [self.catalog.get(OFFSETS)], cancel) as (offsets, _),
        ):
            try:
                self.catalog.list_damaged(blocks, self.log.block_size)
            except IndexDamaged as damage:
                if locked:
                    raise  # the scan that holds the lock drops it
                self._drop(offsets[0], damage)
