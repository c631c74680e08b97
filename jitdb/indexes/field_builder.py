"""Building the index of a field's values: bitmaps while the values are few, hashes when they turn out to be many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jitdb.indexes import value_kernels as kernels
from jitdb.indexes.bitmap import group_bitmaps, make_bitmaps
from jitdb.indexes.builders import Builder, Piece, Run, ValueSource, prefix_piece, prefix_segment
from jitdb.indexes.hashing import hash_prefix
from jitdb.indexes.numbering import MAX_VALUE_BYTES, MAX_VALUES, DecodePayload, NumberingTable
from jitdb.indexes.segment import SPAN, Segment
from jitdb.values import ABSENT

if TYPE_CHECKING:
    from jitdb.indexes.chunk import Chunk

FEW_VALUES: Final = 256  # always worth a bitmap each
RECORDS_A_VALUE: Final = 16  # beyond FEW_VALUES: so many records for each value, or it is a prefix index

_ABSENT_KEY: Final = bytes([ABSENT])


def too_many(values: int, value_bytes: int, records: int) -> bool:
    """Whether a field has too many values for bitmaps. The same data always gives the same answer."""
    return (
        values > max(FEW_VALUES, records // RECORDS_A_VALUE) or values > MAX_VALUES or value_bytes > MAX_VALUE_BYTES
    )


class ValuesBuilder(Builder):
    """Bitmaps of a field's values (`limited`: hashes instead, once there are too many of them).

    `hashed` starts with hashes at once: the index is one of prefixes already. `keys` are the values that earlier
    segments of the index hold. After a segment that is not the first came out hashed, the earlier ones must be
    turned into hashes too (`hashes_of_bitmaps`).
    """

    def __init__(
        self, values: ValueSource, decode_payload: DecodePayload, limited: bool, hashed: bool, keys: set[bytes]
    ) -> None:
        super().__init__()
        self.rows = values.rows
        self.hashed = hashed
        self._values = values
        self._decode_payload = decode_payload
        self._limited = limited
        self._keys = keys

    def new_worker(self) -> Any:
        return (self._values.new_worker(), NumberingTable(self._decode_payload, self._limited))

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        inner, table = worker
        values, owners = self._values.get(inner, chunk)
        if not self.hashed and not table.full:
            states = chunk.states if owners is None else np.zeros(len(values.kind), np.uint8)
            numbers = table.number(values, states)
            if numbers is not None:
                return Piece(len(chunk), (numbers,), owners, table)
            self.hashed = True
        return prefix_piece(values, owners, len(chunk), -1)

    def _make(self, pieces: list[tuple[int, Piece]], run: Run, last: bool) -> Segment:
        if not self.hashed:
            # Workers may go on numbering while this runs: what a table holds now is what counts.
            tables = {id(piece.table): piece.table for _, piece in pieces}
            sizes = {name: table.filled for name, table in tables.items()}
            used = _used_keys(pieces, tables, sizes)
            keys = sorted(set().union(*used.values()))
            known = self._keys.union(keys)
            # In the middle of a scan only the limits that never move count: the rest may still change.
            records = run[0] + run[1] if last else 1 << 62
            if not self._limited or not too_many(len(known), sum(map(len, known)), records):
                self._keys = known
                places = _places(keys, tables, sizes)
                return _bitmaps(pieces, keys, places, run)
        self.hashed = True
        hashes = [(seq, _hashed(piece)) for seq, piece in pieces]
        return prefix_segment(hashes, run, -1, self._values.elements)


def _used_keys(
    pieces: list[tuple[int, Piece]], tables: dict[int, NumberingTable], sizes: dict[int, int]
) -> dict[int, set[bytes]]:
    """The keys that the pieces use, by the table that numbered them."""
    seen = {name: np.zeros(size + 1, np.bool_) for name, size in sizes.items()}
    for _, piece in pieces:
        name = id(piece.table)
        seen[name][np.minimum(piece.arrays[0], sizes[name])] = True  # the last entry stands for NO_RECORD
    keys: dict[int, set[bytes]] = {}
    for name, marks in seen.items():
        names = tables[name].keys()
        keys[name] = {names[number] for number in np.flatnonzero(marks[:-1]).tolist()}
    return keys


def _places(keys: list[bytes], tables: dict[int, NumberingTable], sizes: dict[int, int]) -> dict[int, Any]:
    """For each table: its numbers to places in `keys`; a place past the end is in no group."""
    place_of = {key: place for place, key in enumerate(keys)}
    outside = len(keys)
    return {
        name: np.array([place_of.get(key, outside) for key in table.keys()[: sizes[name]]] + [outside], np.uint32)
        for name, table in tables.items()
    }


def _bitmaps(pieces: list[tuple[int, Piece]], keys: list[bytes], places: dict[int, Any], run: Run) -> Segment:
    groups, sequences = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    for seq, piece in pieces:
        place = places[id(piece.table)]
        groups.append(place[np.minimum(piece.arrays[0], len(place) - 1)])
        first = seq % SPAN
        if piece.owners is None:
            sequences.append(np.arange(first, first + piece.count, dtype=np.uint32))
        else:
            sequences.append(piece.owners.astype(np.uint32) + np.uint32(first))
    grouped, begins = kernels.group_sequences(np.concatenate(groups), np.concatenate(sequences), len(keys))
    return make_bitmaps(keys, group_bitmaps(grouped, begins), *run)


def _hashed(piece: Piece) -> Piece:
    """A piece of numbers as a piece of hashes, made from its table."""
    if piece.table is None:
        return piece
    hashes = np.array([0 if key == _ABSENT_KEY else hash_prefix(key) for key in piece.table.keys()] + [0], np.uint32)
    numbers = np.minimum(piece.arrays[0], len(hashes) - 1)
    present = (numbers > 0) & (numbers < len(hashes) - 1)
    return piece._replace(arrays=(hashes[numbers], present), table=None)
