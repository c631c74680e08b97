"""How far a log reaches, and who wants to know when that changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from jitdb.common.forking import fork_safe

if TYPE_CHECKING:
    from jitdb.log.opening.tail import Tail

Observer = Callable[[int], object]


class Observers:
    """Who wants to know that a log's end has moved."""

    __slots__ = ("_callbacks", "_lock", "_notified")

    def __init__(self, since: int) -> None:
        self._callbacks: tuple[tuple[Observer], ...] = ()  # each in a tuple of its own, to be told from its equals
        self._lock = fork_safe(threading.Lock())
        self._notified = since

    def add(self, observer: Observer) -> Callable[[], None]:
        """Call `observer(since)` whenever `since` has moved; the function that is given back ends it."""
        entry = (observer,)
        with self._lock:
            self._callbacks = (*self._callbacks, entry)

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks = tuple(each for each in self._callbacks if each is not entry)

        return unsubscribe

    def notify(self, since: int) -> None:
        """Tell them, if there is news. To be called with no lock held: an observer may use the log."""
        with self._lock:
            if since == self._notified:
                return
            self._notified = since
            callbacks = self._callbacks
        for (callback,) in callbacks:
            callback(since)


class Extent:
    """The ends of a log: moved by its writer or by a reader's refresh, seen by everything that reads.

    All bytes before `durable_end` are on disk for certain. A writer's `written_end` is ahead of it by what was written
    and not yet synced: single records may be read from there, streams and indexes never go there. A log that another
    file takes the place of keeps its extent, for those who still read it; the observers go over to the new one's.
    """

    __slots__ = ("durable_end", "observers", "since", "written_end")

    def __init__(self, tail: Tail, block_size: int, observers: Observers | None = None) -> None:
        self.durable_end = self.written_end = tail.end
        self.since = tail.since(block_size)
        self.observers = observers or Observers(self.since)

    def move(self, end: int, since: int) -> None:
        """All before `end` is durable; the newest record begins at `since`."""
        self.written_end = max(end, self.written_end) if end >= self.durable_end else end
        self.since = since
        self.durable_end = end

    def notify(self) -> None:
        """Tell the observers, if `since` has moved. To be called with no lock held."""
        self.observers.notify(self.since)
