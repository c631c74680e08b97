"""The locator of the codec "hyperdb": the fields of a feed's records, by kernels, as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from re import fullmatch
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.decoding import Decoder
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows
from jitdb.log.codecs.fields.part_kernels import HEAD
from jitdb.stores.hyperdb.format import entry_kernels as kernels
from jitdb.stores.kernel_locator import KernelLocator, laid_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIELDS: Final = {
    "key": kernels.KEY, "value": kernels.VALUE, "deleted": kernels.DELETED, "trie": kernels.TRIE,
    "clock": kernels.CLOCK, "inflate": kernels.INFLATE, "feeds": kernels.FEEDS, "contentFeed": kernels.CONTENT_FEED,
    "protocol": kernels.PROTOCOL, "path": kernels.PATH,
}  # fmt: skip
_WRITTEN: Final = (kernels.CLOCK, kernels.FEEDS, kernels.PATH)  # what stands in no record as it is
_LEAST: Final = 2 * HEAD + 1  # bytes of a segment and its number as parts of a map


class EntryLocator(KernelLocator):
    """Finds the fields of entries."""

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        super().__init__(codec, paths)
        asked = np.array([asked_for(path) for path in paths], np.int32).reshape(-1, 2).T
        self._what, self._segment = map(np.ascontiguousarray, asked)

    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        buffer, starts, lengths, states, _ = (getattr(records, name) for name in RecordBatch.__slots__)
        found = np.empty(kernels.FOUND, np.int64)
        return kernels.locate_entries(
            buffer, starts, lengths, states, self._what, self._segment, *rows, verdicts, found
        )

    def _found(self, records: RecordBatch, verdicts: NDArray[np.uint8], rows: Rows) -> list[FieldValues]:
        return [
            self._written(what, records, *row) if what in _WRITTEN else FieldValues(KEYS, records.buffer, *row)
            for what, row in zip(self._what.tolist(), zip(*rows, strict=True), strict=True)
        ]

    def _written(
        self, what: int, records: RecordBatch, kind: NDArray[np.uint8], start: NDArray[np.int32],
        length: NDArray[np.int32], number: NDArray[np.float64],
    ) -> FieldValues:  # fmt: skip
        """The arrays or maps that take so much room (`number`), in a buffer of their own."""
        out = laid_out(kind, start, length, number)
        begins = np.empty(int(length.max(initial=0)) // _LEAST + 1, np.int64)
        found = np.empty(kernels.FOUND, np.int64)
        kernels.write_parts(what, records.buffer, records.starts, records.lengths, kind, start, out, begins, found)
        return FieldValues(KEYS, out, kind, start, length, number)


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
