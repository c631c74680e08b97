"""Spark's VARIANT: how it is told from a struct, and how one is made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from jitdb.spark_ext.reading.json_text import json_of


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
