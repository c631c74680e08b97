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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from jitdb.common.arguments import file_path, flag, function
from jitdb.errors import JitdbError, LogClosed, Remedy
from jitdb.log.io import osfile
from jitdb.operators import and_, field
from jitdb.stores.cable.codec import CableCodec
from jitdb.stores.cable.errors import CableError, TooEarly
from jitdb.stores.cable.hashed import HashedLog
from jitdb.stores.cable.ledger import Ledger, grave_of, named
from jitdb.stores.cable.order import Known
from jitdb.stores.cable.post import DELETE, TEXT, Post, decode_post, hash_of, verify_post
from jitdb.stores.cable.verifying import THREADS, verdicts
from jitdb.stores.cable.views import Views, checked_hash, checked_key, known_of
from jitdb.stores.folders import make_folder, mark

Outcome: TypeAlias = Literal["stored", "known", "deleted", "blocked"]

Listener: TypeAlias = Callable[[Known, Outcome], object]

WEEK: Final = 7 * 24 * 60 * 60 * 1000  # milliseconds; a post that is as much ahead is not taken
_POSTS: Final = "posts.log"
_LEDGER: Final = "ledger.log"
_AT_ONCE: Final = 1 << 10  # posts that are verified together
_SETTLED_AFTER: Final = 1 << 10  # deletes; so many are looked at again after a crash, at most


def _now() -> int:
    return time.time_ns() // 1_000_000


class Cable(Views):
    """The posts of a folder; what can be asked of them is in views.py. For one thread at a time.

    clock: what time it is, in milliseconds

    Opening finishes what a crash left undone. Raises CableError where there is none, and create is not said.
    """

    def __init__(self, path: str | Path, *, create: bool = False, clock: Callable[[], int] = _now) -> None:
        folder = Path(file_path(path))
        if flag("create", create, CableError):
            make_folder(folder)
        elif not osfile.fs.exists(folder / _POSTS):
            raise CableError("there are no posts here", path=folder, remedy=Remedy("pass create=True to make one", ""))
        function("clock is a function that tells the time", clock, 0, CableError)
        mark(folder, "cable")
        self._clock = clock
        ledger = Ledger(folder / _LEDGER)
        try:
            super().__init__(HashedLog(folder / _POSTS, CableCodec(), lists=("links", "hashes")), ledger)
        except BaseException:
            ledger.log.close()
            raise
        self._listeners: dict[Listener, Callable[[], object]] = {}
        self._threads = ThreadPoolExecutor(THREADS, "verify")  # which begin when they are first needed
        self._unsettled = 0  # deletes that were done since it was noted which are
        try:
            self._finish()
        except BaseException:
            self._shut()
            raise

    # --- what comes --------------------------------------------------------------------------------------------------

    def ingest(self, data: bytes) -> Outcome:
        """Take a post from anybody: "stored", "known" already, "deleted" before, or its author is "blocked".

        Raises InvalidPost, NotAuthentic, TooEarly, RecordTooLarge; nothing is stored then.
        """
        return self._ingest(data, verify_post)

    def ingest_many(self, posts: Iterable[bytes]) -> list[Outcome | JitdbError]:
        """Take posts one after the other, as ingest() does, but verified side by side; of those that are refused, the
        errors.
        """
        if self._posts.log.closed:
            raise LogClosed("the store was closed", path=self._posts.log.path)
        waiting = iter(posts)
        found: list[Outcome | JitdbError] = []
        while part := list(islice(waiting, _AT_ONCE)):
            found += self._ingest_part(part)
        return found

    def _ingest_part(self, part: list[bytes]) -> list[Outcome | JitdbError]:
        new = dict.fromkeys(
            bytes(data) for data in part
            if isinstance(data, (bytes, bytearray, memoryview)) and not self._place(hash_of(data))
        )  # fmt: skip
        found = dict(zip(new, verdicts(list(new), self._threads), strict=True))

        def verify(data: bytes) -> Post:
            verdict = found.get(data)  # none of what was here, and is not any more
            if isinstance(verdict, CableError):
                raise verdict
            return verdict or verify_post(data)

        outcomes: list[Outcome | JitdbError] = []
        for data in part:
            try:
                outcomes.append(self._ingest(data, verify))
            except JitdbError as error:
                outcomes.append(error)
        return outcomes

    def _ingest(self, data: bytes, verify: Callable[[bytes], Post]) -> Outcome:
        name = hash_of(data)
        return "known" if self._place(name) else self._take(name, bytes(data), verify)

    def _take(self, name: bytes, data: bytes, verify: Callable[[bytes], Post]) -> Outcome:
        """Take a post that is not here."""
        if self._ledger.tombstone(name):
            return "deleted"
        post = verify(data)
        if post.timestamp >= self._clock() + WEEK:
            reason = f"the post {name.hex()} says it was made at {post.timestamp}, a week or more from now"
            raise TooEarly(reason, remedy="set the clock, or take it later")
        if post.public_key in self._ledger.blocked:
            return "blocked"
        known = Known(name, post, data)
        outcome = self._bury_on_arrival(known) or self._store(known)
        for listener in list(self._listeners):
            listener(known, outcome)
        return outcome

    def listen(self, listener: Listener, closed: Callable[[], object] = lambda: None) -> Callable[[], object]:
        """Call `listener` with each post that is taken, and what came of it ("stored", or "deleted" where a delete
        waited for it), and `closed` when the store closes; gives a function that ends it.
        """
        self._listeners[listener] = closed
        return partial(self._listeners.pop, listener, None)

    def _store(self, known: Known) -> Outcome:
        post = known.post
        self._posts.append(known, hash=(known.hash,), links=tuple(set(post.links)), hashes=tuple(set(post.hashes)))
        self._note_links(known)
        if post.post_type == DELETE:
            self._delete(known)
        return "stored"

    def _bury_on_arrival(self, known: Known) -> Outcome | None:
        """Delete a post that comes behind what deletes it."""
        if known.post.post_type == DELETE:
            return None
        valid = [each for each in self._naming(known.hash, "hashes") if self._deletes(each, known)]
        for delete in valid:
            self._ledger.bury(known.hash, grave_of(known.post), delete.hash, delete.post.timestamp)
        return "deleted" if valid else None

    # --- deletion ----------------------------------------------------------------------------------------------------

    def _deletes(self, delete: Known, known: Known) -> bool:
        return known.hash in delete.post.hashes and self._may_delete(delete.post, known.post.public_key)

    def _delete(self, delete: Known, *, again: bool = False) -> None:
        """Do what a delete says, as far as it is its author's to say; the rest waits until it comes.

        again: some of it may be noted already
        """
        found = [self._apply(delete, target, again) for target in dict.fromkeys(delete.post.hashes)]
        going = [offset for offset in found if offset is not None]
        if going:
            self._ledger.log.flush()  # before a post is gone, it is known that it was deleted
            self._posts.delete(going)
        self._unsettled += 1
        if self._unsettled >= _SETTLED_AFTER:
            self._settle()

    def _apply(self, delete: Known, target: bytes, again: bool) -> int | None:
        """Note what a delete does to one post; where that lies, if it must go."""
        place, grave = self._place(target), self._ledger.tombstone(target)
        if grave is None and place is not None:
            grave = grave_of(decode_post(place.raw))
        if grave is None or grave["post_type"] == DELETE or not self._may_delete(delete.post, grave["author"]):
            return None
        if not again or all(note["delete"] != delete.hash for note in self._ledger.deletions(target)):
            self._ledger.bury(target, grave, delete.hash, delete.post.timestamp)
        return None if place is None else place.offset

    def _may_delete(self, delete: Post, author: bytes) -> bool:
        return delete.public_key == author or delete.public_key in self._ledger.moderators

    def _finish(self) -> None:
        """Do what was noted and not done before a crash, and note what was stored and not noted."""
        for key in self._ledger.blocked:
            self._remove(named("public_key", key))
        settled, buried = self._ledger.unsettled()
        for found in self._posts.since(named("post_type", DELETE), settled):
            self._delete(known_of(found), again=True)
        self._go([place.offset for name in buried if (place := self._place(name))])

    def _settle(self) -> None:
        """Have all that deletes say durable, and note that."""
        self.flush()
        self._ledger.settle(self._posts.cursor())
        self._unsettled = 0

    # --- what the user decides ---------------------------------------------------------------------------------------

    def block(self, key: bytes) -> int:
        """Remove all that a key wrote, and take nothing of it any more; how many posts that were."""
        self._ledger.decide("blocked", checked_key(key), True)
        return self._remove(named("public_key", key))

    def unblock(self, key: bytes) -> None:
        """Take again what a key writes."""
        self._ledger.decide("blocked", checked_key(key), False)

    def blocked(self) -> list[bytes]:
        """The keys that are blocked, in order."""
        return sorted(self._ledger.blocked)

    def trust(self, key: bytes) -> None:
        """Let a moderator delete what others wrote, by the deletes that are here, and by those that come."""
        self._ledger.decide("moderator", checked_key(key), True)
        self._finish()

    def distrust(self, key: bytes) -> None:
        """Let a moderator be one no longer; what they deleted stays deleted."""
        self._ledger.decide("moderator", checked_key(key), False)

    def moderators(self) -> list[bytes]:
        """The keys of moderators, in order."""
        return sorted(self._ledger.moderators)

    def prune(self, posts: Iterable[bytes]) -> int:
        """Remove posts to save room; how many these were. They may come again. Deletes stay: they protect from what
        they delete.
        """
        places = [place for name in dict.fromkeys(posts) if (place := self._place(checked_hash(name)))]
        going = [offset for offset, raw in places if decode_post(raw).post_type != DELETE]
        return self._go(going)

    def prune_messages(self, before: int, channel: str | None = None) -> int:
        """Remove all texts from before a moment, in milliseconds, of one channel or of all; how many these were."""
        where = () if channel is None else (named("channel", channel),)
        return self._remove(and_(named("post_type", TEXT), field("timestamp") < before, *where))

    def _remove(self, operation: Any) -> int:
        return self._go([found.offset for found in self._posts.ask(operation)])

    def _go(self, offsets: list[int]) -> int:
        if offsets:
            self._posts.delete(offsets)
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
        """Flush and close. Safe to call twice."""
        try:
            if self._unsettled and not self._posts.log.closed:
                self._settle()
        finally:
            self._shut()

    def _shut(self) -> None:
        while self._listeners:
            self._listeners.popitem()[1]()
        self._threads.shutdown()
        try:
            self._posts.close()
        finally:
            self._ledger.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
