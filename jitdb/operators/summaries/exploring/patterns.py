"""What the texts of a field look like: how many records have which pattern, and when.

Texts have patterns by themselves (`pattern(x)`), whose index is counted as that of any field. Which of them are similar
depends on all that the logs have, not on the question: so a pattern has the same text whatever else is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from jitdb.common.paths import CASTS, Path, format_path
from jitdb.common.values import value_of_key
from jitdb.common.words import counted
from jitdb.display.sheet import Sheet, Spark
from jitdb.operators.nodes.compare import Bound, declared_time
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.nodes.instants import instant_at
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.summaries.groups import Every, Grouped, Settled, start_texts
from jitdb.operators.summaries.pictures import bars_plot
from jitdb.operators.summaries.summary import AUTO, DECLARED_TIME, Drawn, Ranked, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.operators.question import Question
    from jitdb.operators.summaries.arithmetic.bins import Tally
    from jitdb.operators.summaries.arithmetic.calendar import Extent, Window

_THIN: Final = 24  # characters of a small chart
USUAL: Final[Path] = ("message",)  # where no field has a usual name
_AT_ONCE: Final = 1 << 16  # records that are counted over time in one go
_NOTHING: Final = Ranked((), 0, 0, 0)


class Pattern(NamedTuple):
    """A pattern, how many records have it, and how many of these are of each step of time.

    is_new: whether no record of the log that is of an earlier time than was asked about has it; None: none was
    """

    pattern: str
    count: int  # type: ignore[assignment]  # not what tuples call so
    counts: tuple[int, ...] = ()
    is_new: bool | None = None


class Patterns(Drawn[Pattern]):
    """How many records have which pattern: new ones first, then the most frequent, of equal ones the smaller.

    path:     the field of the texts
    rows:     all patterns, or as many as were asked for; `fits(path, row.pattern)` are the records of one
    total:    records that were asked about
    missing:  those of them without text in the field
    distinct: how many patterns there are, those without a row too
    every:    the step of the rows' `counts`, as it is written; "" where none was asked for
    starts:   where each begins
    alike:    whether similar ones were put together: of too many they are not
    matching: how many records of the log are earlier than those that may be new
    new:      how many patterns are new, those without a row too; None: not asked for, or too many to be known
    """

    __slots__ = __match_args__ = (
        "rows", "total", "missing", "path", "distinct", "every", "starts", "alike", "matching", "new",
    )  # fmt: skip

    path: Path
    distinct: int
    every: str
    starts: tuple[datetime, ...]
    alike: bool
    matching: int
    new: int | None

    @property
    def tells_new(self) -> bool:
        return self.new is not None

    def sheet(self) -> Sheet:
        names = ["count", "share", *(["new"] if self.tells_new else []), *(["time"] if self.starts else []), "pattern"]
        rows: list[list[Any]] = []
        for row, share in zip(self, self.shares, strict=True):
            new = ["new" if row.is_new else ""] if self.tells_new else []
            rows.append([row.count, share, *new, *([_spark(row.counts)] if self.starts else []), row.pattern])
        return Sheet(names, rows, None, self._about(), self._said())

    def plain_sheet(self) -> Sheet:
        names = ["pattern", "count", "share", *(["counts"] if self.every else []), *(["new"] if self.tells_new else [])]
        rows: list[list[Any]] = []
        for row, share in zip(self, self.shares, strict=True):
            counts = [list(row.counts)] if self.every else []
            rows.append([row.pattern, row.count, share, *counts, *([row.is_new] if self.tells_new else [])])
        return Sheet(names, rows, None, self._about(), self._said())

    def _about(self) -> dict[str, Any]:
        about: dict[str, Any] = {"field": format_path(self.path), "total": self.total, "missing": self.missing}
        about["distinct"] = self.distinct
        if self.every:
            about |= {"every": self.every, "start": next(iter(start_texts(self.starts[:1])), None)}
        return about

    def _said(self) -> str:
        notes = [counted(self.total, "record", "records"), counted(self.distinct, "pattern", "patterns")]
        if self.others:
            notes.append(f"{self.others:,} with other patterns")
        if self.missing:
            notes.append(f"{self.missing:,} without text in `{format_path(self.path)}`")
        if self.tells_new:
            earlier = "" if self.matching else ": no record of the log is earlier"
            notes.append(f"{self.new:,} new{earlier}")
        if not self.alike:
            notes.append("too many to put similar ones together")
        if self.starts:
            steps = counted(len(self.starts), "step", "steps")
            notes.append(f"{steps} of {self.every} from {self.starts[0]:%Y-%m-%d %H:%M}")
        return "; ".join(notes)

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = ["pattern", "count", "share"], [[row.pattern for row in self], self.counts, self.shares]
        if self.tells_new:
            names, columns = [*names, "new"], [*columns, [row.is_new for row in self]]
        return names, columns

    def _plot(self, ax: Any) -> Any:
        rows = [(row.pattern, row.count) for row in self]
        return bars_plot(ax, rows, self.others, format_path(self.path), self._said())


def _spark(counts: Sequence[int]) -> Spark:
    """A small chart, of the sums of neighbours."""
    step = -(-len(counts) // _THIN) or 1
    return Spark([sum(counts[at : at + step]) for at in range(0, len(counts), step)])


class _Found(NamedTuple):
    """What one log has, before any is counted.

    extent:  its records' times
    ranked:  the patterns of its records' texts
    there:   those of all of its texts; None: too many to be compared
    earlier: those of its earlier records, where new ones are asked for
    """

    extent: Extent
    ranked: Ranked
    there: Sequence[bytes] | None
    earlier: Ranked


class _Settled(NamedTuple):
    """What all logs have.

    steps: of time, and as values the texts' patterns that are part of a row
    rows:  the patterns, without their counts over time
    of:    for each of the values the number of its row; the last two are the numbers of LACKING, and of OTHERS
    """

    steps: Settled
    rows: list[Pattern]
    of: NDArray[np.int64]
    ranked: Ranked
    distinct: int
    alike: bool
    matching: int
    new: int | None


class _Database(Protocol):
    @property
    def messages(self) -> list[Path]: ...


class PatternsAsked(Grouped[Patterns]):
    """How many records have which pattern. `path`: None is the field of a usual name that says what happened."""

    __slots__ = ("by", "every", "limit", "new_since", "path")
    __match_args__ = ("path", "limit", "every", "new_since")
    name = "patterns"
    tz = None

    path: Path | None
    new_since: Operation | None

    def __init__(
        self,
        path: PathLike | None = None,
        limit: int | None = None,
        every: Every = AUTO,
        new_since: Bound | Operation | None = None,
    ) -> None:
        field = None if path is None else as_single_path(self.name, path)
        _, step, most, _ = self._grouped(None, every, limit, None)
        if new_since is not None and not isinstance(new_since, Operation):
            new_since = declared_time < (instant_at(new_since) if isinstance(new_since, str) else new_since)
        self._keep(field, most, step, new_since)
        object.__setattr__(self, "by", () if field is None else ((*field, CASTS["pattern"]),))

    def ready(self, question: Question, database: _Database) -> Question:
        if self.path is not None:
            return question
        return question.changed(summary=self.changed(path=next(iter(database.messages), USUAL)))

    @property
    def paths(self) -> tuple[Path, ...]:
        return () if self.path is None else (self.path,)

    @property
    def condition(self) -> Operation | None:
        return self.new_since

    @property
    def surveys(self) -> bool:
        return True

    @property
    def most(self) -> int:
        from jitdb.operators.summaries.exploring.similar import MOST

        return MOST

    def survey(self, view: View) -> _Found:  # type: ignore[override]
        (path,) = self.by
        there = view.values(path, self.most)
        most = self.most if there is not None else self.limit  # where none are put together, no others are looked at
        earlier = _NOTHING if self.new_since is None else view.beside.ranked(self.by, most)
        return _Found(self.extent(view), view.ranked(self.by, most), there, earlier)

    def settled(self, surveys: Sequence[_Found], window: Window) -> _Settled:  # type: ignore[override]
        import numpy as np

        steps = super().settled([(found.extent, found.ranked) for found in surveys], window)
        ranked = steps.values
        pattern_of = _pattern_of([found.there for found in surveys])
        patterns = [pattern_of(key) for (key,), _ in ranked.pairs]
        tells_new = self.new_since is not None and len(patterns) == ranked.distinct
        earlier = _earlier(surveys, pattern_of) if tells_new else None
        rows = _rows(patterns, ranked, earlier)
        is_alike = pattern_of is not value_of_key
        distinct = len(rows) if is_alike else ranked.distinct
        new = None if earlier is None else sum(row.is_new is True for row in rows)
        rows = rows[: self.limit]
        numbers = {row.pattern: number for number, row in enumerate(rows)}
        shown = [place for place, pattern in enumerate(patterns) if pattern in numbers]
        of = [*(numbers[patterns[place]] for place in shown), len(rows), len(rows) + 1]
        steps = steps._replace(values=ranked._replace(pairs=[ranked.pairs[place] for place in shown]))
        if any(found.there is None for found in surveys):
            steps = steps._replace(step=None)  # each record's pattern would need a number
        matching = sum(found.earlier.total for found in surveys)
        return _Settled(steps, rows, np.array(of, np.int64), ranked, distinct, is_alike, matching, new)

    def count(self, view: View, settled: _Settled) -> Tally:
        import numpy as np

        from jitdb.operators.summaries.arithmetic.bins import Series, Tally, by_clock, shared_steps
        from jitdb.operators.summaries.arithmetic.numbers import joined

        step, values, width = settled.steps.step, settled.steps.values, len(settled.rows) + 2
        if step is None:
            return Tally(None, 0, 0)
        found: list[Series | None] = []
        places, parts = view.placing(self.by, values), iter((view,))
        if len(view.matches) > _AT_ONCE:
            known, rest = view.in_steps(self.by, values, len(settled.of), partial(shared_steps, step=step, zone=None))
            for number, counts in known:
                summed = np.zeros((1, width), np.int64)
                np.add.at(summed[0], settled.of, counts)
                found.append(Series(number, summed))
            parts = rest.parts()
        for part in parts:
            columns, times = settled.of[places(part)], joined(list(part.numbers(DECLARED_TIME)))
            found.append(by_clock(times, step, columns, width, None))
        return Tally.of(((series, 0, 0) for series in found), len(view.matches))

    def result(self, counts: Sequence[Tally], settled: _Settled) -> Patterns:
        from jitdb.operators.summaries.arithmetic.bins import Tally

        step, rows, starts = settled.steps.step, settled.rows, list[datetime]()
        if step is not None:
            series = Tally.added(counts).series
            steps = settled.steps.steps([] if series is None else [series.first, series.last])
            starts = list(map(self.start_of(step), steps))
            empty = [0] * len(steps)
            columns = [list(empty) for _ in rows]
            if series is not None:
                filled = slice(series.first - steps.start, series.last + 1 - steps.start)
                for column, own in zip(columns, series.counts.T.tolist(), strict=False):
                    column[filled] = own
            rows = [row._replace(counts=tuple(column)) for row, column in zip(rows, columns, strict=True)]
        ranked, every = settled.ranked, "" if step is None else step.text
        assert self.path is not None
        about = settled.distinct, every, tuple(starts), settled.alike, settled.matching, settled.new
        return Patterns(tuple(rows), ranked.total, ranked.missing, self.path, *about)


def _rows(patterns: Sequence[str], ranked: Ranked, earlier: set[str] | None) -> list[Pattern]:
    """All rows, without counts over time. `earlier`: the patterns of earlier records; None: nobody knows."""
    counts: dict[str, int] = {}
    for pattern, (_, count) in zip(patterns, ranked.pairs, strict=True):
        counts[pattern] = counts.get(pattern, 0) + count
    rows = [
        Pattern(pattern, count, (), None if earlier is None else pattern not in earlier)
        for pattern, count in counts.items()
    ]
    return sorted(rows, key=lambda row: (not row.is_new, -row.count, row.pattern))


def _earlier(surveys: Sequence[_Found], pattern_of: Callable[[bytes], str]) -> set[str] | None:
    """The patterns of earlier records; None where these are too many to be known all."""
    if any(len(found.earlier.pairs) < found.earlier.distinct for found in surveys):
        return None
    return {pattern_of(key) for found in surveys for (key,), _ in found.earlier.pairs}


def _pattern_of(there: Sequence[Sequence[bytes] | None]) -> Callable[[bytes], str]:
    """What gives the pattern of a text's own, by its key: of those of all logs, that which it becomes a part of."""
    from jitdb.operators.summaries.exploring.similar import MOST, merged

    held = [keys for keys in there if keys is not None]
    own = tuple(held[0]) if len(held) == 1 else tuple(dict.fromkeys(chain.from_iterable(held)))
    found = merged(own) if len(held) == len(there) and len(own) <= MOST else None
    return value_of_key if found is None else found.__getitem__
