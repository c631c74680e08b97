"""The commands that keep a log in order: delete, compact, verify, repair, pack."""

from __future__ import annotations

import argparse
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path as File
from typing import TYPE_CHECKING, NamedTuple

from jitdb.cli.expressions import read_question
from jitdb.cli.failures import Diagnostic, Failure, UsageError, complain, say
from jitdb.cli.opening import check_free, database, each_bundle, each_file, each_log, is_many, log_only, wanted_progress
from jitdb.cli.options import FORMAT, READING, changed, number, option
from jitdb.cli.output.output import flush, show, show_json
from jitdb.cli.output.tables import show_report
from jitdb.cli.parser import command
from jitdb.common.words import counted
from jitdb.display.terminal import one_line
from jitdb.errors import LogError, LogReadOnly, free_name
from jitdb.log.source import MaintainedSource

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.engine.database import JITDB
    from jitdb.operators import Operation


@command(
    "LOG [EXPR] [options]",
    "Delete the records that match: they leave all answers at once; --compact frees their space. Asks first on a "
    "terminal. No other program may have the log open for writing. JSON Lines belong to another program, and cannot "
    "be changed.",
    [
        ("delete events.log --older-than 30d --dry-run", "how many there are; changes nothing"),
        ("delete events.log --older-than 30d --compact --yes", "retention as one command, for cron"),
        ("delete events.log 'user.name == \"ada\"' --yes", "all records of a user"),
        ("delete logs 'level == \"debug\"' --older-than 1w --yes", "in all logs of a folder"),
    ],
    "log",
    changed("expressions", "which records, in quotes (see `jitdb help expressions`)"),
    *("older_than", "since", "until", "dry_run"),
    changed("force", "allow this on a log of a store, too, and where no record has a field that EXPR names"),
    option("--compact", "then free the space of all deleted records"),
    option("-y, --yes", "do not ask"),
    *READING,
)
def delete(options: Namespace) -> int:
    """Count them, ask, delete them log by log, and say how many these were."""
    operation = read_question(options)
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


class _Found(NamedTuple):
    """What is to be deleted from one log."""

    options: Namespace
    operation: Operation
    matching: int
    records: int
    missing: dict[Path | str, str]  # fields and values of the question that no record has, and the message for each


def _check_fields(found: list[_Found], options: Namespace) -> None:
    """Raises Failure if no record has a field of the question, or a value is spelt otherwise: `!=` and `not` would then
    match all records, and there is no way back.
    """
    logs = [each for each in found if each.records]
    paths = set.intersection(*(set(each.missing) for each in logs)) if logs else set()
    if not paths or options.force or not any(each.matching for each in found):
        return
    failure = Failure("; ".join(told for what, told in logs[0].missing.items() if what in paths))
    failure.add_note("nothing was deleted; --force deletes what matches nevertheless")
    raise failure


def _found(operation: Operation, options: Namespace) -> Iterator[_Found]:
    """What is to be deleted from each log. Raises LogReadOnly if one cannot be written."""
    from jitdb.cli.output.notes import note_missing, note_times
    from jitdb.engine.hinting.fields import missing_fields
    from jitdb.engine.hinting.hints import hints_of
    from jitdb.logset.member import fields_of

    for each in each_log(options):
        if not options.dry_run:
            check_free(each.log, "deleted from", options)
        with log_only(each) as log:
            if not isinstance(log, MaintainedSource):
                raise _read_only(log.refusal("deleted from"), operation, options)
            with database(each, log) as db:
                asked = operation.narrowed(fields_of(each.log)) if each is not options else operation
                matching, records = db.count(asked), db.count()
                missing: dict[Path | str, str] = dict(missing_fields(db.evidence(), asked.all_paths()).items())
                missing = missing or {told: told for told in hints_of(db.evidence(), asked)}
                found = _Found(each, asked, matching, records, missing)
                if not found.matching and each is options:
                    note_missing(db, asked, options, is_empty=True)
                note_times(db, asked, options, ordered=False, is_full=True)
                yield found


def _read_only(error: Exception, operation: Operation, options: Namespace) -> Exception:
    if isinstance(error, LogReadOnly):
        from jitdb.operators.text.expression import typed

        staying = shlex.quote(f"not ({typed(operation)})")
        kept = free_name("kept", ".ndjson")
        typed_anew = f"jitdb export {shlex.quote(options.log)} {staying} --output {kept}"
        error.add_note(f"or write another file of those that stay: {typed_anew}")
    return error


def _agreed(question: str) -> bool:
    """Ask the person at the terminal. Raises UsageError if nobody is there."""
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


@command(
    "LOG [options]",
    "Remove deleted records for good and free their space. The other records keep their order, at new offsets; "
    "cursors, places of `jitdb tail` and indexes stay valid. Programs may read the log meanwhile, but none may write "
    "to it. Needs space for a second log. Ctrl-C or a crash leaves the log as it was.",
    [
        ("compact events.log --dry-run", "how much it would free; changes nothing"),
        ("compact events.log", "do it"),
    ],
    *("log", "more_logs", "dry_run", "force", *FORMAT),
    changed("indexes", "folder of the index files to keep valid, or `none` (default: .jitdb beside the log)"),
)
def compact(options: Namespace) -> int:
    """Compact it, or each of several, and say what that did."""
    for each in each_file(options):
        told = _forecast(each) if options.dry_run else _compact(each)
        if not options.quiet or options.dry_run:
            show(told if each is options else f"{each.log}: {told}")
            flush()
    return 0


def _forecast(options: Namespace) -> str:
    from jitdb.log.maintenance.report import Compaction

    with log_only(options) as log:
        if not isinstance(log, MaintainedSource):
            raise log.refusal("compacted")
        stats = log.stats()
    if not stats.deleted_records:
        return str(Compaction(0, stats.records, stats.total_bytes, stats.total_bytes, 0.0))
    return (
        f"{counted(stats.deleted_records, 'record is', 'records are')} deleted, {stats.records:,} would stay: "
        f"about {stats.deleted_bytes:,} of {stats.total_bytes:,} bytes can be given back"
    )


def _compact(options: Namespace) -> str:
    check_free(options.log, "compacted", options)
    with log_only(options, writing=True) as log, database(options, log) as db:
        return compacted(db)


def compacted(db: JITDB) -> str:
    """Compact its log; return what that did, in words. An interrupt says in which state the log is."""
    before = db.log.generation
    try:
        done = db.compact()
        return f"{done}{_taken_over(db) if done.removed else ''}"
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(
            "the log is as it was"
            if db.log.generation == before
            else "the log is compacted; indexes that were not taken over yet are by the next question"
        )
        raise


def _taken_over(db: JITDB) -> str:
    """How many indexes are still valid, in words."""
    rows = () if db.folder is None else db.indexes().rows
    taken = sum(row.state in ("fresh", "stale") for row in rows)
    text = f"; {counted(taken, 'index was', 'indexes were')} taken over" if rows else ""
    lost = len(rows) - taken
    return text + (f", {lost:,} will be built anew" if lost else "")


def sample(text: str) -> float | int:
    """A share or a number of records.

    >>> sample("1%"), sample("0.5"), sample("1,000")
    (0.01, 0.5, 1000)
    """
    plain = text.strip().replace(",", "").replace("_", "")
    try:
        value = float(plain[:-1]) / 100 if plain.endswith("%") else float(plain) if "." in plain else int(plain)
    except ValueError:
        value = -1
    if value <= 0 or (isinstance(value, float) and value > 1):
        raise argparse.ArgumentTypeError(
            f"a part of the records, as 1% or 0.01, or a number of them is expected, not {text!r}"
        )
    return value


@command(
    "LOG [options]",
    "Read the whole log, the files beside it and its indexes, and report what is not as it was written: damaged "
    "blocks and what they cost, records that do not decode, indexes that disagree with the records. Changes nothing. "
    "The exit code is 0 for a sound log, 1 for a damaged one.",
    [
        ("verify events.log", "the log and all its indexes"),
        ("verify events.log --sample 1%", "compare the indexes with a random part of the records"),
        ("verify events.log --json", "for programs"),
        ("verify logs", "all files of a folder"),
    ],
    *("log", "more_logs"),
    option(
        "--sample PART",
        "compare the indexes with a part of the records only: 1%%, 0.01, or a number of records (default: all)",
        type=sample,
    ),
    *("json", *READING),
)
def verify(options: Namespace) -> int:
    """Print what was found; of many logs, what is wrong with any."""
    if is_many(options):
        return _verify_all(options)
    with database(options) as db:
        report = db.verify(options.sample)
        show_report(report, options.json)
        return 0 if report.ok else 1


def _verify_all(options: Namespace) -> int:
    reports, wrong = {}, 0
    opened, together = list(each_log(options)), list(each_bundle(options, is_whole=True))
    for each in (*opened, *together):
        try:
            with database(each) as db:
                report = db.verify(options.sample)
        except LogError as error:
            wrong += 1
            if options.json:
                reports[each.log] = {"ok": False, "error": error.reason}
            else:
                complain(Diagnostic.of(error))
            continue
        wrong += not report.ok
        if options.json:
            reports[each.log] = report.to_json()
        elif not report.ok:
            show(f"{each.log}:")
            show_report(report, as_json=False)
    if options.json:
        show_json({"ok": not wrong, "logs": reports})
    else:
        sound = "all are sound" if not wrong else f"{counted(wrong, 'is', 'are')} not"
        told = counted(len(opened), "log", "logs")
        if together:
            told += f" and {counted(len(together), 'bundle of small files', 'bundles of small files')}"
        show(f"{told} verified: {sound}")
    flush()
    return 1 if wrong else 0


@command(
    "LOG [options]",
    "Verify a log and repair what is damaged. The readable records of damaged blocks are kept and the rest becomes "
    "deleted records; each damaged block is kept in a file beside the log. Unusable indexes are rebuilt. No program "
    "may write to the log.",
    [
        ("repair events.log --dry-run", "what is damaged, and what would be done; changes nothing"),
        ("repair events.log", "do it"),
    ],
    *("log", "more_logs", "dry_run", "json", *READING),
)
def repair(options: Namespace) -> int:
    """Repair it, or each of several, and say what was done."""
    for each in each_file(options):
        with log_only(each, writing=not options.dry_run) as log, database(each, log) as db:
            if each is not options and not options.json:
                show(f"{each.log}:")
            show_report(db.verify() if options.dry_run else db.repair(), options.json)
    return 0


@command(
    "FILE [-o OUT] [options]",
    "Compress a file of JSON Lines into short zstd frames, so that single records can be read; the file may be "
    "compressed with gzip or zstd already. No line is split between frames, and a seek table at the end lets other "
    "tools read from the middle, too; `zstd -d` gives the lines back. The result is read back and compared before it "
    "is kept. FILE stays, unless --remove is given.",
    [
        ("pack events.ndjson", "into events.ndjson.zst"),
        ("pack 2023.ndjson.gz -o packed.zst", "repack a compressed file"),
        ("pack 2024.ndjson.gz --remove", "replace it by 2024.ndjson.zst"),
    ],
    changed("log", "file of JSON Lines; no program may be writing to it", metavar="FILE"),
    "more_logs",
    option("-o, --output OUT", "write to OUT (default: FILE.zst, replacing .gz)"),
    option("-f, --force", "replace OUT if it exists"),
    option("--keep", "keep FILE (the default)", dest="remove", action="store_false", default=False),
    option("--remove", "remove FILE once OUT is durable; FILE and OUT may be the same"),
    option("--level N", "compression level of zstd, up to 22 (default: 3)", type=number(1), default=3),
)
def pack(options: Namespace) -> int:
    """Pack it, or each of several, and say what was done."""
    if options.output and options.more_logs:
        raise UsageError("pack: -o names one file, and these are several", "leave it out, or pack them one by one")
    for each in each_file(options):
        _pack(File(each.log), options)
    return 0


def _pack(source: File, options: Namespace) -> None:
    from jitdb.engine.progress import Bar
    from jitdb.log.lines import packer

    target = File(options.output) if options.output else packer.packed_name(source)
    size = source.stat().st_size
    with Bar(f"packing {source.name}", size, wanted_progress(options)) as bar:
        done = packer.pack(
            source,
            target,
            level=min(options.level, 22),
            replace=options.force,
            remove=options.remove,
            told=lambda done, total: bar(size * done // max(done, total, 1)),
        )
    if not options.quiet:
        show(
            f"{target}: {counted(done.frames, 'frame', 'frames')} of {done.text:,} bytes of lines in {done.after:,} "
            f"bytes; {source.name} had {done.before:,}"
        )
