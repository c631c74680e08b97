"""What is in the records: of each field worth it the most frequent values, or how large its numbers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_of_key
from jitdb.common.words import counted
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, as_told, number_text, spark_text
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_path
from jitdb.operators.summaries.exploring.facet_fields import (
    Database,
    FacetFields,
    OfFields,
    chosen_fields,
    named_fields,
)
from jitdb.operators.summaries.summary import Listed, Ranked, View, limit_of
from jitdb.operators.summaries.value_counts import ValueCount, added

if TYPE_CHECKING:
    from jitdb.operators.question import Question
    from jitdb.operators.summaries.arithmetic.calendar import Window
    from jitdb.operators.summaries.arithmetic.cells import Cells, Taken, Wanted

VALUES: Final = 5  # of a field
SHARES: Final = (0.0, 0.5, 0.95, 0.99, 1.0)  # the quantiles of numbers
_BARS: Final = 24  # of a small chart


class Spread(NamedTuple):
    """How large numbers are: quantiles, each the number of a record, and a small chart of them.

    bars:   about how many are in each of some intervals of one width, from the least number to the largest: a number
            near a bound may count beside it
    is_log: whether the widths are those of logarithms: each interval is so many times as large as the one before
    """

    low: int | float
    median: int | float
    p95: int | float
    p99: int | float
    high: int | float
    bars: tuple[int, ...]
    is_log: bool


class Facet(NamedTuple):
    """A field, and what records have in it.

    count:    how many records have it; of numbers those that have one
    distinct: how many values it has; None: of numbers
    values:   the most frequent of them
    spread:   of numbers
    """

    path: Path
    count: int  # type: ignore[assignment]
    distinct: int | None
    values: tuple[ValueCount, ...]
    spread: Spread | None = None

    @property
    def others(self) -> int:
        """How many records have another value; 0 where a record has several."""
        return 0 if self.spread else max(0, self.count - sum(row.count for row in self.values))


class Facets(Listed[Facet]):
    """What is in `total` records, a row a field, in the order in which records have them.

    same:   the fields in which all of these records have one value, and which
    unique: fields of which hardly two records have the same value; they are not counted
    """

    __slots__ = __match_args__ = ("rows", "total", "same", "unique")

    same: Mapping[Path, Any]
    unique: tuple[Path, ...]

    @property
    def missing(self) -> int:
        """All records, if none of them has any of the fields; else 0."""
        return 0 if self.same or any(row.count for row in self.rows) else self.total

    def __getitem__(self, field: Any) -> Facet:
        """A row by its number, or by its field's path. Raises QueryError where there is none."""
        if isinstance(field, int):
            return self.rows[field]
        path = as_path("facets", field)
        for row in self.rows:
            if row.path == path:
                return row
        where = "it is the same in all records: see .same" if path in self.same else "facets(fields=[…]) names fields"
        raise QueryError(f"there is no row of `{format_path(path)}`", remedy=where)

    def sheet(self) -> Sheet:
        """A row a value: for programs, and spreadsheets."""
        rows: list[list[Any]] = []
        for row in self:
            name = format_path(row.path)
            rows += [[name, value, count, count / self.total] for value, count in row.values]
            if row.spread is not None:
                rows += [[name, f"{each}={number}", None, None] for each, number in _numbers(row.spread)]
        rows += [[format_path(path), value, self.total, 1.0] for path, value in self.same.items()]
        return Sheet(["field", "value", "count", "share"], rows, None, {"total": self.total}, self._footer())

    def plain_sheet(self) -> Sheet:
        """A row a field, with its values."""
        rows = [
            [
                format_path(row.path), row.count, row.distinct,
                [{"value": value, "count": count} for value, count in row.values],
                None if row.spread is None else row.spread._asdict(),
            ]
            for row in self
        ]  # fmt: skip
        about = {
            "total": self.total,
            "same": {format_path(path): value for path, value in self.same.items()},
            "unique": list(map(format_path, self.unique)),
        }
        return Sheet(["field", "count", "distinct", "values", "spread"], rows, None, about, self._footer())

    def seen_sheet(self) -> Sheet:
        """A line a field, as people see it."""
        rows: list[list[Any]] = []
        for row in self:
            many = "numbers" if row.distinct is None else counted(row.distinct, "value", "values")
            rows.append([format_path(row.path), row.count / self.total, many, self._most_of(row)])
        return Sheet(["field", "share", "holds", "most frequent"], rows, None, {}, self._footer())

    def _most_of(self, row: Facet) -> str:
        if row.spread is not None:
            return _spread_text(row.spread)
        return " · ".join(f"{as_told(value)} {_share(count, self.total)}" for value, count in row.values)

    def _display(self) -> Display:
        return Display("", "", [self.seen_sheet()])

    def told(self) -> list[str]:
        same = ", ".join(f"{format_path(path)} = {as_told(value)}" for path, value in self.same.items())
        return [f"the same in all: {same}"] if same else []

    def _footer(self) -> str:
        lines = [counted(self.total, "record", "records"), *self.told()]
        if self.unique and self.total:
            lines.append(f"nearly unique, not counted: {', '.join(map(format_path, self.unique))}")
        return "\n".join(lines)


def _share(count: int, total: int) -> str:
    """
    >>> _share(1, 3), _share(1, 5000), _share(3, 3)
    ('33.3 %', '0.02 %', '100 %')
    """
    share = 100 * count / total if total else 0.0
    return "100 %" if count == total else f"{share:.1f} %" if share >= 0.1 else f"{share:.2g} %"


def _numbers(spread: Spread) -> list[tuple[str, int | float]]:
    return [(name, getattr(spread, name)) for name in ("low", "median", "p95", "p99", "high")]


def _spread_text(spread: Spread) -> str:
    ends = [number_text(float(number)) for number in (spread.low, spread.high)]
    middle = f"median {number_text(float(spread.median))}, p95 {number_text(float(spread.p95))}"
    bars = spark_text(spread.bars).replace(" ", "·")  # a row of blanks would be shown as one
    return f"{ends[0]} {bars} {ends[1]}  {middle}, p99 {number_text(float(spread.p99))}"


class Counts(NamedTuple):
    """What one log has: the values of fields, and the numbers that are asked for of others, in their order."""

    total: int
    values: list[Ranked]
    numbers: list[list[Taken]]


class Settled(NamedTuple):
    """In which cells the numbers of fields lie, and which of them are looked for."""

    cells: list[Cells]
    wanted: list[Wanted]


class FacetsAsked(OfFields[Facets]):
    """What is in the records.

    fields: these; None: those that a sample of the records shows to be worth it
    limit:  of values, the most frequent
    """

    __slots__ = __match_args__ = ("fields", "limit")
    name = "facets"

    limit: int

    def __init__(self, fields: Sequence[PathLike] | FacetFields | None = None, limit: int = VALUES) -> None:
        self._keep(named_fields(self.name, fields), limit_of(limit))

    def ready(self, question: Question, database: Database) -> Question:
        fields = chosen_fields(database, self.fields, question.operation)
        return question.changed(summary=self.changed(fields=fields))

    @property
    def surveys(self) -> bool:
        return bool(self.known.numbers)

    def survey(self, view: View) -> list[Cells]:
        return [view.cells(path) for path in self.known.numbers]

    def settled(self, surveys: Sequence[list[Cells]], window: Window) -> Settled:
        from jitdb.operators.summaries.arithmetic.cells import Wanted
        from jitdb.operators.summaries.arithmetic.cells import added as together

        cells = [together(parts) for parts in zip(*surveys, strict=True)] if surveys else []
        return Settled(cells, [Wanted.at(each, SHARES if len(each.places) else ()) for each in cells])

    def count(self, view: View, settled: Settled) -> Counts:
        values = [view.ranked((path,), self.limit) for path in self.known.values]
        pairs = zip(self.known.numbers, settled.wanted, strict=False)
        return Counts(len(view.matches), values, [view.numbers_in(path, wanted.cells) for path, wanted in pairs])

    def result(self, counts: Sequence[Counts], settled: Settled) -> Facets:
        total = sum(part.total for part in counts)
        found = {}
        for at, path in enumerate(self.known.values):
            pairs, distinct, _, missing = added([part.values[at] for part in counts], self.limit)
            values = tuple(ValueCount(value_of_key(key), count) for (key,), count in islice(pairs, self.limit))
            found[path] = Facet(path, total - missing, distinct, values)
        for at, (path, cells, wanted) in enumerate(zip(self.known.numbers, *settled, strict=False)):
            numbers = wanted.found([taken for part in counts for taken in part.numbers[at]])
            found[path] = Facet(path, cells.total, None, (), spread_of(cells, numbers) if numbers else None)
        same = {path: value for path, facet in found.items() if (value := _same(facet, total)) is not ...}
        rows = tuple(found[path] for path in self.known.order if path not in same and found[path].count)
        return Facets(rows, total, same, self.known.unique)


def _same(facet: Facet, total: int) -> Any:
    """The value that all records have in the field; ... where they have not."""
    if facet.count < total or not total:
        return ...
    if facet.spread is not None:
        return facet.spread.low if facet.spread.low == facet.spread.high else ...
    is_one = facet.distinct == 1 and facet.values[0].count == total
    return facet.values[0].value if is_one else ...


def spread_of(cells: Cells, quantiles: Sequence[int | float]) -> Spread:
    """That of numbers in these cells, with their quantiles (SHARES)."""
    low, median, p95, p99, high = quantiles
    return Spread(low, median, p95, p99, high, *bars_of(cells, float(low), float(high), float(median), float(p95)))


def bars_of(cells: Cells, low: float, high: float, median: float, p95: float) -> tuple[tuple[int, ...], bool]:
    """The bars of a small chart of the numbers, and whether their widths are those of logarithms: where numbers are
    above 0, and the large ones many times as large as most.
    """
    import numpy as np

    is_log = (low > 0 and high > 50 * median and high > 3 * p95) or (
        low > 0 and high > 1000 * low and p95 > 10 * median
    )
    if not low < high:
        return (cells.total,), False
    middles = np.clip(sum(cells.bounds()) / 2, low, high)
    scale = np.log(middles / low) / np.log(high / low) if is_log else (middles - low) / (high - low)
    places = np.minimum((scale * _BARS).astype(np.int64), _BARS - 1)
    return tuple(np.bincount(places, cells.counts, _BARS).astype(np.int64).tolist()), bool(is_log)
