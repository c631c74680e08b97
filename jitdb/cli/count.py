"""`jitdb count`: how many records match."""

from __future__ import annotations

from argparse import Namespace

from jitdb.cli.compiling import compilation_noted
from jitdb.cli.opening import database
from jitdb.cli.output import flush, show
from jitdb.cli.parsing import Parser, add_common, add_expression, one_expression
from jitdb.cli.places import add_as_of, check_as_of

PARSER = Parser(
    "count",
    "LOG [EXPR] [options]",
    "Print how many records match: one number on a line. Deleted records are not counted.",
    [
        ("count events.log", "all records"),
        ("count events.log 'level == \"error\"'", "those with this value"),
        ("count events.log 'status >= 500 and not (user.name == \"ada\")'", "several conditions"),
        ("count events.log 'user.email is absent' --indexes none", "leave no index files behind"),
    ],
)
PARSER.add_argument("log", metavar="LOG", help="file of the log")
add_expression(PARSER)
add_as_of(PARSER)
add_common(PARSER)


def run(options: Namespace) -> int:
    """Print the number."""
    operation = one_expression(options)
    with database(options) as db, compilation_noted(db, options, operation):
        check_as_of(db.log, options.as_of)
        found = db.count(operation, as_of=options.as_of)
        show(str(found))
        if not found:
            from jitdb.cli.notes import note_unknown_fields

            flush()
            note_unknown_fields(db, operation, options)
    return 0
