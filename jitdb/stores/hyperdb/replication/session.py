"""How two databases give each other what the other lacks: which messages follow which. Nothing here waits or sends.

A message is a list whose first item says what it is:

    HELLO     protocol, version, key of the database    the first one of each side, and the last one until the other's
                                                        has come
    WANT      key, start                                give me this feed from here on, and what comes later; once
    CHUNK     key, start, records, length, signature    records of a feed that was wanted, and the head they end with
    END       key                                       for now that was all of this feed
    FINISHED  chunks                                    after so many chunks of yours there is nothing left that I want
    REFUSED   key                                       I want no more of this feed: what came of it is not to be kept

A side wants each feed it knows, those too that arriving entries let it know. It is done when all its wants have come to
an end, and the other's, and each has said that it is finished after all chunks of the other. One that only reads wants
nothing. What is wrong with one feed, on either side, ends the replication of that feed; the others go on, and
`check` tells of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from jitdb.common.words import shown
from jitdb.errors import JitdbError, LogCorrupt, RecordTooLarge
from jitdb.stores.hyperdb.errors import FeedDamaged, NotAuthentic, ReplicationFailed
from jitdb.stores.hyperdb.signing.heads import SignedHead
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES

PROTOCOL: Final = "jitdb-hyperdb"
VERSION: Final = 1
HELLO, WANT, CHUNK, END, FINISHED, REFUSED = range(6)

# What is wrong with one feed, of its writer's or on the disk, and no reason to do without others.
OF_ONE_FEED: Final = (NotAuthentic, FeedDamaged, RecordTooLarge, LogCorrupt)

_MOST_FEEDS: Final = 1 << 16  # that the other side may want

Message: TypeAlias = Sequence[Any]

_FORMS: Final[dict[int, tuple[type, ...]]] = {
    HELLO: (str, int, bytes),
    WANT: (bytes, int),
    CHUNK: (bytes, int, list, int, bytes),
    END: (bytes,),
    FINISHED: (int,),
    REFUSED: (bytes,),
}
_KEYED: Final = (WANT, CHUNK, END, REFUSED)


class Replicated(Protocol):
    """What of a database a session needs."""

    key: bytes

    @property
    def read_only(self) -> bool: ...
    def lengths(self) -> dict[bytes, int]: ...
    def shared(self) -> dict[bytes, int]: ...
    def chunk(self, key: bytes, start: int) -> tuple[list[bytes], SignedHead] | None: ...
    def receive(self, key: bytes, start: int, records: Sequence[bytes], head: SignedHead) -> None: ...
    def on_change(self, callback: Callable[[], object]) -> Callable[[], None]: ...


class Session:
    """One side of a replication. Safe for a thread that sends, and another one that receives."""

    def __init__(self, db: Replicated) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._is_greeted = self._has_greeted = False
        self._wanted: dict[bytes, int] = {}  # by us: up to where each feed came
        self._open: set[bytes] = set()  # those of them that have not come to an end
        self._asked: dict[bytes, int] = {}  # by the other side: up to where each feed was given
        self._ended: set[bytes] = set()  # those of them that we said the end of
        self._lacking: deque[tuple[bytes, int]] = deque()  # what is wanted, and was not said yet
        self._due: deque[bytes] = deque()  # those asked for of which there may be more than was given
        self._shared: dict[bytes, int] = {}  # what could be given when that was seen
        self._sent = self._received = 0  # chunks
        self._told: int | None = None  # after how many chunks we said that we are finished, and the other side did
        self._heard: int | None = None
        self._handlers: tuple[Callable[..., None], ...] = (  # by what a message is
            self._on_hello, self._on_want, self._on_chunk, self._on_end, self._on_finished, self._on_refused,
        )  # fmt: skip
        self._refused: dict[bytes, JitdbError] = {}  # feeds of which nothing more is taken, and why
        self._untold: list[bytes] = []  # those of them that the other side does not know of
        self._unwanted: set[bytes] = set()  # feeds that the other side refused
        self._unfit: dict[bytes, JitdbError] = {}  # feeds of which nothing more can be given, and why
        self.steps = 0  # grows with all that brings the two nearer to the end

    @property
    def is_over(self) -> bool:
        """Whether the other side can go without that anything is missing here."""
        return self._has_greeted and self._is_greeted and not self._open and self._heard is not None

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to give or to take, on either side, once next_message() gives none."""
        return self.is_over and self._heard == self._sent and self._told == self._received

    def next_message(self) -> Message | None:
        """What to send now; None: nothing, until something is received, or the database changes. Raises as chunk()."""
        with self._lock:
            if not self._has_greeted:
                self._has_greeted = True
                return [HELLO, PROTOCOL, VERSION, self._db.key]
            message = (self._refusal() or self._want() or self._give()) if self._is_greeted else None
            if message is not None:
                self.steps += 1
            elif self._is_greeted and not self._open and self._told != self._received:
                self._told = self._received
                message = [FINISHED, self._received]
            return message

    def check(self, end: JitdbError | None = None) -> None:
        """Raises what was wrong with a feed of which not all was taken or given, or else, how it all ended; notes on it
        name the others.
        """
        with self._lock:
            errors = [*self._refused.values(), *self._unfit.values()]
        errors += [] if end is None else [end]
        for other in errors[1:]:
            errors[0].add_note(f"and {other}")
        if errors:
            raise errors[0]

    def _refusal(self) -> Message | None:
        return [REFUSED, self._untold.pop(0)] if self._untold else None

    def _want(self) -> Message | None:
        if not self._lacking and not self._db.read_only:
            self._lacking += (each for each in self._db.lengths().items() if each[0] not in self._wanted)
            self._wanted.update(self._lacking)
            self._open.update(key for key, _ in self._lacking)
        return [WANT, *self._lacking.popleft()] if self._lacking else None

    def _give(self) -> Message | None:
        shared = self._db.shared() if self._asked else {}
        if shared is not self._shared:  # there is something new
            self._shared, self._due = shared, deque(self._asked)
        while self._due:
            key = self._due[0]
            start = self._asked[key]
            chunk = self._chunk(key, start) if start < shared.get(key, 0) else None
            if chunk is not None:
                records, head = chunk
                self._asked[key] = head.length
                self._sent += 1
                return [CHUNK, key, start, records, *head]
            self._due.popleft()
            if key not in self._ended:
                self._ended.add(key)
                return [END, key]
        return None

    def _chunk(self, key: bytes, start: int) -> tuple[list[bytes], SignedHead] | None:
        """None, too, where the other side wants no more, or no more can be read here."""
        if key in self._unwanted or key in self._unfit:
            return None
        try:
            return self._db.chunk(key, start)
        except OF_ONE_FEED as error:
            self._unfit[key] = error
            return None

    def receive(self, message: Any) -> None:
        """Take in what the other side sent. Raises ReplicationFailed where it breaks the protocol, and as
        HyperDB.receive() does.
        """
        with self._lock:
            what, *said = checked(message)
            if (what == HELLO) == self._is_greeted:
                raise ReplicationFailed("the first message, and no other one, is a greeting")
            self._handlers[what](*said)

    def _on_hello(self, protocol: str, version: int, key: bytes) -> None:
        if (protocol, version) != (PROTOCOL, VERSION):
            theirs = f"{shown(protocol)}, version {version}"
            raise ReplicationFailed(f"the other side speaks {theirs}, and this one {PROTOCOL!r}, version {VERSION}")
        if key != self._db.key:
            raise ReplicationFailed(f"the other side's database is {key.hex()}, and this one {self._db.key.hex()}")
        self._is_greeted = True

    def _on_want(self, key: bytes, start: int) -> None:
        if key in self._asked or len(self._asked) == _MOST_FEEDS:
            raise ReplicationFailed("it is wanted twice, or too many are", feed=key, seq=start)
        self._asked[key] = start
        self._due.append(key)
        self.steps += 1

    def _on_chunk(self, key: bytes, start: int, records: list[bytes], length: int, signature: bytes) -> None:
        self._received += 1
        if key in self._refused:  # it was on its way
            return
        if self._wanted.get(key) != start or not records:
            raise ReplicationFailed("what came was not wanted", feed=key, seq=start)
        try:
            self._db.receive(key, start, records, SignedHead(length, signature))
            self._wanted[key] = length
        except OF_ONE_FEED as error:
            self._refused[key] = error
            self._untold.append(key)
            self._open.discard(key)
        self.steps += 1

    def _on_end(self, key: bytes) -> None:
        if key in self._refused:
            return
        if key not in self._open:
            raise ReplicationFailed("the end of a feed came that was not wanted", feed=key)
        self._open.remove(key)
        self.steps += 1

    def _on_refused(self, key: bytes) -> None:
        if key not in self._asked or key in self._unwanted:
            raise ReplicationFailed("it is refused, and was not wanted", feed=key)
        self._unwanted.add(key)
        self.steps += 1

    def _on_finished(self, chunks: int) -> None:
        if chunks > self._sent:
            raise ReplicationFailed(f"the other side is finished after {chunks} chunks, and {self._sent} were sent")
        self._heard = chunks


def checked(message: Any) -> Message:
    """Raises ReplicationFailed for what is no message."""
    form = _FORMS.get(message[0]) if isinstance(message, list) and message and type(message[0]) is int else None
    if form is None or len(message) != len(form) + 1 or not all(map(isinstance, message[1:], form)):
        raise ReplicationFailed(f"it is no message: {shown(message)}")
    what, said = message[0], message[1:]
    records = said[2] if what == CHUNK else []
    is_keyed = what not in _KEYED or len(said[0]) == KEY_BYTES
    numbers = [each for each in said if isinstance(each, int)]
    if not is_keyed or min(numbers, default=0) < 0 or not all(isinstance(record, bytes) for record in records):
        raise ReplicationFailed(f"it is no message: {shown(message)}")
    return list(message)


def replicate_here(one: Replicated, other: Replicated) -> None:
    """Let two databases of this process give each other what the other lacks.

    Raises as Session.receive() does, and, in the end, as Session.check().
    """
    left, right = Session(one), Session(other)
    while _passed_on(left, right) | _passed_on(right, left):
        pass
    for side in (left, right):
        side.check()


def _passed_on(giving: Session, taking: Session) -> bool:
    """Hand over the next message; whether there was one."""
    message = giving.next_message()
    if message is not None:
        taking.receive(message)
    return message is not None
