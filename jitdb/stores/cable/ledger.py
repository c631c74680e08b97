"""What must outlive the posts that it is about: a log of records, msgpack, each found by a hash or a key.

    {"kind": "deleted", "hash": h, "delete": d, "author": key, "post_type": 0, "channel": "c", "timestamp": ms}
                                                    d deleted h; of whom, what and where h was, and the time of d
    {"kind": "blocked", "hash": key, "is": true}     what this key wrote is not wanted; `is` false: it is again
    {"kind": "moderator", "hash": key, "is": true}   this key may delete what others wrote
    {"kind": "settled", "hash": "settled", "posts": "…", "ledger": "…"}
                                                    what the deletes before these cursors say is done, and durable

All records are of one form, so a rebuild reads them in one walk; the newest of a kind and a key counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from jitdb.log.codecs import get_codec
from jitdb.operators import Operation, and_, equal, or_
from jitdb.stores.cable.hashed import Found, HashedLog
from jitdb.stores.cable.post import Post

Note: TypeAlias = dict[str, Any]

_CODEC: Final = get_codec("msgpack")
_SETTLED: Final = b"settled"  # no post and no key has this name


class Ledger:
    """Tombstones, whom the user blocks or trusts, and how far all this was done."""

    def __init__(self, path: Path) -> None:
        self.log = HashedLog(path, "msgpack")
        self.blocked = self._keys("blocked")
        self.moderators = self._keys("moderator")

    def _keys(self, kind: str) -> set[bytes]:
        said = {note["hash"]: note["is"] for note in self.ask(named("kind", kind))}
        return {key for key, holds in said.items() if holds}

    def ask(self, operation: Any) -> Iterator[Note]:
        """The notes that match, in the order in which they were made."""
        return (_CODEC.decode(found.raw) for found in self.log.ask(operation))

    def newest(self, operation: Any, at_once: int) -> Iterator[Note]:
        """The notes that match, the newest first."""
        return (_CODEC.decode(found.raw) for found in self.log.newest(operation, at_once))

    def deletions(self, post: bytes) -> Iterator[Note]:
        """The notes that a post was deleted, one a delete, the newest first."""
        found = (_CODEC.decode(each.raw) for each in self.log.candidates(post))
        return (note for note in found if note["hash"] == post and note["kind"] == "deleted")

    def tombstone(self, post: bytes) -> Note | None:
        """What is known of a post that was deleted; None of others."""
        return next(self.deletions(post), None)

    def bury(self, post: bytes, grave: Note, delete: bytes, timestamp: int) -> None:
        """Note that a delete of this time deleted a post; `grave` is what is known of the latter (grave_of)."""
        note = {name: grave[name] for name in ("author", "post_type", "channel")}
        self._note(post, {"kind": "deleted", "hash": post, "delete": delete, **note, "timestamp": timestamp})

    def decide(self, kind: str, key: bytes, holds: bool) -> None:
        """Note what the user decides of a key; it is durable then."""
        self._note(key, {"kind": kind, "hash": key, "is": holds})
        self.log.flush()
        keys = self.blocked if kind == "blocked" else self.moderators
        (keys.add if holds else keys.discard)(key)

    def graves(self, *conditions: Any) -> Iterator[Note]:
        """The notes of deletions that match."""
        return self.ask(and_(DELETED, *conditions))

    # --- what is done ------------------------------------------------------------------------------------------------

    def settle(self, posts: str) -> None:
        """Note that what the deletes before this cursor say, and all notes up to now, is done and durable."""
        former = [found.offset for found in self._settled()]
        marks = {"posts": posts, "ledger": self.log.cursor()}
        self._note(_SETTLED, {"kind": "settled", "hash": _SETTLED, **marks})
        self.log.flush()
        if former:
            self.log.delete(former)

    def unsettled(self) -> tuple[str | None, list[bytes]]:
        """The cursor up to which all deletes are done, None where that must be seen anew; and the hashes of what was
        deleted by notes that came later.
        """
        marks = next((_CODEC.decode(found.raw) for found in self._settled()), {"posts": None, "ledger": None})
        concerned = or_(DELETED, named("kind", "moderator"))
        notes = [_CODEC.decode(found.raw) for found in self.log.since(concerned, marks["ledger"])]
        cursor = None if any(note["kind"] == "moderator" for note in notes) else marks["posts"]
        return cursor, [note["hash"] for note in notes if note["kind"] == "deleted"]

    def _settled(self) -> list[Found]:
        """The newest first; of others a crash has left over."""
        return [found for found in self.log.candidates(_SETTLED) if _CODEC.decode(found.raw)["kind"] == "settled"]

    def _note(self, key: bytes, note: Note) -> None:
        self.log.append(note, hash=(key,))


def named(field: str, value: Any) -> Operation:
    """Whether a field of few values has this one: from the bitmaps that distinct() and columns() ask, too."""
    return equal(field, value, prefix=False)


DELETED: Final = named("kind", "deleted")


def grave_of(post: Post) -> Note:
    """What is kept of a post that is deleted."""
    return {"author": post.public_key, "post_type": post.post_type, "channel": post.channel or None}
