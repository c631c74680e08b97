"""What is asked of all records together, and what comes back.

A summary is a file: value_counts, histograms, timelines, stats, distinct, patterns. Its class of `Summary` is what is
asked, with checked arguments; it says which fields it needs, how the records of one log are counted, how the counts of
many logs add up, and which `Result` they make. That says what its rows are, for tables of text, CSV and JSON, and how
it is drawn. asking.py has the methods, operators/chain.py the words of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from jitdb.common.arguments import whole_number
from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path
from jitdb.display.parts import Chart, Display, Folded, Part
from jitdb.display.sheet import Sheet, first_rows
from jitdb.display.shown import Shown
from jitdb.errors import library
from jitdb.operators.nodes.literals import describe_path, describe_value
from jitdb.operators.tabular import Tabular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap

    from jitdb.operators.nodes.operation import Operation
    from jitdb.operators.nodes.selection import SortKeys
    from jitdb.operators.summaries.arithmetic.calendar import Window
    from jitdb.operators.summaries.arithmetic.cells import Cells, Taken
    from jitdb.operators.summaries.arithmetic.numbers import Numbers

#: The defaults of methods and commands.
AUTO: Final = "auto"
BINS: Final = 20  # of a histogram, at most
SERIES: Final = 10  # of a timeline by a field, at most
QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

DECLARED_TIME: Final = "timestamp"
_ROWS: Final = 25  # that a person sees of a table
_STEPS: Final = 40  # and of one below a chart
_MOST_COLUMNS: Final = 400  # of a chart

OTHERS: Final = -1  # places, and groups, of records that have none
LACKING: Final = -2

Keys: TypeAlias = tuple[bytes, ...]  # of the values of one field, or several (jitdb.common.values)


class Counted(Protocol):
    """A row of a result."""

    @property
    def count(self) -> int: ...


R = TypeVar("R", bound=Counted)
S = TypeVar("S")  # the result of a summary


T = TypeVar("T")


class Lazy(Sequence[T]):
    """So many things, each made when it is looked at, and then kept. It is equal to a tuple of the same."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(self._count)))
        place = range(self._count)[at]
        if place not in self._made:
            self._made[place] = self._make(place)
        return self._made[place]

    def __iter__(self) -> Iterator[T]:
        return map(self.__getitem__, range(self._count))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lazy | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class Ranked(NamedTuple):
    """How many records have which values.

    pairs:    keys and counts, the most frequent first; all, or the first of them
    distinct: how many there are
    total:    records
    missing:  those that lack one of the fields
    """

    pairs: Sequence[tuple[Keys, int]]
    distinct: int
    total: int
    missing: int


class ValuesIn(NamedTuple):
    """The values that some groups of records have.

    distinct: how many each group has
    pairs:    what gives the numbers of a group and of a value of it, each pair once, in two arrays
    counts:   how many records with the field are in each group
    others:   how many of them are in none because their values have none
    keys:     of the values, by number; None: this log is all that is asked
    """

    distinct: NDArray[np.int64]
    pairs: Callable[[], tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]]
    counts: NDArray[np.int64]
    others: int
    keys: list[bytes] | None


class Opposed(NamedTuple):
    """Values of a field: how many of the records that match have each (`here`), and how many of the others (`there`).

    distinct: how many values the records that match have, those that are not listed too
    """

    keys: Sequence[bytes]
    here: NDArray[np.int64]
    there: NDArray[np.int64]
    distinct: int


class View(Protocol):
    """The records of a log that match, and what its indexes say of them. The engine implements it."""

    @property
    def matches(self) -> BitMap: ...

    @property
    def held(self) -> View:
        """The same of those records of which the summary's condition is true, too."""

    @property
    def beside(self) -> View:
        """The same of all records of the log of which the summary's condition is true, whether they match or not."""

    @property
    def is_whole(self) -> bool:
        """Whether no other log is asked."""

    def values(self, path: Path, most: int) -> Sequence[bytes] | None:
        """The keys of all values that the log has in the field, of records that do not match, too, and perhaps of
        deleted ones; None where there are more than `most`.
        """

    def ranked(self, paths: Sequence[Path], limit: int | None) -> Ranked:
        """The most frequent values of these fields; all values where other logs are asked, too."""

    def leading(self, path: Path, column: Path, weighed_by: str, limit: int, ascending: bool) -> Ranked | None:
        """Those values of a field among which the first `limit` are by how many numbers of another field their records
        have (count), the least of these (min), the largest (max), their difference (span); None where all values are to
        be looked at.
        """

    def placing(self, paths: Sequence[Path], values: Ranked) -> Callable[[View], NDArray[np.int64]]:
        """What gives, of this view or a part of it, for each record the place of its values in these fields among the
        pairs; -1 (OTHERS) for other values, and -2 (LACKING) where it lacks one of the fields.
        """

    def parts(self) -> Iterator[View]:
        """The same of some records, then of the next ones, so few that arrays of them take no memory to speak of."""

    def in_steps(
        self,
        paths: Sequence[Path],
        values: Ranked,
        width: int,
        shared: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]],
    ) -> tuple[list[tuple[int, NDArray[np.int64]]], View]:
        """Steps of time, by number, and how many records are in each, by their place (placing) modulo `width`: those
        whose step is known without a look at their times. A step may come several times. And all other records.

        shared: the step that all times between two of each pair are in, or bins.NOWHERE
        """

    def values_in(self, path: Path, groups_of: Callable[[View], NDArray[np.int64]]) -> ValuesIn:
        """Which values of the field the records of each group have, as the numbers of groups are given for a part."""

    def numbers(self, column: str | Path) -> Iterator[Numbers]:
        """The numbers of a field, or DECLARED_TIME, of all records in some parts; NaN where a record has none."""

    def extent(self, path: Path) -> tuple[int, int] | None:
        """Bounds of the numbers of a field, the largest included, where all that the log has are whole and below 2**53;
        else None.
        """

    def cells(self, path: Path) -> Cells:
        """In which cells the numbers of a field lie."""

    def numbers_in(self, path: Path, cells: Cells) -> list[Taken]:
        """The numbers of a field that lie in these cells."""

    def opposed(self, path: Path, held: Any, least: int) -> Opposed:
        """The values of a field that at least so many of the records of `held` have; with `least` 0, all values."""

    def marked(self, findings: Sequence[tuple[Path, Any]]) -> NDArray[np.int64]:
        """How many records have which of these findings: for each set of them, as the bits of a number, a count.

        A finding is a field and a value's key, or an interval of numbers. The bit behind the last possible one says
        that the summary's condition is true (contrast.MATCHING).
        """


class Summary(Immutable, Generic[S]):
    """What is asked. Its parts are the arguments of the method of its name."""

    __slots__ = ()
    name = ""

    @property
    def named(self) -> tuple[Path, ...]:
        """The fields that were named where several are asked about: one that no record has gets a warning."""
        return ()

    @property
    def others(self) -> Operation | None:
        """Which other records it is about, beside those that match; None: all, or none."""
        return None

    def ready(self, question: Any, database: Any) -> Any:
        """The Question that asks this, with what must be known of the database beforehand."""
        return question

    @property
    def condition(self) -> Operation | None:
        """What may be true of the records that are asked about: View.held."""
        return None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The fields that it is about, but for the declared time."""
        path: Path | None = getattr(self, "path", None)
        return self.values_of if path is None else (path,)

    @property
    def values_of(self) -> tuple[Path, ...]:
        """The fields whose values are counted."""
        return ()

    @property
    def columns(self) -> tuple[str | Path, ...]:
        """The fields whose numbers are, or DECLARED_TIME."""
        return ()

    @property
    def sorted_by(self) -> bool | SortKeys:
        """The order that it needs (Question.order)."""
        return False

    @property
    def surveys(self) -> bool:
        """Whether something must be known of all logs before any is counted."""
        return False

    def survey(self, view: View) -> Any:
        """That, of one log."""

    @property
    def has_steps(self) -> bool:
        """Whether there are steps of time, so that it matters which time is asked about."""
        return False

    def settled(self, surveys: Sequence[Any], window: Window) -> Any:
        """What follows from that of all logs, and from the time that is asked about, for count() and result()."""

    def count(self, view: View, settled: Any) -> Any:
        """The part of one log."""
        raise NotImplementedError

    def result(self, counts: Sequence[Any], settled: Any) -> S:
        """What the parts of all logs make."""
        raise NotImplementedError

    def __repr__(self) -> str:
        said: Iterator[tuple[str, Any]] = zip(self.__match_args__, self._parts(), strict=True)
        return f"{self.name}({', '.join(f'{name}={_written(part)}' for name, part in said if part not in (None, ()))})"


class Matches(Summary[int]):
    """How many records there are: of a part of a log."""

    __slots__ = ()

    def count(self, view: View, settled: object) -> int:
        return len(view.matches)

    def result(self, counts: Sequence[int], settled: object) -> int:
        return sum(counts)


def limit_of(limit: int | None) -> int | None:
    """The limit of a number of values, checked. Raises QueryError."""
    return None if limit is None else whole_number("limit is a number of values", limit, 1)


def _written(part: Any) -> str:
    if not isinstance(part, tuple) or not part or isinstance(part[0], float):
        return describe_value(part)
    if isinstance(part[0], tuple):
        return f"[{', '.join(map(describe_path, part))}]"
    return describe_path(part)


class Result(Immutable, Tabular, Shown):
    """What shows itself as a table."""

    __slots__ = ()

    def sheet(self) -> Sheet:
        """Its rows as they are written, in tables of text, CSV and JSON."""
        raise NotImplementedError

    def seen_sheet(self) -> Sheet:
        """The same for people."""
        return self.sheet()

    def told(self) -> list[str]:
        """Lines of its footer that are part of the answer, and no remarks on it."""
        return []

    def plain_sheet(self) -> Sheet:
        """The same for JSON, where cells need not be text."""
        return self.sheet()

    def _display(self) -> Display:
        return Display("", "", [first_rows(self.seen_sheet(), _ROWS)])

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        """The names and values of its columns: the rows that a person sees, with values as they are."""
        sheet = self.sheet()
        return list(sheet.names), [[row[at] for row in sheet.rows] for at in range(len(sheet.names))]

    def _arrow(self) -> _Columns:
        return _Columns(*self._columns())

    def __repr__(self) -> str:
        return str(self)


class Listed(Result, Generic[R]):
    """Rows to loop over. `total`: of how many records, those that match."""

    __slots__ = ()

    rows: Sequence[R]
    total: int

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> R:
        return self.rows[number]


class Rows(Listed[R]):
    """Rows that are parts of a whole.

    missing: how many records lack the field, the number or the time; `sum(counts) + others + missing == total`
    """

    __slots__ = ()

    missing: int

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(row.count for row in self.rows)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each row in all records that were asked about."""
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


def charted(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], sheet: Sheet) -> Display:
    """A chart above a sheet; of one series the same numbers are folded away. No chart where it has no use."""
    if len(series) == 1:
        sheet = first_rows(sheet, _STEPS)
    if not 1 < len(labels) <= _MOST_COLUMNS:
        return Display("", "", [sheet])
    below: Part = Folded("as a table", sheet) if len(series) == 1 else sheet
    return Display("", "", [Chart(labels, series), below])


class _Columns:
    """The columns of a result as Arrow's: see operators.tabular.Arrow. Needs pyarrow."""

    def __init__(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        taken = [name if name not in names[:at] else f"`{name}`" for at, name in enumerate(names)]
        arrays = [array_of(*each) for each in zip(columns, names, strict=True)]
        self._table = library("pyarrow").table(arrays, taken)

    def table(self) -> Any:
        return self._table

    def reader(self) -> Any:
        return self._table.to_reader()

    def schema(self) -> Any:
        return self._table.schema


def array_of(values: Sequence[Any], name: str = "") -> Any:
    """Values of records as an array of Arrow: of one type, or all of them as JSON text, but text as it is.

    >>> [str(array_of(values).type) for values in ([1, None], [1, 2.5], [2**64 - 1], [1, "x"])]
    ['int64', 'double', 'uint64', 'string']
    """
    from datetime import datetime  # which a process that asks once can do without

    pa = library("pyarrow")
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        numbers = dict.fromkeys(("count", "records"), pa.int64()) | dict.fromkeys(
            ("share", "from", "below"), pa.float64()
        )
        return pa.array(values, numbers.get(name, pa.timestamp("us", "UTC") if name == "time" else pa.string()))
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
    from jitdb.common.json_text import json_of, well_formed

    return None if value is None else well_formed(value) if isinstance(value, str) else json_of(value)
