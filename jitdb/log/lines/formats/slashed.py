"""Formats whose times have numbers for day and month, `05/11/2026 10:00:00` or `05-11-2026 10:00:00`, of which the
format does not say which is which: a day from 13 on does, in the first lines of a file. Where none is there, one is
guessed, and a note says so.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from jitdb.log.lines.formats.kernels.kinds import BODY, DAY_MONTH, LEVELED, MONTH_DAY, PATTERN
from jitdb.log.lines.formats.row import CLOCK, COLOUR, Format, begins

_DOUBT: Final = "are read with the {} first, as the first lines do not tell: with --log-format {} the {} is first"
_DATE: Final = "(?:[0-3][0-9]/[0-3][0-9]/[0-9]{4}|[0-3][0-9]-[0-3][0-9]-[0-9]{4})"
_DAY: Final = rf"{_DATE},? {CLOCK}(?:[.,][0-9]+)?(?: [+-][0-9]{{2}}:?[0-9]{{2}})?"  # the zone: Splunk
_TEXT: Final = rf"(?:{COLOUR})?\[?(?P<time>{_DAY})(?:{COLOUR})?\]?:? ?(?P<text>.*)"
_WEBSPHERE: Final = (
    r"\[(?P<timestamp>[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2},? [0-9]{1,2}:[0-9]{2}:[0-9]{2}:[0-9]{3})"
    r"(?: (?P<timezone>[^\]]+))?\] (?P<threadId>[0-9a-f]{8}) (?P<shortName>[^ ]+) +(?P<severity>[FEWAICDORZ123<>]) +"
    r"(?P<message>(?:(?P<messageId>[A-Z]{4,5}[0-9]{4,5}[A-Z]): )?.*)"
)


def _three(name: str, day: str, month: str, title: str, pattern: str, time: str, said: int, guess: int) -> list[Format]:
    """The format with a guess, and with what is known."""
    kinds = {"text": said, "message": said}
    first, other, better = ("day", "month", month) if guess == DAY_MONTH else ("month", "day", day)
    return [
        Format(
            each, title + told, PATTERN, pattern, MappingProxyType({**kinds, time: kind}), joins=True,
            mark=b":" if said == LEVELED else b"] 0",
            is_line=begins(re.sub(r"\?P<\w+>", "?:", pattern)), doubt=doubt,
        )
        for each, told, kind, doubt in (
            (name, "", guess, _DOUBT.format(first, better, other)),
            (day, ", the day first", DAY_MONTH, ""),
            (month, ", the month first", MONTH_DAY, ""),
        )
    ]  # fmt: skip


_SLASHES: Final = _three(
    "slashes", "dayfirst", "monthfirst", "text with days and months as numbers", _TEXT, "time", LEVELED, DAY_MONTH
)
_OF_IBM: Final = _three(
    "websphere", "websphereday", "webspheremonth", "WebSphere", _WEBSPHERE, "timestamp", BODY, MONTH_DAY
)
GUESSED: Final = (_SLASHES[0], _OF_IBM[0])
KNOWN_DAYS: Final = (*_SLASHES[1:], *_OF_IBM[1:])
_AT: Final = rb"(?m)^(?:\x1b\[[0-9;]*m)?\[?([0-9]{1,2})[/.-]([0-9]{1,2})[/.-](?:[0-9]{4}|[0-9]{2}),? [0-9]"


def with_days(row: Format, text: bytes) -> Format:
    """The format of a file of this text, if it shows which numbers are the days; else the same.

    >>> with_days(GUESSED[0], b"05/11/2026 10:00:00 a\\n13/11/2026 10:00:00 b\\n").name
    'dayfirst'
    """
    if not row.doubt:
        return row
    found = re.findall(_AT, text)
    day, month = (any(int(numbers[place]) > 12 for numbers in found) for place in (0, 1))
    if day == month:
        return row
    _, first, second = _SLASHES if row in _SLASHES else _OF_IBM
    return first if day else second
