"""Instants: what times are compared with, of whatever a user has at hand."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from jitdb.common.immutable import Immutable
from jitdb.common.times import Nanoseconds, as_text, time_of_number, time_of_text
from jitdb.common.words import shown
from jitdb.errors import QueryError

_AGO: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|us|ns|s|min|m|h|d|w) ?)+")
_LENGTHS: Final = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    "d": 86_400 * 10**9, "w": 7 * 86_400 * 10**9,
}  # fmt: skip
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}


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
        found = time_of_text(value)
        if found is None:
            raise QueryError(
                f"text is above or below as a time only, and {shown(value)} is none",
                remedy="a time is written 2015-12-01 or 2015-12-01T10:30:00Z, a number without quotes",
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


def instant_at(text: str, now: int | None = None) -> Instant:
    """The instant that a person types: a time; how long ago (2h, 1h30m, 7d); now, today, yesterday; seconds since 1970.

    `now`: nanoseconds since 1970, by default those of the clock. Raises QueryError.

    >>> instant_at("2h", now=7_200_000_000_000), instant_at("1700000000")
    ('1970-01-01T00:00:00Z', '2023-11-14T22:13:20Z')
    """
    typed = text.strip()
    now = time.time_ns() if now is None else now
    if typed == "now":
        return Instant(now)
    if typed in _DAYS:
        day = 86_400 * 10**9
        return Instant((now // day + _DAYS[typed]) * day)
    if _AGO.fullmatch(typed.removesuffix("ago").rstrip()):
        return Instant(now - length_of(typed.removesuffix("ago").rstrip()))
    if re.fullmatch(r"\d{5,}(\.\d+)?", typed):
        found = time_of_number(float(typed) if "." in typed else int(typed))
        assert found is not None  # it is no NaN
        return Instant(found)
    found = time_of_text(typed)
    if found is None:
        raise QueryError(
            f"{shown(text)} is no time",
            remedy="write 2026-11-01, 2026-11-01T12:00, how long ago as in 2h, 30m or 7d, or now, today, yesterday",
        )
    return Instant(found)


def length_of(text: str) -> int:
    """How many nanoseconds a length of time has. Raises QueryError.

    >>> length_of("1h30m"), length_of("1.5s")
    (5400000000000, 1500000000)
    """
    if not _AGO.fullmatch(text):
        raise QueryError(f"{shown(text)} is no length of time", remedy="write 90s, 5m, 2h, 7d, 1w or 1h30m")
    parts = re.findall(r"(\d+(?:\.\d+)?)([a-z]+)", text)
    return sum(round(float(number) * _LENGTHS[unit]) if "." in number else int(number) * _LENGTHS[unit]
               for number, unit in parts)  # fmt: skip
