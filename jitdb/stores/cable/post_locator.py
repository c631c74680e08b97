"""The locator of the codec "cable": the fields of posts, by kernels, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields.constants import DELETED, KEYS, LIVE
from jitdb.log.codecs.fields.decoding import Decoder, DecodingLocator
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows, starts_of
from jitdb.stores.cable import post_kernels as kernels
from jitdb.stores.cable.post import INFO

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIELDS: Final = {
    "hash": kernels.HASH, "public_key": kernels.PUBLIC_KEY, "signature": kernels.SIGNATURE, "links": kernels.LINKS,
    "post_type": kernels.POST_TYPE, "timestamp": kernels.TIMESTAMP, "channel": kernels.CHANNEL, "text": kernels.TEXT,
    "topic": kernels.TOPIC, "hashes": kernels.HASHES,
}  # fmt: skip


class PostLocator(DecodingLocator):
    """Finds the fields of posts. What an information says is decoded: these posts are few."""

    def __init__(self, codec: Decoder, paths: Sequence[Path]) -> None:
        super().__init__(codec, paths)
        self._what = np.array([asked_for(path) for path in paths], np.int32)
        self._rows = Rows.empty(len(paths), 0)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        if not len(self._what):
            return [], 0
        self._rows = self._rows.with_room(len(records))
        rows = self._rows.fitted(len(records))
        verdicts, broken = self._locate(records, rows)
        decoded = iter(self._decoded(records, verdicts))
        found = []
        for what, row in zip(self._what.tolist(), zip(*rows, strict=True), strict=True):
            if what == kernels.OTHER:
                found.append(next(decoded))
            else:
                found.append(FieldValues(KEYS, self._payloads(what, records, verdicts, *row), *row))
        return found, broken

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        verdicts, _ = self._locate(records, Rows.empty(len(self._what), len(records)))
        return np.flatnonzero((records.states == LIVE) & (verdicts == kernels.BROKEN))

    def _locate(self, records: RecordBatch, rows: Rows) -> tuple[NDArray[np.uint8], int]:
        verdicts, found = np.empty(len(records), np.uint8), np.zeros(kernels.FOUND, np.int64)
        buffer, starts, lengths, states, _ = (getattr(records, name) for name in RecordBatch.__slots__)
        broken = kernels.locate_posts(buffer, starts, lengths, states, self._what, *rows, verdicts, found)
        return verdicts, broken

    def _payloads(
        self, what: int, records: RecordBatch, verdicts: NDArray[np.uint8], kind: NDArray[np.uint8],
        start: NDArray[np.int32], length: NDArray[np.int32], number: NDArray[np.float64],
    ) -> NDArray[np.uint8]:  # fmt: skip
        """Where the payloads of a row lie: among the records, or in a buffer of their own."""
        if what == kernels.HASH:
            out = np.empty(32 * len(records) or 1, np.uint8)
            scratch = np.empty(kernels.SCRATCH, np.uint64)
            kernels.hash_posts(records.buffer, records.starts, records.lengths, verdicts, out, scratch)
            return out
        if what not in (kernels.LINKS, kernels.HASHES):
            return records.buffer
        sizes = np.zeros(len(kind), np.int64)
        np.copyto(sizes, number, where=kind != ABSENT, casting="unsafe")
        start[:], total = starts_of(sizes)
        length[:] = sizes
        out = np.empty(max(total, 1), np.uint8)
        found = np.zeros(kernels.FOUND, np.int64)
        kernels.write_hashes(what, records.buffer, records.starts, records.lengths, kind, start, out, found)
        return out

    def _decoded(self, records: RecordBatch, verdicts: NDArray[np.uint8]) -> list[FieldValues]:
        """What is asked of information, by decoding that."""
        paths = [path for path, what in zip(self._paths, self._what, strict=True) if what == kernels.OTHER]
        if not paths:
            return []
        states = np.where(verdicts == 1 + INFO, LIVE, DELETED).astype(np.uint8)
        batch = RecordBatch(records.buffer, records.starts, records.lengths, states, records.offsets)
        return DecodingLocator(self._codec, paths).fields(batch)[0]


def asked_for(path: Path) -> int:
    """What the kernels are asked for.

    >>> asked_for(("links",)) == kernels.LINKS, asked_for(("info", "name")) == kernels.OTHER
    (True, True)
    """
    if path[:1] == ("info",):
        return kernels.OTHER
    return _FIELDS.get(path[0], kernels.NOTHING) if len(path) == 1 else kernels.NOTHING
