"""The links that lead to a post that is not earlier by its timestamp, of a whole log: found by its indexes.

Which link leads where follows from hashes of 32 bits that the indexes of `hash` and `links` have, and when from the
column of `timestamp`: no record is read but those of links that seem skewed. These are few, of which some only share a
hash with a post.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jitdb.stores.cable.hashed import HashedLog
from jitdb.stores.cable.order import Spans
from jitdb.stores.cable.post import decode_post, hash_of


def skewed_links(posts: HashedLog) -> Iterator[tuple[int, int]]:
    """When each was made, and what it leads to; of those that lie within others, not all."""
    finder = posts.finder("hash")
    links, sources = posts.finder("links").pairs()
    hashes, targets = finder.pairs()
    columns = posts.current.columns(["timestamp"])
    times = np.zeros(len(finder.offsets), np.uint64)
    is_here = np.zeros(len(times), np.bool_)
    places = np.searchsorted(finder.offsets, columns.offsets)
    times[places], is_here[places] = columns.numbers[0].naturals()[0], True

    begins, ends = np.searchsorted(hashes, links, "left"), np.searchsorted(hashes, links, "right")
    counts = ends - begins  # of posts that a link may lead to: mostly one, or none
    sources = np.repeat(sources, counts)
    within = np.arange(len(sources)) - np.repeat(np.cumsum(counts) - counts, counts)
    targets = targets[np.repeat(begins, counts) + within]
    seem = is_here[sources] & is_here[targets] & (times[targets] >= times[sources])
    sources, targets = sources[seem], targets[seem]

    known = Spans()
    for place in np.argsort(times[sources] - times[targets], kind="stable").tolist():  # the longest first: modulo 2**64
        source, target = int(sources[place]), int(targets[place])
        first, last = int(times[source]), int(times[target])
        if known.holds(first, last):
            continue
        pair = [found.raw for found in posts.at([int(finder.offsets[each]) for each in (source, target)])]
        if len(pair) == 2 and hash_of(pair[1]) in decode_post(pair[0]).links:
            known.add(first, last)
            yield first, last
