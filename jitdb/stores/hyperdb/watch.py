"""Watching a prefix: what is written at or below it, here or elsewhere, as it comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from jitdb.stores.following import Following
from jitdb.stores.hyperdb.format.path import segments_of
from jitdb.stores.hyperdb.tries.node import Node


class Watcher(Following[Node]):
    """The nodes that are written at or below a prefix from now on; nothing is lost while nobody takes them."""

    def __init__(
        self, prefix: str, callback: Callable[[Node], object] | None, ended: Callable[[Watcher], object]
    ) -> None:
        super().__init__(callback, ended=ended)
        self._segments = segments_of(prefix)

    def note(self, node: Node) -> None:
        """This was written, wherever it is. Raises what the callback does."""
        if segments_of(node.key)[: len(self._segments)] == self._segments:
            self.tell(lambda: node)


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
