"""`jitdb export`: write records as NDJSON, in the order of the log."""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.expressions import read_question
from jitdb.cli.failures import Failure, UsageError, located, say
from jitdb.cli.opening import asked, each_log, is_many, log_only, refuse_of_several, wanted_progress
from jitdb.cli.options import READING, changed, option
from jitdb.cli.output.formats import FORMATS, format_of, write_answer
from jitdb.cli.output.output import Output, output
from jitdb.cli.parser import command
from jitdb.cli.places import check_as_of
from jitdb.common.words import counted

if TYPE_CHECKING:
    from jitdb.log.any_log import AnyLog
    from jitdb.log.source import Record
    from jitdb.operators import Operation

_PAGE: Final = 2000  # records read and written at a time


@command(
    "LOG [EXPR] [options]",
    "Write all records, or those that match, as NDJSON: one JSON value a line, in the order of the log. "
    "`jitdb import --tagged` reads them back exactly, bytes and NaN included.",
    [
        ("export events.log -o events.ndjson", "everything, into a file"),
        ("export events.log -o events.ndjson.gz", "compressed"),
        ("export events.log 'level == \"error\"' | head -n 3", "what matches"),
        ("export events.log | jitdb import --tagged --codec bipf - events.bipf", "into a log of another codec"),
    ],
    *("log", "expressions", "output", "one_of", "since", "until", "as_of", "fields", "escape_formulas"),
    option(
        "--format",
        "auto: by the ending of FILE (.csv, .tsv, .arrow, .parquet), else ndjson",
        choices=[form for form in FORMATS if form not in ("pretty", "table")],
        default="auto",
    ),
    changed("skip_bad", "skip damaged blocks and records that cannot be decoded; the exit code is then 1"),
    *READING,
)
def export(options: Namespace) -> int:
    """Write the records."""
    options.limit, options.offsets, options.text = None, False, False
    operation = read_question(options)
    form = format_of(options, "ndjson")
    if options.skip_bad and (form != "ndjson" or options.fields):
        raise UsageError("export: --skip-bad passes over whole records", "leave --format and --fields out")
    skipped = 0
    with _damage(options) as damaged:
        if operation is not None or form != "ndjson" or options.fields:
            _answer(operation, options, form)
        elif is_many(options):
            skipped = _all_logs(options)
        else:
            with log_only(options) as log:
                check_as_of(log, options.as_of)
                with output(options.output, [options.log]) as out:
                    skipped = _everything(log, out, options)
    if skipped:
        say(f"jitdb: {counted(skipped, 'record', 'records')} that cannot be decoded left out")
    if damaged:
        blocks = counted(len(damaged), "damaged block", "damaged blocks")
        say(f"jitdb: the records of {blocks} are left out; see `jitdb verify {options.log}`")
    return 1 if skipped or damaged else 0


@contextmanager
def _damage(options: Namespace) -> Iterator[set[int]]:
    """Collect the numbers of damaged blocks, whose records are left out. Raises Failure for the first, without --skip-
    bad.
    """
    from jitdb.errors import DamageWarning

    damaged: set[int] = set()
    with warnings.catch_warnings():
        tell = warnings.showwarning

        def note(message: Warning | str, *rest: Any, **named: Any) -> None:
            if isinstance(message, DamageWarning):
                damaged.update(fault.block for fault in message.faults if fault.block is not None)
            tell(message, *rest, **named)

        warnings.showwarning = note
        if not options.skip_bad:
            warnings.simplefilter("error", DamageWarning)
        try:
            yield damaged
        except DamageWarning as damage:
            fault = located(damage.faults[0])
            failure = Failure(fault, f"jitdb repair {shlex.quote(options.log)} restores what can be restored")
            failure.add_note("--skip-bad skips damaged blocks")
            for hint in getattr(damage, "__notes__", ()):
                failure.add_note(hint)
            raise failure from damage


def _all_logs(options: Namespace) -> int:
    """Write one log after the other; return the number of records left out."""
    refuse_of_several(options, "--as-of")
    logs = list(each_log(options))
    with output(options.output, [each.log for each in logs]) as out:
        skipped = 0
        for each in logs:
            with log_only(each) as log:
                skipped += _everything(log, out, each)
    return skipped


def _answer(operation: Operation | None, options: Namespace, form: str) -> None:
    """Write the records that match, or some fields of them, in the order of the log."""
    from jitdb.cli.output.notes import note_counted

    with asked(options) as db:
        write_answer(db, operation, {"sort_by": "arrival", "as_of": options.as_of}, options, form)
        if operation is not None:
            note_counted(db, operation, options, is_empty=not db.count(operation, as_of=options.as_of))


def _everything(log: AnyLog, out: Output, options: Namespace) -> int:
    """Stream the log, which takes no index; return the number of records left out."""
    from jitdb.common.json_text import line_of
    from jitdb.engine.progress import Bar
    from jitdb.errors import DecodeError

    skipped = 0
    end = log.durable_end
    shown = False if options.output in (None, "-") else wanted_progress(options)

    def lines(bar: Bar) -> Iterator[bytes]:
        nonlocal skipped
        decode = log.codec.decode
        for count, (offset, _, data) in enumerate(_stream(log, options.as_of)):
            try:
                value = decode(data)
            except DecodeError as error:
                if not options.skip_bad:
                    raise Failure(
                        f"{log.path}: the record at offset {offset} cannot be decoded as {log.codec.name}: {error}",
                        "--skip-bad skips such records",
                    ) from error
                skipped += 1
                continue
            yield line_of(value)
            if not count % _PAGE:
                bar(offset)

    with Bar(f"exporting {log.path.name}", end, shown) as bar:
        out.write(lines(bar))
    return skipped


def _stream(log: AnyLog, as_of: int | str | None) -> Iterator[Record]:
    """The records of the log as of that state, without those deleted since."""
    if as_of is None:
        return log.stream(raw=True)
    if isinstance(as_of, int):
        return log.stream(raw=True, lte=as_of)
    from jitdb.engine.cursor import parse_cursor

    place = parse_cursor(as_of)
    if place.generation == log.generation:
        return log.stream(raw=True, lt=place.offset)
    rank = place.moved_seq(log)
    return takewhile(lambda record: record.seq < rank, log.stream(raw=True))
