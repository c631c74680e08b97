"""Builds the index of a field's values: bitmaps, or hashes once there are too many values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.values import ARRAY, MAP
from jitdb.indexes.kinds import roaring_kernels as kernels
from jitdb.indexes.kinds.bitmaps import (
    FEW_VALUES,
    MAX_CONTAINER_BYTES,
    MAX_VALUE_BYTES,
    MAX_VALUES,
    UNKNOWN,
    GroupedBitmaps,
    too_many,
)
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.prefixes import hash_prefixes, prefix_piece, prefix_segment
from jitdb.indexes.numbering import Limits, NumberingTable
from jitdb.indexes.segment import SPAN, Run, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ValuesBuilder(Builder):
    """Bitmaps of a field's values (`limited`: hashes instead, once there are too many of them).

    `hashed`: the index has hashes already. `keys` are the values in earlier segments of the index. When a later segment
    comes out hashed, the earlier ones must be turned into hashes, too (`hashes_of_bitmaps`).
    """

    def __init__(self, values: ValueSource, limited: bool, hashed: bool, keys: set[bytes]) -> None:
        self.hashed = hashed
        self._values = values
        self._limited = limited
        self._keys = keys

    def new_worker(self) -> Any:
        return NumberingTable(Limits(MAX_VALUES, MAX_VALUE_BYTES, MAX_CONTAINER_BYTES) if self._limited else None)

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        table: NumberingTable = worker
        values, owners = self._values.get(batch)
        if not self.hashed and not table.full:
            numbers = table.number(values, batch.states(owners))
            if numbers is not None:
                return Piece(len(batch.records), (numbers,), owners, table)
            self.hashed = True
        return prefix_piece(values, owners, len(batch.records), -1)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        # In the middle of a scan only the limits count that do not depend on the number of records.
        records = run[0] + run[1] if last else UNKNOWN
        if not self.hashed and not (self._limited and self._surely_too_many(pieces, records)):
            numbered = _Numbered(pieces, run)
            known = self._keys.union(numbered.keys)
            if not self._limited or not too_many(len(known), sum(map(len, known)), records):
                self._keys = known
                return GroupedBitmaps(numbered.keys, *numbered.grouped(), run[0] % SPAN, run[1]).segment(run)
        self.hashed = True
        return self.make_hashes(pieces, run)

    def make_hashes(self, pieces: Pieces, run: Run) -> Segment:
        """The segment of a run as one of hashes. Changes nothing."""
        return prefix_segment(_hashed(pieces), run, -1, self._values.is_owned)

    def _surely_too_many(self, pieces: Pieces, records: int) -> bool:
        """Whether the tables alone say so, without making a key of every value."""
        tables = pieces.tables().values()
        if any(too_many(table.distinct(), 0, records) for table in tables):
            return True
        containers = {key for key in self._keys if key[0] in (ARRAY, MAP)}
        size = sum(map(len, containers))
        for key in (table.key(entry) for table in tables for entry in table.containers()):
            if key not in containers:
                containers.add(key)
                size += len(key)
            if len(containers) > FEW_VALUES or size > MAX_VALUE_BYTES:
                return True
        return False


class _Numbered:
    """The numbers of all pieces together; `keys` are their values, ascending.

    Each worker's table has its own numbers; number n of table t stands at base(t) + n.
    """

    def __init__(self, pieces: Pieces, run: Run) -> None:
        tables = pieces.tables()
        names = {name: table.keys() for name, table in tables.items()}
        base = dict(zip(tables, np.cumsum([0, *map(len, names.values())]).tolist(), strict=False))
        self._all = [key for table_keys in names.values() for key in table_keys]
        self._numbers = pieces.joined(0)
        self._bounds = np.cumsum([0, *(len(piece.arrays[0]) for _, piece in pieces)])
        self._bases = np.array([base[id(piece.table)] for _, piece in pieces], np.int64)
        self._lead = run[0] % SPAN
        self._owners = pieces.members() if pieces.are_owned else np.empty(0, np.uint32)
        self._counts = np.zeros(len(self._all), np.int64)
        kernels.count_numbers(self._numbers, self._bounds, self._bases, self._counts)
        self.keys = sorted({self._all[place] for place in np.flatnonzero(self._counts).tolist()})

    def grouped(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The records of all keys, one key after the other, relative to the span's start; and where each begins."""
        place_of = {key: place for place, key in enumerate(self.keys)}
        outside = len(self.keys)
        places = np.array([place_of.get(key, outside) for key in self._all], np.uint32)
        sizes = np.bincount(places, self._counts, outside + 1)[:outside].astype(np.int64)
        begins = np.append(0, np.cumsum(sizes))
        records = np.empty(len(self._numbers), np.uint32)
        kernels.group_records(
            self._numbers, self._bounds, self._bases, places, self._owners, self._lead, records, begins[:-1].copy()
        )
        return records[: begins[outside]], begins


def _hashed(pieces: Pieces) -> Pieces:
    """The pieces with hashes in place of numbers."""
    of_table: dict[int, NDArray[np.uint32]] = {}
    hashed = Pieces()
    for seq, piece in pieces:
        if piece.table is not None:
            hashes = of_table.get(id(piece.table))
            if hashes is None:
                hashes = of_table[id(piece.table)] = np.append(hash_prefixes(piece.table.values()), np.uint32(0))
            outside = len(hashes) - 1  # stands for NO_RECORD
            numbers = np.minimum(piece.arrays[0], np.uint32(outside))
            piece = piece._replace(arrays=(hashes[numbers], (numbers > 0) & (numbers < outside)), table=None)
        hashed.append((seq, piece))
    return hashed
