"""What comes back of a summary: small values that do not change, and know the whole that they are a part of.

`total` is always how many records were asked about: those that match, `missing` how many of them said nothing, because
they have no such field (or no number, or no time). So `sum(counts) + others + missing == total`.

Each says of itself what its rows are, for tables of text, CSV and JSON, and how it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from jitdb.common.immutable import Immutable
from jitdb.display.parts import Chart, Display, Folded, Part
from jitdb.display.sheet import Sheet, first_rows
from jitdb.display.shown import Shown
from jitdb.errors import library
from jitdb.operators.tabular import Tabular

if TYPE_CHECKING:
    from jitdb.operators.question import Arrow

_ROWS: Final = 25  # that a person sees of a table
_STEPS: Final = 40  # and of one below a chart
_MOST_COLUMNS: Final = 400  # of a chart


class Counted(Protocol):
    """A row of a result."""

    @property
    def count(self) -> int: ...


R = TypeVar("R", bound=Counted)


class Result(Immutable, Tabular, Shown):
    """What shows itself as the table of it."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        """Its rows, as they are written: in tables of text, CSV and JSON."""
        raise NotImplementedError

    def _display(self) -> Display:
        return Display("", "", [first_rows(self.sheet(), _ROWS)])

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        """The names and the values of its columns: the rows that a person sees, with values as they are."""
        sheet = self.sheet()
        return list(sheet.names), [[row[at] for row in sheet.rows] for at in range(len(sheet.names))]

    def _arrow(self) -> Arrow:
        library("pyarrow")
        from jitdb.operators.summaries.tables import ResultTable

        return ResultTable(*self._columns())

    def __repr__(self) -> str:
        return str(self)


class Rows(Result, Generic[R]):
    """Rows to be gone through, and what they are parts of."""

    __slots__ = ()

    rows: tuple[R, ...]
    total: int
    missing: int

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> R:
        return self.rows[number]

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(row.count for row in self.rows)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all records that were asked about, those of each row."""
        return tuple(row.count / self.total for row in self.rows)

    @property
    def others(self) -> int:
        """How many records have something that is in no row; 0 where a record is in several rows."""
        return max(0, self.total - self.missing - sum(self.counts))


class Drawn(Rows[R]):
    """What can be drawn."""

    __slots__ = ()

    def plot(self, ax: Any = None) -> Any:
        """A labelled picture, on these axes or on a new figure; gives the matplotlib Axes.

        Raises MissingLibrary without matplotlib: pip install 'jitdb[plot]'.
        """
        library("matplotlib")
        return self._plot(ax)

    def _plot(self, ax: Any) -> Any:
        raise NotImplementedError


def charted(labels: Sequence[str], series: Sequence[tuple[str, Sequence[int]]], sheet: Sheet) -> Display:
    """A chart above a sheet: of one series the same numbers, folded away; without a chart where it has no use."""
    if len(series) == 1:
        sheet = first_rows(sheet, _STEPS)
    if not 1 < len(labels) <= _MOST_COLUMNS:
        return Display("", "", [sheet])
    below: Part = Folded("as a table", sheet) if len(series) == 1 else sheet
    return Display("", "", [Chart(labels, series), below])
