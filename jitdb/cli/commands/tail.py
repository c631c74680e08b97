"""`jitdb tail`: follow new records."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.expressions import read_question
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import asked, paths_of
from jitdb.cli.options import PRETTY, READING, SHOWN, changed, option
from jitdb.cli.output.formats import wants_pretty
from jitdb.cli.output.notes import note_counted
from jitdb.cli.parser import command
from jitdb.cli.places import check_place, cursor
from jitdb.cli.signals import Ending
from jitdb.common.json_text import line_of
from jitdb.engine.database import JITDB
from jitdb.log.io.filenames import META, sidecar_path
from jitdb.log.lines.files.stamp import stamp_at

if TYPE_CHECKING:
    from jitdb.cli.output.follow import Pipe
    from jitdb.engine.database import JITDB
    from jitdb.log.source import LogSource
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

_SOON: Final = 0.05  # seconds between looks at standard input that has sent no record yet
_PORTION: Final = 256  # records read and written at a time


@command(
    "LOG [EXPR] [options]",
    "Follow new records, or those that match: on a terminal as a log for people, else as NDJSON. A record is "
    "shown within half a second after any program has made it durable. Ends after --limit records, on Ctrl-C "
    "or SIGTERM, or when nobody reads the output any more. With --cursor FILE the next run continues where "
    "this one ended.",
    [
        ("tail events.log --old --limit 3", "the first three; without --old only new records"),
        (
            "tail events.log 'level == \"error\"' --old --fields time,message | head -n 1",
            "some fields of matching records",
        ),
        ("tail events.log --cursor place --old --limit 2", "keep the place in a file, and continue there next time"),
        ("tail 'logs/*.log*' --cursor place --old --limit 2", "many logs, new and rotated ones included"),
    ],
    *("log", "expressions"),
    option("--old", "begin with the records that are there already", group=SHOWN),
    changed("limit", "end after N records (default: go on)"),
    option("--after CURSOR", "begin after this place", type=cursor, group=SHOWN),
    option(
        "--cursor FILE",
        "begin after the place in FILE and keep the place there; without FILE begin now, with --old at the start",
        group=SHOWN,
    ),
    option(
        "--format",
        "auto: pretty on a terminal, else ndjson",
        choices=("auto", "pretty", "ndjson"),
        default="auto",
        group=SHOWN,
    ),
    *("one_of", "since", "until", "offsets", "raw", "fields", *PRETTY, *READING),
)
def tail(options: Namespace) -> int:
    """Follow the log."""
    operation = read_question(options)
    from jitdb.log.columnar.table_file import kind_at, refuse_following

    _check(options)
    for path in (options.log, *options.more_logs):
        refuse_following(path, kind_at(path))
    with Ending() as ending:
        try:
            if options.log == "-":
                _tail_stdin(operation, options, ending)
                return 0
            was_empty = _await_kind(options.log)
            with asked(options, may_come=True) as db:
                _tail(db, operation, options, ending, was_empty)
        except KeyboardInterrupt as interrupt:
            if ending.signal != signal.SIGTERM and hasattr(interrupt, "__notes__"):
                raise  # its notes are printed
            return ending.code
    return 0


def _tail_stdin(operation: Operation | None, options: Namespace, ending: Ending) -> None:
    """Show the records of standard input as they come, up to its end."""
    from jitdb.cli.input.standard_input import Copy

    if options.cursor is not None or options.after:
        raise UsageError("tail: standard input has no places to go on from", "leave --cursor and --after out")
    with Copy(options) as copy:
        copy.take_meanwhile()
        while not copy.ended.is_set() and not _has_kind(Path(copy.options.log)):
            ending.check()
            copy.ended.wait(_SOON)
        with asked(copy.options) as db:
            _tail(db, operation, copy.options, ending, True, copy.ended.is_set)
        if copy.error is not None:
            raise copy.error


def _check(options: Namespace) -> None:
    if options.after and (options.old or options.cursor):
        other = "--old" if options.old else "--cursor"
        raise UsageError(f"tail: --after and {other} both say where to begin; leave one of them out")
    if options.offsets and options.fields:
        raise UsageError("tail: --offsets writes offsets only; leave --fields out")
    if options.raw and (options.offsets or options.fields or options.format != "auto" or wants_pretty(options)):
        raise UsageError(
            "tail: --raw prints records as they stand in the file",
            "leave --offsets, --fields, --format and --full out",
        )
    if wants_pretty(options) and (options.offsets or options.fields):
        raise UsageError(
            "tail: --offsets and --fields are written as JSON", "leave --format, --full, --traces, --utc out"
        )


def _tail(
    db: AnyDatabase,
    operation: Operation | None,
    options: Namespace,
    ending: Ending,
    was_empty: bool,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """is_over: whether nothing will come behind what is there"""
    from jitdb.cli.output.follow import Follower, Pipe, PlaceFile

    log = db.log if isinstance(db, JITDB) else None
    keeper = None if options.cursor is None else PlaceFile(options.cursor, paths_of(db))
    if keeper is None:
        after, source, remedy = options.after, "--after", "leave it out, or begin anew with --old"
    else:
        after, source, remedy = keeper.place, keeper.name, f"to begin anew, remove it: rm {shlex.quote(keeper.name)}"
        if log is None:
            _check_beside(options)
    check_place(log, after, source, remedy)
    _check_output(paths_of(db))
    line = _line_of(options)
    pipe, old = Pipe(is_printable=line is not line_of and not options.raw), options.old or was_empty
    if log is not None:
        old = _await_first(log, pipe) or old
        _check_name(log, options)
    query = db.query(operation).batch(_PORTION).live(old and after is None, after)
    query = query.as_offsets() if options.offsets else query.as_raw() if options.raw else query
    query = query.select(*options.fields) if options.fields else query
    with closing(db.feed(query.question)) as feed:
        if log is not None or operation is not None:  # of one log in any case: so its indexes are up to date
            note_counted(db, operation, options, is_empty=not db.count(operation), is_full=False)
        Follower(log, feed, pipe, ending, line, limit=options.limit, keeper=keeper).run(is_over)


def _line_of(options: Namespace) -> Callable[[Any], bytes]:
    """Makes what is written of a record: itself, lines for people, if it has a message, or one of JSON."""
    if options.raw:
        return lambda text: bytes(text) + b"\n"
    if not wants_pretty(options):
        is_people = options.format == "auto" and sys.stdout and sys.stdout.isatty()
        if not is_people or options.offsets or options.fields:
            return line_of
    from jitdb.cli.output.pretty import Pretty, as_bytes
    from jitdb.display.terminal import visible_bytes

    pretty = Pretty.of(options)

    def lines(record: Any) -> bytes:
        is_shown = options.format == "pretty" or pretty.is_of_log(record)
        return as_bytes(pretty.lines(record)) if is_shown else visible_bytes(line_of(record))

    return lines


def _check_beside(options: Namespace) -> None:
    """Raises Failure where the file for the place would be one of the logs that are followed."""
    from fnmatch import fnmatch

    path = os.path.realpath(options.cursor)
    for place in map(os.path.realpath, (options.log, *options.more_logs)):
        name = os.path.relpath(path, place)
        is_in = os.path.isdir(place) and not any(part.startswith(".") for part in name.split(os.sep))
        if is_in or (not os.path.exists(place) and fnmatch(path, place)):
            raise Failure(
                f"{options.cursor}: this would be one of the logs that are followed",
                "choose a file elsewhere, or one whose name begins with a dot",
            )


def _check_output(paths: Iterable[str]) -> None:
    """Raises Failure where what is written goes to a log that is followed: it would come again and again."""
    try:
        output = os.fstat(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # Pipe says so
        return
    for path in paths if stat.S_ISREG(output.st_mode) else ():
        with suppress(OSError):
            if os.path.samestat(output, os.stat(path)):
                raise Failure(
                    f"{path}: the output goes to one of the logs that are followed, so it would have no end",
                    "write it elsewhere, or to a file whose name begins with a dot",
                )


def _await_kind(path: str) -> bool:
    """Wait while the file is empty and its kind of log unknown; return whether it was."""
    from jitdb.cli.output.follow import LOOK, Pipe

    file = Path(path)
    if file.is_dir() or not file.exists() or _has_kind(file):
        return False
    pipe = Pipe()
    while not _has_kind(file):
        pipe.check()
        time.sleep(LOOK)
    return True


def _has_kind(file: Path) -> bool:
    found = stamp_at(file)
    return found is not None and (found.size > 0 or (sidecar_path(file) / META).exists())


def _await_first(log: LogSource, pipe: Pipe) -> bool:
    """Wait while the log has no identity yet: it gets one with the first record. Return whether it had none."""
    from jitdb.cli.output.follow import LOOK

    def has_name() -> bool:
        return log.durable_end > 0 or log.identity_is_stored

    if has_name():
        return False
    wake = threading.Event()
    unwatch = log.watch(wake.set)
    try:
        while not has_name():
            wake.clear()
            while not wake.wait(LOOK):
                pipe.check()
    finally:
        unwatch()
    return True


def _check_name(log: LogSource, options: Namespace) -> None:
    if options.cursor is not None and not log.is_rotated and not log.identity_is_stored:
        raise Failure(
            f"{options.log}: the folder {log.sidecar.name} beside it cannot be written, and without it no place in "
            f"the log can be told the next time",
            "leave --cursor out, or make the folder writable once",
        )
