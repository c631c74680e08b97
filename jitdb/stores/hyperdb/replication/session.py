"""How two databases give each other what the other lacks: which messages follow which. Nothing here waits or sends.

A message is a list whose first item says what it is:

    HELLO     protocol, version, key of the database    the first one of each side, and the last one until the other's
                                                        has come
    WANT      key, start                                give me this feed from here on, and what comes later; once
    CHUNK     key, start, records, length, signature    records of a feed that was wanted, and the head they end with
    END       key                                       for now that was all of this feed
    FINISHED  chunks                                    after so many chunks of yours there is nothing left that I want

A side wants each feed it knows, those too that arriving entries let it know. It is done when all its wants have come to
an end, and the other's, and each has said that it is finished after all chunks of the other. One that only reads wants
nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from jitdb.common.words import shown
from jitdb.stores.hyperdb.errors import ReplicationFailed
from jitdb.stores.hyperdb.signing.heads import SignedHead
from jitdb.stores.hyperdb.signing.keys import KEY_BYTES

PROTOCOL: Final = "jitdb-hyperdb"
VERSION: Final = 1
HELLO, WANT, CHUNK, END, FINISHED = range(5)

_MOST_FEEDS: Final = 1 << 16  # that the other side may want

Message: TypeAlias = Sequence[Any]

_FORMS: Final[dict[int, tuple[type, ...]]] = {
    HELLO: (str, int, bytes),
    WANT: (bytes, int),
    CHUNK: (bytes, int, list, int, bytes),
    END: (bytes,),
    FINISHED: (int,),
}


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
        self._sent = self._received = 0  # chunks
        self._told: int | None = None  # after how many chunks we said that we are finished, and the other side did
        self._heard: int | None = None
        self._handlers: dict[int, Callable[..., None]] = {
            HELLO: self._on_hello,
            WANT: self._on_want,
            CHUNK: self._on_chunk,
            END: self._on_end,
            FINISHED: self._on_finished,
        }
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
            message = (self._want() or self._give()) if self._is_greeted else None
            if message is not None:
                self.steps += 1
            elif self._is_greeted and not self._open and self._told != self._received:
                self._told = self._received
                message = [FINISHED, self._received]
            return message

    def _want(self) -> Message | None:
        if self._db.read_only:
            return None
        for key, length in self._db.lengths().items():
            if key not in self._wanted:
                self._wanted[key] = length
                self._open.add(key)
                return [WANT, key, length]
        return None

    def _give(self) -> Message | None:
        shared = self._db.shared() if self._asked else {}
        for key, start in self._asked.items():
            chunk = self._db.chunk(key, start) if start < shared.get(key, 0) else None
            if chunk is not None:
                records, head = chunk
                self._asked[key] = head.length
                self._sent += 1
                return [CHUNK, key, start, records, *head]
            if key not in self._ended:
                self._ended.add(key)
                return [END, key]
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
        self.steps += 1

    def _on_chunk(self, key: bytes, start: int, records: list[bytes], length: int, signature: bytes) -> None:
        if self._wanted.get(key) != start or not records:
            raise ReplicationFailed("what came was not wanted", feed=key, seq=start)
        self._db.receive(key, start, records, SignedHead(length, signature))
        self._wanted[key] = length
        self._received += 1
        self.steps += 1

    def _on_end(self, key: bytes) -> None:
        if key not in self._open:
            raise ReplicationFailed("the end of a feed came that was not wanted", feed=key)
        self._open.remove(key)
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
    is_keyed = what not in (WANT, CHUNK, END) or len(said[0]) == KEY_BYTES
    numbers = [each for each in said if isinstance(each, int)]
    if not is_keyed or min(numbers, default=0) < 0 or not all(isinstance(record, bytes) for record in records):
        raise ReplicationFailed(f"it is no message: {shown(message)}")
    return list(message)


def replicate_here(one: Replicated, other: Replicated) -> None:
    """Let two databases of this process give each other what the other lacks. Raises as Session.receive() does."""
    sides = Session(one), Session(other)
    is_going = True
    while is_going:
        is_going = False
        for giving, taking in (sides, sides[::-1]):
            while (message := giving.next_message()) is not None:
                taking.receive(message)
                is_going = True
