"""Records as a table for people: which fields are worth a column, and how a value looks in a cell."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.output.columns import TIMES, choose_columns, columns_in
from jitdb.common.paths import TIMESTAMPS, Path

if TYPE_CHECKING:
    from rich.table import Table

_WIDEST: Final = 60  # characters of a column whose width is ours to choose
_OPAQUE: Final = 16  # of one that holds keys and hashes: their beginnings tell them apart
_NARROWEST: Final = 12  # of the last column, which takes what is left
_GAP: Final = 3  # blanks between columns
_ABSENT: Final = object()


def print_table(records: Sequence[Any], paths: dict[str, Path], timestamps: Sequence[str] | None = None) -> None:
    """Print the records, a row each. `paths` are the columns by name; chosen by what the records hold when empty."""
    if not records:
        return
    from jitdb.cli.output.terminal import console

    screen = console()
    columns = paths or {".".join(path): path for path in choose_columns(records, columns_in(screen.width))}
    screen.print(make_table(records, columns, screen.width, timestamps))


def make_table(
    records: Sequence[Any], columns: dict[str, Path], width: int, timestamps: Sequence[str] | None = None
) -> Table:
    """The same as a rich table of at most `width` characters; columns beyond that are made narrower."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    times = set(timestamps or TIMESTAMPS)
    texts = {
        name: [cell(at(record, path), name in times or path[-1] in TIMES) for record in records]
        for name, path in columns.items()
    }
    widths = _widths(texts, width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for (name, path), characters in zip(columns.items(), widths, strict=True):
        right = all(at(record, path) is _ABSENT or _is_number(at(record, path)) for record in records)
        is_time = name in times or path[-1] in TIMES
        table.add_column(
            Text(_head(name)),
            justify="right" if right and not is_time else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=characters,
        )
    for row in zip(*texts.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _head(name: str) -> str:
    """A column's name, a key a line."""
    return printable(name).replace(".", ".\n")


def _widths(texts: dict[str, list[str]], width: int) -> list[int]:
    """Characters of each column. The last one takes what is left, if it wants it."""
    heads = [max(map(len, _head(name).split("\n"))) for name in texts]
    wanted = []
    for name_cells, head in zip(texts.values(), heads, strict=True):
        longest = max(map(len, name_cells))
        opaque = longest > 24 and not any(" " in text for text in name_cells)
        wanted.append(max(head, min(longest, _OPAQUE if opaque else _WIDEST)))
    gaps = _GAP * (len(wanted) - 1)
    last = max(map(len, list(texts.values())[-1]))
    left = width - gaps - sum(wanted[:-1])
    wanted[-1] = max(min(heads[-1], _NARROWEST), min(max(last, heads[-1]), left))
    while sum(wanted) + gaps > width and max(wanted) > 4:
        wanted[wanted.index(max(wanted))] -= 1
    return wanted


def at(record: Any, path: Path) -> Any:
    """The field's value. A record that is no map has one column, the empty path."""
    for key in path:
        if key == "" and not isinstance(record, dict):
            return record
        if not isinstance(record, dict) or key not in record:
            return _ABSENT
        record = record[key]
    return record


def cell(value: Any, is_time: bool = False) -> str:
    """A value in one line, control characters made visible, so that no record can paint on the terminal.

    >>> cell("two\\nlines"), cell(True), cell(1700000000000, True)
    ('two lines', 'true', '2023-11-14 22:13:20.000')
    """
    if value is _ABSENT:
        return ""
    if isinstance(value, str):
        return printable(" ".join(value[: 4 * _WIDEST].split()))
    if is_time and _is_number(value):
        shown = _moment(value)
        if shown:
            return shown
    if isinstance(value, (bool, type(None), int, float)):
        return json.dumps(value)
    from jitdb.cli.output.jsonl import line_of

    return printable(line_of(value)[: 8 * _WIDEST].decode(errors="replace").rstrip("\n"))


def printable(text: str) -> str:
    """The text with what does not print written as an escape.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _moment(value: float) -> str:
    """A number that can only be milliseconds or seconds since 1970, as UTC; else the empty text."""
    if 1e11 <= value < 1e14:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(" ", "milliseconds")[:23]
    if 1e9 <= value < 1e11:
        return datetime.fromtimestamp(value, UTC).isoformat(" ", "seconds")[:19]
    return ""
