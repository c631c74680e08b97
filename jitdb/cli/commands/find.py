"""`jitdb find`: in which fields a text stands."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from jitdb.cli.expressions import read_question, take_text
from jitdb.cli.failures import note
from jitdb.cli.opening import asked
from jitdb.cli.options import READING, SUMMARY, option
from jitdb.cli.output.output import flush
from jitdb.cli.output.tables import show_result
from jitdb.cli.parser import command

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation


@command(
    "LOG TEXT [EXPR] [options]",
    "Find a text in any field: which fields of how many records hold it, and in which logs. The number of records is "
    'exact; the fields are looked at in the first 10,000 of them. An expression asks the same: * contains "TEXT". With '
    "--quiet the exit code is 1 where none holds it.",
    [
        ("find logs/ 9f3a77", "an id that may be anywhere"),
        ("find events.log -i timeout 'level == \"error\"'", "in some records, without regard to case"),
        ("query logs/ '* contains \"9f3a77\"'", "the records themselves"),
    ],
    *("log", "text_and_expression"),
    option("-i, --ignore-case", "do not regard case"),
    *SUMMARY,
    *READING,
)
def find(options: Namespace) -> int:
    text = take_text(options)
    operation = read_question(options)
    with asked(options) as db:
        found = db.find(text, operation, ignore_case=options.ignore_case)
        if not options.quiet or found.total:
            partial(show_result, options)(found)
        if not found.total and not options.quiet and not options.ignore_case:
            from jitdb.cli.output.loose import note_apart
            from jitdb.operators import anywhere

            _note_case(db, text, operation, options)
            note_apart(db, anywhere(text), options)
        if operation is not None:
            from jitdb.cli.output.notes import note_counted

            flush()
            note_counted(db, operation, options, is_empty=not found.total)
    return int(options.quiet and not found.total)


def _note_case(db: AnyDatabase, text: str, operation: Operation | None, options: Namespace) -> None:
    """Note how many records hold the text in other case, which takes a second scan where no index tells."""
    from jitdb.common.words import counted
    from jitdb.operators import anywhere

    if text.lower() != text.upper() and (others := db.query(anywhere(text, ignore_case=True), operation).count()):
        note(options, f"{counted(others, 'record holds', 'records hold')} it in other case: -i finds them")
