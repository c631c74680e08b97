"""How an index is built from a scan: a builder an index.

    work(worker, batch)       in a worker thread: the heavy part; gives a *piece*, one run of records
    make(pieces, run, last)   in the scanning thread: the segment of the pieces of one run, which crosses no span

A piece can be cut between two records. Kernels run without the GIL, so workers go side by side.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from jitdb.common.paths import Path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.indexes.kinds.casting import list_inside
from jitdb.indexes.numbering import NumberingTable
from jitdb.indexes.segment import SPAN, Run, Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Codec
    from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch

Seek: TypeAlias = Callable[[bytes, int], int | None]


class LocatedBatch(NamedTuple):
    """What a scan hands to the builders: a run of records, and the fields that were asked for, by row."""

    records: RecordBatch
    fields: Sequence[FieldValues]
    locator: Locator
    codec: Codec

    def states(self, owners: NDArray[np.int32] | None) -> NDArray[np.uint8]:
        """Those of the records that own values; None: a value a record."""
        return self.records.states if owners is None else self.records.states[owners]


class ValueSource:
    """Where a builder's values come from: the field of a row, or what a user's function `(record, start) -> position`
    points at, one Python call a record; then what `path` leads to in it, and of arrays the elements that are
    `included`, or what lies there in them.
    """

    def __init__(self, row: int, seek: Seek | None = None, path: Path = (), included: Path | None = None) -> None:
        self.is_owned = bool(path) or included is not None  # whether a record may own any number of values
        self._row = row
        self._seek = seek
        self._path, self._included = path, included

    def get(self, batch: LocatedBatch) -> tuple[FieldValues, NDArray[np.int32] | None]:
        """The values, and the records that own them (None: a value a record). A record without a value owns one that is
        ABSENT, but of what includes() asks for none.
        """
        if self._seek is None:
            values = batch.fields[self._row]
        else:
            values = batch.locator.values_at(batch.records, _positions(self._seek, batch.records))
        if not self.is_owned:
            return values, None
        return list_inside(values, self._path, included=self._included, absent=self._included is None)


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

    Without `owners` an entry a record. With them, entries belong to the records `owners` (ascending, from 0), or
    (`goes_on`) to these and all that follow up to the next owner.
    """

    records: int
    arrays: tuple[Any, ...]
    owners: NDArray[np.int32] | None = None
    table: NumberingTable | None = None  # whose numbers the entries are
    seen: int = 0  # among its numbers, or where it was cut from: bits of seen.py
    goes_on: bool = False

    def cut(self, start: int, stop: int) -> Piece:
        if start == 0 and stop == self.records:
            return self
        low, high, owners = start, stop, self.owners
        if owners is not None:
            low, high = np.searchsorted(owners, [start, stop]).tolist()
            low -= self.goes_on and low > 0 and (low == high or owners[low] > start)
            owners = np.maximum(owners[low:high] - np.int32(start), np.int32(0))
        arrays = tuple(array if array is None else array[low:high] for array in self.arrays)
        return self._replace(records=stop - start, arrays=arrays, owners=owners)


class Pieces(list[tuple[int, Piece]]):
    """Those of one run, each with its first seq, in order and without gaps."""

    def joined(self, number: int) -> Any:
        """One of their arrays, end to end."""
        return np.concatenate([piece.arrays[number] for _, piece in self])

    def members(self) -> NDArray[np.uint32]:
        """The record of each entry, relative to the span."""
        return np.concatenate(
            [
                (np.arange(piece.records, dtype=np.uint32) if piece.owners is None else piece.owners.astype(np.uint32))
                + np.uint32(seq % SPAN)
                for seq, piece in self
            ]
        )

    @property
    def are_owned(self) -> bool:
        return any(piece.owners is not None for _, piece in self)

    def tables(self) -> dict[int, NumberingTable]:
        """Those that numbers of theirs are of, by identity."""
        return {id(piece.table): piece.table for _, piece in self if piece.table is not None}


class Builder(ABC):
    """Builds the segments of one index."""

    def new_worker(self) -> Any:
        """What one worker thread keeps for this builder; None when nothing."""
        return None

    def damaged(self, blocks: Iterable[int], block_size: int) -> None:  # noqa: B027 (most have no use for it)
        """Takes the numbers of damaged blocks. They come with the pieces that are made next."""

    def unproven(self, rows: NDArray[Any], block_size: int) -> None:  # noqa: B027 (one has a use for it)
        """Takes blocks that no checksum proves, as set.ROW. They come with the pieces that are made next."""

    @abstractmethod
    def work(self, worker: Any, batch: LocatedBatch) -> Piece:
        """What the index needs of the records. Keeps nothing that points into their arrays."""

    @abstractmethod
    def make(self, pieces: Pieces, run: Run, last: bool) -> Segment:
        """The segment of a run; `last` says that the scan has come to the log's end."""
