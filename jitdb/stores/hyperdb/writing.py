"""What a writer appends: entries, each of which knows all that counts and those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jitdb.common.words import type_and_size
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.format.entry import Entry
from jitdb.stores.hyperdb.format.path import normalized, path_digits
from jitdb.stores.hyperdb.format.trie import Pointer
from jitdb.stores.hyperdb.tries.node import Node

if TYPE_CHECKING:
    from jitdb.stores.hyperdb.graph import Graph
    from jitdb.stores.hyperdb.view import View


class Writing:
    """Entries to be appended to a feed together, as they are made.

    view:    what counts before
    order:   the feeds, as the entries of this feed number them
    listing: the seq of the entry that lists them; a new one is, when there are more
    content: the key of the feed for what is too large for a value, which is said where they are listed; None: none
    anew:    list them once more, to say that
    """

    def __init__(
        self,
        graph: Graph,
        feed: int,
        view: View,
        order: tuple[int, ...],
        listing: int,
        content: bytes | None = None,
        anew: bool = False,
    ) -> None:
        self.entries: list[Entry] = []
        self.nodes: list[Node] = []
        self.order, self.listing = order, listing
        self._content, self._anew = content, anew
        self.lengths = [*view.lengths, *[0] * (len(graph.feeds) - len(view.lengths))]
        self._graph, self._feed = graph, feed
        self._seq = len(graph.feeds[feed])
        self._heads = view.heads()
        graph.growing.begin(Pointer(feed, self._seq))

    def add(self, key: str, value: bytes | None, deleted: bool) -> None:
        """Write another one. Raises InvalidKey, HyperdbError."""
        key, value = normalized(key), checked_value(value)
        pointer = Pointer(self._feed, self._seq + len(self.nodes))
        path, listed = path_digits(key), self._listed(pointer.seq)
        trie = self._graph.growing.trie(key, path, self._heads, self.lengths, self.order)
        self.lengths[self._feed] = pointer.seq + 1
        clock = tuple([self.lengths[number] for number in self.order])
        self.entries.append(
            Entry(
                key, value, deleted, trie, clock, self.listing,
                tuple(self._graph.feeds[number].key for number in self.order) if listed else None,
                self._content if listed else None,
            )
        )  # fmt: skip
        node = Node(key, value, deleted, pointer, tuple(self.lengths), trie, self.order)
        self.nodes.append(node)
        self._graph.growing.add(node)
        self._heads = [node]

    def _listed(self, seq: int) -> bool:
        """Whether the entry at `seq` is to list the feeds, because there are others than were listed before."""
        if len(self.order) == len(self._graph.feeds) and not self._anew:
            return False
        self._anew = False
        known, count = set(self.order), len(self._graph.feeds)
        self.order = (*self.order, *(number for number in range(count) if number not in known))
        self.lengths += [0] * (count - len(self.lengths))  # of feeds that turned up in entries that were read
        self.listing = seq
        return True


def checked_value(value: bytes | None) -> bytes | None:
    """Raises HyperdbError for what is no value."""
    if value is None or isinstance(value, (bytes, bytearray, memoryview)):
        return None if value is None else bytes(value)
    raise HyperdbError(f"a value is bytes, not {type_and_size(value)}", remedy="encode text first: value.encode()")
