"""What is counted, in rows: a table with bars for people; CSV, TSV, JSON or NDJSON for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from jitdb.cli.output.output import show
from jitdb.cli.output.table import cell

_WIDEST: Final = 40  # characters of a cell
_BAR: Final = 40  # of a bar, at most
_LEAST: Final = 8  # a shorter one tells nothing
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_GAP: Final = "  "


class Sheet(NamedTuple):
    """Rows of values, and what is to be said of all of them.

    names:  of the columns
    rows:   counts are integers, shares are of the column `share`
    bars:   the column whose numbers are shown as bars, by its place; None: no bars
    about:  what stands beside the rows in JSON
    footer: below the table
    """

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bars: int | None
    about: dict[str, Any]
    footer: str


def show_sheet(sheet: Sheet, form: str, quiet: bool) -> None:
    """Print it in this format."""
    if form == "table":
        for line in table_lines(sheet, _columns(), _has_blocks()):
            show(line)
        if not quiet:
            show(sheet.footer)
    elif form in ("csv", "tsv"):
        _separated(sheet, "," if form == "csv" else "\t")
    else:
        from jitdb.cli.output.jsonl import line_of

        rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
        for value in rows if form == "ndjson" else [{**sheet.about, "rows": rows}]:
            show(line_of(value).decode().rstrip("\n"))


def _separated(sheet: Sheet, delimiter: str) -> None:
    import csv

    writer = csv.writer(sys.stdout, delimiter=delimiter, lineterminator="\n")
    writer.writerow(sheet.names)
    for row in sheet.rows:
        writer.writerow([value if isinstance(value, str) else _text(value) for value in row])


def _text(value: Any) -> str:
    from jitdb.cli.output.jsonl import line_of

    return line_of(value).decode().rstrip("\n")


def table_lines(sheet: Sheet, width: int, blocks: bool = True) -> Iterator[str]:
    """The lines of the table, at most so wide where cells allow it.

    >>> print(*table_lines(Sheet(["level", "count"], [["info", 3000], ["error", 1500]], 1, {}, ""), 30), sep="\\n")
    level  count
    info   3,000  ████████████████
    error  1,500  ████████
    """
    if not sheet.rows:
        return
    numeric = [all(_is_number(row[at]) for row in sheet.rows) for at in range(len(sheet.names))]
    texts = [[_cell(name, value) for name, value in zip(sheet.names, row, strict=True)] for row in sheet.rows]
    heads = [_cut(cell(name)) for name in sheet.names]
    widths = [max(map(_width, column)) for column in zip(heads, *texts, strict=True)]
    left = min(width - sum(widths) - len(_GAP) * len(widths), _BAR)
    bars = [""] * len(texts)
    if sheet.bars is not None and left >= _LEAST:
        counts = [row[sheet.bars] for row in sheet.rows]
        most = max(*counts, 1)
        bars = [_GAP + _bar(count / most * left, blocks) for count in counts]
    for line, bar in zip([heads, *texts], ["", *bars], strict=True):
        cells = map(_padded, line, widths, numeric)
        yield (_GAP.join(cells) + bar).rstrip()


def _bar(length: float, blocks: bool) -> str:
    if not blocks:
        return "#" * round(length)
    whole, part = divmod(round(8 * length), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "" if whole or not length else _EIGHTHS[1])


def _cell(name: str, value: Any) -> str:
    if name == "share":
        return f"{100 * value:.1f} %"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return number_text(value)
    return _cut("" if value is None and name != "value" else cell(value))


def number_text(value: float) -> str:
    """A number in about as many digits as tell something.

    >>> number_text(12345.6789), number_text(0.000123456), number_text(2.0)
    ('12,345.679', '0.0001235', '2')
    """
    if 1 <= abs(value) < 1e15:
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:.4g}"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _padded(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 80


def _has_blocks() -> bool:
    """Whether the output can say them."""
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True
