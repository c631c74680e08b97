"""How far a log reaches, who observes that, and how a reader notices what other processes append.

A look costs two calls of stat and little more: looks are frequent just after news, and rarer the longer there is none.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from jitdb.common.forking import fork_safe
from jitdb.errors import LogClosed, LogError

if TYPE_CHECKING:
    from jitdb.log.opening.recovery import Tail
    from jitdb.log.source import LogSource


Observer = Callable[[int], object]


class Observers:
    """The observers of a log's end."""

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


SHORTEST: Final = 0.01  # seconds between two looks, after news
LONGEST: Final = 0.2  # the same after a while without any: what is durable is seen within half a second
_GROWTH: Final = 1.3  # from one pause to the next


class Watcher:
    """The callbacks that watch one log. `looks`: it is read-only, and must be refreshed to show what others did.

    A thread does that while there are watchers; the writer in this process calls tell() for its own changes.
    """

    def __init__(self, log: LogSource, *, looks: bool) -> None:
        self._log = weakref.ref(log)  # a log that nobody else holds is closed, watched or not
        self._looks = looks
        self._watchers: tuple[tuple[Callable[[], object]], ...] = ()
        self._lock = fork_safe(threading.RLock())  # the garbage collector may end a watch in the middle of another
        self._stop: threading.Event | None = None  # ends the thread that runs
        self._thread: threading.Thread | None = None

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when there may be news; the function that is given back ends it."""
        entry = (callback,)
        with self._lock:
            self._watchers = (*self._watchers, entry)
            if self._looks and not self._runs():
                self._stop = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(self._stop,), name="jitdb follow", daemon=True)
                self._thread.start()

        def unwatch() -> None:
            with self._lock:
                self._watchers = tuple(each for each in self._watchers if each is not entry)
                if not self._watchers and self._stop is not None:
                    self._stop.set()
                    self._stop = None

        return unwatch

    def _runs(self) -> bool:
        """Whether the thread is there: in a forked child it is not, whatever the parent had."""
        return self._stop is not None and self._thread is not None and self._thread.is_alive()

    def tell(self) -> None:
        """There may be news. To be called with no lock held."""
        for (callback,) in self._watchers:
            callback()

    def _run(self, stop: threading.Event) -> None:
        pause = SHORTEST
        while not stop.wait(pause):
            pause = SHORTEST if self._look() else min(pause * _GROWTH, LONGEST)

    def _look(self) -> bool:
        log = self._log()
        if log is None:
            return False
        try:
            is_new = log.refresh()
        except LogClosed:
            return False  # closing has told them
        except (LogError, OSError):
            self.tell()  # they will see it when they read
            return False
        if is_new:
            self.tell()
        return is_new
