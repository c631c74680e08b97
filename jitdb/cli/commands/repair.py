"""`jitdb repair`: what is damaged in a log is put right, as far as it can be."""

from __future__ import annotations

from argparse import Namespace

from jitdb.cli.commands.verify import show
from jitdb.cli.opening import check_exists, database, wanted_progress
from jitdb.cli.parsing import Parser, add_common

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
PARSER.add_argument("log", metavar="LOG", help="file of the log")
PARSER.add_argument("--dry-run", action="store_true", help="verify only: tell what would be done, and change nothing")
PARSER.add_argument("--json", action="store_true", help="one JSON object instead of text")
add_common(PARSER)


def run(options: Namespace) -> int:
    """Repair it, and say what was done."""
    if options.dry_run:
        with database(options) as db:
            show(db.verify(), options.json)
        return 0
    import jitdb

    check_exists(options.log)
    settings = {name: value for name in ("timestamp", "sequence") if (value := getattr(options, name))}
    with jitdb.open(
        options.log,
        None if options.indexes == "none" else options.indexes,
        codec=options.codec,
        block_size=options.block_size,
        threads=options.threads,
        progress=wanted_progress(options),
        **settings,
    ) as db:
        show(db.repair(), options.json)
    return 0
