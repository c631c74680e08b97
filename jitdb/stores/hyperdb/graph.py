"""All feeds of a database as one graph of nodes, whose order is what their clocks say.

Each feed numbers the feeds that it knows in an order of its own, which its newest entry with `feeds` lists. Here they
are numbered once more, in the order in which they came to be known; the first is the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from jitdb.errors import DecodeError
from jitdb.stores.hyperdb.errors import FeedDamaged, InvalidKey
from jitdb.stores.hyperdb.feed import Feed
from jitdb.stores.hyperdb.format.entry import Entry, decode_entry
from jitdb.stores.hyperdb.format.path import checked_size
from jitdb.stores.hyperdb.format.trie import Pointer
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES
from jitdb.stores.hyperdb.tries.growing import Growing
from jitdb.stores.hyperdb.tries.node import Node

FEEDS_MOST: Final = 1024  # that one entry lists

_CACHED: Final = 1 << 12  # nodes


class Graph:
    """The feeds, and their entries as nodes. Not safe for threads.

    Whoever has the key of a feed can write into it what is no entry, or one that nobody can make sense of. It costs
    that writer the entry, and others nothing: `readable` knows none there, and the rest of the feed counts.

    make_feed: opens the feed of a key that turned up in an entry
    """

    def __init__(self, make_feed: Callable[[bytes], Feed]) -> None:
        self.feeds: list[Feed] = []
        self._numbers: dict[bytes, int] = {}
        self._make_feed = make_feed
        self._lists: dict[tuple[int, int], tuple[int, ...]] = {}  # what an entry lists: the numbers of feeds here
        self._nodes: dict[Pointer, Node] = {}  # those that were read, the oldest first
        self._damaged: set[Pointer] = set()  # those that cannot be
        self._last: dict[int, tuple[int, int]] = {}  # of each feed: of so many records, the last readable one's seq
        self.authorized: set[int] = set()
        self.growing = Growing(lambda pointer: self.readable(pointer, keep=False))

    def add(self, key: bytes) -> int:
        """The number of the feed with this key, which is opened if it is not known yet."""
        number = self._numbers.get(key)
        if number is None:
            self.feeds.append(self._make_feed(key))
            number = self._numbers[key] = len(self.feeds) - 1
        return number

    def number_of(self, key: bytes) -> int | None:
        """The number of a feed; None where it is not known."""
        return self._numbers.get(key)

    def discover(self) -> None:
        """Open all feeds that those which are authorized list, and they are authorized too; so on from there."""
        todo, self.authorized = [0], set()
        while todo:
            number = todo.pop()
            if number in self.authorized:
                continue
            self.authorized.add(number)
            todo += self.listed(number)

    def listed(self, number: int) -> tuple[int, ...]:
        """The feeds that a feed lists, in its own order; none, if it has no entry yet."""
        last = self.last(number, len(self.feeds[number]))
        return last.feeds if last is not None else ()

    def listing(self, pointer: Pointer) -> int:
        """The seq of the entry that lists the feeds for this one. Raises FeedDamaged."""
        entry = self.entry(*pointer)
        return pointer.seq if entry.feeds is not None else entry.inflate

    def list_at(self, number: int, entry: Entry, seq: int) -> tuple[int, ...]:
        """The feeds that the clock of an entry is of, as numbers here. Raises FeedDamaged where none are listed."""
        listing = seq if entry.feeds is not None else entry.inflate
        found = self._lists.get((number, listing)) if listing <= seq else None
        if found is None:
            feeds = self.entry(number, listing).feeds if 0 < listing <= seq else None
            if feeds is None:
                raise self._broken(number, seq, f"the entry {listing}, at which its inflate points, lists no feeds")
            wrong = next((key for key in feeds if len(key) != KEY_BYTES), None)
            if wrong is not None or len(feeds) > FEEDS_MOST:
                what = f"{len(feeds):,} feeds, and at most {FEEDS_MOST:,} can be"
                what = what if wrong is None else f"the feed {wrong.hex()}, whose key is not {KEY_BYTES} bytes"
                raise self._broken(number, listing, f"it lists {what}")
            found = self._lists[number, listing] = tuple(map(self.add, feeds))
        return found

    def entry(self, number: int, seq: int, record: bytes | None = None) -> Entry:
        """An entry as it lies in its feed. Raises FeedDamaged."""
        try:
            return decode_entry(self.feeds[number].record(seq) if record is None else record)
        except DecodeError as error:
            raise self._broken(number, seq, error.reason) from error

    def node(self, pointer: Pointer) -> Node:
        """The node at a pointer. Raises FeedDamaged."""
        found = self._nodes.get(pointer)
        return self.keep(self.read(pointer)) if found is None else found

    def readable(self, pointer: Pointer, keep: bool = True, record: bytes | None = None) -> Node | None:
        """The node at a pointer; None where nobody can read one. record: its bytes, where they are at hand."""
        if pointer in self._damaged:
            return None
        try:
            return self.node(pointer) if keep else self.read(pointer, record)
        except FeedDamaged:
            if pointer.seq < len(self.feeds[pointer.feed]):  # else it may still come
                self._damaged.add(pointer)
            return None

    def damage(self, number: int) -> Iterator[FeedDamaged]:
        """What is wrong with the entries of a feed that are passed over, or whose tries are."""
        for seq in range(1, len(self.feeds[number])):
            try:
                self.read(Pointer(number, seq)).trie  # noqa: B018
            except FeedDamaged as error:
                yield error
            except DecodeError as error:
                yield self._broken(number, seq, error.reason)

    def last(self, number: int, length: int) -> Node | None:
        """The last of so many records of a feed that can be read."""
        known, seq = self._last.get(number, (0, 0))
        if length < known:
            known = seq = 0
        for place in range(length - 1, max(known, 1) - 1, -1):
            node = self.readable(Pointer(number, place))
            if node is not None:
                self._last[number] = length, place
                return node
        self._last[number] = length, seq
        return self.node(Pointer(number, seq)) if seq else None

    def keep(self, node: Node) -> Node:
        """Know a node without reading it again, for a while."""
        if len(self._nodes) >= _CACHED:
            for pointer in list(islice(self._nodes, _CACHED // 2)):
                del self._nodes[pointer]
        self._nodes[node.pointer] = node
        return node

    def read(self, pointer: Pointer, record: bytes | None = None) -> Node:
        """The same, read anew and not kept: what an index finds is seldom asked for twice."""
        number, seq = pointer
        entry = self.entry(number, seq, record)
        feeds = self.list_at(number, entry, seq)
        try:
            checked_size(entry.key)
        except InvalidKey as error:
            raise self._broken(number, seq, error.reason) from None
        if len(entry.clock) > len(feeds):
            raise self._broken(number, seq, f"its clock is of {len(entry.clock)} feeds, and {len(feeds)} are listed")
        clock = (seq + 1,) if number == 0 and feeds == (0,) else _clock(entry.clock, feeds, number, seq)
        return Node(entry.key, entry.value, entry.deleted, pointer, clock, entry.trie, feeds)

    def _broken(self, number: int, seq: int, reason: str) -> FeedDamaged:
        feed = self.feeds[number]
        return FeedDamaged(reason, feed=feed.key, seq=seq, path=feed.path)

    # --- how far it can be seen --------------------------------------------------------------------------------------

    def lengths(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """How many records of each feed count, if these feeds do: those that know only of records that are here."""
        here = [len(feed) for feed in self.feeds]
        lengths = [0] * len(here)
        for number in numbers:
            lengths[number] = self._counting(number, here)
        return tuple(lengths)

    def _counting(self, number: int, here: Sequence[int]) -> int:
        """How many of a feed's records do; its clocks only grow."""
        low, high = 1, here[number]
        if high < 2 or self._is_within(number, high, here):
            return high
        while low < high:  # the records below `low` are within
            middle = (low + high) // 2
            if self._is_within(number, middle + 1, here):
                low = middle + 1
            else:
                high = middle
        return low

    def _is_within(self, number: int, length: int, here: Sequence[int]) -> bool:
        """Whether the last of so many records knows of none beyond those that are here."""
        last = self.last(number, length)
        return last is None or all(known <= there for known, there in zip(last.clock, here, strict=False))


def _clock(lengths: Sequence[int], feeds: Sequence[int], number: int, seq: int) -> tuple[int, ...]:
    """How many records of each feed a writer knew, by its number here, from what its entry says."""
    clock = [0] * (max(number, *feeds) + 1)
    for feed, length in zip(feeds, lengths, strict=False):
        clock[feed] = length
    clock[number] = seq + 1  # of a single writer the clock may be empty
    return tuple(clock)
