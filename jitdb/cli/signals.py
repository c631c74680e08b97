"""Ctrl-C and SIGTERM: for commands that run until they are stopped, and where Python would lose the signal."""

from __future__ import annotations

import signal
import sys
import threading
import time
from _queue import SimpleQueue  # queue.SimpleQueue, without what else queue imports
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Self

_ONE: Final = 1.0  # seconds within which several signals count as one: timeout(1) sends two
_LATER: Final = 0.01  # seconds after which a lost signal comes again


@contextmanager
def none_lost(number: Callable[[], int] = lambda: signal.SIGINT) -> Iterator[None]:
    """Within this, a KeyboardInterrupt that Python drops comes again: that in `__del__` or the callback of a weak
    reference, where a signal's handler may run. `number`, called in another thread, says which signal it was.
    """
    before, lost = sys.unraisablehook, SimpleQueue[Any]()

    def deliver() -> None:
        while (told := lost.get()) is not None:
            if isinstance(told.exc_value, KeyboardInterrupt):
                time.sleep(_LATER)
                signal.pthread_kill(threading.main_thread().ident or 0, number())
            else:
                before(told)

    threading.Thread(target=deliver, name="jitdb signals", daemon=True).start()
    sys.unraisablehook = lost.put  # not in Python: the next signal could come there
    try:
        yield
    finally:
        sys.unraisablehook = before
        lost.put(None)


@contextmanager
def handlers_kept(wanted: bool) -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM afterwards, if wanted."""
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Ending:
    """Within this, signals raise KeyboardInterrupt, except in `undisturbed` work, which looks at `asked`.

    once: only the first signal does, also after this: others would cut short the last message

    A signal that was ignored when the process began, such as SIGINT in a script's background, stays ignored.
    """

    def __init__(
        self, numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM), *, once: bool = False
    ) -> None:
        self.signal = 0  # the first that came
        self._numbers, self._once = numbers, once
        self._undisturbed = False
        self._raised = float("-inf")
        self._before: dict[int, Any] = {}
        self._none_lost = none_lost(self._lost)

    def __enter__(self) -> Self:
        self._none_lost.__enter__()
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        if not (self._once and self.asked):
            for number, handler in self._before.items():
                signal.signal(number, handler)
        self._none_lost.__exit__(None, None, None)

    def _lost(self) -> int:
        self._raised = float("-inf")
        return self.signal

    def _come(self, number: int, frame: FrameType | None) -> None:
        is_ignored = self._undisturbed or (self._once and self.asked)
        self.signal = self.signal or number
        now = time.monotonic()
        if not is_ignored and now - self._raised > _ONE:
            self._raised = now
            raise KeyboardInterrupt

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return bool(self.signal)

    @property
    def code(self) -> int:
        """The exit code of a program ended by it, as in shells."""
        return 128 + (self.signal or signal.SIGINT)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Finish what is done within, then raise KeyboardInterrupt if a signal came. Long work looks at `asked`."""
        self._undisturbed = True
        try:
            yield
        finally:
            self._undisturbed = False
        self.check()

    def ignore(self) -> None:
        """Ignore signals from here on."""
        self._undisturbed = True

    def check(self) -> None:
        """Raises KeyboardInterrupt if a signal has come."""
        if self.asked:
            self._raised = time.monotonic()
            raise KeyboardInterrupt
