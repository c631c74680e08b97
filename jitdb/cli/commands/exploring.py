"""The commands that say what is in records before one knows what to ask: facets, diff."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.expressions import read_expression, within
from jitdb.cli.failures import UsageError
from jitdb.cli.options import READING, SUMMARY, fields, number, option
from jitdb.cli.output.notes import note_counted, note_missing, note_unknown_columns
from jitdb.cli.parser import Show, question
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.exploring.difference import FINDINGS
from jitdb.operators.summaries.exploring.facets import VALUES

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators.queries import Query
    from jitdb.operators.summaries.exploring.difference import Difference
    from jitdb.operators.summaries.exploring.facets import Facets

_FIELDS = option("--fields PATHS", "only these fields: a.b,c.d (default: those worth it)", type=fields)


@question(
    "LOG [EXPR] [options]",
    "Show what is in the records: of each field the most frequent values, or how large its numbers are. A sample of "
    "records says which fields are worth it: those whose values are nearly all different, such as ids, are only named.",
    [
        ("facets events.log", "of all records"),
        ("facets events.log 'level == \"error\"' --limit 3", "of those that match, with three values each"),
        ("facets events.log --fields service,ms", "of these fields"),
    ],
    *("log", "expressions"),
    _FIELDS,
    option("-n, --limit N", f"at most N values of a field (default: {VALUES})", type=number(1), default=VALUES),
    *SUMMARY,
    *READING,
)
def facets(db: AnyDatabase, options: Namespace, show: Show) -> Facets:
    found = _asked(db, options).facets(fields=options.fields or None, limit=options.limit)
    show(found)
    _note_nothing(db, options, found.total)
    return found


@question(
    "LOG EXPR [options]",
    "Show what is different about the records that match: values, and intervals of numbers, that they have more often "
    "than all others, or than those of another question. Shares are exact; differences that chance could explain are "
    "not shown.",
    [
        ("diff events.log 'status >= 500'", "what the failing ones have in common"),
        ("diff events.log 'ms > 200' --against 'service == \"checkout\"'", "against the others of one service"),
        ("diff events.log 'level == \"error\"' --since 2h", "both of the last two hours"),
    ],
    *("log", "expressions"),
    option("--against EXPR", "compare with the other records of which this is true (default: with all others)"),
    _FIELDS,
    option("-n, --limit N", f"at most N findings (default: {FINDINGS})", type=number(1), default=FINDINGS),
    *SUMMARY,
    *READING,
)
def diff(db: AnyDatabase, options: Namespace, show: Show) -> Difference:
    if options.written is None:
        raise UsageError(
            "diff: which records are different? The expression is missing",
            f"jitdb diff {options.log or 'LOG'} 'level == \"error\"'",
        )
    against = within(read_expression(options.against) if options.against else None, options)
    found = _asked(db, options).difference(against=against, fields=options.fields or None, limit=options.limit)
    show(found)
    _note_nothing(db, options, found.matching)
    if options.against:
        note_missing(db, read_expression(options.against), options, is_empty=not found.others)
    return found


def _asked(db: AnyDatabase, options: Namespace) -> Query:
    query = db.query(options.operation)
    return query if options.as_of is None else query.as_of(options.as_of)


def _note_nothing(db: AnyDatabase, options: Namespace, total: int) -> None:
    note_counted(db, options.operation, options, is_empty=not total)
    lack = db.evidence().lack
    note_unknown_columns(db, filter(lack, map(partial(as_path, "--fields"), options.fields or ())), options)
