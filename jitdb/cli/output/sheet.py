"""What is counted, in rows: a table with bars for people; CSV, TSV, JSON or NDJSON for programs."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.output.output import columns, flush, output, show
from jitdb.display.sheet import Sheet, table_lines

if TYPE_CHECKING:
    from jitdb.operators.summaries.summary import Result

TABLE_ROWS: Final = 20  # unless --limit says otherwise


def show_result(options: Namespace, found: Result) -> None:
    """Print what was counted, in the format that was asked for."""
    show_sheet(options, found.sheet())


def show_sheet(options: Namespace, sheet: Sheet) -> None:
    """Print it in the format that was asked for."""
    form: str = options.format
    if form == "table":
        for line in table_lines(sheet, columns(80), _has_blocks()):
            show(line)
        if not options.quiet:
            show(sheet.footer)
    elif form in ("csv", "tsv"):
        from jitdb.cli.output.formats import separated_lines

        cells = ([value if type(value) in (str, int, float) else _text(value) for value in row] for row in sheet.rows)
        with output(None, ()) as out:
            out.write([separated_lines([_names(sheet), *cells], form, options.escape_formulas)])
    else:
        from jitdb.common.json_text import line_of

        rows = [dict(zip(_names(sheet), row, strict=True)) for row in sheet.rows]
        for value in rows if form == "ndjson" else [{**sheet.about, "rows": rows}]:
            show(line_of(value).decode().rstrip("\n"))
    flush()


def _names(sheet: Sheet) -> list[str]:
    """Of its columns, for programs: one that a person knows by its values has one, too."""
    return [name or "statistic" for name in sheet.names]


def _text(value: Any) -> str:
    from jitdb.common.json_text import line_of

    return line_of(value).decode().rstrip("\n")


def _has_blocks() -> bool:
    """Whether the output can say them."""
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True
