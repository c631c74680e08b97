"""The answers of a question among the records around them: gone through in a loop, plain or async."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

from jitdb.common.asyncio_bridge import in_thread


class Seen(NamedTuple):
    """A record of a passage: itself, or its place if these are asked for."""

    record: Any
    is_match: bool
    place: Any  # its offset; in a set of logs a Place


class Passages(Iterator[list[Seen]]):
    """Each is a list of Seen. `async for` reads them in a thread.

    cancel: the event that ends a read; it is set when an async loop is cancelled
    """

    def __init__(self, cancel: threading.Event) -> None:
        self._cancel = cancel

    @property
    @abstractmethod
    def total(self) -> int:
        """How many records the question without its context has. Asks, where nothing was read yet."""

    def __aiter__(self) -> Passages:
        return self

    async def __anext__(self) -> list[Seen]:
        is_read = False
        try:
            found = await in_thread(lambda: next(self, None))
            is_read = True
        finally:
            if not is_read:
                self._cancel.set()
        if found is None:
            raise StopAsyncIteration
        return found
