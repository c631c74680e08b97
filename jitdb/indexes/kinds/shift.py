"""Segments whose seqs count from somewhere else, put to the place in the log that their records turned out to have.

Whoever scans a range of blocks by itself does not know how many records stand before it. He counts them from 0, and
once that number is known, his segments are cut where a span of the log ends, and moved. Merged with their neighbours
(merge.py), they are byte for byte what one scan of the whole log gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jitdb.indexes.kinds.content import content_type
from jitdb.indexes.kinds.places import Places
from jitdb.indexes.segment import SPAN, Segment


def placed(segment: Segment, first: int, start: int, end_of: Callable[[int], int]) -> Iterator[Segment]:
    """The segments of each span of the log that the records of this one turned out to lie in.

    first:  the seq that the segment's seq 0 has in the log
    start:  where in the log the record before the segment's first one ends; 0 where there is none
    end_of: where in the log a record ends, by the seq that it has in the segment
    """
    low, content = 0, content_type(segment.kind).of(segment)
    while low < segment.count:
        seq = first + segment.first_seq + low
        high = min(segment.count, low + SPAN - seq % SPAN)
        end = end_of(segment.first_seq + high - 1)
        places = Places.chosen(slice(low, high), segment.count, seq % SPAN)
        yield content.take(places).segment((seq, high - low, start, end))
        low, start = high, end
