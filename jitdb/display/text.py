"""A display as text, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jitdb.display.cells import printable
from jitdb.display.columns import left_out
from jitdb.display.parts import Chart, Code, Display, Facts, Folded, Note, Part, Records
from jitdb.display.record_table import record_lines
from jitdb.display.sheet import Sheet, short, table_lines
from jitdb.display.terminal import columns

_LEAST: Final = 40  # columns; on narrower terminals lines wrap


def text_of(display: Display, width: int | None = None) -> str:
    """The display as text.

    >>> print(text_of(Display("events.log", "a log", [Facts([("records", "3"), ("size", "90 bytes")])])))
    events.log: a log
      records  3
      size     90 bytes
    """
    width = max(_LEAST, columns(80)) if width is None else width
    head = printable(": ".join(filter(None, (display.title, display.about))))
    lines = [head] if head else []
    for part in display.parts:
        if lines and isinstance(part, (Sheet, Records, Folded)):
            lines.append("")
        lines += _lines(part, width)
    return "\n".join(lines)


def _lines(part: Part, width: int) -> Iterator[str]:
    if isinstance(part, Facts):
        wide = max((len(name) for name, _ in part.pairs), default=0)
        for name, value in part.pairs:
            yield f"  {name.ljust(wide)}  {_fact(value)}".rstrip()
    elif isinstance(part, Sheet):
        yield from table_lines(part, width)
        if part.footer:
            yield from map(printable, part.footer.split("\n"))
    elif isinstance(part, Folded):
        yield from _lines(part.sheet, width)
    elif isinstance(part, Records):
        lines, hidden = record_lines(part, width) if part.records else ([], [])
        yield from (line.text.rstrip() for line in lines)
        yield from filter(None, [left_out(hidden, width)])
    elif isinstance(part, Code):
        yield from (printable(line) for line in part.text.split("\n"))
    elif isinstance(part, Note):
        yield printable(part.text)
    else:
        assert isinstance(part, Chart)  # a table says the same with bars


def _fact(value: Any) -> str:
    return printable(value.text if isinstance(value, Code) else value if isinstance(value, str) else short("", value))
