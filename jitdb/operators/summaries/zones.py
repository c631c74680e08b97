"""Zones of time: what the clocks of a place show beside UTC, and when that changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from jitdb.common.spelling import did_you_mean
from jitdb.common.words import shown
from jitdb.errors import QueryError

_SECOND: Final = 10**9  # nanoseconds
_DAY: Final = 86_400  # seconds: no zone changes twice in one
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800 + 2 * _DAY  # seconds from 1970, of which datetime knows the local time in all zones
_LAST: Final = 253_402_300_799 - 2 * _DAY


def zone_called(name: Any) -> tzinfo:
    """The zone of this name, such as Europe/Berlin. Raises QueryError.

    >>> str(zone_called("Europe/Berlin"))
    'Europe/Berlin'
    """
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name)
    except (KeyError, TypeError, ValueError, OSError):  # no such zone, and whatever else may stand for a name
        usual = "zones are called Europe/Berlin, America/New_York or UTC"
    hint = did_you_mean(str(name), available_timezones(), usual)
    raise QueryError(f"there is no zone of time called {shown(name)}", remedy=hint)


def spans(zone: tzinfo, first: float, last: float) -> Iterator[tuple[float, float, int]]:
    """From a time up to another one, and what clocks show beside UTC between them; all in nanoseconds.

    Together these are all times, and exact from `first` to `last`.

    >>> [(begin, offset) for begin, _, offset in spans(zone_called("Europe/Berlin"), 1.6e18, 1.62e18)]
    [(-inf, 7200000000000), (1603587600000000000, 3600000000000), (1616893200000000000, 7200000000000)]
    """
    at, end = (int(min(max(time // _SECOND, _FIRST), _LAST)) for time in (first, last))
    begin, offset = float("-inf"), _offset(zone, at)
    while at < end:
        following = min(at + _DAY, end)
        other = _offset(zone, following)
        if other != offset:
            low = at
            while following - low > 1:
                middle = (low + following) // 2
                low, following = (middle, following) if _offset(zone, middle) == offset else (low, middle)
            yield begin, following * _SECOND, offset * _SECOND
            begin, offset = following * _SECOND, other
            following = min(at + _DAY, end)
        at = following
    yield begin, float("inf"), offset * _SECOND


def _offset(zone: tzinfo, second: int) -> int:
    """Seconds, of which there may be some in far years."""
    found = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return 0 if found is None else round(found.total_seconds())
