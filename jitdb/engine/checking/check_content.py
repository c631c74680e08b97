"""Does an index say of the records what they say themselves? Compared with one that was just built from them.

Two indexes of one spec may be cut into other segments, one may be behind, and hold records that were deleted since;
one may have bitmaps where the other has hashes. So both are brought into one form, and compared record by record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from jitdb.indexes.kinds.content import Content, Places, content_type
from jitdb.indexes.kinds.prefixes import hashes_of_bitmaps
from jitdb.indexes.kinds.roaring import bitmap_of, members_of
from jitdb.indexes.kinds.set import records_in_sets
from jitdb.indexes.segment import BITMAPS, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.spec import IndexSpec


def wrong_records(
    spec: IndexSpec, old: Sequence[Segment], new: Sequence[Segment], dead: BitMap, seqs: NDArray[np.int64] | None = None
) -> BitMap:
    """The records, as `new` numbers them, of which the index `old` says something else, as far as it reaches.

    new:  built from the compared records alone
    dead: those of them that are not to be looked at
    seqs: of each compared record, ascending, its seq in `old`, or -1 where that lacks it; by default all have the same

    Raises IndexDamaged.
    """
    if not old or not new:
        return BitMap()
    told, found = (_content(segments) for segments in _alike(spec, old, new))
    if seqs is None:
        seqs = np.arange(found.count)
    compared = np.flatnonzero((seqs >= 0) & (seqs < told.count))
    left = told.take(Places.chosen(seqs[compared], told.count))
    right = found.take(Places.chosen(compared, found.count))
    wrong = bitmap_of(compared[members_of(left.differing(right))].astype(np.uint32))
    if spec.form == "deleted":  # what was deleted since is no mistake, only what is said to be and is not
        wrong -= records_in_sets(new)
    return wrong - dead


def _alike(
    spec: IndexSpec, old: Sequence[Segment], new: Sequence[Segment]
) -> tuple[Sequence[Segment], Sequence[Segment]]:
    """Bitmaps become hashes where the other index has hashes."""
    kinds = {segment.kind for segment in (*old, *new)}
    if len(kinds) == 1:
        return old, new

    def hashed(segments: Sequence[Segment]) -> list[Segment]:
        return [hashes_of_bitmaps(each, spec.elements) if each.kind == BITMAPS else each for each in segments]

    return hashed(old), hashed(new)


def _content(segments: Sequence[Segment]) -> Content:
    kind = content_type(segments[0].kind)
    return kind.concat([kind.of(segment) for segment in segments])
