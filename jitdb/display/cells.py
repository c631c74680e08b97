"""A value in a cell of a table: one line, in which nothing acts on a terminal or a page. The cost does not depend on
the value's size.
"""

from __future__ import annotations

from itertools import takewhile
from math import inf
from typing import Any, Final

from jitdb.common.times import SMALLER, as_text, time_of_number
from jitdb.common.values import UNDEFINED

WIDEST: Final = 60  # characters of a column
_SURELY_TIME: Final = 1e9  # smaller numbers may be anything, also in fields with names of times
_DEEPEST: Final = 40  # nested maps and arrays
_LONGEST: Final = 1 << 4096  # larger integers are described: Python refuses to write some


def cell(value: Any, is_time: bool = False, most: int = 4 * WIDEST) -> str:
    """The first `most` characters of a value, or some more, in one line, control characters made visible, so that no
    record can paint on the terminal.

    >>> cell("two\\nlines"), cell(True), cell(1700000000000, True)
    ('two lines', 'true', '2023-11-14 22:13:20.000')
    """
    if value is UNDEFINED:
        return ""
    if isinstance(value, str):
        return printable(" ".join(value[:most].split()))
    if is_time and is_number(value):
        moment = _moment(value)
        if moment:
            return moment
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, int) and abs(value) >= _LONGEST:
        return _bits(value)
    return printable(json_text(value, max(most, 8 * WIDEST)))


def json_text(value: Any, most: int) -> str:
    """The first `most` characters of the value as JSON, without looking at more of it than needed.

    >>> json_text({"a": [1, 2]}, 100), json_text("x" * 10**7, 5)
    ('{"a":[1,2]}', '"xxxx')
    """
    from jitdb.common.json_text import line_of  # late: counting needs no json

    return line_of(_Beginning(most).of(value)).decode(errors="replace")[:-1][:most]


def json_number(value: float) -> str:
    """A number as JavaScript writes it, also those that JSON lacks."""
    return {inf: "Infinity", -inf: "-Infinity"}.get(value, "NaN" if value != value else repr(value))


class _Beginning:
    """Copies the beginning of a value, up to so many characters in all."""

    def __init__(self, most: int) -> None:
        self._left = most + 1

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, (str, bytes)):
            part = value[: max(self._left, 0)]
            self._left -= len(part)
            return part
        self._left -= 1
        is_list = type(value) in (list, tuple)
        if (is_list or isinstance(value, dict)) and depth > _DEEPEST:
            return "…"
        if is_list:
            items = takewhile(lambda _: self._left > 0, value)
            return [self.of(item, depth + 1) for item in items]
        if isinstance(value, dict):
            pairs = takewhile(lambda _: self._left > 0, value.items())
            return {self._key(key): self.of(item, depth + 1) for key, item in pairs}
        if isinstance(value, int) and abs(value) >= _LONGEST:
            return _bits(value)
        return value

    def _key(self, key: Any) -> Any:
        return self.of(key) if isinstance(key, (str, bytes)) else key


def _bits(value: int) -> str:
    return f"an integer of {value.bit_length():,} bits"


def printable(text: str) -> str:
    """The text with escapes for characters that do not print.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def is_number(value: Any) -> bool:
    """Whether it is a number; true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _moment(value: float) -> str:
    """A number that can only be a time, in UTC to the second or millisecond; else \"\"."""
    time = time_of_number(value) if value >= _SURELY_TIME else None
    if not isinstance(time, int):
        return ""
    if value < SMALLER["s"]:
        return as_text(time // 10**9 * 10**9)[:-1].replace("T", " ")
    day, clock = as_text(time // 10**6 * 10**6)[:-1].split("T")
    whole, _, rest = clock.partition(".")
    return f"{day} {whole}.{rest:0<3}"
