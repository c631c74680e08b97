"""Results as rows, for tables of text, CSV and JSON; and as what a person sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import singledispatch
from typing import Any, Final

from jitdb.common.paths import format_path
from jitdb.common.words import counted
from jitdb.display.cells import cell
from jitdb.display.parts import Chart, Display, Folded, Part
from jitdb.display.sheet import Code, Sheet, Spark, cut, first_rows, number_text
from jitdb.operators.summaries.aggregations import QUANTILES
from jitdb.operators.summaries.fields import Fields
from jitdb.operators.summaries.results import GroupCounts, Histogram, Stats, StatsBy, Timeline, ValueCounts

_SHARES: Final = (0.5, 0.95)  # quantiles of a row
_PARTS: Final = ("min", "max", "sum", "mean", "stddev")
_EXAMPLES: Final = 30  # characters of an example
_ROWS: Final = 25  # that a person sees of counts
_STEPS: Final = 40  # and of a timeline or a histogram
_MOST_COLUMNS: Final = 400  # of a chart


@singledispatch
def sheet_of(found: Any) -> Sheet:
    """The rows of a result. Of stats by another field the quantiles are the median and p95, or those asked for."""
    raise NotImplementedError(type(found).__name__)


@sheet_of.register(ValueCounts)
@sheet_of.register(GroupCounts)
def _(found: ValueCounts | GroupCounts) -> Sheet:
    several = isinstance(found, GroupCounts)
    names = list(map(format_path, found.paths if isinstance(found, GroupCounts) else (found.path,)))
    rows: list[list[Any]] = []
    for row, share in zip(found.rows, found.shares, strict=True):
        held = list(row[0]) if several else [row[0]]
        rows.append([*held, row.count, share])
    about = {
        "fields" if several else "field": names if several else names[0],
        "total": found.total,
        "missing": found.missing,
        "distinct": found.distinct,
    }
    # A field that is called as one of ours stands in quotes.
    heads = [*(f"`{name}`" if name in ("count", "share") else name for name in names), "count", "share"]
    return Sheet(heads, rows, len(names), about, _counts_footer(found, names))


def _counts_footer(counts: ValueCounts | GroupCounts, names: list[str]) -> str:
    told = [counted(counts.total, "record", "records")]
    what = ("value", "values") if len(names) == 1 else ("group of values", "groups of values")
    told.append(counted(counts.distinct, *what))
    if counts.others:
        told.append(f"{counts.others:,} with other values")
    if counts.missing:
        told.append(f"{counts.missing:,} without {' or '.join(f'`{name}`' for name in names)}")
    return "; ".join(told)


@sheet_of.register(Histogram)
def _(found: Histogram) -> Sheet:
    rows: list[list[Any]] = [[_plain(row.low), _plain(row.high), row.count] for row in found]
    about = {
        "field": format_path(found.path), "total": found.total, "missing": found.missing, "below": found.below,
        "above": found.above,
    }  # fmt: skip
    told = [counted(found.total, "record", "records")]
    told += [f"{count:,} {where}" for count, where in ((found.below, "below"), (found.above, "above")) if count]
    if found.missing:
        told.append(f"{found.missing:,} without a number in `{format_path(found.path)}`")
    return Sheet(["from", "below", "count"], rows, 2, about, "; ".join(told))


def _plain(edge: float) -> int | float:
    return int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge


@sheet_of.register(Timeline)
def _(found: Timeline) -> Sheet:
    names = ["time", "count", *(cell(value) for value in found.values)]
    others = _others(found)
    starts = start_texts(found)
    rows: list[list[Any]] = []
    for number, row in enumerate(found):
        rest = [others[number]] if others else []
        rows.append([starts[number], row.count, *row.counts, *rest])
    about: dict[str, Any] = {"every": found.every, "total": found.total, "missing": found.missing}
    if found.by is not None:
        about["by"] = format_path(found.by)
    told = [counted(found.total, "record", "records"), f"{counted(len(found), 'step', 'steps')} of {found.every}"]
    if found.missing:
        told.append(f"{found.missing:,} without a time")
    return Sheet([*names, *(["others"] if others else [])], rows, 1, about, "; ".join(told))


def _others(line: Timeline) -> list[int]:
    """For each step, how many records have none of the values; nothing where there are none anywhere."""
    rest = [row.count - sum(row.counts) for row in line] if line.by is not None else []
    return rest if any(rest) else []


def series_of(line: Timeline) -> list[tuple[str, Sequence[int]]]:
    """A name and a count for each step: of all records, or of each value and of those that have none of them."""
    if line.by is None:
        return [("records", line.counts)]
    named = [(cut(cell(value)), [row.counts[at] for row in line]) for at, value in enumerate(line.values)]
    others = _others(line)
    return [*named, *([("others", others)] if others else [])]


def start_texts(line: Timeline) -> list[str]:
    """Where each step begins, as RFC 3339 has it, no longer than it takes."""
    if all(row.start.time() == datetime.min.time() for row in line):
        return [row.start.strftime("%Y-%m-%d").rjust(10, "0") for row in line]
    return [
        row.start.isoformat(timespec="auto" if row.start.microsecond else "seconds").replace("+00:00", "Z")
        for row in line
    ]


@sheet_of.register(Stats)
def _(found: Stats) -> Sheet:
    rows: list[list[Any]] = [["count", found.count]]
    rows += [[name, getattr(found, name)] for name in _PARTS]
    rows += [[share_name(share), value] for share, value in found.quantiles]
    about = {"field": format_path(found.path), "total": found.total, "missing": found.missing}
    missing = f"; {found.missing:,} without a number" if found.missing else ""
    footer = counted(found.total, "record", "records") + missing
    return Sheet(["", format_path(found.path)], rows if found.count else rows[:1], None, about, footer)


@sheet_of.register(StatsBy)
def _(found: StatsBy) -> Sheet:
    asked = next((tuple(share for share, _ in row.stats.quantiles) for row in found if row.stats.count), QUANTILES)
    shares = _SHARES if asked == QUANTILES else asked
    rows = [
        [
            row.value, row.count, row.stats.count, *(getattr(row.stats, name) for name in _PARTS),
            *(dict(row.stats.quantiles).get(share) for share in shares),
        ]
        for row in found
    ]  # fmt: skip
    by = format_path(found.by)
    about = {"field": format_path(found.path), "by": by, "total": found.total, "missing": found.missing}
    told = [counted(found.total, "record", "records"), counted(found.distinct, "value", "values")]
    if found.missing:
        told.append(f"{found.missing:,} without `{by}`")
    names = [by, "records", "count", *_PARTS, *map(share_name, shares)]
    return Sheet(names, rows, None, about, "; ".join(told))


def share_name(share: float) -> str:
    """What a quantile is called.

    >>> share_name(0.5), share_name(0.99), share_name(0.999)
    ('median', 'p99', 'p99.9')
    """
    return "median" if share == 0.5 else f"p{100 * share:.10g}"


@sheet_of.register(Fields)
def _(found: Fields) -> Sheet:
    rows = [
        [format_path(field.path), ", ".join(field.kinds), field.count / found.total, examples_text(field.examples)]
        for field in found
    ]
    footer = f"{counted(found.total, 'record', 'records')} looked at"
    return Sheet(["field", "kinds", "share", "examples"], rows, None, {"total": found.total}, footer)


def examples_text(examples: Sequence[Any]) -> str:
    """Some values in one line."""
    shown = map(cell, examples)
    return ", ".join(text if len(text) <= _EXAMPLES else text[: _EXAMPLES - 1] + "…" for text in shown)


# --- what a person sees ----------------------------------------------------------------------------------------------


@singledispatch
def display_of(found: Any) -> Display:
    """What there is to see of a result."""
    return Display("", "", [first_rows(sheet_of(found), _ROWS)])


@display_of.register(ValueCounts)
@display_of.register(GroupCounts)
def _(found: ValueCounts | GroupCounts) -> Display:
    sheet = first_rows(sheet_of(found), _ROWS)
    empty = Code('""')  # a blank would look like none
    return Display(
        "", "", [sheet._replace(rows=[[empty if value == "" else value for value in row] for row in sheet.rows])]
    )


@display_of.register(Histogram)
def _(found: Histogram) -> Display:
    rows = first_rows(sheet_of(found), _STEPS)
    labels = [f"{number_text(row.low)} to {number_text(row.high)}" for row in found]
    return _with_chart(labels, [("records", found.counts)], rows)


@display_of.register(Timeline)
def _(found: Timeline) -> Display:
    """A chart; by another field, each of its values beside its own small one."""
    labels = start_texts(found)
    series = series_of(found)
    if found.by is None:
        return _with_chart(labels, series, first_rows(sheet_of(found), _STEPS))
    rows = [[name, sum(counts), Spark(_thinned(counts))] for name, counts in series]
    sheet = Sheet([format_path(found.by), "count", ""], rows, 1, {}, sheet_of(found).footer)
    return _with_chart(labels, series, sheet)


def _with_chart(labels: Sequence[str], series: Sequence[tuple[str, Sequence[int]]], sheet: Sheet) -> Display:
    if not 1 < len(labels) <= _MOST_COLUMNS:
        return Display("", "", [sheet])
    below: Part = Folded("as a table", sheet) if len(series) == 1 else sheet
    return Display("", "", [Chart(labels, series), below])


def _thinned(counts: Sequence[int], most: int = 40) -> list[int]:
    """At most so many numbers: the sums of neighbours."""
    step = -(-len(counts) // most) or 1
    return [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
