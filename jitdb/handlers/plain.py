"""Any value as one that a record can hold: logging calls carry values of every kind, and none may be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import index
from reprlib import Repr
from typing import Any, Final

_SIMPLE: Final = frozenset({type(None), bool, float, bytes})
_LEVELS: Final = 16  # of containers; deeper ones become text, which also ends those that contain themselves
_PARTS: Final = 1 << 18  # values in all containers: a part that many share is written out each time
_TOLD: Final = 1 << 8  # room for a container that becomes text
_LONGEST: Final = 2000  # characters of what becomes text
_DIGITS: Final = 1 << 13  # bits of an integer that is written in digits: Python refuses larger ones
_SHORT: Final = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, _LONGEST, _LONGEST


def plain(value: Any, levels: int = _LEVELS, room: list[int] | None = None) -> Any:
    """The value as None, a bool, an integer of 64 bits, a float, text, bytes, a list, or a dict with keys of text.

    Other values become text: by str() if their class defines it, as dates, paths and UUIDs do, else by repr(). Raises
    nothing, whatever the value's methods do. Keys with the same text are told apart by their classes.

    >>> from datetime import date
    >>> plain({"at": date(2026, 11, 23), 1: (2, 2**64), "why": KeyError("x")})
    {'at': '2026-11-23', '1': [2, '18446744073709551616'], 'why': "KeyError('x')"}
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind in _SIMPLE:
        return value
    return attempt(lambda: _plain(value, levels, [_PARTS] if room is None else room), kind)


def told(value: Any) -> str:
    """The value as text; only the beginning of containers."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _text(_SHORT.repr(value)[:_LONGEST])
    has_text = "__str__" in _methods(type(value)) and not isinstance(value, BaseException)
    return _text((str(value) if has_text else repr(value))[:_LONGEST])


def shortened(value: dict[str, Any], size: int) -> dict[str, Any]:
    """The value with keys, texts and bytes cut, and containers as text, in about `size` bytes.

    >>> shortened({"message": "x" * 100, "n": 1}, 40)
    {'message': 'xxxxxxxxxxxxxxxxxxxx…', 'n': 1}
    """
    most = max(size // max(len(value), 1), 8)
    return {key[:most]: _cut(part, most) for key, part in list(value.items())[:size]}


def _plain(value: Any, levels: int, room: list[int]) -> Any:
    if hasattr(value, "__index__"):
        number = index(value)
        if number.bit_length() > _DIGITS:
            return f"<an integer of {number.bit_length():,} bits>"
        return number if -(2**63) <= number < 2**64 else str(number)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if levels and isinstance(value, Mapping):
        pairs = list(dict.items(value)) if isinstance(value, dict) else [(key, value[key]) for key in list(value)]
        if _takes(room, len(pairs)):
            return _map([(key, plain(part, levels - 1, room)) for key, part in pairs])
    elif levels and isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
        if _takes(room, len(parts)):
            return [plain(part, levels - 1, room) for part in parts]
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not _takes(room, _TOLD):
        return "…"
    return told(value)


def _takes(room: list[int], parts: int) -> bool:
    """Take room for this many values, if there is enough."""
    fits = parts <= room[0]
    room[0] -= parts if fits else 0
    return fits


def _map(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """With keys of text. Of keys with the same text, the text itself keeps it, and others name their class."""
    found = {_key(key): part for key, part in pairs}
    if len(found) == len(pairs):
        return found
    found = {}
    for key, part in sorted(pairs, key=lambda pair: not isinstance(pair[0], str)):
        name, number = _key(key), 1
        while name in found:
            name, number = f"{_key(key)} ({type(key).__name__}{f' {number}' if number > 1 else ''})", number + 1
        found[name] = part
    return found


def _methods(kind: type) -> set[str]:
    """The names that a class and its bases define, without `object`."""
    return {name for each in kind.__mro__[:-1] for name in vars(each)}


def _key(key: Any) -> str:
    if type(key) is str and key.isascii():
        return key
    return str(attempt(lambda: _text(str.__str__(key)) if isinstance(key, str) else told(key), type(key)))


def _text(text: str) -> str:
    """Without lone surrogates, which UTF-8 lacks."""
    return text.encode(errors="backslashreplace").decode()


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, bytes):
        return value[:most]
    text = value if isinstance(value, str) else repr(value) if isinstance(value, Iterable) else ""
    data = text.encode()
    return value if len(data) <= most else data[:most].decode(errors="ignore") + "…"


def attempt(make: Callable[[], Any], kind: type) -> Any:
    """What `make` returns for a value of this class, or text that says that it raised."""
    try:
        return make()
    except Exception as error:  # the value's own methods may raise, and other threads change it
        return f"<{kind.__name__}: it raised {type(error).__name__} when it was logged>"
