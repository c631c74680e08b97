"""Changing indexes: one thread at a time, with the locks of their files held, and on what is in them by then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from jitdb.engine.building.build_lock import LONGEST_PAUSE, SHORTEST_PAUSE, BuildLock
from jitdb.engine.maintenance.state import IndexState
from jitdb.errors import IndexDamaged
from jitdb.indexes.files.index import Index
from jitdb.indexes.spec import OFFSETS


class ExclusiveIndexes:
    """The indexes of a state, for who writes to them."""

    def __init__(self, state: IndexState) -> None:
        self.build_lock = BuildLock(state.folder)
        self._state = state

    def begin_anew(self) -> None:
        """In a forked child."""
        self.build_lock = BuildLock(self._state.folder)

    @contextmanager
    def locked(self, indexes: Sequence[Index], cancel: threading.Event | None) -> Iterator[None]:
        """Hold the locks of these indexes' files, once other processes are done with them."""
        with self.locked_as_needed(lambda: indexes, cancel):
            yield

    @contextmanager
    def locked_as_needed(
        self, choose: Callable[[], Sequence[Index]], cancel: threading.Event | None
    ) -> Iterator[Sequence[Index]]:
        """The same of those that are chosen, with the lock of the state held; anew after waiting for others."""
        pause = SHORTEST_PAUSE
        while True:
            with self._state.lock:
                indexes = choose()
                held = self._state.catalog.lock(indexes)
            if held is not None:
                break
            self._wait(indexes, pause, cancel)
            pause = min(2 * pause, LONGEST_PAUSE)
        with held:
            yield indexes

    def _wait(self, indexes: Sequence[Index], pause: float, cancel: threading.Event | None) -> None:
        """Wait for who builds one of these, and see what is there by then."""
        state = self._state
        self.build_lock.wait(indexes, state.log.durable_end, pause, cancel)
        with state.lock:
            replaced = [state.catalog.glance(index) for index in indexes]  # all of them: no any()
            if any(replaced):
                state.answers.forget()

    def catch_up(self, indexes: Sequence[Index]) -> bool:
        """Take over what other processes did to these, which are locked; whether there was anything."""
        catalog = self._state.catalog
        before = [(index.end_seq, index.end_offset) for index in indexes]
        # The offsets of records first: where the log was compacted, the others go by them.
        replaced = [catalog.catch_up(index) for index in sorted(indexes, key=lambda index: index.spec != OFFSETS)]
        if any(replaced):
            self._state.answers.forget()
        return any(replaced) or before != [(index.end_seq, index.end_offset) for index in indexes]

    def named(self, damage: IndexDamaged) -> Index:
        """The index that is meant. Raises the error itself where it is none of these."""
        for index in self._state.catalog.opened():
            if index.name == damage.path:
                return index
        raise damage

    def drop(self, index: Index, damage: IndexDamaged) -> None:
        """Drop an index that is locked; the next look finds it stale."""
        self._state.suspects.discard(damage.path)
        self._state.catalog.discard(index, damage)
        self._state.answers.forget()
