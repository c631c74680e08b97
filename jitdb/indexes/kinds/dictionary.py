"""A dictionary-encoded column: the distinct values of a field, and for each record the number of its own.

As in Arrow and Parquet. Segment kind DICTIONARY (docs/format-index.md). Values stand in the order in which they first
occur, so the same records always give the same bytes, and nothing is sorted. Values are numbered from 1; a record that
lacks the field, or was deleted, has code 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.values import NUMBER
from jitdb.errors import IndexDamaged, QueryError
from jitdb.indexes.kinds.builder import Builder, LocatedBatch, Piece, Pieces, ValueSource
from jitdb.indexes.kinds.columns import CODES, ENDS, HEAP, DictionaryShape, code_width, count_of
from jitdb.indexes.kinds.content import Content, Places
from jitdb.indexes.kinds.roaring import differing
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.numbering_kernels import NO_RECORD
from jitdb.indexes.segment import DICTIONARY, SPAN, Blob, Run, Segment, make_segment
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyroaring import BitMap


class TooLarge(QueryError):
    """A field has more distinct values than a dictionary holds. The engine adds the field's name (targets.py)."""


MOST_BYTES: Final = 1 << 30  # of the distinct values of a span
VALUES: Final = 1 << 18  # of one table; then a worker begins another, so that it holds no more than its span needs
_BYTES: Final = 32 << 20
_NOWHERE: Final = np.empty(0, np.uint32)
_MOST_STARTS: Final = (1 << 31) - 1  # bytes of keys that are looked at together: FieldValues has starts of 31 bits


class KeyHeap(NamedTuple):
    """Keys that lie one behind the other in a heap; `ends` is where each ends there."""

    heap: NDArray[np.uint8]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, keys: Sequence[bytes]) -> KeyHeap:
        heap = np.frombuffer(b"".join(keys), np.uint8)
        return cls(heap, np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys))))

    def key(self, at: int) -> bytes:
        begin = int(self.ends[at - 1]) if at else 0
        return self.heap[begin : int(self.ends[at])].tobytes()

    def chosen(self, at: NDArray[np.int64]) -> KeyHeap:
        """Those that stand at these places, in this order."""
        from jitdb.indexes.kinds.kernels.dictionary import copy_keys

        sizes = self.ends[at] - np.where(at > 0, self.ends[at - 1], 0)
        heap, ends = np.empty(max(1, int(sizes.sum())), np.uint8), np.empty(len(at), np.int64)
        copy_keys(self.heap, self.ends, at, heap, ends, 0)
        return KeyHeap(heap[: int(sizes.sum())], ends)

    def between(self, begin: int, end: int) -> KeyHeap:
        """Those that stand there."""
        ends = self.ends[begin:end]
        start = int(self.ends[begin - 1]) if begin else 0
        return KeyHeap(self.heap[start : int(ends[-1]) if len(ends) else start], ends - start)

    def values(self) -> FieldValues:
        """The values with these keys. Raises QueryError where they take more bytes than can be looked at together."""
        size = int(self.ends[-1]) if len(self.ends) else 0
        if size > _MOST_STARTS:
            raise QueryError(
                f"the distinct values of a field take {size:,} bytes, and {_MOST_STARTS:,} at most can be put in order",
                remedy="ask for fewer records: add a condition, or a time",
            )
        found = values_of_heap(self.heap, self.ends.astype(np.uint32))
        assert found is not None  # they were looked at when they were read from a segment
        return found


def codes_of(segment: Segment, *, keep: bool = True) -> NDArray[Any]:
    """u8, u16 or u32: the code of each record of a DICTIONARY segment. `keep`: as for blob(). Raises IndexDamaged."""
    return np.frombuffer(segment.blob(CODES, keep=keep), f"<u{code_width(count_of(segment))}")


def code_counts(
    segment: Segment, places: slice | NDArray[np.uint32], others: bool, *, keep: bool = True
) -> NDArray[np.int64]:
    """How many of some records of a DICTIONARY segment have each code. Raises IndexDamaged.

    places: where these records stand in it, or, with `others`, all but these
    keep:   as for blob()
    """
    if not others:
        return _counted(segment, places, keep)
    size = 8 * (count_of(segment) + 1)
    keeps = keep and size < segment.count  # else they take more than the codes
    every = slice(0, segment.count)
    counts = segment.derived(CODES, size, lambda: _counted(segment, every, keep), keep=keeps)
    if isinstance(places, slice) or len(places):
        return counts - _counted(segment, places, keep)
    return counts.copy() if keeps else counts  # which are nobody else's


def _counted(segment: Segment, places: slice | NDArray[np.uint32], keep: bool) -> NDArray[np.int64]:
    from jitdb.indexes.kinds.kernels.dictionary import count_codes

    counts = np.zeros(count_of(segment) + 1, np.int64)
    codes = codes_of(segment, keep=keep)
    count_codes(codes.view(np.uint8), codes.itemsize, *_run(places), counts)
    return counts


def mark(
    segment: Segment, places: slice | NDArray[np.uint32], table: NDArray[np.uint32], masks: NDArray[np.uint32]
) -> None:
    """Set the bits that the table has for the code of each of these records, in masks. Raises IndexDamaged."""
    from jitdb.indexes.kinds.kernels.dictionary import mark_codes

    codes = codes_of(segment)
    mark_codes(codes.view(np.uint8), codes.itemsize, *_run(places), table, masks)


def count_runs(
    segment: Segment,
    within: tuple[slice | NDArray[np.uint32], bool],
    ends: NDArray[np.int64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add to counts[row, column] how many of some records are in runs of seqs. Raises IndexDamaged.

    within:  where these records stand in the segment, as code_counts() has it
    ends:    where the runs end, in seqs
    rows:    of each run its row; -1: none
    columns: of each code its column
    """
    from jitdb.indexes.kinds.kernels.dictionary import count_in_runs

    codes, (places, others) = codes_of(segment), within

    def count(run: tuple[int, int, NDArray[np.uint32]], out: NDArray[np.int64]) -> None:
        count_in_runs(codes.view(np.uint8), codes.itemsize, *run, segment.first_seq, ends, rows, columns, out)

    if not others:
        count(_run(places), counts)
        return
    less = np.zeros_like(counts)
    count((0, segment.count, _NOWHERE), counts)
    count(_run(places), less)
    counts -= less


def _run(places: slice | NDArray[np.uint32]) -> tuple[int, int, NDArray[np.uint32]]:
    """As kernels take places."""
    return (places.start, places.stop, _NOWHERE) if isinstance(places, slice) else (0, 0, places)


def keys_of(segment: Segment) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The keys of a DICTIONARY segment's values, one behind the other, and where each ends. Raises IndexDamaged."""
    return np.frombuffer(segment.blob(HEAP), np.uint8), np.frombuffer(segment.blob(ENDS), "<u4")


def dictionary_keys(segment: Segment) -> KeyHeap:
    """The same, once they have proved to be keys. They are not kept. Raises IndexDamaged."""
    from jitdb.indexes.kinds.kernels.dictionary import are_keys

    ends = np.frombuffer(segment.blob(ENDS, keep=False), "<u4").astype(np.int64)
    keys = KeyHeap(np.frombuffer(segment.blob(HEAP, keep=False), np.uint8), ends)
    if not are_keys(*keys):
        raise _no_keys(segment)
    return keys


def _no_keys(segment: Segment) -> IndexDamaged:
    return segment.damage("a value of the dictionary has no key")


def dictionary_values(segment: Segment, *, keep: bool = True) -> FieldValues:
    """The values of a DICTIONARY segment: that of code n stands at n - 1. `keep`: as for blob().

    Raises IndexDamaged.
    """
    ends = np.frombuffer(segment.blob(ENDS, keep=keep), "<u4")
    found = values_of_heap(_array(segment.blob(HEAP, keep=keep)), ends.copy())
    if found is None:
        raise _no_keys(segment)
    return found


def values_of_keys(keys: Sequence[bytes]) -> FieldValues:
    """The values with these keys (jitdb.common.values)."""
    found = values_of_heap(_array(b"".join(keys)), np.cumsum([0, *map(len, keys)])[1:].astype(np.uint32))
    assert found is not None
    return found


def _array(heap: Blob) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(heap), np.uint8)


def values_of_heap(heap: NDArray[np.uint8], ends: NDArray[np.uint32]) -> FieldValues | None:
    """Those of keys that stand one behind the other; None where one is no key."""
    from jitdb.indexes.kinds.kernels.dictionary import read_keys

    held = heap if len(heap) else np.zeros(1, np.uint8)
    columns: tuple[Any, ...] = tuple(np.zeros(len(ends), kind) for kind in (np.uint8, np.int32, np.int32, np.float64))
    return FieldValues(KEYS, held, *columns) if read_keys(held, ends, *columns) else None


def chosen(values: FieldValues, numbers: slice | NDArray[Any]) -> FieldValues:
    """The values with these numbers, in this order."""
    columns: Iterator[Any] = (column[numbers] for column in (values.kind, values.start, values.length, values.number))
    return FieldValues(values.encoding, values.buffer, *columns)


def numbered(parts: Sequence[FieldValues]) -> tuple[FieldValues, list[NDArray[np.uint32]]]:
    """The distinct values (encoding KEYS) of all parts, in the order in which they first occur; and for each part a
    table from its codes to theirs: 0 stays 0.
    """
    table = NumberingTable()
    if len(parts) > 1:  # as if no value stood in two of them
        sizes = [int(values.length[values.kind != NUMBER].sum(dtype=np.int64)) for values in parts]
        table.reserve(sum(len(values.kind) for values in parts), sum(sizes))
    tables = []
    for values in parts:
        numbers = table.number(values, np.zeros(len(values.kind), np.uint8))
        assert numbers is not None  # without limits, it is never full
        tables.append(np.append(np.zeros(1, np.uint32), numbers))
    return table.distinct_values(), tables


class DictionaryColumn(DictionaryShape, Content):
    """The distinct values of a run (encoding KEYS) by first occurrence, and a code a record, u32."""

    def __init__(self, values: FieldValues, codes: NDArray[np.uint32], first: int) -> None:
        self.values = values
        self.codes = codes
        self.first, self.count = first, len(codes)

    @classmethod
    def of_codes(cls, values: FieldValues, codes: NDArray[np.uint32], first: int) -> DictionaryColumn:
        """From values in any order, which need not all be used. Changes the codes."""
        from jitdb.indexes.kinds.kernels.dictionary import relabel

        count = len(values.kind)
        order = np.empty(count, np.uint32)
        used = relabel(codes, np.zeros(count + 1, np.uint32), order)
        return cls(chosen(values, order[:used].astype(np.int64) - 1), codes, first)

    @classmethod
    def of(cls, segment: Segment) -> DictionaryColumn:
        return cls(dictionary_values(segment), codes_of(segment).astype(np.uint32), segment.first_in_span)

    def take(self, places: Places) -> DictionaryColumn:
        return self.of_codes(self.values, places.column(self.codes), places.first)

    @classmethod
    def concat(cls, parts: Sequence[DictionaryColumn]) -> DictionaryColumn:
        if len(parts) == 1:
            return parts[0]
        values, tables = numbered([part.values for part in parts])
        codes = [table[part.codes] for part, table in zip(parts, tables, strict=True)]
        return cls(values, np.concatenate(codes), parts[0].first)

    def segment(self, run: Run) -> Segment:
        from jitdb.indexes.kinds.kernels.dictionary import NUMBER_KEY, write_keys

        count = len(self.values.kind)
        sizes = np.where(self.values.kind == NUMBER, NUMBER_KEY, self.values.length.astype(np.int64) + 1)
        ends = np.cumsum(sizes, dtype=np.int64)
        size = int(ends[-1]) if count else 0
        if size > MOST_BYTES:
            raise TooLarge(
                f"its distinct values take {size:,} bytes in records {run[0]:,} to {run[0] + run[1] - 1:,}, and a "
                f"dictionary of them, by which values are counted, sorted and looked into, {MOST_BYTES:,} at most"
            )
        heap = np.empty(size, np.uint8)
        write_keys(*self.values.arrays, ends.astype(np.uint32), heap)
        codes = self.codes.astype(f"<u{code_width(count)}")
        blobs: list[Blob] = [ends.astype("<u4").tobytes(), heap.data, codes.tobytes()]
        return make_segment(DICTIONARY, run, struct.pack("<I", count), blobs)

    def differing(self, other: DictionaryColumn) -> BitMap:
        _, (mine, theirs) = numbered([self.values, other.values])
        return differing(mine[self.codes], theirs[other.codes])


class _Worker:
    """The table that a worker fills at the moment."""

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
        values, owners = self._values.get(batch)
        table: NumberingTable = worker.table()
        numbers = table.number(values, batch.states(owners))
        assert numbers is not None  # without limits, it is never full
        numbers[numbers == NO_RECORD] = 0
        return Piece(len(batch.records), (numbers.astype(np.min_scalar_type(table.filled)),), None, table)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        tables = pieces.tables()
        values, maps = numbered([table.distinct_values() for table in tables.values()])
        codes_of = dict(zip(tables, maps, strict=True))
        codes = np.concatenate([codes_of[id(piece.table)][piece.arrays[0]] for _, piece in pieces])
        return DictionaryColumn.of_codes(values, codes, run[0] % SPAN).segment(run)
