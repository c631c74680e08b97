"""`jitdb prepare`: build the indexes of several questions in one scan."""

from __future__ import annotations

from argparse import Namespace

from jitdb.cli.expressions import check_operands, read_expression
from jitdb.cli.opening import database
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.parser import Parser
from jitdb.common.words import duration, size_in_words

PARSER = Parser(
    "prepare",
    "LOG EXPR... [options]",
    "Bring the indexes that these questions need up to date, reading the log once for all of them. Questions do "
    "that by themselves; preparing them makes the first one fast too, and one scan of many.",
    [
        ("prepare events.log 'level == \"error\"' 'user.name == \"ada\"' 'status > 0'", "three fields, one scan"),
        ("prepare events.log 'level is absent' --threads 1", "in the background, with little of the machine"),
    ],
)
PARSER.take("log")
PARSER.take("expressions", nargs="+", help="a question, between quotes; which value it asks for means nothing")
PARSER.take(*READING, *GENERAL)


def run(options: Namespace) -> int:
    """Scan, and say what there is now."""
    check_operands(options)
    operations = [read_expression(text) for text in options.expressions]
    with database(options) as db:
        pending = max(db.explain(operation)["scan_bytes"] for operation in operations)
        milliseconds = db.prepare(*operations)
        rows = {row["index"]: row for operation in operations for row in db.explain(operation)["indexes"]}
    if not options.quiet:
        if pending:
            print(f"scanned {size_in_words(pending)} in {duration(milliseconds)}")
        else:
            print("nothing to do: the indexes were up to date")
        kept = " (in memory only: they end with this command)" if options.indexes == "none" else ""
        print(f"{len(rows)} indexes, {size_in_words(sum(row['bytes'] for row in rows.values()))}{kept}")
    return 0
