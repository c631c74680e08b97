"""Cable: the posts that a peer of a chat has, and all that is asked of them.

    with Cable("chat", create=True) as cable:
        cable.ingest(post)
        cable.messages("default", limit=20)

A folder has, beside each other, `posts.log` (posts as they came, codec "cable") and `ledger.log` (what must outlive
them: ledger.py). All else follows from these two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from jitdb.common.words import shown
from jitdb.errors import JitdbError, Remedy
from jitdb.operators import and_, equal, field
from jitdb.stores.cable.codec import CableCodec
from jitdb.stores.cable.errors import CableError, TooEarly
from jitdb.stores.cable.hashed import HashedLog
from jitdb.stores.cable.ledger import Ledger, grave_of
from jitdb.stores.cable.order import Known
from jitdb.stores.cable.post import DELETE, KEY_BYTES, TEXT, Post, decode_post, hash_of, verify_post
from jitdb.stores.cable.views import Views

Outcome: TypeAlias = Literal["stored", "known", "deleted", "blocked"]

Listener: TypeAlias = Callable[[Known, Outcome], object]

WEEK: Final = 7 * 24 * 60 * 60 * 1000  # milliseconds; a post that is as much ahead is not taken
_POSTS: Final = "posts.log"
_LEDGER: Final = "ledger.log"


def _now() -> int:
    return time.time_ns() // 1_000_000


class Cable(Views):
    """The posts of a folder; what can be asked of them is in views.py. For one thread at a time.

    clock: what time it is, in milliseconds

    Opening finishes what a crash left undone. Raises CableError where there is none, and create is not said.
    """

    def __init__(self, path: str | Path, *, create: bool = False, clock: Callable[[], int] = _now) -> None:
        folder = Path(path)
        if not create and not (folder / _POSTS).exists():
            raise CableError("there are no posts here", path=folder, remedy=Remedy("pass create=True to make one", ""))
        folder.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        ledger = Ledger(folder / _LEDGER)
        try:
            super().__init__(HashedLog(folder / _POSTS, CableCodec()), ledger)
        except BaseException:
            ledger.log.close()
            raise
        self._listeners: list[Listener] = []
        self._finish()

    # --- what comes --------------------------------------------------------------------------------------------------

    def ingest(self, data: bytes) -> Outcome:
        """Take a post from anybody: "stored", "known" already, "deleted" before, or its author is "blocked".

        Raises InvalidPost, NotAuthentic, TooEarly, RecordTooLarge; nothing is stored then.
        """
        name = hash_of(data)
        if self._place(name):
            return "known"
        if self._ledger.tombstone(name):
            return "deleted"
        post = verify_post(data)
        if post.timestamp >= self._clock() + WEEK:
            reason = f"the post {name.hex()} says it was made at {post.timestamp}, a week or more from now"
            raise TooEarly(reason, remedy="set the clock, or take it later")
        if post.public_key in self._ledger.blocked:
            return "blocked"
        known = Known(name, post)
        outcome = self._bury_on_arrival(known) or self._store(known)
        for listener in list(self._listeners):
            listener(known, outcome)
        return outcome

    def ingest_many(self, posts: Iterable[bytes]) -> list[Outcome | JitdbError]:
        """Take posts one after the other; of those that are refused, the errors."""
        return [self._try(data) for data in posts]

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call this with each post that is taken, and what came of it ("stored", or "deleted" where a delete waited for
        it); gives a function that ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _try(self, data: bytes) -> Outcome | JitdbError:
        try:
            return self.ingest(data)
        except JitdbError as error:
            return error

    def _store(self, known: Known) -> Outcome:
        self._posts.append(known.hash, known.post)
        if known.post.post_type == DELETE:
            self._delete(known)
        self._note(known, is_stored=True)
        return "stored"

    def _bury_on_arrival(self, known: Known) -> Outcome | None:
        """Delete a post that comes behind what deletes it."""
        if known.post.post_type == DELETE:
            return None
        deletes = ((name, self.find(name)) for name in self._ledger.pending(known.hash))
        valid = [(name, post) for name, post in deletes if post and self._may_delete(post, known.post.public_key)]
        for name, post in valid:
            self._ledger.bury(known.hash, grave_of(known.post), name, post.timestamp)
        if not valid:
            return None
        self._note(known, is_stored=False)
        return "deleted"

    # --- deletion ----------------------------------------------------------------------------------------------------

    def _delete(self, known: Known) -> None:
        """Do what a delete says, as far as it is its author's to say; note the rest."""
        found = [self._apply(known, target) for target in dict.fromkeys(known.post.hashes)]
        going = [offset for offset in found if offset is not None]
        if going:
            self._ledger.log.flush()  # before a post is gone, it is known that it was deleted
            self._posts.delete(going)

    def _apply(self, delete: Known, target: bytes) -> int | None:
        """Note what a delete does to one post; where that lies, if it must go."""
        place, grave = self._place(target), self._ledger.tombstone(target)
        post = None if place is None else decode_post(place.raw)
        if post is not None and grave is None:
            grave = grave_of(post)
        if grave is None:
            if not self._ledger.is_noted(target, delete.hash, "pending"):
                self._ledger.wait(target, delete.hash)
            return None
        if grave["post_type"] == DELETE or not self._may_delete(delete.post, grave["author"]):
            return None
        if not self._ledger.is_noted(target, delete.hash, "deleted"):
            self._ledger.bury(target, grave, delete.hash, delete.post.timestamp)
        return None if place is None else place.offset

    def _may_delete(self, delete: Post, author: bytes) -> bool:
        return delete.public_key == author or delete.public_key in self._ledger.moderators

    def _finish(self) -> None:
        """Do what was noted and not done before a crash, and note what was stored and not noted."""
        for key in self._ledger.blocked:
            self._remove(equal("public_key", key))
        for found in list(self._posts.ask(equal("post_type", DELETE))):
            self._delete(Known(hash_of(found.raw), decode_post(found.raw)))
        for name in self.deleted():
            place = self._place(name)
            if place is not None:
                self._posts.delete([place.offset])

    # --- what the user decides ---------------------------------------------------------------------------------------

    def block(self, key: bytes) -> int:
        """Remove all that a key wrote, and take nothing of it any more; how many posts that were."""
        self._ledger.decide("blocked", _key(key), True)
        return self._remove(equal("public_key", key))

    def unblock(self, key: bytes) -> None:
        """Take again what a key writes."""
        self._ledger.decide("blocked", _key(key), False)

    def blocked(self) -> list[bytes]:
        """The keys that are blocked, in order."""
        return sorted(self._ledger.blocked)

    def trust(self, key: bytes) -> None:
        """Let a moderator delete what others wrote, by the deletes that are here, and by those that come."""
        self._ledger.decide("moderator", _key(key), True)
        self._finish()

    def distrust(self, key: bytes) -> None:
        """Let a moderator be one no longer; what they deleted stays deleted."""
        self._ledger.decide("moderator", _key(key), False)

    def moderators(self) -> list[bytes]:
        """The keys of moderators, in order."""
        return sorted(self._ledger.moderators)

    def prune(self, posts: Iterable[bytes]) -> int:
        """Remove posts to save room; how many these were. They may come again. Deletes stay: they protect from what
        they delete.
        """
        places = [place for name in posts if (place := self._place(name))]
        going = [offset for offset, raw in places if decode_post(raw).post_type != DELETE]
        return self._go(going)

    def prune_messages(self, before: int, channel: str | None = None) -> int:
        """Remove all texts from before a moment, in milliseconds, of one channel or of all; how many these were."""
        where = () if channel is None else (equal("channel", channel),)
        return self._remove(and_(equal("post_type", TEXT), field("timestamp") < before, *where))

    def _remove(self, operation: Any) -> int:
        return self._go([found.offset for found in self._posts.ask(operation)])

    def _go(self, offsets: list[int]) -> int:
        if offsets:
            self._posts.delete(offsets)
            self._channels = None  # some may be gone
        return len(offsets)

    # --- the folder --------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Return when all that was taken is on the disk."""
        self._ledger.log.flush()
        self._posts.flush()

    def compact(self) -> None:
        """Give the room of what was removed back."""
        self._posts.compact()

    def close(self) -> None:
        self._posts.close()
        self._ledger.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _key(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise CableError(f"a public key is {KEY_BYTES} bytes, not {shown(key)}")
    return key
