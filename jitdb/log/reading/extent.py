"""How far a log reaches, who observes that, and how a reader notices what other processes append.

Looking costs little more than two calls of stat. The reader looks often just after news, and less often without.
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


class Callbacks:
    """Functions to be called at news. Safe for threads."""

    def __init__(self) -> None:
        self._entries: tuple[tuple[Callable[..., object]], ...] = ()  # each in a tuple, to be told from its equals
        self._lock = fork_safe(threading.RLock())  # the garbage collector may end a watch in the middle of another

    def add(self, callback: Callable[..., object]) -> Callable[[], None]:
        """Call it from now on; the function that is given back ends that."""
        entry = (callback,)
        with self._lock:
            self._entries = (*self._entries, entry)

        def remove() -> None:
            with self._lock:
                self._entries = tuple(each for each in self._entries if each is not entry)

        return remove

    def tell(self, *news: object) -> None:
        """To be called with no lock held: a callback may use the log."""
        for (callback,) in self._entries:
            callback(*news)


class Observers(Callbacks):
    """The observers of a log's end."""

    def __init__(self, since: int) -> None:
        super().__init__()
        self._notified = since

    def notify(self, since: int) -> None:
        """Call them, if `since` has moved. To be called with no lock held."""
        with self._lock:
            if since == self._notified:
                return
            self._notified = since
        self.tell(since)


class Extent:
    """The ends of a log: moved by its writer or by a reader's refresh, seen by everything that reads.

    All bytes before `durable_end` are on disk. A writer's `written_end` is ahead of it by what was written and not yet
    synced: single records can be read there, streams and indexes never go there. When another file takes the log's
    place, streams of the old one keep its extent, and the observers move to the new one's.
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
LONGEST: Final = 0.2  # the same after a while without news: what is durable is seen within half a second
_GROWTH: Final = 1.3  # from one pause to the next


class Watcher(Callbacks):
    """The callbacks that watch one log. `looks`: it is read-only, and must be refreshed to show what others did.

    A thread does that while there are watchers; the writer in this process calls them for its own changes.
    """

    def __init__(self, log: LogSource, *, looks: bool) -> None:
        super().__init__()
        self._log = weakref.ref(log)  # a log that nobody else holds is closed, watched or not
        self._looks = looks
        self._stop: threading.Event | None = None  # ends the thread that runs
        self._thread: threading.Thread | None = None

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when there may be news; the function that is given back ends it."""
        with self._lock:
            remove = self.add(callback)
            if self._looks and not self._runs():
                self._stop = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(self._stop,), name="jitdb follow", daemon=True)
                self._thread.start()

        def unwatch() -> None:
            with self._lock:
                remove()
                if not self._entries and self._stop is not None:
                    self._stop.set()
                    self._stop = None

        return unwatch

    def _runs(self) -> bool:
        """Whether the thread is there: in a forked child it is not, whatever the parent had."""
        return self._stop is not None and self._thread is not None and self._thread.is_alive()

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
