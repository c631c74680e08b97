"""Numbers and values as people read them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

_CONTAINERS: Final = (list, tuple, dict, set, frozenset, deque)
_LEVELS: Final = 100


def duration(milliseconds: float) -> str:
    """A duration in three significant digits, with a unit.

    >>> duration(0.0123), duration(4.56), duration(12345.0)
    ('12.3 µs', '4.56 ms', '12.3 s')
    """
    if milliseconds >= 999.5:
        value, unit = milliseconds / 1e3, "s"
    elif milliseconds >= 0.9995:
        value, unit = milliseconds, "ms"
    else:
        value, unit = milliseconds * 1e3, "µs"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f} {unit}"


def size_in_words(size: int) -> str:
    """A number of bytes.

    >>> size_in_words(90), size_in_words(4_393_103)
    ('90 bytes', '4.4 MB')
    """
    return f"{size:,} bytes" if size < 100_000 else f"{size / 1e6:,.1f} MB"


def counted(number: int, one: str, many: str) -> str:
    """A number and what it counts.

    >>> counted(1, "record was", "records were"), counted(2000, "line", "lines")
    ('1 record was', '2,000 lines')
    """
    return f"{number:,} {one if number == 1 else many}"


def type_and_size(value: object) -> str:
    """What a value is, for an error message that must not show it: it may be a secret, or what a record holds.

    >>> type_and_size(b"abc"), type_and_size("text"), type_and_size(3)
    ('3 bytes', 'text', 'a value of type int')
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return counted(len(value), "byte", "bytes")
    return "text" if isinstance(value, str) else f"a value of type {type(value).__name__}"


def shown(value: object, most: int = 60) -> str:
    """A value as Python writes it, for an error message: at most so many characters.

    >>> shown("text"), shown([1, 2, 3], 5), shown(10**5000)
    ("'text'", '[1, …', '<int>')
    """
    try:
        text = f"<{type(value).__name__}>" if _is_deep(value) else repr(value)
    except Exception:  # thousands of digits, endlessly nested objects, a faulty class
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_deep(value: object) -> bool:
    """Whether containers lie in one another in more levels than an error message shows.

    From Python 3.12 on, `repr()` follows them till the stack is full, in a time that grows with their number's square.
    """
    level = [value]
    for _ in range(_LEVELS):
        level = [part for each in level if isinstance(each, _CONTAINERS) for part in _parts(each)]
        if not level:
            return False
    return True


def _parts(container: Any) -> Iterable[object]:
    return chain.from_iterable(container.items()) if isinstance(container, dict) else container
