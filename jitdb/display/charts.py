"""Pictures in a page: SVG that needs no library and no script, and takes its colors from the page's theme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from jitdb.display.cells import printable
from jitdb.display.parts import Chart

COLORS: Final = 8  # of series that style.css knows
_WIDTH: Final = 640  # of a chart, in pixels of the page
_HEIGHT: Final = 130  # of its columns
_TOP: Final = 16  # above them, for the largest count
_BOTTOM: Final = 20  # below, for labels
_CHARACTER: Final = 6.5  # pixels of a label's, about
_GAP: Final = 14  # between labels
_BAR: Final = 140  # pixels of the longest bar
_SPARK: Final = (120, 18)


def bar(share: float) -> str:
    """A bar of this part of the longest one."""
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
    """Columns with the largest count and some labels; each tells its count where the pointer rests on it."""
    totals = [sum(counts) for counts in zip(*(counts for _, counts in part.series), strict=True)]
    most = max(totals, default=0)
    if not most:
        return ""
    step = _WIDTH / len(totals)
    drawn = []
    for at, label in enumerate(part.labels):
        below = 0
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
    """As many as have room, the first among them, each at the left edge of its column."""
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
