"""Which fields of records get a column in a table: those that many records have, with short and differing values and
telling names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from jitdb.common.paths import Keys, Path, format_path
from jitdb.common.words import shown
from jitdb.display.cells import printable

_COLUMNS: Final = 5  # in 80 characters
_MOST: Final = 12
_FEWEST: Final = 3
_MOST_WITH_ROOM: Final = 24  # columns of a wide table
_ROOMY: Final = 40  # characters with which a column is hardly cut
_DEPTH: Final = 5  # keys in a path
DEEPEST: Final = 8  # keys in a path, for all fields
_CHARACTERS: Final = 200  # of a value that are looked at
_SAMPLE: Final = 200  # records looked at

GAP: Final = 3  # blanks between columns
LEAST: Final = 4  # characters of a column, at least
HEAD: Final = 16  # characters of a part of its name, at most
_TELLING_APART: Final = 10  # characters that tell values apart

# Last keys of fields that people look for first.
_TELLING: Final = {
    "timestamp": 9, "time": 9, "date": 9, "ts": 8, "type": 8, "kind": 7, "level": 8, "status": 7, "name": 7,
    "author": 6, "user": 6, "text": 6, "message": 6, "msg": 6, "title": 6, "sequence": 5, "id": 4, "path": 5,
}  # fmt: skip
TIMES: Final = frozenset({"timestamp", "time", "date", "ts"})


def columns_in(width: int) -> int:
    """How many columns a table of `width` characters has.

    >>> columns_in(80), columns_in(120), columns_in(300)
    (5, 7, 12)
    """
    return max(_COLUMNS, min(_COLUMNS + (width - 80) // 20, _MOST))


def choose_columns(records: Sequence[Any], most: int = _COLUMNS, width: int = 0) -> list[Path]:
    """The paths of at most `most` fields, or of more if a table of `width` characters has room: times first, long texts
    last, others in the order of the records. Fields that half of the records lack come only where others leave room.

    >>> choose_columns([{"id": 1, "text": "hello", "time": 5}, {"id": 2, "time": 6}])
    [('time',), ('id',), ('text',)]
    >>> choose_columns([17, "text"])
    [('',)]
    """
    sample = records[:_SAMPLE]
    seen: dict[Path, list[str]] = {}
    for record in sample:
        for path, value in _leaves(record):
            seen.setdefault(path, []).append(_beginning(value))
    scores = {path: _score(path, texts, len(sample)) for path, texts in seen.items()}
    best = sorted(scores, key=lambda path: (2 * len(seen[path]) <= len(sample), -scores[path], len(path)))
    chosen: list[Path] = []
    for path in best:
        # One of timestamp and value.timestamp is enough.
        if len(chosen) < most and scores[path] > 0 and last_word(path) not in map(last_word, chosen):
            chosen.append(path)
    for path in best:  # if records are all alike
        if len(chosen) < min(_FEWEST, most) and path not in chosen and last_word(path) not in map(last_word, chosen):
            chosen.append(path)
    room = width - sum(_wanted(path, seen[path]) for path in chosen)
    for path in best:
        room -= 0 if path in chosen else _wanted(path, seen[path])
        if room < 0 or len(chosen) == _MOST_WITH_ROOM:
            break
        chosen += [path] if path not in chosen else []
    order = list(seen)
    chosen = sorted(chosen, key=order.index)
    chosen = sorted(chosen, key=lambda path: (last_word(path) not in TIMES, _is_prose(seen[path])))
    return chosen or list(leaf_fields(sample).values())[:most] or [("",)]


def _wanted(path: Path, texts: list[str]) -> int:
    """Characters that a column needs so that its values are hardly cut, with the gap after it."""
    return max(min(max(map(len, texts)), _ROOMY), *map(len, head_pieces(column_name(path)))) + GAP


def _beginning(value: str | float) -> str:
    return value[:_CHARACTERS] if isinstance(value, str) else shown(value)


def column_name(path: Path) -> str:
    """The head of its column; \"\" for records that are no maps."""
    return "" if path == ("",) else format_path(path)


def last_word(path: Path) -> str:
    """The last word of a path, the same for `["log.level"]` and `log.level`."""
    return str(path[-1]).lower().rpartition(".")[2].removeprefix("@")


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Paths and values of the text, numbers and booleans in maps within maps."""
    if isinstance(value, dict):
        if len(path) < _DEPTH:
            for key, item in value.items():
                if isinstance(key, str):
                    yield from _leaves(item, (*path, key))
    elif not path:
        yield ("",), value
    elif isinstance(value, (str, int, float, bool)):
        yield path, value


def leaf_fields(records: Iterable[Any]) -> dict[str, Path]:
    """The fields of these records that hold no maps, by name, in their order.

    >>> leaf_fields([{"a": 1, "b": {"c": [2]}}, {"b": {"d": {}}}])
    {'a': ('a',), 'b.c': ('b', 'c'), 'b.d': ('b', 'd')}
    """
    found = dict.fromkeys(path for record in records for path in leaf_paths(record))
    return {format_path(path): path for path in found}


def leaf_paths(value: Any, path: Keys = ()) -> Iterator[Keys]:
    """The fields of a record that hold no maps, empty maps, or too deep ones."""
    if isinstance(value, dict) and len(path) < DEEPEST and (value or not path):
        for key, item in value.items():
            if isinstance(key, str):
                yield from leaf_paths(item, (*path, key))
    elif path:
        yield path


def _is_prose(texts: list[str]) -> bool:
    return 2 * sum(" " in text for text in texts) > len(texts) and _length(texts) > 24


def _length(texts: list[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _score(path: Path, texts: list[str], sample: int) -> float:
    presence = len(texts) / sample
    opaque = _length(texts) > 24 and not _is_prose(texts)
    same = len(set(texts)) == 1 and sample > 3
    score = 4 * presence + _TELLING.get(last_word(path), 0) - 0.5 * len(path)
    return score - 4 * opaque - 6 * same - 6 * (presence < 0.2)


def head_pieces(name: str) -> list[str]:
    """The parts of a column's name, between which its head may break.

    >>> head_pieces("user.firstName"), head_pieces("sched_dep_time"), head_pieces('a["log.level"]')
    (['user.', 'first', 'Name'], ['sched_', 'dep_', 'time'], ['a["log.level"]'])
    """
    return re.split(r"(?<=[A-Za-z0-9][._/-])(?![^\[]*\])(?!$)|(?<=[a-z0-9])(?=[A-Z])", printable(name))


def fitting(floors: Sequence[int], width: int) -> int:
    """How many columns of these widths, with gaps, have room; at least one.

    >>> fitting([7, 10, 4], 24)
    2
    """
    ends = accumulate(floor + GAP for floor in floors)
    return max(1, sum(end <= width + GAP for end in ends))


def floor_of(name: str, cells: Sequence[str]) -> int:
    """The least width of a column: it tells values apart and shows the name. Other columns are left out first."""
    head = min(max(map(len, head_pieces(name))), HEAD)
    return max(LEAST, head, min(max(map(len, cells)), _TELLING_APART))


def left_out(names: Sequence[str], width: int) -> str:
    """A line about the columns that a table leaves out; empty if there are none.

    >>> left_out(["size", "user.name", "message"], 34)
    'not shown: size and 2 more'
    """
    if not names:
        return ""
    for count in range(len(names), 0, -1):
        more = f" and {len(names) - count:,} more" if count < len(names) else ""
        said = f"not shown: {', '.join(map(printable, names[:count]))}{more}"
        if len(said) <= width:
            return said
    return f"not shown: {len(names):,} fields"
