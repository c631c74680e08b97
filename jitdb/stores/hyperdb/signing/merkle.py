"""The tree of hashes over a feed, of which its owner signs the head: hypercore 6's and 7's, byte for byte.

    leaf    BLAKE2b-256(00 ‖ u64 size of the record ‖ the record)
    parent  BLAKE2b-256(01 ‖ u64 size of all records below ‖ left hash ‖ right hash)
    head    BLAKE2b-256(02 ‖ of each root, from the left: its hash ‖ u64 index ‖ u64 size)

Numbers are big-endian. A feed of n records has a root for each bit of n that is set, the largest on the left; each is a
whole binary tree. Leaves have the indexes 0, 2, 4, …, and a parent the one in the middle of those below it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final, Self

from jitdb.stores.hyperdb.errors import HyperdbError

HASH_BYTES: Final = 32
_LEAF, _PARENT, _HEAD = b"\x00", b"\x01", b"\x02"
_U64: Final = struct.Struct(">Q")
_PLACE: Final = struct.Struct(">QQ")  # a root's index, and its size
_ROOT: Final = struct.Struct(f">{HASH_BYTES}sQ")  # as it is kept: its index follows from the number of records


def leaf_hash(record: bytes) -> bytes:
    """The hash of a record."""
    return blake2b(_LEAF + _U64.pack(len(record)) + record, digest_size=HASH_BYTES).digest()


def parent_hash(left: bytes, right: bytes, size: int) -> bytes:
    """The hash of two hashes side by side; size: of all records below them, in bytes."""
    return blake2b(_PARENT + _U64.pack(size) + left + right, digest_size=HASH_BYTES).digest()


class Tree:
    """The tree over the first `length` records of a feed, of which the roots are enough to go on.

    >>> tree = Tree()
    >>> tree.extend([b"a", b"b", b"c"])
    >>> tree.length, tree.size
    (3, 3)
    """

    def __init__(self) -> None:
        self.length = 0
        self._roots: list[tuple[bytes, int]] = []  # the hash, and the bytes of the records below it

    @property
    def size(self) -> int:
        """How many bytes its records have."""
        return sum(size for _, size in self._roots)

    def append(self, record: bytes) -> None:
        """One more record."""
        right, size = leaf_hash(record), len(record)
        bits = self.length
        while bits & 1:  # a root as large as this one stands beside it
            left, more = self._roots.pop()
            size += more
            right = parent_hash(left, right, size)
            bits >>= 1
        self._roots.append((right, size))
        self.length += 1

    def extend(self, records: Iterable[bytes]) -> None:
        """More records, in order."""
        for record in records:
            self.append(record)

    def head(self) -> bytes:
        """What is signed."""
        hashed = blake2b(_HEAD, digest_size=HASH_BYTES)
        for (root, size), index in zip(self._roots, self._indexes(), strict=True):
            hashed.update(root + _PLACE.pack(index, size))
        return hashed.digest()

    def _indexes(self) -> Iterator[int]:
        """Those of the roots: of one above 2**n leaves, the middle of their indexes."""
        first = 0
        for bit in reversed(range(self.length.bit_length())):
            if self.length >> bit & 1:
                yield 2 * first + (1 << bit) - 1
                first += 1 << bit

    def copy(self) -> Tree:
        """Another one that goes on from here."""
        tree = Tree()
        tree.length, tree._roots = self.length, list(self._roots)
        return tree

    def roots(self) -> bytes:
        """Its roots, from the left: the hash of each, and its size as u64."""
        return b"".join(_ROOT.pack(*root) for root in self._roots)

    @classmethod
    def of(cls, length: int, roots: bytes) -> Self:
        """The tree over so many records that has these roots. Raises HyperdbError where their number does not fit."""
        if len(roots) != _ROOT.size * length.bit_count():
            raise HyperdbError(f"{length} records have {length.bit_count()} roots, and there are {len(roots)} bytes")
        tree = cls()
        tree.length, tree._roots = length, list(_ROOT.iter_unpack(roots))
        return tree
