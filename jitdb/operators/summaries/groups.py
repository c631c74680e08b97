"""Records in groups: by the values of fields, by steps of time, or by both.

Which values these are is found first, for all logs together; then each log says of each of its groups what there is.
In another order than that of most records all values have groups, and the limit is of rows.
Groups that are to be ordered by that need all values; those of most records are among the most frequent values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from jitdb.common.paths import Path, format_path
from jitdb.common.spelling import did_you_mean
from jitdb.common.times import Nanoseconds
from jitdb.common.values import value_of_key
from jitdb.common.words import counted, shown
from jitdb.display.sheet import Sheet
from jitdb.errors import QueryError, Remedy
from jitdb.operators.nodes.field_ref import PathLike, as_single_path
from jitdb.operators.summaries.arithmetic.calendar import (
    MOST,
    Extent,
    Step,
    Window,
    ahead_of_utc,
    check,
    parse_step,
    usual_step,
    zone_called,
)
from jitdb.operators.summaries.summary import (
    AUTO,
    DECLARED_TIME,
    LACKING,
    OTHERS,
    Keys,
    Lazy,
    R,
    Ranked,
    Rows,
    S,
    Summary,
    View,
    limit_of,
)
from jitdb.operators.summaries.value_counts import added

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: A field, or a list of several.
By: TypeAlias = "PathLike | Sequence[PathLike] | None"

#: A step of time, `auto`, or none at all.
Every: TypeAlias = "str | timedelta | Step | None"

RECORDS: Final = "records"  # groups of most records first
_ASCENDING: Final = " asc"  # behind an order: the least first
_MOST: Final = 50  # steps that are chosen: what a screen has room for


def paths_by(caller: str, by: By) -> tuple[Path, ...]:
    """The fields to group by: a list is of several, and anything else the path of one. Raises QueryError.

    >>> paths_by("stats_by", "user.name"), paths_by("stats_by", ["service", "http.status"])
    ((('user', 'name'),), (('service',), ('http', 'status')))
    """
    fields = [] if by is None else by if isinstance(by, list) else [by]
    return tuple(as_single_path(caller, field) for field in fields)


def order_of(order: str | None, names: Sequence[str], by: Sequence[Path]) -> str:
    """An order of groups by these fields: one of the names, of which the first is the usual one, and maybe `asc` behind
    it. Raises QueryError.
    """
    if order is None:
        return names[0]
    if not by:
        remedy = Remedy("say by='user'", "say --by user")
        raise QueryError("an order needs another field, whose values it puts in order", remedy=remedy)
    words = str(order).lower().split()
    name, ways = " ".join(words[:1]), words[1:]
    if name in names and ways in ([], ["desc"], ["asc"]):
        return name + (_ASCENDING if ways == ["asc"] else "")
    usual = f"groups are ordered by {', '.join(names)}, the greatest first; '{names[-1]} asc' puts the least first"
    raise QueryError(f"there is no order by {shown(order)}", remedy=did_you_mean(name, names, usual))


def without_direction(order: str) -> str:
    """
    >>> without_direction("max"), without_direction("max asc")
    ('max', 'max')
    """
    return order.removesuffix(_ASCENDING)


def named(paths: Sequence[Path]) -> str:
    """The fields in words."""
    return ", ".join(map(format_path, paths))


def names_of(paths: Sequence[Path]) -> str | list[str]:
    """For programs."""
    names = list(map(format_path, paths))
    return names[0] if len(names) == 1 else names


def value_of(keys: Keys) -> Any:
    """The value of one field, or a tuple of those of several."""
    values = tuple(map(value_of_key, keys))
    return values[0] if len(values) == 1 else values


def start_texts(starts: Sequence[datetime]) -> list[str]:
    """Where steps begin, as RFC 3339 has it, no longer than it takes."""
    if all(start.time() == datetime.min.time() for start in starts):
        return [start.strftime("%Y-%m-%d").rjust(10, "0") for start in starts]
    return [
        start.isoformat(timespec="auto" if start.microsecond else "seconds").replace("+00:00", "Z") for start in starts
    ]


class Settled(NamedTuple):
    """What is known of all logs before any is counted.

    step:        of time; None where time does not matter
    first, last: the numbers of the steps that the time begins and ends with that is asked about
    """

    step: Step | None
    values: Ranked
    first: int | None = None
    last: int | None = None

    @property
    def many(self) -> int:
        """How many values have groups."""
        return len(self.values.pairs)

    def steps(self, numbers: Sequence[int]) -> range:
        """From the first to the last of these steps, and as far as the time that is asked about: if it has so many
        steps that no answer may have them, only where records are.
        """
        own = range(min(numbers), max(numbers) + 1) if numbers else range(0)
        first = own[0] if own and self.first is None else self.first
        last = own[-1] if own and self.last is None else self.last
        if first is None or last is None or last - first >= MOST:
            return own
        return range(min([first, *own[:1]]), max([last, *own[-1:]]) + 1)

    def value(self, place: int) -> Any:
        """One of them: of one field, or a tuple of those of several."""
        return value_of(self.values.pairs[place][0])


class Grouped(Summary[S]):
    """What is asked of records in groups.

    by:    the fields
    every: the step; AUTO is chosen by how much time the records span; None is no time
    limit: of values, the most frequent
    tz:    the zone by whose clocks steps begin; None is UTC
    """

    __slots__ = ()

    by: tuple[Path, ...]
    every: Step | str | None
    limit: int | None
    tz: str | None

    def _grouped(self, by: By, every: Every, limit: int | None, tz: str | None) -> tuple[Any, ...]:
        """These parts, checked. Raises QueryError."""
        if tz is not None:
            zone_called(tz)
            if every is None:
                raise QueryError("a zone needs steps of time", remedy=Remedy("say every='1h'", "say --every 1h"))
        step = AUTO if isinstance(every, str) and every == AUTO else None if every is None else parse_step(every)
        return paths_by(self.name, by), step, limit_of(limit), tz

    @property
    def paths(self) -> tuple[Path, ...]:
        path: Path | None = getattr(self, "path", None)
        return self.by if path is None else (path, *self.by)

    @property
    def values_of(self) -> tuple[Path, ...]:
        return self.by

    @property
    def columns(self) -> tuple[str | Path, ...]:
        return () if self.every is None else (DECLARED_TIME,)

    @property
    def surveys(self) -> bool:
        return bool(self.by) or self.every == AUTO

    @property
    def has_steps(self) -> bool:
        return self.every is not None

    @property
    def most(self) -> int | None:
        """How many values of the fields are looked at."""
        return self.limit

    def survey(self, view: View) -> tuple[Extent, Ranked]:
        return self.extent(view), self.ranked_in(view) if self.by else ALL

    def ranked_in(self, view: View) -> Ranked:
        """The values of a log that have groups, if no other log has more."""
        return view.ranked(self.by, self.most)

    def extent(self, view: View) -> Extent:
        """The times of the records, where they choose the step."""
        from jitdb.operators.summaries.arithmetic.bins import calendar_extent

        parts = view.numbers(DECLARED_TIME) if self.every == AUTO else ()
        return reduce(Extent.with_, map(calendar_extent, parts), Extent())

    def settled(self, surveys: Sequence[tuple[Extent, Ranked]], window: Window) -> Settled:
        low, high, _ = reduce(Extent.with_, (extent for extent, _ in surveys), Extent())
        low, high = (end if asked is None else asked for end, asked in zip((low, high), window, strict=True))
        step = self.every
        if isinstance(step, str):
            step = usual_step(low, high, _MOST) if -math.inf < low <= high < math.inf else parse_step("1d")
        values = added([ranked for _, ranked in surveys], self.most) if self.by else ALL
        return Settled(step, values, *(self._number_of(step, end) for end in window))

    def _number_of(self, step: Step | None, time: Nanoseconds | None) -> int | None:
        """Of the step that a time is in."""
        if step is None or time is None:
            return None
        return (step if self.tz is None else step.by_clock(ahead_of_utc(time, zone_called(self.tz)))).number(time)

    def start_of(self, step: Step) -> Callable[[int], datetime]:
        """What says where the step with a number begins."""
        if self.tz is None:
            return step.start
        zone = zone_called(self.tz)
        return lambda number: step.start_in(number, zone)


#: Where nothing is grouped by: all records are one group.
ALL: Final = Ranked([((), 0)], 1, 0, 0)


class Group(NamedTuple):
    """The number of a step, 0 without steps, and the place of the values among those that have groups."""

    step: int
    place: int


class Part(NamedTuple):
    """What one log has: how many of its records are in each of its groups, and what was measured of these.

    steps:   of each group the number of its step of time; empty without steps
    places:  and the place of its values among those that have groups
    missing: how many of the `total` are in no group because they lack something
    """

    steps: list[int]
    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    measured: Any
    total: int
    missing: int


class Grouping:
    """Which group the records of a log are in, a part of the log at a time.

    steps, places: those of the groups seen so far: all, where there are no steps of time (Part)
    """

    def __init__(self, view: View, by: Sequence[Path], settled: Settled, zone: tzinfo | None) -> None:
        self._step, self._zone, self._many = settled.step, zone, settled.many
        self._places = view.placing(by, settled.values)
        self.steps: list[int] = []
        self._seen: list[int] = []  # places, where there are steps
        self._numbers: dict[Group, int] = {}
        self._ends: list[int] = []  # the first and the last step

    def __len__(self) -> int:
        return self._many if self._step is None else len(self.steps)

    @property
    def places(self) -> NDArray[np.int64]:
        import numpy as np

        return np.arange(self._many) if self._step is None else np.array(self._seen, np.int64)

    def of(self, part: View) -> NDArray[np.int64]:
        """The number of each record's group; OTHERS where its values have none, or LACKING."""
        places = self._places(part)
        if self._step is None:
            return places
        import numpy as np

        from jitdb.operators.summaries.arithmetic.bins import by_step_and_place, step_of_each

        steps = [step_of_each(times, self._step, self._zone) for times in part.numbers(DECLARED_TIME)]
        numbers, *found = by_step_and_place(np.concatenate([places[:0], *steps]), places, self._many)
        groups = list(map(Group, *found))
        fresh = [group for group in groups if group not in self._numbers]
        self._numbers |= zip(fresh, range(len(self), len(self) + len(fresh)), strict=True)
        self.steps += [group.step for group in fresh]
        self._seen += [group.place for group in fresh]
        ends = [*self._ends, *(group.step for group in fresh)]
        self._ends = [min(ends), max(ends)] if ends else []
        check(*self._ends or (0, 0))
        return np.array([*(self._numbers[group] for group in groups), LACKING, OTHERS], np.int64)[numbers]


class GroupsAsked(Grouped[S]):
    """What is asked of a field, of each group by itself.

    order: what of a group decides where it stands, the greatest first; the least, where it ends with ` asc`
    """

    __slots__ = ()

    path: Path
    order: str

    @property
    def most(self) -> int | None:
        return self.limit if self.order == RECORDS else None

    @property
    def weighed_by(self) -> str:
        return without_direction(self.order)

    @property
    def is_ascending(self) -> bool:
        return self.order.endswith(_ASCENDING)

    def count(self, view: View, settled: Settled) -> Part:
        zone = None if self.tz is None else zone_called(self.tz)
        return self.part(view, Grouping(view, self.by, settled, zone))

    def part(self, view: View, grouping: Grouping) -> Part:
        """What one log has."""
        raise NotImplementedError

    def summed(self, parts: Sequence[Part], to: Sequence[NDArray[np.int64]], groups: int) -> Sequence[Any]:
        """What so many groups have; `to`: for each group of each part its number among them."""
        raise NotImplementedError

    def weights(self, found: Any) -> Sequence[Any] | NDArray[np.float64]:
        """What decides where the groups stand that were summed; None, or NaN, stands last."""
        raise NotImplementedError

    def rows_of(self, parts: Sequence[Part], settled: Settled) -> Sequence[tuple[Any, Any, datetime | None]]:
        """For each row the value of its group, what that has, and where its step begins."""
        places: Sequence[int] = range(settled.many)
        of_values: Sequence[Any] = ()  # what the values have, at all times
        if settled.step is None or (self.by and self.order != RECORDS):
            of_values = self.summed(parts, [part.places for part in parts], settled.many)
        if self.by and self.order != RECORDS:
            places = ranked(self.weights(of_values), self.limit, ascending=self.is_ascending)

        def value(place: int) -> Any:
            return settled.value(place) if self.by else None

        if settled.step is None:
            return Lazy(len(places), lambda row: (value(places[row]), of_values[places[row]], None))
        start, ranks = self.start_of(settled.step), {place: rank for rank, place in enumerate(places)}
        values = {place: value(place) for place in places}
        return [(values[place], found, start(number)) for (number, place), found in self._timed(parts, ranks, settled)]

    def _timed(self, parts: Sequence[Part], ranks: dict[int, int], settled: Settled) -> Iterator[tuple[Group, Any]]:
        """Each group of a place that has a rank, in order, and what it has; by time alone empty steps, too."""
        import numpy as np

        held = [list(map(Group, part.steps, part.places.tolist())) for part in parts]
        groups = sorted({group for own in held for group in own})
        if not self.by:
            groups = [Group(step, 0) for step in settled.steps([group.step for group in groups])]
        number = {group: at for at, group in enumerate(groups)}
        to = [np.array([number[group] for group in own], np.int64) for own in held]
        found = self.summed(parts, to, len(groups))
        shown = sorted((step, ranks[place], place, at) for at, (step, place) in enumerate(groups) if place in ranks)
        return ((Group(step, place), found[at]) for step, _, place, at in shown)

    def about(self, parts: Sequence[Part], settled: Settled) -> tuple[Any, ...]:
        """What a result says beside its rows."""
        total, missing = sum(part.total for part in parts), sum(part.missing for part in parts)
        every = "" if settled.step is None else settled.step.text
        return total, missing, self.path, self.by, settled.values.distinct, every


def ranked(
    weights: Sequence[Any] | NDArray[np.float64], limit: int | None = None, *, ascending: bool = False
) -> list[int]:  # fmt: skip
    """The places of these, the greatest first, or the least; of equal ones the first. With a limit only so many."""
    if isinstance(weights, Sequence):
        sign = 1 if ascending else -1
        return sorted(range(len(weights)), key=lambda place: _weighed(weights[place], sign))[:limit]
    import numpy as np

    places, least = np.arange(len(weights)), weights if ascending else -weights  # NaN stays the last
    if limit is not None and 4 * limit < len(weights):
        last = np.partition(least, limit)[limit]
        places = places if np.isnan(last) else np.flatnonzero(least <= last)
    found: list[int] = places[least[places].argsort(kind="stable")][:limit].tolist()
    return found


def _weighed(weight: Any, sign: int) -> tuple[bool, Any]:
    is_last = weight is None or weight != weight
    return is_last, 0 if is_last else sign * weight


class GroupRows(Rows[R]):
    """Rows for groups: in the order that was asked for; by time, the oldest first.

    missing:  records that lack one of the fields, or a time
    path:     the field that it is about, () where it is about none; `by` those that records are grouped by, `every` the
              step, as it is written
    distinct: how many values, or groups of values, `by` has, those without a row too
    """

    __slots__ = __match_args__ = ("rows", "total", "missing", "path", "by", "distinct", "every")

    path: Path
    by: tuple[Path, ...]
    distinct: int
    every: str

    @property
    def starts(self) -> list[datetime]:
        """Where the step of each row begins; nothing without steps."""
        rows: Sequence[Any] = self.rows
        return [row.start for row in rows] if self.every else []

    def grouped(self, names: Sequence[str], cells: Sequence[Sequence[Any]], bars: int | None = None) -> Sheet:
        """A sheet: the groups, and what each row has beside; `bars`: which of that."""
        texts, fields = start_texts(self.starts), list(map(format_path, self.by))
        heads = ["time"] if self.every else []
        rows: list[list[Any]] = []
        for at, held in enumerate(cells):
            value: Any = getattr(self.rows[at], "value", None)
            values = value if len(fields) > 1 else [value] * len(fields)
            rows.append([*texts[at : at + 1], *values, *held])
        own = [f"`{name}`" if name in (*heads, *names) else name for name in fields]  # those that are called as ours
        about: dict[str, Any] = {"field": format_path(self.path)} if self.path else {}
        about |= {"by": names_of(self.by)} if fields else {}
        about |= {"every": self.every} if self.every else {}
        about |= {"total": self.total, "missing": self.missing}
        return Sheet(
            [*heads, *own, *names], rows, None if bars is None else len(heads) + len(own) + bars, about, self._said()
        )

    def _said(self) -> str:
        notes = [counted(self.total, "record", "records")]
        if self.every:
            notes.append(f"{counted(len(set(self.starts)), 'step', 'steps')} of {self.every}")
        if self.by:
            what = ("group of values", "groups of values") if len(self.by) > 1 else ("value", "values")
            notes.append(counted(self.distinct, *what))
        if self.others:
            notes.append(f"{self.others:,} with other values")
        if self.missing:
            lacking = [f"`{format_path(path)}`" for path in self._needed()]
            notes.append(f"{self.missing:,} without {' or '.join([*lacking, *(['a time'] if self.every else [])])}")
        return "; ".join(notes)

    def _needed(self) -> tuple[Path, ...]:
        """The fields that a record of a row has."""
        return self.by

    def _columns(self) -> tuple[list[str], list[Sequence[Any]]]:
        names, columns = super()._columns()
        return names, [self.starts, *columns[1:]] if self.every else columns
