"""`jitdb repair`: what is damaged in a log is put right, as far as it can be."""

from __future__ import annotations

from argparse import Namespace

from jitdb.cli.commands.keeping.verify import show_report
from jitdb.cli.opening import database, each_file, log_only
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.output import show
from jitdb.cli.parser import Parser

PARSER = Parser(
    "repair",
    "LOG [options]",
    "Verify a log, and put right what is damaged. A block in which one bit is flipped is restored exactly. Of any "
    "other damaged block the records that can be read are kept, and what cannot be read becomes a deleted record; the "
    "block as it was found is kept in a file beside the log. Indexes that cannot be used are built again. Whoever "
    "writes to the log must end first.",
    [
        ("repair events.log --dry-run", "what is damaged, and what would be done; changes nothing"),
        ("repair events.log", "do it"),
    ],
)
PARSER.take("log", "more_logs", "dry_run", "json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Repair it, or each of several, and say what was done."""
    for each in each_file(options):
        with log_only(each, writing=not options.dry_run) as log, database(each, log) as db:
            if each is not options and not options.json:
                show(f"{each.log}:")
            show_report(db.verify() if options.dry_run else db.repair(), options.json)
    return 0
