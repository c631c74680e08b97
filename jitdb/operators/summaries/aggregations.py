"""What is asked of the records of an answer as a whole, beside how many they are: each as one value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from jitdb.common.arguments import is_list, whole_number
from jitdb.common.immutable import Immutable
from jitdb.common.paths import Path
from jitdb.common.words import shown
from jitdb.errors import QueryError
from jitdb.operators.nodes.describe import describe_path, describe_value
from jitdb.operators.nodes.field_ref import PathLike, as_path, as_single_path
from jitdb.operators.summaries.calendar import Step, parse_step
from jitdb.operators.summaries.zones import zone_called

AUTO: Final = "auto"
BINS: Final = 20  # of a histogram, at most
SERIES: Final = 10  # of a timeline by a field, at most
QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class Summary(Immutable):
    """What is asked. Its parts are as in the method of this name (asking.py)."""

    __slots__ = ()
    name = ""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The fields that it is about, but for the declared time."""
        return tuple(path for path in (getattr(self, "path", None), getattr(self, "by", None)) if path is not None)

    def __repr__(self) -> str:
        said: Iterator[tuple[str, Any]] = zip(self.__match_args__, self._parts(), strict=True)
        return f"{self.name}({', '.join(f'{name}={_written(part)}' for name, part in said if part is not None)})"


class ValuesAsked(Summary):
    """How many records have which value of a field."""

    __slots__ = __match_args__ = ("path", "limit")
    name = "value_counts"

    path: Path
    limit: int | None


class GroupsAsked(Summary):
    """How many records have which values of several fields together."""

    __slots__ = __match_args__ = ("paths", "limit")
    name = "group_count"

    paths: tuple[Path, ...]
    limit: int | None


class HistogramAsked(Summary):
    """How many records have numbers of which size. `bins`: how many at most, or where they begin and the last ends."""

    __slots__ = __match_args__ = ("path", "bins")
    name = "histogram"

    path: Path
    bins: int | tuple[float, ...]


class TimelineAsked(Summary):
    """How many records are of which time. `every`: None is chosen by how much time they span. `tz`: None is UTC."""

    __slots__ = __match_args__ = ("every", "by", "limit", "tz")
    name = "timeline"

    every: Step | None
    by: Path | None
    limit: int
    tz: str | None


class StatsAsked(Summary):
    """What the numbers of a field are like; `by`: for each value of another one."""

    __slots__ = __match_args__ = ("path", "by", "limit", "quantiles")
    name = "stats"

    path: Path
    by: Path | None
    limit: int | None
    quantiles: tuple[float, ...]


def values_asked(path: PathLike, limit: int | None) -> ValuesAsked:
    return ValuesAsked(as_path("value_counts", path), _limit(limit))


def groups_asked(paths: Sequence[PathLike], limit: int | None) -> GroupsAsked:
    if not paths:
        raise QueryError("group_count() takes the paths of fields, such as group_count('carrier', 'origin')")
    return GroupsAsked(tuple(as_single_path("group_count", path) for path in paths), _limit(limit))


def histogram_asked(path: PathLike, bins: int | Sequence[float]) -> HistogramAsked:
    found = as_single_path("histogram", path)
    if not is_list(bins):
        return HistogramAsked(found, whole_number("bins are a number of them, or where they begin", bins, 1))
    edges = tuple(map(_edge, bins))  # type: ignore[arg-type]  # it is a list
    if len(edges) < 2 or any(not low < high for low, high in pairwise(edges)):
        raise QueryError(f"bins are two or more numbers that ascend, not {shown(bins)}")
    return HistogramAsked(found, edges)


def _edge(number: Any) -> float:
    try:
        found = math.nan if isinstance(number, (bool, str)) else float(number)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or found != number:
        raise QueryError(f"a bin begins at a number that a double can hold, not {shown(number)}")
    return found


def timeline_asked(every: Any, by: PathLike | None, limit: int, tz: str | None) -> TimelineAsked:
    step = None if isinstance(every, str) and every == AUTO else parse_step(every)
    if tz is not None:
        zone_called(tz)
    return TimelineAsked(step, None if by is None else as_single_path("timeline", by), _limit(limit) or SERIES, tz)


def stats_asked(path: PathLike, by: PathLike | None, limit: int | None, quantiles: Sequence[float]) -> StatsAsked:
    if not is_list(quantiles) or not all(_is_share(share) for share in quantiles):
        raise QueryError(f"quantiles are shares from 0 to 1, such as [0.5, 0.99], not {shown(quantiles)}")
    group = None if by is None else as_single_path("stats", by)
    return StatsAsked(as_single_path("stats", path), group, _limit(limit), tuple(float(share) for share in quantiles))


def _is_share(share: Any) -> bool:
    try:
        return not isinstance(share, (bool, str)) and 0 <= share <= 1
    except TypeError:
        return False


def _limit(limit: int | None) -> int | None:
    return None if limit is None else whole_number("limit is a number of values", limit, 1)


def _written(part: Any) -> str:
    if not isinstance(part, tuple) or not part or isinstance(part[0], float):
        return describe_value(part)
    if isinstance(part[0], tuple):
        return f"[{', '.join(map(describe_path, part))}]"
    return describe_path(part)
