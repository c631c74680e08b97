"""What can be asked of a database, as it is and as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from jitdb.common.words import shown
from jitdb.stores.hyperdb.errors import Conflict, NotWritable
from jitdb.stores.hyperdb.tries.node import Node
from jitdb.stores.hyperdb.view import Change, Lookup, View

# Where a class has a method `list`, its annotations cannot name the type.
Nodes: TypeAlias = list[Node]
Groups: TypeAlias = list[Nodes]
Changes: TypeAlias = list[Change]


class Reading:
    """What can be asked of a database as it is, and of an earlier state of it."""

    _lock: threading.RLock

    def _view(self) -> View:
        raise NotImplementedError

    def get(
        self,
        key: str,
        *,
        deletes: bool = False,
        lookup: Lookup = "index",
        on_read: Callable[[Node], object] | None = None,
    ) -> Nodes:
        """The nodes of a key: one; several where writers did not know of each other's; none where it has no value.

        deletes: where it was deleted, the nodes that say so
        lookup:  "trie" follows the pointers of the entries instead of asking the index
        on_read: called with each node that is looked at on the way
        """
        with self._lock:
            return self._view().get(key, deletes, lookup, on_read)

    def list(self, prefix: str = "", **options: Any) -> Groups:
        """The nodes of each key at or below a prefix; options are those of View.groups."""
        with self._lock:
            return list(self._view().groups(prefix, **options))

    def iterator(self, prefix: str = "", **options: Any) -> Iterator[Nodes]:
        """The same, one by one, of the state as it is now; others may read and write meanwhile."""
        with self._lock:
            return self._one_by_one(self._view().groups(prefix, **options))

    def _one_by_one(self, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._lock:
                item = next(items, None)
            if item is None:
                return
            yield item

    def heads(self) -> Nodes:
        """The nodes that no other node knows."""
        with self._lock:
            return self._view().heads()

    @property
    def version(self) -> bytes:
        """This state, as bytes for checkout()."""
        with self._lock:
            return self._view().version()

    def history(self, *, reverse: bool = False) -> Nodes:
        """All nodes, each after those that its writer knew, or, `reverse`, before them."""
        with self._lock:
            return list(self._view().history(reverse=reverse))

    def key_history(self, key: str) -> Groups:
        """What a key was, the newest first."""
        with self._lock:
            return list(self._view().key_history(key))

    def diff(self, other: Reading | None = None, prefix: str = "") -> Changes:
        """What differs from another state, or from an empty database, in the keys at or below a prefix."""
        with self._lock:
            return list(self._view().diff(other._view() if other is not None else None, prefix))

    def __getitem__(self, key: str) -> bytes | None:
        """The value of a key. Raises KeyError where it has none, Conflict where it has several."""
        nodes = self.get(key)
        if not nodes:
            raise KeyError(key)
        if len(nodes) > 1:
            raise Conflict(f"{shown(key)} has {len(nodes)} values, of writers that did not know of each other's")
        return nodes[0].value

    def __contains__(self, key: str) -> bool:
        return bool(self.get(key))

    def __iter__(self) -> Iterator[str]:
        return (nodes[0].key for nodes in self.list())


class Checkout(Reading):
    """A database as it was at some version; it cannot be written to."""

    def __init__(self, view: View, lock: threading.RLock) -> None:
        self._state, self._lock = view, lock

    def _view(self) -> View:
        return self._state

    def put(self, key: str, value: bytes | None = None) -> Node:
        """Raises NotWritable."""
        raise NotWritable("a checkout is a state of the past", remedy="write to the database itself")

    delete = batch = authorize = put
