"""A display as HTML, without scripts or anything loaded from elsewhere; all of a record is escaped.

Long and nested values are folded (`<details>`), very long ones cut; text of any direction stays within its cell
(`<bdi>`). A notebook that is not trusted removes the style, which leaves a plain table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from itertools import islice, repeat
from pathlib import Path
from typing import Any, Final

from jitdb.common.values import UNDEFINED
from jitdb.display.cells import cell, is_number, json_text, printable
from jitdb.display.columns import left_out
from jitdb.display.parts import Chart, Display, Facts, Folded, Note, Part, Records
from jitdb.display.record_table import columns_for, names_left_out, times_of, values_of
from jitdb.display.sheet import Code, Sheet, Spark, State, are_numbers, short

_SHOWN: Final = 48  # characters of a value in its cell
_UNFOLDED: Final = 2_000  # characters of an unfolded value
_COLUMNS: Final = 8  # of records
_LINE: Final = 160  # characters of the line about other fields

# Of pictures, in pixels of the page:
COLORS: Final = 8  # of series in style.css
_WIDTH: Final = 640  # of a chart
_HEIGHT: Final = 130  # of its columns
_TOP: Final = 16  # above the columns, for the largest count
_BOTTOM: Final = 20  # below, for labels
_CHARACTER: Final = 6.5  # width of a label's character, about
_GAP: Final = 14  # between labels
_BAR: Final = 140  # the longest bar
_SPARK: Final = (120, 18)


def html_of(display: Display) -> str:
    """The whole display, with its style, which applies to nothing else on the page."""
    head = f"<b>{_text(display.title)}</b>" if display.title else ""
    about = _quiet(_text(display.about)) if display.about else ""
    parts = "".join(map(_part, display.parts))
    return f'<div class="jitdb"><style>{_style()}</style><div class="jitdb-head">{head}{about}</div>{parts}</div>'


@cache
def _style() -> str:
    text = Path(__file__).with_name("style.css").read_text()
    return re.sub(r"/\*.*?\*/|(?<=[{};,])\s+|\s+(?=[{}])|(?<=\n)\s+", "", text, flags=re.DOTALL).replace("\n", "")


def _part(part: Part) -> str:
    if isinstance(part, Facts):
        rows = (f"<tr><th>{_text(name)}</th><td>{_fact(value)}</td></tr>" for name, value in part.pairs)
        return f'<table class="jitdb-facts"><tbody>{"".join(rows)}</tbody></table>' if part.pairs else ""
    if isinstance(part, Sheet):
        return _sheet(part)
    if isinstance(part, Records):
        return _records(part)
    if isinstance(part, Chart):
        return chart(part)
    if isinstance(part, Code):
        return f"<pre>{_text(part.text)}</pre>"
    if isinstance(part, Folded):
        table = _sheet(part.sheet._replace(footer=""))
        return f"{_note(part.sheet.footer)}<details><summary>{_text(part.summary)}</summary>{table}</details>"
    assert isinstance(part, Note)
    return _note(part.text)


def _text(text: str) -> str:
    """One or several lines, each isolated from the text around it."""
    lines = (escape(printable(line)) for line in text.split("\n"))
    return f"<bdi>{'<br>'.join(lines)}</bdi>"


def _note(text: str) -> str:
    return f'<div class="jitdb-note">{_text(text)}</div>' if text else ""


def _fact(value: Any) -> str:
    return _text(value) if isinstance(value, str) else _special(value) or _text(short("", value))


def _quiet(text: str) -> str:
    return f'<span class="jitdb-quiet">{text}</span>' if text else ""


def _special(value: Any) -> str:
    """A cell of a special kind; \"\" for others."""
    if isinstance(value, Spark):
        return sparkline(value.counts)
    if isinstance(value, State):
        mood = f" jitdb-{value.mood}" if value.mood else ""
        return f'<span class="jitdb-dot{mood}"></span>{_text(value.text)}'
    if isinstance(value, Code):
        return f"<code>{_text(value.text)}</code>"
    return ""


def _sheet(sheet: Sheet) -> str:
    if not sheet.rows:
        return _note(sheet.footer)
    numeric = [are_numbers(row[at] for row in sheet.rows) for at in range(len(sheet.names))]
    most = max((row[sheet.bars] for row in sheet.rows), default=0) if sheet.bars is not None else 0
    cells = [list(map(_sheet_cell, sheet.names, row)) for row in sheet.rows]
    bars = [bar(row[sheet.bars] / most) for row in sheet.rows] if most and sheet.bars is not None else None
    return f"{_table(sheet.names, numeric, cells, bars)}{_note(sheet.footer)}"


def _table(
    names: Iterable[str], numeric: Sequence[bool], rows: Iterable[Sequence[str]], last: Sequence[str] | None
) -> str:
    """A table of these cells; `last`: the cells of a column without a name at the end."""
    heads = "".join(_element("th", _text(cell(name)), right) for name, right in zip(names, numeric, strict=True))
    lines = ["".join(map(_element, repeat("td"), row, numeric)) for row in rows]
    if last is not None:
        heads += "<th></th>"
        lines = [f"{line}<td>{end}</td>" for line, end in zip(lines, last, strict=True)]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _element(kind: str, inside: str, is_number: bool) -> str:
    return f'<{kind} class="jitdb-n">{inside}</{kind}>' if is_number else f"<{kind}>{inside}</{kind}>"


def _sheet_cell(name: str, value: Any) -> str:
    special = _special(value)
    if special:
        return special
    if name == "share" or is_number(value) or (value is None and name != "value"):
        return _text(short(name, value))
    return value_html(value, most=_LINE) if value != "" else ""


def _records(part: Records) -> str:
    """A row for each record: the most telling columns, and the whole record, folded."""
    columns = columns_for(part, _COLUMNS)
    times, held = times_of(columns, part.times), values_of(part.records, columns, part.by_name)
    folds = not part.columns and any(isinstance(record, dict) for record in part.records)
    numeric = [
        name not in times and are_numbers(value for value in values if value is not UNDEFINED)
        for name, values in held.items()
    ]
    cells = zip(*([value_html(value, name in times) for value in values] for name, values in held.items()), strict=True)
    last = list(map(_folded_record, part.records)) if folds else None
    hidden = left_out(names_left_out(part, columns), _LINE)
    return f"{_table(held, numeric, cells, last)}{_note(hidden)}" if part.records else ""


def value_html(value: Any, is_time: bool = False, most: int = _SHOWN) -> str:
    """A value of a record in a cell: folded if it is long or nested.

    >>> value_html("<b>"), value_html(5)
    ('<bdi>&lt;b&gt;</bdi>', '<bdi>5</bdi>')
    """
    text = cell(value, is_time)
    if isinstance(value, str):
        if not value:
            return _quiet('""')
        if len(value) <= most and "\n" not in value:
            return _text(text)
        left = len(value) - _UNFOLDED
        return _folded(text, value[:_UNFOLDED], f"… and {left:,} more characters" if left > 0 else "")
    if isinstance(value, (dict, list, tuple)) and value:
        return _folded(text, _pretty(value), "")
    if value is None:
        return _quiet(_text(text))
    return _text(text[:_SHOWN] + ("…" if len(text) > _SHOWN else ""))


def _folded_record(record: Any) -> str:
    if not isinstance(record, dict):
        return value_html(record)
    count = f"{len(record):,} field{'s' if len(record) != 1 else ''}"
    return _folded(count, _pretty(record), "")


def _folded(line: str, whole: str, more: str) -> str:
    shown = line[:_SHOWN] + ("…" if len(line) > _SHOWN else "")
    note = f"<br>{_quiet(escape(more))}" if more else ""
    return f"<details><summary>{_text(shown)}</summary><pre>{_text(whole)}{note}</pre></details>"


def _pretty(value: Any) -> str:
    """The beginning of a map or an array as JSON, a line for each value."""
    lines = []
    left = _UNFOLDED
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in islice(value, _UNFOLDED)]
    for key, item in items:
        name = "" if key is None else f"{key if isinstance(key, str) else json_text(key, _SHOWN)}: "[:_UNFOLDED]
        text = name + json_text(item, max(left, _SHOWN))
        if len(text) > left:
            lines.append(f"{text[:left]}…")
            break
        lines.append(text)
        left -= len(text)
    if len(lines) < len(value):
        lines.append(f"… and {len(value) - len(lines):,} more")
    return "\n".join(lines)


# --- pictures: SVG without a library or script, in colors of the page's theme --------------------------------------


def bar(share: float) -> str:
    """A bar; 1 is the longest one."""
    width = max(share * _BAR, 1 if share > 0 else 0)
    return (
        f'<svg class="jitdb-bar" width="{_BAR}" height="10" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="10" rx="1.5"/></svg>'
    )


def sparkline(counts: Sequence[float]) -> str:
    """A small column for each count."""
    width, height = _SPARK
    most, step = max(counts, default=0) or 1, width / max(len(counts), 1)
    columns = "".join(
        f'<rect x="{at * step:.1f}" y="{height - size:.1f}" width="{max(step - 0.6, 0.6):.1f}" height="{size:.1f}"/>'
        for at, count in enumerate(counts)
        if (size := max(count / most * height, 1) if count > 0 else 0)
    )
    return f'<svg class="jitdb-spark" width="{width}" height="{height}" aria-hidden="true">{columns}</svg>'


def chart(part: Chart) -> str:
    """A column chart with the largest count and some labels; the pointer on a column shows its count."""
    totals = [sum(counts) for counts in zip(*(counts for _, counts in part.series), strict=True)]
    most = max(totals, default=0)
    if not most:
        return ""
    step = _WIDTH / len(totals)
    drawn = []
    for at, label in enumerate(part.labels):
        below: float = 0
        rects = []
        told = []
        for number, (name, counts) in enumerate(part.series):
            count = counts[at]
            if not count:
                continue
            size = max(count / most * _HEIGHT, 0.8)
            top = _TOP + _HEIGHT - below / most * _HEIGHT - size
            rects.append(
                f'<rect class="jitdb-c{number % COLORS}" x="{at * step:.1f}" y="{top:.1f}" '
                f'width="{max(step - 1, 0.7):.1f}" height="{size:.1f}"/>'
            )
            told.append(f"{name}: {count:,}" if len(part.series) > 1 else f"{count:,}")
            below += count
        if rects:
            title = escape(printable(f"{label}  {', '.join(told)}"))
            drawn.append(f"<g><title>{title}</title>{''.join(rects)}</g>")
    floor = _TOP + _HEIGHT
    said = escape(printable(f"{len(totals)} columns from {part.labels[0]} to {part.labels[-1]}, at most {most:,}"))
    return (
        f'<svg class="jitdb-chart" width="{_WIDTH}" height="{floor + _BOTTOM}" role="img" aria-label="{said}" '
        f'viewBox="0 0 {_WIDTH} {floor + _BOTTOM}">'
        f'<path class="jitdb-line" d="M0 {_TOP - 0.5}H{_WIDTH}"/><text x="0" y="{_TOP - 4}">{most:,}</text>'
        f'{"".join(drawn)}<path class="jitdb-floor" d="M0 {floor + 0.5}H{_WIDTH}"/>{_labels(part.labels, step)}</svg>'
        f"{_legend(part)}"
    )


def _labels(labels: Sequence[str], step: float) -> str:
    """The first label and as many others as have room, each at the left edge of its column."""
    widest = max(map(len, labels)) * _CHARACTER
    stride = max(-int(-(widest + _GAP) // step), 1)
    drawn = []
    floor = _TOP + _HEIGHT
    for at in range(0, len(labels), stride):
        left = at * step
        if at and left + len(labels[at]) * _CHARACTER > _WIDTH:
            break
        text = escape(printable(labels[at]))
        tick = f'<path class="jitdb-floor" d="M{left + 0.5:.1f} {floor}v4"/>'
        drawn.append(f'{tick}<text x="{left:.1f}" y="{floor + 15}">{text}</text>')
    return "".join(drawn)


def _legend(part: Chart) -> str:
    if len(part.series) < 2:
        return ""
    entries = (
        f'<span><svg width="10" height="10" aria-hidden="true"><rect class="jitdb-c{number % COLORS}" width="10" '
        f'height="10" rx="2"/></svg> <bdi>{escape(printable(name[:60]))}</bdi></span>'
        for number, (name, _) in enumerate(part.series)
    )
    return f'<div class="jitdb-legend">{"".join(entries)}</div>'
