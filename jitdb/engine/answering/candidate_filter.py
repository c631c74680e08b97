"""Checking candidates: an index of prefixes names records that may match, and the records themselves decide. Of a
question about text, an index of values names those that match.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyroaring import BitMap

from jitdb.common import memory
from jitdb.common.arguments import failing
from jitdb.common.paths import Path, before_any
from jitdb.common.values import ARRAY, MAP, UNDEFINED
from jitdb.errors import QueryCancelled
from jitdb.indexes.kinds.bitmaps import dictionary_of, load_bitmap
from jitdb.indexes.kinds.casting import list_inside, locator_of
from jitdb.indexes.kinds.dictionary import codes_of, keys_of
from jitdb.indexes.kinds.offsets import offsets_at
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask, members_of, union_of
from jitdb.indexes.segment import BITMAPS
from jitdb.log.codecs.containers import values_in
from jitdb.operators.nodes.literals import seek_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.records import Records
    from jitdb.engine.text_tests import Texts
    from jitdb.indexes.segment import Segment
    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.operators.nodes.operation import Operation

BATCH: Final = 8192  # candidates read at a time: some MiB
BATCH_BYTES: Final = 512 << 20  # they never take more: kernels count positions in 31 bits
FEW: Final = 256  # below, finding a field in Python takes less than loading the kernels


class CandidateFilter:
    """Reads candidates and keeps those that match. Deleted ones match nothing.

    Guarded by the engine's lock, unless it is given the segments that say where the records lie. QueryCancelled ends
    it when `cancel` is set.
    """

    def __init__(
        self, records: Records, segments: list[Segment] | None = None, cancel: threading.Event | None = None
    ) -> None:
        self._records = records
        self._segments = segments
        self._cancel = cancel

    def matches(self, leaf: Operation, found: BitMap) -> BitMap:
        """Those of the candidates that the leaf is true of."""
        if leaf.seek is not None:
            seek, codec = failing(leaf.seek, seek_name(leaf.seek)), self._records.log.codec

            def sought(record: bytes) -> Any:
                self._look_up()
                position = seek(record, 0)
                if position is None or not 0 <= position < len(record):
                    return UNDEFINED
                return codec.decode_at(record, position)

            return self._one_by_one(found, lambda record: leaf.of_value(sought(record)))
        (path,), payload = leaf.paths, leaf.payload
        if len(found) >= FEW and payload is not None:
            kind = payload[0][0]
            if kind in (ARRAY, MAP):
                return self._located(found, path, partial(_equal_containers, leaf, kind))
            return self._located(found, path, partial(_equal_payloads, *payload))
        values = partial(values_in, self._records.log.codec)
        return self._one_by_one(found, lambda record: any(map(leaf.of_value, values(record, path))))

    def _batches(self, found: BitMap) -> Iterator[tuple[NDArray[np.uint32], list[bytes]]]:
        seqs, block_size = members_of(found), self._records.log.block_size
        batch = max(1, min(BATCH, memory.work(BATCH_BYTES) // block_size))
        start = 0
        while start < len(seqs):
            self._look_up()
            part = seqs[start : start + batch]
            known = self._segments
            offsets = self._records.offsets_of(part) if known is None else offsets_at(known, part)
            if not self._records.log.framing.is_blocked:  # as many as do not take too much
                whole = self._fitting(part, offsets)
                part, offsets = part[:whole], offsets[:whole]
            elif start + batch < len(seqs):  # up to where a block begins, if there is one: no block is read twice
                whole = int(offsets.searchsorted(offsets[-1] - offsets[-1] % block_size)) or len(part)
                part, offsets = part[:whole], offsets[:whole]
            start += len(part)
            records = self._records.read(offsets)
            live = np.array([record is not None for record in records], np.bool_)
            yield part[live], [record for record in records if record is not None]

    def _fitting(self, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]) -> int:
        """How many of these records take no more than that together; one at least."""
        records = self._records
        known = records.offset_segments() if self._segments is None else self._segments
        following = np.minimum(seqs + np.uint32(1), np.uint32(known[-1].end_seq - 1))
        ends = offsets_at(known, following)
        ends[following == seqs] = records.log.durable_end
        return max(1, int(np.cumsum(ends - offsets).searchsorted(memory.work(BATCH_BYTES), side="right")))

    def _look_up(self) -> None:
        """Raise QueryCancelled if the question was cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            raise QueryCancelled("the question was cancelled while its candidates were read")

    def _one_by_one(self, found: BitMap, accepts: Callable[[bytes], bool]) -> BitMap:
        kept: list[int] = []
        for seqs, records in self._batches(found):
            kept += [seq for seq, record in zip(seqs.tolist(), records, strict=True) if accepts(record)]
        return BitMap(kept)

    def _located(self, found: BitMap, path: Path, accepts: Callable[[FieldValues], NDArray[np.bool_]]) -> BitMap:
        """The candidates whose field, found by the kernels, is accepted: many values at once."""
        from jitdb.log.codecs.fields.located import RecordBatch

        single = before_any(path)
        locator = locator_of(self._records.log.codec, [single])
        kept = [np.empty(0, np.uint32)]
        for seqs, records in self._batches(found):
            if len(records):
                (values,), _ = locator.fields(RecordBatch.of(records))
                if single == path:
                    kept.append(seqs[accepts(values)])
                else:
                    values, owners = list_inside(values, path[len(single) :])
                    kept.append(seqs[np.unique(owners[accepts(values)])])
        return bitmap_of(np.concatenate(kept))


def _equal_containers(leaf: Operation, kind: int, values: FieldValues) -> NDArray[np.bool_]:
    """Which arrays, or maps, the leaf holds of. Those of the same bytes are decoded once."""
    from jitdb.log.codecs.containers import decode_container

    mask: NDArray[np.bool_] = values.kind == kind
    known: dict[bytes, bool] = {}
    for place in np.flatnonzero(mask).tolist():
        payload = values.payload(place)
        found = known.get(payload)
        if found is None:
            found = known[payload] = leaf.holds(decode_container(values.encoding, kind, payload))
        mask[place] = found
    return mask


def _equal_payloads(key: bytes, whole: bool, values: FieldValues) -> NDArray[np.bool_]:
    """Which values have this key (`whole`), or one that begins with it; it is none of an array or map."""
    from jitdb.engine.text_kernels import equal_payloads

    mask = np.empty(len(values.kind), np.bool_)
    payload = np.frombuffer(key[1:] or b"\0", np.uint8)
    equal_payloads(*values.arrays, len(mask), key[0], payload, len(key) - 1, whole, mask)
    return mask


def size_of(segment: Segment) -> int:
    """The bytes of the segment's values, about."""
    return len(segment.meta) if segment.kind == BITMAPS else segment.body_size


def records_matching(leaf: Operation, segment: Segment, cancel: threading.Event | None = None) -> BitMap:
    """The records of a segment, of a dictionary or of bitmaps, whose value the leaf is true of.

    Raises QueryCancelled where `cancel` is set, IndexDamaged.
    """
    from jitdb.engine.text_tests import Texts

    if segment.kind == BITMAPS:
        keys = dictionary_of(segment)
        found = _accepted(leaf, Texts.of(list(keys)), cancel)
        return union_of(load_bitmap(segment, number) for number in np.flatnonzero(found).tolist())
    accepted = np.append(False, _accepted(leaf, Texts(*keys_of(segment)), cancel))
    return bitmap_of_mask(accepted[codes_of(segment)], segment.first_seq)


def _accepted(leaf: Operation, texts: Texts, cancel: threading.Event | None) -> NDArray[np.bool_]:
    """Which of the values the leaf is true of."""
    from jitdb.engine.text_tests import joined, matcher_of

    test = matcher_of(leaf)
    found = []
    for part in texts.parts():
        if cancel is not None and cancel.is_set():
            raise QueryCancelled("the question was cancelled while the values of a field were looked at")
        found.append(test(part))
    return joined(found)
