"""Which of some posts is the latest: by chains of links, then by timestamps, then by hashes.

Of two posts the one comes later that has a chain of links to the other, through posts that are known here; else the one
with the later timestamp; else the one with the greater hash. That is no order of many posts (a chain may go against
timestamps, and they against other chains), so the latest of many is, of those that no other one has a chain to, the one
that comes last by timestamp and hash. It follows from which posts are known, not from when they came.

Mostly each link leads to an earlier timestamp. As long as all do, no chain goes against timestamps, and nobody need
walk along chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jitdb.stores.cable.post import Post


class Known(NamedTuple):
    """A post that is here."""

    hash: bytes
    post: Post

    @property
    def moment(self) -> tuple[int, bytes]:
        """What orders posts where no chain does."""
        return self.post.timestamp, self.hash


class Skew:
    """Whether some link leads to a post that is not earlier by its timestamp; `is_there` says so.

    find: a post by its hash, None where it is not here
    """

    def __init__(self, find: Callable[[bytes], Post | None]) -> None:
        self._find = find
        self._awaited: dict[bytes, int] = {}  # the earliest that links to it, of posts that were not here
        self.is_there = False

    def note(self, known: Known) -> None:
        """Take notice of a post that came."""
        time = known.post.timestamp
        for link in known.post.links:
            target = self._find(link)
            if target is None:
                self._awaited[link] = min(time, self._awaited.get(link, time))
            elif target.timestamp >= time:
                self.is_there = True
        if self._awaited.pop(known.hash, time + 1) <= time:
            self.is_there = True


def latest(posts: Iterable[Known], find: Callable[[bytes], Post | None]) -> Known | None:
    """The latest of these; None of none. Takes as long as it takes to walk along all chains from them."""
    candidates = {known.hash: known for known in posts}
    if len(candidates) > 1:
        waiting = [link for known in candidates.values() for link in known.post.links]
        seen: set[bytes] = set()
        while waiting:
            link = waiting.pop()
            if link not in seen:
                seen.add(link)
                post = find(link)
                waiting += post.links if post else ()
        candidates = {key: known for key, known in candidates.items() if key not in seen}
    return max(candidates.values(), key=lambda known: known.moment, default=None)
