"""The locator of the codec "hyperdb": the fields of a feed's records, by kernels, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from re import fullmatch
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.log.codecs.fields.decoding import Decoder
from jitdb.log.codecs.fields.located import RecordBatch, Rows
from jitdb.stores.hyperdb.format import entry_kernels as kernels
from jitdb.stores.kernel_locator import KernelLocator, laid_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIELDS: Final = {
    "key": kernels.KEY, "value": kernels.VALUE, "deleted": kernels.DELETED, "trie": kernels.TRIE,
    "clock": kernels.CLOCK, "inflate": kernels.INFLATE, "feeds": kernels.FEEDS, "contentFeed": kernels.CONTENT_FEED,
    "protocol": kernels.PROTOCOL, "path": kernels.OTHER,
}  # fmt: skip


class EntryLocator(KernelLocator):
    """Finds the fields of entries. A path as a whole is decoded: its segments are what is asked for."""

    OTHER, OTHER_IN = kernels.OTHER, kernels.ENTRY

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        asked = [asked_for(path) for path in paths]
        super().__init__(codec, paths, [what for what, _ in asked])
        self._segment = np.array([segment for _, segment in asked], np.int32)

    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        buffer, starts, lengths, states = records.buffer, records.starts, records.lengths, records.states
        found = np.empty(kernels.FOUND, np.int64)
        return kernels.locate_entries(
            buffer, starts, lengths, states, self._what, self._segment, *rows, verdicts, found
        )

    def _payloads(self, what: int, records: RecordBatch, verdicts: NDArray[np.uint8], row: Rows) -> NDArray[np.uint8]:
        if what not in (kernels.CLOCK, kernels.FEEDS):
            return records.buffer
        out = laid_out(row)
        kernels.write_parts(what, records.buffer, records.starts, records.lengths, row.kind, row.start, out)
        return out


def asked_for(path: Keys) -> tuple[int, int]:
    """What the kernels are asked for: a field's number, and which segment.

    >>> asked_for(("path", "2")) == (kernels.SEGMENT, 2), asked_for(("path", "02")) == (kernels.NOTHING, 0)
    (True, True)
    """
    if len(path) == 1:
        return _FIELDS.get(path[0], kernels.NOTHING), 0
    if len(path) == 2 and path[0] == "path" and fullmatch("0|[1-9][0-9]{0,8}", path[1]):
        return kernels.SEGMENT, int(path[1])
    return kernels.NOTHING, 0
