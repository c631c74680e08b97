"""The locator of the codec "cable": the fields of posts, by kernels, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.digests import blake2b
from jitdb.common.paths import Keys
from jitdb.log.codecs.fields.decoding import Decoder
from jitdb.log.codecs.fields.located import RecordBatch, Rows
from jitdb.stores.cable import post_kernels as kernels
from jitdb.stores.cable.post import INFO
from jitdb.stores.cable.wire import HASH_BYTES
from jitdb.stores.kernel_locator import BROKEN, KernelLocator, laid_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIELDS: Final = {
    "hash": kernels.HASH, "public_key": kernels.PUBLIC_KEY, "signature": kernels.SIGNATURE, "links": kernels.LINKS,
    "post_type": kernels.POST_TYPE, "timestamp": kernels.TIMESTAMP, "channel": kernels.CHANNEL, "text": kernels.TEXT,
    "topic": kernels.TOPIC, "hashes": kernels.HASHES,
}  # fmt: skip
_NO_HASH: Final = bytes(HASH_BYTES)  # in the place of that of what is no post


class PostLocator(KernelLocator):
    """Finds the fields of posts. What an information says is decoded: these posts are few."""

    OTHER, OTHER_IN = kernels.OTHER, 1 + INFO

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        super().__init__(codec, paths, [asked_for(path) for path in paths])

    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        buffer, starts, lengths, states = records.buffer, records.starts, records.lengths, records.states
        found = np.zeros(kernels.FOUND, np.int64)
        return kernels.locate_posts(buffer, starts, lengths, states, self._what, *rows, verdicts, found)

    def _payloads(self, what: int, records: RecordBatch, verdicts: NDArray[np.uint8], row: Rows) -> NDArray[np.uint8]:
        if what == kernels.HASH:
            return _hashes(records, verdicts)
        if what not in (kernels.LINKS, kernels.HASHES):
            return records.buffer
        out, found = laid_out(row), np.zeros(kernels.FOUND, np.int64)
        kernels.write_hashes(what, records.buffer, records.starts, records.lengths, row.kind, row.start, out, found)
        return out


def _hashes(records: RecordBatch, verdicts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The hashes of the posts, one a record, where the kernel says that they are."""
    data, stops = records.buffer.data, (records.starts + records.lengths).tolist()
    places = zip(records.starts.tolist(), stops, verdicts.tolist(), strict=True)
    found = [
        _NO_HASH if verdict == BROKEN else blake2b(data[start:stop], digest_size=HASH_BYTES).digest()
        for start, stop, verdict in places
    ]
    return np.frombuffer(b"".join(found) or _NO_HASH, np.uint8)


def asked_for(path: Keys) -> int:
    """What the kernels are asked for.

    >>> asked_for(("links",)) == kernels.LINKS, asked_for(("info", "name")) == kernels.OTHER
    (True, True)
    """
    if path[:1] == ("info",):
        return kernels.OTHER
    return _FIELDS.get(path[0], kernels.NOTHING) if len(path) == 1 else kernels.NOTHING
