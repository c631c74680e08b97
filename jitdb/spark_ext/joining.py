"""From the segments of ranges to those of the log: where each range's records stand, what kind an index is, merging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jitdb.errors import IndexDamaged
from jitdb.indexes.bitmap import distinct_keys
from jitdb.indexes.limits import FEW_VALUES, UNKNOWN, too_many, too_many_keys
from jitdb.indexes.merging import merged
from jitdb.indexes.placing import placed
from jitdb.indexes.prefix import hashes_of_bitmaps
from jitdb.indexes.segment import BITMAPS, SPAN, Segment
from jitdb.indexes.spec import IndexSpec
from jitdb.spark_ext.partial import Head, Keys, Partial
from jitdb.spark_ext.wire import unpack
from jitdb.values import ARRAY, MAP


class Place(NamedTuple):
    """Where a range's records stand in the log."""

    first_seq: int
    start: int  # where the last record before them ends; 0 where there is none


class Begin(NamedTuple):
    """Up to where an index holds the log already."""

    seq: int
    offset: int
    name: str  # of its file


def places(heads: Sequence[Head], begins: Sequence[Begin], starts: Sequence[int]) -> dict[int, Place]:
    """The place of each range.

    heads:  of all ranges, in order
    begins: of each index
    starts: of each range, the first byte

    Raises IndexDamaged for an index that counts other records than there are now.
    """
    seq, end = min(begins)[:2]
    counts = {begin.offset: begin for begin in begins}
    found = {}
    for head, start in zip(heads, starts, strict=True):
        begin = counts.get(start)
        if begin is not None and begin.seq != seq:
            raise IndexDamaged(
                f"{begin.seq} records are indexed up to byte {start}, where the log has {seq} of them now: "
                f"a block was damaged or mended since",
                path=begin.name,
            )
        found[head.number] = Place(seq, end)
        if head.records:
            seq, end = seq + head.records, head.end
    return found


def place(
    partial: Partial, where: Place, specs: Sequence[IndexSpec], hashed: set[int]
) -> Iterator[tuple[int, Segment]]:
    """The segments of a range as segments of the log, each with the number of its index.

    `hashed`: those of the indexes that may be either and are of hashes.
    """
    for number, raws in partial.segments.items():
        for segment in map(unpack, raws):
            if number in hashed and segment.kind == BITMAPS:
                segment = hashes_of_bitmaps(segment, specs[number].elements)
            start = partial.end_of(segment.first_seq - 1) if segment.first_seq else where.start
            for each in placed(segment, where.first_seq, start, partial.end_of):
                yield number, each


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


def surely_hashed(number: int, heads: Sequence[Head]) -> bool:
    """Whether one range alone had too many values."""
    return any(head.kinds.get(number, BITMAPS) != BITMAPS for head in heads)


def surely_bitmaps(number: int, heads: Sequence[Head], known: set[bytes], records: int) -> bool:
    """Whether the values cannot be too many even if no two ranges have one in common."""
    every = [head.keys[number] for head in heads if number in head.keys]
    every.append(Keys(len(known), sum(key[0] in (ARRAY, MAP) for key in known), sum(map(len, known))))
    count, containers, size = map(sum, zip(*every, strict=True))
    return containers <= FEW_VALUES and not too_many(count, size, horizon(records))


def keys_of(number: int, partial: Partial) -> set[bytes]:
    """The values of one index in a range, if it is of bitmaps there."""
    return distinct_keys(
        segment for segment in map(unpack, partial.segments.get(number, ())) if segment.kind == BITMAPS
    )


def are_too_many(keys: set[bytes], records: int) -> bool:
    """Whether a field with these values, in a log of so many records, is known by hashes: as the local engine says."""
    return too_many_keys(keys, horizon(records))
