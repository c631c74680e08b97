"""Records as a table of text: a row each, no wider than asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.display.cells import WIDEST, cell, is_number
from jitdb.display.columns import (
    GAP,
    TIMES,
    choose_columns,
    column_name,
    columns_in,
    fitting,
    floor_of,
    head_pieces,
    last_word,
    leaf_fields,
)
from jitdb.display.parts import Records
from jitdb.display.sheet import aligned

_OPAQUE: Final = 16  # characters of a column of keys or hashes: their beginnings tell them apart
_TIME: Final = 35  # characters of a time with nanoseconds and an offset
_MATCH: Final = ">"  # before a record that matches, among those around it
_BETWEEN: Final = "--"  # between passages, as in grep


class Line(NamedTuple):
    """A line of a table. Terminals show heads and matches in bold."""

    text: str
    is_bold: bool = False


def record_lines(part: Records, width: int) -> tuple[list[Line], list[str]]:
    """The lines of a table of these records, at most `width` characters wide, and the columns, or fields, that it has
    no room for.
    """
    columns, marks = columns_for(part, columns_in(width), width), part.marks
    times = times_of(columns, part.times)
    values = values_of(part.records, columns, part.by_name)
    texts = {name: [cell(value, name in times) for value in held] for name, held in values.items()}
    if marks is not None:
        width -= len(_BETWEEN) + GAP
    texts = dict(islice(texts.items(), fitting(_floors(texts, times), width)))
    widths = _widths(texts, width, times)
    right = [
        name not in times and all(value is UNDEFINED or is_number(value) for value in values[name]) for name in texts
    ]
    heads = [head_of(name, characters) for name, characters in zip(texts, widths, strict=True)]
    rows = list(zip(*texts.values(), strict=True))
    if marks is not None:
        widths, right, heads = [len(_BETWEEN), *widths], [False, *right], [[""], *heads]
        rows = [(_MATCH if is_match else "", *row) for is_match, row in zip(marks.answers, rows, strict=True)]
    gap, tall = " " * GAP, max(map(len, heads))
    lines = [
        Line(aligned(line, widths, right, gap), True)
        for line in zip(*([""] * (tall - len(head)) + head for head in heads), strict=True)
    ]
    lines.append(Line("─" * (sum(widths) + GAP * (len(widths) - 1))))
    for number, row in enumerate(rows):
        if marks is not None and number in marks.begins:
            lines.append(Line(_BETWEEN))
        lines.append(Line(aligned(row, widths, right, gap), marks is not None and marks.answers[number]))
    return lines, names_left_out(part, texts)


def columns_for(part: Records, most: int, width: int = 0) -> dict[str, Path]:
    """The columns by name; if none are named, the first ones and those of choose_columns(), of which the last ones give
    way.
    """
    if part.columns:
        return dict(part.columns)
    chosen = choose_columns(part.records, most, width)
    several = dict.fromkeys([*part.first, *chosen])
    return {column_name(path): path for path in islice(several, max(len(chosen), len(part.first)))}


def names_left_out(part: Records, shown: Collection[str]) -> list[str]:
    """The fields of the records, or the named columns, that are not shown."""
    return [name for name in part.columns or leaf_fields(part.records) if name not in shown]


def times_of(columns: dict[str, Path], timestamps: Sequence[str] | None) -> set[str]:
    """The columns whose numbers may be times."""
    return {name for name, path in columns.items() if name in (timestamps or TIMESTAMPS) or last_word(path) in TIMES}


def values_of(records: Sequence[Any], columns: dict[str, Path], by_name: bool) -> dict[str, list[Any]]:
    """The values of each column. A record that is no map has one column, the empty path."""

    def value(record: Any, path: Path) -> Any:
        return record if path == ("",) and not isinstance(record, dict) else value_at(record, path)

    return {name: [value(record, (name,) if by_name else path) for record in records] for name, path in columns.items()}


def head_of(name: str, width: int) -> list[str]:
    """A column's name, in lines of at most so many characters where its parts allow it.

    >>> head_of("user.firstName", 9), head_of("user.id", 9)
    (['user.', 'firstName'], ['user.id'])
    """
    lines = [""]
    for piece in head_pieces(name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines


def _floors(texts: dict[str, list[str]], times: Collection[str]) -> list[int]:
    """Characters that each column needs. A time is shown whole."""
    return [
        max(floor_of(name, cells), min(max(map(len, cells)), _TIME) if name in times else 0)
        for name, cells in texts.items()
    ]


def _widths(texts: dict[str, list[str]], width: int, times: Collection[str]) -> list[int]:
    """Characters of each column. The last one takes what is left, if it wants it."""
    floors = _floors(texts, times)
    heads = [max(map(len, head_pieces(name))) for name in texts]
    longest = [max(map(len, cells)) for cells in texts.values()]
    wanted = [max(floor, head, min(most, WIDEST)) for floor, head, most in zip(floors, heads, longest, strict=True)]
    gaps = GAP * (len(wanted) - 1)
    if sum(wanted) + gaps > width:
        for number, (name, cells) in enumerate(texts.items()):
            if longest[number] > 24 and name not in times and not any(" " in text for text in cells):
                wanted[number] = max(floors[number], _OPAQUE)
    left = width - gaps - sum(wanted[:-1])
    wanted[-1] = max(floors[-1], min(max(longest[-1], heads[-1]), left))
    while sum(wanted) + gaps > width:
        over = [number for number, (want, floor) in enumerate(zip(wanted, floors, strict=True)) if want > floor]
        if not over:
            return [min(width, want) for want in wanted]  # one that is wider than the table
        wanted[max(over, key=wanted.__getitem__)] -= 1
    return wanted
