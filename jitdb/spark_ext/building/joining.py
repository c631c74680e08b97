"""From the segments of ranges to those of the log: where each range's records stand, what kind an index is, merging."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jitdb.indexes.kinds.bitmaps import (
    FEW_VALUES,
    MAX_VALUE_BYTES,
    MAX_VALUES,
    UNKNOWN,
    distinct_keys,
    too_many,
    too_many_keys,
)
from jitdb.indexes.kinds.content import merged, placed
from jitdb.indexes.kinds.offsets import with_damaged
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.segment import BITMAPS, OFFSETS, SPAN, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.spark_ext.building.scanning import Begin, Partial, RangeHead, counted, pack, unpack
from jitdb.spark_ext.errors import sends_errors

Key = tuple[int, int]  # the numbers of an index and of a span


class Place(NamedTuple):
    """Where a range's records stand in the log."""

    first_seq: int
    start: int  # where the last record before them ends; 0 where there is none


def places(heads: Sequence[RangeHead], first: Begin) -> dict[int, Place]:
    """The place of each range.

    heads:  of all ranges, in order
    first:  of the index that holds least of the log
    """
    seq, end = first.seq, first.offset
    found = {}
    for head in heads:
        found[head.number] = Place(seq, end)
        if head.records:
            seq, end = seq + head.records, head.end
    return found


def misfits(begins: Sequence[Begin], counts: dict[int, int]) -> list[tuple[int, str]]:
    """The numbers of the indexes that count other records than there are now, and what is wrong with each.

    counts: how many records there are before the first byte of each range
    """
    return [
        (
            number,
            f"{begin.seq} records are indexed up to byte {begin.offset}, where the log has {counts[begin.offset]} of "
            f"them now: a block was damaged or repaired since",
        )
        for number, begin in enumerate(begins)
        if begin.seq != counts[begin.offset]
    ]


class Placing(NamedTuple):
    """What must be known to put the segments of ranges to their places.

    places:  of each range
    hashed:  the numbers of those indexes that may be either and are of hashes
    corrupt: the numbers of all damaged blocks of the log that were found, ascending
    """

    places: dict[int, Place]
    specs: list[IndexSpec]
    hashed: set[int]
    corrupt: list[int]
    block_size: int

    def of(self, partial: Partial) -> Iterator[tuple[int, Segment]]:
        """The segments of a range as segments of the log, each with the number of its index."""
        where = self.places[partial.head.number]
        for number, raws in partial.segments.items():
            if number in self.hashed and number in partial.hashes:
                raws = (partial.hashes[number],)
            for segment in map(unpack, raws):
                if number in self.hashed and segment.kind == BITMAPS:
                    segment = hashes_of_bitmaps(segment, self.specs[number].is_owned)
                start = partial.end_of(segment.first_seq - 1) if segment.first_seq else where.start
                for each in placed(segment, where.first_seq, start, partial.end_of):
                    yield number, self._listing(each) if each.kind == OFFSETS else each

    def _listing(self, segment: Segment) -> Segment:
        """The segment of offsets with the damaged blocks that begin in it: it may reach back into an earlier range."""
        first, end = (-(-at // self.block_size) for at in (segment.first_offset, segment.end_offset))
        return with_damaged(segment, self.corrupt[bisect_left(self.corrupt, first) : bisect_left(self.corrupt, end)])


def span_of(segment: Segment) -> int:
    """The number of the span that a segment lies in."""
    return segment.first_seq // SPAN


def joined(segments: Iterable[Segment]) -> Segment:
    """One segment of those of one index and span, in any order."""
    return merged(sorted(segments, key=lambda segment: segment.first_seq))


# --- bitmaps or hashes -----------------------------------------------------------------------------------------------


def horizon(records: int) -> int:
    """The number of records by which a scan that ends with so many judges: it ends with a full span, or in one."""
    return records if records % SPAN else UNKNOWN


def surely_hashed(number: int, heads: Sequence[RangeHead], records: int) -> bool:
    """Whether one range alone has too many values."""
    if any(head.kinds.get(number, BITMAPS) != BITMAPS for head in heads):
        return True
    alone = [head.keys[number] for head in heads if number in head.keys]
    return any(too_many(keys.distinct, keys.bytes, horizon(records)) for keys in alone)


def surely_bitmaps(number: int, heads: Sequence[RangeHead], known: set[bytes], records: int) -> bool:
    """Whether the values cannot be too many even if no two ranges have one in common."""
    every = [head.keys[number] for head in heads if number in head.keys]
    count, containers, size = map(sum, zip(*every, counted(known), strict=True))
    return containers <= FEW_VALUES and not too_many(count, size, horizon(records))


def keys_of(number: int, partial: Partial) -> set[bytes]:
    """The values of one index in a range, if it is of bitmaps there."""
    return distinct_keys(
        segment for segment in map(unpack, partial.segments.get(number, ())) if segment.kind == BITMAPS
    )


def are_too_many(keys: set[bytes], records: int) -> bool:
    """Whether a field with these values, in a log of so many records, is known by hashes: as the local engine says."""
    return too_many_keys(keys, horizon(records))


# --- in a task -------------------------------------------------------------------------------------------------------


@sends_errors
def values_in(partial: Partial, numbers: Sequence[int]) -> dict[int, set[bytes] | None]:
    """The values that these indexes hold in a range; None for too many of them."""
    return {number: _bounded(keys_of(number, partial)) for number in numbers}


def values_in_both(
    left: dict[int, set[bytes] | None], right: dict[int, set[bytes] | None]
) -> dict[int, set[bytes] | None]:
    """Those of two sets of ranges."""
    both: dict[int, set[bytes] | None] = {}
    for number in left:
        mine, others = left[number], right[number]
        both[number] = None if mine is None or others is None else _bounded(mine | others)
    return both


def _bounded(keys: set[bytes]) -> set[bytes] | None:
    """The keys, or None once they are more than any log's verdict allows: whoever unites them needs no more room."""
    return None if are_unbounded(keys) else keys


def are_unbounded(keys: set[bytes]) -> bool:
    """Whether they are more than any log's verdict allows."""
    return len(keys) > MAX_VALUES or sum(map(len, keys)) > MAX_VALUE_BYTES


@sends_errors
def place_packed(placing: Placing, partial: Partial) -> Iterator[tuple[Key, bytes]]:
    """The segments of a range at their places in the log, packed, each by its index and span."""
    for number, segment in placing.of(partial):
        yield (number, span_of(segment)), pack(segment)


@sends_errors
def join_packed(raws: Iterable[Any]) -> bytes:
    """The one segment of an index and a span, packed."""
    return pack(joined(unpack(bytes(raw)) for raw in raws))
