"""The views of a cable store: questions to the indexes of its posts and of its ledger.

Nothing here is kept: what a view says is asked for when it is asked for. Two things are remembered, which questions
would otherwise find anew each time: names of channels, and whether some link goes against timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from jitdb.operators import absent, and_, equal, field, not_, or_
from jitdb.stores.cable.codec import CableCodec, info_of
from jitdb.stores.cable.hashed import Found, HashedLog
from jitdb.stores.cable.ledger import Ledger
from jitdb.stores.cable.order import Known, Skew, latest
from jitdb.stores.cable.post import INFO, JOIN, LEAVE, TEXT, TOPIC, Post, decode_post, hash_of

# Parts of the state of a channel: a topic, or what is somebody's, and the hash of the post.
Parts: TypeAlias = dict[tuple[str, bytes], bytes]

_PAGE: Final = 1000  # posts that are looked at together for values that were not seen yet
_CODEC: Final = CableCodec()


class Views:
    """What the posts and the ledger say, now."""

    def __init__(self, posts: HashedLog, ledger: Ledger) -> None:
        self._posts = posts
        self._ledger = ledger
        self._skew: Skew | None = None
        self._channels: set[str] | None = None

    # --- posts by hash -----------------------------------------------------------------------------------------------

    def get(self, post: bytes) -> bytes | None:
        """The bytes of a post; None where it is not here."""
        found = self._place(post)
        return None if found is None else found.raw

    def _place(self, post: bytes) -> Found | None:
        return next((found for found in self._posts.candidates(post) if hash_of(found.raw) == post), None)

    def find(self, post: bytes) -> Post | None:
        """What a post says."""
        raw = self.get(post)
        return None if raw is None else decode_post(raw)

    def hashes(self) -> list[bytes]:
        """Of all posts, in the order in which they came."""
        return [hash_of(found.raw) for found in self._posts.ask(None)]

    def deleted(self) -> list[bytes]:
        """The hashes of what was deleted, and is not taken any more, in order."""
        return sorted({note["hash"] for note in self._ledger.graves()})

    def links_to(self, post: bytes) -> list[bytes]:
        """The hashes of the posts that link to one, the newest first."""
        return newest_first(self._known(field("links").includes(post)))

    # --- chat --------------------------------------------------------------------------------------------------------

    def messages(self, channel: str, start: int = 0, end: int = 0, limit: int = 0) -> list[bytes]:
        """The hashes of the texts of a channel, and of the deletes that concern it, the newest first.

        start, end: milliseconds; from `start` on, before `end`; 0: without end
        limit:      the most; 0: all
        """
        times = [field("timestamp") >= start, *([field("timestamp") < end] if end else [])]
        texts = self._newest(and_(equal("channel", channel), equal("post_type", TEXT), *times), limit)
        found = {known.hash: known.moment for known in texts}
        for note in self._graves_in(channel, times):
            if note["delete"] not in found and self._place(note["delete"]):
                found[note["delete"]] = (note["timestamp"], note["delete"])
        ordered = sorted(found, key=found.__getitem__, reverse=True)
        return ordered[:limit] if limit else ordered

    def _graves_in(self, channel: str, times: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """The notes of deletions that concern a channel.

        An information is in no channel itself: it concerns those that its author has written to.
        """
        yield from self._ledger.graves(equal("channel", channel), *times)
        for note in self._ledger.graves(equal("post_type", INFO), *times):
            if self._wrote_to(note["author"], channel):
                yield note

    def _wrote_to(self, author: bytes, channel: str) -> bool:
        here = and_(equal("channel", channel), equal("public_key", author))
        grave = and_(equal("channel", channel), equal("author", author))
        return bool(self._posts.first(here, 1)) or any(True for _ in self._ledger.graves(grave))

    def concerns(self, delete: bytes) -> set[str]:
        """The channels that a delete concerns, by its hash."""
        graves = list(self._ledger.graves(equal("delete", delete)))
        found = {note["channel"] for note in graves if note["channel"]}
        authors = {note["author"] for note in graves if note["post_type"] == INFO}
        return found | {channel for channel in self.channels() for author in authors if self._wrote_to(author, channel)}

    def deletes_of(self, post: bytes, start: int = 0) -> list[bytes]:
        """The hashes of the deletes from a moment on that deleted a post."""
        graves = (note for note in self._ledger.notes(post) if note["kind"] == "deleted")
        return [note["delete"] for note in graves if note["timestamp"] >= start]

    # --- the state of a channel --------------------------------------------------------------------------------------

    def topic_post(self, channel: str) -> bytes | None:
        """The hash of the latest topic of a channel."""
        return _hash(self._latest(and_(equal("channel", channel), equal("post_type", TOPIC))))

    def topic(self, channel: str) -> str:
        """What a channel is about; empty where nobody says."""
        found = self._latest(and_(equal("channel", channel), equal("post_type", TOPIC)))
        return "" if found is None else found.post.topic

    def authors(self, channel: str) -> list[bytes]:
        """The keys of all who wrote to a channel what is still there, in order."""
        return sorted(self._distinct("public_key", equal("channel", channel)))

    def members(self, channel: str) -> list[bytes]:
        """The keys of those who joined a channel, or wrote to it, and did not leave it since, in order."""
        return [author for author in self.authors(channel) if self.is_member(author, channel)]

    def is_member(self, author: bytes, channel: str) -> bool:
        """Whether the latest that somebody wrote to a channel is something else than that they leave it."""
        found = self._latest(and_(equal("channel", channel), equal("public_key", author)))
        return found is not None and found.post.post_type != LEAVE

    def joined(self, author: bytes) -> list[str]:
        """The names of the channels that somebody is a member of, in order."""
        written = self._distinct("channel", and_(equal("public_key", author), not_(absent("channel"))))
        return sorted(channel for channel in written if self.is_member(author, channel))

    def state(self, channel: str) -> list[bytes]:
        """The hashes of what a channel is: its latest topic, the latest join or leave of each, members' information."""
        return list(self.parts(channel).values())

    def parts(self, channel: str) -> Parts:
        """The same, by what each is."""
        found = self.topic_part(channel)
        for author in self.authors(channel):
            found |= self.parts_of(author, channel)
        return found

    def topic_part(self, channel: str) -> Parts:
        """Of the state of a channel its topic."""
        return _present({("topic", b""): self.topic_post(channel)})

    def parts_of(self, author: bytes, channel: str) -> Parts:
        """Of the state of a channel what somebody's part is."""
        info = self.info_post(author) if self.is_member(author, channel) else None
        return _present({("move", author): self.move(author, channel), ("info", author): info})

    def move(self, author: bytes, channel: str) -> bytes | None:
        """The hash of the latest join or leave of somebody in a channel."""
        by = and_(equal("channel", channel), equal("public_key", author))
        return _hash(self._latest(and_(by, or_(equal("post_type", JOIN), equal("post_type", LEAVE)))))

    def history(self, channel: str) -> list[bytes]:
        """The hashes of all that a channel was: topics, joins, leaves, and what its authors said of themselves."""
        kinds = or_(equal("post_type", TOPIC), equal("post_type", JOIN), equal("post_type", LEAVE))
        found = list(self._known(and_(equal("channel", channel), kinds)))
        for author in self.authors(channel):
            found += self._known(and_(equal("public_key", author), equal("post_type", INFO)))
        return newest_first(found)

    def channels(self) -> list[str]:
        """The names of all channels that were written to, in order."""
        if self._channels is None:
            written = self._distinct("channel", not_(absent("channel")))
            self._channels = {*written, *(note["channel"] for note in self._ledger.graves() if note["channel"])}
        return sorted(self._channels)

    # --- authors -----------------------------------------------------------------------------------------------------

    def info_post(self, author: bytes) -> bytes | None:
        """The hash of the latest that somebody said of themselves."""
        return _hash(self._latest(and_(equal("public_key", author), equal("post_type", INFO))))

    def info(self, author: bytes) -> dict[str, Any]:
        """What somebody said of themselves; all of it stands in the latest such post."""
        found = self._latest(and_(equal("public_key", author), equal("post_type", INFO)))
        return {} if found is None else info_of(found.post)

    def by(self, author: bytes, post_type: int | None = None) -> list[bytes]:
        """The hashes of what somebody wrote, of one type or of all, the newest first."""
        kind = () if post_type is None else (equal("post_type", post_type),)
        return newest_first(self._known(and_(equal("public_key", author), *kind)))

    # --- questions ---------------------------------------------------------------------------------------------------

    def _note(self, known: Known, *, is_stored: bool) -> None:
        """Take notice of a post that came, in what is remembered."""
        if self._channels is not None and known.post.channel:
            self._channels.add(known.post.channel)
        if self._skew is not None and is_stored:
            self._skew.note(known)

    def _known(self, operation: Any) -> Iterator[Known]:
        return (Known(hash_of(found.raw), decode_post(found.raw)) for found in self._posts.ask(operation))

    def _newest(self, operation: Any, limit: int) -> list[Known]:
        """At least so many of the newest that match, where there are; 0: all. Of equal timestamps all are there."""
        if not limit:
            return list(self._known(operation))
        found = [Known(hash_of(each.raw), decode_post(each.raw)) for each in self._posts.first(operation, limit)]
        if len(found) < limit:
            return found
        last = found[-1].post.timestamp
        ties = self._known(and_(operation, field("timestamp") >= last, field("timestamp") <= last))
        return [*(known for known in found if known.post.timestamp > last), *ties]

    def _latest(self, operation: Any) -> Known | None:
        if self._is_skewed():
            return latest(self._known(operation), self.find)
        return max(self._newest(operation, 1), key=lambda known: known.moment, default=None)

    def _is_skewed(self) -> bool:
        if self._skew is None:
            skew = Skew(self.find)
            for known in self._known(not_(equal("links", []))):
                skew.note(known)
            self._skew = skew
        return self._skew.is_there

    def _distinct(self, name: str, operation: Any) -> list[Any]:
        """All values of a field in what matches."""
        known: list[Any] = []
        while True:
            others = [not_(or_(*(equal(name, value) for value in known)))] if known else []
            page = [_CODEC.decode(found.raw)[name] for found in self._posts.first(and_(operation, *others), _PAGE)]
            known += set(page)
            if len(page) < _PAGE:
                return known


def newest_first(posts: Iterable[Known]) -> list[bytes]:
    """Their hashes, by timestamp, then by hash."""
    return [known.hash for known in sorted(posts, key=lambda known: known.moment, reverse=True)]


def _hash(known: Known | None) -> bytes | None:
    return None if known is None else known.hash


def _present(parts: dict[tuple[str, bytes], bytes | None]) -> Parts:
    return {name: post for name, post in parts.items() if post is not None}
