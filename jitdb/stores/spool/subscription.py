"""Waiting for a group's state vector to advance: whoever is slow gets the newest one, not all in between."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Self

from jitdb.common.asyncio_bridge import LoopEvent

StateVector = dict[bytes, int]


class Subscription:
    """The state vectors of a group as they advance from now on: a loop over it, async or not, waits for the next one.

    It ends with close(), or when none came in `timeout` seconds. `callback`, where one is given, is called with each
    instead, by whoever stores. Nothing is queued: what is taken is the vector as it is then.
    """

    def __init__(
        self,
        newest: Callable[[], StateVector],
        callback: Callable[[StateVector], object] | None,
        timeout: float | None,
        ended: Callable[[Subscription], object],
    ) -> None:
        self._newest, self._callback, self._timeout, self._ended = newest, callback, timeout, ended
        self._is_news = self._is_closed = False
        self._changed = threading.Condition()
        self._event: LoopEvent | None = None

    def note(self) -> None:
        """It has advanced."""
        if self._callback is not None:
            self._callback(self._newest())
            return
        with self._changed:
            self._is_news = True
            self._wake()

    def take(self, timeout: float | None = None) -> StateVector | None:
        """The vector, once it has advanced since the last one; None if it was closed, or did not in so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_news or self._is_closed, timeout)
        return self._taken()

    def _taken(self) -> StateVector | None:
        with self._changed:
            is_news, self._is_news = self._is_news, False
        return self._newest() if is_news else None

    def __iter__(self) -> Iterator[StateVector]:
        while (vector := self.take(self._timeout)) is not None:
            yield vector

    async def __aiter__(self) -> AsyncIterator[StateVector]:
        event = self._event = LoopEvent()
        while True:
            event.clear()
            vector = self._taken()
            if vector is not None:
                yield vector
            elif self._is_closed:
                return
            else:
                try:
                    await asyncio.wait_for(event.wait(), self._timeout)
                except TimeoutError:
                    return

    def _wake(self) -> None:
        self._changed.notify_all()
        if self._event is not None:
            self._event.set()

    def close(self) -> None:
        """End it; news of before can still be taken. Safe to call twice, from any thread."""
        self._ended(self)
        with self._changed:
            self._is_closed = True
            self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
