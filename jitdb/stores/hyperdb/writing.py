"""What a writer appends: entries, each of which knows all that counts and those before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitdb.common.words import shown
from jitdb.stores.hyperdb.entry import Entry
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.node import Node
from jitdb.stores.hyperdb.path import normalized, path_digits
from jitdb.stores.hyperdb.trie import Pointer, Trie, encode_trie
from jitdb.stores.hyperdb.walk import Reader, grown_trie

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
        order: Sequence[int],
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
        self._fresh: dict[Pointer, Node] = {}
        self._read = Reader(lambda pointer: self._fresh.get(pointer) or graph.readable(pointer), self.lengths)

    def add(self, key: str, value: bytes | None, deleted: bool) -> None:
        """Write another one. Raises InvalidKey, HyperdbError."""
        key, value = normalized(key), checked_value(value)
        pointer = Pointer(self._feed, self._seq + len(self.nodes))
        trie = grown_trie(key, path_digits(key), self._heads, self._read)
        self.lengths[self._feed] = pointer.seq + 1
        listed = self._listed(pointer.seq)
        self.entries.append(
            Entry(
                key, value, deleted, self._encoded(trie), self._clock(), self.listing,
                tuple(self._graph.feeds[number].key for number in self.order) if listed else None,
                self._content if listed else None,
            )
        )  # fmt: skip
        node = Node(key, value, deleted, pointer, tuple(self.lengths), trie, tuple(self.order))
        self.nodes.append(node)
        self._fresh[pointer], self._heads = node, [node]

    def _listed(self, seq: int) -> bool:
        """Whether the entry at `seq` is to list the feeds, because there are others than were listed before."""
        if len(self.order) == len(self._graph.feeds) and not self._anew:
            return False
        self._anew = False
        known = set(self.order)
        self.order = [*self.order, *(number for number in range(len(self._graph.feeds)) if number not in known)]
        self.listing = seq
        return True

    def _clock(self) -> tuple[int, ...]:
        return tuple(self.lengths[number] for number in self.order)

    def _encoded(self, trie: Trie) -> bytes:
        return encode_trie(trie, {number: place for place, number in enumerate(self.order)})


def checked_value(value: bytes | None) -> bytes | None:
    """Raises HyperdbError for what is no value."""
    if value is None or isinstance(value, (bytes, bytearray, memoryview)):
        return None if value is None else bytes(value)
    raise HyperdbError(f"a value is bytes, not {shown(value)}", remedy="encode text first: value.encode()")
