"""`jitdb compact`: remove deleted records for good."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from jitdb.cli.opening import check_free, database, each_file, log_only
from jitdb.cli.options import FORMAT, GENERAL
from jitdb.cli.output.output import flush, show
from jitdb.cli.parser import Parser
from jitdb.common.words import counted
from jitdb.log.source import MaintainedSource

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB

PARSER = Parser(
    "compact",
    "LOG [options]",
    "Remove deleted records for good, and give their room back. All others stay, in their order, at other offsets; "
    "cursors, and the places that `jitdb tail` keeps, stay valid, and indexes are taken over. Programs that read "
    "the log with jitdb go on meanwhile; one that writes to it must end first. It takes the room of a second log. "
    "Ctrl-C, or a crash, leaves the log as it was.",
    [
        ("compact events.log --dry-run", "what there is to gain; changes nothing"),
        ("compact events.log", "do it"),
    ],
)
PARSER.take("log", "more_logs", "dry_run", "force", *FORMAT)
PARSER.take("indexes", help="folder of the index files to take over, or `none` (default: LOG.jitdb/indexes)")
PARSER.take(*GENERAL)


def run(options: Namespace) -> int:
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
    """Compact its log; gives what that did, in words. Whoever interrupts it learns what the log is then."""
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
    """How many of its indexes are those of the log as it is now."""
    rows = () if db.folder is None else db.indexes().rows
    taken = sum(row.state in ("fresh", "stale") for row in rows)
    text = f"; {counted(taken, 'index was', 'indexes were')} taken over" if rows else ""
    lost = len(rows) - taken
    return text + (f", {lost:,} will be built anew" if lost else "")
