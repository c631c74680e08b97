"""A log, or a set of logs, as a table: its columns, and the rows of which an operation is true, in batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import has_magic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jitdb.common.words import shown
from jitdb.engine.database import open as open_one
from jitdb.engine.face.asker import Asker
from jitdb.errors import QueryError, library
from jitdb.logset.opening import open_many
from jitdb.operators.nodes.operation import EVERYTHING, Operation, and_
from jitdb.operators.question import Question
from jitdb.operators.text.taken import operation_of

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.operators.nodes.selection import SelectField

#: A file, a folder, a pattern, several of these; or what was opened already.
Source: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Asker"

_UNITS: Final = ("ns", "us", "ms")


class Table:
    """The records of which `where` is true, as rows of these columns; without `columns`, of all fields that any has.

    times:    the unit of columns of times, "ns", "us" or "ms"
    settings: how the source is opened (jitdb.open, jitdb.open_many), where it is not open yet

    Raises QueryError, LogError, MissingLibrary.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[SelectField] | None = None,
        where: str | Operation | None = None,
        times: str = "ns",
        **settings: Any,
    ) -> None:
        library("pyarrow")
        import pyarrow as pa

        self.db = source if isinstance(source, Asker) else _opened(source, settings)
        self._where = EVERYTHING if where is None else operation_of(where, "where= takes an operation")
        found = self.db.table_columns(columns)
        if times not in _UNITS:
            raise QueryError(f"times= is the unit of columns of times: {', '.join(_UNITS)}, not {shown(times)}")
        unit = pa.timestamp(times, "UTC")
        self.columns = {
            each.name: each._replace(type=unit) if pa.types.is_timestamp(each.type) else each for each in found
        }
        self.schema = pa.schema([(each.name, each.type) for each in self.columns.values()])

    def batches(self, names: Sequence[str] | None, operation: Operation | None) -> Iterator[pa.RecordBatch]:
        """The rows of which this operation is true, too (None: all), with these columns (None: all): in the order of
        the log, a log after the other. Records that came since are among them.

        Raises QueryError where a record has a value that its column does not take.
        """
        import pyarrow as pa

        chosen = [self.columns[name] for name in (self.columns if names is None else names)]
        select = tuple((each.name, each.path) for each in chosen)
        asked = self._where if operation is None else and_(self._where, operation)
        question = Question(db=self.db, operation=asked, sort_by="arrival", select=select)
        yield from self.db.table_batches(question, pa.schema([(each.name, each.type) for each in chosen]))


def _opened(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], settings: dict[str, Any]) -> Asker:
    """A file by jitdb.open(), all else by open_many(); each question sees what was written since."""
    settings = {"follow": True, **settings}
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if (os.path.exists(path) and not os.path.isdir(path)) or (not has_magic(path) and not os.path.isdir(path)):
            return open_one(path, **{"read_only": True, **settings})
    return open_many(source, **settings)
