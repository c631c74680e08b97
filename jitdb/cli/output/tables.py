"""Answers as tables for people: records, summaries with bars, indexes; summaries as CSV, TSV, JSON and NDJSON, too."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.output.output import flush, output, show, show_json, show_lines, show_painted
from jitdb.common.words import counted, size_in_words
from jitdb.display.terminal import columns

if TYPE_CHECKING:
    from jitdb.display.parts import Records
    from jitdb.display.sheet import Sheet
    from jitdb.engine.showing.overview import IndexInfo

_TOGETHER: Final = 10_000  # rows that are written at a time
TABLE_ROWS: Final = 20  # unless --limit says otherwise


def show_result(options: Namespace, found: Any) -> None:
    """Print a summary in the format that was asked for."""
    form: str = options.format
    sheet: Sheet = found.seen_sheet() if form == "table" else found.sheet()
    if form == "table":
        from jitdb.display.sheet import table_lines

        for line in table_lines(sheet, columns(80), _has_blocks(), is_cut=bool(sys.stdout and sys.stdout.isatty())):
            show(line)
        for line in found.told() if options.quiet else [sheet.footer]:
            show(line)
    elif form in ("csv", "tsv"):
        from jitdb.cli.output.separated import separated_lines
        from jitdb.display.sheet import without_charts

        sheet = without_charts(sheet)
        cells = ([value if type(value) in (str, int, float) else _text(value) for value in row] for row in sheet.rows)
        lines = chain([_names(sheet)], cells)
        with output(None, ()) as out:
            while some := list(islice(lines, _TOGETHER)):
                out.write([separated_lines(some, form, options.escape_formulas)])
    else:
        sheet = found.plain_sheet()
        rows = [dict(zip(_names(sheet), row, strict=True)) for row in sheet.rows]
        for value in rows if form == "ndjson" else [{**sheet.about, "rows": rows}]:
            show(_text(value))
    flush()


def _names(sheet: Sheet) -> list[str]:
    """The names of its columns. One that people know by its values has a name for programs."""
    return [name or "statistic" for name in sheet.names]


def _text(value: Any) -> str:
    from jitdb.common.json_text import line_of

    return line_of(value).decode().rstrip("\n")


def _has_blocks() -> bool:
    """Whether the output's encoding has the characters of bars."""
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError, AttributeError):
        return False
    return True


def show_records(part: Records) -> list[str]:
    """Print records, a row each; return the names of the columns, or fields, that there was no room for."""
    from jitdb.display.record_table import record_lines

    lines, hidden = record_lines(part, columns(80)) if part.records else ([], [])
    for line in lines:
        show_painted(line.text.rstrip(), "1" if line.is_bold else "")
    return hidden


def show_indexes(rows: Iterable[IndexInfo], with_files: bool) -> None:
    """Print the indexes of a log, a line each."""
    rows = list(rows)
    for row in rows:
        use = f" ({row.use})" if row.use else ""
        state = row.state + (f": {row.reason}" if row.reason else "")
        told = f"{counted(row.records, 'record', 'records')}, {size_in_words(row.bytes)}, {state}"
        if with_files:
            show(f"{row.name}{use}")
        show(f"  {row.file}: {told}" if with_files else f"{row.name}{use}: {told}")
    if not rows:
        show("no indexes yet: the first question makes them")


def show_report(report: Any, as_json: bool) -> None:
    """Print a report, as text or for programs."""
    if as_json:
        show_json(report.to_json())
    else:
        show_lines(str(report))
    flush()
