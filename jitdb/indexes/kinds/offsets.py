"""Where each record lies, and which blocks of the log are damaged. Segment kind OFFSETS (docs/format-index.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jitdb.indexes.kinds.content import Content
from jitdb.indexes.kinds.roaring import differing
from jitdb.indexes.segment import OFFSETS, Run, Segment, make_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.kinds.content import Places


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, not copied."""
    import numpy as np

    return memoryview(np.ascontiguousarray(array).view(np.uint8).data)


def load_offsets(segment: Segment, *, keep: bool = True) -> NDArray[np.int64]:
    """The offset of each record. Raises IndexDamaged."""
    import numpy as np

    return np.frombuffer(segment.blob(0, keep=keep), "<i8")


def all_offsets(segments: Iterable[Segment]) -> NDArray[np.int64]:
    """The offsets of all records of these segments. Raises IndexDamaged."""
    import numpy as np

    return np.concatenate([np.empty(0, np.int64), *map(load_offsets, segments)])


def damaged_blocks(segments: Iterable[Segment]) -> set[int]:
    """The numbers of the blocks that were found damaged, from OFFSETS segments."""
    metas = [segment.meta for segment in segments if segment.meta]
    return {block for meta in metas for (block,) in struct.iter_unpack("<q", meta)}


def with_damaged(segment: Segment, blocks: Iterable[int]) -> Segment:
    """The OFFSETS segment, with these blocks in its list too."""
    return segment.changed(meta=_listed({*damaged_blocks([segment]), *blocks}))


def _listed(blocks: Iterable[int]) -> bytes:
    numbers = sorted(set(blocks))
    return struct.pack(f"<{len(numbers)}q", *numbers)


class Offsets(Content):
    """An offset a record; and the damaged blocks."""

    def __init__(self, offsets: NDArray[np.int64], first: int, damaged: Iterable[int] = ()) -> None:
        self.offsets = offsets
        self.first, self.count = first, len(offsets)
        self._damaged = damaged

    @staticmethod
    def fits(segment: Segment) -> bool:
        if len(segment.meta) % 8:
            return False
        listed = all(0 <= block < segment.end_offset for block in damaged_blocks([segment]))
        return listed and [*segment.table.lengths] == [8 * segment.count]

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        import numpy as np

        offsets = np.frombuffer(blob, "<i8")
        inside = segment.first_offset <= offsets[0] and offsets[-1] < segment.end_offset
        return bool(inside and (offsets[1:] > offsets[:-1]).all())

    @classmethod
    def of(cls, segment: Segment) -> Offsets:
        return cls(load_offsets(segment), segment.first_in_span, damaged_blocks([segment]))

    def take(self, places: Places) -> Offsets:
        # Which damaged blocks begin in them depends on what stands before: whoever places them lists those.
        return Offsets(places.column(self.offsets), places.first)

    @classmethod
    def concat(cls, parts: Sequence[Offsets]) -> Offsets:
        import numpy as np

        damaged = {block for part in parts for block in part._damaged}
        return cls(np.concatenate([part.offsets for part in parts]), parts[0].first, damaged)

    def segment(self, run: Run) -> Segment:
        return make_segment(OFFSETS, run, _listed(self._damaged), [bytes_of(self.offsets.astype("<i8", copy=False))])

    def differing(self, other: Offsets) -> BitMap:
        return differing(self.offsets, other.offsets)
