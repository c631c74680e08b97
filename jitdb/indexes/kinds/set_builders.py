"""Builders of indexes of whole records: where they lie, which are deleted, of which something is true, which have each
value of a field (bitmaps, or hashes once there are too many values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from jitdb.common.values import ARRAY, BYTES, MAP, STRING
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
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.indexes.kinds.kernels import roaring as kernels
from jitdb.indexes.kinds.kernels.dictionary import write_keys
from jitdb.indexes.kinds.offsets import Offsets
from jitdb.indexes.kinds.prefixes import hash_prefixes, prefix_piece, prefix_segment
from jitdb.indexes.kinds.roaring import bitmap_of
from jitdb.indexes.kinds.set import ROW, Fingerprint, Set
from jitdb.indexes.numbering import Limits, NumberingTable, kept_numbers, numbers_kept
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


class AnywhereBuilder(SetBuilder):
    """The records that hold a text in any value."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self._text, self._ignore_case = text, ignore_case

    def new_worker(self) -> Any:
        return []  # what looks for the text, which serves one thread

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        if not worker:
            from jitdb.log.codecs.search import Search

            worker.append(Search(batch.codec, self._text, self._ignore_case))
        owners = np.flatnonzero(worker[0](batch.records)).astype(np.int32)
        return Piece(len(batch.records), (), owners)


# --- a set for each value --------------------------------------------------------------------------------------------


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
        """A table, until there are hashes: pieces that wait may have it, nothing else keeps its values in memory."""
        return [NumberingTable(Limits(MAX_VALUES, MAX_VALUE_BYTES, MAX_CONTAINER_BYTES) if self._limited else None)]

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        tables: list[NumberingTable] = worker
        values, owners = self._values.get(batch)
        if not self.hashed:
            (table,) = tables
            numbers = table.number(values, batch.states(owners))
            if numbers is not None:
                return Piece(len(batch.records), (kept_numbers(numbers, table.filled),), owners, table)
            self.hashed = True
        tables.clear()
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
        self.hashed, self._keys = True, set()
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
        self._numbers = numbers_kept(pieces.joined(0))
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
            numbers = np.minimum(numbers_kept(piece.arrays[0]), np.uint32(outside))
            piece = piece._replace(arrays=(hashes[numbers], (numbers > 0) & (numbers < outside)), table=None)
        hashed.append((seq, piece))
    return hashed
