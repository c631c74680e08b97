"""`jitdb count`: how many records match."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from jitdb.cli.expressions import read_question
from jitdb.cli.opening import seen_or_asked
from jitdb.cli.options import READING
from jitdb.cli.output.output import flush, show
from jitdb.cli.parser import Show, command

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog
    from jitdb.logset.logset import AnyDatabase


@command(
    "LOG [EXPR] [options]",
    "Print how many records match: one number on a line. Deleted records do not count. With --quiet the exit code is 1 "
    "where none matches.",
    [
        ("count events.log", "all records"),
        ("count events.log 'level == \"error\"'", "records with this value"),
        ("count 'logs/*.log' 'level == \"error\"'", "in many logs together"),
        ("export events.log | jitdb count - 'level == \"error\"'", "of standard input"),
    ],
    *("log", "expressions", "one_of", "since", "until", "as_of", *READING),
)
def count(options: Namespace) -> int:
    read_question(options)
    with seen_or_asked(options, count.look) as (found, db):
        if db is None:
            assert found is not None
            show(str(found))
        else:
            found = answer(db, options, lambda found: show(str(found)))
    return int(options.quiet and not found)


@count.looks
def seen(log: AnyLog, indexes: Path, options: Namespace) -> int | None:
    if options.timestamp or options.sequence or (options.log_format and options.operation is None):
        return None  # a note may be due, as where the format is a pattern
    from jitdb.cli.output.loose import note_loose
    from jitdb.engine.face.glance import count_at_a_glance

    found = count_at_a_glance(log, indexes, options.operation)
    if found:
        note_loose(log, options)
    return found or None  # the engine finds out why there are none


@count.answers
def answer(db: AnyDatabase, options: Namespace, show: Show) -> int:
    """The number; then fields that no record has, why there are none, and how numbers and times were read."""
    operation = options.operation
    found = db.count(operation, as_of=options.as_of)
    show(found)
    if options.log_format and operation is None and options.as_of is None:
        from jitdb.cli.output.notes import note_fitting

        flush()
        note_fitting(db, options, found)
    if options.as_of is None:
        from jitdb.cli.output.loose import note_what_is_loose

        flush()
        note_what_is_loose(db, options, is_empty=not found)
    if operation is not None:
        from jitdb.cli.output.notes import note_counted

        flush()
        note_counted(db, operation, options, is_empty=not found)
    return found
