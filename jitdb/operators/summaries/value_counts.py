"""How many records have which values: of a field, or of several together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from jitdb.common.paths import Path, format_path
from jitdb.common.values import hashable
from jitdb.common.words import counted
from jitdb.display.parts import Display
from jitdb.display.sheet import Code, Sheet
from jitdb.errors import QueryError
from jitdb.operators.summaries.pictures import bars_plot
from jitdb.operators.summaries.result import Drawn, R


class ValueCount(NamedTuple):
    """A value, and how many records have it."""

    value: Any
    count: int  # type: ignore[assignment]  # not what tuples call so


class GroupCount(NamedTuple):
    """A value of each field, and how many records have all of them."""

    values: tuple[Any, ...]
    count: int  # type: ignore[assignment]


class _Counts(Drawn[R]):
    """Counts by values, the most frequent first."""

    __slots__ = ()

    def top(self, count: int) -> Self:
        """The first rows alone."""
        return self.changed(rows=self.rows[:count])

    def _display(self) -> Display:
        display = super()._display()
        (sheet,) = display.parts
        assert isinstance(sheet, Sheet)
        empty = Code('""')  # a blank would look like none
        rows = [[empty if value == "" else value for value in row] for row in sheet.rows]
        return display._replace(parts=[sheet._replace(rows=rows)])

    def _sheet(
        self, about: dict[str, Any], names: list[str], held: list[list[Any]], distinct: int, one: str, several: str
    ) -> Sheet:
        """`held`: for each row a value of each field; `one`, `several`: what the values of a row are called."""
        rows = [[*values, row.count, share] for values, row, share in zip(held, self.rows, self.shares, strict=True)]
        about |= {"total": self.total, "missing": self.missing, "distinct": distinct}
        told = [counted(self.total, "record", "records"), counted(distinct, one, several)]
        if self.others:
            told.append(f"{self.others:,} with other values")
        if self.missing:
            told.append(f"{self.missing:,} without {' or '.join(f'`{name}`' for name in names)}")
        # A field that is called as one of ours stands in quotes.
        heads = [*(f"`{name}`" if name in ("count", "share") else name for name in names), "count", "share"]
        return Sheet(heads, rows, len(names), about, "; ".join(told))


class ValueCounts(_Counts[ValueCount]):
    """How many records have which value of a field: the most frequent first, of equal ones the smaller.

    path:     the field
    rows:     values and counts, all or as many as were asked for
    total:    records that were asked about
    missing:  those of them that lack the field
    distinct: how many values there are, those without a row too

    Of elements of arrays (`tags[]`) a record counts once for each value that it has.

    >>> counts = ValueCounts((ValueCount("info", 3), ValueCount("error", 1)), 5, 1, ("level",), 2)
    >>> dict(counts), counts.shares, counts.top(1).others
    ({'info': 3, 'error': 1}, (0.6, 0.2), 1)
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "distinct")

    path: Path
    distinct: int

    def as_dict(self) -> dict[Any, int]:
        """The counts by value. Raises QueryError where values are maps."""
        return _as_dict((hashable(row.value), row.count) for row in self.rows)

    def sheet(self) -> Sheet:
        name = format_path(self.path)
        return self._sheet({"field": name}, [name], [[row.value] for row in self], self.distinct, "value", "values")

    def _plot(self, ax: Any) -> Any:
        return bars_plot(ax, self.rows, self.others, format_path(self.path), self.sheet().footer)


class GroupCounts(_Counts[GroupCount]):
    """How many records have which values of several fields: as ValueCounts, with a tuple for each value.

    missing: records that lack one of the fields, or several
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "paths", "distinct")

    paths: tuple[Path, ...]
    distinct: int

    def as_dict(self) -> dict[tuple[Any, ...], int]:
        """The counts by values. Raises QueryError where some are maps."""
        return _as_dict((tuple(map(hashable, row.values)), row.count) for row in self.rows)

    def sheet(self) -> Sheet:
        names = list(map(format_path, self.paths))
        one, several = ("value", "values") if len(names) == 1 else ("group of values", "groups of values")
        return self._sheet({"fields": names}, names, [list(row.values) for row in self], self.distinct, one, several)

    def _plot(self, ax: Any) -> Any:
        return bars_plot(ax, self.rows, self.others, ", ".join(map(format_path, self.paths)), self.sheet().footer)


def _as_dict(pairs: Iterator[tuple[Any, int]]) -> dict[Any, int]:
    try:
        return dict(pairs)
    except TypeError:
        raise QueryError("values that are maps are no keys of a dict", remedy="go through the rows") from None
