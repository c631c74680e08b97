"""`jitdb histogram`: how many records have numbers of which size."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.commands.counting.counted_question import Question
from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING, SUMMARY
from jitdb.cli.output.sheet import show_result
from jitdb.cli.parser import Parser
from jitdb.operators.summaries.summary import BINS

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.operators.summaries.histograms import Histogram


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
PARSER.take("log", "field_and_expression")
PARSER.add_argument(
    "--bins", metavar="N", type=bins, default=BINS, help=f"at most N (default: {BINS}), or where they begin: 0,10,100"
)
PARSER.take(*SUMMARY, *READING, *GENERAL)


def run(options: argparse.Namespace) -> int:
    """Print the counts."""
    path, operation = field_and_expression(options)
    with asked(options) as db:
        answer(Question(db, operation, options, partial(show_result, options)), path)
    return 0


def answer(question: Question, path: Path) -> Histogram:
    """The counts, and what is to be said of them."""
    found = question.query.histogram(path, bins=question.options.bins)
    question.show(found)
    question.note_nothing(found.total)
    if found.total and found.missing == found.total:
        question.note_no_numbers(path)
    elif found.missing:
        question.note_others(path)
    return found
