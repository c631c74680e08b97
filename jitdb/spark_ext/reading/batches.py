"""What a task of a read does: Arrow record batches of its partition's records, straight from the located fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from jitdb.common.json_text import json_of
from jitdb.common.values import ABSENT, BYTES, MAP, NUMBER
from jitdb.errors import DecodeError
from jitdb.indexes.kinds.casting import locator_of, smallest_numbers
from jitdb.indexes.kinds.roaring import members_of
from jitdb.log.codecs.arrow_columns import array_of_values, column, struct
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.located import FieldValues, RecordBatch
from jitdb.spark_ext.columns import WHOLE
from jitdb.spark_ext.errors import RecordMismatch
from jitdb.spark_ext.file_range import EndMoved
from jitdb.spark_ext.reading.partitions import BlockReader, Partition, RecordReader, Records, matching_offsets
from jitdb.spark_ext.reading.times import in_millis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.spark_ext.file_range import FileRange
    from jitdb.spark_ext.reading.schema import Layout, Node

ROWS: Final = 1 << 16  # of a record batch, at most: bounds the memory of a piece of tiny records


def read_partition(
    partition: Partition, layout: Layout, *, permissive: bool, done: Callable[[Records], object] = lambda records: None
) -> Iterator[pa.RecordBatch]:
    """The rows of a partition, in the order of the log.

    permissive: what does not fit its column is null; else it is an error
    done:       is told of records whose rows were all given

    Raises CopyDiffers, LogChanged, LogCorrupt, RecordMismatch, DecodeError, OSError.
    """
    last = -1  # offset of the last record that was read
    if partition.indexed is not None:
        from jitdb.spark_ext.reading.from_indexes import rows_from_indexes

        source, left = partition.open(), BitMap.deserialize(partition.chosen or b"")  # the log is the driver's
        for columns in rows_from_indexes(partition, layout):
            yield _Rows(source, layout, permissive, partition.shared, *columns).batch()
            left.remove_range(0, int(columns.seqs[-1]) + 1)
            last = int(columns.offsets[-1])
        source.check()
        if not left:
            return
    while True:
        source = partition.open()
        locator = locator_of(source.codec, layout.paths)
        try:
            wanted = _wanted(partition, source)
            for records in _reader(partition, source).records():
                chosen = np.flatnonzero(wanted(records) & (records.offsets > last))
                for low in range(0, len(chosen), ROWS):
                    seqs, some = _taken(records, chosen[low : low + ROWS])
                    fields, _ = locator.fields(some)
                    assert some.offsets is not None
                    yield _Rows(source, layout, permissive, partition.shared, seqs, some.offsets, fields, some).batch()
                last = max(last, *records.offsets[-1:].tolist(), -1)
                done(records)
            return
        except EndMoved as moved:
            partition = partition.ended(moved.end)


def _reader(partition: Partition, source: FileRange) -> RecordReader:
    if source.framing.is_blocked:
        return BlockReader(partition, source)
    from jitdb.spark_ext.reading.line_reader import LineReader

    return LineReader(partition, source)


def _wanted(partition: Partition, source: FileRange) -> Callable[[Records], NDArray[np.bool_]]:
    """Which of some records are rows."""

    def live(records: Records) -> NDArray[np.bool_]:
        mask = ~records.deleted
        mask[_places(records.offsets, partition.deleted)] = False
        return mask

    if partition.chosen is not None:
        seqs = members_of(BitMap.deserialize(partition.chosen)).astype(np.int64)
        return lambda records: live(records) & _mask(records.seqs, seqs)
    if partition.where is not None:
        offsets = matching_offsets(partition, source)
        return lambda records: live(records) & _mask(records.offsets, offsets)
    return live


def _taken(records: Records, places: NDArray[np.intp]) -> tuple[NDArray[np.int64], RecordBatch]:
    """The records at these places, and their seqs."""
    starts, lengths, offsets = records.starts[places], records.lengths[places], records.offsets[places]
    return records.seqs[places], RecordBatch(records.buffer, starts, lengths, np.zeros(len(places), np.uint8), offsets)


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


class _Rows:
    """The rows of one batch."""

    def __init__(
        self,
        source: FileRange,
        layout: Layout,
        permissive: bool,
        shared: Mapping[str, Any],
        seqs: NDArray[np.int64],
        offsets: NDArray[np.int64],
        fields: Sequence[FieldValues],
        records: RecordBatch | None = None,
    ) -> None:
        """fields: of the layout's paths; shared: see Partition; records: their bytes, for a column of whole ones"""
        self._source = source
        self._layout = layout
        self._permissive = permissive
        self._shared = shared
        self._seqs, self._offsets, self._fields = seqs, offsets, fields
        self._records = records

    def batch(self) -> pa.RecordBatch:
        """All columns."""
        layout = self._layout
        return pa.RecordBatch.from_arrays([self._array(node) for node in layout.nodes], schema=layout.schema)

    def _array(self, node: Node, name: str = "", within: NDArray[np.bool_] | None = None) -> pa.Array:
        """The array of a column, or of a field of one: then `within` are the rows where that one is no null."""
        name = f"{name}.{node.name}" if name else node.name
        made = self._core(node, name) if node.source.core else self._field(node, name)
        if not node.nullable and made.null_count:
            nulls = np.asarray(made.is_null())
            lacking = nulls if within is None else nulls & within
            if lacking.any():
                raise self._mismatch(
                    name, lacking, f"has nothing for the column {name!r}, which is NOT NULL",
                    "leave that out of the schema",
                )  # fmt: skip
        return made

    def _field(self, node: Node, name: str) -> pa.Array:
        values = self._values(node)
        if node.source.unless_map:
            values = values._replace(kind=np.where(values.kind == MAP, np.uint8(ABSENT), values.kind))
        if node.children:
            children = [self._array(child, name, values.kind == MAP) for child in node.children]
            return struct(node.type, values, children, self._misfits(name))
        if pa.types.is_timestamp(node.type):
            values = in_millis(values)
        return column(node.type, values, self._misfits(name))

    def _values(self, node: Node) -> FieldValues:
        """Those of a field."""
        path = node.source.path
        if not path or path[0] not in self._shared:
            return self._fields[node.rows[0]]
        from jitdb.logset.set_columns import constant

        return constant(self._shared, path, len(self._offsets))

    def _misfits(self, name: str) -> Callable[[NDArray[np.bool_]], None]:
        """Is told which values do not fit the column."""

        def complain(wrong: NDArray[np.bool_]) -> None:
            if not self._permissive:
                raise self._mismatch(
                    name, wrong, f"does not fit the column {name!r}",
                    "give the column another type (string takes anything), or read with mode=PERMISSIVE, which makes "
                    "it null",
                )  # fmt: skip

        return complain

    def _mismatch(self, name: str, wrong: NDArray[np.bool_], what: str, remedy: str) -> RecordMismatch:
        offset = int(self._offsets[wrong][0])
        reason = f"the record at offset {offset:,} {what}"
        return RecordMismatch(reason, path=self._source.path, column=name, offset=offset, remedy=remedy)

    def _core(self, node: Node, name: str) -> pa.Array:
        core = node.source.core
        if core == WHOLE:
            return self._whole(node, name)
        if core == "timestamp":
            count = len(self._offsets)
            hi, lo = np.empty(count, np.float64), np.empty(count, np.int16)
            fields = [self._fields[row] for row in node.rows]
            if pa.types.is_timestamp(node.type):
                fields = [in_millis(values, self._layout.unit) for values in fields]
            smallest_numbers(fields, hi, lo)
            return self._numbers(node, name, hi, lo)
        numbers = self._seqs if core == "seq" else self._offsets
        if pa.types.is_int64(node.type):  # as they are
            return pa.array(numbers)
        return self._numbers(node, name, *halves(numbers))

    def _numbers(self, node: Node, name: str, hi: NDArray[np.float64], lo: NDArray[np.int16]) -> pa.Array:
        """Numbers that are in no field of the record; NaN: there is none. See values.py for the two halves."""
        kinds = np.where(np.isnan(hi), np.uint8(ABSENT), np.uint8(NUMBER))
        nowhere = np.zeros(len(hi), np.int32)
        values = FieldValues(KEYS, np.zeros(1, np.uint8), kinds, nowhere, lo.astype(np.int32), hi)
        return column(node.type, values, self._misfits(name))

    def _whole(self, node: Node, name: str) -> pa.Array:
        assert self._records is not None
        buffer, starts, lengths = self._records.buffer, self._records.starts, self._records.lengths
        count = len(starts)
        if pa.types.is_binary(node.type):
            kinds = np.full(count, BYTES, np.uint8)
            at, sizes = starts.astype(np.int32), lengths.astype(np.int32)
            values = FieldValues(KEYS, buffer, kinds, at, sizes, np.zeros(count))
            return column(node.type, values, self._misfits(name))
        found, present = [], np.ones(count, np.bool_)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            try:
                found.append(self._source.codec.decode(buffer[start : start + length].tobytes()))
            except DecodeError as error:
                present[number] = False
                if not self._permissive:
                    raise DecodeError(
                        f"the record at offset {self._offsets[number]:,} cannot be decoded: {error}",
                        path=self._source.path,
                        remedy="with mode=PERMISSIVE it is null",
                        offset=int(self._offsets[number]),
                    ) from error
        if pa.types.is_string(node.type):  # JSON, also of a record that is text
            found = list(map(json_of, found))
        return array_of_values(node.type, found, present, self._misfits(name))


def halves(numbers: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    """The nearest doubles, and the rests."""
    nearest = numbers.astype(np.float64)
    return nearest, (numbers - nearest.astype(np.int64)).astype(np.int16)
