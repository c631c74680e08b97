"""`jitdb values`: how many records have which value of a field, or of several together."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.expressions import field_and_expression
from jitdb.cli.opening import database, index_place, is_many, load_numpy, log_only, log_set
from jitdb.cli.options import GENERAL, READING, SUMMARY
from jitdb.cli.output.sheet import TABLE_ROWS, show_result
from jitdb.cli.parser import Parser
from jitdb.operators.nodes.field_ref import as_path

if TYPE_CHECKING:
    from jitdb.cli.commands.counting.counted_question import Question
    from jitdb.common.paths import Path
    from jitdb.log.any_log import AnyLog
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation
    from jitdb.operators.summaries.value_counts import GroupCounts, ValueCounts

PARSER = Parser(
    "values",
    "LOG FIELD [EXPR] [options]",
    "Count by value: how many records have which value of a field, the most frequent first. Of equally frequent ones "
    "the smaller comes first.",
    [
        ("values events.log level", "of all records"),
        ("values events.log user.name 'level == \"error\"' --limit 5", "of those that match"),
        ("values events.log level --by status", "of several fields together"),
        ("values events.log level --format csv", "for a spreadsheet"),
    ],
)
PARSER.take("log")
PARSER.take("field_and_expression", help="the field, such as user.name; then which records, all when left out")
PARSER.add_argument("--by", metavar="PATH", action="append", default=[], help="another field, counted together with it")
PARSER.take("limit", help=f"at most N values (default: {TABLE_ROWS} in a table, else all)")
PARSER.take(*SUMMARY, *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print the counts."""
    path, operation = field_and_expression(options)
    options.limit = options.limit or (TABLE_ROWS if options.format == "table" else None)
    if is_many(options):
        load_numpy(options)
        with log_set(options) as logs:
            _show(logs, path, operation, options)
        return 0
    with log_only(options) as log:
        counts = _at_a_glance(log, path, operation, options)
        if counts is not None:
            show_result(options, counts)
            return 0
        load_numpy(options)
        with database(options, log) as db:
            _show(db, path, operation, options)
    return 0


def _show(db: AnyDatabase, path: Path, operation: Operation | None, options: Namespace) -> None:
    from jitdb.cli.commands.counting.counted_question import Question

    answer(Question(db, operation, options, partial(show_result, options)), path)


def answer(question: Question, path: Path) -> ValueCounts | GroupCounts:
    """The counts, and what is to be said of them."""
    query, options = question.query, question.options
    paths = [path, *(as_path("values", by) for by in options.by)]
    counts: ValueCounts | GroupCounts
    if options.by:
        counts = query.group_count(*paths, limit=options.limit)
    else:
        counts = query.value_counts(path, limit=options.limit)
    question.show(counts)
    question.note_nothing(counts.total, paths if counts.missing == counts.total else ())
    return counts


def _at_a_glance(log: AnyLog, path: Path, operation: Operation | None, options: Namespace) -> ValueCounts | None:
    """The counts, where fresh bitmaps have them and the engine need not be loaded."""
    if operation is not None or options.by or options.as_of is not None or options.indexes == "none":
        return None
    from jitdb.engine.answering.glance import values_at_a_glance

    counts = values_at_a_glance(log, index_place(options, log), path)
    if not counts or not any(key != b"\0" for key in counts):
        return None
    from jitdb.common.values import value_of_key
    from jitdb.operators.summaries.value_counts import ValueCount, ValueCounts, in_order

    missing = counts.pop(b"\0", 0)
    pairs = in_order((((key,), count) for key, count in counts.items() if count), options.limit)
    rows = tuple(ValueCount(value_of_key(key), count) for (key,), count in pairs)
    distinct = sum(map(bool, counts.values()))
    return ValueCounts(rows, sum(counts.values()) + missing, missing, path, distinct)
