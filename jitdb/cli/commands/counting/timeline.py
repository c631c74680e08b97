"""`jitdb timeline`: how many records are of which time."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.commands.counting.counted_question import Question
from jitdb.cli.expressions import one_expression
from jitdb.cli.failures import note
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING, SUMMARY
from jitdb.cli.output.notes import note_times, time_fields
from jitdb.cli.output.sheet import show_result
from jitdb.cli.parser import Once, Parser
from jitdb.engine.hinting.hints import SAMPLE
from jitdb.engine.hinting.spelling import fields_in
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.summary import AUTO, SERIES

if TYPE_CHECKING:
    from jitdb.operators.summaries.timelines import Timeline

PARSER = Parser(
    "timeline",
    "LOG [EXPR] [options]",
    "Count by time: how many records are of which time, by the time that they declare, in UTC or by the clocks of a "
    "place.",
    [
        ("timeline events.log", "in about as many steps as a screen has lines"),
        ("timeline events.log 'level == \"error\"' --every 1h", "by the hour"),
        ("timeline events.log --every 1d --by level", "and by another field"),
    ],
)
PARSER.take("log", "expressions")
PARSER.add_argument(
    "--every", metavar="STEP", default=AUTO, help="10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y, … (default: auto, by the span)"
)
PARSER.add_argument("--tz", metavar="ZONE", help="by the clocks of a place, such as Europe/Berlin (default: UTC)")
PARSER.add_argument(
    "--by", metavar="PATH", action=Once, help="count the most frequent values of another field one by one"
)
PARSER.take("limit", help=f"at most N of these values (default: {SERIES})")
PARSER.take(*SUMMARY, *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print the counts."""
    operation = one_expression(options)
    with asked(options) as db:
        answer(Question(db, operation, options, partial(show_result, options)))
    return 0


def answer(question: Question) -> Timeline:
    """The counts, and what is to be said of them."""
    db, operation, options, show = question
    by = None if options.by is None else as_path("timeline", options.by)
    line = question.query.timeline(every=options.every, by=by, limit=options.limit or SERIES, tz=options.tz)
    show(line)
    question.note_nothing(line.total, () if by is None or line.values or not line.rows else [by])
    note_times(db, operation, options, ordered=True, is_full=not line.total)
    if line.total and not line.rows:
        shown, meant = time_fields(db, fields_in(db.sample(SAMPLE)), options)
        note(options, f"none of these records has a time under {shown}: say --timestamp {meant or 'PATH'}")
    return line
