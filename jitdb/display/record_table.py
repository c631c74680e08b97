"""Records as a table of text: a row each, no wider than asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.display.cells import WIDEST, cell, is_number, printable
from jitdb.display.columns import GAP, LEAST, TIMES, fitting, floor_of, last_word

if TYPE_CHECKING:
    from rich.table import Table

_OPAQUE: Final = 16  # characters of a column that holds keys and hashes: their beginnings tell them apart
_TIME: Final = 35  # characters of a time with nanoseconds and an offset
_NARROWEST: Final = 12  # of the last column, which takes what is left
_ANSWER: Final = ">"  # before what was asked for, among what stands around it
_BETWEEN: Final = "--"  # passages, as grep has it


class Marks(NamedTuple):
    """Which rows are answers, among what stands around them, and which begin another passage."""

    answers: Sequence[bool]
    begins: Collection[int]


def make_table(
    records: Sequence[Any],
    columns: dict[str, Path],
    width: int,
    timestamps: Sequence[str] | None = None,
    marks: Marks | None = None,
    *,
    by_name: bool = False,
) -> tuple[Table, list[str]]:
    """The records as a rich table of at most `width` characters, and the columns that it has room for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    times = times_of(columns, timestamps)
    values = values_of(records, columns, by_name)
    texts = {name: [cell(value, name in times) for value in held] for name, held in values.items()}
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    if marks is not None:
        width -= len(_BETWEEN) + GAP
        table.add_column("", width=len(_BETWEEN))
    texts = {name: texts[name] for name in fitting(texts, width)}
    for name, characters in zip(texts, _widths(texts, width, times), strict=True):
        right = name not in times and all(value is UNDEFINED or is_number(value) for value in values[name])
        table.add_column(
            Text(head_of(name)),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=characters,
        )
    for number, row in enumerate(zip(*texts.values(), strict=True)):
        if marks is None:
            table.add_row(*map(Text, row))
            continue
        if number in marks.begins:
            table.add_row(_BETWEEN)
        is_answer = marks.answers[number]
        table.add_row(_ANSWER if is_answer else "", *map(Text, row), style="bold" if is_answer else None)
    return table, list(texts)


def times_of(columns: dict[str, Path], timestamps: Sequence[str] | None) -> set[str]:
    """The columns whose numbers may be times."""
    return {name for name, path in columns.items() if name in (timestamps or TIMESTAMPS) or last_word(path) in TIMES}


def values_of(records: Sequence[Any], columns: dict[str, Path], by_name: bool) -> dict[str, list[Any]]:
    return {name: [_at(record, (name,) if by_name else path) for record in records] for name, path in columns.items()}


def head_of(name: str) -> str:
    """A column's name, a key a line."""
    return re.sub(r"\.(?![^\[]*\])", ".\n", printable(name))


def _widths(texts: dict[str, list[str]], width: int, times: Collection[str]) -> list[int]:
    """Characters of each column. The last one takes what is left, if it wants it."""
    heads = [max(map(len, head_of(name).split("\n"))) for name in texts]
    longest = [max(map(len, cells)) for cells in texts.values()]
    wanted = [max(head, min(most, WIDEST)) for head, most in zip(heads, longest, strict=True)]
    gaps = GAP * (len(wanted) - 1)
    if sum(wanted) + gaps > width:
        for number, (name, cells) in enumerate(texts.items()):
            if longest[number] > 24 and name not in times and not any(" " in text for text in cells):
                wanted[number] = max(heads[number], _OPAQUE)
    left = width - gaps - sum(wanted[:-1])
    wanted[-1] = max(min(heads[-1], _NARROWEST), min(max(longest[-1], heads[-1]), left))
    floors = [
        min(longest[number], _TIME) if name in times else floor_of(texts[name]) for number, name in enumerate(texts)
    ]
    while sum(wanted) + gaps > width:
        over = [number for number, (want, floor) in enumerate(zip(wanted, floors, strict=True)) if want > floor]
        if not over:
            if max(floors) <= LEAST:
                break
            floors = [LEAST] * len(floors)
            continue
        wanted[max(over, key=wanted.__getitem__)] -= 1
    return wanted


def _at(record: Any, path: Path) -> Any:
    """The field's value. A record that is no map has one column, the empty path."""
    return record if path == ("",) and not isinstance(record, dict) else value_at(record, path)
