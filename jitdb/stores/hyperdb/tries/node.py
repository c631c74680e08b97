"""A node: an entry of some feed, as the database sees it, with all feeds by their numbers there."""

from __future__ import annotations

from collections.abc import Iterable

from jitdb.stores.hyperdb.format.path import path_digits
from jitdb.stores.hyperdb.format.trie import Pointer, Trie, decode_trie


class Node:
    """What somebody wrote under a key.

    key:     without the slash in front
    value:   bytes, or None where none was given
    deleted: whether the key was deleted by this; a deletion may have a value, too
    feed:    the number of its feed in the database
    seq:     its place in that feed
    clock:   of each feed, by its number, how many entries its writer knew, the header and this one included
    feeds:   those that its writer knew of, by their numbers, in the order in which it numbers them
    data:    its trie, encoded
    """

    __slots__ = ("_path", "_trie", "clock", "data", "deleted", "feed", "feeds", "key", "seq", "value")

    def __init__(
        self,
        key: str,
        value: bytes | None,
        deleted: bool,
        pointer: Pointer,
        clock: tuple[int, ...],
        data: bytes,
        feeds: tuple[int, ...],
    ) -> None:
        self.key, self.value, self.deleted = key, value, deleted
        self.feed, self.seq = pointer
        self.clock = clock
        self.feeds = feeds
        self.data = data
        self._trie: Trie | None = None
        self._path: bytes | None = None

    @property
    def pointer(self) -> Pointer:
        """Where it is."""
        return Pointer(self.feed, self.seq)

    @property
    def path(self) -> bytes:
        """The digits of its key."""
        if self._path is None:
            self._path = path_digits(self.key)
        return self._path

    @property
    def trie(self) -> Trie:
        """Its pointers. Raises DecodeError."""
        if self._trie is None:  # most nodes are read for their values alone
            self._trie = decode_trie(self.data, self.feeds)
        return self._trie

    def knows(self, other: Node) -> bool:
        """Whether its writer knew the other one, so that it comes after it; where both say so, a clock lies: no."""
        return self.clock_of(other.feed) > other.seq and other.clock_of(self.feed) <= self.seq

    def clock_of(self, feed: int) -> int:
        """How many entries of that feed its writer knew."""
        return self.clock[feed] if feed < len(self.clock) else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.pointer == other.pointer and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.pointer)

    def __repr__(self) -> str:
        what = "deleted" if self.deleted else f"value={self.value!r}"
        return f"<Node {self.key!r} {what}, feed {self.feed}, seq {self.seq}>"


def maximal(nodes: Iterable[Node]) -> list[Node]:
    """Those that no other one knows, by feed and seq; each once.

    Of each feed that is the newest one at most. All of these, if lying clocks go round in a circle.
    """
    nodes = list(nodes)
    if len(nodes) < 2:
        return nodes
    newest: dict[int, Node] = {}  # by feed
    for node in nodes:
        there = newest.setdefault(node.feed, node)
        if node.seq > there.seq:
            newest[node.feed] = node
    found = [newest[feed] for feed in sorted(newest)]
    return [node for node in found if not any(other.knows(node) for other in found)] or found
