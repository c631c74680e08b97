"""`jitdb tail`: the records that come."""

from __future__ import annotations

import shlex
import signal
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from jitdb.cli.commands.query import chosen, paths_by_name
from jitdb.cli.cursor_files import PlaceFile, check_place, cursor
from jitdb.cli.error_text import Failure, UsageError
from jitdb.cli.opening import database
from jitdb.cli.parsing import Parser, add_common, add_expression, fields, number, one_expression
from jitdb.cli.signals import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from jitdb.engine.database import JITDB
    from jitdb.operators import Operation

PARSER = Parser(
    "tail",
    "LOG [EXPR] [options]",
    "Write the records that come, or those of them that match, as NDJSON: each is out within half a second of being "
    "durable, whichever program writes it. Goes on until --limit, Ctrl-C or SIGTERM; ends when nobody reads its output "
    "any more. With --cursor FILE a later run goes on where this one ended.",
    [
        ("tail events.log --old --limit 3", "the first three; without --old those that come from now on"),
        ("tail events.log 'level == \"error\"' --old --fields time,message | head -n 1", "of some, some fields"),
        ("tail events.log --cursor place --old --limit 2", "keep the place in a file, and go on there next time"),
    ],
)
PARSER.add_argument("log", metavar="LOG", help="file of the log")
add_expression(PARSER)
_SHOWN = PARSER.add_argument_group("which records, and how")
_SHOWN.add_argument("--old", action="store_true", help="those that are there first, in the order of the log")
_SHOWN.add_argument("-n", "--limit", metavar="N", type=number(1), help="end after N records (default: go on)")
_SHOWN.add_argument("--after", metavar="CURSOR", type=cursor, help="begin behind this place")
_SHOWN.add_argument(
    "--cursor", metavar="FILE",
    help="begin behind the place that FILE holds, and keep the place in it; where there is no such file, begin now, "
    "or with --old at the beginning",
)  # fmt: skip
_SHOWN.add_argument("--offsets", action="store_true", help="write the records' offsets instead, one a line")
_SHOWN.add_argument("--fields", metavar="PATHS", type=fields, help="keys of each JSON line: a.b,c.d")
add_common(PARSER)


def run(options: Namespace) -> int:
    """Follow the log."""
    operation = one_expression(options)
    _check(options)
    with Ending() as ending:
        try:
            with database(options) as db:
                _tail(db, operation, options, ending)
        except KeyboardInterrupt as interrupt:
            if ending.signal != signal.SIGTERM and hasattr(interrupt, "__notes__"):
                raise  # there is something to tell
            return ending.code
    return 0


def _check(options: Namespace) -> None:
    if options.after and (options.old or options.cursor):
        other = "--old" if options.old else "--cursor"
        raise UsageError(f"tail: --after and {other} both say where to begin; leave one of them out")
    if options.offsets and options.fields:
        raise UsageError("tail: --offsets writes offsets only; leave --fields out")


def _tail(db: JITDB, operation: Operation | None, options: Namespace, ending: Ending) -> None:
    from jitdb.cli.following import Follower, await_first, get_ready, load_scanner
    from jitdb.cli.output.pipe import Pipe

    pipe = Pipe()
    keeper = None if options.cursor is None else PlaceFile(options.cursor, options.log)
    after = options.after if keeper is None else keeper.place
    _check_place(db, after, options)
    old = await_first(db.log, pipe) or options.old
    _check_name(db, options)
    feed = db.feed(operation, limit=256, old=old and after is None, after=after, as_offsets=options.offsets)
    get_ready(db, operation, options)
    follower = Follower(
        db.log, feed, pipe, ending,
        line=_line(options), limit=options.limit, keeper=keeper, prepare=lambda: load_scanner(db, operation),
    )  # fmt: skip
    follower.run()


def _check_place(db: JITDB, after: str | None, options: Namespace) -> None:
    if options.cursor is None:
        check_place(db.log, after, "--after", "leave it out, or begin anew with --old")
    else:
        remedy = f"to begin anew, remove it: rm {shlex.quote(options.cursor)}"
        check_place(db.log, after, options.cursor, remedy)


def _check_name(db: JITDB, options: Namespace) -> None:
    from jitdb.cli.following import is_named

    if options.cursor is not None and not is_named(db.log):
        raise Failure(
            f"{options.log}: the folder {db.log.sidecar.name} beside it cannot be written, and without it no place in "
            f"the log can be told the next time",
            "leave --cursor out, or make the folder writable once",
        )


def _line(options: Namespace) -> Callable[[Any], bytes]:
    """How a record is written."""
    from jitdb.cli.jsonl import line_of

    paths = paths_by_name(options.fields)
    return (lambda record: line_of(chosen(record, paths))) if paths else line_of
