"""Which fields say when a record was made, where nobody named them: the first records are looked at.

So all processes choose the same, as long as the log's beginning is what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path, parse_path
from jitdb.common.times import time_of
from jitdb.common.values import value_at
from jitdb.errors import LogError
from jitdb.log.reading.sampling import first

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

USUAL: Final[tuple[Path, ...]] = tuple(map(parse_path, TIMESTAMPS))
NAMES: Final = (
    "time", "ts", "@timestamp", "datetime", "date", "created_at", "createdAt", "event_time", "eventTime", "@t",
    "asctime", "updated_at", "start_time", "startTime", "published",
)  # fmt: skip
_LOOKED_AT: Final = 16  # records
_PLAUSIBLE: Final = 10**17  # nanoseconds: a number is a time from 1973 on, where only the field's name says so


class Times(NamedTuple):
    """The fields that say when a record was made, and the unit of those of their values that are numbers."""

    paths: tuple[Path, ...]
    unit: str


def found_time(log: LogSource) -> tuple[Path, ...] | None:
    """The fields; None where there is no record yet to look at.

    `timestamp` and `value.timestamp`, those that a record has a time in; else the first of NAMES that at least half of
    them have one in; else those two.
    """
    try:
        records = [record for record in first(log.beginning(), _LOOKED_AT) if isinstance(record, dict)]
    except LogError:  # whoever reads these records is told
        return USUAL
    if not records:
        return None
    usual = tuple(path for path in USUAL if any(time_of(value_at(record, path)) is not None for record in records))
    if usual:
        return usual
    for name in NAMES:
        if 2 * sum(_is_time(record.get(name)) for record in records) >= len(records):
            return ((name,),)
    return USUAL


def _is_time(value: Any) -> bool:
    time = time_of(value)
    return time is not None and (isinstance(value, str) or time >= _PLAUSIBLE)
