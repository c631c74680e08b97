"""The views of a cable store: questions to the indexes of its posts and of its ledger.

Nothing here is kept: what a view says is asked for when it is asked for. One thing is remembered, which questions would
otherwise find anew each time: which spans of time links lead against (order.py).
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.common.arguments import whole_number
from jitdb.common.values import UNDEFINED
from jitdb.common.words import shown
from jitdb.operators import absent, and_, equal, field, not_, or_
from jitdb.stores.cable.codec import info_of
from jitdb.stores.cable.errors import CableError
from jitdb.stores.cable.hashed import Found, HashedLog
from jitdb.stores.cable.ledger import DELETED, Ledger, Note, named
from jitdb.stores.cable.order import Known, Latest, Spans, latest
from jitdb.stores.cable.post import (
    INFO,
    JOIN,
    KEY_BYTES,
    LEAVE,
    TEXT,
    TOPIC,
    Post,
    decode_post,
    hash_of,
    timestamp_of,
)
from jitdb.stores.cable.skew import skewed_links
from jitdb.stores.cable.wire import HASH_BYTES

# Parts of the state of a channel: a topic, what is somebody's, or a post of a chain; and the hash of the post.
Parts: TypeAlias = dict[tuple[str, bytes], bytes]
Moment: TypeAlias = tuple[int, bytes]  # a timestamp, and a hash

_AT_ONCE: Final = 1 << 12  # posts that are read together, where all are wanted
_TIES: Final = 2  # and where one is, which others may share its time with


class Membership(NamedTuple):
    """Who is a member of a channel, or which channels somebody is a member of.

    present: in order
    moves:   the latest join or leave of each, also of those who left
    newest:  the latest that each wrote there at all; of those alone who may have left
    """

    present: list[Any]
    moves: dict[Any, Latest]
    newest: dict[Any, Latest]


class Views:
    """What the posts and the ledger say, now."""

    def __init__(self, posts: HashedLog, ledger: Ledger) -> None:
        self._posts = posts
        self._ledger = ledger
        self._spans: Spans | None = None

    # --- posts by hash -----------------------------------------------------------------------------------------------

    def get(self, post: bytes) -> bytes | None:
        """The bytes of a post; None where it is not here."""
        found = self._place(checked_hash(post))
        return None if found is None else found.raw

    def _place(self, post: bytes) -> Found | None:
        return next((found for found in self._posts.candidates(post) if hash_of(found.raw) == post), None)

    def find(self, post: bytes) -> Post | None:
        """What a post says."""
        raw = self.get(post)
        return None if raw is None else decode_post(raw)

    def hashes(self) -> list[bytes]:
        """Of all posts, in the order in which they came."""
        return [hash_of(found.raw) for found in self._posts.ask()]

    def deleted(self) -> list[bytes]:
        """The hashes of what was deleted, and is not taken any more, in order."""
        return sorted({note["hash"] for note in self._ledger.graves()})

    def links_to(self, post: bytes) -> list[bytes]:
        """The hashes of the posts that link to one, the newest first."""
        return newest_first(known for known in self._naming(checked_hash(post), "links") if post in known.post.links)

    def _naming(self, post: bytes, name: str) -> Iterator[Known]:
        """The posts that may name this one in such a list."""
        return map(known_of, self._posts.candidates(post, name))

    # --- chat --------------------------------------------------------------------------------------------------------

    def messages(self, channel: str, start: int = 0, end: int = 0, limit: int = 0) -> list[bytes]:
        """The hashes of the texts of a channel, and of the deletes that concern it, the newest first.

        start, end: milliseconds; from `start` on, before `end`; 0: without end
        limit:      the most; 0: all
        """
        limit = whole_number("a limit is a number of posts; 0: all", limit, 0, CableError)
        times = [field("timestamp") >= start, *([field("timestamp") < end] if end else [])]
        at_once = min(limit + 1, _AT_ONCE) if limit else _AT_ONCE  # one more tells whether it is of the same time
        texts = self._texts(and_(_in(channel), named("post_type", TEXT), *times), at_once)
        moments = heapq.merge(texts, self._deletes_in(channel, times, at_once), reverse=True)
        return [post for _, post in islice(moments, min(limit, sys.maxsize) if limit else None)]

    def _texts(self, operation: Any, at_once: int) -> Iterator[Moment]:
        """When the posts that match were made, and their hashes, the newest first."""
        found = ((timestamp_of(each.raw), each.raw) for each in self._posts.newest(operation, at_once))
        for time, same in groupby(found, key=lambda pair: pair[0]):
            yield from ((time, post) for post in sorted((hash_of(raw) for _, raw in same), reverse=True))

    def _deletes_in(self, channel: str, times: list[Any], at_once: int) -> Iterator[Moment]:
        """The deletes that are here and concern a channel, the newest first.

        An information is in no channel itself: it belongs to those in which its author has posts now.
        """
        concerned = or_(_in(channel), named("post_type", INFO))
        notes = self._ledger.newest(and_(DELETED, concerned, *times), at_once)
        authors = cache(lambda: frozenset(self.authors(channel)))
        for time, same in groupby(notes, key=lambda note: note["timestamp"]):
            deletes = {note["delete"] for note in same if note["channel"] or note["author"] in authors()}
            yield from ((time, delete) for delete in sorted(deletes, reverse=True) if self._place(delete))

    def concerns(self, delete: bytes) -> set[str]:
        """The channels that a delete concerns, by its hash."""
        return self._concerned(self._ledger.graves(equal("delete", checked_hash(delete))))

    def newly_concerns(self, delete: bytes, post: bytes) -> set[str]:
        """Those that it concerns because of this post alone, of all that it deleted."""
        graves = list(self._ledger.graves(equal("delete", delete)))
        others = self._concerned(note for note in graves if note["hash"] != post)
        return self._concerned(note for note in graves if note["hash"] == post) - others

    def _concerned(self, graves: Iterable[Note]) -> set[str]:
        found = {(note["channel"], note["author"]) for note in graves}
        channels = {channel for channel, _ in found if channel}
        authors = [_by(author) for channel, author in found if not channel]  # of information
        return channels | set(self._posts.current.distinct("channel", or_(*authors)) if authors else ()) - {None}

    def deletes_of(self, post: bytes, start: int = 0) -> list[bytes]:
        """The hashes of the deletes from a moment on that deleted a post."""
        graves = self._ledger.deletions(checked_hash(post))
        return list(dict.fromkeys(note["delete"] for note in graves if note["timestamp"] >= start))

    def deletes_of_infos(self, author: bytes, start: int = 0) -> list[bytes]:
        """The hashes of the deletes from a moment on that deleted what somebody said of themselves."""
        infos = and_(named("post_type", INFO), equal("author", checked_key(author)), field("timestamp") >= start)
        return list(dict.fromkeys(note["delete"] for note in self._ledger.graves(infos)))

    # --- the state of a channel --------------------------------------------------------------------------------------

    def topic_post(self, channel: str) -> bytes | None:
        """The hash of the latest topic of a channel."""
        return _hash(self._latest(and_(_in(channel), named("post_type", TOPIC))))

    def topic(self, channel: str) -> str:
        """What a channel is about; empty where nobody says."""
        found = self._latest(and_(_in(channel), named("post_type", TOPIC)))
        return "" if found is None else found.known.post.topic

    def authors(self, channel: str) -> list[bytes]:
        """The keys of all who wrote to a channel what is still there, in order."""
        return sorted(self._posts.current.distinct("public_key", _in(channel)))

    def members(self, channel: str) -> list[bytes]:
        """The keys of those who joined a channel, or wrote to it, and did not leave it since, in order."""
        return self._membership("public_key", _in(channel)).present

    def is_member(self, author: bytes, channel: str) -> bool:
        """Whether somebody joined a channel, or wrote to it, and did not leave it since."""
        return bool(self._membership("public_key", and_(_in(channel), _by(author))).present)

    def joined(self, author: bytes) -> list[str]:
        """The names of the channels that somebody is a member of, in order."""
        return self._membership("channel", and_(_by(author), not_(absent("channel")))).present

    def _membership(self, name: str, operation: Any) -> Membership:
        """Who is a member: whoever has posts in a channel, unless the latest of these is a leave.

        name:      what tells members from each other: the author of posts in one channel, or the channel of an author's
        operation: the posts of that channel, or of that author
        """
        moves = self._latest_of_each(name, and_(operation, _MOVES))
        since: dict[Any, int] = {}  # of those who may have left: from when on their posts say whether they did
        for value, found in moves.items():
            post = found.known.post
            begin = self._known_spans().since(post.timestamp)
            if post.post_type == LEAVE or begin is not None:  # else links say nothing against the latest join
                since[value] = post.timestamp if begin is None else begin
        newest: dict[Any, Latest] = {}
        if since:
            theirs = or_(*(named(name, value) for value in since))
            newest = self._latest_of_each(name, and_(operation, theirs, field("timestamp") >= min(since.values())))
        gone = {value for value, found in newest.items() if found.known.post.post_type == LEAVE}
        present = sorted(set(self._posts.current.distinct(name, operation)) - gone)
        return Membership(present, moves, newest)

    def state(self, channel: str) -> list[bytes]:
        """The hashes of what a channel is: its latest topic, the latest join or leave of each, members' information."""
        return [post for (what, _), post in self.parts(channel).items() if what != "chain"]

    def parts(self, channel: str) -> Parts:
        """The same, by what each is, and the posts that say so where timestamps do not."""
        return self.topic_part(channel) | self._parts_of_authors(channel)

    def topic_part(self, channel: str) -> Parts:
        """Of the state of a channel its topic."""
        return _part("topic", b"", self._latest(and_(_in(channel), named("post_type", TOPIC))))

    def parts_of(self, author: bytes, channel: str) -> Parts:
        """Of the state of a channel what somebody's part is."""
        return self._parts_of_authors(channel, _by(author))

    def _parts_of_authors(self, channel: str, *whose: Any) -> Parts:
        present, moves, newest = self._membership("public_key", and_(_in(channel), *whose))
        infos = self._latest_of_each("public_key", and_(named("post_type", INFO), *whose))
        found: Parts = {}
        for author in sorted(moves):
            found |= _part("move", author, moves[author])
            found |= _why(moves[author], newest.get(author))
        for author in present:
            found |= _part("info", author, infos.get(author))
        return found

    def history(self, channel: str) -> list[bytes]:
        """The hashes of all that a channel was: topics, joins, leaves, and what its authors said of themselves."""
        here = and_(_in(channel), or_(named("post_type", TOPIC), _MOVES))
        infos = [and_(named("post_type", INFO), _by(author)) for author in self.authors(channel)]
        return newest_first(self._all(or_(here, *infos)))

    def channels(self) -> list[str]:
        """The names of all channels that were written to, in order."""
        deleted = self._ledger.log.current.distinct("channel", DELETED)
        return sorted({*self._posts.current.distinct("channel"), *deleted} - {None})

    # --- authors -----------------------------------------------------------------------------------------------------

    def info_post(self, author: bytes) -> bytes | None:
        """The hash of the latest that somebody said of themselves."""
        return _hash(self._latest(_info_by(author)))

    def info(self, author: bytes) -> dict[str, Any]:
        """What somebody said of themselves; all of it stands in the latest such post."""
        found = self._latest(_info_by(author))
        return {} if found is None else info_of(found.known.post)

    def by(self, author: bytes, post_type: int | None = None) -> list[bytes]:
        """The hashes of what somebody wrote, of one type or of all, the newest first."""
        kind = () if post_type is None else (named("post_type", post_type),)
        return [post for _, post in self._texts(and_(_by(author), *kind), _AT_ONCE)]

    # --- the latest --------------------------------------------------------------------------------------------------

    def _all(self, operation: Any) -> Iterator[Known]:
        return map(known_of, self._posts.ask(operation))

    def _latest(self, operation: Any) -> Latest | None:
        """The latest of the posts that match."""
        newest = self._posts.newest(operation, _TIES)
        first = next(newest, None)
        if first is None:
            return None
        time, found = timestamp_of(first.raw), [known_of(first)]
        since = self._known_spans().since(time)
        if since is not None:
            return latest(self._all(and_(operation, field("timestamp") >= since)), self.find, since)
        for other in newest:
            if timestamp_of(other.raw) < time:
                break
            found.append(known_of(other))
        return Latest(max(found, key=lambda known: known.moment))

    def _latest_of_each(self, name: str, operation: Any) -> dict[Any, Latest]:
        """The latest of the posts that match, for each value of a field; by one question."""
        spans, columns = self._known_spans(), self._posts.current.columns(["timestamp"], [name], where=operation)
        (codes, values), (times, _) = columns.values[0], columns.numbers[0].naturals()
        order = np.lexsort((times, codes))
        codes, times = codes[order], times[order]
        ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)) if len(codes) else np.empty(0, np.intp)
        newest = np.repeat(times[ends], np.diff(ends, prepend=-1))  # of all with the same value
        ties = np.flatnonzero(times == newest)
        found: dict[Any, Latest] = {}
        for raw, code in zip(self._posts.at(columns.offsets[order[ties]]), codes[ties].tolist(), strict=True):
            known, value = known_of(raw), values[code]
            if value not in found or known.moment > found[value].known.moment:
                found[value] = Latest(known)
        for value, newer in found.items():
            if spans.since(newer.known.post.timestamp) is not None:
                exact = self._latest(and_(operation, named(name, value)))
                found[value] = newer if exact is None else exact
        return {value: each for value, each in found.items() if value is not UNDEFINED}

    def links_decide(self, time: int) -> bool:
        """Whether links may count for more than timestamps, of posts of this time."""
        return self._known_spans().since(time) is not None

    def _known_spans(self) -> Spans:
        """The spans of time that links lead against; of all posts, once, and then of those that come."""
        if self._spans is None:
            self._spans = Spans()
            for first, last in skewed_links(self._posts):
                self._spans.add(first, last)
        return self._spans

    def _note_links(self, known: Known) -> None:
        """Take notice of the links of a post that came, and of those to it."""
        if self._spans is None:
            return
        time = known.post.timestamp
        for link in known.post.links:
            target = self.find(link)
            if target is not None and target.timestamp >= time:
                self._spans.add(time, target.timestamp)
        for other in self._naming(known.hash, "links"):
            if other.post.timestamp <= time and known.hash in other.post.links:
                self._spans.add(other.post.timestamp, time)


_MOVES: Final = or_(named("post_type", JOIN), named("post_type", LEAVE))


def _by(author: bytes) -> Any:
    return named("public_key", checked_key(author))


def _in(channel: str) -> Any:
    if not isinstance(channel, str):
        raise CableError(f"the name of a channel is text, not {shown(channel)}")
    return named("channel", channel)


def checked_key(key: bytes) -> bytes:
    """What a caller gives as a public key. Raises CableError."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise CableError(f"a public key is {KEY_BYTES} bytes, not {shown(key)}")
    return key


def checked_hash(post: bytes) -> bytes:
    """What a caller gives as the hash of a post. Raises CableError."""
    if not isinstance(post, bytes) or len(post) != HASH_BYTES:
        raise CableError(f"the hash of a post is {HASH_BYTES} bytes, not {shown(post)}")
    return post


def _info_by(author: bytes) -> Any:
    return and_(_by(author), named("post_type", INFO))


def known_of(found: Found) -> Known:
    """What a record of the posts is."""
    return Known(hash_of(found.raw), decode_post(found.raw), found.raw)


def newest_first(posts: Iterable[Known]) -> list[bytes]:
    """Their hashes, by timestamp, then by hash."""
    return [known.hash for known in sorted(posts, key=lambda known: known.moment, reverse=True)]


def _hash(found: Latest | None) -> bytes | None:
    return None if found is None else found.known.hash


def _why(move: Latest, newest: Latest | None) -> Parts:
    """What shows that somebody is in a channel, or not, where their latest join or leave alone would say otherwise."""
    if newest is None or newest.known.post.post_type not in (JOIN, LEAVE) or newest.known == move.known:
        return {}
    return {("chain", post): post for post in (newest.known.hash, *newest.chain)}


def _part(what: str, of: bytes, found: Latest | None) -> Parts:
    if found is None:
        return {}
    return {(what, of): found.known.hash, **{("chain", post): post for post in found.chain}}
