"""Results as Arrow's columns: the rows that a person sees, with values as they are. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from jitdb.common.json_text import json_of, well_formed
from jitdb.operators.summaries.results import Histogram, Result, Stats, Timeline
from jitdb.operators.summaries.sheets import sheet_of

_EMPTY: Final = {
    "count": pa.int64(), "records": pa.int64(), "share": pa.float64(), "time": pa.timestamp("us", "UTC"),
    "from": pa.float64(), "below": pa.float64(),
}  # fmt: skip


class ResultTable:
    """See operators.question.Arrow."""

    def __init__(self, found: Result) -> None:
        names, columns = _columns(found)
        taken = [name if name not in names[:at] else f"`{name}`" for at, name in enumerate(names)]
        self._table = pa.table([array_of(*each) for each in zip(columns, names, strict=True)], taken)

    def table(self) -> pa.Table:
        return self._table

    def reader(self) -> pa.RecordBatchReader:
        return self._table.to_reader()

    def schema(self) -> pa.Schema:
        return self._table.schema


def _columns(found: Result) -> tuple[list[str], list[Sequence[Any]]]:
    sheet = sheet_of(found)
    names = list(sheet.names)
    if isinstance(found, Stats):  # one row
        return [name for name, _ in sheet.rows], [[value] for _, value in sheet.rows]
    columns: list[Sequence[Any]] = [[row[at] for row in sheet.rows] for at in range(len(names))]
    if isinstance(found, Timeline):
        columns[0] = [row.start for row in found]
    if isinstance(found, Histogram):
        columns[:2] = [row.low for row in found], [row.high for row in found]
    return names, columns


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
