"""Building indexes from chunks: a builder an index.

    work(worker, batch)       in a worker thread: the heavy part; gives a *piece*, one run of records
    make(pieces, run, last)   in the scanning thread: the segment of the pieces of one run, which crosses no span

A piece can be cut between two records. Kernels of a piece run without the GIL, so workers go side by side.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.times import UNITS
from jitdb.common.values import ABSENT, BYTES, STRING
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.building import value_kernels as kernels
from jitdb.indexes.building.time_kernels import earliest_times
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.indexes.kinds.dictionary_kernels import write_keys
from jitdb.indexes.kinds.numbers import Numbers
from jitdb.indexes.kinds.offsets import Offsets
from jitdb.indexes.kinds.prefixes import Prefixes, PrefixMap, hash_prefixes
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask
from jitdb.indexes.kinds.set import ROW, Fingerprint, Set
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.segment import SPAN, Journal, Run, Segment
from jitdb.log.codecs.containers import Steps, list_values
from jitdb.log.codecs.fields.constants import DELETED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch


_ROOM: Final = 1 << 10  # bytes behind keys, so that kernels which read some at once need no copy
_NO_REST: Final = 2**15 - 1  # larger than any rest of a number

Seek: TypeAlias = Callable[[bytes, int], int | None]

#: Tells which of some keys (jitdb.common.values) are wanted: bytes, one key behind the other (and some more), and where
#: each ends.
TextTest: TypeAlias = "Callable[[NDArray[np.uint8], NDArray[np.uint32]], NDArray[np.bool_]]"


class LocatedBatch(NamedTuple):
    """What a scan hands to the builders: a run of records, and the asked fields in them, by row."""

    records: RecordBatch
    fields: Sequence[FieldValues]
    locator: Locator

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64, where each record begins in the log."""
        assert self.records.offsets is not None
        return self.records.offsets


class ValueSource:
    """Where a builder's values come from: the field of a row, or, a Python call a record, what a user's function
    `(record, start) -> position` points at; then what `path` leads to in it, and of arrays the elements that are
    `included`, or what lies there in them.
    """

    def __init__(self, row: int, seek: Seek | None = None, path: Path = (), included: Path | None = None) -> None:
        self.is_owned = bool(path) or included is not None  # whether a record may own any number of values
        self._row = row
        self._seek = seek
        self._steps = Steps.of(path, included=included) if self.is_owned else None
        self._absent = included is None

    def get(self, batch: LocatedBatch) -> tuple[FieldValues, NDArray[np.int32] | None]:
        """The values, and the records that own them (None: a value a record). What includes() asks for leaves records
        without a value out; else they own one that is ABSENT.
        """
        if self._seek is None:
            values = batch.fields[self._row]
        else:
            values = batch.locator.values_at(batch.records, _positions(self._seek, batch.records))
        return (values, None) if self._steps is None else list_values(values, self._steps, absent=self._absent)


def _positions(seek: Seek, records: RecordBatch) -> NDArray[np.int64]:
    """Where the function says that each record's value begins; -1: nowhere. Raises QueryError for what is no place."""
    positions = np.full(len(records), -1, np.int64)
    for number in records.live():
        record = records.record(number)
        found = seek(record, 0)
        try:
            position = -1 if found is None else operator.index(found)
        except TypeError:
            name = getattr(seek, "__name__", type(seek).__name__)
            raise QueryError(
                f"the function {name} finds a field's position, an integer, or None: not {shown(found)}"
            ) from None
        if 0 <= position < len(record):
            positions[number] = position
    return positions


class Piece(NamedTuple):
    """What one run of so many `records` gave: parallel arrays.

    Without `owners` an entry a record. With them, entries belong to the records `owners` (ascending, from 0).
    """

    records: int
    arrays: tuple[Any, ...]
    owners: NDArray[np.int32] | None = None
    table: NumberingTable | None = None  # whose numbers the entries are
    seen: int = 0  # among its numbers, or where it was cut from: bits of kinds/seen.py

    def owned(self) -> NDArray[np.int32]:
        assert self.owners is not None
        return self.owners

    def cut(self, start: int, stop: int) -> Piece:
        if start == 0 and stop == self.records:
            return self
        if self.owners is None:
            arrays = tuple(array if array is None else array[start:stop] for array in self.arrays)
            return self._replace(records=stop - start, arrays=arrays)
        low, high = np.searchsorted(self.owners, [start, stop]).tolist()
        arrays = tuple(array[low:high] for array in self.arrays)
        return self._replace(records=stop - start, arrays=arrays, owners=self.owners[low:high] - np.int32(start))


Pieces: TypeAlias = Sequence[tuple[int, Piece]]  # each with its first seq; in order, without gaps


class Builder(ABC):
    """Builds the segments of one index."""

    def new_worker(self) -> Any:
        """What one worker thread keeps for this builder; None when nothing."""
        return None

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:  # noqa: B027 (most have no use for it)
        """Blocks with these numbers are not what was written. They come with the pieces that are made next."""

    def unproven(self, rows: NDArray[Any], block_size: int) -> None:  # noqa: B027 (one has a use for it)
        """Blocks that no checksum proves, as set.ROW. They come with the pieces that are made next."""

    @abstractmethod
    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        """What the index needs of the records. Keeps nothing that points into their arrays."""

    @abstractmethod
    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        """The segment of a run; `last` says that the scan has come to the log's end."""


class OffsetsBuilder(Builder):
    """Where each record begins, and which blocks are damaged."""

    def __init__(self) -> None:
        self._damaged: list[tuple[int, int]] = []

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:
        self._damaged += [(block, block * block_size) for block in blocks]

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        return Piece(len(batch.records), (batch.offsets.copy(),))

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        first, end = run[2:]
        damaged = [block for block, begin in self._damaged if first <= begin < end]
        return Offsets(joined(pieces, 0, np.int64), run[0] % SPAN, damaged).segment(run)


class DeletedBuilder(Builder):
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

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        rows = np.concatenate([np.empty(0, ROW), *self._unproven.values()])
        fingerprint = Fingerprint(self._block_size, Journal(), rows) if self._block_size else None
        return Set(bitmap_of(members(pieces)), run[0] % SPAN, run[1], fingerprint).segment(run)


class NumbersBuilder(Builder):
    """The smallest number that a record holds in any of the fields; with a `unit`, the earliest time."""

    def __init__(self, rows: tuple[int, ...], unit: str | None = None) -> None:
        self._rows = rows
        self._unit = unit

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        hi = np.empty(len(batch.records), np.float64)
        lo = np.empty(len(batch.records), np.int16)
        fields = [batch.fields[row] for row in self._rows]
        seen = smallest_numbers(fields, hi, lo, self._unit)
        return Piece(len(batch.records), (hi, lo if lo.any() else None), seen=seen)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        hi, lo = joined(pieces, 0, np.float64), None
        if any(piece.arrays[1] is not None for _, piece in pieces):
            pairs = ((piece.arrays[1], piece.records) for _, piece in pieces)
            lo = np.concatenate([np.zeros(count, np.int16) if rests is None else rests for rests, count in pairs])
        seen = reduce(operator.or_, (piece.seen for _, piece in pieces), 0)
        return Numbers(hi, lo, run[0] % SPAN, seen).segment(run)


class ExtremesBuilder(NumbersBuilder):
    """The smallest, or the largest, of the numbers or times that a record owns."""

    def __init__(self, values: ValueSource, largest: bool, unit: str | None = None) -> None:
        super().__init__((), unit)
        self._values = values
        self._extreme = (np.fmax, np.maximum, -_NO_REST) if largest else (np.fmin, np.minimum, _NO_REST)

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        assert owners is not None
        all_hi, all_lo = np.empty(len(owners), np.float64), np.empty(len(owners), np.int16)
        seen = smallest_numbers([values], all_hi, all_lo, self._unit)
        hi = np.full(len(batch.records), np.nan)
        lo = np.zeros(len(batch.records), np.int16)
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        if len(begins):
            of_numbers, of_rests, no_rest = self._extreme
            firsts = owners[begins]
            hi[firsts] = of_numbers.reduceat(all_hi, begins)
            ties = np.where(all_hi == hi[owners], all_lo, np.int16(no_rest))  # only of those that are equal rests count
            lo[firsts] = np.where(np.isnan(hi[firsts]), 0, of_rests.reduceat(ties, begins))
        return Piece(len(batch.records), (hi, lo if lo.any() else None), seen=seen)


class PrefixBuilder(Builder):
    """Four bytes of each value, or of its hash (offset -1)."""

    def __init__(self, values: ValueSource, prefix_offset: int, as_map: bool) -> None:
        self._values = values
        self._offset = prefix_offset
        self._as_map = as_map

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        return prefix_piece(values, owners, len(batch.records), self._offset)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return prefix_segment(pieces, run, self._offset, self._as_map)


class SetBuilder(Builder):
    """The records whose value something is true of."""

    def __init__(self, values: ValueSource) -> None:
        self._values = values

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return Set(bitmap_of(members(pieces)), run[0] % SPAN, run[1]).segment(run)


class PredicateBuilder(SetBuilder):
    """Those whose value a function accepts. It is asked once for each value of a slice."""

    def __init__(self, values: ValueSource, accepts: Callable[[bytes], bool]) -> None:
        super().__init__(values)
        self._accepts = accepts

    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        values, owners = self._values.get(batch)
        table = NumberingTable()
        states = batch.records.states if owners is None else batch.records.states[owners]
        numbers = table.number(values, states)
        assert numbers is not None  # without a limit, it is never full
        verdict = np.zeros(table.filled + 1, np.bool_)
        for number, key in enumerate(table.keys()):
            verdict[number] = number > 0 and self._accepts(key)
        hits = np.flatnonzero(verdict[np.minimum(numbers, table.filled)])
        return Piece(len(batch.records), (), hits.astype(np.int32) if owners is None else np.unique(owners[hits]))


class TextBuilder(SetBuilder):
    """Those whose text, or bytes, a test accepts; it is given the keys of many at once."""

    def __init__(self, values: ValueSource, test: TextTest) -> None:
        super().__init__(values)
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


def smallest_numbers(
    fields: Iterable[FieldValues], hi: NDArray[np.float64], lo: NDArray[np.int16], unit: str | None = None
) -> int:
    """Fill `hi` and `lo` with the smallest number that each record holds in the fields, or with a `unit` (of numbers)
    the earliest time; NaN and 0 where none does. Gives the bits of what was seen.
    """
    looked, seen = 0, 0
    for buffer, kind, start, length, number in (values.arrays for values in fields):
        if not looked or kind.any():  # of a field that nobody has, one look is enough
            if unit is None:
                seen |= kernels.smallest_numbers(kind, number, length, looked, hi, lo)
            else:
                seen |= earliest_times(buffer, kind, start, length, number, UNITS.index(unit), looked, hi, lo)
            looked = 1
    return seen


def prefix_piece(values: FieldValues, owners: NDArray[np.int32] | None, count: int, offset: int) -> Piece:
    """The prefixes of a run of values, and which are there at all."""
    if offset < 0:
        out = hash_prefixes(values)
    else:
        out = np.empty(len(values.kind), np.uint32)
        kernels.byte_prefixes(*values.arrays, len(out), offset, out)
    return Piece(count, (out, values.kind != ABSENT), owners)


def prefix_segment(pieces: Pieces, run: Run, offset: int, as_map: bool) -> Segment:
    lead = run[0] % SPAN
    prefixes = joined(pieces, 0, np.uint32)
    present = joined(pieces, 1, np.bool_)
    if not as_map:
        return Prefixes(bitmap_of_mask(present, lead), prefixes, lead, offset).segment(run)
    owned = any(piece.owners is not None for _, piece in pieces)
    where = members(pieces) if owned else np.arange(lead, lead + run[1], dtype=np.uint32)
    return PrefixMap(prefixes[present], where[present], lead, run[1], offset).segment(run)


def joined(pieces: Pieces, number: int, dtype: Any) -> Any:
    return np.concatenate([np.empty(0, dtype), *(piece.arrays[number] for _, piece in pieces)])


def members(pieces: Pieces) -> NDArray[np.uint32]:
    """The owners of all pieces, relative to their span."""
    empty = np.empty(0, np.uint32)
    return np.concatenate([empty, *(piece.owned().astype(np.uint32) + np.uint32(seq % SPAN) for seq, piece in pieces)])
