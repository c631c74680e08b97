"""Rows for other programs: Arrow's columns, and what is made of them.

Whatever reads Arrow's streams (`__arrow_c_stream__`) takes such rows without knowing jitdb: pyarrow, Polars, DuckDB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jitdb.errors import QueryError, library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class Arrow(Protocol):
    """Rows as Arrow's columns. What it gives is pyarrow's."""

    def table(self) -> Any:
        """A Table: all of it, in memory."""

    def reader(self) -> Any:
        """A RecordBatchReader: one batch after the other."""

    def schema(self) -> Any:
        """A Schema: the types of the columns."""


class Tabular:
    """What can be had as a table."""

    __slots__ = ()

    def to_arrow(self) -> Any:
        """A pyarrow.Table. Raises MissingLibrary without pyarrow: pip install 'jitdb[arrow]'."""
        return self._arrow().table()

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Whole numbers stay whole: where some are missing, the column is of pandas' Int64."""
        return pandas_of(self.to_arrow())

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        return library("polars").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """For whatever reads Arrow's streams: `pa.table(x)`, `pl.DataFrame(x)`, `duckdb.sql("from x")`."""
        return self._arrow().reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._arrow().schema().__arrow_c_schema__()

    def _arrow(self) -> Arrow:
        raise NotImplementedError


def pandas_of(table: Any) -> Any:
    """A table as a pandas.DataFrame, in which no whole number becomes another one."""
    pandas, arrow = library("pandas"), library("pyarrow")
    found = table.to_pandas()
    nullable = {arrow.int64(): pandas.Int64Dtype(), arrow.uint64(): pandas.UInt64Dtype()}
    for number, field in enumerate(table.schema):
        column = table.column(number)
        if field.type in nullable and column.null_count:
            found.isetitem(number, column.to_pandas(types_mapper=nullable.get))
    return found


def arrays_of(table: Any) -> Mapping[str, NDArray[Any]]:
    """The columns of a table as arrays: whole numbers int64 or uint64, with some missing float64, where that is NaN;
    times datetime64[ns], with NaT. Raises QueryError for what is none of these, and where doubles are not exact.
    """
    arrow = library("pyarrow")
    return {field.name: _array_of(arrow, field.name, table.column(at)) for at, field in enumerate(table.schema)}


def _array_of(arrow: Any, name: str, column: Any) -> NDArray[Any]:
    import numpy as np

    kind, types = column.type, arrow.types
    if column.null_count == len(column) and types.is_string(kind):
        return np.full(len(column), np.nan)  # nothing in it says of what kind it is
    if types.is_timestamp(kind):
        return np.asarray(column.cast(arrow.timestamp("ns")).to_numpy())
    if types.is_boolean(kind) and column.null_count:
        raise QueryError(f"`{name}` is not true or false in all records", remedy="to_arrow() has what is missing")
    if types.is_integer(kind) and column.null_count:
        try:
            return np.asarray(column.cast(arrow.float64()).to_numpy())  # which is exact, or refused
        except arrow.ArrowInvalid:
            raise QueryError(
                f"`{name}` has whole numbers that no double is, and records without one", remedy="to_arrow() has both"
            ) from None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return np.asarray(column.to_numpy())
    raise QueryError(f"`{name}` is {kind}, and an array has numbers or times", remedy="to_arrow() takes anything")
