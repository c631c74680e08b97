"""Builders of indexes of whole records: where they lie, which are deleted, of which something is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from jitdb.common.values import BYTES, STRING
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.indexes.kinds.dictionary_kernels import write_keys
from jitdb.indexes.kinds.offsets import Offsets
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.kinds.set import ROW, Fingerprint, Set
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.segment import SPAN, Journal, Run, Segment
from jitdb.log.codecs.fields.constants import DELETED

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROOM: Final = 1 << 10  # bytes behind keys, so that kernels which read some at once need no copy

#: Tells which of some keys (jitdb.common.values) are wanted: bytes, one key behind the other (and some more), and where
#: each ends.
TextTest: TypeAlias = "Callable[[NDArray[np.uint8], NDArray[np.uint32]], NDArray[np.bool_]]"


class OffsetsBuilder(Builder):
    """Where each record begins, and which blocks are damaged."""

    def __init__(self) -> None:
        self._damaged: list[tuple[int, int]] = []

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:
        self._damaged += [(block, block * block_size) for block in blocks]

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        assert batch.records.offsets is not None
        return Piece(len(batch.records), (batch.records.offsets.copy(),))

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        first, end = run[2:]
        damaged = [block for block, begin in self._damaged if first <= begin < end]
        return Offsets(pieces.joined(0), run[0] % SPAN, damaged).segment(run)


class SetBuilder(Builder):
    """The records that own a piece's entries."""

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return Set(bitmap_of(pieces.members()), run[0] % SPAN, run[1], self._fingerprint()).segment(run)

    def _fingerprint(self) -> Fingerprint | None:
        return None


class DeletedBuilder(SetBuilder):
    """Which records were deleted when they were scanned, and which blocks nothing proved."""

    def __init__(self) -> None:
        self._block_size = 0
        self._unproven: dict[int, NDArray[Any]] = {}  # rows of a chunk, by its first block

    def unproven(self, rows: NDArray[Any], block_size: int) -> None:
        self._block_size = block_size
        if len(rows):
            self._unproven[int(rows["number"][0])] = rows

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        owners = np.flatnonzero(batch.records.states == DELETED).astype(np.int32)
        return Piece(len(batch.records), (), owners)

    def _fingerprint(self) -> Fingerprint | None:
        rows = np.concatenate([np.empty(0, ROW), *self._unproven.values()])
        return Fingerprint(self._block_size, Journal(), rows) if self._block_size else None


class PredicateBuilder(SetBuilder):
    """The records whose value a function accepts. It is asked once for each value of a slice."""

    def __init__(self, values: ValueSource, accepts: Callable[[bytes], bool]) -> None:
        self._values = values
        self._accepts = accepts

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        table = NumberingTable()
        numbers = table.number(values, batch.states(owners))
        assert numbers is not None  # without a limit, it is never full
        verdict = np.zeros(table.filled + 1, np.bool_)
        for number, key in enumerate(table.keys()):
            verdict[number] = number > 0 and self._accepts(key)
        hits = np.flatnonzero(verdict[np.minimum(numbers, table.filled)])
        return Piece(len(batch.records), (), hits.astype(np.int32) if owners is None else np.unique(owners[hits]))


class TextBuilder(SetBuilder):
    """The records whose text, or bytes, a test accepts; it is given the keys of many at once."""

    def __init__(self, values: ValueSource, test: TextTest) -> None:
        self._values = values
        self._test = test

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        assert owners is None  # what a record has several of is numbered
        where = np.flatnonzero((values.kind == STRING) | (values.kind == BYTES))
        texts = values if len(where) == len(values.kind) else chosen(values, where)
        ends = np.cumsum(texts.length + np.int64(1)).astype(np.uint32)
        keys = np.empty((int(ends[-1]) if len(ends) else 0) + _ROOM, np.uint8)
        write_keys(*texts.arrays, ends, keys)
        return Piece(len(batch.records), (), where[self._test(keys, ends)].astype(np.int32))
