"""Results as pictures, by matplotlib: labelled, told apart in print too, and no text of a record read as markup.

Values are texts of records: matplotlib would read a `$` as a formula, and a leading `_` as a name to leave out. Fonts,
grid and background are those that matplotlib is set to, so a style that is chosen counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from jitdb.display.cells import cell
from jitdb.display.sheet import cut, number_text

if TYPE_CHECKING:
    from datetime import datetime

_BARS: Final = 30  # of values; the others are one more
# Told apart by those who see fewer colors, and as greys (Okabe and Ito).
_COLORS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#6b4fa0")
_OTHERS: Final = "#9a9a9a"
_PLAIN: Final = {"parse_math": False}
_INCHES: Final = 8.0
_LINE: Final = 70  # characters above a picture
_DAY: Final = 1.0  # of matplotlib's dates


def bars_plot(ax: Any, rows: Sequence[tuple[Any, int]], others: int, label: str, title: str) -> Any:
    """A bar for each value and its count, the first on top; `others`: how many have a value without a row.

    This, as each plot, is drawn on `ax` or on a new figure, and gives the matplotlib Axes.
    """
    left = others + sum(count for _, count in rows[_BARS:])
    names = [cut(_name(value)) for value, _ in rows[:_BARS]]
    counts = [count for _, count in rows[:_BARS]]
    colors = [_COLORS[0]] * len(names)
    if left:
        names, counts, colors = [*names, "others"], [*counts, left], [*colors, _OTHERS]
    ax = _axes(ax, 0.28 * len(names) + 1.2)
    places = range(len(names))
    bars = ax.barh(places, counts, color=colors, height=0.75)
    ax.bar_label(bars, labels=[f"{count:,}" for count in counts], padding=3, fontsize="small")
    ax.set_yticks(places, labels=names, **_PLAIN)
    ax.invert_yaxis()
    ax.margins(x=0.12, y=0.01)
    ax.set_ylabel(label, **_PLAIN)
    _counted_on(ax, "x")
    return _titled(ax, title)


def _name(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_name, value))
    return '""' if value == "" else cell(value)


def columns_plot(ax: Any, counts: Sequence[int], edges: Sequence[float], label: str, title: str) -> Any:
    """A column for each bin, as wide as it is; one without an end is as wide as its neighbour."""
    ax = _axes(ax, 4.0)
    if counts:
        ax.stairs(counts, edges, fill=True, color=_COLORS[0], edgecolor="white", linewidth=0.6)
        ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel(label, **_PLAIN)
    ax.xaxis.set_major_formatter(lambda number, _: number_text(number))
    _counted_on(ax, "y")
    return _titled(ax, title)


def steps_plot(
    ax: Any,
    starts: Sequence[datetime],
    series: Sequence[tuple[str, Sequence[int]]],
    named: int,
    by: str | None,
    title: str,
) -> Any:
    """A column for each step of time, as wide as it is, of several series one upon the other.

    series: a name and the counts of each; behind the first `named` ones come those without a value of their own
    by:     what the legend is called; without, there is none
    """
    from matplotlib import dates

    ax = _axes(ax, 4.0)
    if starts:
        zone = starts[0].tzinfo
        edges = list(dates.date2num(starts))
        widths = [after - before for before, after in pairwise(edges)]
        edges.append(edges[-1] + (widths[-1] if widths else _DAY))
        base = [0] * len(starts)
        handles, names = [], []
        for number, (name, counts) in enumerate(series):
            top = [low + count for low, count in zip(base, counts, strict=True)]
            color = _COLORS[number % len(_COLORS)] if number < named else _OTHERS
            drawn = ax.stairs(top, edges, baseline=base, fill=True, facecolor=color, **_rims(len(starts)))
            handles.append(drawn)
            names.append(name)
            base = top
        locator = dates.AutoDateLocator(tz=zone)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=zone))
        ax.set_xlim(edges[0], edges[-1])
        ax.set_ylim(bottom=0)
        ax.set_xlabel(f"time ({zone})", **_PLAIN)
        if by is not None:
            _legend(ax, handles, names, by)
    _counted_on(ax, "y")
    return _titled(ax, title)


def _rims(columns: int) -> dict[str, Any]:
    """Lines between columns that are wide enough for them."""
    return {"edgecolor": "white", "linewidth": 0.5} if columns <= 120 else {"linewidth": 0}


def _axes(ax: Any, height: float) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(_INCHES, height), layout="constrained")[1]


def _legend(ax: Any, handles: Sequence[Any], names: Sequence[str], title: str) -> None:
    legend = ax.legend(
        handles,
        [f"series {number}" for number in range(len(names))],
        title=title,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    legend.get_title().set_parse_math(False)


def _counted_on(ax: Any, axis: str) -> None:
    """The axis that says how many."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    counted = ax.xaxis if axis == "x" else ax.yaxis
    counted.set_major_locator(MaxNLocator(integer=True, nbins=6))
    counted.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    (ax.set_xlabel if axis == "x" else ax.set_ylabel)("records")
    ax.grid(axis=axis, alpha=0.3, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _titled(ax: Any, title: str) -> Any:
    from textwrap import fill

    ax.set_title(fill(title, _LINE), loc="left", fontsize="medium", **_PLAIN)
    return ax
