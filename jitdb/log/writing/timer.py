"""The group write: a thread that flushes a while after the first record was appended.

The thread is started with the first record and ends after a while without any, so an idle or forgotten log costs
nothing. It sleeps on a condition and never polls.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.forking import fork_safe
from jitdb.common.words import shown
from jitdb.errors import InvalidArgument

_IDLE: Final = 2.0  # seconds without work after which the thread ends; starting another takes 0.1 ms


def check_interval(seconds: Any) -> float:
    """How long to wait before a flush. Raises InvalidArgument for what no thread can wait."""
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds <= threading.TIMEOUT_MAX:
        return float(seconds)
    raise InvalidArgument(
        f"flush_interval is a number of seconds, from 0 to {threading.TIMEOUT_MAX:,.0f}, not {shown(seconds)}"
    )


class FlushTimer:
    """Calls `flush` once, `interval` seconds after each wake()."""

    def __init__(self, interval: float, flush: Callable[[], None], name: str) -> None:
        self._interval = interval
        self._flush = flush
        self._name = name
        # Entered by itself, not by the condition, whose methods are written in Python: a KeyboardInterrupt in them
        # would leave the lock held, and stop() would wait for ever.
        self._lock = fork_safe(threading.RLock())
        self._condition = threading.Condition(self._lock)
        self._due: float | None = None  # when to flush next
        self._thread: threading.Thread | None = None  # the one that runs; it says so itself
        self._stopped = False

    def wake(self) -> None:
        """There is something to flush."""
        with self._lock:
            if self._due is None and not self._stopped:
                due = time.monotonic() + self._interval
                if self._thread is None:
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                else:
                    self._condition.notify()
                self._due = due

    def stop(self) -> None:
        """No more calls; returns when a call that runs now is over (unless it is the caller's own)."""
        with self._lock:
            self._stopped = True
            self._condition.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        with self._lock:
            if self._thread is not None:  # an interrupted wake() had started one already
                return
            self._thread = threading.current_thread()
        while self._wait():
            try:
                self._flush()
            except Exception:  # an observer's: shown as any thread's would be, and the next flush still comes
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _wait(self) -> bool:
        """Until something is due. False: the thread is to end."""
        with self._lock:
            if self._due is None and not self._stopped:
                self._condition.wait(_IDLE)
            if self._due is None or self._stopped:
                self._thread = None
                return False
            while (left := self._due - time.monotonic()) > 0 and not self._stopped:
                self._condition.wait(left)
            self._due = None
            return not self._stopped
