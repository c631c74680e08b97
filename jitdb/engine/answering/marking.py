"""Which of some findings each record has, as the bits of a number, and how many records have which of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from jitdb.common.paths import Path
from jitdb.engine.answering.coded import BitmapCodes, Coded
from jitdb.indexes.kinds.bitmaps import ABSENT_KEY
from jitdb.indexes.kinds.roaring import members_of
from jitdb.operators.summaries.exploring.contrast import MATCHING, no_masks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.engine.answering.members import Members
    from jitdb.operators.summaries.arithmetic.numbers import Numbers
    from jitdb.operators.summaries.exploring.findings import Interval

Masks: TypeAlias = "NDArray[np.uint32]"  # of records, in their order


def marked(
    findings: Sequence[tuple[Path, bytes | Interval]],
    matches: BitMap,
    parts: Iterable[Members],
    meeting: BitMap,
    coded: Callable[[Path], Coded],
    numbers: Callable[[Members, Path], Iterator[Numbers]],
) -> NDArray[np.int64]:
    """See View.marked(). Raises IndexDamaged.

    matches: the records
    parts:   the same, some after the other
    meeting: those that meet the condition, among others, too
    coded:   the values of a field as numbers
    numbers: the numbers of a field
    """
    counts = no_masks()
    bits = [np.uint32(1 << number) for number in range(len(findings))]
    tests = [
        _of_value(coded(path), held, bit, matches)
        if isinstance(held, bytes)
        else _of_interval(numbers, path, held, bit)
        for (path, held), bit in zip(findings, bits, strict=True)
    ]
    for members in parts:
        masks = np.zeros(len(members), np.uint32)
        _mark(members.records, meeting & members.records, np.uint32(MATCHING), masks)
        for test in tests:
            test(members, masks)
        counts += np.bincount(masks, minlength=len(counts))
    return counts


def _of_interval(
    numbers: Callable[[Members, Path], Iterator[Numbers]], path: Path, interval: Interval, bit: np.uint32
) -> Callable[[Members, Masks], None]:
    """What sets the bit of records whose number is in the interval."""
    low, high = interval

    def mark(members: Members, masks: Masks) -> None:
        found = np.concatenate([np.empty(0), *(each.hi for each in numbers(members, path))])
        masks |= ((found >= low) & (found < high)).astype(np.uint32) * bit

    return mark


def _of_value(coded: Coded, key: bytes, bit: np.uint32, matches: BitMap) -> Callable[[Members, Masks], None]:
    """What sets the bit of records that have the value with this key, or none (ABSENT_KEY)."""
    if isinstance(coded, BitmapCodes):
        having = coded.having(key, matches)
        return lambda members, masks: _mark(members.records, having & members.records, bit, masks)
    table = np.zeros(len(coded), np.uint32)
    code = 0 if key == ABSENT_KEY else int(coded.code_of([key])[0])
    if code or key == ABSENT_KEY:
        table[code] = bit
    return lambda members, masks: coded.mark(members, table, masks)


def _mark(records: BitMap, some: BitMap, bit: np.uint32, masks: Masks) -> None:
    """Set the bit of some of the records."""
    there = members_of(some)
    if len(there):
        first = records.min()
        is_run = len(records) == records.max() + 1 - first
        masks[there - np.uint32(first) if is_run else np.searchsorted(members_of(records), there)] |= bit
