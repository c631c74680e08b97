"""What stores that are built on a log ask of its indexes: values one by one, and columns; no record is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jitdb.common.arguments import whole_number
from jitdb.common.paths import Path, single
from jitdb.engine.checks import paths_of
from jitdb.engine.face.base import Base
from jitdb.engine.plan import requirements
from jitdb.operators.nodes.compare import gt
from jitdb.operators.nodes.equal import equal, includes
from jitdb.operators.nodes.field_ref import PathLike
from jitdb.operators.nodes.operation import EVERYTHING, Operation, and_
from jitdb.operators.tasks.deferred import resolved

if TYPE_CHECKING:
    from jitdb.engine.answering.finder import Columns, Finder


class Lookups(Base):
    """Each brings the indexes that it needs up to date first."""

    def lookup(self, operation: Operation, seq: int) -> bool:
        """Whether the operation is true of the record with this seq."""
        number = whole_number("a seq is the ordinal of a record", seq)
        asked, manager = self._operation(operation), self._manager
        return manager.ask(
            asked, False, None, lambda end: number < end and number in manager.evaluator.matches(asked, end)
        )

    def finder(self, path: PathLike, *, elements: bool = False) -> Finder:
        """The field's index as it is now, to look up values one by one, in microseconds: for stores built on a log.

        elements: of a field of lists, look up what stands in them

        What is appended later is not in it. Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import Finder

        (field_path,) = paths_of(path)
        leaf, manager = includes(field_path, None) if elements else equal(field_path, None), self._manager
        (need,) = self._needs_of((leaf,))

        def look(end: int) -> Finder:
            segments, records = manager.catalog.get(need.spec).segments, manager.records
            return Finder(segments, records.offset_segments(), records.deleted, end)

        return manager.ask(leaf, False, None, look)

    def columns(
        self,
        numbers: Sequence[PathLike] = (),
        values: Sequence[PathLike] = (),
        *,
        start: int = 0,
        where: Operation | None = None,
    ) -> Columns:
        """What indexes know of the live records, as arrays, without reading one of them: for stores built on a log.

        numbers: fields whose numbers are wanted, from their columns
        values:  fields of few values, from bitmaps: each record's is given as the number of the value
        start:   only records from this seq on
        where:   only records that match

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import columns_of

        first, manager = whole_number("a seq is the ordinal of a record", start), self._manager
        compared = [gt(0, path) for path in _each(numbers)]
        equated = [equal(path, None, prefix=False) for path in _each(values)]
        asked = EVERYTHING if where is None else resolved(self._asked(where, {})).operation

        def look(end: int) -> Columns:
            known, coded = (
                [manager.catalog.get(need.spec) for leaf in leaves for need in requirements(leaf, self._core)]
                for leaves in (compared, equated)
            )
            return columns_of(manager.records, known, coded, first, end, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, *compared, *equated), False, None, look)

    def distinct(self, path: PathLike, where: Operation | None = None) -> list[Any]:
        """The values that a field of few values has in the records that match, or in all, in no order; none is read.

        Raises QueryError, LogError.
        """
        from jitdb.engine.answering.finder import values_in

        (field_path,) = paths_of(path)
        leaf, manager = equal(field_path, None, prefix=False), self._manager
        asked = EVERYTHING if where is None else resolved(self._asked(where, {})).operation
        (need,) = self._needs_of((leaf,))

        def look(end: int) -> list[Any]:
            return values_in(manager.catalog.get(need.spec).segments, manager.evaluator.matches(asked, end))

        return manager.ask(and_(asked, leaf), False, None, look)


def _each(paths: Sequence[PathLike]) -> list[Path]:
    """Paths of columns. Raises QueryError for one that may lead to many values in a record."""
    return [single(path, "a column") for path in paths_of(paths)] if len(paths) else []
