"""Values of records on their way to the page, which shows them as text and nothing else.

A value is `[kind, text]`, and `[kind, text, characters]` where the text was cut: what it is, and how it reads. Numbers
are text, too: JavaScript's would not hold all of them. Of text, numbers, true, false and null, whole ones, the page can
write the value into a question.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jitdb.common.json_text import json_of, well_formed
from jitdb.common.paths import Path, format_path
from jitdb.common.times import NUMBER, time_of
from jitdb.common.values import ABSENT, UNDEFINED, kind_of, value_at
from jitdb.operators.nodes.levels import rank_of

Wired = list[Any]

IN_ROW: Final = 400  # characters of a value in a list
IN_RECORD: Final = 50_000  # of one in a record that is open
_WHOLE: Final = 2_000_000  # of all values of such a record
_FIELDS: Final = 10_000  # of such a record
_DEPTH: Final = 32  # keys in a path; what lies deeper is JSON
_NAMES: Final = ((1.5, "debug"), (3.5, "info"), (4.5, "warn"), (9.0, "error"))  # by rank: see operators/nodes/levels.py


def wired(value: Any, most: int = IN_ROW) -> Wired:
    """A value as the page gets it.

    >>> wired("web"), wired(0.5), wired(True), wired([1, "a"]), wired("x" * 500)[2]
    (['text', 'web'], ['number', '0.5'], ['boolean', 'true'], ['other', '[1,"a"]'], 500)
    """
    if value is UNDEFINED:
        return ["absent", ""]
    if isinstance(value, str):
        return _cut("text", well_formed(value[: 2 * most]), len(value), most)
    if value is None or isinstance(value, bool):
        return ["null", "null"] if value is None else ["boolean", "true" if value else "false"]
    if isinstance(value, (int, float)) and value == value and abs(value) != float("inf"):
        try:
            text = repr(value)
        except ValueError:  # thousands of digits
            return ["other", "a number of thousands of digits"]
        return _cut("number", text, len(text), most)
    text = json_of(value)
    return _cut("other", text, len(text), most)


def _cut(kind: str, text: str, characters: int, most: int) -> Wired:
    return [kind, text] if characters <= most else [kind, text[:most], characters]


def leaves(value: Any) -> Iterator[tuple[str, Wired]]:
    """The fields of a record by their paths, maps taken apart, in its order; bounded as the head of this file says."""
    room = _WHOLE
    for count, (path, item) in enumerate(_leaves(value, ())):
        if count >= _FIELDS or room <= 0:
            return
        found = wired(item, min(IN_RECORD, room))
        room -= len(found[1])
        yield (format_path(path) if path else ""), found


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and len(path) < _DEPTH and all(isinstance(key, str) for key in value):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def milliseconds(record: Any, paths: tuple[Path, ...], unit: str) -> float | None:
    """The earliest time that a record declares, since 1970."""
    if unit == NUMBER:
        return None
    times = [time for path in paths if (time := time_of(value_at(record, path), unit)) is not None]
    return min(times) / 1e6 if times and abs(min(times)) < 1e19 else None


def level_name(value: Any, path: Path) -> str:
    """How the page colors a level: debug, info, warn, error; "" for what is none."""
    rank = rank_of(value, path) if kind_of(value) != ABSENT else None
    return "" if rank is None else next((name for most, name in _NAMES if rank <= most), "error")
