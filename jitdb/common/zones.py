"""Zones of time, by their names: how far clocks are ahead of UTC, by what they show.

That is what times without a zone of their own are read by, where one says which clocks wrote them (`log_tz`). An hour
that clocks show twice is the first of the two; one that they pass over goes by the clock before it, as with `fold=0` of
Python.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

AHEAD: Final = r"([+-])([01]\d|2[0-3])(?::?([0-5]\d))?"
_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = timedelta(days=1)  # no zone changes twice in one, nor by a rule in a week
_WEEK: Final = timedelta(days=7)
_FIRST: Final = datetime(1800, 1, 1)  # no zone changed before
_RULED: Final = datetime(2100, 1, 1)  # from here on each goes by a rule, which comes again with the calendar
_END: Final = datetime(2500, 1, 1)
_SECOND: Final = timedelta(seconds=1)

#: Seconds since 1970, by the clock: from here on changes are those of CYCLE before.
LAST: Final = (_END - _EPOCH) // _SECOND
CYCLE: Final = (_END - _RULED) // _SECOND  # 400 years


class Changes(NamedTuple):
    """When clocks of a zone are set: from which of their seconds on, as if since 1970 in UTC, they are so many seconds
    ahead of UTC. Ascending; the first has been so for ever. Numbers of 64 bits; none where there is no zone.
    """

    begins: array[int]
    aheads: array[int]

    def ahead(self, second: int) -> int:
        """Seconds ahead of UTC when the clocks show this one, counted as if they were of UTC.

        >>> changes_of("+02:00").ahead(0), changes_of("Europe/Berlin").ahead(1_790_000_000)
        (7200, 7200)
        """
        if second >= LAST:
            second = LAST - CYCLE + (second - LAST) % CYCLE
        return self.aheads[max(0, bisect_right(self.begins, second) - 1)]


@lru_cache(maxsize=8)
def changes_of(zone: str) -> Changes:
    """The changes of a zone by its name (`zone_named` of calendar.py); empty: none. Takes a tenth of a second."""
    if not zone:
        return Changes(array("q"), array("q"))
    if found := re.fullmatch(AHEAD, zone, re.ASCII):
        ahead = 3600 * int(found[2]) + 60 * int(found[3])
        return Changes(array("q", [0]), array("q", [-ahead if found[1] == "-" else ahead]))
    from zoneinfo import ZoneInfo

    offset = ZoneInfo(zone).utcoffset
    days, weeks = (_RULED - _FIRST) // _DAY, (_END - _RULED) // _WEEK
    moments = chain((_FIRST + _DAY * day for day in range(days)), (_RULED + _WEEK * week for week in range(weeks + 1)))
    at = _FIRST
    ahead_then = offset(at)
    begins, aheads = array("q", [(at - _EPOCH) // _SECOND]), array("q", [_seconds(ahead_then)])
    for moment in moments:
        ahead_now = offset(moment)
        if ahead_now != ahead_then:
            begins.append(_change(offset, at, moment))
            aheads.append(_seconds(ahead_now))
            ahead_then = ahead_now
        at = moment
    return Changes(begins, aheads)


def _change(offset: Any, low: datetime, high: datetime) -> int:
    """The first second from which on clocks go as they do at `high`."""
    before = offset(low)
    while high - low > _SECOND:
        middle = low + (high - low) // 2 // _SECOND * _SECOND
        low, high = (middle, high) if offset(middle) == before else (low, middle)
    return (high - _EPOCH) // _SECOND


def _seconds(ahead: timedelta | None) -> int:
    return 0 if ahead is None else ahead // _SECOND
