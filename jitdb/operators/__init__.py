"""What am I asking? Questions as immutable values: operations, combinators, modifiers, consumers.

    from jitdb.operators import query, from_db, where, and_, equal, descending, paginate, to_result

    page = query(
        from_db(db),
        where(and_(equal("value.content.type", "post"), equal("value.author", alice))),
        descending(), paginate(10), to_result(),
    )

or, of the same value, `db.query(field("value.content.type") == "post").descending().page(10)`.

| room or file     | what is in it                                                                  |
| ---------------- | ------------------------------------------------------------------------------ |
| nodes/           | what a question is made of: an operator a file (table: all that can be written) |
| question         | the value: operation, database and settings; what is asked of a database       |
| summaries/       | what is asked of all records together, and what comes back                     |
| tasks/           | operations that are made, or grow, when they are asked                         |
| running/         | asking: at once, in a loop, in an async one, live                              |
| queries          | the value with methods                                                         |
| chain            | the same value in the JavaScript module's words: `query(from_db(db), …)`        |
| text/            | the same operations as expressions and as JSON; taken: whatever asks takes text |
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which is large
if TYPE_CHECKING:
    from typing import Any

    from jitdb.operators.chain import (
        as_of,
        as_offsets,
        as_raw,
        batch,
        count,
        count_distinct,
        debug,
        dedup,
        descending,
        difference,
        facets,
        from_db,
        group_count,
        histogram,
        live,
        paginate,
        patterns,
        query,
        select,
        share,
        slow_absent,
        slow_equal,
        slow_includes,
        slow_predicate,
        sort_by,
        sort_by_arrival,
        start_from,
        stats,
        stats_by,
        timeline,
        to_arrow,
        to_async_iter,
        to_awaitable,
        to_callback,
        to_iter,
        to_pandas,
        to_polars,
        to_result,
        to_set,
        value_counts,
        where,
    )
    from jitdb.operators.nodes.anywhere import anywhere
    from jitdb.operators.nodes.compare import between, declared_sequence, declared_time, gt, gte, isin, lt, lte
    from jitdb.operators.nodes.equal import absent, equal, includes
    from jitdb.operators.nodes.field import field
    from jitdb.operators.nodes.fits import fits
    from jitdb.operators.nodes.operation import Operation, everything
    from jitdb.operators.nodes.positions import offsets, seqs
    from jitdb.operators.nodes.predicate import predicate
    from jitdb.operators.nodes.text_match import contains, ends_with, like, matches, starts_with
    from jitdb.operators.queries import Query
    from jitdb.operators.tasks.deferred import deferred
    from jitdb.operators.tasks.live_seqs import live_seqs
    from jitdb.operators.text.expression import format_expression, parse_expression
    from jitdb.operators.text.json import from_json, to_json
    from jitdb.operators.text.taken import and_, not_, or_

__all__ = [
    "Operation", "Query", "absent", "and_", "anywhere", "as_of", "as_offsets", "as_raw", "batch", "between",
    "contains", "count", "count_distinct", "debug", "declared_sequence", "declared_time", "dedup", "deferred",
    "descending", "difference", "ends_with", "equal", "everything", "facets", "field", "fits", "format_expression",
    "from_db", "from_json", "group_count", "gt", "gte", "histogram", "includes", "isin", "like", "live", "live_seqs",
    "lt", "lte", "matches", "not_", "offsets", "or_", "paginate", "parse_expression", "patterns", "predicate", "query",
    "select", "seqs", "share", "slow_absent", "slow_equal", "slow_includes", "slow_predicate", "sort_by",
    "sort_by_arrival", "start_from", "starts_with", "stats", "stats_by", "timeline", "to_arrow", "to_async_iter",
    "to_awaitable", "to_callback", "to_iter", "to_json", "to_pandas", "to_polars", "to_result", "to_set",
    "value_counts", "where",
]  # fmt: skip

# Where each name is: it is imported when it is first used.
_HOMES = {
    "chain": (
        "as_of", "as_offsets", "as_raw", "batch", "count", "count_distinct", "debug", "dedup", "descending",
        "difference", "facets", "from_db", "group_count", "histogram", "live", "paginate", "patterns", "query",
        "select", "share", "slow_absent", "slow_equal", "slow_includes", "slow_predicate", "sort_by",
        "sort_by_arrival", "start_from", "stats", "stats_by", "timeline", "to_arrow", "to_async_iter", "to_awaitable",
        "to_callback", "to_iter", "to_pandas", "to_polars", "to_result", "to_set", "value_counts", "where",
    ),
    "nodes.field": ("field",),
    "nodes.fits": ("fits",),
    "nodes.compare": ("between", "declared_sequence", "declared_time", "gt", "gte", "isin", "lt", "lte"),
    "nodes.equal": ("absent", "equal", "includes"),
    "nodes.operation": ("Operation", "everything"),
    "nodes.positions": ("offsets", "seqs"),
    "nodes.predicate": ("predicate",),
    "nodes.anywhere": ("anywhere",),
    "nodes.text_match": ("contains", "ends_with", "like", "matches", "starts_with"),
    "queries": ("Query",),
    "tasks.deferred": ("deferred",),
    "tasks.live_seqs": ("live_seqs",),
    "text.expression": ("format_expression", "parse_expression"),
    "text.json": ("from_json", "to_json"),
    "text.taken": ("and_", "not_", "or_"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        home = next(home for home, names in _HOMES.items() if name in names)
        found = globals()[name] = getattr(import_module(f"jitdb.operators.{home}"), name)
        return found
    import sys

    from jitdb.common import js_aliases

    said = js_aliases.no_such_name("jitdb.operators", name, js_aliases.OPERATORS, __all__)
    # Of `from jitdb.operators import startFrom` Python keeps the words of an ImportError only.
    if name in js_aliases.OPERATORS and sys._getframe(1).f_code.co_name == "_handle_fromlist":
        raise ImportError(said, name=__name__)
    raise AttributeError(said, name=name)


def __dir__() -> list[str]:
    return __all__
