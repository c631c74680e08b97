"""Building indexes from chunks: a builder an index.

    work(worker, chunk)       in a worker thread: the heavy part; gives a *piece*, one run of records
    make(pieces, run, last)   in the scanning thread: the segment of the pieces of one run, which crosses no span

A piece can be cut between two records. Kernels of a piece run without the GIL, so workers go side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from jitdb.common.immutable import Immutable
from jitdb.common.values import ABSENT
from jitdb.indexes.building import value_kernels as kernels
from jitdb.indexes.building.numbering import NumberingTable
from jitdb.indexes.building.sources import ValueSource
from jitdb.indexes.kinds.numbers import NumberRange, make_numbers, range_of
from jitdb.indexes.kinds.offsets import make_offsets
from jitdb.indexes.kinds.prefixes import hash_prefixes, make_prefix_map, make_prefixes
from jitdb.indexes.kinds.roaring import bitmap_of, bitmap_of_mask
from jitdb.indexes.kinds.set import ROW, Fingerprint, make_set
from jitdb.indexes.segment import SPAN, Journal, Run, Segment
from jitdb.log.codecs.fields.constants import DELETED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.indexes.building.chunk import Chunk
    from jitdb.log.codecs.fields.located import FieldValues


class Piece(Immutable):
    """What one run of `count` records gave: parallel arrays.

    Without `owners` an entry a record. With them, entries belong to the records `owners` (ascending, from 0).
    """

    __slots__ = __match_args__ = ("count", "arrays", "owners", "table", "extent")

    count: int
    arrays: tuple[Any, ...]
    owners: NDArray[np.int32] | None
    table: NumberingTable | None  # whose numbers the entries are
    extent: NumberRange | None  # of the whole piece's numbers

    def __init__(
        self,
        count: int,
        arrays: tuple[Any, ...],
        owners: NDArray[np.int32] | None = None,
        table: NumberingTable | None = None,
        extent: NumberRange | None = None,
    ) -> None:
        self._keep(count, arrays, owners, table, extent)

    def owned(self) -> NDArray[np.int32]:
        """The owners of the entries, where they have any."""
        assert self.owners is not None
        return self.owners

    def cut(self, start: int, stop: int) -> Piece:
        """The records [start, stop) of the piece."""
        if start == 0 and stop == self.count:
            return self
        if self.owners is None:
            arrays = tuple(array if array is None else array[start:stop] for array in self.arrays)
            return self.changed(count=stop - start, arrays=arrays, extent=None)
        low, high = np.searchsorted(self.owners, [start, stop]).tolist()
        arrays = tuple(array[low:high] for array in self.arrays)
        return self.changed(count=stop - start, arrays=arrays, owners=self.owners[low:high] - np.int32(start))


Pieces: TypeAlias = Sequence[tuple[int, Piece]]  # each with its first seq; in order, without gaps


class Builder(ABC):
    """Builds the segments of one index. `rows` are the numbers of its fields in a chunk."""

    rows: tuple[int, ...] = ()

    def new_worker(self) -> Any:
        """What one worker thread keeps for this builder; None when nothing."""
        return None

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:  # noqa: B027 (most have no use for it)
        """Blocks with these numbers are not what was written. They come with the pieces that are made next."""

    def unproven(self, rows: NDArray[Any], block_size: int) -> None:  # noqa: B027 (one has a use for it)
        """Blocks that no checksum proves, as fingerprint.ROW. They come with the pieces that are made next."""

    @abstractmethod
    def work(self, worker: Any, chunk: Chunk) -> Piece:
        """What the index needs of a chunk. Keeps nothing that points into the chunk's arrays."""

    @abstractmethod
    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        """The segment of a run; `last` says that the scan has come to the log's end."""


class OffsetsBuilder(Builder):
    """Where each record begins, and which blocks are damaged."""

    def __init__(self) -> None:
        self._damaged: list[tuple[int, int]] = []

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:
        self._damaged += [(block, block * block_size) for block in blocks]

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        return Piece(len(chunk), (chunk.offsets.copy(),))

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        first, end = run[2:]
        damaged = [block for block, begin in self._damaged if first <= begin < end]
        return make_offsets(joined(pieces, 0, np.int64), run, damaged)


class DeletedBuilder(Builder):
    """Which records were deleted when they were scanned, and which blocks nothing proved."""

    def __init__(self) -> None:
        self._block_size = 0
        self._unproven: dict[int, NDArray[Any]] = {}  # rows of a chunk, by its first block

    def unproven(self, rows: NDArray[Any], block_size: int) -> None:
        self._block_size = block_size
        if len(rows):
            self._unproven[int(rows["number"][0])] = rows

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        owners = np.flatnonzero(chunk.states == DELETED).astype(np.int32)
        return Piece(len(chunk), (), owners)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        rows = np.concatenate([np.empty(0, ROW), *self._unproven.values()])
        fingerprint = Fingerprint(self._block_size, Journal(), rows).within(*run[2:]) if self._block_size else None
        return make_set(bitmap_of(members(pieces)), run, fingerprint)


class NumbersBuilder(Builder):
    """The smallest number that a record holds in any of the fields."""

    def __init__(self, rows: tuple[int, ...]) -> None:
        self.rows = rows

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        hi = np.empty(len(chunk), np.float64)
        lo = np.empty(len(chunk), np.int16)
        extent = smallest_numbers([chunk.fields[row] for row in self.rows], hi, lo)
        return Piece(len(chunk), (hi, lo if extent.rests else None), extent=extent)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        extents = (piece.extent or range_of(*piece.arrays) for _, piece in pieces)  # none where a piece was cut
        extent = reduce(NumberRange.with_, extents, NumberRange())
        hi = joined(pieces, 0, np.float64)
        if not extent.rests:
            return make_numbers(hi, None, extent, run)
        lo = [np.zeros(piece.count, np.int16) if piece.arrays[1] is None else piece.arrays[1] for _, piece in pieces]
        return make_numbers(hi, np.concatenate(lo), extent, run)


class PrefixBuilder(Builder):
    """Four bytes of each value, or of its hash (offset -1)."""

    def __init__(self, values: ValueSource, prefix_offset: int, as_map: bool) -> None:
        self.rows = values.rows
        self._values = values
        self._offset = prefix_offset
        self._as_map = as_map

    def new_worker(self) -> Any:
        return self._values.new_worker()

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        values, owners = self._values.get(worker, chunk)
        return prefix_piece(values, owners, len(chunk), self._offset)

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return prefix_segment(pieces, run, self._offset, self._as_map)


class PredicateBuilder(Builder):
    """The records whose value a function accepts. It is asked once for each value of a slice."""

    def __init__(self, values: ValueSource, accepts: Callable[[bytes], bool]) -> None:
        self.rows = values.rows
        self._values = values
        self._accepts = accepts

    def new_worker(self) -> Any:
        return self._values.new_worker()

    def work(self, worker: Any, chunk: Chunk) -> Piece:
        values, owners = self._values.get(worker, chunk)
        table = NumberingTable(limited=False)
        states = chunk.states if owners is None else np.zeros(len(values.kind), np.uint8)
        numbers = table.number(values, states)
        assert numbers is not None  # without a limit, it is never full
        verdict = np.zeros(table.filled + 1, np.bool_)
        for number, key in enumerate(table.keys()):
            verdict[number] = number > 0 and self._accepts(key)
        hits = np.flatnonzero(verdict[np.minimum(numbers, table.filled)])
        return Piece(len(chunk), (), (hits if owners is None else owners[hits]).astype(np.int32))

    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        return make_set(bitmap_of(members(pieces)), run)


def smallest_numbers(fields: Iterable[FieldValues], hi: NDArray[np.float64], lo: NDArray[np.int16]) -> NumberRange:
    """Fill `hi` and `lo` with the smallest number that each record holds in the fields; NaN and 0 where none does."""
    extent = None
    for _, kind, _, length, number in (values.arrays for values in fields):
        if extent is None or kind.any():  # of a field that nobody has, one look is enough
            extent = NumberRange(*kernels.smallest_numbers(kind, number, length, int(extent is not None), hi, lo))
    return NumberRange() if extent is None else extent


def prefix_piece(values: FieldValues, owners: NDArray[np.int32] | None, count: int, offset: int) -> Piece:
    """The prefixes of a run of values, and which are there at all."""
    if offset < 0:
        out = hash_prefixes(values)
    else:
        out = np.empty(len(values.kind), np.uint32)
        kernels.byte_prefixes(*values.arrays, len(out), offset, out)
    return Piece(count, (out, values.kind != ABSENT), owners)


def prefix_segment(pieces: Pieces, run: Run, offset: int, as_map: bool) -> Segment:
    """The segment of pieces that prefix_piece made."""
    lead = run[0] % SPAN
    prefixes = joined(pieces, 0, np.uint32)
    present = joined(pieces, 1, np.bool_)
    if not as_map:
        return make_prefixes(bitmap_of_mask(present, lead), prefixes, offset, run)
    owned = any(piece.owners is not None for _, piece in pieces)
    where = members(pieces) if owned else np.arange(lead, lead + run[1], dtype=np.uint32)
    return make_prefix_map(prefixes[present], where[present], offset, run)


def joined(pieces: Pieces, number: int, dtype: Any) -> Any:
    """One array of all pieces, end to end."""
    return np.concatenate([np.empty(0, dtype), *(piece.arrays[number] for _, piece in pieces)])


def members(pieces: Pieces) -> NDArray[np.uint32]:
    """The owners of all pieces, relative to their span."""
    empty = np.empty(0, np.uint32)
    return np.concatenate([empty, *(piece.owned().astype(np.uint32) + np.uint32(seq % SPAN) for seq, piece in pieces)])
