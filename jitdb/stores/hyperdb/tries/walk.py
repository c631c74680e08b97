"""Walks through the tries that entries carry: get and list as another implementation would.

Nobody vouches for a trie: its writer may have pointed anywhere. Pointers beyond what is looked at therefore lead
nowhere; a node that does not share the path up to where it was pointed at is no node of that bucket, and passed over;
and of each node each bucket is followed once. A walk thus ends however the pointers lie, after a look at each pointer
of the nodes met, and tries that nobody can decode have none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from jitdb.errors import DecodeError
from jitdb.stores.hyperdb.format.path import END
from jitdb.stores.hyperdb.format.trie import Pointer, Trie
from jitdb.stores.hyperdb.tries.node import Node

Read: TypeAlias = Callable[[Pointer], Node | None]  # the node at a pointer; None where it leads nowhere

_FAR: Final = sys.maxsize  # beyond every path


class _Walk:
    """Nodes to go on from: each with the place of the path to begin at, and the one that it was begun at before."""

    def __init__(self, heads: Iterable[Node], path: bytes, read: Read) -> None:
        self._path, self._read = path, read
        self._todo = [(head, 0, _FAR) for head in heads]
        self._begun = {head.pointer: 0 for head, _, _ in self._todo}

    def __iter__(self) -> Iterator[tuple[Node, int, int]]:
        while self._todo:
            yield self._todo.pop()

    def go_on(self, pointers: Iterable[Pointer], place: int) -> None:
        """Follow pointers to nodes that share the path below `place`."""
        for pointer in pointers:
            end = self._begun.get(pointer, _FAR)
            if end <= place:
                continue
            self._begun[pointer] = place
            node = self._read(pointer)
            if node is not None and node.path.startswith(self._path[:place]):
                self._todo.append((node, place, end))


def found_by_trie(key: str, path: bytes, heads: Iterable[Node], read: Read) -> Iterator[Node]:
    """The nodes with this key that the heads lead to, those among them that were overwritten, too."""
    walk = _Walk(heads, path, read)
    for head, begin, end in walk:
        place = _parting(head.path, path, begin)
        if place >= end:
            continue
        if place < len(path):
            walk.go_on(_trie(head).get(place, {}).get(path[place], ()), place + 1)
            continue
        if head.key == key:
            yield head
        walk.go_on(_trie(head).get(len(path) - 1, {}).get(END, ()), len(path))


def listed_by_trie(prefix: bytes, heads: Iterable[Node], read: Read) -> Iterator[Node]:
    """The nodes whose paths begin with these digits, those among them that were overwritten, too."""
    walk = _Walk(heads, prefix, read)
    for head, begin, end in walk:
        place = _parting(head.path, prefix, begin)
        if place < len(prefix):
            if place < end:
                walk.go_on(_trie(head).get(place, {}).get(prefix[place], ()), place + 1)
            continue
        yield head
        for place, bucket in _trie(head).items():
            if max(begin, len(prefix)) <= place < end:
                for pointers in bucket.values():
                    walk.go_on(pointers, place + 1)


def _parting(theirs: bytes, ours: bytes, begin: int) -> int:
    """The first place from `begin` on at which two paths differ, or where ours ends."""
    for place in range(begin, len(ours)):
        if theirs[place] != ours[place]:
            return place
    return len(ours)


def _trie(node: Node) -> Trie:
    """The pointers of a node; none, where nobody can decode them."""
    try:
        return node.trie
    except DecodeError:
        return {}
