"""How many records are of which time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import Path
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.parts import Display
from jitdb.display.sheet import Sheet, Spark, cut
from jitdb.errors import QueryError
from jitdb.operators.summaries.arithmetic.calendar import Step, parse_step, zone_called
from jitdb.operators.summaries.groups import By, Every, Grouped, Settled, named, names_of, start_texts
from jitdb.operators.summaries.pictures import steps_plot
from jitdb.operators.summaries.summary import AUTO, DECLARED_TIME, SERIES, Drawn, View, charted

if TYPE_CHECKING:
    from jitdb.operators.summaries.arithmetic.bins import Tally

_THIN: Final = 40  # numbers of a small chart


class TimeBin(NamedTuple):
    """How many records have a time from `start` to the next step, and how many of these have each of the timeline's
    `values`.
    """

    start: datetime
    count: int  # type: ignore[assignment]
    counts: tuple[int, ...] = ()


class Timeline(Drawn[TimeBin]):
    """How many records are of which time, the oldest first; steps without any are there, too, and so are those before
    the first record and behind the last one that since() and until() ask about.

    every:    the step, as it is written
    rows:     where each begins (in UTC, or the zone asked for), its count, and those of the `values`
    missing:  records without a time, or with one that is not in the years 1 to 9999
    by:       other fields, and `values` their most frequent values, a tuple of several fields; a row's other records
              have others, or none
    per:      the length of time that rates are of, as it is written, and `lengths` how many of it each step has: months
              differ, and so do hours by the clocks of some places
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "every", "by", "values", "per", "lengths")

    every: str
    by: tuple[Path, ...]
    values: tuple[Any, ...]
    per: str
    lengths: tuple[float, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        """How many records each step has in the time of `per`; a step that has only begun counts as a whole one."""
        return tuple(_rate(row.count, length) for row, length in zip(self, self.lengths, strict=bool(self.per)))

    def sheet(self) -> Sheet:
        """With rates, the columns of values have rates, too."""
        names = ["time", "count", *(["rate"] if self.per else []), *map(self._name, self.values)]
        others, rates = self._rest(), self.rates
        starts = self._start_texts()
        rows: list[list[Any]] = []
        for number, row in enumerate(self):
            counts: list[Any] = [*row.counts, *others[number : number + 1]]
            if self.per:
                counts = [rates[number], *(_rate(count, self.lengths[number]) for count in counts)]
            rows.append([starts[number], row.count, *counts])
        about: dict[str, Any] = {"every": self.every, "total": self.total, "missing": self.missing}
        if self.per:
            about["per"] = self.per
        if self.by:
            about["by"] = names_of(self.by)
        said = [counted(self.total, "record", "records"), f"{counted(len(self), 'step', 'steps')} of {self.every}"]
        if self.per:
            said.append(f"rates per {self.per}")
        if self.missing:
            said.append(f"{self.missing:,} without a time")
        bars = 2 if self.per else 1
        return Sheet([*names, *(["others"] if others else [])], rows, bars, about, "; ".join(said))

    def _name(self, value: Any) -> str:
        return cell(value) if len(self.by) == 1 else ", ".join(map(cell, value))

    def _rest(self) -> list[int]:
        """For each step, how many records have none of the values; nothing where there are none anywhere."""
        rest = [row.count - sum(row.counts) for row in self] if self.by else []
        return rest if any(rest) else []

    def _series(self) -> list[tuple[str, Sequence[int]]]:
        """A name and a count for each step: of all records, or of each value and of those that have none of them."""
        if not self.by:
            return [("records", self.counts)]
        found = [(cut(self._name(value)), [row.counts[at] for row in self]) for at, value in enumerate(self.values)]
        others = self._rest()
        return [*found, *([("others", others)] if others else [])]

    def _start_texts(self) -> list[str]:
        return start_texts([row.start for row in self])

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [[row.start for row in self], *columns[1:]]

    def _display(self) -> Display:
        """A chart; by other fields, each of their values beside its own small one."""
        sheet, series = self.sheet(), self._series()
        if self.by:
            rows = [[name, sum(counts), Spark(_thinned(counts))] for name, counts in series]
            sheet = Sheet([named(self.by), "count", ""], rows, 1, {}, sheet.footer)
        return charted(self._start_texts(), series, sheet)

    def _plot(self, ax: Any) -> Any:
        series, by = self._series(), named(self.by) if self.by else None
        colored = len(self.values) if self.by else 1
        return steps_plot(ax, [row.start for row in self], series, colored, by, self.sheet().footer)


class TimelineAsked(Grouped[Timeline]):
    """How many records are of which time."""

    __slots__ = __match_args__ = ("every", "by", "limit", "tz", "per")
    name = "timeline"

    limit: int
    per: Step | None

    def __init__(
        self,
        every: Every = AUTO,
        by: By = None,
        limit: int | None = SERIES,
        tz: str | None = None,
        per: str | timedelta | Step | None = None,
    ) -> None:
        fields, step, most, zone = self._grouped(by, AUTO if every is None else every, limit, tz)
        length = None if per is None else parse_step(per)
        if length is not None and length.months:
            raise QueryError(
                "months and years differ in length: there are no rates for them", remedy="say 1s, 1m or 1d"
            )
        self._keep(step, fields, most or SERIES, zone, length)

    def count(self, view: View, settled: Settled) -> Tally:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.bins import Series, Tally, by_clock, shared_steps
        from jitdb.operators.summaries.arithmetic.numbers import joined

        step = settled.step
        assert step is not None
        zone = None if self.tz is None else zone_called(self.tz)
        width = settled.many + 2 if self.by else 1
        known, rest = view.in_steps(self.by, settled.values, width, partial(shared_steps, step=step, zone=zone))
        found: list[Series | None] = [Series(number, counts[np.newaxis]) for number, counts in known]
        places = view.placing(self.by, settled.values) if self.by else None
        for part in rest.parts():
            columns = None if places is None else places(part)
            found.append(by_clock(joined(list(part.numbers(DECLARED_TIME))), step, columns, width, zone))
        return Tally.of(((series, 0, 0) for series in found), len(view.matches))

    def _lengths(self, starts: Sequence[datetime]) -> tuple[str, tuple[float, ...]]:
        """What rates are of, and how many of it are between these starts, if any are asked for."""
        if self.per is None:
            return "", ()
        size = timedelta(microseconds=self.per.nanoseconds / 1000)
        return self.per.text, tuple(_between(*both) / size for both in pairwise(starts))

    def _end_of(self, step: Step, number: int) -> datetime:
        start_of = self.start_of(step)
        try:
            return start_of(number + 1)
        except (OverflowError, ValueError):  # Python's last year ends in it
            return datetime.max.replace(tzinfo=start_of(number).tzinfo)

    def result(self, counts: Sequence[Tally], settled: Settled) -> Timeline:
        from jitdb.operators.summaries.arithmetic.bins import Tally

        series, total, missing, _, _ = Tally.added(counts)
        if series is None:
            return self.line(settled, {}, total, missing)
        many = settled.many if self.by else 0
        each = zip(series.counts.sum(axis=1).tolist(), map(tuple, series.counts[:, :many].tolist()), strict=True)
        return self.line(settled, dict(enumerate(each, series.first)), total, missing)

    def line(
        self, settled: Settled, counts: Mapping[int, tuple[int, tuple[int, ...]]], total: int, missing: int
    ) -> Timeline:
        """That of these counts: by the number of its step how many records, and how many of these have each value."""
        step, many = settled.step, settled.many if self.by else 0
        assert step is not None
        steps = settled.steps([min(counts), max(counts)] if counts else [])
        each = (counts.get(number, (0, (0,) * many)) for number in steps)
        rows = [TimeBin(start, *found) for start, found in zip(map(self.start_of(step), steps), each, strict=True)]
        per, lengths = self._lengths([*(row.start for row in rows), *(self._end_of(step, last) for last in steps[-1:])])
        return Timeline(
            tuple(rows), total, missing, step.text, self.by, tuple(map(settled.value, range(many))), per, lengths
        )


def _between(start: datetime, end: datetime) -> timedelta:
    """How long it is, whatever clocks show; near the first and the last year, too, which UTC may not have."""
    shifts = (time.utcoffset() or timedelta() for time in (start, end))
    return end.replace(tzinfo=None) - start.replace(tzinfo=None) + next(shifts) - next(shifts)


def _rate(count: int, length: float) -> float:
    return count / length if length else 0.0  # an hour that clocks leave out


def _thinned(counts: Sequence[int]) -> list[int]:
    """Few numbers: the sums of neighbours."""
    step = -(-len(counts) // _THIN) or 1
    return [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
