"""A locator whose kernel finds all fields of a batch in one walk: what stores' codecs have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields.constants import LIVE
from jitdb.log.codecs.fields.decoding import Decoder, DecodingLocator
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

BROKEN: Final = 0  # the verdict of a kernel on a record that is none


class KernelLocator(DecodingLocator):
    """Finds fields by a kernel; what it cannot find, subclasses decode."""

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        super().__init__(codec, paths)
        self._rows = Rows.empty(len(paths), 0)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        if not self._paths:
            return [], 0
        self._rows = self._rows.with_room(len(records))
        rows = self._rows.fitted(len(records))
        verdicts, broken = self._judged(records, rows)
        return self._found(records, verdicts, rows), broken

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        verdicts, _ = self._judged(records, Rows.empty(len(self._paths), len(records)))
        return np.flatnonzero((records.states == LIVE) & (verdicts == BROKEN))

    def _judged(self, records: RecordBatch, rows: Rows) -> tuple[NDArray[np.uint8], int]:
        verdicts = np.empty(len(records), np.uint8)
        return verdicts, self._locate(records, rows, verdicts)

    @abstractmethod
    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        """Have the kernel fill the rows, and the verdict on each record; how many live ones are broken."""

    @abstractmethod
    def _found(self, records: RecordBatch, verdicts: NDArray[np.uint8], rows: Rows) -> list[FieldValues]:
        """What each path finds."""


def laid_out(
    kind: NDArray[np.uint8], start: NDArray[np.int32], length: NDArray[np.int32], number: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """A buffer for what takes so much room (`number`, bytes) as parts, one behind the other; `start` and `length` say
    where.
    """
    sizes = np.zeros(len(kind), np.int64)
    np.copyto(sizes, number, where=kind != ABSENT, casting="unsafe")
    start[:], total = starts_of(sizes)
    length[:] = sizes
    return np.empty(max(total, 1), np.uint8)
