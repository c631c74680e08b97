"""`jitdb stats`: what the numbers of a field are like."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Final

from jitdb.cli.commands.counting.asked import asked_query, note_no_numbers, note_nothing, note_others
from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush
from jitdb.cli.output.sheet import show_sheet
from jitdb.cli.parser import Once, Parser
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.asked import QUANTILES
from jitdb.operators.summaries.sheets import sheet_of

if TYPE_CHECKING:
    pass

_ROWS: Final = 20  # of a table, unless --limit says otherwise


def _shares(text: str) -> list[float]:
    """What --quantiles says."""
    try:
        shares = [float(share) for share in text.split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise ArgumentTypeError(f"shares from 0 to 1, such as 0.5,0.99, not {text}")
    return shares


PARSER = Parser(
    "stats",
    "LOG FIELD [EXPR] [options]",
    "Tell what the numbers of a field are like: how many, the smallest and the largest, sum, mean, standard deviation "
    "and quantiles. Sums are exact; a quantile is a number that is there.",
    [
        ("stats events.log status", "of all records"),
        ("stats events.log status 'level == \"error\"'", "of those that match"),
        ("stats events.log status --by user.name", "for each value of another field"),
        ("stats events.log ms --by service --quantiles 0.5,0.99", "with these quantiles"),
    ],
)
PARSER.take("log")
PARSER.take(
    "expressions", metavar="FIELD [EXPR]", help="the field, such as status; then which records, all when left out"
)
PARSER.add_argument("--by", metavar="PATH", action=Once, help="another field: a row for each of its values")
PARSER.add_argument(
    "--quantiles", metavar="SHARES", type=_shares, default=QUANTILES, help="which, such as 0.5,0.9,0.99"
)
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
            stats = query.stats(path, quantiles=options.quantiles)
            sheet, numbers, total = sheet_of(stats), stats.count, stats.total
        else:
            groups = query.stats_by(path, by, limit=limit, quantiles=options.quantiles)
            sheet, numbers, total = sheet_of(groups), sum(row.stats.count for row in groups), groups.total
        show_sheet(sheet, options.format, options.quiet)
        flush()
        nobody = [by] if by is not None and not groups.rows else []
        note_nothing(db, operation, options, total, nobody)
        if total and not numbers and not nobody:
            note_no_numbers(db, path, options)
        elif numbers < total:
            note_others(db, path, options)
    return 0
