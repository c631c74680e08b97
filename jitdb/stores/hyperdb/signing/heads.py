"""The signed heads of a feed, kept beside it: `KEY.heads`, a log of its own.

Each record is a msgpack map: `length`, how many records of the feed it is of; `signature`, by the feed's key over the
head of the tree of these (merkle.py); and, at least once in CHUNK records, `roots`, so that the tree of a long feed can
be had without reading it all. A head is there before the records of another's feed that it is of, and after those of
our own: so nothing unverified is ever in a feed, and nothing is signed that could get lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from jitdb.log.log import Log
from jitdb.stores.hyperdb.errors import FeedDamaged, NotAuthentic
from jitdb.stores.hyperdb.signing.keys import SIGNATURE_BYTES, KeyPair, is_signed
from jitdb.stores.hyperdb.signing.merkle import Tree

CHUNK: Final = 1024  # records between two heads, at most
CHUNK_BYTES: Final = 1 << 20  # after as many bytes of records there is a head, too

_BLOCK_SIZE: Final = 1 << 16


class SignedHead(NamedTuple):
    """That a feed begins with so many records, which is signed."""

    length: int
    signature: bytes


class Heads:
    """The heads of one feed, the shortest first. Not safe for threads.

    path: of the log; made when the first head is kept
    key:  the feed's public key
    """

    def __init__(self, path: Path, key: bytes, *, read_only: bool = False) -> None:
        self._path, self._key, self._read_only = path, key, read_only
        self._log: Log | None = None
        self._heads: list[SignedHead] = []
        self._trees: dict[int, Tree] = {}  # those whose roots are kept, by their length
        self._end = 0  # what of the log is known
        if path.exists():
            self._opened()
            self.refresh()

    def _opened(self) -> Log:
        if self._log is None:
            options: dict[str, Any] = {} if self._path.exists() else {"codec": "msgpack", "block_size": _BLOCK_SIZE}
            self._log = Log(self._path, read_only=self._read_only, **options)
        return self._log

    def refresh(self) -> None:
        """See those that another process kept."""
        if self._log is None and not self._path.exists():
            return
        log = self._opened()
        log.refresh()
        for record in log.stream(gte=self._end):
            self._note(record.value)
        self._end = log.durable_end

    def _note(self, value: Any) -> None:
        head = SignedHead(value["length"], value["signature"])
        while self._heads and self._heads[-1].length >= head.length:  # of records that a crash took before they came
            self._trees.pop(self._heads.pop().length, None)
        self._heads.append(head)
        if "roots" in value:
            self._trees[head.length] = Tree.of(head.length, value["roots"])

    def newest(self, most: int) -> SignedHead | None:
        """The one of the most records, but no more than these; None where there is none."""
        place = bisect_right(self._heads, most, key=_length)
        return self._heads[place - 1] if place else None

    def after(self, start: int, most: int) -> Iterator[SignedHead]:
        """Those of more than `start` records, and no more than `most`."""
        for place in range(bisect_right(self._heads, start, key=_length), len(self._heads)):
            if self._heads[place].length > most:
                break
            yield self._heads[place]

    @property
    def length(self) -> int:
        """That of the longest one; 0 where there is none."""
        return self._heads[-1].length if self._heads else 0

    def add(self, heads: Iterable[tuple[SignedHead, Tree]]) -> None:
        """Keep heads, each with its tree; they are durable then."""
        log = self._opened()
        for head, tree in heads:
            value: dict[str, Any] = {"length": head.length, "signature": head.signature}
            kept = self._kept_before(head.length)
            if tree.length - kept.length >= CHUNK or tree.size - kept.size >= CHUNK_BYTES:
                value["roots"] = tree.roots()
            log.append(value)
            self._note(value)
        log.flush()
        self._end = log.durable_end

    def tree(self, length: int, records: Callable[[int, int], Iterator[bytes]]) -> Tree:
        """The tree over the feed's first records, `length` of them.

        records: those from one up to another; few of them are read

        Raises FeedDamaged where they are not what was signed.
        """
        tree = self._kept_before(length + 1).copy()
        newest = self.newest(length)
        if newest is not None:
            tree.extend(records(tree.length, newest.length))
            if not is_signed(tree.head(), newest.signature, self._key):
                reason = "it, or what comes before it, is not what the feed's owner signed"
                raise FeedDamaged(reason, feed=self._key, seq=newest.length - 1, path=self._path)
        tree.extend(records(tree.length, length))
        return tree

    def verified_length(self, length: int, records: Callable[[int, int], Iterator[bytes]]) -> int:
        """How many of these records are proven to be those that were signed: as many as one of the heads is of."""
        newest = self.newest(length)
        try:
            self.tree(length, records)
        except FeedDamaged:
            tree, found = Tree(), 0
            for head in self.after(0, length):
                tree.extend(records(tree.length, head.length))
                if not is_signed(tree.head(), head.signature, self._key):
                    break
                found = head.length
            return found
        return 0 if newest is None else newest.length

    def _kept_before(self, length: int) -> Tree:
        """The newest tree of fewer records whose roots are kept."""
        return next((self._trees[known] for known in reversed(self._trees) if known < length), Tree())

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def _length(head: SignedHead) -> int:
    return head.length


def signed_heads(tree: Tree, records: Iterable[bytes], keys: KeyPair) -> Iterator[tuple[SignedHead, Tree]]:
    """Let the tree go on with records of our own; the heads to be kept of that: after each chunk, and at the end."""
    begun = tree.length
    size = 0
    for record in records:
        tree.append(record)
        size += len(record)
        if tree.length - begun >= CHUNK or size >= CHUNK_BYTES:
            yield signed(tree, keys), tree
            begun, size = tree.length, 0
    if tree.length > begun:
        yield signed(tree, keys), tree


def signed(tree: Tree, keys: KeyPair) -> SignedHead:
    """The head of a tree."""
    return SignedHead(tree.length, keys.sign(tree.head()))


def checked_head(head: SignedHead, tree: Tree, key: bytes) -> None:
    """Raises NotAuthentic unless the feed's owner signed the head of this very tree."""
    if len(head.signature) != SIGNATURE_BYTES or head.length != tree.length:
        reason = f"the head is of {head.length} records, and these end at {tree.length}"
        raise NotAuthentic(reason, feed=key, seq=tree.length)
    if not is_signed(tree.head(), head.signature, key):
        raise NotAuthentic("the feed's key did not sign these records", feed=key, seq=tree.length)
