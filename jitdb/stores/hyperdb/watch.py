"""Watching a prefix: what is written at or below it, here or elsewhere, as it comes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from jitdb.stores.hyperdb.format.path import segments_of
from jitdb.stores.hyperdb.tries.node import Node


class Watcher:
    """The nodes that are written at or below a prefix from now on: a loop over it waits for more, until close().

    Nothing is lost while nobody takes them; `callback`, where one is given, is called with each instead, by whoever
    writes, who waits for it.
    """

    def __init__(
        self, prefix: str, callback: Callable[[Node], object] | None, ended: Callable[[Watcher], object]
    ) -> None:
        self._segments = segments_of(prefix)
        self._callback, self._ended = callback, ended
        self._nodes: deque[Node] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    def note(self, node: Node) -> None:
        """This was written, wherever it is. Raises what the callback does."""
        if self._is_closed or segments_of(node.key)[: len(self._segments)] != self._segments:
            return
        if self._callback is not None:
            self._callback(node)
            return
        with self._changed:
            self._nodes.append(node)
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


class Watchers:
    """All who watch a database, told one thing after the other. Not safe for threads."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._untold: deque[Node] = deque()
        self._is_telling = False

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def add(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def remove(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def tell(self, nodes: Iterable[Node]) -> None:
        """Tell all; what a callback writes comes after. Raises the first error of a callback, when all are told."""
        self._untold.extend(nodes)
        if self._is_telling:
            return
        self._is_telling = True
        errors: list[Exception] = []
        try:
            while self._untold:
                node = self._untold.popleft()
                for watcher in list(self._watchers):
                    try:
                        watcher.note(node)
                    except Exception as error:
                        errors.append(error)
        finally:
            self._is_telling = False
        if errors:
            raise errors[0]

    def close(self) -> None:
        for watcher in list(self._watchers):
            watcher.close()
