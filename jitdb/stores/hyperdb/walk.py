"""Walks through the tries that entries carry: what a put writes, and get and list as another implementation would.

`read` gives the node at a pointer, or None for one that leads nowhere in what is looked at. Each step goes on at a
later place of the path, and no node is taken twice at the same place, so a walk ends however the pointers lie. A node
that does not share the path up to where it was pointed at is no node of that bucket, and passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from jitdb.stores.hyperdb.node import Node
from jitdb.stores.hyperdb.path import END
from jitdb.stores.hyperdb.trie import Pointer, Trie

Read: TypeAlias = Callable[[Pointer], Node | None]


class _Walk:
    """Nodes to go on from, each with the place in the path where, none of them twice."""

    def __init__(self, heads: Iterable[Node], path: bytes, read: Read) -> None:
        self._path, self._read = path, read
        self._seen: set[tuple[Pointer, int]] = set()
        self._todo = [(head, 0) for head in heads]

    def __iter__(self) -> Iterator[tuple[Node, int]]:
        while self._todo:
            yield self._todo.pop()

    def go_on(self, pointers: Iterable[Pointer], place: int) -> None:
        """Follow pointers to nodes that share the path below `place`."""
        for pointer in pointers:
            if (pointer, place) in self._seen:
                continue
            self._seen.add((pointer, place))
            node = self._read(pointer)
            if node is not None and node.path.startswith(self._path[:place]):
                self._todo.append((node, place))


def grown_trie(key: str, path: bytes, heads: Iterable[Node], read: Read) -> Trie:
    """The trie of a new entry: of each place and digit, where the nearest node is that goes on there."""
    trie: Trie = {}

    def point(place: int, digit: int, pointer: Pointer) -> None:
        pointers = trie.setdefault(place, {}).setdefault(digit, [])
        if pointer not in pointers:
            pointers.append(pointer)

    def is_other(pointer: Pointer) -> bool:
        node = read(pointer)
        return node is not None and node.key != key

    walk = _Walk(heads, path, read)
    for head, begin in walk:
        for place in range(begin, len(path)):
            ours, theirs = path[place], head.path[place]
            bucket = head.trie.get(place, {})
            for digit, pointers in bucket.items():
                for pointer in pointers:
                    # Of our own digit the new entry itself is the nearest; at the END others may collide with it.
                    if digit != ours if ours != END else is_other(pointer):
                        point(place, digit, pointer)
            if ours == theirs and (ours != END or head.key == key):
                continue
            point(place, theirs, head.pointer)
            walk.go_on(bucket.get(ours, ()), place + 1)
            break
    return trie


def found_by_trie(key: str, path: bytes, heads: Iterable[Node], read: Read) -> Iterator[Node]:
    """The nodes with this key that the heads lead to, those among them that were overwritten, too."""
    walk = _Walk(heads, path, read)
    for head, begin in walk:
        place = begin
        while place < len(path) and head.path[place] == path[place]:
            place += 1
        if place < len(path):
            walk.go_on(head.trie.get(place, {}).get(path[place], ()), place + 1)
            continue
        if head.key == key:
            yield head
        walk.go_on(head.trie.get(len(path) - 1, {}).get(END, ()), len(path))


def listed_by_trie(prefix: bytes, heads: Iterable[Node], read: Read) -> Iterator[Node]:
    """The nodes whose paths begin with these digits, those among them that were overwritten, too."""
    walk = _Walk(heads, prefix, read)
    for head, begin in walk:
        place = begin
        while place < len(prefix) and head.path[place] == prefix[place]:
            place += 1
        if place < len(prefix):
            walk.go_on(head.trie.get(place, {}).get(prefix[place], ()), place + 1)
            continue
        yield head
        for place, bucket in head.trie.items():
            if place >= max(begin, len(prefix)):
                for pointers in bucket.values():
                    walk.go_on(pointers, place + 1)
