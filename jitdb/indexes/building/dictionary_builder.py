"""Building a dictionary-encoded column: workers number the values that they see, and a run's numbers are made one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.indexes.building.builders import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.dictionary import DictionaryColumn, numbered
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.numbering_kernels import NO_RECORD
from jitdb.indexes.segment import SPAN, Run, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALUES: Final = 1 << 18  # of one table; then a worker begins another, so that it holds no more than its span needs
_BYTES: Final = 32 << 20


class _Worker:
    """The table that a worker fills now."""

    def __init__(self) -> None:
        self._table = NumberingTable()

    def table(self) -> NumberingTable:
        if self._table.filled > VALUES or self._table.payload_bytes > _BYTES:
            self._table = NumberingTable()
        return self._table


class DictionaryBuilder(Builder):
    """The values of a field and a code a record."""

    def __init__(self, values: ValueSource) -> None:
        self._values = values

    def new_worker(self) -> Any:
        return _Worker()

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, _ = self._values.get(batch)
        table: NumberingTable = worker.table()
        numbers = table.number(values, batch.records.states)
        assert numbers is not None  # without limits, it is never full
        numbers[numbers == NO_RECORD] = 0
        return Piece(len(batch.records), (numbers,), None, table)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        tables = {id(piece.table): piece.table for _, piece in pieces if piece.table is not None}
        values, maps = numbered([table.distinct_values() for table in tables.values()])
        codes_of = dict(zip(tables, maps, strict=True))
        empty: NDArray[np.uint32] = np.empty(0, np.uint32)
        codes = np.concatenate([empty, *(codes_of[id(piece.table)][piece.arrays[0]] for _, piece in pieces)])
        return DictionaryColumn.of_codes(values, codes, run[0] % SPAN).segment(run)
