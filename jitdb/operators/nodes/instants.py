"""Instants: what times are compared with, of whatever a user has at hand."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from jitdb.common.immutable import Immutable
from jitdb.common.times import (
    AUTO,
    ZONES,
    Nanoseconds,
    as_text,
    is_zoneless,
    length_of_units,
    time_of_number,
    time_of_text,
    with_zone,
    zone_behind,
)
from jitdb.common.words import shown
from jitdb.errors import QueryError

_DAYS: Final = {"": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
_OF_DAY: Final = r"(today|yesterday|tomorrow|) ?(?:(\d\d?):(\d\d)(?::(\d\d))?)?"
_DIGITS_OF_DAY: Final = r"(?:19[789]|20\d)\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_OF_SYSLOG: Final = r"(?P<month>[A-Za-z]{3}) {1,2}(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d(?::\d\d(?:\.\d+)?)?)"
_CLOCK: Final = r"\d\d?:\d\d(?::\d\d)?"
_DATE: Final = r"\d{4}([-/])\d\d\1\d\d|\d\d\.\d\d\.\d{4}"
_DAY: Final = 86_400 * 10**9
_PART: Final = (
    r"(?P<year>\d{4})[-/](?P<month>\d\d)(?:[-/]\d\d[T ](?P<clock>\d\d(?::\d\d(?::\d\d)?)?)(?P<zone>Z|[+-]\d\d:?\d\d)?)?"
)
_LENGTHS: Final = (3600 * 10**9, 60 * 10**9, 10**9)  # of an hour, a minute, a second


class Instant(Immutable):
    """A point in time, in nanoseconds since 1970 (jitdb.common.times).

    >>> Instant(1_500_000_000)
    '1970-01-01T00:00:01.5Z'
    """

    __slots__ = __match_args__ = ("time",)

    time: Nanoseconds

    def __repr__(self) -> str:
        return repr(as_text(self.time))


def instant_of(value: Any) -> Instant | None:
    """The instant that a text, a datetime or a date (of Python, NumPy or pandas) says; None for what is none of these.

    What names no zone is UTC. Raises QueryError for text that is no time.

    >>> instant_of("2015-12-01"), instant_of(5)
    ('2015-12-01T00:00:00Z', None)
    """
    if isinstance(value, str):
        _check_zone(value)
        found = time_of_text(value)
        if found is None and re.fullmatch(_CLOCK, value.strip()):
            clock = value.strip()
            raise QueryError(
                f"{shown(value)} is a time of day, and no day is said",
                remedy=f"a time of today is asked by --since {clock}, in Python by .since({clock!r})",
            )
        if found is None:
            raise QueryError(
                f"text is above or below as a time or a level only, and {shown(value)} is neither",
                remedy="a time is written 2015-12-01 or 2015-12-01T10:30:00Z, a level warn; numbers and lengths of "
                "time stand without quotes: > 5, > 5ms",
            )
        return Instant(found)
    kind = type(value).__name__
    if kind == "datetime64":
        return None if str(value) == "NaT" else _of_numpy(value)
    if not hasattr(value, "isoformat") or not hasattr(value, "year"):
        return None
    from datetime import datetime

    if not isinstance(value, datetime):
        return _of_parts(value.isoformat(), 0, value)
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    offset = value.utcoffset()  # which may have seconds, that no text has
    try:
        utc = plain if offset is None else plain - offset
    except OverflowError:
        raise _out_of_range(value) from None
    return _of_parts(utc.isoformat(), getattr(value, "nanosecond", 0), value)  # which pandas has


def day_of(value: Any) -> tuple[Instant, Instant] | None:
    """The first and the last nanosecond of the day in UTC that a date alone says; None for all else.

    >>> day_of("2015-12-01") == day_of("01.12.2015")
    True
    >>> day_of("2015-12-01"), day_of("2015-12-01T00:00:00Z")
    (('2015-12-01T00:00:00Z', '2015-12-01T23:59:59.999999999Z'), None)
    """
    kind = type(value).__name__
    if kind == "datetime64":
        is_date = re.fullmatch(_DATE, str(value)) is not None
    elif isinstance(value, str):
        is_date = re.fullmatch(_DATE, value, re.ASCII) is not None and time_of_text(value) is not None
    else:
        is_date = hasattr(value, "isoformat") and hasattr(value, "year") and not hasattr(value, "hour")
    first = instant_of(value) if is_date else None
    return None if first is None else (first, Instant(first.time + _DAY - 1))


def span_of(text: str) -> tuple[Instant, Instant] | None:
    """The beginning of the month, hour, minute or second that a text says, and of the next one; None for all else.

    >>> span_of("2015-12"), span_of("2015-12-01T10:30Z")
    (('2015-12-01T00:00:00Z', '2016-01-01T00:00:00Z'), ('2015-12-01T10:30:00Z', '2015-12-01T10:31:00Z'))
    >>> span_of("2015-12-01T23 "), span_of("2015-12-01"), span_of("2015-12-01T10:30:00.5")
    (None, None, None)
    """
    found = re.fullmatch(_PART, text, re.ASCII)
    if found is None:
        return None
    year, month, clock, zone = found["year"], found["month"], found["clock"], found["zone"] or ""
    if clock is None:
        after = f"{int(year) + int(month) // 12:04}-{int(month) % 12 + 1:02}"
        first, last = time_of_text(f"{year}-{month}-01"), time_of_text(f"{after}-01")
    else:
        first = time_of_text(text if ":" in clock else f"{text.removesuffix(zone)}:00{zone}")
        last = None if first is None else first + _LENGTHS[clock.count(":")]
    return None if first is None or last is None else (Instant(first), Instant(last))


def _check_zone(text: str) -> None:
    """Raise QueryError for a time with the name of a zone that is not known: who asks means one of its meanings."""
    if (zone := zone_behind(text)) and zone not in ZONES:
        raise QueryError(
            f"{zone} is a zone that means other things in other places",
            remedy="write how far it is ahead of UTC, as in 2015-12-01T10:30:00+01:00",
        )


def _of_numpy(value: Any) -> Instant:
    seconds = value.astype("datetime64[s]")  # nanoseconds of far years would not fit
    return _of_parts(str(seconds), int((value - seconds).astype("timedelta64[ns]").astype("int64")), value)


def _of_parts(text: str, nanoseconds: int, value: Any) -> Instant:
    """The text's time, and so much later. Raises QueryError."""
    found = time_of_text(text)
    if found is None:
        raise _out_of_range(value)
    return Instant(found + nanoseconds if isinstance(found, int) else found)


def _out_of_range(value: Any) -> QueryError:
    return QueryError(f"times are of the years 0 to 9999, and {shown(value)} is none of these")


def instant_at(text: str, now: int | None = None, zone: str = "") -> Instant:
    """The instant that a person types: a time, also of syslog (Nov 20 14:00, of its last year), or a day as 20261120;
    how long ago (2h, -2h, 1h30m, 7d); now; a time of today (14:00), today, yesterday, yesterday 14:00 by the clock of
    this place (TZ); seconds since 1970.

    `now`: nanoseconds since 1970, by default those of the clock. `zone`: of times that say none, and of today, in place
    of UTC and TZ. Raises QueryError.

    >>> instant_at("Nov 20 14:00", now=1_700_000_000_000_000_000)
    '2022-11-20T14:00:00Z'
    >>> instant_at("20261120")
    '2026-11-20T00:00:00Z'
    >>> instant_at("2h", now=7_200_000_000_000), instant_at("1700000000")
    ('1970-01-01T00:00:00Z', '2023-11-14T22:13:20Z')
    >>> instant_at("2026-07-01 14:00", zone="Europe/Berlin"), instant_at("2026-07-01T14:00Z", zone="Europe/Berlin")
    ('2026-07-01T12:00:00Z', '2026-07-01T14:00:00Z')
    """
    typed = text.strip()
    now = time.time_ns() if now is None else now
    if typed == "now":
        return Instant(now)
    ago = typed.removeprefix("-").removesuffix("ago").rstrip()
    if not ago.startswith("-") and (length := length_of_units(ago)) is not None:
        return Instant(now - length)
    if typed and (found_day := re.fullmatch(_OF_DAY, typed, re.ASCII)) is not None:
        local = _local(now, zone, *found_day.groups())
        if local is not None:
            return local
    if re.fullmatch(_DIGITS_OF_DAY, typed, re.ASCII):
        typed = f"{typed[:4]}-{typed[4:6]}-{typed[6:]}"
    if re.fullmatch(r"\d{5,}(\.\d+)?", typed):
        found = time_of_number(float(typed) if "." in typed else int(typed), with_zone(AUTO, zone))
        assert found is not None  # it is no NaN
        return Instant(found)
    _check_zone(typed)
    found = time_of_text(typed)
    says_none = found is None or is_zoneless(typed)
    if found is None and (dated := re.fullmatch(_OF_SYSLOG, typed, re.ASCII)) is not None:
        found = _of_last_year(dated["day"], dated["month"], dated["clock"], now)
    if found is None:
        raise QueryError(
            f"{shown(text)} is no time",
            remedy="write 2026-11-01, 2026-11-01T12:00, 14:00, how long ago (2h, 30m, 7d), or now, today, yesterday",
        )
    return Instant(_of_clock(found, zone) if says_none else found)


def _of_clock(shown_there: Nanoseconds, zone: str) -> Nanoseconds:
    """When clocks of a zone show this, which is as if it were of UTC; empty: those of UTC."""
    if not zone:
        return shown_there
    from jitdb.common.zones import changes_of

    return shown_there - changes_of(zone).ahead(int(shown_there // 10**9)) * 10**9


def is_by_clock(text: str) -> bool:
    """Whether what a person types goes by the clock of this place, and names no time by itself.

    >>> is_by_clock("2h"), is_by_clock("14:00"), is_by_clock("2015-12-01T14:00")
    (True, True, False)
    """
    typed = text.strip()
    ago = typed.removeprefix("-").removesuffix("ago").rstrip()
    return typed == "now" or length_of_units(ago) is not None or re.fullmatch(_OF_DAY, typed, re.ASCII) is not None


def _of_last_year(day: str, month: str, clock: str, now: int) -> Nanoseconds | None:
    """The last such time in UTC; up to a day ahead, as clocks differ."""
    year = time.gmtime(now // 10**9).tm_year
    times = (time_of_text(f"{day} {month} {each} {clock}") for each in (year + 1, year, year - 1))
    return next((found for found in times if found is not None and found < now + _DAY), None)


def _local(now: int, zone: str, day: str, *clock: str | None) -> Instant | None:
    """The time of a day beside today, by the clock of a zone, or of this place; None where no clock shows it."""
    hour, minute, second = (int(part or 0) for part in clock)
    if hour > 23 or minute > 59 or second > 59:
        return None
    if zone:
        from jitdb.common.zones import changes_of

        seconds = now // 10**9
        there = seconds + changes_of(zone).ahead(seconds + changes_of(zone).ahead(seconds))
        midnight = there - there % 86_400 + 86_400 * _DAYS[day]
        return Instant(_of_clock((midnight + 3600 * hour + 60 * minute + second) * 10**9, zone))
    today = time.localtime(now // 10**9)
    date = today.tm_year, today.tm_mon, today.tm_mday + _DAYS[day]
    return Instant(int(time.mktime((*date, hour, minute, second, 0, 0, -1))) * 10**9)
