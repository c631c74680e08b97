"""`jitdb prepare`: build the indexes of several questions in one scan."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jitdb.cli.expressions import expressions_of
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import show
from jitdb.cli.parser import Parser
from jitdb.common.words import counted, duration, size_in_words

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

PARSER = Parser(
    "prepare",
    "LOG EXPR... [options]",
    "Bring the indexes that these questions need up to date, reading the log once for all of them. Questions do "
    "that by themselves; preparing them makes the first one fast too, and one scan of many.",
    [
        ("prepare events.log 'level == \"error\"' 'user.name == \"ada\"' 'status > 0'", "three fields, one scan"),
        ("prepare logs 'level == \"error\"'", "of all files of a folder"),
        ("prepare events.log 'level is absent' --threads 1", "in the background, with little of the machine"),
    ],
)
PARSER.take("log")
PARSER.take("expressions", nargs="+", help="a question, between quotes; which value it asks for means nothing")
PARSER.take(*READING, *GENERAL)


def run(options: Namespace) -> int:
    """Scan, and say what there is now."""
    operations = expressions_of(options)
    begin = time.perf_counter()
    with asked(options) as db:
        pending = max(db.explain(operation)["scan_bytes"] for operation in operations)
        db.prepare(*operations)
        seconds = time.perf_counter() - begin
        rows = [row for operation in operations for row in _rows(db, operation)]
    if not options.quiet:
        if pending:
            show(f"scanned {size_in_words(pending)} in {duration(1e3 * seconds)}")
        else:
            show("nothing to do: the indexes were up to date")
        kept = " (in memory only: they end with this command)" if options.indexes == "none" else ""
        sizes = dict(rows)
        show(f"{counted(len(sizes), 'index', 'indexes')}, {size_in_words(sum(sizes.values()))}{kept}")
    return 0


def _rows(db: AnyDatabase, operation: Operation) -> Iterator[tuple[tuple[str, str], int]]:
    """The indexes of a question, by log and name, and their bytes."""
    told = db.explain(operation)
    for path, one in told["logs"].items() if "logs" in told else [("", told)]:
        for row in one["indexes"]:
            yield (path, row["index"]), row["bytes"]
