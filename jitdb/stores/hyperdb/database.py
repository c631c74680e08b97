"""HyperDB: a key/value store of any number of writers, each with a feed of its own.

    with HyperDB("notes", create=True) as db:
        db.put("life/cat", b"meow")
        db.get("life/cat")[0].value
        db["life/cat"]

A folder has, beside each other, `feeds/KEY.log` (a feed, named by its public key in hex) and `feeds/KEY.heads` (what
its owner signed of it), `database.log` (which of them is the source, and which one is written to here) and `secret`
(the seed of the latter's key, in hex).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from jitdb import Log
from jitdb.common.words import shown
from jitdb.errors import Remedy
from jitdb.stores.hyperdb.arrival import Arrival, not_yet_here
from jitdb.stores.hyperdb.entry import HEADER
from jitdb.stores.hyperdb.errors import (
    Conflict,
    FeedDamaged,
    HyperdbError,
    InvalidVersion,
    NotWritable,
    ReplicationFailed,
)
from jitdb.stores.hyperdb.feed import BLOCK_SIZE, Feed
from jitdb.stores.hyperdb.graph import Graph
from jitdb.stores.hyperdb.heads import SignedHead
from jitdb.stores.hyperdb.keys import KEY_BYTES, KeyPair, checked_key, read_secret, write_secret
from jitdb.stores.hyperdb.node import Node
from jitdb.stores.hyperdb.path import normalized
from jitdb.stores.hyperdb.replication import replicate_here
from jitdb.stores.hyperdb.trie import Pointer
from jitdb.stores.hyperdb.view import Change, Lookup, View, heads_in
from jitdb.stores.hyperdb.watch import Watcher, Watchers
from jitdb.stores.hyperdb.writing import Writing

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

# Where a class has a method `list`, its annotations cannot name the type.
Nodes: TypeAlias = list[Node]
Groups: TypeAlias = list[Nodes]
Changes: TypeAlias = list[Change]
Records: TypeAlias = list[bytes]
Damage: TypeAlias = list[FeedDamaged]

_NONE_YET: Final = Remedy("pass create=True to make one", "`jitdb hyperdb put` makes one")
_FETCH: Final = "replicate with a database that has them before you write"
_FEEDS: Final = "feeds"
_DATABASE: Final = "database.log"
_DATABASE_BLOCK: Final = 4096
_SECRET: Final = "secret"


class Operation(NamedTuple):
    """A part of a batch: a put, or a deletion."""

    key: str
    value: bytes | None = None
    deleted: bool = False


class Reading:
    """What can be asked of a database as it is, and of an earlier state of it."""

    _lock: threading.RLock

    def _view(self) -> View:
        raise NotImplementedError

    def get(
        self,
        key: str,
        *,
        deletes: bool = False,
        lookup: Lookup = "index",
        on_read: Callable[[Node], object] | None = None,
    ) -> Nodes:
        """The nodes of a key: one; several where writers did not know of each other's; none where it has no value.

        deletes: where it was deleted, the nodes that say so
        lookup:  "trie" follows the pointers of the entries instead of asking the index
        on_read: called with each node that is looked at on the way
        """
        with self._lock:
            return self._view().get(key, deletes=deletes, lookup=lookup, on_read=on_read)

    def list(self, prefix: str = "", **options: Any) -> Groups:
        """The nodes of each key at or below a prefix; options are those of View.groups."""
        with self._lock:
            return list(self._view().groups(prefix, **options))

    def iterator(self, prefix: str = "", **options: Any) -> Iterator[Nodes]:
        """The same, one by one, of the state as it is now; others may read and write meanwhile."""
        with self._lock:
            return self._one_by_one(self._view().groups(prefix, **options))

    def _one_by_one(self, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._lock:
                item = next(items, None)
            if item is None:
                return
            yield item

    def heads(self) -> Nodes:
        """The nodes that no other node knows."""
        with self._lock:
            return self._view().heads()

    @property
    def version(self) -> bytes:
        """This state, as bytes for checkout()."""
        with self._lock:
            return self._view().version()

    def history(self, *, reverse: bool = False) -> Nodes:
        """All nodes, each after those that its writer knew, or, `reverse`, before them."""
        with self._lock:
            return list(self._view().history(reverse=reverse))

    def key_history(self, key: str) -> Groups:
        """What a key was, the newest first."""
        with self._lock:
            return list(self._view().key_history(key))

    def diff(self, other: Reading | None = None, prefix: str = "") -> Changes:
        """What differs from another state, or from an empty database, in the keys at or below a prefix."""
        with self._lock:
            return list(self._view().diff(other._view() if other is not None else None, prefix))

    def __getitem__(self, key: str) -> bytes | None:
        """The value of a key. Raises KeyError where it has none, Conflict where it has several."""
        nodes = self.get(key)
        if not nodes:
            raise KeyError(key)
        if len(nodes) > 1:
            raise Conflict(f"{shown(key)} has {len(nodes)} values, of writers that did not know of each other's")
        return nodes[0].value

    def __contains__(self, key: str) -> bool:
        return bool(self.get(key))

    def __iter__(self) -> Iterator[str]:
        return (nodes[0].key for nodes in self.list())


class Checkout(Reading):
    """A database as it was at some version; it cannot be written to."""

    def __init__(self, view: View, lock: threading.RLock) -> None:
        self._state, self._lock = view, lock

    def _view(self) -> View:
        return self._state

    def put(self, key: str, value: bytes | None = None) -> Node:
        """Raises NotWritable."""
        raise NotWritable("a checkout is a state of the past", remedy="write to the database itself")

    delete = batch = authorize = put


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
        self._folder = Path(folder)
        self._read_only, self._block_size = read_only, block_size
        self._watchers = Watchers()
        self._observers: list[Callable[[], object]] = []
        self._content = None if content_feed is None else checked_key(content_feed)
        wanted = None if key is None else checked_key(key)
        known = self._stored()
        if known is None:
            if read_only or not (create or wanted):
                raise HyperdbError("there is no database", path=self._folder, remedy=_NONE_YET)
            known = self._make(wanted, secret)
        source, local = known
        if wanted not in (None, source):
            raise HyperdbError(f"the database is {source.hex()}, not {shown(key)}", path=self._folder)
        self.key = source
        self._keys = self._secret_of(local)
        self._is_open = False
        self._graph = Graph(self._feed)
        try:
            self._graph.add(source)
            self._local = self._graph.add(local)
            self._order: Sequence[int] = ()  # the feeds as our own entries number them
            self._listing = 0  # the seq of our entry that lists them
            self._state: View | None = None
            self._begin()
        except BaseException:
            self.close()
            raise

    # --- opening -----------------------------------------------------------------------------------------------------

    def _stored(self) -> tuple[bytes, bytes] | None:
        """The keys of the source and of our own feed; None where there is no database."""
        path = self._folder / _DATABASE
        if not path.exists():
            return None
        with Log(path, read_only=True) as log:
            for record in log.stream():
                return record.value["source"], record.value["local"]
        return None

    def _make(self, source: bytes | None, secret: bytes | None) -> tuple[bytes, bytes]:
        """A new database; the keys of its source and of our own feed."""
        (self._folder / _FEEDS).mkdir(parents=True, exist_ok=True)
        kept = read_secret(self._folder / _SECRET)  # of a creation that a crash cut short
        if kept is None:
            kept = os.urandom(KEY_BYTES) if secret is None else secret
            KeyPair.of(kept)
            write_secret(self._folder / _SECRET, kept)
        local = KeyPair.of(kept).public
        with Log(self._folder / _DATABASE, block_size=_DATABASE_BLOCK) as log:
            log.append({"source": source or local, "local": local})
        return source or local, local

    def _secret_of(self, local: bytes) -> KeyPair | None:
        """The keys of our own feed; None where it is not to be written to. Raises HyperdbError for those of another."""
        path = self._folder / _SECRET
        secret = None if self._read_only else read_secret(path)
        if secret is None:
            return None
        keys = KeyPair.of(secret)
        if keys.public != local:
            raise HyperdbError(
                f"it is the secret of {keys.public.hex()}, and the feed written to here is {local.hex()}", path=path
            )
        return keys

    def _feed(self, key: bytes) -> Feed:
        """The feed of a key, whose log is made where there is none."""
        path = self._folder / _FEEDS / f"{key.hex()}.log"
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
            return [error for number in range(len(self._graph.feeds)) for error in self._graph.damage(number)]

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
                self.local.append(written.entries)
                self._order, self._listing = written.order, written.listing
                self._state = View(self._graph, tuple(written.lengths))
                for node in written.nodes:
                    self._graph.keep(node)
                if written.entries[-1].feeds is not None or len(written.entries) > 1:
                    self._discover()
                self._changed()
                self._watchers.tell(written.nodes)
            return written.nodes

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
        """The feeds that are given to others, those that are authorized, and how many records of each are signed."""
        with self._lock:
            self._check_open()
            self._sign()
            feeds = [self._graph.feeds[number] for number in self._graph.authorized]
            return {feed.key: feed.signed_length for feed in feeds}

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
                raise NotWritable("it was opened to be read", path=self._folder)
            number = self._graph.number_of(key)
            if number is None:
                raise ReplicationFailed("no entry lists the feed", feed=key, seq=start, path=self._folder)
            feed = self._graph.feeds[number]
            fresh = not_yet_here(feed, start, records)
            if fresh:
                before = self._view().lengths
                arrival = Arrival(key, len(feed), lambda seq: self._graph.entry(number, seq))
                feed.accept(fresh, head, arrival.check)
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
        from jitdb.stores.hyperdb.stream import replicate_stream  # with asyncio

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
        for callback in list(self._observers):
            callback()

    def _sign(self) -> None:
        """Sign what was written here."""
        if self._keys is not None:
            self.local.sign(self._keys)

    def _check_open(self) -> None:
        if not self._is_open:
            raise HyperdbError("the database was closed", path=self._folder)

    def _check_writable(self) -> None:
        if self._keys is None:
            raise NotWritable("the secret of its feed is not here, or it was opened to be read", path=self._folder)
        if self.local.lost:
            reason = f"{self.local.lost} entries that were signed are lost: others may have them"
            raise FeedDamaged(reason, feed=self.local.key, seq=len(self.local), path=self._folder, remedy=_FETCH)

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
        return f"<HyperDB {str(self._folder)!r} {self.key.hex()[:16]}…, {len(self._graph.feeds)} feeds>"
