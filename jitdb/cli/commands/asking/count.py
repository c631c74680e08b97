"""`jitdb count`: how many records match."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from jitdb.cli.expressions import one_expression
from jitdb.cli.opening import database, index_place, is_many, load_numpy, log_only, log_set
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import flush, show
from jitdb.cli.parser import Parser

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

PARSER = Parser(
    "count",
    "LOG [EXPR] [options]",
    "Print how many records match: one number on a line. Deleted records are not counted.",
    [
        ("count events.log", "all records"),
        ("count events.log 'level == \"error\"'", "those with this value"),
        ("count 'logs/*.log' 'level == \"error\"'", "of many logs together"),
        ("count events.log 'user.email is absent' --indexes none", "leave no index files behind"),
    ],
)
PARSER.take("log", "expressions", "since", "until", "as_of", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Print the number."""
    operation = one_expression(options)
    if is_many(options):
        return _count_all(operation, options)
    with log_only(options) as log:
        found = _at_a_glance(log, operation, options)
        if found:
            show(str(found))
            return 0
        load_numpy(options)
        with database(options, log) as db:
            found = db.count(operation, as_of=options.as_of)
            show(str(found))
            note_count(db, operation, options, found)
    return 0


def _count_all(operation: Operation | None, options: Namespace) -> int:
    load_numpy(options)
    with log_set(options) as logs:
        found = logs.count(operation)
        show(str(found))
        note_count(logs, operation, options, found)
    return 0


def note_count(db: AnyDatabase, operation: Operation | None, options: Namespace, found: int) -> None:
    """What is to be said of the number: fields that no record has, why it is none, how numbers and times were taken."""
    if operation is None:
        return
    from jitdb.cli.output.notes import note_missing, note_times
    from jitdb.operators.nodes.compare import Range

    flush()
    note_missing(db, operation, options, is_empty=not found)
    if any(isinstance(leaf, Range) for leaf in operation.leaves()):
        note_times(db, operation, options, ordered=False, is_full=not found)


def _at_a_glance(log: AnyLog, operation: Operation | None, options: Namespace) -> int | None:
    """The number, where fresh indexes have it and the engine need not be loaded."""
    if options.as_of is not None or options.indexes == "none" or options.timestamp or options.sequence:
        return None
    from jitdb.engine.answering.glance import count_at_a_glance

    return count_at_a_glance(log, index_place(options, log), operation)
