"""How many records have which values: of a field, or of several together."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple, Self

from jitdb.common.paths import Path, format_path
from jitdb.common.values import NUMBER, hashable, value_of_key
from jitdb.common.words import counted
from jitdb.display.parts import Display
from jitdb.display.sheet import Code, Sheet
from jitdb.errors import QueryError
from jitdb.operators.nodes.field_ref import PathLike, as_path, as_single_path
from jitdb.operators.summaries.pictures import bars_plot
from jitdb.operators.summaries.summary import Drawn, Keys, R, Ranked, S, Summary, View, limit_of

_PAIR: Final = struct.Struct("<dh")


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

    def as_dict(self) -> dict[Any, int]:
        """The counts by value, or by values. Raises QueryError where some are maps."""
        try:
            return {self._key(row): row.count for row in self.rows}
        except TypeError:
            raise QueryError("values that are maps are no keys of a dict", remedy="go through the rows") from None

    def _key(self, row: R) -> Any:
        raise NotImplementedError

    def _display(self) -> Display:
        display = super()._display()
        (sheet,) = display.parts
        assert isinstance(sheet, Sheet)
        empty = Code('""')  # a blank would look like none
        rows = [[empty if value == "" else value for value in row] for row in sheet.rows]
        return display._replace(parts=[sheet._replace(rows=rows)])

    def seen_sheet(self) -> Sheet:
        """As people see it: null and blank texts, which would look like nothing, are written as JSON has them."""
        sheet = self.sheet()
        rows = [[*map(_seen, row[:-2]), *row[-2:]] for row in sheet.rows]
        return sheet._replace(rows=rows)

    def _sheet(self, about: dict[str, Any], names: list[str], held: list[list[Any]], distinct: int) -> Sheet:
        """`held`: for each row a value of each field."""
        rows = [[*values, row.count, share] for values, row, share in zip(held, self.rows, self.shares, strict=True)]
        about |= {"total": self.total, "missing": self.missing, "distinct": distinct}
        what = ("group of values", "groups of values") if len(names) > 1 else ("value", "values")
        notes = [counted(self.total, "record", "records"), counted(distinct, *what)]
        if self.others:
            notes.append(f"{self.others:,} with other values")
        if self.missing:
            notes.append(f"{self.missing:,} without {' or '.join(f'`{name}`' for name in names)}")
        # A field that is called as one of ours stands in quotes.
        heads = [*(f"`{name}`" if name in ("count", "share") else name for name in names), "count", "share"]
        return Sheet(heads, rows, len(names), about, "; ".join(notes))


def _seen(value: Any) -> Any:
    if value is None:
        return "null"
    is_odd = isinstance(value, str) and (not value.strip() or value == "null")
    return json.dumps(value, ensure_ascii=False) if is_odd else value


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

    def _key(self, row: ValueCount) -> Any:
        return hashable(row.value)

    def sheet(self) -> Sheet:
        name = format_path(self.path)
        return self._sheet({"field": name}, [name], [[row.value] for row in self], self.distinct)

    def _plot(self, ax: Any) -> Any:
        return bars_plot(ax, self.rows, self.others, format_path(self.path), self.sheet().footer)


class GroupCounts(_Counts[GroupCount]):
    """How many records have which values of several fields: as ValueCounts, with a tuple for each value.

    missing: records that lack one of the fields, or several
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "paths", "distinct")

    paths: tuple[Path, ...]
    distinct: int

    def _key(self, row: GroupCount) -> Any:
        return tuple(map(hashable, row.values))

    def sheet(self) -> Sheet:
        names = list(map(format_path, self.paths))
        return self._sheet({"fields": names}, names, [list(row.values) for row in self], self.distinct)

    def _plot(self, ax: Any) -> Any:
        return bars_plot(ax, self.rows, self.others, ", ".join(map(format_path, self.paths)), self.sheet().footer)


class _CountsAsked(Summary[S]):
    """How many records have which values of the fields."""

    __slots__ = ()
    limit: int | None

    def count(self, view: View, settled: object) -> Ranked:
        return view.ranked(self.values_of, self.limit)


class ValuesAsked(_CountsAsked[ValueCounts]):
    """How many records have which value of a field."""

    __slots__ = __match_args__ = ("path", "limit")
    name = "value_counts"

    path: Path

    def __init__(self, path: PathLike, limit: int | None = None) -> None:
        self._keep(as_path(self.name, path), limit_of(limit))

    @property
    def values_of(self) -> tuple[Path, ...]:
        return (self.path,)

    def result(self, counts: Sequence[Ranked], settled: object) -> ValueCounts:
        return counted_values(self.path, added(counts, self.limit))


def counted_values(path: Path, values: Ranked) -> ValueCounts:
    """The result of these counts of a field's values."""
    rows = tuple(ValueCount(value_of_key(key), count) for (key,), count in values.pairs)
    return ValueCounts(rows, values.total, values.missing, path, values.distinct)


class GroupsAsked(_CountsAsked[GroupCounts]):
    """How many records have which values of several fields together."""

    __slots__ = __match_args__ = ("paths", "limit")
    name = "group_count"

    paths: tuple[Path, ...]

    def __init__(self, paths: Sequence[PathLike], limit: int | None = None) -> None:
        if not paths:
            raise QueryError("group_count() takes the paths of fields, such as group_count('carrier', 'origin')")
        self._keep(tuple(as_single_path(self.name, path) for path in paths), limit_of(limit))

    @property
    def values_of(self) -> tuple[Path, ...]:
        return self.paths

    def result(self, counts: Sequence[Ranked], settled: object) -> GroupCounts:
        pairs, distinct, total, missing = added(counts, self.limit)
        rows = tuple(GroupCount(tuple(map(value_of_key, keys)), count) for keys, count in pairs)
        return GroupCounts(rows, total, missing, self.paths, distinct)


def added(parts: Sequence[Ranked], limit: int | None) -> Ranked:
    """The values of the records of all parts. Where there are several, each has all of its values."""
    if len(parts) == 1:
        (part,) = parts
        return part if limit is None or len(part.pairs) <= limit else part._replace(pairs=part.pairs[:limit])
    counts: dict[Keys, int] = {}
    for part in parts:
        for keys, count in part.pairs:
            counts[keys] = counts.get(keys, 0) + count
    total, missing = sum(part.total for part in parts), sum(part.missing for part in parts)
    return Ranked(in_order(counts.items(), limit), len(counts), total, missing)


def in_order(pairs: Iterable[tuple[Keys, int]], limit: int | None) -> list[tuple[Keys, int]]:
    """The values of most records first, of equally many the smaller ones: by kind (null, false, true, numbers, text,
    bytes, the others), numbers by size, text by its bytes.
    """
    held = list(pairs)
    if limit is not None and limit < len(held):  # few have as many records as the last of the first ones
        least = nlargest(limit, (count for _, count in held))[-1]
        held = [pair for pair in held if pair[1] >= least]
    return sorted(held, key=lambda pair: (-pair[1], *map(_order_of, pair[0])))[:limit]


def _order_of(key: bytes) -> tuple[int, float, int, bytes]:
    """What a value is ordered by; NaN is the largest number."""
    if key[0] == NUMBER and len(key) == 1 + _PAIR.size:
        hi, lo = _PAIR.unpack_from(key, 1)
        return (NUMBER, hi, lo, b"") if hi == hi else (NUMBER, math.inf, 1, b"")
    return key[0], 0.0, 0, key[1:]
