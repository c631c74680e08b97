"""Values that were decoded one by one, in columns by the rules at the head of arrow_columns.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from jitdb.common.json_text import json_of, well_formed
from jitdb.common.values import ARRAY, UNDEFINED, kind_of

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
        number = _number(kind, value)
        if number is not None:
            return number
    note()
    return None


def _text(value: Any) -> str:
    return well_formed(value) if isinstance(value, str) else json_of(value)


def _number(kind: pa.DataType, value: int | float) -> int | float | None:
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
