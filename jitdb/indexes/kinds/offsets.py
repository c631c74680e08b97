"""Where each record lies, and which blocks of the log are damaged. Segment kind OFFSETS (docs/format-index.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from jitdb.indexes.kinds.content import Content
from jitdb.indexes.kinds.roaring import differing
from jitdb.indexes.segment import OFFSETS, Blob, Run, Segment, make_segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.kinds.content import Places


_FIRST: Final = struct.Struct("<q")  # the offset of the first record; the others' follow as distances from it


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array, not copied."""
    import numpy as np

    return memoryview(np.ascontiguousarray(array).view(np.uint8).data)


def load_offsets(segment: Segment, *, keep: bool = True) -> NDArray[np.int64]:
    """The offset of each record. `keep`: as for blob(). Raises IndexDamaged."""
    return segment.decoded(0, 8 * segment.count, partial(_unpacked, segment.count), keep=keep)


def _unpacked(count: int, blob: Blob) -> NDArray[np.int64]:
    import numpy as np

    (first,) = _FIRST.unpack_from(blob)
    distances = np.frombuffer(blob, f"<u{(len(blob) - _FIRST.size) // count}", offset=_FIRST.size)
    offsets: NDArray[np.int64] = distances.astype(np.int64)
    offsets += first
    return offsets


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
        return listed and [*segment.table.lengths] in [[_FIRST.size + width * segment.count] for width in (4, 8)]

    @staticmethod
    def is_inside(segment: Segment, number: int, blob: bytes) -> bool:
        offsets = _unpacked(segment.count, blob)
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
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        from_first = (self.offsets - first).astype("<u4" if last - first < 1 << 32 else "<u8")
        blob = _FIRST.pack(first) + bytes_of(from_first)
        return make_segment(OFFSETS, run, _listed(self._damaged), [blob])

    def differing(self, other: Offsets) -> BitMap:
        return differing(self.offsets, other.offsets)
