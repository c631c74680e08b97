"""A loop over the records that come: to_iter after live."""

from __future__ import annotations

import threading
from typing import Any

from jitdb.common.forking import fork_safe
from jitdb.operators.query import Query
from jitdb.operators.running.live import NOTHING, LiveReader
from jitdb.operators.running.reader import Loop


class LiveResults(Loop):
    """What `to_iter()` gives for a live query. Waits for more instead of ending, until it is closed.

    Closing it from any thread ends it at once, also while it waits; Ctrl-C comes out of waiting at once, and it may be
    read on. Several threads may read from one; each record goes to one of them.
    """

    __slots__ = ("_turn", "_wake")

    def __init__(self, query: Query) -> None:
        self._reader: LiveReader = LiveReader(query)
        self._turn = fork_safe(threading.Lock())  # one thread waits for records, the others wait for it
        self._wake = fork_safe(threading.Event())
        # The event's method, not ours: who watches must not keep this object from being thrown away.
        self._reader.watch(self._wake.set)

    @property
    def cursor(self) -> str:
        """The place behind the last record handed out, for `live(after=cursor)`; it may be kept, as text."""
        return self._reader.cursor

    def __next__(self) -> Any:
        reader = self._reader
        while True:
            record = reader.take()
            if record is not NOTHING:
                return record
            if reader.ended():
                raise StopIteration
            with self._turn:
                self._wake.clear()
                if not reader.read():
                    self._wake.wait()
