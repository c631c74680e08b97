"""Which of some posts is the latest: by chains of links, then by timestamps, then by hashes.

Of two posts the one comes later that has a chain of links to the other, through posts that are known here; else the one
with the later timestamp; else the one with the greater hash. That is no order of many posts (a chain may go against
timestamps, and they against other chains), so the latest of many is, of those that no other one has a chain to, the one
that comes last by timestamp and hash. It follows from which posts are known, not from when they came.

Mostly each link leads to an earlier timestamp; one that does not (a clock was wrong, or somebody lies) is *skewed*. A
chain that goes from a post to one with a later timestamp must climb: each skewed link climbs over the span of time
between its two ends, and all of the way must be covered by such spans. So both posts, and all of the chain, are in one
span, where spans that meet are put together. Of a time in no span timestamps say all; else the posts of the span do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from jitdb.stores.cable.post import Post


class Known(NamedTuple):
    """A post that is here, and its bytes."""

    hash: bytes
    post: Post
    raw: bytes

    @property
    def moment(self) -> tuple[int, bytes]:
        """What orders posts where no chain does."""
        return self.post.timestamp, self.hash


class Latest(NamedTuple):
    """The latest of some posts.

    chain: the hashes of the posts that show that it is, where timestamps say otherwise
    """

    known: Known
    chain: tuple[bytes, ...] = ()


class Spans:
    """Spans of time that skewed links climb over, both ends included."""

    def __init__(self) -> None:
        self._first: list[int] = []  # ascending, and so are the ends
        self._last: list[int] = []

    def add(self, first: int, last: int) -> None:
        """Put a span to the others; those that it meets become one."""
        begin = bisect_right(self._first, first)
        if begin and self._last[begin - 1] >= first:
            begin -= 1
        stop = bisect_right(self._first, last)
        if begin < stop:
            first, last = min(first, self._first[begin]), max(last, self._last[stop - 1])
        self._first[begin:stop], self._last[begin:stop] = [first], [last]

    def holds(self, first: int, last: int) -> bool:
        """Whether one of them holds all of this span."""
        place = bisect_right(self._first, first) - 1
        return place >= 0 and last <= self._last[place]

    def since(self, time: int) -> int | None:
        """Where the span begins that a time is in; None where it is in none.

        >>> spans = Spans()
        >>> spans.add(5, 7), spans.add(7, 9), spans.since(8), spans.since(10)
        (None, None, 5, None)
        """
        place = bisect_right(self._first, time) - 1
        return self._first[place] if place >= 0 and time <= self._last[place] else None


def latest(posts: Iterable[Known], find: Callable[[bytes], Post | None], since: int) -> Latest | None:
    """The latest of these; None of none. Walks along all chains from them, through posts from a moment on."""
    candidates = {known.hash: known for known in posts}
    above: dict[bytes, bytes] = {}  # of each post that a chain leads to, the one before it in that chain
    waiting = [(link, known.hash) for known in candidates.values() for link in known.post.links]
    while waiting:
        link, by = waiting.pop()
        if link not in above:
            post = find(link)
            if post is not None and post.timestamp >= since:
                above[link] = by
                waiting += [(each, link) for each in post.links]
    free = [known for known in candidates.values() if known.hash not in above]
    if not free:
        return None
    found = max(free, key=lambda known: known.moment)
    later = [known.hash for known in candidates.values() if known.moment > found.moment]
    chain: dict[bytes, None] = {}
    for each in later:
        while each in above and above[each] not in chain:
            each = above[each]
            chain[each] = None
    return Latest(found, tuple(chain))
