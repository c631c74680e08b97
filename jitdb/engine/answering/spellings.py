"""Values that are there in another form, too: `ERROR` beside `error`, `"200"` beside 200."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitdb.indexes.kinds.bitmaps import dictionary_of

if TYPE_CHECKING:
    from jitdb.indexes.segment import Segment
    from jitdb.operators.nodes.operation import Operation


def spelled_otherwise(leaf: Operation, segments: Sequence[Segment]) -> list[Operation]:
    """The leaf with each value that these bitmaps hold and that may have been meant, too. Reads no record."""
    dictionaries = list(map(dictionary_of, segments))
    wanted = ((other, other.bitmap) for other in leaf.others())
    return [
        other
        for other, bitmap in wanted
        if bitmap is not None and any(dictionary.find(bitmap[1]) >= 0 for dictionary in dictionaries)
    ]
