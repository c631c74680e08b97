"""How far a log reaches, and who wants to know when that changes."""

from __future__ import annotations

import threading
from collections.abc import Callable

Observer = Callable[[int], object]


class Extent:
    """The ends of a log: moved by its writer or by a reader's refresh, seen by everything that reads.

    All bytes before `durable_end` are on disk for certain. A writer's `written_end` is ahead of it by what was written
    and not yet synced: single records may be read from there, streams and indexes never go there.
    """

    __slots__ = ("_lock", "_notified", "_observers", "durable_end", "since", "written_end")

    def __init__(self, durable_end: int, since: int) -> None:
        self.durable_end = durable_end
        self.written_end = durable_end
        self.since = since
        self._notified = since
        self._observers: tuple[Observer, ...] = ()
        self._lock = threading.Lock()

    def move(self, end: int, since: int) -> None:
        """All before `end` is durable; the newest record begins at `since`."""
        self.written_end = max(end, self.written_end) if end >= self.durable_end else end
        self.since = since
        self.durable_end = end

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer(since)` whenever `since` has moved; the function that is given back ends it."""
        with self._lock:
            self._observers = (*self._observers, observer)

        def unsubscribe() -> None:
            with self._lock:
                self._observers = tuple(each for each in self._observers if each is not observer)

        return unsubscribe

    def notify(self) -> None:
        """Tell the observers, if there is news. To be called with no lock held: an observer may use the log."""
        with self._lock:
            since, observers = self.since, self._observers
            if since == self._notified:
                return
            self._notified = since
        for observer in observers:
            observer(since)
