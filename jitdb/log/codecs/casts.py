"""What the steps `number(x)`, `time(x)`, `duration(x)`, `text(x)`, `json(x)`, `pattern(x)` of a path make of one value.

indexes/kinds/casting.py does the same of whole columns.

- number: a number, or the one that text spells
- time: the time in the value, as text of RFC 3339 in UTC; numbers are of the unit that their size tells
- duration: the seconds of a length of time, as text has it with its units (76.5ms, 1h2m3s)
- text: text as it is; numbers, true and false as JSON writes them
- json: what the JSON in text says
- pattern: text with placeholders for what varies in it (masks.py)

Where that is nothing, the field is as if it were not there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from jitdb.common.times import as_text, length_of_text, time_of
from jitdb.common.values import NUMBER, UNDEFINED, kind_of, number_of
from jitdb.errors import DecodeError
from jitdb.log.codecs.json.codec import CODEC


def _number(value: Any) -> Any:
    number = number_of(value)
    return UNDEFINED if number is None else number


def _time(value: Any) -> Any:
    time = time_of(value)
    return UNDEFINED if time is None or not math.isfinite(time) else as_text(time)


def _duration(value: Any) -> Any:
    length = length_of_text(value) if isinstance(value, str) else None
    return UNDEFINED if length is None else float(length) / 1e9


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_of_number(value) if kind_of(value) == NUMBER else UNDEFINED


def text_of_number(number: int | float) -> str:
    """A number as JSON writes it; whole ones of up to 64 bits without a point.

    >>> text_of_number(2.0), text_of_number(0.5), text_of_number(1e300), text_of_number(float("nan"))
    ('2', '0.5', '1e+300', 'NaN')
    """
    if math.isfinite(number) and -(1 << 63) <= number < 1 << 64 and number == int(number):
        return str(int(number))
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(float(number)), repr(float(number)))


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return UNDEFINED
    try:
        return CODEC.decode(value.encode("utf-8", "surrogateescape"))
    except DecodeError:
        return UNDEFINED


def _pattern(value: Any) -> Any:
    from jitdb.log.codecs.masks import mask_of  # few questions are about patterns

    return mask_of(value) if isinstance(value, str) else UNDEFINED


READ: Final[dict[str, Callable[[Any], Any]]] = {
    "number": _number, "time": _time, "duration": _duration, "text": _text, "json": _json,
    "pattern": _pattern,
}  # fmt: skip
