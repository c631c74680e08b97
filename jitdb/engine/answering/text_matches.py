"""From the values that a text was found in to the records that hold them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from jitdb.engine.text_tests import Texts, joined, matcher_of
from jitdb.errors import QueryCancelled
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.dictionary import codes_of, keys_of
from jitdb.indexes.kinds.roaring import bitmap_of_mask, union_of
from jitdb.indexes.segment import BITMAPS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.indexes.segment import Segment
    from jitdb.operators.nodes.text_match import TextMatch


def size_of(segment: Segment) -> int:
    """The bytes of the segment's values, about."""
    return len(segment.meta) if segment.kind == BITMAPS else segment.body_size


def records_matching(leaf: TextMatch, segment: Segment, cancel: threading.Event | None = None) -> BitMap:
    """The records of a segment, of a dictionary or of bitmaps, whose text the leaf is true of.

    Raises QueryCancelled where `cancel` is set, IndexDamaged.
    """
    if segment.kind == BITMAPS:
        keys = dictionary_of(segment)
        found = _accepted(leaf, Texts.of([keys[number] for number in range(len(keys))]), cancel)
        return union_of(load_bitmap(segment, number) for number in np.flatnonzero(found).tolist())
    accepted = np.append(False, _accepted(leaf, Texts(*keys_of(segment)), cancel))
    return bitmap_of_mask(accepted[codes_of(segment)], segment.first_seq)


def _accepted(leaf: TextMatch, texts: Texts, cancel: threading.Event | None) -> NDArray[np.bool_]:
    """Which of the values the leaf is true of."""
    test = matcher_of(leaf)
    found = []
    for part in texts.parts():
        if cancel is not None and cancel.is_set():
            raise QueryCancelled("the question was cancelled while the values of a field were looked at")
        found.append(test(part))
    return joined(found)
