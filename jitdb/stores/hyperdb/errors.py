"""What can go wrong with a HyperDB, beside what can go wrong with its logs."""

from __future__ import annotations

from jitdb.errors import JitdbError


class HyperdbError(JitdbError):
    """A HyperDB cannot do what it was asked."""


class InvalidKey(HyperdbError, ValueError):
    """No key: no Unicode text, or too long for an entry."""


class InvalidVersion(HyperdbError, ValueError):
    """No version of this database."""


class NotWritable(HyperdbError):
    """A checkout, or a database whose local feed has no secret key here."""


class Conflict(HyperdbError, LookupError):
    """Several writers gave a key values without knowing of each other's, where one value was asked for."""


class _OfFeed(HyperdbError):
    """Something about an entry of a feed.

    feed, seq: the public key of the feed and the entry in it
    """

    def __init__(self, reason: str, *, feed: bytes = b"", seq: int = -1, **said: object) -> None:
        where = f"entry {seq} of the feed {feed.hex()[:16]}…: " if feed else ""
        super().__init__(where + reason, **said)  # type: ignore[arg-type]
        self.feed = feed
        self.seq = seq


class FeedDamaged(_OfFeed):
    """An entry of a feed breaks a rule: its bytes, its clock, or a pointer of its trie."""


class NotAuthentic(_OfFeed):
    """Entries that arrived are not those that the feed's key signed; seq: the first that is not, or their end."""


class ReplicationFailed(_OfFeed):
    """The other side of a replication breaks the protocol, or went away; feed is empty where it is of none."""
