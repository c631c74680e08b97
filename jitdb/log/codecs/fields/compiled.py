"""The locator of a format that has kernels: they find all fields in the records' own bytes, and decode nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from jitdb.common.paths import Path
from jitdb.log.codecs.fields.constants import LIVE, MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.log.codecs.fields.locator import Locator
from jitdb.log.codecs.fields.scratch import scratch_of
from jitdb.log.codecs.fields.trie import build_trie

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Kernels(Protocol):
    """The kernels of a format; bipf/kernels.py says what they take."""

    locate: Callable[..., int]
    values_at: Callable[..., None]


class Rows(NamedTuple):
    """What kernels fill: arrays of shape [fields, records], whose rows are those of FieldValues."""

    kind: NDArray[np.uint8]
    start: NDArray[np.int32]
    length: NDArray[np.int32]
    number: NDArray[np.float64]

    @classmethod
    def empty(cls, fields: int, records: int) -> Rows:
        """Room for `records` records; untouched pages of it cost no memory."""
        shape = (fields, records)
        return cls(
            np.empty(shape, np.uint8), np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.float64)
        )

    def fitted(self, records: int) -> Rows:
        """The same memory as room for fewer records; contiguous, so that the kernels are compiled for one layout."""
        shape = (self.kind.shape[0], records)
        parts: Iterator[Any] = (array.reshape(-1)[: shape[0] * records].reshape(shape) for array in self)
        return Rows(*parts)


class CompiledLocator(Locator):
    """Finds fields by the kernels of a format, whose arrays and maps have this encoding."""

    def __init__(self, kernels: Kernels, encoding: int, paths: Sequence[Path]) -> None:
        self._kernels = kernels
        self._encoding = encoding
        self._trie = build_trie(paths)
        self._scratch = scratch_of(self._trie)
        self._rows = Rows.empty(len(paths), 0)

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        count, fields = len(records), len(self._rows.kind)
        if not fields:
            return [], 0
        if count > self._rows.kind.shape[1]:
            self._rows = Rows.empty(fields, 1 << (count - 1).bit_length())
        rows = self._rows.fitted(count)
        buffer = records.buffer
        malformed = self._kernels.locate(
            buffer, records.starts, records.lengths, records.states, count, *self._trie, *rows, self._scratch
        )
        return [FieldValues(self._encoding, buffer, *row) for row in zip(*rows, strict=True)], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        rows, _ = self._at(records, np.where(records.states == LIVE, positions, -1))
        return FieldValues(self._encoding, records.buffer, *(array[0] for array in rows))

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        _, ends = self._at(records, np.zeros(len(records), np.int64))
        return np.flatnonzero((records.states == LIVE) & (ends != records.starts + records.lengths))

    def _at(self, records: RecordBatch, positions: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """What lies at a position in each record, and where it ends; -1 where it cannot be decoded."""
        rows, ends = Rows.empty(1, len(records)), np.empty(len(records), np.int64)
        stack = np.empty(MAX_NESTING + 1, np.int64)
        self._kernels.values_at(records.buffer, records.starts, records.lengths, positions, *rows, ends, stack)
        return rows, ends
