"""`jitdb find`: in which fields a text stands."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from jitdb.cli.expressions import read_question, take_text
from jitdb.cli.opening import asked
from jitdb.cli.options import READING, SUMMARY, option
from jitdb.cli.output.tables import show_result
from jitdb.cli.parser import command


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
    return int(options.quiet and not found.total)
