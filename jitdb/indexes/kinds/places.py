"""Which records of a run are taken, and the number that each of them gets: by this all kinds of indexes are moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask, members_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

_DENSE: Final = 16  # a set that holds one of so many records, or more, is sooner moved as a mask


class Places:
    """`numbers[i]` is what the run's record i becomes, or -1 where it is not taken. They ascend, without gaps.

    Here and in sets, a record's number is its seq less the start of its span; `first` is that of the first in the run.
    """

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._numbers = numbers
        self._taken = numbers >= 0
        self.count = int(np.count_nonzero(self._taken))
        self.first = int(numbers[self._taken.argmax()]) if self.count else 0

    @classmethod
    def chosen(cls, which: slice | NDArray[np.int64], count: int, first: int = 0) -> Self:
        """These of so many records, numbered from `first` on."""
        numbers = np.full(count, -1)
        numbers[which] = np.arange(first, first + len(numbers[which]))
        return cls(numbers)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of a value a record, those of the taken ones."""
        return values[self._taken]

    def numbers(self, members: NDArray[np.uint32], first: int) -> NDArray[np.int64]:
        """What these members become."""
        return self._numbers[members.astype(np.int64) - first]

    def set(self, members: BitMap, first: int) -> BitMap:
        """The taken ones among these members."""
        seqs = members_of(members)
        if len(seqs) * _DENSE < len(self._numbers):
            numbers = self.numbers(seqs, first)
            return bitmap_of(numbers[numbers >= 0].astype(np.uint32))
        there = np.zeros(len(self._numbers), np.bool_)
        there[seqs - np.uint32(first)] = True
        return bitmap_of_mask(there[self._taken], self.first)
