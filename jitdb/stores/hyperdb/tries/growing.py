"""The tries of new entries, grown by a kernel from those of the nodes that a walk meets, which are kept for it.

Nodes lie one behind the other in a few arrays, and not as objects: a trie is some fifty pointers, and hundreds of
thousands of nodes are met again and again while a database is filled. growing_kernels.py says what is in the arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.stores.hyperdb.format.trie import Pointer
from jitdb.stores.hyperdb.tries import growing_kernels as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.stores.hyperdb.tries.node import Node

_MOST: Final = 1 << 26  # bytes of nodes, behind which the older half is forgotten: most walks end at newer ones
_ROOM: Final = 1 << 16  # bytes of nodes to begin with; of the others, as many as fit the rows
_ROWS: Final = 1 << 8
_ROW: Final = struct.Struct(f"={kernels.COLUMNS}q")
_UNREADABLE: Final = b"\xff"  # a path that leaves each other at once


class Growing:
    """Nodes to grow tries from. Not safe for threads.

    read: the node at a pointer; None where nobody can read one
    """

    def __init__(self, read: Callable[[Pointer], Node | None]) -> None:
        self._read = read
        self._walk = 0
        self._work, self._out = np.empty(1 << 10, np.int64), np.empty(1 << 10, np.uint8)
        self._next: Pointer | None = None  # behind the last new entry
        self._forget()

    def _forget(self) -> None:
        self._store, self._feeds = np.empty(_ROOM, np.uint8), np.empty(1 << 6, np.int64)
        self._nodes, self._slots = np.empty((_ROWS, kernels.COLUMNS), np.int64), np.empty(2 * _ROWS, np.int64)
        self._slots[:] = -1
        self._size = self._count = self._listed = 0  # of what is in use of the first three
        self._lists: dict[tuple[int, ...], int] = {}  # where in `_feeds` they lie

    def begin(self, pointer: Pointer) -> None:
        """The next new entry will be there. What would have been there, but was not written, is forgotten."""
        if pointer != self._next:
            self._forget()
        elif self._size > _MOST:
            self._forget_older()
        self._next = pointer

    def _forget_older(self) -> None:
        half, end = self._count // 2, self._size
        nodes = self._nodes[half : self._count].copy()
        begin = nodes.item(0, kernels.KEY)
        nodes[:, kernels.KEY : kernels.STOP + 1] -= begin
        self._size, self._count = end - begin, len(nodes)
        self._store[: self._size] = self._store[begin:end].copy()
        self._nodes[: self._count] = nodes
        self._find_anew()

    def _find_anew(self) -> None:
        """Put all rows into slots again."""
        self._slots = np.full(2 * len(self._nodes), -1, np.int64)
        for row, pointer in enumerate(self._nodes[: self._count, :2].tolist()):
            self._slots[self._slot(*pointer)] = row

    def trie(self, key: str, path: bytes, heads: Iterable[Node], lengths: Sequence[int], order: Sequence[int]) -> bytes:
        """The trie of a new entry: of each place and digit, where the nearest nodes are that go on there.

        heads:   where the walk begins
        lengths: how many records of each feed count, by its number
        order:   the feeds as the writer numbers them
        """
        rows = np.array([self._row_of(head) for head in heads], np.int64)
        new = np.frombuffer(path + key.encode(), np.uint8)
        numbers = np.empty(len(lengths), np.int64)
        numbers[list(order)] = range(len(order))
        here = np.array(lengths, np.int64)
        while True:
            self._walk += 1
            self._work[kernels.WALK] = self._walk
            size = kernels.grow(
                self._store, self._nodes, self._slots, here, self._feeds, rows, new, len(path), numbers,
                self._work, self._out,
            )  # fmt: skip
            if size >= 0:
                return self._out[:size].tobytes()
            if size == kernels.FULL:
                self._work, self._out = np.empty(2 * len(self._work), np.int64), np.empty(2 * len(self._out), np.uint8)
                continue
            missed = self._work[kernels.MISSES :][: 2 * int(self._work[kernels.MISSED])].reshape(-1, 2)
            for pointer in set(map(Pointer._make, missed.tolist())):
                self._add(pointer, self._read(pointer))

    def add(self, node: Node) -> None:
        """A new entry, behind the last one."""
        self._add(node.pointer, node)
        self._next = Pointer(node.feed, node.seq + 1)

    def _row_of(self, node: Node) -> int:
        """The row of a node, which is added where it has none."""
        slot = self._slot(*node.pointer)
        row = self._slots.item(slot)
        return self._add(node.pointer, node) if row < 0 else row

    def _slot(self, feed: int, seq: int) -> int:
        """Where in `_slots` the row of this pointer is, or goes."""
        slots, nodes = self._slots, self._nodes
        slot = (seq * kernels.SPREAD + feed) & (len(slots) - 1)
        while (row := slots.item(slot)) >= 0:
            if nodes.item(row, kernels.SEQ) == seq and nodes.item(row, kernels.FEED) == feed:
                break
            slot = (slot + 1) & (len(slots) - 1)
        return slot

    def _add(self, pointer: Pointer, node: Node | None) -> int:
        """The row of a node that is added."""
        key, path, trie = (node.key.encode(), node.path, node.data) if node is not None else (b"", _UNREADABLE, b"")
        data = b"".join((key, path, trie))
        begin, row = self._size, self._count
        self._size = begin + len(data)
        while self._size > len(self._store):
            self._store = _doubled(self._store)
        if row == len(self._nodes):
            self._nodes = _doubled(self._nodes)
            self._find_anew()
        self._store.data[begin : self._size] = data
        places = begin, begin + len(key), begin + len(key) + len(path), self._size
        feeds = self._list(node.feeds if node is not None else ())
        _ROW.pack_into(self._nodes.data, row * _ROW.size, *pointer, *places, feeds, 0, 0, 0)
        self._slots[self._slot(*pointer)] = row
        self._count += 1
        return row

    def _list(self, feeds: tuple[int, ...]) -> int:
        """Where in `_feeds` these lie, behind their number."""
        begin = self._lists.get(feeds)
        if begin is None:
            begin = self._lists[feeds] = self._listed
            self._listed += 1 + len(feeds)
            while self._listed > len(self._feeds):
                self._feeds = _doubled(self._feeds)
            self._feeds[begin : self._listed] = (len(feeds), *feeds)
        return begin


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    """The same in twice the room."""
    return np.concatenate([array, np.empty_like(array)])
