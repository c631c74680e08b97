"""What to say where a date stands and a number is meant: times are numbers, usually milliseconds since 1970."""

from __future__ import annotations

import re
from typing import Any

_DATE = r"\d{4}-\d{1,2}-\d{1,2}"


def hint_of_date(text: str) -> str | None:
    """The number for a date or time written as text, in UTC where it names no zone; None where it is none.

    >>> hint_of_date("2023-11-14")
    'times are numbers, usually milliseconds since 1970: 2023-11-14 is 1699920000000 (UTC)'
    """
    from datetime import datetime  # here: only mistakes need it

    found = re.match(_DATE, text)
    if not found:
        return None
    year, month, day = found.group().split("-")
    try:
        moment = datetime.fromisoformat(f"{year}-{month:>02}-{day:>02}{text[found.end() :]}")
    except ValueError:
        return None
    return f"times are numbers, usually milliseconds since 1970: {text} is {_milliseconds(moment)}"


def hint_of_time(value: Any) -> str | None:
    """The same for a datetime or date of Python (or NumPy, or Pandas), or text; None for all else."""
    if isinstance(value, str):
        return hint_of_date(value)
    if not hasattr(value, "isoformat") and not is_numpy_time(value) and type(value).__name__ != "timedelta":
        return None
    from datetime import datetime

    hint = "records hold no times as such: store and ask for milliseconds since 1970 (a number), or text"
    return f"{hint}; this one is {_milliseconds(value)}" if isinstance(value, datetime) else hint


def is_numpy_time(value: Any) -> bool:
    """Whether it is a NumPy time, whose plain value would be a number of units that nobody sees."""
    return type(value).__name__ in ("datetime64", "timedelta64")


def _milliseconds(moment: Any) -> str:
    from datetime import UTC, timedelta

    zone = "" if moment.tzinfo else " (UTC)"
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    epoch = type(moment)(1970, 1, 1, tzinfo=UTC)
    return f"{(moment - epoch) // timedelta(milliseconds=1)}{zone}"
