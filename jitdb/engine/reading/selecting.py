"""The fields of records that a question selects, found where they stand: nothing else of the records is decoded.

They are found as arrays with an entry a record (FieldValues), from which rows and columns of any kind are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitdb.common.immutable import Immutable
from jitdb.common.paths import before_any
from jitdb.common.values import ARRAY, MAP, NUMBER, UNDEFINED, value_at, value_key
from jitdb.engine.records import Gone, Records
from jitdb.indexes.kinds.casting import locator_of
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.log.codecs.fields.constants import KEYS, LIVE
from jitdb.log.codecs.fields.located import FieldValues, Scratch
from jitdb.log.codecs.python_values import python_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.operators.nodes.selection import Selection


class CodedValues(NamedTuple):
    """Values, and for each record the place of its own among them: each is looked at once."""

    values: FieldValues
    codes: NDArray[Any]

    def plain(self) -> FieldValues:
        """An entry a record."""
        return chosen(self.values, self.codes)

    def part(self, places: slice) -> CodedValues:
        return CodedValues(self.values, self.codes[places])

    def used(self) -> CodedValues:
        """Without the values that no record has."""
        counts = np.bincount(self.codes, minlength=len(self.values.kind))
        places = np.cumsum(counts > 0) - 1
        return CodedValues(chosen(self.values, np.flatnonzero(counts)), places[self.codes])


class FieldBatch(Immutable):
    """Some records of an answer, in its order: for each selected field what they hold in it.

    seqs, offsets: of the records; -1 where these may be of several logs, offsets where indexes have the fields, too
    fields: in the order of the selection, coded where few records have other values; for a path to any element, what
            lies before that; the next batch may overwrite them
    keys:   float64 [2, n], the two parts of their declared times (jitdb.common.values), if asked for; NaN: none
    """

    __slots__ = __match_args__ = ("selection", "seqs", "offsets", "fields", "keys")

    selection: Selection
    seqs: NDArray[Any]
    offsets: NDArray[np.int64]
    fields: Sequence[FieldValues | CodedValues]
    keys: NDArray[np.float64] | None

    def __init__(
        self,
        selection: Selection,
        seqs: NDArray[Any],
        offsets: NDArray[np.int64],
        fields: Sequence[FieldValues | CodedValues],
        keys: NDArray[np.float64] | None = None,
    ) -> None:
        self._keep(selection, seqs, offsets, fields, keys)

    def __len__(self) -> int:
        """How many records."""
        return len(self.offsets)

    def first(self, count: int) -> FieldBatch:
        """The first of them."""
        return self.part(slice(count))

    def part(self, places: slice) -> FieldBatch:
        """Those that stand there."""
        fields = [held.part(places) if isinstance(held, CodedValues) else chosen(held, places) for held in self.fields]
        keys = None if self.keys is None else self.keys[:, places]
        return FieldBatch(self.selection, self.seqs[places], self.offsets[places], fields, keys)

    def values(self, number: int) -> FieldValues:
        """What the records hold in one of the fields, an entry a record."""
        held = self.fields[number]
        return held.plain() if isinstance(held, CodedValues) else held

    def column(self, number: int) -> list[Any]:
        """What the records hold in one of the fields; UNDEFINED: nothing."""
        _, path = self.selection[number]
        column, rest = python_values(self.values(number)), path[len(before_any(path)) :]
        return [value_at(value, rest) for value in column] if rest else column

    def rows(self) -> list[dict[str, Any]]:
        """A dict a record: what it has of the fields, by name."""
        names = [name for name, _ in self.selection]
        columns = list(map(self.column, range(len(names))))
        rows = zip(*columns, strict=True)
        if not any(UNDEFINED in column for column in columns):
            return [dict(zip(names, row, strict=True)) for row in rows]
        return [{name: value for name, value in zip(names, row, strict=True) if value is not UNDEFINED} for row in rows]


def joined_values(pieces: Sequence[FieldValues], orders: Sequence[Any], count: int) -> FieldValues:
    """The values of several pieces, each at its places, of `count`."""
    from jitdb.log.codecs.container_kernels import gather

    encodings = {piece.encoding for piece in pieces if _has_containers(piece)}
    if len(encodings) > 1:
        pieces = [_as_keys(piece) if _has_containers(piece) else piece for piece in pieces]
        encodings = {KEYS}
    columns: tuple[Any, ...] = tuple(np.zeros(count, kind) for kind in (np.uint8, np.int32, np.int32, np.float64))
    heaps, begin = [], 0
    for piece, order in zip(pieces, orders, strict=True):
        texts, ends = piece.kind > NUMBER, np.empty(len(piece.kind) + 1, np.int32)
        heap = np.empty(int(piece.length[texts].sum(dtype=np.int64)), np.uint8)
        gather(piece.buffer, piece.start, piece.length, texts, ends, heap)
        for column, own in zip(columns, (piece.kind, ends[:-1] + np.int32(begin), *piece[4:]), strict=True):
            column[order] = own
        heaps.append(heap)
        begin += len(heap)
    buffer = np.concatenate([*heaps, np.zeros(1, np.uint8)])
    return FieldValues(encodings.pop() if encodings else KEYS, buffer, *columns)


def _has_containers(values: FieldValues) -> bool:
    return bool(np.isin(values.kind, (ARRAY, MAP)).any())


def _as_keys(values: FieldValues) -> FieldValues:
    """The same in the encoding that holds values of any codec."""
    return FieldValues.of_keys([value_key(value) for value in python_values(values)])


def batch_of_rows(selection: Selection, rows: Sequence[dict[str, Any]]) -> FieldBatch:
    """Rows as arrays again, for answers that are merged from several logs; it is not known where they lie."""
    fields = [FieldValues.of_keys([value_key(row.get(name, UNDEFINED)) for row in rows]) for name, _ in selection]
    nowhere = np.full(len(rows), -1)
    return FieldBatch(tuple((name, (name,)) for name, _ in selection), nowhere, nowhere, fields)


class Selector:
    """Finds the selected fields in records of a log. It serves one thread."""

    def __init__(self, records: Records, selection: Selection) -> None:
        self.selection = selection
        self.records = records
        self.scratch = Scratch()
        self._paths = list(dict.fromkeys(before_any(path) for _, path in selection))
        self._locator = locator_of(records.log.codec, self._paths)

    def read(self, seqs: NDArray[np.uint32], offsets: NDArray[np.int64]) -> FieldBatch:
        """The fields of these records, in this order. Raises Gone, DecodeError, QueryError."""
        found = self.records.read_batch(offsets, self.scratch)
        if found.states.any():
            raise Gone(seqs[found.states != LIVE])
        fields, malformed = self._locator.fields(found)
        if malformed:
            wrong = self._locator.invalid(found)
            if not self.records.log.framing.keeps_malformed:
                raise Gone(seqs[wrong])
            for number in wrong.tolist():
                self.records.decode(found.record(number), int(offsets[number]))
        by_path = dict(zip(self._paths, fields, strict=True))
        return FieldBatch(self.selection, seqs, offsets, [by_path[before_any(path)] for _, path in self.selection])
