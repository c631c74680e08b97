"""From located fields to Arrow arrays: no Python object a record, but for what `decoded` handles.

What a field holds and what a column is for need not agree. A column takes

    boolean           true and false
    integers          whole numbers in their range
    float, double     numbers; the nearest that there is
    timestamp         numbers: milliseconds since 1970
    string            strings as they are; anything else as JSON text (`decoded`)
    binary            bytes
    array             arrays, whose elements the element's type takes; null where it does not
    struct            maps, field by field
    map, variant, and
    arrays of them
    or of structs     `decoded`: the record's value is decoded, and each part taken as above; a variant takes anything

What it does not take is null, and a misfit, of which `Misfits` hears. Absent fields and null are null, and no misfits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jitdb.common.json_text import json_of, well_formed
from jitdb.common.paths import ANY
from jitdb.common.values import (
    ABSENT,
    ARRAY,
    BYTES,
    FALSE,
    KIND_NAMES,
    MAP,
    NULL,
    NUMBER,
    STRING,
    TRUE,
    UNDEFINED,
    kind_of,
)
from jitdb.log.codecs.containers import Steps, list_values
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.log.codecs.python_values import exact_integers, larger_naturals, python_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

Misfits = Callable[["NDArray[np.bool_]"], None]  # is told which of the values did not fit

_ELEMENTS: Final = Steps.of((ANY,))
_TOP: Final = 2.0**63


def column(kind: pa.DataType, values: FieldValues, misfits: Misfits) -> pa.Array:
    """The array of one field that is no struct. Raises nothing for values that do not fit."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings(kind, values)
    if is_decoded(kind):
        return _decoded(kind, values, misfits)
    if pa.types.is_list(kind):
        return _list(kind, values, misfits)
    present = _present(values)
    array, fits = _SCALARS[_family(kind)](kind, values)
    if not np.array_equal(fits, present):
        misfits(present & ~fits)
    return array


def struct(kind: pa.DataType, values: FieldValues, children: Sequence[pa.Array], misfits: Misfits) -> pa.Array:
    """The array of a field of maps, whose fields are `children`."""
    maps = values.kind == MAP
    present = _present(values)
    if not np.array_equal(maps, present):
        misfits(present & ~maps)
    mask = pa.array(~maps)
    return pa.StructArray.from_arrays(children, fields=[kind.field(i) for i in range(kind.num_fields)], mask=mask)


def is_supported(kind: pa.DataType) -> bool:
    """Whether there is a way to fill such a column."""
    if pa.types.is_list(kind):
        return is_supported(kind.value_type)
    if pa.types.is_map(kind):
        return pa.types.is_string(kind.key_type) and is_supported(kind.item_type)
    if is_variant(kind):
        return True
    if pa.types.is_struct(kind):
        return all(is_supported(kind.field(i).type) for i in range(kind.num_fields))
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or _family(kind) in _SCALARS


def values_of(values: FieldValues, wanted: NDArray[np.bool_]) -> list[Any]:
    """The wanted values, decoded, one by one."""
    return [python_value(values, number) for number in np.flatnonzero(wanted).tolist()]


# --- scalars: each gives the array, and which values it took ---------------------------------------------------------


def _present(values: FieldValues) -> NDArray[np.bool_]:
    present: NDArray[np.bool_] = (values.kind != ABSENT) & (values.kind != NULL)
    return present


def _validity(mask: NDArray[np.bool_]) -> pa.Buffer | None:
    return None if mask.all() else pa.py_buffer(np.packbits(mask, bitorder="little"))


def _booleans(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    true = values.kind == TRUE
    fits = true | (values.kind == FALSE)
    data = pa.py_buffer(np.packbits(true, bitorder="little"))
    return pa.Array.from_buffers(kind, len(fits), [_validity(fits), data]), fits


def _floats(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    fits = values.kind == NUMBER
    with np.errstate(over="ignore", invalid="ignore"):
        data = np.where(fits, values.number, 0.0).astype(kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, len(fits), [_validity(fits), pa.py_buffer(data)]), fits


def _integers(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    exact, fits = exact_integers(values)
    range_of = np.iinfo(kind.to_pandas_dtype())
    fits &= (exact >= range_of.min) & (exact <= range_of.max)
    data = np.where(fits, exact, 0).astype(range_of.dtype)
    return pa.Array.from_buffers(kind, len(fits), [_validity(fits), pa.py_buffer(data)]), fits


def _naturals(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    exact, fits = exact_integers(values)
    fits &= exact >= 0
    data = np.where(fits, exact, 0).astype(np.uint64)
    large = larger_naturals(values)
    for number in np.flatnonzero(large).tolist():
        data[number] = int(values.number[number]) + int(values.length[number])
    fits |= large
    return pa.Array.from_buffers(kind, len(fits), [_validity(fits), pa.py_buffer(data)]), fits


def _times(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    whole, is_whole = exact_integers(values)
    fits = values.kind == NUMBER
    with np.errstate(invalid="ignore"):
        fits &= np.abs(values.number) < _TOP / 1000 - 1
    micros = np.where(is_whole & fits, whole, 0) * 1000
    rest = fits & ~is_whole
    if rest.any():
        micros[rest] = np.rint(values.number[rest] * 1000).astype(np.int64)
    return pa.Array.from_buffers(kind, len(fits), [_validity(fits), pa.py_buffer(micros)]), fits


def _binaries(kind: pa.DataType, values: FieldValues) -> tuple[pa.Array, NDArray[np.bool_]]:
    fits = values.kind == BYTES
    return _gathered(kind, values, fits), fits


_SCALARS: Final[dict[str, Callable[[pa.DataType, FieldValues], tuple[pa.Array, NDArray[np.bool_]]]]] = {
    "boolean": _booleans, "float": _floats, "integer": _integers, "natural": _naturals,
    "timestamp": _times, "binary": _binaries,
}  # fmt: skip


def _family(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return "float"
    if pa.types.is_uint64(kind):
        return "natural"
    if pa.types.is_signed_integer(kind):
        return "integer"
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp"
    return "binary" if pa.types.is_binary(kind) else "other"


# --- what has a length -----------------------------------------------------------------------------------------------


def _gathered(kind: pa.DataType, values: FieldValues, wanted: NDArray[np.bool_]) -> pa.Array:
    """The wanted payloads as an array; null elsewhere."""
    from jitdb.log.codecs.container_kernels import gather

    offsets = np.empty(len(wanted) + 1, np.int32)
    data = np.empty(int(values.length[wanted].sum(dtype=np.int64)), np.uint8)
    gather(values.buffer, values.start, values.length, wanted, offsets, data)
    return pa.Array.from_buffers(
        kind, len(wanted), [_validity(wanted), pa.py_buffer(offsets), pa.py_buffer(data)]
    )  # fmt: skip


def _strings(kind: pa.DataType, values: FieldValues) -> pa.Array:
    texts = values.kind == STRING
    array = _gathered(pa.string(), values, texts)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # bytes that are no UTF-8
        found = _gathered(pa.binary(), values, texts).to_pylist()
        array = pa.array([None if text is None else text.decode("utf-8", "replace") for text in found], pa.string())
    others = _present(values) & ~texts
    if others.any():
        array = pc.replace_with_mask(
            array, pa.array(others), pa.array(map(json_of, values_of(values, others)), pa.string())
        )
    return array.cast(kind)


def _list(kind: pa.DataType, values: FieldValues, misfits: Misfits) -> pa.Array:
    arrays = values.kind == ARRAY
    present = _present(values)
    if not np.array_equal(arrays, present):
        misfits(present & ~arrays)
    only = values._replace(kind=np.where(arrays, values.kind, np.uint8(ABSENT)))
    elements, owner = list_values(only, _ELEMENTS)

    def of_owners(wrong: NDArray[np.bool_]) -> None:
        told = np.zeros(len(arrays), np.bool_)
        told[owner[wrong]] = True
        misfits(told)

    items = column(kind.value_type, elements, of_owners)
    return list_array(kind, items, np.bincount(owner, minlength=len(arrays)), arrays)


def list_array(kind: pa.DataType, items: pa.Array, counts: NDArray[np.int64], present: NDArray[np.bool_]) -> pa.Array:
    """Lists of these items, one behind the other, with so many in each; null where none is present."""
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.Array.from_buffers(kind, len(counts), [_validity(present), pa.py_buffer(offsets)], children=[items])


# --- what is decoded -------------------------------------------------------------------------------------------------


def is_decoded(kind: pa.DataType) -> bool:
    """Whether such a column, but for a struct that is one of the record itself, is decoded value by value."""
    if pa.types.is_list(kind):
        return is_decoded(kind.value_type)
    return bool(pa.types.is_map(kind) or pa.types.is_struct(kind))


def _decoded(kind: pa.DataType, values: FieldValues, misfits: Misfits) -> pa.Array:
    present = _present(values)
    return array_of_values(kind, values_of(values, present), present, misfits)


def array_of_values(kind: pa.DataType, found: list[Any], present: NDArray[np.bool_], misfits: Misfits) -> pa.Array:
    """The array of decoded values, those of the records that have one."""
    out: list[Any] = [None] * len(present)
    wrong = np.zeros(len(present), np.bool_)
    for number, value in zip(np.flatnonzero(present).tolist(), found, strict=True):
        out[number] = fitted(kind, value, partial(wrong.__setitem__, number, True))
    if wrong.any():
        misfits(wrong)
    return pa.array(out, kind)


Note: TypeAlias = Callable[[], object]  # is called for each part that does not fit


def fitted(kind: pa.DataType, value: Any, note: Note) -> Any:
    """What the column holds for this value; None for null, and, after a `note`, for what it does not take.

    >>> fitted(pa.list_(pa.int32()), [1, 2.0, "x"], lambda: print("misfit"))
    misfit
    [1, 2, None]
    """
    if value is None or value is UNDEFINED:
        return None
    if is_variant(kind):
        return variant(value)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(value)
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return value
    if pa.types.is_binary(kind) and isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if pa.types.is_list(kind) and kind_of(value) == ARRAY:
        return [fitted(kind.value_type, item, note) for item in value if item is not UNDEFINED]
    if isinstance(value, dict):
        if pa.types.is_map(kind):
            return [(_text(key), fitted(kind.item_type, item, note)) for key, item in value.items()]
        if pa.types.is_struct(kind):
            fields = [kind.field(number) for number in range(kind.num_fields)]
            return {field.name: fitted(field.type, value.get(field.name), note) for field in fields}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = _fitted_number(kind, value)
        if number is not None:
            return number
    note()
    return None


def _text(value: Any) -> str:
    return well_formed(value) if isinstance(value, str) else json_of(value)


def _fitted_number(kind: pa.DataType, value: int | float) -> int | float | None:
    """The number as the type has it, or None."""
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_timestamp(kind):
        if not abs(value) < 2**63 / 1000 - 1:
            return None
        return value * 1000 if isinstance(value, int) else round(value * 1000)
    if not pa.types.is_integer(kind) or not math.isfinite(value) or value != math.floor(value):
        return None
    bound = 1 << (kind.bit_width - 1)
    return int(value) if -bound <= value < bound else None


# --- variants --------------------------------------------------------------------------------------------------------


def is_variant(kind: pa.DataType) -> bool:
    """Whether this struct is how Spark writes a VARIANT."""
    if not pa.types.is_struct(kind) or kind.num_fields != 2:  # the value, and its keys
        return False
    return any(b"variant" in (kind.field(number).metadata or {}) for number in range(2))


def variant(value: Any) -> dict[str, bytes]:
    """The variant of a record's value, or of a part of one, by its JSON text."""
    from pyspark.sql.types import VariantVal

    made = VariantVal.parseJson(json_of(value))
    return {"value": made.value, "metadata": made.metadata}


# --- types ------------------------------------------------------------------------------------------------------------


_FLAGS: Final = ("_fractions", "_negative", "_large", "_nan")


class SeenKinds:
    """What kinds the values of a column are of, as far as they were noted, and the type that holds all of them:


    whole numbers          int64; uint64 where one needs it and none is negative; else double
    numbers                double: of integers beyond 2**53 beside fractions the nearest one
    false and true         bool
    text, bytes            string, binary
    arrays                 lists, of the type that all their elements have
    maps, several kinds    string: text as it is, all else as JSON
    nothing but null       string
    """

    def __init__(self) -> None:
        self._kinds: set[int] = set()
        self._fractions = self._negative = self._large = self._nan = False
        self._elements: SeenKinds | None = None

    def note(self, values: FieldValues) -> None:
        """Look at these values, too."""
        here = np.flatnonzero(np.bincount(values.kind)).tolist()
        self._kinds.update(here)
        if NUMBER in here:
            self._note_numbers(values)
        if ARRAY in here:
            arrays = values.kind == ARRAY
            only = values._replace(kind=np.where(arrays, values.kind, np.uint8(ABSENT)))
            self.elements().note(list_values(only, _ELEMENTS)[0])

    def _note_numbers(self, values: FieldValues) -> None:
        numbers = values.kind == NUMBER
        found = values.number[numbers]
        self._negative |= bool((found < 0).any())
        self._nan |= bool(np.isnan(found).any())
        if (np.abs(found) < _TOP).all():  # the rests of such are 0 where they are fractions
            self._fractions |= bool((found != np.floor(found)).any())
            return
        large = larger_naturals(values)
        self._large |= bool(large.any())
        self._fractions |= bool((numbers & ~large & ~exact_integers(values)[1]).any())

    def elements(self) -> SeenKinds:
        """What kinds the elements of its arrays are of."""
        if self._elements is None:
            self._elements = SeenKinds()
        return self._elements

    def several(self) -> tuple[str, ...]:
        """Their names, where they are of several kinds that no type but text takes."""
        kinds = self._kinds - {ABSENT, NULL}
        names = dict.fromkeys("boolean" if kind in (FALSE, TRUE) else KIND_NAMES[kind] for kind in sorted(kinds))
        return tuple(names) if len(names) > 1 else ()

    def note_maps(self) -> None:
        """Some values are maps."""
        self._kinds.add(MAP)

    def join(self, other: SeenKinds) -> None:
        """Note what the other has noted, too."""
        self._kinds |= other._kinds
        for flag in _FLAGS:
            setattr(self, flag, getattr(self, flag) or getattr(other, flag))
        if other._elements is not None:
            self.elements().join(other._elements)

    def written(self) -> list[Any]:
        """What was noted, as JSON has it, for taken()."""
        flags = [bool(getattr(self, flag)) for flag in _FLAGS]
        return [sorted(self._kinds), flags, None if self._elements is None else self._elements.written()]

    @classmethod
    def taken(cls, written: list[Any]) -> SeenKinds:
        """Raises ValueError, TypeError for what is none of written()."""
        made, (kinds, flags, elements) = cls(), written
        made._kinds = {int(kind) for kind in kinds}
        for flag, is_set in zip(_FLAGS, flags, strict=True):
            setattr(made, flag, bool(is_set))
        made._elements = None if elements is None else cls.taken(elements)
        return made

    @property
    def has_null(self) -> bool:
        return NULL in self._kinds

    @property
    def has_nan(self) -> bool:
        return self._nan or (self._elements is not None and self._elements.has_nan)

    @property
    def is_as_it_stands(self) -> bool:
        """Whether text in the column, or in its lists, is text in the records, not other values as JSON."""
        kinds = self._kinds - {ABSENT, NULL}
        if kinds == {ARRAY}:
            return self.elements().is_as_it_stands
        return MAP not in kinds and len(kinds - {TRUE}) + (kinds == {TRUE}) <= 1

    def type(self) -> pa.DataType:
        """The type that takes all of them."""
        kinds = self._kinds - {ABSENT, NULL}
        if kinds and kinds <= {FALSE, TRUE}:
            return pa.bool_()
        if kinds == {NUMBER}:
            if self._fractions or (self._large and self._negative):
                return pa.float64()
            return pa.uint64() if self._large else pa.int64()
        if kinds == {BYTES}:
            return pa.binary()
        if kinds == {ARRAY}:
            return pa.list_(self.elements().type())
        return pa.string()
