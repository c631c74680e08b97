"""Which values come first, by the codes that records have: without making an object of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.values import NUMBER
from jitdb.engine.answering.coded_column import CodedColumn
from jitdb.engine.counting.order import Ranked, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.counting.coded import Coded
    from jitdb.log.codecs.fields.located import FieldValues

_HEAD: Final = 7  # bytes of a value by which many are told apart without making an object of each


def ranked(coded: Coded, counts: NDArray[np.int64], total: int, limit: int | None) -> Ranked:
    """The first values of a field, by how many of so many records have each code."""
    present = np.flatnonzero(counts[1:]) + 1
    found = present
    if limit is not None and len(present) > limit:
        least = np.partition(counts[present], -limit)[-limit]
        found, ties = present[counts[present] > least], present[counts[present] == least]
        wanted = limit - len(found)
        if isinstance(coded, CodedColumn) and len(ties) > wanted:
            ties = ties[may_be_first(coded.values, ties - 1, wanted)]
        found = np.append(found, ties)
    pairs = (((coded.key(code),), count) for code, count in zip(found.tolist(), counts[found].tolist(), strict=True))
    return Ranked(in_order(pairs, limit), len(present), total, int(counts[0]))


def may_be_first(values: FieldValues, numbers: NDArray[np.int64], wanted: int) -> NDArray[np.bool_]:
    """Which of these values, by number, may be among the first `wanted` of them: those that are, and few others."""
    kinds = values.kind[numbers].astype(np.uint64)
    heads = np.zeros(len(numbers), np.uint64)
    is_number = values.kind[numbers] == NUMBER
    bits = values.number[numbers].astype("<f8").view(np.uint64)
    bits = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63)) >> np.uint64(8)
    starts, lengths = (column[numbers].astype(np.int64) for column in (values.start, values.length))
    for place in range(_HEAD):
        inside = (lengths > place) & ~is_number
        byte = values.buffer[np.where(inside, starts + place, 0)].astype(np.uint64)
        heads = (heads << np.uint64(8)) | np.where(inside, byte, 0).astype(np.uint64)
    heads = (kinds << np.uint64(56)) | np.where(is_number, bits, heads)
    return np.asarray(heads <= np.partition(heads, wanted - 1)[wanted - 1])


def ranked_groups(columns: Sequence[Coded], codes: Sequence[NDArray[np.uint32]], limit: int | None) -> Ranked:
    """The first groups of values that records have in several fields; a record that lacks one is in none."""
    records = len(codes[0])
    lacking = np.zeros(records, np.bool_)
    for found in codes:
        lacking |= found == 0
    if lacking.any():
        codes = [found[~lacking] for found in codes]
    numbers, size = np.zeros(len(codes[0]), np.int64), 1
    for column, found in zip(columns, codes, strict=True):
        if size > (1 << 62) // len(column):
            numbers, size = np.unique(numbers, return_inverse=True)[1], len(numbers)
        numbers, size = numbers * len(column) + found, size * len(column)
    examples, counts = _counted(numbers, size)
    chosen = np.arange(len(counts))
    if limit is not None and len(counts) > limit:
        chosen = np.flatnonzero(counts >= np.partition(counts, -limit)[-limit])
    keys = zip(
        *(map(column.key, found[examples[chosen]].tolist()) for column, found in zip(columns, codes, strict=True)),
        strict=True,
    )
    pairs = zip(keys, counts[chosen].tolist(), strict=True)
    return Ranked(in_order(pairs, limit), len(counts), records, records - len(numbers))


def _counted(numbers: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the distinct numbers below a size: where each stands, somewhere, and how often."""
    if size > max(1 << 16, 4 * len(numbers)):
        _, examples, counts = np.unique(numbers, return_index=True, return_counts=True)
        return examples, counts
    counts, places = np.bincount(numbers, minlength=size), np.empty(size, np.int64)
    places[numbers] = np.arange(len(numbers))
    there = np.flatnonzero(counts)
    return places[there], counts[there]
