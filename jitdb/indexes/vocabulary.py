"""The distinct values of a field, numbered from 1 in the order in which they come.

A value is its key (jitdb/common/values.py), and keys lie one behind the other, as in a dictionary. Those of one segment
are looked for all together: they are sorted by a hash, as the known ones are, and one walk over both finds them. A
table of hashes would look at random places in memory for each: with a million values that took 1.7 times as long, and
twice the memory.
"""

from __future__ import annotations

from os import urandom
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.indexes.kinds.dictionary import KeyHeap
from jitdb.indexes.numbering import longer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBER: Final = np.uint64(0xFFFFFFFF)  # in what hash_keys gives


class Vocabulary:
    """Keys that all differ; that of number n stands at n - 1."""

    def __init__(self) -> None:
        self._secret = np.frombuffer(urandom(24), np.uint64)
        self._heap, self._ends = np.empty(1 << 12, np.uint8), np.empty(1 << 8, np.int64)
        self._count = 0
        self._sorted = np.empty(0, np.uint64)  # of the first keys, what hash_keys gives, ascending

    def __len__(self) -> int:
        return self._count

    @property
    def _used(self) -> int:
        return int(self._ends[self._count - 1]) if self._count else 0

    @property
    def keys(self) -> KeyHeap:
        """All of them as they are now, whatever comes later."""
        return KeyHeap(self._heap[: self._used], self._ends[: self._count])

    def add(self, keys: KeyHeap) -> None:
        """Take these, which are none of those that are there, and of which no two are equal."""
        self._append(keys, np.arange(len(keys.ends)))

    def find(self, keys: KeyHeap) -> NDArray[np.uint32]:
        """The number of each key, 0 where it has none."""
        return self._found(keys)[0]

    def number(self, keys: KeyHeap) -> NDArray[np.uint32]:
        """The number of each of these keys, of which no two are equal: new ones in their order where there is none."""
        numbers, _ = self._found(keys)
        fresh = np.flatnonzero(numbers == 0)
        if len(fresh):
            numbers[fresh] = np.arange(self._count + 1, self._count + 1 + len(fresh), dtype=np.uint32)
            self._append(keys, fresh)
        return numbers

    def cut(self, count: int) -> None:
        """Forget all but the first so many."""
        if count < self._count:
            self._sorted = self._sorted[(self._sorted & _NUMBER) < count]
            kept = self.keys.between(0, count)
            self._heap, self._ends = kept.heap.copy(), kept.ends.copy()  # others may hold what was there
            self._count = count

    def _found(self, keys: KeyHeap) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        from jitdb.indexes.vocabulary_kernels import find_keys, hash_keys

        if len(self._sorted) < self._count:
            more = np.empty(self._count - len(self._sorted), np.uint64)
            hash_keys(self._secret, self._heap, self._ends[: self._count], len(self._sorted), more)
            self._sorted = np.sort(np.concatenate([self._sorted, more]))
        hashes = np.empty(len(keys.ends), np.uint64)
        hash_keys(self._secret, keys.heap, keys.ends, 0, hashes)
        hashes.sort()
        numbers = np.empty(len(hashes), np.uint32)
        find_keys(keys.heap, keys.ends, hashes, self._heap, self._ends, self._sorted, numbers)
        return numbers, hashes

    def _append(self, keys: KeyHeap, chosen: NDArray[np.int64]) -> None:
        from jitdb.indexes.kinds.kernels.dictionary import copy_keys

        count = self._count + len(chosen)
        most = self._used + (int(keys.ends[-1]) if len(keys.ends) else 0)  # the room that is not used costs nothing
        self._ends = _grown(self._ends, count)
        self._heap = _grown(self._heap, most)
        copy_keys(keys.heap, keys.ends, chosen, self._heap, self._ends, self._count)
        self._count = count


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    """With room for so many, at least twice as many as before where there are too few."""
    return array if len(array) >= size else longer(array, max(size, 2 * len(array)))
