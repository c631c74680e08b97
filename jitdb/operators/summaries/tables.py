"""Results as Arrow's columns. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from jitdb.common.json_text import json_of, well_formed

_EMPTY: Final = {
    "count": pa.int64(), "records": pa.int64(), "share": pa.float64(), "time": pa.timestamp("us", "UTC"),
    "from": pa.float64(), "below": pa.float64(),
}  # fmt: skip


class ResultTable:
    """See operators.question.Arrow."""

    def __init__(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        taken = [name if name not in names[:at] else f"`{name}`" for at, name in enumerate(names)]
        self._table = pa.table([array_of(*each) for each in zip(columns, names, strict=True)], taken)

    def table(self) -> pa.Table:
        return self._table

    def reader(self) -> pa.RecordBatchReader:
        return self._table.to_reader()

    def schema(self) -> pa.Schema:
        return self._table.schema


def array_of(values: Sequence[Any], name: str = "") -> pa.Array:
    """Values of records as an array: of one type, or all of them as JSON text, but text as it is.

    >>> [str(array_of(values).type) for values in ([1, None], [1, 2.5], [2**64 - 1], [1, "x"])]
    ['int64', 'double', 'uint64', 'string']
    """
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pa.array(values, _EMPTY.get(name, pa.string()))
    if kinds in ({bool}, {bytes}) or issubclass(next(iter(kinds)), datetime):
        return pa.array(values)
    if kinds == {int}:
        there = [value for value in values if value is not None]
        if min(there) >= -(2**63) and max(there) < 2**63:
            return pa.array(values, pa.int64())
        if min(there) >= 0 and max(there) < 2**64:
            return pa.array(values, pa.uint64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values])
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    return None if value is None else well_formed(value) if isinstance(value, str) else json_of(value)
