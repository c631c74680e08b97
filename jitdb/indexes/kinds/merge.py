"""One segment in place of several of the same span, whatever their kind. The result does not tell how they were cut."""

from __future__ import annotations

from collections.abc import Sequence

from jitdb.indexes.kinds.content import content_type
from jitdb.indexes.segment import Run, Segment


def merged(segments: Sequence[Segment]) -> Segment:
    """One segment of adjacent ones of one kind and one span, in order. Raises IndexDamaged."""
    if len(segments) == 1:
        return segments[0]
    last, kind = segments[-1], content_type(segments[-1].kind)
    made = kind.concat([kind.of(segment) for segment in segments]).segment(run_of(segments))
    return made.changed(last_crc=last.last_crc, journal=last.journal)


def run_of(segments: Sequence[Segment]) -> Run:
    """What adjacent segments cover together."""
    first, last = segments[0], segments[-1]
    return first.first_seq, last.end_seq - first.first_seq, first.first_offset, last.end_offset
