"""The values of each field worth it, and how often they come; of numbers, how large they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from jitdb.common.paths import Path, format_path
from jitdb.errors import QueryError
from jitdb.explorer.refining import conditions, of_others, values_named
from jitdb.explorer.view import View
from jitdb.explorer.wire import wired
from jitdb.operators.completing import quoted
from jitdb.operators.nodes.compare import gt
from jitdb.operators.nodes.equal import equal
from jitdb.operators.nodes.operation import Operation

Part = dict[str, Any]

_SHOWN: Final = 5  # values of a field
_MOST: Final = 40  # fields
_BARS: Final = 30
_SKEWED: Final = 8  # times the median that the largest number is, from which on the bars are of a logarithmic scale


def chosen_paths(view: View) -> dict[Path, str]:
    """The fields of a view's facets."""
    found = view.session.facet_paths
    shown = [path for path, kind in found.items() if kind != "unique"][:_MOST]
    return {path: found[path] for path in shown}


def needed(found: dict[Path, str]) -> list[Operation]:
    """Operations that are answered from the indexes that the facets take."""
    return [gt(0, path) if kind == "numbers" else equal(path, "") for path, kind in found.items()]


def facets(view: View) -> Iterator[Part]:
    """A part for each field; at last what they leave unsaid."""
    same = []
    for path, kind in chosen_paths(view).items():
        try:
            part = numbers(view, path) if kind == "numbers" else values(view, path, _SHOWN)
        except QueryError:
            continue  # such as a field that cannot be told from another one
        if part.get("distinct") == 1 and not part["missing"] and not part["on"]:
            same.append([part["field"], part["values"][0]])
        elif part["total"] > part["missing"]:
            yield part
    unique = [format_path(path) for path, kind in view.session.facet_paths.items() if kind == "unique"]
    yield {"part": "facets", "same": same, "unique": unique}


def values(view: View, path: Path, most: int) -> Part:
    """The most frequent values of a field, in the records that the question has without what it says of this field."""
    found = conditions(view.asked.where)
    counts = view.query(where=of_others(found, path)).value_counts(path, limit=most)
    named = values_named(found, path)
    shown = [[*wired(row.value), row.count] for row in counts]
    return {
        "part": "facet", "kind": "values", "field": format_path(path), "distinct": counts.distinct, "values": shown,
        "missing": counts.missing, "total": counts.total, "on": list(map(quoted, named.on)),
        "off": list(map(quoted, named.off)),
    }  # fmt: skip


def numbers(view: View, path: Path) -> Part:
    """How many records have numbers of which size, and the usual quantiles."""
    query = view.query()
    stats = query.stats(path)
    low, high, median = (stats.min or 0, stats.max or 0, stats.median or 0) if stats.count else (0, 0, 0)
    is_log = low > 0 and high > _SKEWED * median
    bins = query.histogram(path, bins=_log_bins(low, high) if is_log else _BARS)
    return {
        "part": "facet", "kind": "numbers", "field": format_path(path), "total": stats.total, "missing": stats.missing,
        "low": low, "high": high, "quantiles": [[f"p{100 * share:g}", value] for share, value in stats.quantiles],
        "bars": [list(row) for row in bins], "scale": "log" if is_log else "",
    }  # fmt: skip


def _log_bins(low: float, high: float) -> list[float]:
    """Where bins begin, each so many times as wide as the one before, and where the last one ends: above `high`."""
    factor = (high / low) ** (1 / _BARS)
    edges = [low * factor**number for number in range(_BARS)]
    return [*edges, math.nextafter(max(high, edges[-1]), math.inf)]
