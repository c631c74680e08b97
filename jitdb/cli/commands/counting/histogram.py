"""`jitdb histogram`: how many records have numbers of which size."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jitdb.cli.commands.counting.asked import asked_query, note_no_numbers, note_nothing, note_others
from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush
from jitdb.cli.output.sheet import show_sheet
from jitdb.cli.parser import Parser
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.asked import BINS
from jitdb.operators.summaries.sheets import sheet_of

if TYPE_CHECKING:
    pass


def bins(text: str) -> int | list[float]:
    """How many, or where they begin.

    >>> bins("10"), bins("0,10,100")
    (10, [0.0, 10.0, 100.0])
    """
    try:
        return [float(part) for part in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a number of bins is expected, or where they begin and the last one ends, as in 0,10,100, not {text!r}"
        ) from None


PARSER = Parser(
    "histogram",
    "LOG FIELD [EXPR] [options]",
    "Count by size: how many records have numbers of which size in a field. A bin holds where it begins, not where it "
    "ends.",
    [
        ("histogram events.log status", "in bins of a round width"),
        ("histogram events.log status 'level == \"error\"' --bins 0,400,500,600", "in bins of your own"),
    ],
)
PARSER.take("log")
PARSER.take(
    "expressions", metavar="FIELD [EXPR]", help="the field, such as status; then which records, all when left out"
)
PARSER.add_argument(
    "--bins", metavar="N", type=bins, default=BINS, help=f"at most N (default: {BINS}), or where they begin: 0,10,100"
)
PARSER.take("since", "until", "as_of", "summary_format", *READING, *GENERAL)


def run(options: argparse.Namespace) -> int:
    """Print the counts."""
    field, operation = field_and_expression(options)
    path = as_path("histogram", field)
    with asked(options) as db:
        found = asked_query(db, operation, options).histogram(path, bins=options.bins)
        show_sheet(sheet_of(found), options.format, options.quiet)
        flush()
        note_nothing(db, operation, options, found.total, [])
        if found.total and found.missing == found.total:
            note_no_numbers(db, path, options)
        elif found.missing:
            note_others(db, path, options)
    return 0
