"""The values of each field worth it, and how often they come; of numbers, how large they are.

A field that the question names is counted in what the question is without what it says of this field alone, so that its
other values stay in sight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from jitdb.common.paths import Path, format_path
from jitdb.explorer.refining import Condition, conditions, of_others, values_named
from jitdb.explorer.view import View
from jitdb.explorer.wire import wired
from jitdb.operators.completing import quoted
from jitdb.operators.nodes.compare import gt
from jitdb.operators.nodes.equal import equal
from jitdb.operators.nodes.levels import CompareLevel
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.summaries.exploring.facet_fields import FacetFields
from jitdb.operators.summaries.exploring.facets import Facet, Spread

Part = dict[str, Any]

SHOWN: Final = 5  # values of a field
_NAMED: Final = 50  # values that a question names, and that are shown beside these


def needed(fields: FacetFields) -> list[Operation]:
    """Operations that are answered from the indexes that the facets take."""
    return [*map(of_all_values, fields.values), *(gt(0, path) for path in fields.numbers)]


def of_all_values(path: Path) -> Operation:
    """An operation that is answered from the index of all values of a field, from which they are counted soonest."""
    return CompareLevel(path, "gte", "emerg")


def facets(view: View) -> Iterator[Part]:
    """A part for each field, but those with so many values that counting them takes longer than all else: these are
    counted when they are asked for by name. And what they leave unsaid.
    """
    said = conditions(view.asked.where)
    sampled = view.session.sampled
    known, (*batches, many) = sampled.facet_fields, sampled.facet_batches
    named = {path for path in known.values if any(set(each.means.all_paths()) == {path} for each in said)}
    yield from (values(view, path, SHOWN, said) for path in known.order if path in named)
    about: Part = {
        "part": "facets", "order": list(map(format_path, known.order)), "unique": list(map(format_path, known.unique)),
        "many": [format_path(path) for path in many if path not in named], "same": [],
    }  # fmt: skip
    left = sum(map(len, batches))
    for paths in batches:
        other = set(known.order) - set(paths) | named
        found = view.query().facets(fields=known.without(other), limit=SHOWN)  # type: ignore[arg-type]
        yield from (facet_of(row, found.total) for row in found)
        about["same"] += [[format_path(path), wired(value)] for path, value in found.same.items()]
        left -= len(paths)
        yield {**about, "more": left}


def facet_of(row: Facet, total: int) -> Part:
    """A field as the page has it."""
    about = {"part": "facet", "field": format_path(row.path), "total": total, "missing": total - row.count}
    if row.spread is not None:
        return {**about, "kind": "numbers", **spread_of(row.spread)}
    shown = [[*wired(value), count] for value, count in row.values]
    return {**about, "kind": "values", "distinct": row.distinct, "values": shown, "on": [], "off": []}


def spread_of(spread: Spread) -> Part:
    """Numbers as the page has them: each bar with its bounds."""
    low, high, many = float(spread.low), float(spread.high), len(spread.bars)
    edges = [
        low * (high / low) ** (at / many) if spread.is_log else low + (high - low) * at / many for at in range(many)
    ]
    bars = [list(bar) for bar in zip(edges, [*edges[1:], high], spread.bars, strict=True)]
    quantiles = [["p50", spread.median], ["p95", spread.p95], ["p99", spread.p99]]
    scale = "log" if spread.is_log else ""
    return {"low": spread.low, "high": spread.high, "quantiles": quantiles, "bars": bars, "scale": scale}


def values(view: View, path: Path, most: int, said: list[Condition] | None = None) -> Part:
    """The most frequent values of a field, in the records that the question has without what it says of this field."""
    said = conditions(view.asked.where) if said is None else said
    others, named = of_others(said, path), values_named(said, path)
    counts = view.query(where=others).value_counts(path, limit=most)
    shown = [[*wired(row.value), row.count] for row in counts]
    there = [equal(path, row.value) for row in counts]
    for value in (*named.on, *named.off)[:_NAMED]:  # those that the question names are seen, however rare
        is_it = equal(path, value)
        if is_it not in there:
            shown.append([*wired(value), view.query(where=others).where(is_it).count()])
    return {
        "part": "facet", "kind": "values", "field": format_path(path), "distinct": counts.distinct, "values": shown,
        "missing": counts.missing, "total": counts.total, "on": list(map(quoted, named.on)),
        "off": list(map(quoted, named.off)),
    }  # fmt: skip


def numbers(view: View, path: Path) -> Part:
    """How large the numbers of a field are."""
    found = view.query().facets(fields=[path])
    row = next(iter(found), None)
    spread = {} if row is None or row.spread is None else spread_of(row.spread)
    missing = found.total - (row.count if row is not None else 0)
    return {
        "part": "facet",
        "kind": "numbers",
        "field": format_path(path),
        "total": found.total,
        "missing": missing,
        **spread,
    }
