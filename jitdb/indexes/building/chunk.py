"""What a scan hands to the index builders: one run of records, with the wanted fields located in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitdb.common.immutable import Immutable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues, RecordBatch


class Chunk(Immutable):
    """A run of whole records.

    records: their bytes and states
    offsets: int64, where each record begins in the log
    fields:  the asked fields, by row
    """

    __slots__ = __match_args__ = ("records", "offsets", "fields")

    records: RecordBatch
    offsets: NDArray[np.int64]
    fields: Sequence[FieldValues]

    def __init__(self, records: RecordBatch, offsets: NDArray[np.int64], fields: Sequence[FieldValues]) -> None:
        self._keep(records, offsets, fields)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def states(self) -> NDArray[np.uint8]:
        """uint8, LIVE or DELETED."""
        return self.records.states
