"""`scan_jitdb`: a log as a LazyFrame of Polars, which hands its conditions, columns and limits down.

A condition becomes an operation (polars_conditions.py); the rows that come are tested by Polars in any case, so what
is not known there costs time, and no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jitdb.errors import library
from jitdb.tables.table import Source, Table

if TYPE_CHECKING:
    from jitdb.operators.nodes.operation import Operation
    from jitdb.operators.nodes.selection import SelectField


def scan_jitdb(
    source: Source,
    columns: Sequence[SelectField] | None = None,
    *,
    where: str | Operation | None = None,
    times: Literal["ns", "us", "ms"] = "ns",
    **settings: Any,
) -> Any:
    """A log, or a set of logs, as a polars.LazyFrame. Nothing but the types of its columns is read before it is
    collected; then the indexes of jitdb find the rows, as far as the conditions can be asked of it.

    source:   a file, a folder, a pattern, a list of these, or what jitdb.open and jitdb.open_many gave
    columns:  fields, such as "size" or "user.name"; without it, all that any record has
    where:    only records of which this is true: for what Polars does not know, such as `level >= "warn"`
    times:    the unit of columns of times; one that is no whole number of these is an error. DuckDB hands conditions
              about times down only where this is "us"
    settings: of jitdb.open, or jitdb.open_many for more than one file

    Rows come in the order of the log, a log after the other. Each time that the frame is collected, it is asked of the
    log as that is then. Types are those of to_arrow(); a value that came later and is of another type is an error.
    Raises QueryError, LogError, MissingLibrary.
    """
    polars = library("polars")
    library("pyarrow")
    from polars.io.plugins import register_io_source

    from jitdb.tables.polars_conditions import kept_by

    table = Table(source, columns, where, times, **settings)

    def rows(names: list[str] | None, predicate: Any | None, limit: int | None, _: int | None) -> Iterator[Any]:
        asked = None if predicate is None else kept_by(predicate, table.columns).true
        left = limit
        for batch in table.batches(names, asked):
            frame = polars.from_arrow(batch)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield frame
            if left == 0:
                return

    return register_io_source(rows, schema=polars.from_arrow(table.schema.empty_table()).schema)
