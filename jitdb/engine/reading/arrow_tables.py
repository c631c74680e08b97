"""The selected fields of an answer as Arrow's columns, some thousand rows at a time; needs pyarrow.

The type of a column follows from all its values (log/codecs/arrow_columns.py), unless a schema gives it. So an
answer is read once where its columns can be widened when values of another kind come, and twice where they cannot, or
where it is too large for memory.

A field whose values all are times between 1678 and 2261 is a column of timestamps, in nanoseconds and UTC: text in the
form of RFC 3339, timestamps of msgpack, and in the fields of the declared time numbers too (jitdb.common.times).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jitdb.common import memory
from jitdb.common.paths import Path, before_any
from jitdb.common.times import AUTO, unit_and_zone, with_zone
from jitdb.common.times import NUMBER as NO_UNIT
from jitdb.common.values import ABSENT, ARRAY, NULL, NUMBER
from jitdb.engine.reading.selecting import CodedValues, FieldBatch
from jitdb.errors import QueryError
from jitdb.indexes.kinds.casting import list_inside, unit_of_kernels, with_numbers
from jitdb.indexes.kinds.dictionary import chosen
from jitdb.indexes.kinds.kernels.numbers import least_numbers
from jitdb.log.codecs.arrow_columns import Misfits, SeenKinds, column, is_supported, list_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.engine.declared_time import Times
    from jitdb.log.codecs.fields.located import FieldValues
    from jitdb.operators.nodes.selection import Selection

_HELD: Final = 64 << 20  # bytes of columns in memory; a larger answer is read twice
_PLACES: Final = {"seqs": pa.uint32(), "offsets": pa.int64()}
_TIME: Final = pa.timestamp("ns", "UTC")
_FAR: Final = 9.223372036e18  # nanoseconds: times beyond do not fit into 64 bits, or not exactly
_STEPS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds


class ArrowAnswer:
    """An answer as columns. Each call of `batches` reads it again, with the same records.

    times:  None: what is text stays text, and numbers numbers
    schema: the types of the columns, in the order of the selection
    places: "seqs", "offsets": columns before the others, where the types are not given
    """

    def __init__(
        self,
        selection: Selection,
        batches: Callable[[], Iterator[FieldBatch]],
        times: Times | None = None,
        schema: pa.Schema | None = None,
        places: Sequence[str] = (),
    ) -> None:
        self._batches = batches
        self._columns = [Column(name, path, times) for name, path in selection]
        self._schema = schema
        self._is_given = schema is not None
        self._places = places
        for field in schema or ():
            if not (pa.types.is_timestamp(field.type) or is_supported(field.type)):
                raise QueryError(
                    f"no column of the type {field.type} is made of `{field.name}`", remedy="string takes anything"
                )

    def table(self) -> pa.Table:
        """All of it. Raises QueryError where a value is not of the type that a schema says, LogError, DecodeError."""
        schema, batches = self._made(None)
        return pa.Table.from_batches(batches, schema)

    def reader(self) -> pa.RecordBatchReader:
        """One batch after the other; what is in memory of them is bounded. Raises as table() does."""
        self._schema, batches = self._made(memory.work(_HELD))
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def _made(self, most: int | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The schema and its batches; batches made before it is known take at most `most` bytes."""
        schema = self._schema
        if schema is None:
            made, size, batches = [], 0, self._batches()
            for batch in batches:
                made.append(self._widening(batch))
                size += made[-1].nbytes
                if most is not None and size > most:
                    made.clear()
                    break
            for batch in batches:
                self._note(batch)
            schema = self._seen()
            widened = [_widened(batch, schema) for batch in made]
            if all(batch is not None for batch in widened) and (widened or not size):
                return schema, iter(widened)
            # A value of another kind came late: only the records say what it makes of the values before it.
        return schema, (self._fitting(batch, schema) for batch in self._batches())

    def several(self) -> dict[str, tuple[str, ...]]:
        """The columns that are text because their values are of several kinds, and these; once the schema is known."""
        found = {each.name: each.several() for each in self._columns}
        return {name: kinds for name, kinds in found.items() if kinds}

    def known(self) -> list[KnownColumn]:
        """What there is to know of its columns, which are looked at."""
        self.schema()
        return [each.known() for each in self._columns]

    def schema(self) -> pa.Schema:
        """The types of its columns. Where they are not given, all of it is looked at."""
        if self._schema is None:
            for batch in self._batches():
                self._note(batch)
            self._schema = self._seen()
        return self._schema

    def _note(self, batch: FieldBatch) -> None:
        note_all(self._columns, batch)

    def _seen(self) -> pa.Schema:
        places = [pa.field(name, _PLACES[name]) for name in self._places]
        return pa.schema([*places, *(pa.field(each.name, each.type()) for each in self._columns)])

    def _widening(self, batch: FieldBatch) -> pa.RecordBatch:
        """Its rows, in columns that take all values up to it."""
        arrays = self._placed(batch)
        for number, each in enumerate(self._columns):
            found = _found(batch, number)
            each.note(found)
            arrays.append(each.array(each.type(), found, _no_misfit))
        return pa.RecordBatch.from_arrays(arrays, names=[*self._places, *(each.name for each in self._columns)])

    def _placed(self, batch: FieldBatch) -> list[pa.Array]:
        return [pa.array(getattr(batch, name), _PLACES[name]) for name in self._places]

    def _fitting(self, batch: FieldBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Its rows, in columns of the schema's types."""
        arrays = self._placed(batch)
        fields = list(schema)[len(arrays) :]
        for number, (each, field) in enumerate(zip(self._columns, fields, strict=True)):
            misfits = _given_misfit(field, batch) if self._is_given else _late_misfit(field)
            arrays.append(each.array(field.type, _found(batch, number), misfits))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def note_all(columns: Sequence[Column], batch: FieldBatch) -> None:
    """Look at the values of these columns, the fields of the batch."""
    for number, each in enumerate(columns):
        each.note(_found(batch, number))


class _Found(NamedTuple):
    """The values of a field; of a path to any element all that they lead to, and the rows that own these.

    codes: of a coded field, which value each row has; None: its own
    """

    values: FieldValues
    owners: NDArray[np.int32] | None
    rows: int
    codes: NDArray[Any] | None = None


def _found(batch: FieldBatch, number: int) -> _Found:
    held, (_, path) = batch.fields[number], batch.selection[number]
    if isinstance(held, CodedValues):
        used = held.used()
        return _Found(used.values, None, len(batch), used.codes)
    values, rest = batch.values(number), path[len(before_any(path)) :]
    if not rest:
        return _Found(values, None, len(batch))
    only = values._replace(kind=np.where(values.kind == ARRAY, values.kind, np.uint8(ABSENT)))
    return _Found(*list_inside(only, rest), len(batch))


class KnownColumn(NamedTuple):
    """A field as a column, of all values of which something is known.

    is_as_it_stands: what is text in the column, or in its lists, is text in the records, not another value as JSON
    has_null, has_nan: records may have null in the field; it, or its elements, may be NaN
    """

    name: str
    path: Path
    type: pa.DataType
    is_as_it_stands: bool
    has_null: bool
    has_nan: bool


class Column:
    """One column, and what was seen of its values."""

    def __init__(self, name: str, path: Path, times: Times | None) -> None:
        self.name, self.path = name, path
        self._kinds = SeenKinds()
        self._is_list = before_any(path) != path
        unit, zone = unit_and_zone(AUTO if times is None else times.unit)
        self._takes_numbers = times is not None and path in times.paths and unit != NO_UNIT  # for times
        self._unit = with_zone(unit if self._takes_numbers else AUTO, zone)
        self._may_be_time = times is not None
        self._has_times = False
        self._noted: tuple[FieldValues, _Times] | None = None  # the last values, as times

    def note(self, found: _Found) -> None:
        """Look at these values, too."""
        values = found.values
        self._is_list = found.owners is not None
        if self._is_list:
            self._kinds.elements().note(values)
            return
        self._kinds.note(values)
        if self._may_be_time:
            present = _present(values)
            if present.any():
                self._has_times = self._may_be_time = self._are_times(values, present)

    def type(self) -> pa.DataType:
        """The type that takes all values that were looked at."""
        if self._is_list:
            return pa.list_(self._kinds.elements().type())
        return _TIME if self._has_times else self._kinds.type()

    def several(self) -> tuple[str, ...]:
        """The kinds of its values, where it is text because they are of several."""
        return () if self._is_list or self._has_times else self._kinds.several()

    def note_maps(self) -> None:
        """Some records have a map there."""
        self._kinds.note_maps()
        self._may_be_time = self._has_times = False

    def join(self, other: Column) -> None:
        """Note what was seen by another, too, with the same times."""
        self._is_list |= other._is_list
        self._kinds.join(other._kinds)
        self._may_be_time &= other._may_be_time
        self._has_times = self._may_be_time and (self._has_times or other._has_times)

    def written(self) -> list[Any]:
        """What was seen, as JSON has it, for take()."""
        return [self._may_be_time, self._has_times, self._kinds.written()]

    def take(self, written: list[Any]) -> None:
        """Raises ValueError, TypeError for what is none of written()."""
        may_be_time, has_times, kinds = written
        self._may_be_time, self._has_times = bool(may_be_time), bool(has_times)
        self._kinds = SeenKinds.taken(kinds)

    def known(self) -> KnownColumn:
        kinds = self._kinds.elements() if self._is_list else self._kinds
        is_text = kinds.is_as_it_stands and not self._has_times
        return KnownColumn(self.name, self.path, self.type(), is_text, self._kinds.has_null, kinds.has_nan)

    def array(self, kind: pa.DataType, found: _Found, misfits: Misfits) -> pa.Array:
        """Its values, of this type."""
        if (codes := found.codes) is not None:
            own = self.array(kind, found._replace(codes=None), lambda wrong: misfits(wrong[codes]))
            return own.take(pa.array(codes))
        if found.owners is not None:
            if not pa.types.is_list(kind):
                raise QueryError(f"`{self.name}` is many values a record, and {kind} one", remedy="a list takes them")
            counts = np.bincount(found.owners, minlength=found.rows)
            return list_array(kind, column(kind.value_type, found.values, misfits), counts, counts > 0)
        if pa.types.is_timestamp(kind):
            noted = self._noted if self._noted is not None and self._noted[0] is found.values else None
            times = noted[1] if noted is not None else self._times(found.values)
            return _timestamps(kind, found.values, times, misfits)
        return column(kind, found.values, misfits)

    def _are_times(self, values: FieldValues, present: NDArray[np.bool_]) -> bool:
        first = int(present.argmax())
        for some in (chosen(values, slice(first, first + 1)), values):  # in most columns the first value is no time
            times = self._times(some)
            fits = times.fits if self._takes_numbers else times.fits & (some.kind != NUMBER)
            if not np.array_equal(fits, _present(some)):
                return False
        self._noted = values, times
        return True

    def _times(self, values: FieldValues) -> _Times:
        """Where numbers are times, those that are written as text are, too."""
        return _times(with_numbers(values) if self._takes_numbers else values, self._unit)


def _present(values: FieldValues) -> NDArray[np.bool_]:
    present: NDArray[np.bool_] = (values.kind != ABSENT) & (values.kind != NULL)
    return present


class _Times(NamedTuple):
    """Nanoseconds since 1970, and which values are times."""

    times: NDArray[np.int64]
    fits: NDArray[np.bool_]


def _times(values: FieldValues, unit: str) -> _Times:
    count = len(values.kind)
    hi, lo = np.empty(count), np.empty(count, np.int16)
    least_numbers(*values.arrays, *unit_of_kernels(unit), 0, hi, lo)
    fits = np.abs(hi) < _FAR  # which NaN is not
    return _Times(np.where(fits, hi, 0.0).astype(np.int64) + np.where(fits, lo, 0), fits)


def _timestamps(kind: pa.DataType, values: FieldValues, found: _Times, misfits: Misfits) -> pa.Array:
    times, fits = found
    step = _STEPS[kind.unit]
    if step > 1:
        fits = fits & (times % step == 0)
        times = times // step
    present = _present(values)
    if not np.array_equal(fits, present):
        misfits(present & ~fits)
    valid = None if fits.all() else pa.py_buffer(np.packbits(fits, bitorder="little"))
    return pa.Array.from_buffers(kind, len(fits), [valid, pa.py_buffer(times)])


# --- wider types -----------------------------------------------------------------------------------------------------


def _widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch | None:
    """The batch with the types of the schema; None where only the records themselves can be converted."""
    if batch.schema.equals(schema):
        return batch
    arrays = [_wider(array, field.type) for array, field in zip(batch.columns, schema, strict=True)]
    if any(array is None for array in arrays):
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wider(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if array.type.equals(kind):
        return array
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    if pa.types.is_int64(array.type) and (pa.types.is_float64(kind) or pa.types.is_uint64(kind)):
        return pc.cast(array, kind, safe=False)  # to the nearest double, as if it had been one from the beginning
    return None


# --- what does not fit -----------------------------------------------------------------------------------------------


def _no_misfit(wrong: NDArray[np.bool_]) -> None:
    raise AssertionError("a column was not made for its own values")


def _late_misfit(field: pa.Field) -> Misfits:
    def tell(wrong: NDArray[np.bool_]) -> None:
        raise QueryError(
            f"values of `{field.name}` are of another kind than all of them were just now: the log has grown",
            remedy="ask again",
        )

    return tell


def _given_misfit(field: pa.Field, batch: FieldBatch) -> Misfits:
    def tell(wrong: NDArray[np.bool_]) -> None:
        offset = int(batch.offsets[wrong][0]) if len(wrong) == len(batch) else -1
        where = f"the record at offset {offset:,}" if offset >= 0 else "a record"
        raise QueryError(
            f"{where} has a value in `{field.name}` that is no {field.type}",
            remedy="give the column another type (string takes anything), or name it without one",
        )

    return tell
