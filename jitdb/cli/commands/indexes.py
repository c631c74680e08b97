"""`jitdb indexes`: the index files beside a log, and how to be rid of some."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from jitdb.cli.error_text import Failure, UsageError
from jitdb.cli.expressions import is_expression, read_expression
from jitdb.cli.opening import database
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.table import printable
from jitdb.cli.parser import Parser
from jitdb.common.words import counted, size_in_words

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB

PARSER = Parser(
    "indexes",
    "LOG [options]",
    "List the index files beside a log: what each is about and answers, how much it knows and takes, and whether it is "
    "fresh, stale, damaged, or void, being that of another log. With --drop or --drop-all remove them, to give "
    "their room back; whoever uses them goes on, and questions build anew what they need.",
    [
        ("indexes events.log", "what there is"),
        ("indexes events.log --json | python -m json.tool", "for programs"),
        ("indexes events.log --drop 'status > 0' 'level == \"error\"'", "those of questions that nobody asks any more"),
        ("indexes events.log --drop-all", "all, those too that are damaged or of another log"),
    ],
)
PARSER.take("log")
dropped = PARSER.add_mutually_exclusive_group()
dropped.add_argument(
    "--drop", metavar="WHICH", nargs="+", action="extend", default=[],
    help="remove these: an index or a file, by the name that the list gives it; those of a field; or those that a "
    "question, between quotes, is answered from",
)  # fmt: skip
dropped.add_argument("--drop-all", action="store_true", help="remove all index files, whatever their state")
PARSER.take("json", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """List them, or drop some and say which."""
    from jitdb.cli.output.index_list import describe_indexes, show_indexes

    if options.indexes == "none":
        raise UsageError("indexes: --indexes none means that there are no files", "name the folder that they are in")
    wanted = options.drop or options.drop_all
    with database(options) as db:
        assert db.folder is not None
        rows = describe_indexes(db.folder, db.log)
        names = _drop(db, options, rows) if wanted else ()
        left = describe_indexes(db.folder, db.log) if names else rows
    gone = [row for row in rows if row["file"] in names]
    if options.json:
        import json

        print(json.dumps({"folder": str(db.folder), "indexes": left, "dropped": gone}, indent=2))
    elif not wanted:
        show_indexes(rows, with_files=True)
    elif not options.quiet:
        for row in gone:
            print(f"dropped {printable(row['file'])}")
        size = size_in_words(sum(row["bytes"] for row in gone))
        print(f"{counted(len(gone), 'index', 'indexes')}, {size} given back" if gone else "there was nothing to drop")
    return 0


def _drop(db: JITDB, options: Namespace, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Remove what is meant, and give the names of the files. Raises Failure, and removes nothing, for a wrong name."""
    from jitdb.errors import QueryError
    from jitdb.indexes.files.folder import known_indexes
    from jitdb.log.io import osfile

    which: list[Any] = list(known_indexes(osfile.fs, db.folder)) if options.drop_all else []
    for text in options.drop:
        files = [row["file"] for row in rows if text == row["name"]]
        which += files or [read_expression(text) if is_expression(text) else text]
    try:
        return db.drop_index(*which) if which else ()
    except QueryError as error:
        raise Failure(error.reason, f"jitdb indexes {shlex.quote(options.log)}") from error
