"""What a task of a read does: Arrow record batches of the records of its part, straight from the located fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from jitdb.common.values import ABSENT, BYTES, MAP, NUMBER
from jitdb.errors import DecodeError
from jitdb.indexes.building.builders import smallest_numbers
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.codecs.fields.constants import KEYS, LIVE
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.spark_ext.errors import RecordMismatch
from jitdb.spark_ext.reading.arrow_columns import array_of_values, column, struct
from jitdb.spark_ext.reading.columns import WHOLE
from jitdb.spark_ext.reading.json_text import json_of
from jitdb.spark_ext.reading.parts import Part
from jitdb.spark_ext.reading.pieces import Piece, Reader
from jitdb.spark_ext.reading.window import matching_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.spark_ext.range_source import SharedFile
    from jitdb.spark_ext.reading.schema import Layout, Node

ROWS: Final = 1 << 16  # of a record batch, at most: bounds the memory of a piece of tiny records


def read_part(
    part: Part, layout: Layout, *, permissive: bool, done: Callable[[Piece], object] = lambda piece: None
) -> Iterator[pa.RecordBatch]:
    """The rows of a part, in the order of the log.

    permissive: what does not fit its column is null; else it is an error
    done:       is told of each piece whose rows were all given

    Raises CopyDiffers, LogChanged, LogCorrupt, RecordMismatch, DecodeError, OSError.
    """
    source = part.open()
    wanted = _wanted(part, source)
    made = _Batches(part, layout, permissive)
    for piece in Reader(part, source).pieces():
        chosen = np.flatnonzero(wanted(piece))
        for low in range(0, len(chosen), ROWS):
            yield made.batch(piece, chosen[low : low + ROWS])
        done(piece)


def _wanted(part: Part, source: SharedFile) -> Callable[[Piece], NDArray[np.bool_]]:
    """Which records of a piece are rows."""
    deleted = part.deleted

    def live(piece: Piece) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = piece.states == LIVE
        if len(deleted):
            mask[_places(piece.offsets, deleted)] = False
        return mask

    if part.chosen is not None:
        seqs = members_of(BitMap.deserialize(part.chosen)).astype(np.int64)
        return lambda piece: live(piece) & _mask(piece.seqs, seqs)
    if part.where is not None:
        offsets = matching_offsets(part, source)
        return lambda piece: live(piece) & _mask(piece.offsets, offsets)
    return live


def _mask(numbers: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(len(numbers), np.bool_)
    mask[_places(numbers, chosen)] = True
    return mask


def _places(numbers: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where in `numbers` those stand that are chosen; both ascend."""
    if not len(numbers):
        return np.empty(0, np.int64)
    low, high = chosen.searchsorted([numbers[0], numbers[-1] + 1]).tolist()
    within = chosen[low:high]
    places: NDArray[np.int64] = numbers.searchsorted(within)
    there: NDArray[np.int64] = places[numbers[places] == within]
    return there


def _split(numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    """The nearest doubles, and the rests."""
    nearest = numbers.astype(np.float64)
    return nearest, (numbers - nearest.astype(np.int64)).astype(np.int16)


class _Batches:
    """Makes the record batches of one part."""

    def __init__(self, part: Part, layout: Layout, permissive: bool) -> None:
        self._part = part
        self._layout = layout
        self._permissive = permissive
        self._codec = part.shape.codec
        self._locator = self._codec.locator(layout.paths)

    def batch(self, piece: Piece, chosen: NDArray[np.int64]) -> pa.RecordBatch:
        """The batch of these records of a piece."""
        states, offsets = np.zeros(len(chosen), np.uint8), piece.offsets[chosen]
        records = RecordBatch(piece.buffer, piece.starts[chosen], piece.lengths[chosen], states, offsets)
        fields, _ = self._locator.fields(records)
        rows = _Rows(self, piece, chosen, fields)
        return pa.RecordBatch.from_arrays([rows.array(node) for node in self._layout.nodes], schema=self._layout.schema)

    def complain(self, name: str, wrong: NDArray[np.bool_], offsets: NDArray[np.int64]) -> None:
        """Some values do not fit the column."""
        if not self._permissive:
            offset = int(offsets[wrong][0])
            raise RecordMismatch(
                f"the record at offset {offset:,} does not fit the column {name!r}",
                path=self._part.shape.path,
                column=name,
                offset=offset,
                remedy="give the column another type (string takes anything), or read with mode=PERMISSIVE, which "
                "makes it null",
            )

    def lacks(self, name: str, wrong: NDArray[np.bool_], offsets: NDArray[np.int64]) -> None:
        """Some values of a column that is NOT NULL are null."""
        offset = int(offsets[wrong][0])
        raise RecordMismatch(
            f"the record at offset {offset:,} has nothing for the column {name!r}, which is NOT NULL",
            path=self._part.shape.path,
            remedy="leave that out of the schema",
            column=name,
            offset=offset,
        )


class _Rows:
    """The rows of one batch."""

    def __init__(self, made: _Batches, piece: Piece, chosen: NDArray[np.int64], fields: Sequence[FieldValues]) -> None:
        self._made = made
        self._piece = piece
        self._chosen = chosen
        self._fields = fields
        self._offsets = piece.offsets[chosen]

    def array(self, node: Node, name: str = "", within: NDArray[np.bool_] | None = None) -> pa.Array:
        """The array of a column, or of a field of one: then `within` are the rows where that one is no null."""
        name = f"{name}.{node.name}" if name else node.name
        made = self._core(node, name) if node.source.core else self._field(node, name)
        if not node.nullable and made.null_count:
            nulls = np.asarray(made.is_null())
            lacking = nulls if within is None else nulls & within
            if lacking.any():
                self._made.lacks(name, lacking, self._offsets)
        return made

    def _field(self, node: Node, name: str) -> pa.Array:
        values = self._fields[node.rows[0]]
        if node.source.unless_map:
            values = values._replace(kind=np.where(values.kind == MAP, np.uint8(ABSENT), values.kind))
        if node.children:
            children = [self.array(child, name, values.kind == MAP) for child in node.children]
            return struct(node.type, values, children, self._misfits(name))
        return column(node.type, values, self._misfits(name))

    def _misfits(self, name: str) -> Callable[[NDArray[np.bool_]], None]:
        return lambda wrong: self._made.complain(name, wrong, self._offsets)

    def _core(self, node: Node, name: str) -> pa.Array:
        core = node.source.core
        if core == WHOLE:
            return self._whole(node, name)
        if core == "timestamp":
            return self._timestamp(node, name)
        numbers = self._piece.seqs[self._chosen] if core == "seq" else self._offsets
        if pa.types.is_int64(node.type):  # as they are
            return pa.array(numbers)
        return self._numbers(node, name, *_split(numbers))

    def _timestamp(self, node: Node, name: str) -> pa.Array:
        count = len(self._chosen)
        hi, lo = np.empty(count, np.float64), np.empty(count, np.int16)
        smallest_numbers([self._fields[row] for row in node.rows], hi, lo)
        return self._numbers(node, name, hi, lo)

    def _numbers(self, node: Node, name: str, hi: NDArray[np.float64], lo: NDArray[np.int16]) -> pa.Array:
        """Numbers that are in no field of the record; NaN: there is none. See values.py for the two halves."""
        kinds = np.where(np.isnan(hi), np.uint8(ABSENT), np.uint8(NUMBER))
        values = FieldValues(KEYS, self._piece.buffer, kinds, np.zeros(len(hi), np.int32), lo.astype(np.int32), hi)
        return column(node.type, values, self._misfits(name))

    def _whole(self, node: Node, name: str) -> pa.Array:
        starts, lengths = self._piece.starts[self._chosen], self._piece.lengths[self._chosen]
        count = len(starts)
        if pa.types.is_binary(node.type):
            kinds = np.full(count, BYTES, np.uint8)
            at, sizes = starts.astype(np.int32), lengths.astype(np.int32)
            small = FieldValues(KEYS, self._piece.buffer, kinds, at, sizes, np.zeros(count))
            return column(node.type, small, self._misfits(name))
        found, present = [], np.ones(count, np.bool_)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            try:
                found.append(self._made._codec.decode(self._piece.buffer[start : start + length].tobytes()))
            except DecodeError as error:
                present[number] = False
                if not self._made._permissive:
                    raise DecodeError(
                        f"the record at offset {self._offsets[number]:,} cannot be decoded: {error}",
                        path=self._made._part.shape.path,
                        remedy="with mode=PERMISSIVE it is null",
                        offset=int(self._offsets[number]),
                    ) from error
        if pa.types.is_string(node.type):  # JSON, also of a record that is text
            found = list(map(json_of, found))
        return array_of_values(node.type, found, present, self._misfits(name))
