"""Steps of time, such as an hour or a month: how one is written, and where each begins. Zones: what the clocks of a
place show beside UTC, and when that changes.

Steps are counted from 1970 in UTC, so the same time is always in the same step. Weeks begin with Monday, months
and years with their first day; of two or more of a unit, so many of them are one step (`6h` begins at 0, 6, 12 and 18).
By the clocks of a place, steps of more than an hour are counted by what the clocks show. Shorter ones are counted in
UTC, moved by what the clocks differ from it within a step: so an hour that clocks show twice is two steps.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from jitdb.common.immutable import Immutable
from jitdb.common.spelling import did_you_mean
from jitdb.common.times import Nanoseconds, days_before
from jitdb.common.words import shown
from jitdb.common.zones import AHEAD
from jitdb.errors import QueryError

_DAY: Final = 86_400 * 10**9
_WEEK: Final = 7 * _DAY
_NANOSECONDS: Final = {
    "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": _DAY, "w": _WEEK,
}  # fmt: skip
_MONTHS: Final = {"mo": 1, "q": 3, "y": 12}
_HOUR: Final = 3600 * 10**9
_MONDAY: Final = 3 * _DAY  # from one to 1970, which began with a Thursday
_SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_DAY_SECONDS: Final = 86_400  # no zone changes twice in one
# Seconds from 1970, between which datetime knows the local time in all zones.
_FIRST_SECOND: Final = -62_135_596_800 + 2 * _DAY_SECONDS
_LAST_SECOND: Final = 253_402_300_799 - 2 * _DAY_SECONDS

LOCAL: Final = "local"  # the zone of this machine

#: Those that `auto` chooses from.
USUAL: Final = (
    "1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "5s", "15s", "1m", "5m", "15m", "1h", "3h", "6h", "1d", "1w",
    "1mo", "1q", "1y", "5y", "10y", "50y", "100y", "500y",
)  # fmt: skip


MOST: Final = 100_000  # bins, or steps, of an answer
BEGIN: Final = -62_135_596_800 * 10**9  # nanoseconds: the years 1 to 9999
END: Final = 253_402_300_800 * 10**9


def check(first: int, last: int) -> None:
    """Raise QueryError for too many bins to look at."""
    if last - first >= MOST:
        raise QueryError(
            f"that would be {last - first + 1:,} bins, and there may be {MOST:,}",
            remedy="ask for longer steps, or for a part: since(), until(), a condition",
        )


class Extent(NamedTuple):
    """The least and the largest of finite numbers, or times, and whether all are whole."""

    low: float = math.inf
    high: float = -math.inf
    whole: bool = True

    def with_(self, other: Extent) -> Extent:
        return Extent(min(self.low, other.low), max(self.high, other.high), self.whole and other.whole)


class Window(NamedTuple):
    """The first and the last nanosecond that are asked about; None: no end was said."""

    first: Nanoseconds | None = None
    last: Nanoseconds | None = None


class Step(Immutable):
    """So many months, or else nanoseconds, at a time.

    >>> parse_step("1d").start(19_000)
    datetime.datetime(2022, 1, 8, 0, 0, tzinfo=datetime.timezone.utc)
    >>> parse_step("1mo").start(-1)
    datetime.datetime(1969, 12, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """

    __slots__ = __match_args__ = ("text", "months", "nanoseconds", "shift")

    text: str
    months: int
    nanoseconds: int
    shift: int  # nanoseconds from a time to where it is counted from

    def start(self, number: int) -> datetime:
        """Where the step with this number begins: at the earliest with the year 1, before which Python has no date."""
        if self.months:
            year, month = divmod(1970 * 12 + number * self.months, 12)
            return _FIRST if year < 1 else datetime(year, month + 1, 1, tzinfo=UTC)
        since = timedelta(microseconds=(number * self.nanoseconds - self.shift) // 1000)
        return _EPOCH + max(since, _FIRST - _EPOCH)

    def start_in(self, number: int, zone: tzinfo) -> datetime:
        """The same by the clocks of a zone."""
        start = self.start(number)
        if not self._divides_hours:
            return start.replace(tzinfo=zone)
        ahead = ahead_of_utc(self.begin(number), zone)
        begin = start - timedelta(microseconds=self.by_clock(ahead).shift / 1000)
        try:
            return begin.astimezone(zone)
        except OverflowError:  # in the first year, and the last
            return begin.replace(tzinfo=zone)

    def by_clock(self, ahead: Nanoseconds) -> Step:
        """The same step where clocks are so far ahead of UTC."""
        return self.changed(shift=self.shift + (ahead % self.nanoseconds if self._divides_hours else ahead))

    @property
    def _divides_hours(self) -> bool:
        return not self.months and _HOUR % self.nanoseconds == 0

    def begin(self, number: int) -> Nanoseconds:
        """Its first nanosecond since 1970.

        >>> parse_step("1mo").begin(1), parse_step("1w").begin(0)
        (2678400000000000, -259200000000000)
        """
        if self.months:
            year, month = divmod(1970 * 12 + number * self.months, 12)
            return days_before(year, month + 1, 1) * _DAY
        return number * self.nanoseconds - self.shift

    def number(self, time: float) -> int:
        """In which step a time (nanoseconds since 1970) is.

        >>> parse_step("1y").number(0), parse_step("1h").number(-1)
        (0, -1)
        """
        whole = int(time // 1)
        if not self.months:
            return (whole + self.shift) // self.nanoseconds
        day = whole // _DAY
        year = 1970 + day * 400 // 146_097 + 2
        while days_before(year, 1, 1) > day:
            year -= 1
        month = next(month for month in range(12, 0, -1) if days_before(year, month, 1) <= day)
        return ((year - 1970) * 12 + month - 1) // self.months

    def __repr__(self) -> str:
        return repr(self.text)


def parse_step(text: Any) -> Step:
    """The step that a text, or a timedelta, says; a step itself. Raises QueryError.

    >>> parse_step("15m").nanoseconds, parse_step("1q").months
    (900000000000, 3)
    """
    if isinstance(text, Step):
        return text
    if isinstance(text, timedelta):
        size = (text.days * 86_400 + text.seconds) * 10**9 + text.microseconds * 1000
        if size > 0:
            return Step(str(text), 0, size, 0)
    found = re.fullmatch(r"(\d{1,9})? ?(us|ms|s|min|m|h|d|w|mo|q|y)", text) if isinstance(text, str) else None
    count = int(found[1] or 1) if found else 0
    if found is None or not count:
        raise QueryError(
            f"{shown(text)} is no step of time",
            remedy="write a number and a unit: 10s, 15m, 1h, 1d, 1w, 1mo, 1q or 1y; auto chooses one",
        )
    unit = found[2]
    if unit in _MONTHS:
        return Step(text, count * _MONTHS[unit], 0, 0)
    size = count * _NANOSECONDS[unit]
    return Step(text, 0, size, _MONDAY if unit == "w" else 0)


def usual_step(first: float, last: float, most: int) -> Step:
    """The shortest usual step of which at most `most` reach from one time to the other."""
    steps = map(parse_step, USUAL)
    return next((step for step in steps if step.number(last) - step.number(first) < most), parse_step(USUAL[-1]))


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


def zone_named(zone: Any) -> str:
    """The name that a zone has on any machine: of its own, of `local`, or of an offset. Raises QueryError.

    >>> zone_named("Europe/Berlin"), zone_named("+0200"), zone_named("-03")
    ('Europe/Berlin', '+02:00', '-03:00')
    """
    if zone == LOCAL:
        return _local()
    if isinstance(zone, str) and (found := re.fullmatch(AHEAD, zone, re.ASCII)):
        return f"{found[1]}{found[2]}:{found[3] or '00'}"
    zone_called(zone)
    return str(zone)


def _local() -> str:
    """The name of the zone of this machine. Raises QueryError where it has none."""
    given = os.environ.get("TZ")
    if given is None:
        given = os.path.realpath("/etc/localtime") if os.path.exists("/etc/localtime") else ""
        if given and "zoneinfo" not in given and os.path.exists("/etc/timezone"):
            with open("/etc/timezone", encoding="utf-8", errors="replace") as file:
                given = file.read().strip()
    name = given.removeprefix(":").rpartition("zoneinfo/")[2] or "UTC"
    try:
        zone_called(name)
    except QueryError:
        raise QueryError(
            f"the zone of this machine has no name, but is set as {shown(given)}",
            remedy="name it: Europe/Berlin, or how far it is ahead of UTC: +01:00",
        ) from None
    return name


def ahead_of_utc(time: Nanoseconds, zone: tzinfo) -> Nanoseconds:
    """How far the clocks of a zone are ahead of UTC at a time."""
    return _offset(zone, min(max(int(time // _SECOND), _FIRST_SECOND), _LAST_SECOND)) * _SECOND


def spans(zone: tzinfo, days: Iterable[int]) -> Iterator[tuple[float, float, int]]:
    """Spans of time with one offset from UTC: begin, end, offset, in nanoseconds.

    days: those that hold times, counted from 1970, ascending. Spans cover all times, and are exact on these days.

    >>> [(begin, offset) for begin, _, offset in spans(zone_called("Europe/Berlin"), range(18_518, 18_750))]
    [(-inf, 7200000000000), (1603587600000000000, 3600000000000), (1616893200000000000, 7200000000000)]
    """
    begin, at, offset = float("-inf"), None, 0
    for day in days:
        for second in (day * _DAY_SECONDS - 1, (day + 1) * _DAY_SECONDS):
            following = min(max(second, _FIRST_SECOND), _LAST_SECOND)
            if at is None:
                at, offset = following, _offset(zone, following)
            other = offset if following <= at else _offset(zone, following)
            if other != offset:
                change = _change(zone, at, following, offset)
                yield begin, change * _SECOND, offset * _SECOND
                begin, offset = change * _SECOND, other
            at = max(at, following)
    yield begin, float("inf"), offset * _SECOND


def _change(zone: tzinfo, low: int, high: int, offset: int) -> int:
    """A second from which on the zone has another offset than at `low`, as it has at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high


def _offset(zone: tzinfo, second: int) -> int:
    return _ahead((_EPOCH + timedelta(seconds=second)).astimezone(zone))


def _ahead(time: datetime) -> int:
    """Of UTC, in seconds: in far years they are no whole minutes."""
    found = time.utcoffset()
    return 0 if found is None else round(found.total_seconds())
