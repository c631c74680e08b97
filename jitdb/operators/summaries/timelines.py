"""How many records are of which time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_of_key
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, Spark, cut
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.summaries.calendar import Step, parse_step, usual_step, zone_called
from jitdb.operators.summaries.pictures import steps_plot
from jitdb.operators.summaries.summary import (
    AUTO,
    DECLARED_TIME,
    SERIES,
    Drawn,
    Ranked,
    Summary,
    View,
    charted,
    limit_of,
)
from jitdb.operators.summaries.value_counts import added

if TYPE_CHECKING:
    from jitdb.operators.summaries.bins import Extent, Tally

_THIN: Final = 40  # numbers of a small chart
_MOST: Final = 50  # steps that are chosen: what a screen has room for


class TimeBin(NamedTuple):
    """How many records have a time from `start` to the next step, and how many of these have each of the timeline's
    `values`.
    """

    start: datetime
    count: int  # type: ignore[assignment]
    counts: tuple[int, ...] = ()


class Timeline(Drawn[TimeBin]):
    """How many records are of which time, the oldest first; steps without any are there, too.

    every:    the step, as it is written
    rows:     where each begins (in UTC, or the zone asked for), its count, and those of the `values`
    missing:  records without a time, or with one that is not in the years 1 to 9999
    by:       another field, and `values` its most frequent values; a row's other records have another one, or none
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "every", "by", "values")

    every: str
    by: Path | None
    values: tuple[Any, ...]

    def sheet(self) -> Sheet:
        names = ["time", "count", *(cell(value) for value in self.values)]
        others = self._rest()
        starts = self._start_texts()
        rows: list[list[Any]] = []
        for number, row in enumerate(self):
            rest = [others[number]] if others else []
            rows.append([starts[number], row.count, *row.counts, *rest])
        about: dict[str, Any] = {"every": self.every, "total": self.total, "missing": self.missing}
        if self.by is not None:
            about["by"] = format_path(self.by)
        said = [counted(self.total, "record", "records"), f"{counted(len(self), 'step', 'steps')} of {self.every}"]
        if self.missing:
            said.append(f"{self.missing:,} without a time")
        return Sheet([*names, *(["others"] if others else [])], rows, 1, about, "; ".join(said))

    def _rest(self) -> list[int]:
        """For each step, how many records have none of the values; nothing where there are none anywhere."""
        rest = [row.count - sum(row.counts) for row in self] if self.by is not None else []
        return rest if any(rest) else []

    def _series(self) -> list[tuple[str, Sequence[int]]]:
        """A name and a count for each step: of all records, or of each value and of those that have none of them."""
        if self.by is None:
            return [("records", self.counts)]
        named = [(cut(cell(value)), [row.counts[at] for row in self]) for at, value in enumerate(self.values)]
        others = self._rest()
        return [*named, *([("others", others)] if others else [])]

    def _start_texts(self) -> list[str]:
        """Where each step begins, as RFC 3339 has it, no longer than it takes."""
        if all(row.start.time() == datetime.min.time() for row in self):
            return [row.start.strftime("%Y-%m-%d").rjust(10, "0") for row in self]
        return [
            row.start.isoformat(timespec="auto" if row.start.microsecond else "seconds").replace("+00:00", "Z")
            for row in self
        ]

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [[row.start for row in self], *columns[1:]]

    def _display(self) -> Display:
        """A chart; by another field, each of its values beside its own small one."""
        sheet, series = self.sheet(), self._series()
        if self.by is not None:
            rows = [[name, sum(counts), Spark(_thinned(counts))] for name, counts in series]
            sheet = Sheet([format_path(self.by), "count", ""], rows, 1, {}, sheet.footer)
        return charted(self._start_texts(), series, sheet)

    def _plot(self, ax: Any) -> Any:
        series, by = self._series(), None if self.by is None else format_path(self.by)
        named = 1 if by is None else len(self.values)
        return steps_plot(ax, [row.start for row in self], series, named, by, self.sheet().footer)


class _Settled(NamedTuple):
    step: Step
    keys: list[bytes]  # of the values that are counted one by one


class TimelineAsked(Summary[Timeline]):
    """How many records are of which time. `every`: None is chosen by how much time they span. `tz`: None is UTC."""

    __slots__ = __match_args__ = ("every", "by", "limit", "tz")
    name = "timeline"

    every: Step | None
    by: Path | None
    limit: int
    tz: str | None

    def __init__(
        self,
        every: str | timedelta | Step | None = AUTO,
        by: PathLike | None = None,
        limit: int | None = SERIES,
        tz: str | None = None,
    ) -> None:
        is_auto = every is None or (isinstance(every, str) and every == AUTO)
        if tz is not None:
            zone_called(tz)
        step = None if is_auto else parse_step(every)
        self._keep(step, None if by is None else as_single_path(self.name, by), limit_of(limit) or SERIES, tz)

    @property
    def values_of(self) -> tuple[Path, ...]:
        return () if self.by is None else (self.by,)

    @property
    def column(self) -> str:
        return DECLARED_TIME

    @property
    def surveys(self) -> bool:
        return self.every is None or self.by is not None

    def survey(self, view: View) -> tuple[Extent, Ranked | None]:
        from jitdb.operators.summaries.bins import Extent, calendar_extent

        parts = view.numbers(DECLARED_TIME) if self.every is None else ()
        extent = reduce(Extent.with_, map(calendar_extent, parts), Extent())
        return extent, None if self.by is None else view.ranked((self.by,), self.limit)

    def settled(self, surveys: Sequence[tuple[Extent, Ranked | None]]) -> _Settled:
        from jitdb.operators.summaries.bins import Extent

        low, high, _ = reduce(Extent.with_, (extent for extent, _ in surveys), Extent())
        step = self.every or (usual_step(low, high, _MOST) if low <= high else parse_step("1d"))
        values = [ranked for _, ranked in surveys if ranked is not None]
        return _Settled(step, [key for (key,), _ in added(values, self.limit).pairs] if values else [])

    def count(self, view: View, settled: _Settled) -> Tally:
        from jitdb.operators.summaries.bins import Tally, by_clock

        step, keys = settled
        columns, begin = None if self.by is None else view.places(self.by, keys), 0
        zone = None if self.tz is None else zone_called(self.tz)
        parts = []
        for times in view.numbers(DECLARED_TIME):
            end = begin + len(times.hi)
            some = None if columns is None else columns[begin:end]
            parts.append((by_clock(times, step, some, len(keys) + 1, zone), 0, 0))
            begin = end
        return Tally.of(parts, len(view.matches))

    def result(self, counts: Sequence[Tally], settled: _Settled) -> Timeline:
        from jitdb.operators.summaries.bins import Tally

        step, keys = settled
        series, total, missing, _, _ = Tally.added(counts)
        rows: list[TimeBin] = []
        if series is not None:
            starts: Iterator[datetime] = map(step.start, range(series.first, series.last + 1))
            sums, columns = series.counts.sum(axis=1).tolist(), series.counts[:, :-1].tolist()
            if self.tz is not None:
                zone = zone_called(self.tz)
                starts = (start.replace(tzinfo=zone) for start in starts)
            rows = list(map(TimeBin, starts, sums, map(tuple, columns)))
        return Timeline(tuple(rows), total, missing, step.text, self.by, tuple(map(value_of_key, keys)))


def _thinned(counts: Sequence[int]) -> list[int]:
    """Few numbers: the sums of neighbours."""
    step = -(-len(counts) // _THIN) or 1
    return [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
