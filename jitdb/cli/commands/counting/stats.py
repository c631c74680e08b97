"""`jitdb stats`: what the numbers of a field are like."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.commands.counting.counted_question import Question
from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING, SUMMARY
from jitdb.cli.output.sheet import TABLE_ROWS, show_result
from jitdb.cli.parser import Once, Parser
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.summary import QUANTILES

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.operators.summaries.stats import Stats, StatsBy


def _shares(text: str) -> list[float]:
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
PARSER.take("log", "field_and_expression")
PARSER.add_argument("--by", metavar="PATH", action=Once, help="another field: a row for each of its values")
PARSER.add_argument(
    "--quantiles", metavar="SHARES", type=_shares, default=QUANTILES, help="which, such as 0.5,0.9,0.99"
)
PARSER.take("limit", help=f"at most N of these values (default: {TABLE_ROWS} in a table, else all)")
PARSER.take(*SUMMARY, *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print them."""
    path, operation = field_and_expression(options)
    options.limit = options.limit or (TABLE_ROWS if options.format == "table" else None)
    with asked(options) as db:
        answer(Question(db, operation, options, partial(show_result, options)), path)
    return 0


def answer(question: Question, path: Path) -> Stats | StatsBy:
    """What they are like, and what is to be said of them."""
    options = question.options
    found: Stats | StatsBy
    nobody = []
    if options.by is None:
        found = question.query.stats(path, quantiles=options.quantiles)
        numbers = found.count
    else:
        by = as_path("stats", options.by)
        found = question.query.stats_by(path, by, limit=options.limit, quantiles=options.quantiles)
        numbers = sum(row.stats.count for row in found)
        nobody = [] if found.rows else [by]
    question.show(found)
    question.note_nothing(found.total, nobody)
    if found.total and not numbers and not nobody:
        question.note_no_numbers(path)
    elif numbers < found.total:
        question.note_others(path)
    return found
