"""Which parts of a log are scanned, and by whom: ranges of blocks, each a task of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

SMALLEST: Final = 16 << 20  # bytes: a task costs about 10 ms, and scans this much in some 100
LARGEST: Final = 256 << 20  # bytes: what a lost worker, or a slow one, costs in time; and a task's memory
_TASKS_A_CORE: Final = 4  # so that the last ones to finish keep no cluster waiting


class Range(NamedTuple):
    """Bytes [start, stop) of a log, which begin and end at a block's boundary or at the end of a record.

    `targets` are the numbers of the indexes that lack these records.
    """

    number: int
    start: int
    stop: int
    targets: tuple[int, ...]


def cut_ranges(begins: Sequence[int], end: int, block_size: int, size: int) -> list[Range]:
    """Ranges of at most about `size` bytes, in order, that together bring every index up to `end`.

    begins: of each index, the end of the last record that it holds; 0 where it holds none

    >>> cut_ranges([0, 70], 250, 64, 128)
    [Range(number=0, start=0, stop=70, targets=(0,)), Range(number=1, start=70, stop=128, targets=(0, 1)), \
Range(number=2, start=128, stop=250, targets=(0, 1))]
    """
    size = max(size // block_size, 1) * block_size
    first = min(begins, default=end)
    return ranges_at(range(first - first % size, end, size), begins, end)


def ranges_at(edges: Iterable[int], begins: Sequence[int], end: int) -> list[Range]:
    """Ranges that meet at these edges, and wherever an index ends: see cut_ranges."""
    first = min(begins, default=end)
    inside = {edge for edge in (*edges, *begins) if first <= edge < end}
    return [
        Range(number, start, stop, tuple(each for each, begin in enumerate(begins) if begin <= start))
        for number, (start, stop) in enumerate(pairwise([*sorted(inside), end]))
    ]


def size_for(total: int, cores: int) -> int:
    """How many bytes a range should have when so many are to be scanned."""
    return max(SMALLEST, min(LARGEST, total // (cores * _TASKS_A_CORE)))
