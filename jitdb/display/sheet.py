"""Counts in rows, as a table of text with bars."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from jitdb.common.values import number_of
from jitdb.display.cells import cell, is_number

_WIDEST: Final = 40  # characters of a cell that is short
_LOOKED_AT: Final = 1 << 16  # characters of a value that a terminal shows
_NARROWEST: Final = 12  # characters of a column
_BAR: Final = 40  # of a bar, at most
_LEAST: Final = 8  # shorter bars show nothing
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_HEIGHTS: Final = " ▁▂▃▄▅▆▇█"
_GROUPED: Final = 10**30  # larger numbers are not grouped
_GAP: Final = "  "
_WORDS: Final = ("true", "false", "null")


class Spark(NamedTuple):
    """Counts from left to right, in one cell."""

    counts: Sequence[float]


class State(NamedTuple):
    """A state. `mood` is "good", "fair", "bad", or "" for neither."""

    text: str
    mood: str


class Code(NamedTuple):
    """Text in the syntax of Python, or of expressions."""

    text: str


class Sheet(NamedTuple):
    """Rows of values, and what is said of all of them.

    names:  of the columns; shares are in the column `share`
    bars:   the number of the column that is shown as bars; None: no bars
    about:  what JSON has beside the rows
    footer: a line below the table, or several
    """

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    bars: int | None
    about: dict[str, Any]
    footer: str


def table_lines(sheet: Sheet, width: int, blocks: bool = True, is_cut: bool = True) -> Iterator[str]:
    """The lines of the table, at most `width` characters wide if cells allow it. `is_cut`: cells may be cut for that.

    >>> print(*table_lines(Sheet(["level", "count"], [["info", 3000], ["error", 1500]], 1, {}, ""), 30), sep="\\n")
    level  count
    info   3,000  ████████████████
    error  1,500  ████████
    """
    if not sheet.rows:
        return
    most = _LOOKED_AT if is_cut else sys.maxsize
    columns = list(zip(*sheet.rows, strict=True))
    numeric = list(map(are_numbers, columns))
    texts = [
        [in_full(name, value, most) for value in _told_apart(column)]
        for name, column in zip(sheet.names, columns, strict=True)
    ]
    heads = [cut(cell(name)) if is_cut else cell(name, most=most) for name in sheet.names]
    widths = [max(map(width_of, column)) for column in map(_with_head, heads, texts)]
    if is_cut:
        left = width - len(_GAP) * len(widths) - (_LEAST if sheet.bars is not None else -len(_GAP))
        fixed = [right or any(map(_is_whole, column)) for right, column in zip(numeric, columns, strict=True)]
        widths = _fitting(widths, fixed, left)
        heads = list(map(_cut_end, heads, widths))
        texts = [
            column if whole else apart(column, most) for column, whole, most in zip(texts, fixed, widths, strict=True)
        ]
    left = min(width - sum(widths) - len(_GAP) * len(widths), _BAR)
    bars = [""] * len(sheet.rows)
    if sheet.bars is not None and left >= _LEAST:
        counts = [count or 0 for count in columns[sheet.bars]]  # of nothing there is no share
        most = max(counts) or 1
        bars = [_GAP + _bar(count / most * left, blocks) for count in counts]
    for line, bar in zip([heads, *zip(*texts, strict=True)], ["", *bars], strict=True):
        yield (aligned(line, widths, numeric, _GAP, is_cut=False) + bar).rstrip()


def _told_apart(column: Sequence[Any]) -> Sequence[Any]:
    """The values; text that spells a number in quotes where there are numbers, too.

    >>> _told_apart([200, "200", "ok"]), _told_apart(["200", "ok"])
    ([200, '"200"', 'ok'], ['200', 'ok'])
    """
    if not any(map(is_number, column)):
        return column
    return [f'"{value}"' if isinstance(value, str) and number_of(value) is not None else value for value in column]


def _with_head(head: str, texts: list[str]) -> list[str]:
    return [head, *texts]


def _is_whole(value: Any) -> bool:
    return isinstance(value, (Spark, State, Code))


def _fitting(widths: Sequence[int], fixed: Sequence[bool], room: int) -> list[int]:
    """The widths of columns, of which the widest that are not fixed give way until all have room."""
    found = list(widths)
    while sum(found) > room:
        wide = [at for at, width in enumerate(found) if not fixed[at] and width > _NARROWEST]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def apart(texts: Sequence[str], width: int) -> list[str]:
    """Texts in a column of this width, cut at the end; in the middle, if some would look the same; whole, if they still
    would.

    >>> apart(["from 10.0.0.131", "from 10.0.0.132"], 14), apart(["aa tie xx", "aa toe xx"], 5)
    (['from 1….0.131', 'from 1….0.132'], ['aa tie xx', 'aa toe xx'])
    """
    different = set(texts)
    for shortened in (_cut_end, _cut_middle):
        shown = {text: shortened(text, width) for text in different}
        times = Counter(shown.values())
        if len(times) == len(different):
            break
    return [shown[text] if times[shown[text]] == 1 else text for text in texts]


def _cut_end(text: str, width: int) -> str:
    return text if width_of(text) <= width else f"{_start(text, width - 1)}…"


def _cut_middle(text: str, width: int) -> str:
    half = (width - 1) // 2
    return text if width_of(text) <= width else f"{_start(text, half)}…{_start(text[::-1], half)[::-1]}"


def _start(text: str, width: int) -> str:
    """As much of the beginning as has room."""
    start = text[:width]  # a character may take no room: then there is less than could be
    while width_of(start) > width:
        start = start[:-1]
    return start


def _bar(length: float, blocks: bool) -> str:
    if not blocks:
        return "#" * round(length)
    whole, part = divmod(round(8 * length), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "" if whole or not length else _EIGHTHS[1])


def as_told(value: Any) -> str:
    """A value within a sentence: short, and text in quotes where it would look like a value of another kind, or none.

    >>> as_told("web"), as_told(200), as_told("200"), as_told(""), as_told(True), as_told("true")
    ('web', '200', '"200"', '""', 'true', '"true"')
    """
    text = short("value", value)
    is_odd = isinstance(value, str) and (not value or value in _WORDS or number_of(value) is not None)
    return f'"{text}"' if is_odd else text


def short(name: str, value: Any) -> str:
    """A value of the column with this name."""
    return in_full(name, value) if _is_whole(value) else cut(in_full(name, value))


def in_full(name: str, value: Any, most: int = _LOOKED_AT) -> str:
    """The same, up to so many characters of the value."""
    if isinstance(value, Spark):
        return spark_text(value.counts)
    if isinstance(value, (State, Code)):
        return value.text
    if name == "share" and value is not None:
        return f"{100 * value:.1f} %"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < _GROUPED else cell(value)
    if isinstance(value, float):
        return number_text(value)
    return "" if value is None and name != "value" else cell(value, most=most)


def spark_text(counts: Sequence[float]) -> str:
    """A character for each count, whose height shows it; a blank for none.

    >>> spark_text([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(counts, default=0)
    return "".join(_HEIGHTS[-int(-8 * count // most)] if count > 0 else " " for count in counts)


def number_text(value: float) -> str:
    """A number in its significant digits.

    >>> number_text(12345.6789), number_text(0.000123456), number_text(2.0)
    ('12,345.679', '0.0001235', '2')
    """
    if 1 <= abs(value) < 1e15:
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:.4g}"


def are_numbers(values: Iterable[Any]) -> bool:
    """Whether all of them are numbers or None."""
    return all(value is None or is_number(value) for value in values)


def first_rows(sheet: Sheet, most: int) -> Sheet:
    """The sheet with its first rows; its footer counts the others."""
    left = len(sheet.rows) - most
    if left <= 0:
        return sheet
    return sheet._replace(rows=sheet.rows[:most], footer=f"{sheet.footer}; {left:,} more rows not shown")


def cut(text: str) -> str:
    """The text, cut to the width of a cell."""
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def without_charts(sheet: Sheet) -> Sheet:
    """The sheet without columns of small charts. Of one without rows it is not known which these are."""
    charts = [any(isinstance(row[at], Spark) for row in sheet.rows) for at in range(len(sheet.names))]
    if not any(charts):
        return sheet
    kept = [at for at, is_chart in enumerate(charts) if not is_chart]
    return sheet._replace(names=[sheet.names[at] for at in kept], rows=[[row[at] for at in kept] for row in sheet.rows])


def aligned(cells: Iterable[str], widths: Sequence[int], right: Sequence[bool], gap: str, is_cut: bool = True) -> str:
    """The cells of a row in columns of these widths, cut where they are longer, with the gap between them.

    >>> aligned(["long text", "5"], [6, 3], [False, True], "  ")
    'long …    5'
    """
    padded = []
    for text, width, is_right in zip(cells, widths, right, strict=True):
        shown = _cut_end(text, width) if is_cut else text
        blanks = " " * (width - width_of(shown))
        padded.append(blanks + shown if is_right else shown + blanks)
    return gap.join(padded)


def width_of(text: str) -> int:
    """Columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in "WF" else 1 for char in text)
