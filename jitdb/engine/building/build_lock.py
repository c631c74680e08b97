"""One thread of this process builds at a time, and waits for other processes; `status` says what it does.

A build calls functions of the user, in threads of its own. A function that asks for what must be built first would wait
for itself for ever. So each thread knows which builds it works for, and such a question is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from jitdb.engine.progress import IndexStatus, Status
from jitdb.errors import QueryCancelled, QueryError

if TYPE_CHECKING:
    from jitdb.indexes.files.index import Index

SHORTEST_PAUSE: Final = 0.001  # seconds before the first look whether another process is done with an index
LONGEST_PAUSE: Final = 0.05  # and between later ones
_PATIENCE: Final = 0.05  # seconds between looks at `cancel` while another scan runs


_working: Final = threading.local()


def works_for(builds: tuple[BuildLock, ...]) -> None:
    """From now on this thread works for these builds."""
    _working.builds = builds


class BuildLock:
    """Lets one build at a time, of indexes in one folder, which `place` gives. `status` says what is done now."""

    def __init__(self, place: Callable[[], FilePath | None]) -> None:
        self.status = Status()
        self._place = place
        self._building = threading.Lock()
        self._builder = 0  # the thread that builds

    def builds(self) -> tuple[BuildLock, ...]:
        """The builds that a thread works for if this thread starts it for this build."""
        return (*getattr(_working, "builds", ()), self)

    def refuse_within(self) -> None:
        """Raise QueryError in a thread that works for a build here: it must not wait for the end of one."""
        within = self.builds()[:-1]
        folder = self._place()
        shared = (build for build in within if build is self or (folder and build._place() == folder))
        if self._builder == threading.get_ident() or any(shared):
            raise QueryError(
                "a function of a question that is being indexed asked the same database for something that must wait "
                "for the end of that",
                remedy="ask it before (prepare() builds what is needed), or after",
            )

    @contextmanager
    def alone(self, cancel: threading.Event | None, *, takes_locks: bool = True) -> Iterator[None]:
        """Wait for the scan that runs in this process, and let no other one begin.

        takes_locks: the caller may wait for locks of index files
        Raises QueryCancelled; QueryError in a function that such a scan calls, if it would wait for the scan's end.
        """
        if takes_locks or not self._building.acquire(blocking=False):
            self.refuse_within()
            while not self._building.acquire(timeout=_PATIENCE):
                if cancel is not None and cancel.is_set():
                    raise QueryCancelled("the question was cancelled while another scan ran")
        self._builder = threading.get_ident()
        try:
            yield
        finally:
            self._builder = 0
            self._building.release()

    @contextmanager
    def scanning(
        self, start: int, stop: int, parts: Sequence[tuple[str, int]], tell: Callable[[int], object]
    ) -> Iterator[Callable[[int], None]]:
        """A function that takes the scan's position in the log. `parts`: the indexes' names, and where each begins."""

        def progress(position: int) -> None:
            indexes = [IndexStatus(name, max(0, position - begin), stop - begin) for name, begin in parts]
            self.status = Status("scanning", position - start, stop - start, tuple(indexes))
            tell(position - start)

        progress(start)
        try:
            yield progress
        finally:
            self.status = self.status._replace(state="idle")

    def wait(self, indexes: Sequence[Index], end: int, pause: float, cancel: threading.Event | None) -> None:
        """Pause while another process builds one of these, up to `end`. Raises QueryCancelled."""
        parts = [IndexStatus(index.spec.file_name(), 0, max(0, end - index.reached)) for index in indexes]
        self.status = Status("waiting", 0, max((part.total for part in parts), default=0), tuple(parts))
        try:
            if cancel is None:
                time.sleep(pause)
            elif cancel.wait(pause):
                raise QueryCancelled("the question was cancelled while another process built what it needs")
        finally:
            self.status = self.status._replace(state="idle")
