"""Following what comes to a store: a loop that waits, async or not, or calls to a function."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from jitdb.common.asyncio_bridge import LoopEvent, say_stopped

T = TypeVar("T")


class Following(Generic[T]):
    """What comes from now on: a loop over it waits for more, async or not, until close().

    callback: is called with each instead, by whoever writes, who waits for it
    timeout:  a loop ends when none came in so many seconds
    ended:    is called when it is closed
    most:     of what nobody has taken yet, so many are kept, the newest; None: all

    Any number of threads and of event loops may take from it; each thing goes to one of them.
    """

    def __init__(
        self,
        callback: Callable[[T], object] | None = None,
        *,
        timeout: float | None = None,
        ended: Callable[[Any], object] | None = None,
        most: int | None = None,
    ) -> None:
        self._callback, self._timeout, self._ended = callback, timeout, ended
        self._untaken: deque[Callable[[], T]] = deque(maxlen=most)
        self._is_closed = False
        self._changed = threading.Condition()
        self._sleepers: list[LoopEvent] = []

    def tell(self, what: Callable[[], T]) -> None:
        """This came: what `what` gives when it is taken. Raises what the callback does."""
        if self._is_closed:
            return
        if self._callback is not None:
            self._callback(what())
            return
        with self._changed:
            self._untaken.append(what)
            self._wake()

    def take(self, timeout: float | None = None) -> T | None:
        """The next one; None when it was closed, or none came in so many seconds."""
        with self._changed:
            try:
                self._changed.wait_for(lambda: self._untaken or self._is_closed, timeout)
            except KeyboardInterrupt as stopped:
                say_stopped(stopped)
                raise
            what = self._next()
        return None if what is None else what()

    def _next(self) -> Callable[[], T] | None:
        return self._untaken.popleft() if self._untaken else None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found = self.take(self._timeout)
        if found is None:
            raise StopIteration
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        what = await self._come()
        if what is None:
            raise StopAsyncIteration
        return what()

    async def _come(self) -> Callable[[], T] | None:
        """The next one; None when it was closed, or none came in time."""
        import asyncio  # here: most who use a store need no loop

        woken = LoopEvent()
        with self._changed:
            self._sleepers.append(woken)
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    woken.clear()
                    with self._changed:
                        what = self._next()
                        if what is not None or self._is_closed:
                            return what
                    await woken.wait()
        except TimeoutError:
            return None
        except asyncio.CancelledError as stopped:
            say_stopped(stopped)
            raise
        finally:
            with self._changed:
                self._sleepers.remove(woken)

    def _wake(self) -> None:
        self._changed.notify_all()
        for woken in self._sleepers:
            woken.set()

    def close(self) -> None:
        """End it; what came before can still be taken. Safe to call twice, from any thread."""
        if self._ended is not None:
            self._ended(self)
        with self._changed:
            self._is_closed = True
            self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
