"""Whose turn it is to build: one thread of this process at a time, after other processes; and what is said of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jitdb.errors import QueryCancelled
from jitdb.progress import IndexStatus, Status

if TYPE_CHECKING:
    from jitdb.indexes.index import Index

SHORTEST_PAUSE: Final = 0.001  # seconds before the first look whether another process is done with an index
LONGEST_PAUSE: Final = 0.05  # and between later ones
_PATIENCE: Final = 0.05  # seconds between looks at `cancel` while another scan runs


class Turns:
    """Lets one build at a time. `status` says what is done now."""

    def __init__(self) -> None:
        self.status = Status()
        self._building = threading.Lock()

    @contextmanager
    def alone(self, cancel: threading.Event | None) -> Iterator[None]:
        """Wait for the scan that runs in this process, and let no other one begin. Raises QueryCancelled."""
        while not self._building.acquire(timeout=_PATIENCE):
            if cancel is not None and cancel.is_set():
                raise QueryCancelled("the question was cancelled while another scan ran")
        try:
            yield
        finally:
            self._building.release()

    def wait(self, indexes: Sequence[Index], end: int, pause: float, cancel: threading.Event | None) -> None:
        """Let some seconds pass while another process builds one of these, up to `end`. Raises QueryCancelled."""
        parts = [IndexStatus(index.spec.file_name(), 0, max(0, end - index.reached)) for index in indexes]
        self.status = Status("waiting", 0, max((part.total for part in parts), default=0), tuple(parts))
        try:
            if cancel is None:
                time.sleep(pause)
            elif cancel.wait(pause):
                raise QueryCancelled("the question was cancelled while another process built what it needs")
        finally:
            self.status = replace(self.status, state="idle")
