"""Records as a table of text: a row each, no wider than asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path
from jitdb.common.values import UNDEFINED, value_at
from jitdb.display.cells import WIDEST, cell, is_number
from jitdb.display.columns import GAP, TIMES, fitting, floor_of, head_pieces, last_word

if TYPE_CHECKING:
    from rich.table import Table

_OPAQUE: Final = 16  # characters of a column that holds keys and hashes: their beginnings tell them apart
_TIME: Final = 35  # characters of a time with nanoseconds and an offset
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
    most = fitting(_floors(texts, times), width)
    texts = dict(islice(texts.items(), most))
    for name, characters in zip(texts, _widths(texts, width, times), strict=True):
        right = name not in times and all(value is UNDEFINED or is_number(value) for value in values[name])
        table.add_column(
            Text(head_of(name, characters)),
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


def head_of(name: str, width: int) -> str:
    """A column's name, in lines of at most so many characters where its parts allow it.

    >>> head_of("user.firstName", 9).split("\\n"), head_of("user.id", 9)
    (['user.', 'firstName'], 'user.id')
    """
    lines = [""]
    for piece in head_pieces(name):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


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


def _at(record: Any, path: Path) -> Any:
    """The field's value. A record that is no map has one column, the empty path."""
    return record if path == ("",) and not isinstance(record, dict) else value_at(record, path)
