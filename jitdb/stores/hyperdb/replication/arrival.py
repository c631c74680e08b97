"""What is looked at in records that another database sent, before any of them is kept, beside whose they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from jitdb.errors import DecodeError
from jitdb.stores.hyperdb.codec import is_header
from jitdb.stores.hyperdb.errors import FeedDamaged, InvalidKey, NotAuthentic, ReplicationFailed
from jitdb.stores.hyperdb.feed import Feed
from jitdb.stores.hyperdb.format.entry import Entry, decode_entry
from jitdb.stores.hyperdb.format.path import checked_size
from jitdb.stores.hyperdb.format.trie import decode_trie
from jitdb.stores.hyperdb.graph import FEEDS_MOST
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES

_MOST: Final = 2**53  # entries of a feed: what the numbers of JavaScript tell apart


class Arrival:
    """Records of one feed, in order, each held against those before it.

    key:   of the feed
    start: the seq of the first of them
    entry: an entry of the feed that is here already
    """

    def __init__(self, key: bytes, start: int, entry: Callable[[int], Entry]) -> None:
        self._key, self._start, self._entry = key, start, entry
        self._fresh: list[Entry | None] = []
        self._known: dict[bytes, int] = {}  # the feeds that the entry before lists, and how much it knew of each
        if start > 1:
            before = entry(start - 1)
            self._known = self._knows(start - 1, before, self._listed(start - 1, before))

    def check(self, records: Sequence[bytes]) -> list[str | None]:
        """The keys of the entries among them. Raises FeedDamaged for the first that breaks a rule."""
        for seq, record in enumerate(records, self._start):
            self._fresh.append(self._checked(seq, record))
        return [None if entry is None else entry.key for entry in self._fresh]

    def _checked(self, seq: int, record: bytes) -> Entry | None:
        if seq == 0:
            if not is_header(record):
                raise self._damaged(seq, "a feed begins with the header of HyperDB, and this is none")
            return None
        try:
            entry = decode_entry(record)
            checked_size(entry.key)
            feeds = self._listed(seq, entry)
            decode_trie(entry.trie, range(len(feeds)))
        except (DecodeError, InvalidKey) as error:
            raise self._damaged(seq, error.reason) from error
        knows = self._knows(seq, entry, feeds)
        self._check_growth(seq, knows)
        self._known = knows
        return entry

    def _knows(self, seq: int, entry: Entry, feeds: tuple[bytes, ...]) -> dict[bytes, int]:
        """The feeds that an entry lists, and how much it knows of each by its clock; of its own, itself."""
        if len(entry.clock) > len(feeds):
            raise self._damaged(seq, f"its clock is of {len(entry.clock)} feeds, and {len(feeds)} are listed")
        knows = dict.fromkeys(feeds, 0) | dict(zip(feeds, entry.clock, strict=False))
        for feed, length in knows.items():
            if length > (seq + 1 if feed == self._key else _MOST):
                raise self._damaged(seq, f"its clock knows {length} records of {_named(feed)}, which cannot be")
        if self._key in knows:
            knows[self._key] = seq + 1
        return knows

    def _check_growth(self, seq: int, knows: dict[bytes, int]) -> None:
        """What a writer knew once it knows, and whom it authorized stays authorized."""
        for feed, before in self._known.items():
            now = knows.get(feed)
            if now is None:
                raise self._damaged(seq, f"it does not list {_named(feed)}, and the entry before it does")
            if now < before:
                raise self._damaged(
                    seq, f"its clock knows {now} records of {_named(feed)}, and that of the entry before it {before}"
                )

    def _listed(self, seq: int, entry: Entry) -> tuple[bytes, ...]:
        """The feeds that an entry's numbers are of."""
        listing = entry if entry.feeds is not None else self._at(entry.inflate) if 0 < entry.inflate < seq else None
        if listing is None or listing.feeds is None or (listing is entry and entry.inflate not in (-1, seq)):
            raise self._damaged(seq, f"the entry {entry.inflate}, at which its inflate points, lists no feeds for it")
        if len(listing.feeds) > FEEDS_MOST or any(len(feed) != KEY_BYTES for feed in listing.feeds):
            raise self._damaged(
                seq, f"it lists more than {FEEDS_MOST:,} feeds, or one whose key has not {KEY_BYTES} bytes"
            )
        return listing.feeds

    def _at(self, seq: int) -> Entry | None:
        return self._entry(seq) if seq < self._start else self._fresh[seq - self._start]

    def _damaged(self, seq: int, reason: str) -> FeedDamaged:
        return FeedDamaged(reason, feed=self._key, seq=seq)


def _named(feed: bytes) -> str:
    return f"the feed {feed.hex()[:16]}…"


def not_yet_here(feed: Feed, start: int, records: Sequence[bytes]) -> Sequence[bytes]:
    """Those of the records, the first of which is `start`, that follow on what the feed has.

    Raises ReplicationFailed where they do not follow, NotAuthentic where one differs from that which is here.
    """
    length = len(feed)
    if not 0 <= start <= length:
        raise ReplicationFailed(f"{length} records are here, and these do not follow on them", feed=feed.key, seq=start)
    for seq, record in enumerate(records[: length - start], start):
        if feed.record(seq) != record:
            raise NotAuthentic("another one is here already", feed=feed.key, seq=seq)
    return records[length - start :]
