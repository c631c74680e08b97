"""A locator whose kernel finds all fields of a batch in one walk: what stores' codecs have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from jitdb.common.paths import Keys
from jitdb.common.values import ABSENT
from jitdb.log.codecs.fields.constants import DELETED, KEYS, LIVE
from jitdb.log.codecs.fields.decoding import Decoder, DecodingLocator
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch, Rows, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

BROKEN: Final = 0  # the verdict of a kernel on a record that is none, or deleted


class KernelLocator(DecodingLocator):
    """Finds fields by a kernel, and by decoding what few ask for.

    what:       of each path, the number by which the kernel knows what is asked for
    OTHER:      the one of what is decoded
    OTHER_IN:   the verdict of the kernel on the records that may have that
    """

    OTHER: ClassVar[int]
    OTHER_IN: ClassVar[int]

    def __init__(self, codec: Decoder, paths: Sequence[Keys], what: Sequence[int]) -> None:
        super().__init__(codec, paths)
        self._what = np.array(what, np.int32)
        self._rows = Rows.empty(len(paths), 0)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        if not self._paths:
            return [], 0
        self._rows = self._rows.with_room(len(records))
        rows = self._rows.fitted(len(records))
        verdicts, broken = self._judged(records, rows)
        found = [
            FieldValues(KEYS, self._payloads(what, records, verdicts, Rows(*row)), *row)
            for what, row in zip(self._what.tolist(), zip(*rows, strict=True), strict=True)
        ]
        for place, values in self._decoded(records, verdicts):
            found[place] = values
        return found, broken

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        verdicts, _ = self._judged(records, Rows.empty(len(self._paths), len(records)))
        return np.flatnonzero((records.states == LIVE) & (verdicts == BROKEN))

    def _judged(self, records: RecordBatch, rows: Rows) -> tuple[NDArray[np.uint8], int]:
        verdicts = np.empty(len(records), np.uint8)
        return verdicts, self._locate(records, rows, verdicts)

    def _decoded(self, records: RecordBatch, verdicts: NDArray[np.uint8]) -> list[tuple[int, FieldValues]]:
        """What is OTHER, by its place among the paths."""
        places = np.flatnonzero(self._what == self.OTHER).tolist()
        if not places:
            return []
        states = np.where(verdicts == self.OTHER_IN, LIVE, DELETED).astype(np.uint8)
        batch = RecordBatch(records.buffer, records.starts, records.lengths, states, records.offsets)
        fields, _ = DecodingLocator(self._codec, [self._paths[place] for place in places]).fields(batch)
        return list(zip(places, fields, strict=True))

    @abstractmethod
    def _locate(self, records: RecordBatch, rows: Rows, verdicts: NDArray[np.uint8]) -> int:
        """Have the kernel fill the rows, and the verdict on each record; how many live ones are broken."""

    @abstractmethod
    def _payloads(self, what: int, records: RecordBatch, verdicts: NDArray[np.uint8], row: Rows) -> NDArray[np.uint8]:
        """Where the payloads of one row lie: among the records, or in a buffer of their own."""


def laid_out(row: Rows) -> NDArray[np.uint8]:
    """A buffer for what takes so much room (`number`, bytes) as parts, one behind the other; `start` and `length` say
    where.
    """
    sizes = np.zeros(len(row.kind), np.int64)
    np.copyto(sizes, row.number, where=row.kind != ABSENT, casting="unsafe")
    row.start[:], total = starts_of(sizes)
    row.length[:] = sizes
    return np.empty(max(total, 1), np.uint8)
