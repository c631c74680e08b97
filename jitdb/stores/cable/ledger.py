"""What must outlive the posts that it is about: a log of records, msgpack, each found by a hash or a key.

    {"kind": "pending", "hash": h, "delete": d}   the post/delete d names h, which was not here
    {"kind": "deleted", "hash": h, "delete": d, "author": key, "post_type": 0, "channel": "c", "timestamp": ms}
                                                    d deleted h; of whom, what and where h was, and the time of d
    {"kind": "blocked", "hash": key, "is": true}     what this key wrote is not wanted; `is` false: it is again
    {"kind": "moderator", "hash": key, "is": true}   this key may delete what others wrote

All records are of one form, so a rebuild reads them in one walk; the newest of a kind and a key counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jitdb.log.codecs import get_codec
from jitdb.operators import and_, equal
from jitdb.stores.cable.hashed import HashedLog
from jitdb.stores.cable.post import Post

_CODEC: Final = get_codec("msgpack")


class Ledger:
    """Tombstones, deletes that wait for what they name, and whom the user blocks or trusts."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.log = HashedLog(path, "msgpack", read_only=read_only)
        self.blocked = self._keys("blocked")
        self.moderators = self._keys("moderator")

    def _keys(self, kind: str) -> set[bytes]:
        said = {note["hash"]: note["is"] for note in self.ask(equal("kind", kind))}
        return {key for key, holds in said.items() if holds}

    def ask(self, operation: Any) -> Iterator[dict[str, Any]]:
        """The notes that match, in the order in which they were made."""
        return (_CODEC.decode(found.raw) for found in self.log.ask(operation))

    def notes(self, post: bytes) -> list[dict[str, Any]]:
        """What is noted of a post's hash."""
        found = (_CODEC.decode(each.raw) for each in self.log.candidates(post))
        return [note for note in found if note["hash"] == post]

    def tombstone(self, post: bytes) -> dict[str, Any] | None:
        """What is known of a post that was deleted; None of others."""
        return next((note for note in self.notes(post) if note["kind"] == "deleted"), None)

    def pending(self, post: bytes) -> list[bytes]:
        """The hashes of the deletes that name a post and were here before it."""
        return [note["delete"] for note in self.notes(post) if note["kind"] == "pending"]

    def is_noted(self, post: bytes, delete: bytes, kind: str) -> bool:
        """Whether there is a note of this kind that this delete names a post."""
        return any(note.get("delete") == delete and note["kind"] == kind for note in self.notes(post))

    def wait(self, post: bytes, delete: bytes) -> None:
        """Note that a delete names a post that is not here."""
        self._note(post, {"kind": "pending", "hash": post, "delete": delete})

    def bury(self, post: bytes, grave: dict[str, Any], delete: bytes, timestamp: int) -> None:
        """Note that a delete of this time deleted a post; `grave` is what is known of the latter (grave_of)."""
        note = {name: grave[name] for name in ("author", "post_type", "channel")}
        self._note(post, {"kind": "deleted", "hash": post, "delete": delete, **note, "timestamp": timestamp})

    def decide(self, kind: str, key: bytes, holds: bool) -> None:
        """Note what the user decides of a key; it is durable then."""
        self._note(key, {"kind": kind, "hash": key, "is": holds})
        self.log.flush()
        keys = self.blocked if kind == "blocked" else self.moderators
        (keys.add if holds else keys.discard)(key)

    def graves(self, *conditions: Any) -> Iterator[dict[str, Any]]:
        """The notes of deletions that match."""
        return self.ask(and_(equal("kind", "deleted"), *conditions))

    def _note(self, key: bytes, note: dict[str, Any]) -> None:
        self.log.append(key, note)


def grave_of(post: Post) -> dict[str, Any]:
    """What is kept of a post that is deleted."""
    return {"author": post.public_key, "post_type": post.post_type, "channel": post.channel or None}
