"""HyperDB: a key/value store of any number of writers, each with a feed of its own.

with HyperDB("notes", create=True) as db:
    db.put("life/cat", b"meow")
    db.get("life/cat")[0].value
    db["life/cat"]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from jitdb.stores.hyperdb.errors import (
    FeedDamaged,
    HyperdbError,
    InvalidVersion,
    NotWritable,
    ReplicationFailed,
)
from jitdb.stores.hyperdb.feed import BLOCK_SIZE, Feed
from jitdb.stores.hyperdb.folder import Folder
from jitdb.stores.hyperdb.format.entry import HEADER
from jitdb.stores.hyperdb.format.path import normalized
from jitdb.stores.hyperdb.format.trie import Pointer
from jitdb.stores.hyperdb.graph import Graph
from jitdb.stores.hyperdb.reading import Checkout, Nodes, Reading
from jitdb.stores.hyperdb.replication.arrival import Arrival, not_yet_here
from jitdb.stores.hyperdb.replication.session import replicate_here
from jitdb.stores.hyperdb.signing.heads import SignedHead
from jitdb.stores.hyperdb.signing.keys import checked_key
from jitdb.stores.hyperdb.tries.node import Node
from jitdb.stores.hyperdb.view import View, heads_in
from jitdb.stores.hyperdb.watch import Watcher, Watchers
from jitdb.stores.hyperdb.writing import Writing

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

Records: TypeAlias = list[bytes]
Damage: TypeAlias = list[FeedDamaged]

_FETCH: Final = "replicate with a database that has them before you write"


class Operation(NamedTuple):
    """A part of a batch: a put, or a deletion."""

    key: str
    value: bytes | None = None
    deleted: bool = False


class HyperDB(Reading):
    """A database in a folder. Safe for threads; one process at a time writes.

    folder:     where it lies
    key:        the public key of its source, to have a copy of a database that others began
    create:     make it where there is none
    read_only:  write nothing, beside a process that does
    secret:     the 32 bytes that the key of a new database comes of; chance, if not given
    block_size: of the logs of new feeds, in bytes; an entry must fit
    content_feed: the key of a feed beside our own one, which our entries name; no such feed is made here

    Raises HyperdbError, LogError.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        key: bytes | str | None = None,
        *,
        create: bool = False,
        read_only: bool = False,
        secret: bytes | None = None,
        block_size: int = BLOCK_SIZE,
        content_feed: bytes | str | None = None,
    ) -> None:
        self._lock = threading.RLock()
        self._folder = Folder(folder)
        self._read_only, self._block_size = read_only, block_size
        self._watchers = Watchers()
        self._observers: list[Callable[[], object]] = []
        self._content = None if content_feed is None else checked_key(content_feed)
        wanted = None if key is None else checked_key(key)
        self.key, local = self._folder.opened(wanted, secret, create=create, read_only=read_only)
        self._keys = None if read_only else self._folder.keys(local)
        self._is_open = False
        self._shared: dict[bytes, int] | None = None
        self._unsettled: set[int] = set()  # feeds of others with records that may not be on the disk
        self._graph = Graph(self._feed)
        try:
            self._graph.add(self.key)
            self._local = self._graph.add(local)
            self._order: tuple[int, ...] = ()  # the feeds as our own entries number them
            self._listing = 0  # the seq of our entry that lists them
            self._state: View | None = None
            self._begin()
        except BaseException:
            self.close()
            raise

    # --- opening -----------------------------------------------------------------------------------------------------

    def _feed(self, key: bytes) -> Feed:
        """The feed of a key, whose log is made where there is none."""
        path = self._folder.feed(key)
        return Feed(path, key, block_size=self._block_size, read_only=self._read_only)

    def _begin(self) -> None:
        feed = self._graph.feeds[self._local]
        if self._keys is not None and not len(feed):
            feed.append_encoded([HEADER], [None])
        self._sign()  # what a crash kept from it
        self._is_open = True
        self._graph.discover()
        last = self._graph.last(self._local, len(feed))
        if last is not None:
            self._order, self._listing = last.feeds, self._graph.listing(last.pointer)
            if self._content is None:
                self._content = self.content_feed(self._local)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _view(self) -> View:
        if self._state is None:
            numbers = sorted(self._graph.authorized | {self._local})
            self._state = View(self._graph, self._graph.lengths(numbers))
        return self._state

    @property
    def feeds(self) -> Sequence[Feed]:
        """All feeds that are known, by their numbers; the source is the first."""
        return tuple(self._graph.feeds)

    @property
    def local(self) -> Feed:
        """The feed that is written to here."""
        return self._graph.feeds[self._local]

    @property
    def read_only(self) -> bool:
        """Whether it was opened to be read."""
        return self._read_only

    @property
    def writable(self) -> bool:
        """Whether the secret of the local feed is here."""
        return self._keys is not None

    def authorized(self, key: bytes | str) -> bool:
        """Whether the feed of this key counts for everybody: the source, and who was authorized by one that counts."""
        with self._lock:
            return self._graph.number_of(checked_key(key)) in self._graph.authorized

    def content_feed(self, number: int) -> bytes | None:
        """The key of the content feed that a feed names; None where it names none. Raises FeedDamaged."""
        with self._lock:
            feed = self._graph.feeds[number]
            last = self._graph.last(number, len(feed))
            return None if last is None else self._graph.entry(number, self._graph.listing(last.pointer)).content_feed

    def refresh(self) -> bool:
        """See what another process wrote; whether there was anything. For those that were opened to be read.

        Raises LogError.
        """
        with self._lock:
            before = self._view().lengths
            changed = [feed.refresh() for feed in self._graph.feeds]
            self._shared = None  # heads may be new where no record is
            if any(changed):
                self._discover()
                self._changed()
                self._watchers.tell(self._arrived(before))
            return any(changed)

    def damage(self) -> Damage:
        """What is wrong with entries that were passed over, because nobody can read them or follow their pointers.

        Every entry of every feed is read. What is wrong with the logs themselves, verify of each says.
        """
        with self._lock:
            faults = [feed.fault for feed in self._graph.feeds if feed.fault is not None]
            return faults + [error for number in range(len(self._graph.feeds)) for error in self._graph.damage(number)]

    def checkout(self, version: bytes | str | int | Iterable[Node]) -> Checkout:
        """The database as it was: at a version (in hex, too); at an entry of the source, by its seq; or when these
        nodes were its heads.

        Raises InvalidVersion for a feed or an entry that is not here, FeedDamaged for one that nobody can read.
        """
        with self._lock:
            nodes = [self._graph.node(pointer) for pointer in self._pointers(version)]
            lengths = tuple(
                min(max((node.clock_of(number) for node in nodes), default=0), len(feed))
                for number, feed in enumerate(self._graph.feeds)
            )
            return Checkout(View(self._graph, lengths), self._lock)

    def snapshot(self) -> Checkout:
        """The database as it is now."""
        with self._lock:
            return Checkout(self._view(), self._lock)

    def _pointers(self, version: bytes | str | int | Iterable[Node]) -> Iterator[Pointer]:
        """The heads that a version names. Raises InvalidVersion."""
        if isinstance(version, int):
            named = [(self.key, version)]
        elif isinstance(version, (bytes, str)):
            named = heads_in(version)
        else:
            named = [(self._graph.feeds[node.feed].key, node.seq) for node in version]
        for key, seq in named:
            number = self._graph.number_of(key)
            if number is None or not 0 < seq < len(self._graph.feeds[number]):
                raise InvalidVersion(f"the version is of entry {seq} of the feed {key.hex()}, which is not here")
            yield Pointer(number, seq)

    def watch(self, prefix: str = "", callback: Callable[[Node], object] | None = None) -> Watcher:
        """The nodes written at or below a prefix from now on, by whomever: a loop over it waits for more.

        callback: is called with each of them, instead, by whoever writes; it may write, too. What it raises comes out
                  of what was called to write, when it is written and all are told
        """
        watcher = Watcher(normalized(prefix), callback, self._unwatch)
        with self._lock:
            self._check_open()
            self._watchers.add(watcher)
        return watcher

    def _unwatch(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.remove(watcher)

    # --- writing -----------------------------------------------------------------------------------------------------

    def put(self, key: str, value: bytes | None = None, *, if_not_exists: bool = False) -> Node:
        """Write a value under a key; the node of it.

        if_not_exists: write nothing where the key was ever written, and give its node

        It is seen at once, and durable after flush(), or about a quarter of a second later. Raises InvalidKey,
        NotWritable, RecordTooLarge, LogWriteFailed.
        """
        with self._lock:
            if if_not_exists:
                there = self.get(key, deletes=True)
                if there:
                    return there[0]
            return self._write([Operation(key, value)])[0]

    def delete(self, key: str, value: bytes | None = None) -> Node:
        """Delete a key, whether it is there or not; the node that says so, which may have a value. Raises as put."""
        return self._write([Operation(key, value, deleted=True)])[0]

    def batch(self, operations: Iterable[Operation | tuple[Any, ...]]) -> Nodes:
        """Write several at once, all or none, after a crash too; their nodes.

        operations: Operation(key, value, deleted=False), or tuples of as many. Raises as put does.
        """
        return self._write([Operation(*operation) for operation in operations])

    def authorize(self, key: bytes | str) -> Node:
        """Let the feed of this public key count from now on, with all that was written to it before, and for good."""
        public = checked_key(key)
        with self._lock:
            self._check_writable()
            self._graph.add(public)
            return self._write([Operation("")])[0]

    def _write(self, operations: Iterable[Operation]) -> Nodes:
        with self._lock:
            self._check_writable()
            anew = self._content is not None and self._content != self.content_feed(self._local)
            view = self._view()
            written = Writing(self._graph, self._local, view, self._order, self._listing, self._content, anew)
            for operation in operations:
                written.add(*operation)
            if written.entries:
                self._settle()
                self.local.append(written.entries)
                self._order, self._listing = written.order, written.listing
                self._state = View(self._graph, tuple(written.lengths))
                self._graph.keep(written.nodes[-1])
                if written.entries[-1].feeds is not None or len(written.entries) > 1:
                    self._discover()
                self._changed()
                self._watchers.tell(written.nodes)
            return written.nodes

    def _settle(self) -> None:
        """What is known here is on the disk before an entry is that says so: a crash leaves none that waits."""
        for number in self._unsettled:
            self._graph.feeds[number].flush()
        self._unsettled.clear()

    def _discover(self) -> None:
        """See which feeds count now."""
        self._graph.discover()
        self._state = None

    # --- replication -------------------------------------------------------------------------------------------------

    def lengths(self) -> dict[bytes, int]:
        """The feeds that are known, by their keys, and how many records of each are here. Raises HyperdbError."""
        with self._lock:
            self._check_open()
            return {feed.key: len(feed) for feed in self._graph.feeds}

    def shared(self) -> dict[bytes, int]:
        """The feeds that are given to others, those that are authorized, and how many records of each are signed; the
        same dict, as long as it says the same.
        """
        with self._lock:
            self._check_open()
            if self._shared is None:
                self._sign()
                feeds = [self._graph.feeds[number] for number in self._graph.authorized]
                self._shared = {feed.key: feed.signed_length for feed in feeds}
            return self._shared

    def chunk(self, key: bytes, start: int) -> tuple[Records, SignedHead] | None:
        """Records of a feed from this one on, and the head that they end with, for receive(); None where no more are
        signed.
        """
        with self._lock:
            number = self._graph.number_of(key)
            return None if number is None else self._graph.feeds[number].chunk(start)

    def receive(self, key: bytes, start: int, records: Sequence[bytes], head: SignedHead) -> None:
        """Take over records of a feed that another database has, from its record `start` on.

        head: what the feed's owner signed, of all records up to the last of these

        Those that are here already must be the same. Before anything is kept, all of them are looked at. What they say
        counts once their feed, and all that they know of, is here. Raises NotAuthentic; FeedDamaged for entries that
        are signed, and break a rule; ReplicationFailed for records that do not follow on those that are here, or are of
        a feed that nobody listed; NotWritable, LogError.
        """
        with self._lock:
            self._check_open()
            if self._read_only:
                raise NotWritable("it was opened to be read", path=self._folder.path)
            number = self._graph.number_of(key)
            if number is None:
                raise ReplicationFailed("no entry lists the feed", feed=key, seq=start, path=self._folder.path)
            feed = self._graph.feeds[number]
            fresh = not_yet_here(feed, start, records)
            if fresh:
                before = self._view().lengths
                arrival = Arrival(key, len(feed), lambda seq: self._graph.entry(number, seq))
                feed.accept(fresh, head, arrival.check)
                self._unsettled.add(number)
                self._discover()
                self._changed()
                self._watchers.tell(self._arrived(before))

    def _arrived(self, before: tuple[int, ...]) -> Nodes:
        """The nodes that count now and did not before, each after those that its writer knew."""
        lengths = self._view().lengths
        if not self._watchers or lengths == before:
            return []
        known = before + (0,) * (len(lengths) - len(before))
        return [node for node in self._view().history() if node.seq >= known[node.feed]]

    def replicate(self, other: HyperDB) -> None:
        """Give each other what the other lacks, until neither lacks any. Raises as receive does."""
        replicate_here(self, other)

    async def replicate_stream(self, reader: StreamReader, writer: StreamWriter, **options: Any) -> None:
        """Give each other what the other lacks, with a database at the other end of a stream: see stream.py."""
        from jitdb.stores.hyperdb.replication.stream import replicate_stream  # with asyncio

        await replicate_stream(self, reader, writer, **options)

    def on_change(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back after each time that anything was written or received; the function given back ends it.

        It is called by whoever writes, and must not wait.
        """
        with self._lock:
            self._observers.append(callback)

        def end() -> None:
            with self._lock:
                if callback in self._observers:
                    self._observers.remove(callback)

        return end

    def _changed(self) -> None:
        self._shared = None
        for callback in list(self._observers):
            callback()

    def _sign(self) -> None:
        """Sign what was written here."""
        if self._keys is not None:
            self.local.sign(self._keys)

    def _check_open(self) -> None:
        if not self._is_open:
            raise HyperdbError("the database was closed", path=self._folder.path)

    def _check_writable(self) -> None:
        if self._keys is None:
            raise NotWritable("the secret of its feed is not here, or it was opened to be read", path=self._folder.path)
        if self.local.fault is not None:
            raise self.local.fault
        if self.local.lost:
            reason = f"{self.local.lost} entries that were signed are lost: others may have them"
            raise FeedDamaged(reason, feed=self.local.key, seq=len(self.local), path=self._folder.path, remedy=_FETCH)
        waiting = self._view().lengths[self._local]
        if waiting < len(self.local):
            reason = "it knows of entries of others that are not here any more, and so must those that are written next"
            raise FeedDamaged(reason, feed=self.local.key, seq=waiting, path=self._folder.path, remedy=_FETCH)

    def __setitem__(self, key: str, value: bytes) -> None:
        self.put(key, value)

    def __delitem__(self, key: str) -> None:
        self.delete(key)

    def flush(self) -> None:
        """Return when all that was written is on the disk, and signed. Raises LogWriteFailed."""
        with self._lock:
            self._sign()
            for feed in self._graph.feeds:
                feed.flush()

    def close(self) -> None:
        """Flush and close. Safe to call twice."""
        with self._lock:
            is_open, self._is_open = self._is_open, False
            try:
                if is_open:
                    self._sign()
            finally:
                self._changed()
                self._watchers.close()
                for feed in self._graph.feeds:
                    feed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<HyperDB {str(self._folder.path)!r} {self.key.hex()[:16]}…, {len(self._graph.feeds)} feeds>"
