"""`jitdb stats`: what the numbers of a field are like."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from jitdb.cli.commands.counting.asked import asked_query, note_no_numbers, note_nothing
from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush
from jitdb.cli.output.sheet import show_sheet
from jitdb.cli.parser import Once, Parser
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.sheets import sheet_of

if TYPE_CHECKING:
    pass

_ROWS: Final = 20  # of a table, unless --limit says otherwise
_SHARES: Final = (0.5, 0.95)  # quantiles of a row
_PARTS: Final = ("min", "max", "sum", "mean", "stddev")

PARSER = Parser(
    "stats",
    "LOG FIELD [EXPR] [options]",
    "Tell what the numbers of a field are like: how many, the smallest and the largest, sum, mean, standard deviation "
    "and quantiles. Sums are exact; a quantile is a number that is there.",
    [
        ("stats events.log status", "of all records"),
        ("stats events.log status 'level == \"error\"'", "of those that match"),
        ("stats events.log status --by user.name", "for each value of another field"),
    ],
)
PARSER.take("log")
PARSER.take(
    "expressions", metavar="FIELD [EXPR]", help="the field, such as status; then which records, all when left out"
)
PARSER.add_argument("--by", metavar="PATH", action=Once, help="another field: a row for each of its values")
PARSER.take("limit", help=f"at most N of these values (default: {_ROWS} in a table, else all)")
PARSER.take("since", "until", "as_of", "summary_format", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print them."""
    field, operation = field_and_expression(options)
    path = as_path("stats", field)
    by = None if options.by is None else as_path("stats", options.by)
    limit = options.limit or (_ROWS if options.format == "table" else None)
    with asked(options) as db:
        query = asked_query(db, operation, options)
        if by is None:
            stats = query.stats(path)
            sheet, numbers, total = sheet_of(stats), stats.count, stats.total
        else:
            groups = query.stats_by(path, by, limit=limit)
            sheet, numbers, total = sheet_of(groups), sum(row.stats.count for row in groups), groups.total
        show_sheet(sheet, options.format, options.quiet)
        flush()
        nobody = [by] if by is not None and not groups.rows else []
        note_nothing(db, operation, options, total, nobody)
        if total and not numbers and not nobody:
            note_no_numbers(db, path, options)
    return 0
