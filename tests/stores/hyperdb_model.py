"""What databases of several writers are to answer, from a plain list of what was written: slow, and obvious.

An entry knows a set of others. Nothing here has a clock, a trie, an index, or a feed as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from feed_records import segments_in

from jitdb.stores.hyperdb.format.path import path_digits

Name: TypeAlias = tuple[int, int]  # of an entry: its writer, and its place in that one's feed
Found: TypeAlias = list[tuple[str, list[Name]]]  # keys, and the entries of each


class Written(NamedTuple):
    """An entry. `lists`: the writers that its writer had heard of."""

    name: Name
    key: str
    value: bytes | None
    deleted: bool
    knows: frozenset[Name]
    lists: frozenset[int]


class State:
    """What somebody sees: a set of entries."""

    def __init__(self, entries: Iterable[Written]) -> None:
        self.entries = {entry.name: entry for entry in entries}

    def newest(self, names: Iterable[Name]) -> list[Name]:
        """Those of some entries that no other one of them knows."""
        some = set(names)
        known = {each for name in some for each in self.entries[name].knows}
        return sorted(some - known)

    def of_key(self, key: str) -> list[Name]:
        return [name for name, entry in self.entries.items() if entry.key == key]

    def get(self, key: str, deletes: bool = False) -> list[Name]:
        found = self.newest(self.of_key(key))
        return found if deletes or not all(self.entries[name].deleted for name in found) else []

    def heads(self) -> list[Name]:
        return self.newest(self.entries)

    def list(self, prefix: str, gt: bool = False, reverse: bool = False, deletes: bool = False) -> Found:
        keys = {entry.key for entry in self.entries.values() if is_under(entry.key, prefix, gt)}
        ordered = sorted(keys, key=lambda key: (path_digits(key)[:-1], key), reverse=reverse)
        return [(key, found) for key in ordered if (found := self.get(key, deletes))]

    def folders(self, prefix: str, gt: bool = False, deletes: bool = False) -> list[tuple[Name, ...]]:
        """Of each segment below a prefix, the newest; of each key at the prefix itself, too."""
        depth = len(segments_in(prefix)) + 1
        folders: dict[tuple[str, ...], list[Name]] = {}
        for key, found in self.list(prefix, gt=gt, deletes=deletes):
            some = [name for name in found if deletes or not self.entries[name].deleted]
            segments = tuple(segments_in(key)[:depth])
            folders.setdefault(segments if len(segments) == depth else (*segments, "", key), []).extend(some)
        return [tuple(self.newest(names)) for names in folders.values()]

    def key_history(self, key: str) -> list[list[Name]]:
        left, found = set(self.of_key(key)), []
        while left:
            found.append(self.newest(left))
            left -= set(found[-1])
        return found

    def diff(self, other: State, prefix: str) -> set[tuple[str, tuple[Name, ...], tuple[Name, ...]]]:
        ours, theirs = dict(self.list(prefix)), dict(other.list(prefix))
        sides = {(key, tuple(ours.get(key, ())), tuple(theirs.get(key, ()))) for key in ours.keys() | theirs.keys()}
        return {(key, left, right) for key, left, right in sides if left != right}


def is_under(key: str, prefix: str, gt: bool = False) -> bool:
    """Whole segments, and the text; at the root no key is the prefix."""
    count, segments = len(segments_in(prefix)), segments_in(key)
    below = len(segments) > count if gt or not count else True
    return below and segments[:count] == segments_in(prefix) and key.startswith(prefix)


class Replica:
    """One writer's copy: how much of each feed is here, and whom it has heard of. The source is writer 0."""

    def __init__(self, writer: int) -> None:
        self.writer = writer
        self.feeds: dict[int, list[Written]] = {0: [], writer: []}

    def authorized(self) -> set[int]:
        """The source, whom it lists, whom those list; and so on."""
        todo, found = [0], set[int]()
        while todo:
            writer = todo.pop()
            if writer not in found:
                found.add(writer)
                todo += [listed for entry in self.feeds.get(writer, [])[-1:] for listed in entry.lists]
        return found

    def state(self) -> State:
        counted = {entry for writer in self.authorized() | {self.writer} for entry in self.feeds[writer]}
        here = {entry.name for feed in self.feeds.values() for entry in feed}
        assert all(entry.knows <= here for entry in counted), "replication leaves holes"
        return State(counted)

    def write(self, operations: Iterable[tuple[str, bytes | None, bool]]) -> None:
        knows = frozenset(self.state().entries)
        feed = self.feeds[self.writer]
        for key, value, deleted in operations:
            name = (self.writer, len(feed) + 1)
            feed.append(Written(name, key, value, deleted, knows, frozenset(self.feeds)))
            knows |= {name}

    def authorize(self, writer: int) -> None:
        self.feeds.setdefault(writer, [])
        self.write([("", None, False)])

    def replicate(self, other: Replica) -> None:
        while self.pull(other) | other.pull(self):
            pass

    def pull(self, other: Replica) -> bool:
        """Take the feeds that count there and are known of here."""
        got = False
        for writer in other.authorized() & self.feeds.keys():
            theirs = other.feeds[writer]
            if len(theirs) > len(self.feeds[writer]):
                self.feeds[writer] = list(theirs)
                got = True
        for writer in self.authorized():
            self.feeds.setdefault(writer, [])
        return got
