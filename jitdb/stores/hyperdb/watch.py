"""Watching a prefix: what is written at or below it, here or elsewhere, as it comes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from jitdb.stores.hyperdb.node import Node
from jitdb.stores.hyperdb.path import segments_of


class Watcher:
    """The nodes that are written at or below a prefix from now on: a loop over it waits for more, until close().

    Nothing is lost while nobody takes them; `callback`, where one is given, is called with each instead, by whoever
    writes.
    """

    def __init__(
        self, prefix: str, callback: Callable[[Node], object] | None, ended: Callable[[Watcher], object]
    ) -> None:
        self._segments = segments_of(prefix)
        self._callback, self._ended = callback, ended
        self._nodes: deque[Node] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    def note(self, nodes: Iterable[Node]) -> None:
        """These were written."""
        count = len(self._segments)
        below = [node for node in nodes if segments_of(node.key)[:count] == self._segments]
        if self._callback is not None:
            for node in below:
                self._callback(node)
            return
        with self._changed:
            self._nodes.extend(below)
            self._changed.notify_all()

    def take(self, timeout: float | None = None) -> Node | None:
        """The next node; None when it was closed, or none came in so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._nodes or self._is_closed, timeout)
            return self._nodes.popleft() if self._nodes else None

    def __iter__(self) -> Iterator[Node]:
        while (node := self.take()) is not None:
            yield node

    def close(self) -> None:
        """End it; what came before can still be taken. Safe to call twice, from any thread."""
        self._ended(self)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
