"""A display as text, for a terminal or a log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jitdb.common.paths import Path
from jitdb.display.cells import printable
from jitdb.display.columns import choose_columns, column_name, columns_in, leaf_fields, left_out
from jitdb.display.parts import Chart, Code, Display, Facts, Folded, Note, Part, Records
from jitdb.display.record_table import record_lines
from jitdb.display.sheet import Sheet, short, table_lines

_LEAST: Final = 40  # columns; on narrower terminals lines wrap


def screen_width() -> int:
    """Columns of the terminal; 80 without one."""
    return max(_LEAST, shutil.get_terminal_size((80, 24)).columns)


def text_of(display: Display, width: int | None = None) -> str:
    """The display as text.

    >>> print(text_of(Display("events.log", "a log", [Facts([("records", "3"), ("size", "90 bytes")])])))
    events.log: a log
      records  3
      size     90 bytes
    """
    columns = screen_width() if width is None else width
    head = printable(": ".join(filter(None, (display.title, display.about))))
    lines = [head] if head else []
    for part in display.parts:
        if lines and isinstance(part, (Sheet, Records, Folded)):
            lines.append("")
        lines += _lines(part, columns)
    return "\n".join(lines)


def _lines(part: Part, width: int) -> Iterator[str]:
    if isinstance(part, Facts):
        wide = max((len(name) for name, _ in part.pairs), default=0)
        for name, value in part.pairs:
            yield f"  {name.ljust(wide)}  {_fact(value)}".rstrip()
    elif isinstance(part, Sheet):
        yield from table_lines(part, width)
        if part.footer:
            yield printable(part.footer)
    elif isinstance(part, Folded):
        yield from _lines(part.sheet, width)
    elif isinstance(part, Records):
        yield from _record_lines(part, width)
    elif isinstance(part, Code):
        yield from (printable(line) for line in part.text.split("\n"))
    elif isinstance(part, Note):
        yield printable(part.text)
    else:
        assert isinstance(part, Chart)  # a table says the same with bars


def _fact(value: Any) -> str:
    return printable(value.text if isinstance(value, Code) else value if isinstance(value, str) else short("", value))


def _record_lines(part: Records, width: int) -> Iterator[str]:
    if part.records:
        lines, kept = record_lines(
            part.records, columns_for(part, columns_in(width), width), width, by_name=part.by_name
        )
        yield from (line.text.rstrip() for line in lines)
        hidden = left_out(names_left_out(part, kept), width)
        if hidden:
            yield hidden


def columns_for(part: Records, most: int, width: int = 0) -> dict[str, Path]:
    """The columns by name; those of choose_columns() if none are named."""
    if part.columns:
        return dict(part.columns)
    return {column_name(path): path for path in choose_columns(part.records, most, width)}


def names_left_out(part: Records, shown: Sequence[str] | dict[str, Path]) -> list[str]:
    """The fields of the records, or the named columns, that are not shown."""
    return [name for name in part.columns or leaf_fields(part.records) if name not in shown]
