"""Answers as text that a language model reads: tables with tabs between cells, short cells, and few lines.

What records hold stands in cells of one line, in which nothing but printable characters is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from jitdb.common.json_text import line_of
from jitdb.common.paths import Path, format_path
from jitdb.common.values import value_at
from jitdb.display.cells import cell, printable
from jitdb.display.columns import choose_columns
from jitdb.display.sheet import Code, Sheet, Spark, State, number_text, spark_text
from jitdb.engine.roles import roles_of

if TYPE_CHECKING:
    from jitdb.operators.summaries.exploring.facets import Facets

LINES: Final = 100  # of a table
CHARACTERS: Final = 12_000  # of an answer: some 4,000 tokens
_CELL: Final = 100  # characters of a value
_VALUE: Final = 50  # of one of several in a cell
_MESSAGE: Final = 200  # and of a message
_WHOLE: Final = 4000  # characters of a whole record
_COLUMNS: Final = 10  # of records, where nobody chose
_NAMED: Final = 40  # fields that are not shown


def of_sheet(sheet: Sheet) -> str:
    """A table, and what stands below it.

    >>> of_sheet(Sheet(["level", "count", "share"], [["info", 3000, 0.5]], None, {}, "6,000 records")).splitlines()
    ['level\\tcount\\tshare', 'info\\t3000\\t50.0%', '6,000 records']
    """
    rows = [[_cell(name, value) for name, value in zip(sheet.names, row, strict=True)] for row in sheet.rows]
    head = list(sheet.names)
    if head[:1] == ["time"] and rows:
        _shorten(rows)
        head[0] = "time (UTC)" if str(sheet.rows[0][0]).endswith("Z") else "time"
    return "\n".join([*_table(head, rows), *filter(None, [sheet.footer])])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield "\t".join(map(cell, head))
    yield from ("\t".join(row).rstrip("\t") for row in rows[:LINES])
    if len(rows) > LINES:
        yield f"({len(rows) - LINES:,} more rows: ask for longer steps, a shorter time, or a limit)"


def _shorten(rows: list[list[str]]) -> None:
    """Leave out of times the day that the row above has, the zone if that is UTC, and seconds if no row has any."""
    times = [row[0].removesuffix("Z") for row in rows]
    if all(len(time) == 19 and time.endswith(":00") for time in times):
        times = [time[:-3] for time in times]
    day = ""
    for row, time in zip(rows, times, strict=True):
        row[0] = time[11:] if len(time) > 10 and time[:10] == day else time
        day = time[:10]


def _cell(name: str, value: Any) -> str:
    """A cell of a summary."""
    if value is None:
        return "" if name != "value" else "null"
    if isinstance(value, Spark):
        return spark_text(value.counts)
    if isinstance(value, (State, Code)):
        return value.text
    if name == "share":
        return f"{100 * value:.1f}%"
    if isinstance(value, float):
        return number_text(value).replace(",", "")
    return _cut(value, _CELL)


def _cut(value: Any, most: int) -> str:
    text = cell(value, most=most + 1)  # nothing of a field that is not there
    return text if len(text) <= most else f"{text[: most - 1]}…"


def of_facets(found: Facets) -> str:
    """A line for each field: how many values it has and the most frequent, or how large its numbers are."""
    lines = []
    for row in found:
        if row.spread is not None:
            sizes = zip(("min", "median", "p95", "p99", "max"), row.spread[:5], strict=True)
            held = ", ".join(f"{name} {_cell('', float(size))}" for name, size in sizes)
        else:
            some = ", ".join(f"{_cut(value, _VALUE)} {100 * count / found.total:.1f}%" for value, count in row.values)
            held = f"{row.distinct} values: {some}"
        lines.append(f"{format_path(row.path)}\t{held}")
    return "\n".join([*lines, found.sheet().footer])


def of_records(records: Sequence[Any], chosen: Sequence[Path]) -> str:
    """The records as a table of these fields; of none, of the time, the level, the message and some more."""
    dicts = [record for record in records if isinstance(record, dict)]
    if len(dicts) < len(records):
        return "\n".join(cell(record, most=_WHOLE) for record in records)
    paths = list(chosen) or _telling(dicts)
    message = roles_of(dicts).message
    rows = [
        [_cut(value_at(record, path), _MESSAGE if path == message else _CELL) for path in paths] for record in dicts
    ]
    lines = list(_table(list(map(format_path, paths)), rows))
    others = (
        []
        if chosen
        else [name for name in map(format_path, _leaves(dicts)) if name not in set(map(format_path, paths))]
    )
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        lines.append(f"fields not shown: {', '.join(others[:_NAMED])}{more}")
    return "\n".join(lines)


def _telling(records: Sequence[dict[str, Any]]) -> list[Path]:
    roles = roles_of(records)
    known = [path for path in (roles.time, roles.level) if path is not None]
    last = [roles.message] if roles.message is not None else []
    others = [path for path in choose_columns(records, _COLUMNS) if path not in [*known, *last]]
    return [*known, *others[: _COLUMNS - len(known) - len(last)], *last]


def _leaves(records: Iterable[dict[str, Any]]) -> list[Path]:
    """The fields that hold no map."""
    found: dict[Path, None] = {}

    def go(value: dict[str, Any], path: Path) -> None:
        for key, held in value.items():
            if isinstance(held, dict) and held and len(path) < 8:
                go(held, (*path, key))
            else:
                found[(*path, key)] = None

    for record in records:
        go(record, ())
    return list(found)


def of_whole(records: Sequence[Any]) -> str:
    """Each record as a line of JSON."""
    lines = (printable(line_of(record).decode("utf-8", "replace").rstrip("\n")) for record in records)
    return "\n".join(line if len(line) <= _WHOLE else f"{line[:_WHOLE]}… ({len(line):,} characters)" for line in lines)


def bounded(text: str) -> str:
    """The text, cut where it is too long for an answer."""
    if len(text) <= CHARACTERS:
        return text
    begin = text[:CHARACTERS].rpartition("\n")[0] or text[:CHARACTERS]
    return f"{begin}\n(cut here: {len(text) - len(begin):,} more characters; ask for fewer rows or fields)"
