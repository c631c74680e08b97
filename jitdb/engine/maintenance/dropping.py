"""What is damaged, and what is dropped or left out for it: an index, all of them, or the records of a block."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress

from jitdb.engine.damage import damage_in
from jitdb.engine.maintenance.exclusive import ExclusiveIndexes
from jitdb.engine.maintenance.state import IndexState
from jitdb.engine.records import Records
from jitdb.errors import (
    IndexBehind,
    IndexDamaged,
    IndexForeign,
    IndexWarning,
    LogCorrupt,
    LogSuperseded,
)
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import OFFSETS


class Dropping:
    """Goes on without what is damaged."""

    def __init__(self, state: IndexState, exclusive: ExclusiveIndexes) -> None:
        self._state = state
        self._exclusive = exclusive

    # --- indexes ---------------------------------------------------------------------------------------------------

    def drop_damaged(self, damage: IndexDamaged, cancel: threading.Event | None, records: Records | None) -> None:
        """Drop the damaged index, if it is still damaged when nobody else writes to it.

        `records`: those that were read when it was met, if not the present ones.
        """
        state, exclusive = self._state, self._exclusive
        if isinstance(damage, IndexBehind):
            return  # the next question finds it stale
        if isinstance(damage, IndexForeign):
            self._drop_misfits(damage, cancel, records or state.records)
            return
        with exclusive.build_lock.alone(cancel):
            with state.lock:
                index = exclusive.named(damage)
            with (
                exclusive.locked([index], cancel),
                state.lock,
                suppress(LogSuperseded),
            ):  # then it is of no use any more
                if not exclusive.catch_up([index]) and self._is_damaged(index, damage):
                    exclusive.drop(index, damage)

    def _is_damaged(self, index: Index, damage: IndexDamaged) -> bool:
        """Look again. One that seems damaged for the second time is taken for it."""
        try:
            index.verify()
        except (IndexDamaged, OSError):
            return True
        is_again = damage.path in self._state.suspects
        self._state.suspects.add(damage.path)
        return is_again

    def _drop_misfits(self, damage: IndexForeign, cancel: threading.Event | None, records: Records) -> None:
        """The log has no records where its indexes say: they are of another copy of it. All are built anew, once."""
        state = self._state
        with state.lock:
            if state.changed(records):
                return  # it became another one while it was read
            is_again, state.misfit_at = state.misfit_at == state.log.durable_end, state.log.durable_end
        if is_again:
            raise damage.__cause__ or damage
        self.drop_all(records, cancel)

    def drop_all(self, records: Records, cancel: threading.Event | None) -> None:
        """Drop all indexes: some were made when the log was damaged otherwise than it is now."""
        state, exclusive = self._state, self._exclusive
        with exclusive.build_lock.alone(cancel):
            with state.lock:
                indexes = state.catalog.everything()
            with exclusive.locked(indexes, cancel), state.lock:
                if records is not state.records or exclusive.catch_up(indexes):
                    return  # another thread or process was sooner
                state.catalog.discard_all()
                state.renumber()
        text = (
            "its indexes do not speak of the same records: the log was damaged, or repaired, since some of them were "
            "built, or they are of another copy of it. They are rebuilt. What was answered before may be wrong"
        )
        warnings.warn(IndexWarning(text, path=state.log.path), stacklevel=4)

    # --- blocks of the log -----------------------------------------------------------------------------------------

    def set_aside(self, fault: LogCorrupt) -> None:
        """Go on without the records that a damaged block costs."""
        state = self._state
        try:
            with state.lock:
                lost = state.records.set_aside(fault)
        except IndexDamaged as damage:
            self.drop_damaged(damage, None, None)  # the next to read the block comes here again
            return
        state.damage.left_out([fault], lost)
        if fault.block is not None and damage_in(state.log, fault.block) is not None:
            self.list_blocks([fault.block], None)

    def leave_out(self, records: Records, blocks: Sequence[int], cancel: threading.Event | None) -> None:
        """Go on without the records of blocks that somebody found damaged, if they still are."""
        state = self._state
        faults = [fault for block in blocks if (fault := damage_in(state.log, block)) is not None]
        if len(faults) < len(blocks):
            self.drop_all(records, cancel)
            return
        with state.lock:
            if records is not state.records:
                return
            lost = records.leave_out(faults)
        state.damage.left_out(faults, lost)

    def list_blocks(self, blocks: Sequence[int], cancel: threading.Event | None, *, locked: bool = False) -> None:
        """Let all who use these indexes, know of damaged blocks, now and later. `locked`: that of offsets is."""
        state, exclusive = self._state, self._exclusive
        with state.lock:
            offsets = [] if locked else [state.catalog.get(OFFSETS)]
        with exclusive.locked(offsets, cancel), state.lock, suppress(LogSuperseded):  # then the blocks are others
            exclusive.catch_up(offsets)
            try:
                state.catalog.list_damaged(blocks, state.log.block_size)
            except IndexDamaged as damage:
                if locked:
                    raise  # the scan that has the lock is at it
                exclusive.drop(offsets[0], damage)
