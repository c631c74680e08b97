"""A state of the database: so many records of each feed, and what they say together.

Answers come from the indexes of the feeds' logs. Of all entries with a key those count that no other one knows: one, or
several where writers did not know of each other. `lookup="trie"` follows the tries of the entries instead, as other
implementations do; in a database of one writer both give the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from jitdb.common.words import shown
from jitdb.stores.hyperdb.entry import varint
from jitdb.stores.hyperdb.errors import HyperdbError
from jitdb.stores.hyperdb.node import Node, maximal
from jitdb.stores.hyperdb.path import normalized, path_digits, prefix_digits, segments_of
from jitdb.stores.hyperdb.trie import Pointer
from jitdb.stores.hyperdb.walk import Read, found_by_trie, listed_by_trie

if TYPE_CHECKING:
    from jitdb.stores.hyperdb.graph import Graph

Lookup: TypeAlias = Literal["index", "trie"]


class Change(NamedTuple):
    """A key that two states of a database differ in: its nodes in each, none where it has no value there."""

    key: str
    left: tuple[Node, ...]
    right: tuple[Node, ...]


class View:
    """What is in a database, as of some state of its feeds. Not safe for threads.

    lengths: how many records of each feed count, by its number
    """

    def __init__(self, graph: Graph, lengths: tuple[int, ...]) -> None:
        self._graph = graph
        self.lengths = lengths

    def heads(self) -> list[Node]:
        """The nodes that no other node knows: what the next one written comes after."""
        last = ((number, length - 1) for number, length in enumerate(self.lengths) if length > 1)
        return maximal(self._graph.node(Pointer(*pointer)) for pointer in last)

    def version(self) -> bytes:
        """The heads, as bytes that checkout takes: of each the key of its feed, and its seq as a varint."""
        return b"".join(self._graph.feeds[head.feed].key + varint(head.seq) for head in self.heads())

    def get(self, key: str, *, deletes: bool = False, lookup: Lookup = "index") -> list[Node]:
        """The nodes of a key: one, several in a conflict, none where it has no value.

        deletes: where it was deleted, the nodes that say so
        """
        name = normalized(key)
        nodes = self._by_trie(name) if checked_lookup(lookup) == "trie" else self._by_index(name)
        return answered(maximal(nodes), deletes)

    def _by_index(self, name: str) -> Iterator[Node]:
        """The newest node of the key in each feed."""
        for number, length in enumerate(self.lengths):
            if length > 1:
                for seq in self._graph.feeds[number].candidates(name, length):
                    node = self._graph.read(Pointer(number, seq))
                    if node.key == name:
                        yield node
                        break

    def _by_trie(self, name: str) -> Iterator[Node]:
        return found_by_trie(name, path_digits(name), self.heads(), self.reader())

    def reader(self) -> Read:
        """What a walk reads pointers with: those beyond this state lead nowhere."""
        lengths, node = self.lengths, self._graph.node

        def read(pointer: Pointer) -> Node | None:
            return node(pointer) if pointer.feed < len(lengths) and 0 < pointer.seq < lengths[pointer.feed] else None

        return read

    def groups(
        self,
        prefix: str = "",
        *,
        recursive: bool = True,
        gt: bool = False,
        reverse: bool = False,
        deletes: bool = False,
        lookup: Lookup = "index",
    ) -> Iterator[list[Node]]:
        """The nodes of each key at or below a prefix, in the order of the paths: a key before those below it.

        recursive: whether keys more than one segment below it are among them; if not, the newest node of each folder is
        gt:        leave out the key that is the prefix itself
        reverse:   the other way round
        deletes:   deleted keys, too
        """
        name = normalized(prefix)
        checked_lookup(lookup)
        digits = prefix_digits(name)
        nodes = self._listed_by_trie(name, digits) if lookup == "trie" else self._listed_by_index(name)
        if gt or not digits:
            nodes = (node for node in nodes if len(node.path) - 1 > len(digits))
        if name.endswith("/"):  # which is another key than without the slash
            nodes = (node for node in nodes if node.key.startswith(name))
        level = len(digits) + 32

        def place(node: Node) -> tuple[bytes, str]:
            path = node.path[:-1]
            return (path, node.key) if recursive else (path[:level], "")

        for _, group in groupby(sorted(nodes, key=place, reverse=reverse), place):
            found = answered(maximal(group), deletes)
            if found:
                yield found

    def _listed_by_index(self, name: str) -> Iterator[Node]:
        """The newest node of each key in each feed."""
        segments = segments_of(name)
        for number, length in enumerate(self.lengths):
            if length < 2:
                continue
            newest: dict[str, Node] = {}
            for seq in self._graph.feeds[number].seqs_under(segments, length):
                node = self._graph.read(Pointer(number, seq))
                newest[node.key] = node
            yield from newest.values()

    def _listed_by_trie(self, name: str, digits: bytes) -> Iterator[Node]:
        segments = segments_of(name)
        for node in listed_by_trie(digits, self.heads(), self.reader()):
            if segments_of(node.key)[: len(segments)] == segments:
                yield node

    def history(self, *, reverse: bool = False) -> Iterator[Node]:
        """All nodes, each after those that its writer knew; `reverse`: each before them."""
        return self._backward() if reverse else self._forward()

    def _forward(self) -> Iterator[Node]:
        told = [min(length, 1) for length in self.lengths]
        is_stuck = False  # where clocks of hostile feeds know each other, no order is right
        while told != list(self.lengths):
            before = sum(told)
            for number, length in enumerate(self.lengths):
                while told[number] < length:
                    node = self._graph.node(Pointer(number, told[number]))
                    told[number] += 1
                    if not is_stuck and any(node.clock_of(feed) > known for feed, known in enumerate(told)):
                        told[number] -= 1
                        break
                    is_stuck = False
                    yield node
            is_stuck = sum(told) == before

    def _backward(self) -> Iterator[Node]:
        left = list(self.lengths)
        ends = {
            number: self._graph.node(Pointer(number, length - 1)) for number, length in enumerate(left) if length > 1
        }
        while ends:
            node = maximal(ends.values())[0]
            yield node
            number = node.feed
            left[number] -= 1
            if left[number] > 1:
                ends[number] = self._graph.node(Pointer(number, left[number] - 1))
            else:
                del ends[number]

    def key_history(self, key: str) -> Iterator[list[Node]]:
        """The nodes that a key had, the newest first: each time those that none of the ones left knows."""
        name = normalized(key)
        left = [node for number, length in enumerate(self.lengths) for node in self._written(number, length, name)]
        while left:
            newest = maximal(left)
            yield newest
            left = [node for node in left if node not in newest]

    def _written(self, number: int, length: int, name: str) -> Iterator[Node]:
        for seq in self._graph.feeds[number].candidates(name, length) if length > 1 else ():
            node = self._graph.node(Pointer(number, seq))
            if node.key == name:
                yield node

    def diff(self, other: View | None, prefix: str = "") -> Iterator[Change]:
        """The keys at or below a prefix that this state and another one, or an empty database, differ in."""
        ours = {nodes[0].key: tuple(nodes) for nodes in self.groups(prefix)}
        theirs = {nodes[0].key: tuple(nodes) for nodes in other.groups(prefix)} if other is not None else {}
        for key in sorted(ours.keys() | theirs.keys(), key=lambda key: (path_digits(key)[:-1], key)):
            left, right = ours.get(key, ()), theirs.get(key, ())
            if left != right:
                yield Change(key, left, right)


def answered(nodes: list[Node], deletes: bool) -> list[Node]:
    """Nothing, where all say that the key was deleted."""
    return nodes if deletes or not all(node.deleted for node in nodes) else []


def checked_lookup(lookup: Lookup) -> Lookup:
    """Raises HyperdbError for what is none."""
    if lookup not in ("index", "trie"):
        raise HyperdbError(f"lookup is 'index' or 'trie', not {shown(lookup)}")
    return lookup
