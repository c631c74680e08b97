"""A state of the database: so many records of each feed, and what they say together.

Answers come from the indexes of the feeds' logs. Of all entries with a key those count that no other one knows: one, or
several where writers did not know of each other. `lookup="trie"` follows the tries of the entries instead, as other
implementations do; in a database of one writer both give the same. Entries that nobody can read are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from jitdb.common.words import shown
from jitdb.errors import DecodeError
from jitdb.stores.hyperdb.errors import HyperdbError, InvalidVersion
from jitdb.stores.hyperdb.format.path import DIGITS, normalized, path_digits, prefix_digits, segments_of
from jitdb.stores.hyperdb.format.trie import Pointer
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES
from jitdb.stores.hyperdb.tries.node import Node, maximal
from jitdb.stores.hyperdb.tries.walk import found_by_trie, listed_by_trie
from jitdb.stores.varint import read_varint, varint

if TYPE_CHECKING:
    from jitdb.stores.hyperdb.graph import Graph

Lookup: TypeAlias = Literal["index", "trie"]
OnRead: TypeAlias = Callable[[Node], object]


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
        self._written = [(number, length) for number, length in enumerate(lengths) if length > 1]

    def heads(self) -> list[Node]:
        """The nodes that no other node knows: what the next one written comes after."""
        last = (self._graph.last(number, length) for number, length in self._written)
        return maximal(node for node in last if node is not None)

    def version(self) -> bytes:
        """The heads, as bytes that checkout takes: of each the key of its feed, and its seq as a varint."""
        return b"".join(self._graph.feeds[head.feed].key + varint(head.seq) for head in self.heads())

    def get(self, key: str, deletes: bool, lookup: Lookup, on_read: OnRead | None) -> list[Node]:
        """The nodes of a key; see Reading.get."""
        look_up = self._by_trie if checked_lookup(lookup) == "trie" else self._by_index
        return answered(maximal(look_up(normalized(key), on_read)), deletes)

    def _by_index(self, name: str, on_read: OnRead | None = None) -> list[Node]:
        """The newest node of the key in each feed."""
        newest = [next(self._versions(*feed, name, on_read), None) for feed in self._written]
        return [node for node in newest if node is not None]

    def _versions(self, number: int, length: int, name: str, on_read: OnRead | None = None) -> Iterator[Node]:
        """The nodes of a key in one feed, the newest first."""
        for seq in self._graph.feeds[number].candidates(name, length):
            node = self._graph.readable(Pointer(number, seq), keep=False)
            if node is None:
                continue
            if on_read is not None:
                on_read(node)
            if node.key == name:
                yield node

    def _by_trie(self, name: str, on_read: OnRead | None) -> Iterator[Node]:
        heads = self.heads()
        if on_read is not None:
            list(map(on_read, heads))
        return found_by_trie(name, path_digits(name), heads, partial(self._pointed_at, on_read))

    def _pointed_at(self, on_read: OnRead | None, pointer: Pointer) -> Node | None:
        """The node at a pointer; None beyond this state, and where nobody can read one."""
        if pointer.feed >= len(self.lengths) or not 0 < pointer.seq < self.lengths[pointer.feed]:
            return None
        node = self._graph.readable(pointer)
        if node is not None and on_read is not None:
            on_read(node)
        return node

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

        recursive: whether each key is told. If not, each segment that follows the prefix is told once, whatever is
                   below it, with the newest of all nodes there: those that no other one of them knows, of any keys.
                   What was deleted hides nothing else, unless `deletes`. Keys at the prefix itself are told as ever.
        gt:        leave out the key that is the prefix itself; an empty one is never told
        reverse:   the other way round
        deletes:   deleted keys, too

        Keys whose paths collide are in the order of their text.
        """
        name = normalized(prefix)
        listed = self._listed_by_trie if checked_lookup(lookup) == "trie" else self._listed_by_index
        is_under = _under(name, gt)
        nodes = sorted((node for node in listed(name) if is_under(node.key)), key=_place, reverse=reverse)
        groups = filter(None, (answered(maximal(versions), deletes) for _, versions in groupby(nodes, _place)))
        return groups if recursive else _folders(groups, len(segments_of(name)), deletes)

    def _listed_by_index(self, name: str) -> Iterator[Node]:
        """The newest node of each key in each feed."""
        segments = segments_of(name)
        for number, length in self._written:
            feed, newest = self._graph.feeds[number], dict[bytes, int]()
            for seq, record, key in feed.entries_under(segments, length):
                if key in newest:
                    feed.overwrite(seq, newest[key])
                    continue
                node = self._graph.readable(Pointer(number, seq), keep=False, record=record)
                if node is not None:
                    newest[key] = seq
                    yield node

    def _listed_by_trie(self, name: str) -> Iterator[Node]:
        return listed_by_trie(prefix_digits(name), self.heads(), partial(self._pointed_at, None))

    def history(self, *, reverse: bool = False) -> Iterator[Node]:
        """All nodes, each after those that its writer knew; `reverse`: each before them."""
        return self._backward() if reverse else self._forward()

    def _forward(self) -> Iterator[Node]:
        told = [min(length, 1) for length in self.lengths]
        is_stuck = False  # where clocks of hostile feeds know each other, no order is right
        while told != list(self.lengths):
            before = sum(told)
            for number, length in self._written:
                while told[number] < length:
                    node = self._graph.readable(Pointer(number, told[number]))
                    if node is not None and not is_stuck and self._is_early(node, told):
                        break
                    told[number] += 1
                    is_stuck = False
                    if node is not None:
                        yield node
            is_stuck = sum(told) == before

    def _is_early(self, node: Node, told: list[int]) -> bool:
        """Whether its writer knew a node that was not told yet."""
        return any(
            min(known, length) > done and feed != node.feed
            for feed, (known, length, done) in enumerate(zip(node.clock, self.lengths, told, strict=False))
        )

    def _backward(self) -> Iterator[Node]:
        return chain.from_iterable(_peeled([self._backward_in(*feed) for feed in self._written]))

    def _backward_in(self, number: int, length: int) -> Iterator[Node]:
        pointers = (Pointer(number, seq) for seq in range(length - 1, 0, -1))
        return filter(None, map(self._graph.readable, pointers))

    def key_history(self, key: str) -> Iterator[list[Node]]:
        """The nodes that a key had, the newest first: each time those that none of the ones left knows."""
        name = normalized(key)
        return _peeled([self._versions(number, length, name) for number, length in self._written])

    def diff(self, other: View | None, prefix: str = "") -> Iterator[Change]:
        """The keys at or below a prefix that this state and another one, or an empty database, differ in.

        Only what was written between the two is looked at. Raises HyperdbError for a state of another database.
        """
        other = View(self._graph, ()) if other is None else other
        if other._graph is not self._graph:
            raise HyperdbError("the other state is not one of this database", remedy="pass what checkout() gives")
        name = normalized(prefix)
        for key in sorted(set(self._keys_between(other, name)), key=_path_of):
            left, right = (tuple(answered(maximal(state._by_index(key)), False)) for state in (self, other))
            if left != right:
                yield Change(key, left, right)

    def _keys_between(self, other: View, name: str) -> Iterator[str]:
        """The keys at or below this one that were written in one of two states, and not in the other one."""
        is_under, segments = _under(name), segments_of(name)
        for number, lengths in enumerate(zip_longest(self.lengths, other.lengths, fillvalue=0)):
            low, high = sorted(lengths)
            feed = self._graph.feeds[number]
            for seq in feed.seqs_under(segments, high).tolist() if segments else range(1, high):
                node = self._graph.readable(Pointer(number, seq)) if seq >= low else None
                if node is not None and is_under(node.key):
                    yield node.key


def heads_in(version: bytes | str) -> list[tuple[bytes, int]]:
    """What a version names: keys of feeds, and seqs. Raises InvalidVersion."""
    try:
        data = bytes.fromhex(version) if isinstance(version, str) else bytes(version)
        found, position = [], 0
        while position < len(data):
            seq, end = read_varint(data, position + KEY_BYTES)
            found.append((data[position : position + KEY_BYTES], seq))
            position = end
    except (ValueError, DecodeError) as error:
        raise InvalidVersion(f"{shown(version)} is no version: {error}") from None
    return found


def _peeled(feeds: Sequence[Iterator[Node]]) -> Iterator[list[Node]]:
    """The newest nodes of all feeds, each given newest first; then the newest of those left, and so on."""
    ends = {number: node for number, feed in enumerate(feeds) if (node := next(feed, None)) is not None}
    while ends:
        newest = maximal(ends.values())
        yield newest
        for number in [number for number, node in ends.items() if node in newest]:
            node = next(feeds[number], None)
            if node is None:
                del ends[number]
            else:
                ends[number] = node


def _folders(groups: Iterable[list[Node]], depth: int, deletes: bool) -> Iterator[list[Node]]:
    """The newest nodes at and below each segment at this depth, and those of each key above it.

    Keys whose paths collide may lie among each other.
    """
    level = (depth + 1) * DIGITS
    for _, run in groupby(groups, lambda nodes: nodes[0].path[:-1][:level]):
        folders: dict[str | tuple[str, ...], list[Node]] = {}
        for node in chain.from_iterable(run):
            if deletes or not node.deleted:
                segments = tuple(segments_of(node.key)[: depth + 1])
                folders.setdefault(segments if len(segments) > depth else node.key, []).append(node)
        yield from map(maximal, folders.values())


def _under(name: str, gt: bool = False) -> Callable[[str], bool]:
    """Whether a key is at or below a normalized one; where that is the root, or with `gt`, below it.

    Its text begins with the other one's, too: "a/" and "/a" are other keys than "a", at the same path.
    """
    segments = segments_of(name)
    count = len(segments)
    least = count + 1 if gt or not count else count

    def is_under(key: str) -> bool:
        found = segments_of(key)
        return len(found) >= least and found[:count] == segments and key.startswith(name)

    return is_under


def _path_of(key: str) -> tuple[bytes, str]:
    return path_digits(key)[:-1], key


def _place(node: Node) -> tuple[bytes, str]:
    return node.path[:-1], node.key


def answered(nodes: list[Node], deletes: bool) -> list[Node]:
    """Nothing, where all say that the key was deleted."""
    if deletes:
        return nodes
    for node in nodes:  # in less time than all() takes for one
        if not node.deleted:
            return nodes
    return []


def checked_lookup(lookup: Lookup) -> Lookup:
    """Raises HyperdbError for what is none."""
    if lookup not in ("index", "trie"):
        raise HyperdbError(f"lookup is 'index' or 'trie', not {shown(lookup)}")
    return lookup
