"""The group write: a thread that flushes a while after the first record was appended, and ends with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import InvalidArgument


def check_interval(seconds: Any) -> float:
    """How long to wait before a flush. Raises InvalidArgument for what no thread can wait."""
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds <= threading.TIMEOUT_MAX:
        return float(seconds)
    raise InvalidArgument(
        f"flush_interval is a number of seconds, from 0 to {threading.TIMEOUT_MAX:,.0f}, not {shown(seconds)}"
    )


class FlushTimer:
    """Calls `flush` once, `interval` seconds after each wake(). What that raises is shown as any thread's would be."""

    def __init__(self, interval: float, flush: Callable[[], None], name: str) -> None:
        self._interval, self._flush, self._name = interval, flush, name
        self._lock = fork_safe(threading.RLock())
        self._is_due = False
        self._threads: list[threading.Timer] = []  # that are not over; one is due, another one may be flushing
        self._stopped = False

    def wake(self) -> None:
        """There is something to flush."""
        with self._lock:
            if not self._is_due and not self._stopped:
                timer = threading.Timer(self._interval, self._run)
                timer.name, timer.daemon = self._name, True
                self._threads = [*(each for each in self._threads if each.is_alive()), timer]
                timer.start()
                self._is_due = True  # last: an interrupted wake() may be called again, and two flushes do no harm

    def stop(self) -> None:
        """No more calls; returns when a call that runs now is over (unless it is the caller's own)."""
        with self._lock:
            self._stopped = True
            threads = self._threads
        for thread in threads:
            thread.cancel()
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join()

    def _run(self) -> None:
        with self._lock:
            self._is_due = False
        self._flush()
