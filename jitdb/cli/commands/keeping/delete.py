"""`jitdb delete`: records go out of all answers, and with --compact for good."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from jitdb.cli.commands.keeping.compact import compacted
from jitdb.cli.expressions import one_expression
from jitdb.cli.failures import Failure, UsageError, say
from jitdb.cli.opening import check_free, database, each_log, log_only
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.output.notes import note_missing, note_times
from jitdb.cli.output.output import show
from jitdb.cli.parser import Parser
from jitdb.common.words import counted
from jitdb.display.terminal import one_line
from jitdb.errors import LogReadOnly, free_name
from jitdb.log.source import MaintainedSource

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.operators import Operation

PARSER = Parser(
    "delete",
    "LOG [EXPR] [options]",
    "Delete the records that match: they are gone from all answers at once, and --compact gives their room back. On a "
    "terminal it asks before. The log must not be open for writing anywhere else. JSON Lines, which somebody else "
    "writes, are only read.",
    [
        ("delete events.log --older-than 30d --dry-run", "how many there are; changes nothing"),
        ("delete events.log --older-than 30d --compact --yes", "retention as one command, for cron"),
        ("delete events.log 'user.name == \"ada\"' --yes", "all of one user"),
        ("delete logs 'level == \"debug\"' --older-than 1w --yes", "of all logs of a folder"),
    ],
)
PARSER.take("log")
PARSER.take("expressions", help="which records, between quotes (see `jitdb help expressions`)")
PARSER.take("older_than", "since", "until", "dry_run")
PARSER.take("force", help="delete from a log of a store, too, and where no record has a field that EXPR names")
PARSER.add_argument("--compact", action="store_true", help="then give the room of all deleted records back")
PARSER.add_argument("-y", "--yes", action="store_true", help="do not ask")
PARSER.take(*READING, *GENERAL)


class _Found(NamedTuple):
    """What is to be deleted of one log."""

    options: Namespace
    operation: Operation
    matching: int
    records: int
    missing: dict[Path | str, str]  # fields and values of the question that none of them has, and what is said of each


def run(options: Namespace) -> int:
    """Count them, ask, delete them log by log, and say how many these were."""
    operation = one_expression(options)
    if operation is None:
        raise UsageError("delete: say which records: an expression, --older-than, --since or --until")
    found = list(_found(operation, options))
    _check_fields(found, options)
    matching, records = sum(each.matching for each in found), sum(each.records for each in found)
    where = options.log if len(found) == 1 else counted(len(found), "log", "logs")
    if options.dry_run:
        show(f"{matching:,} of {counted(records, 'record', 'records')} of {where} would be deleted")
        return 0
    if matching and not options.yes and not _agreed(f"delete {matching:,} of {records:,} records of {where}?"):
        say("jitdb: nothing was deleted")
        return 1
    for each in found:
        if each.matching or options.compact:
            _delete(each)
    if not matching and not options.quiet:
        show(f"nothing to delete: none of {counted(records, 'record', 'records')} matches")
    return 0


def _check_fields(found: list[_Found], options: Namespace) -> None:
    """Raises Failure where the question names a field that no record of any log has, or a value that they spell
    otherwise: `!=` and `not` are true of all records then, and what is deleted stays so.
    """
    logs = [each for each in found if each.records]
    paths = set.intersection(*(set(each.missing) for each in logs)) if logs else set()
    if not paths or options.force or not any(each.matching for each in found):
        return
    failure = Failure("; ".join(told for what, told in logs[0].missing.items() if what in paths))
    failure.add_note("nothing was deleted; --force deletes what matches nevertheless")
    raise failure


def _found(operation: Operation, options: Namespace) -> Iterator[_Found]:
    """What is to be deleted of each log. Raises LogReadOnly where one of them is only read."""
    from jitdb.engine.hinting.hints import fields_of, hints_of, missing_fields
    from jitdb.logset.members import finding

    for each in each_log(options):
        if not options.dry_run:
            check_free(each.log, "deleted from", options)
        with log_only(each) as log:
            if not isinstance(log, MaintainedSource):
                raise _read_only(log.refusal("deleted from"), operation, options)
            with database(each, log) as db:
                asked = operation.narrowed(finding.fields_of(each.log)) if each is not options else operation
                matching, records = db.count(asked), db.count()
                missing: dict[Path | str, str] = dict(missing_fields(db.evidence(), fields_of(asked)).items())
                missing = missing or {told: told for told in hints_of(db.evidence(), asked)}
                found = _Found(each, asked, matching, records, missing)
                if not found.matching and each is options:
                    note_missing(db, asked, options, is_empty=True)
                note_times(db, asked, options, ordered=False, is_full=True)
                yield found


def _read_only(error: Exception, operation: Operation, options: Namespace) -> Exception:
    if isinstance(error, LogReadOnly):
        from jitdb.engine.hinting.hints import typed

        staying = shlex.quote(f"not ({typed(operation)})")
        kept = free_name("kept", ".ndjson")
        typed_anew = f"jitdb export {shlex.quote(options.log)} {staying} --output {kept}"
        error.add_note(f"or write another file of those that stay: {typed_anew}")
    return error


def _agreed(question: str) -> bool:
    """Whether the person at the terminal says yes. Raises UsageError where nobody is there."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("delete: nobody is there to be asked", "say --yes, or --dry-run to see how many there are")
    print(one_line(f"{question} [y/N] ", sys.stderr), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _delete(found: _Found) -> None:
    options = found.options
    with log_only(options, writing=True) as log, database(options, log) as db:
        deleted = db.delete(found.operation)
        told = f"{options.log}: deleted {counted(deleted, 'record', 'records')}, {db.count():,} stay" if deleted else ""
        done = compacted(db) if options.compact else ""
    if not options.quiet:
        for line in filter(None, (told, done)):
            show(line)
