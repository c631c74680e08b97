"""The time that a page shows: from when to when, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import QueryError
from jitdb.operators.nodes.instants import instant_at
from jitdb.operators.summaries.arithmetic.calendar import Step, parse_step

if TYPE_CHECKING:
    from jitdb.operators.queries import Query
    from jitdb.operators.summaries.timelines import Timeline

#: Steps that people read, the smallest first.
STEPS: Final = tuple(map(parse_step, (
    "1us", "2us", "5us", "10us", "20us", "50us", "100us", "200us", "500us",
    "1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms",
    "1s", "2s", "5s", "10s", "15s", "30s", "1m", "2m", "5m", "10m", "15m", "30m",
    "1h", "2h", "3h", "6h", "12h", "1d", "2d", "1w", "1mo", "1q", "1y", "2y", "5y", "10y", "50y", "100y",
)))  # fmt: skip
_MONTH: Final = 30.4 * 86_400 * 10**9
MOST_STEPS: Final = 400


class Extent(NamedTuple):
    """Some time, in nanoseconds since 1970; up to `high`, which is not in it."""

    low: int
    high: int

    def step(self, bars: int) -> Step:
        """The smallest step of which this takes at most so many."""
        return next((step for step in STEPS if (self.high - self.low) / _length(step) <= bars), STEPS[-1])


def extent_of(whole: Timeline) -> Extent | None:
    """From the first step of a timeline to the end of its last one; None where it has none."""
    if not whole.rows:
        return None
    step = parse_step(whole.every)
    last = nanoseconds(whole.rows[-1].start)
    return Extent(nanoseconds(whole.rows[0].start), step_end(step, last))


def extent_of_records(query: Query, rough: Extent) -> Extent:
    """The same, to the step of which it has some hundreds."""
    fine = query.timeline(every=rough.step(MOST_STEPS).text)
    return extent_of(fine) or rough


def asked_extent(since: str | None, until: str | None, log: Extent) -> Extent:
    """The time that a question asks for, of what there is. Raises QueryError."""
    low = log.low if since is None else max(instant_at(since).time, -(1 << 62))
    high = log.high if until is None else min(instant_at(until).time, 1 << 62)
    if low >= high and since is not None and until is not None:
        raise QueryError("nothing is from this time to that one: the first is not before the second")
    return Extent(int(low), max(int(high), int(low) + 1))


def step_end(step: Step, start: int) -> int:
    """Where the step that begins there ends."""
    return nanoseconds(step.start(step.number(start) + 1)) if step.months else start + step.nanoseconds


def nanoseconds(time: datetime) -> int:
    """Since 1970."""
    whole = time.replace(tzinfo=None) - (time.utcoffset() or timedelta()) - datetime(1970, 1, 1)
    return (whole.days * 86_400 + whole.seconds) * 10**9 + whole.microseconds * 1000


def drawn(line: Timeline, extent: Extent, names: Sequence[Any]) -> dict[str, Any]:
    """A timeline as the page draws it: times in milliseconds."""
    step = parse_step(line.every)
    starts = [nanoseconds(row.start) for row in line]
    others = [row.count - sum(row.counts) for row in line]
    return {
        "every": line.every, "length": 0 if step.months else step.nanoseconds / 1e6, "low": extent.low / 1e6,
        "high": extent.high / 1e6, "starts": [start / 1e6 for start in starts],
        "end": step_end(step, starts[-1]) / 1e6 if starts else 0, "names": list(names),
        "counts": [[row.counts[at] for row in line] for at in range(len(names))], "others": others,
        "untimed": line.missing,
    }  # fmt: skip


def _length(step: Step) -> float:
    return step.months * _MONTH if step.months else step.nanoseconds
