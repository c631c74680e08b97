"""The locator of the codec "cable": the fields of posts, by kernels, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.log.codecs.fields.constants import DELETED, KEYS, LIVE
from jitdb.log.codecs.fields.decoding import Decoder, DecodingLocator
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows
from jitdb.stores.cable import post_kernels as kernels
from jitdb.stores.cable.post import INFO
from jitdb.stores.kernel_locator import KernelLocator, laid_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIELDS: Final = {
    "hash": kernels.HASH, "public_key": kernels.PUBLIC_KEY, "signature": kernels.SIGNATURE, "links": kernels.LINKS,
    "post_type": kernels.POST_TYPE, "timestamp": kernels.TIMESTAMP, "channel": kernels.CHANNEL, "text": kernels.TEXT,
    "topic": kernels.TOPIC, "hashes": kernels.HASHES,
}  # fmt: skip


class PostLocator(KernelLocator):
    """Finds the fields of posts. What an information says is decoded: these posts are few."""

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        super().__init__(codec, paths)
        self._what = np.array([asked_for(path) for path in paths], np.int32)

    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        buffer, starts, lengths, states, _ = (getattr(records, name) for name in RecordBatch.__slots__)
        found = np.zeros(kernels.FOUND, np.int64)
        return kernels.locate_posts(buffer, starts, lengths, states, self._what, *rows, verdicts, found)

    def _found(self, records: RecordBatch, verdicts: NDArray[np.uint8], rows: Rows) -> list[FieldValues]:
        decoded = iter(self._decoded(records, verdicts))
        return [
            next(decoded)
            if what == kernels.OTHER
            else FieldValues(KEYS, self._payloads(what, records, verdicts, *row), *row)
            for what, row in zip(self._what.tolist(), zip(*rows, strict=True), strict=True)
        ]

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
        out = laid_out(kind, start, length, number)
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


def asked_for(path: Keys) -> int:
    """What the kernels are asked for.

    >>> asked_for(("links",)) == kernels.LINKS, asked_for(("info", "name")) == kernels.OTHER
    (True, True)
    """
    if path[:1] == ("info",):
        return kernels.OTHER
    return _FIELDS.get(path[0], kernels.NOTHING) if len(path) == 1 else kernels.NOTHING
