"""`jitdb query`: show the records that match, as lines of JSON or as a table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.expressions import read_question
from jitdb.cli.failures import UsageError, shown_texts
from jitdb.cli.opening import paths_of, seen_or_asked
from jitdb.cli.options import PRETTY, READING, SHOWN, changed, fields, number, option
from jitdb.cli.output.formats import (
    FORMATS,
    chosen,
    format_of,
    note_unseen,
    paths_by_name,
    records_of,
    settings_of,
    wants_pretty,
    write_answer,
)
from jitdb.cli.output.output import output, show
from jitdb.cli.output.passages import CONTEXT, marked, passage_lines, wants_context
from jitdb.cli.output.tables import TABLE_ROWS, show_records
from jitdb.cli.parser import Show, command
from jitdb.common.words import counted

if TYPE_CHECKING:
    from jitdb.display.parts import Marks
    from jitdb.log.any_log import AnyLog
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

_FOR_PEOPLE: Final = ("pretty", "table")


@command(
    "LOG [EXPR] [options]",
    "Show the records that match, oldest first: on a terminal as a log for people, or as a table where they have no "
    "message; as NDJSON (one JSON value a line) into a pipe or file. Values that JSON lacks, such as bytes, are "
    'written as {"$bytes": "…base64…"}; docs/command-line.md lists all. With '
    "--quiet the exit code is 1 where none matches.",
    [
        ("query events.log 'level == \"error\"' --descending --limit 5", "the five newest errors"),
        ("query events.log --fields time,user.name,message", "these columns"),
        ("query events.log --sort -status,user.name --limit 5", "the five with the highest status, then by name"),
        ("query events.log 'user.name == \"ada\"' --output ada.ndjson", "into a file"),
    ],
    *("log", "expressions"),
    changed("limit", f"at most N records (default: {TABLE_ROWS} on a terminal, else all)"),
    option("--skip N", "leave out the first N", type=number(0), default=0, group=SHOWN),
    option("--descending", "newest first, by the time in each record", group=SHOWN),
    option("--arrival", "in the order of the log, not by time", group=SHOWN),
    "sort",
    option(
        "--dedup PATHS",
        "only the first record of each value of a field, or of several: a.b,c.d",
        type=fields,
        group=SHOWN,
    ),
    option("--last", "with --dedup: the last record of each value", group=SHOWN),
    *("one_of", "since", "until", "as_of", "offsets", "raw"),
    *CONTEXT,
    option(
        "--format",
        "auto: pretty or a table on a terminal, else by the ending of FILE (.csv, .tsv, .arrow, .parquet), else "
        "ndjson; "
        "one of " + ", ".join(FORMATS[1:]),
        choices=FORMATS,
        default="auto",
        group=SHOWN,
    ),
    *PRETTY,
    option(
        "--text",
        "in JSON Lines: add the text before a record as its field _prefix, and lines of text behind it as _text",
        group=SHOWN,
    ),
    changed("fields", "columns of the table, or keys of each JSON line: a.b,c.d"),
    *("output", "escape_formulas", *READING),
)
def query(options: Namespace) -> int:
    """Write the records, a page at a time."""
    operation = read_question(options)
    form = "ndjson" if options.offsets else "pretty" if wants_pretty(options) else ""
    form = "raw" if options.raw else form or format_of(options, "table")
    has_context = _check(options, form)
    with shown_texts(options.text), seen_or_asked(options, query.look if form == "ndjson" else None) as (records, db):
        if db is None:
            _write(records or ())
            return 0
        from jitdb.cli.output.notes import is_any, note_answer, note_called_otherwise, note_order

        note_order(db, operation, options)
        operation = deduped(db, operation, options)
        if has_context:
            _with_context(db, operation, options, form)
        elif form in _FOR_PEOPLE:
            _for_people(db, operation, options, form)
        else:
            write_answer(db, operation, settings_of(options), options, form)
            if options.fields:
                columns = list(paths_by_name(options.fields).values())
                note_called_otherwise(db, operation, columns, options, taken="shown")
        is_empty = options.around is None and not is_any(db, operation, options)
        note_answer(db, options.operation, options, is_empty=is_empty)
    return int(options.quiet and is_empty)


_OTHERS: Final = (
    "skip", "arrival", "sort", "dedup", "offsets", "raw", "text", "fields", "output", "timestamp", "time_unit",
    "sequence",
)  # fmt: skip


@query.looks
def seen(log: AnyLog, indexes: Path, options: Namespace) -> list[Any] | None:
    """A few records of a file of JSON Lines: others are read by kernels, over numpy."""
    if any(getattr(options, name) for name in _OTHERS) or wants_context(options) or not options.limit:
        return None
    from jitdb.log.lines.fetching import FEW

    if not log.framing.is_plain or options.limit >= FEW:
        return None
    from jitdb.engine.face.glance_by_time import first_at_a_glance

    return first_at_a_glance(log, indexes, options.operation, options.limit, options.descending)


def _write(records: Iterable[Any]) -> None:
    from jitdb.common.json_text import line_of

    with output(None, ()) as out:
        out.write(map(line_of, records))


@query.answers
def answer(db: AnyDatabase, options: Namespace, show: Show) -> Any:
    """A page of the records; None if they are written to a file."""
    if options.output:
        query.run(options)
        print(f"written: {options.output}")
        return None
    operation = options.operation
    if wants_context(options) or options.text or options.raw:
        raise UsageError(
            "query: the records around matches, --text and --raw are for a shell",
            "in Python: db.query(…).context(…), db.query(…).as_raw()",
        )
    from jitdb.cli.output.notes import note_answer, note_order

    if options.format != "auto":
        raise UsageError("query: --format is for files: say -o FILE, or keep the records: rows << …")
    check_sort(options)
    settings = settings_of(options)
    if options.offsets:
        settings["as_offsets"] = True
    if options.fields:
        settings["select"] = options.fields
    note_order(db, operation, options)
    operation = deduped(db, operation, options)
    limit = options.limit or (max(db.count(operation, as_of=options.as_of), 1) if options.is_kept else TABLE_ROWS)
    page = db.paginate(operation, limit=limit, **settings)
    note_unseen(db, page.data, dict(page.select or ()), options)
    note_answer(db, options.operation, options, is_empty=not page.total)
    return page


def _check(options: Namespace, form: str) -> bool:
    """Whether the records around matches are asked for. Raises UsageError for options that exclude each other."""
    if options.offsets and (options.fields or options.format not in ("auto", "ndjson")):
        raise UsageError(f"query: --offsets prints offsets only; leave --fields and --format {options.format} out")
    if options.raw:
        _check_raw(options)
    if options.offsets and options.text:
        raise UsageError("query: --offsets prints offsets only; leave --text out")
    if form in _FOR_PEOPLE and options.output:
        raise UsageError("query: pretty lines and tables are for the terminal; --output writes other formats")
    if form == "pretty" and options.fields:
        raise UsageError("query: --fields are columns of a table, or keys of JSON lines", "say --format table")
    has_context = wants_context(options)
    if form not in (*_FOR_PEOPLE, "ndjson", "raw") and (has_context or (options.text and form != "json")):
        other = "--text" if options.text else "-A, -B, -C and --around"
        raise UsageError(f"query: {other} and --format {form} do not go together", "--format ndjson does")
    if options.last and not options.dedup:
        raise UsageError("query: --last says which record of each value", "of which field: --dedup user")
    if options.dedup and options.around is not None:
        raise UsageError("query: --around shows what is around one record; leave --dedup out")
    if options.sort and options.arrival:
        raise UsageError("query: --sort and --arrival both say in which order; leave one of them out")
    check_sort(options)
    return has_context


def _check_raw(options: Namespace) -> None:
    others = {
        "--offsets": options.offsets, "--fields": options.fields, "--text": options.text,
        f"--format {options.format}": options.format != "auto", "--full, --traces, --utc": wants_pretty(options),
    }  # fmt: skip
    for other, is_given in others.items():
        if is_given:
            raise UsageError(f"query: --raw prints records as they stand in the file; leave {other} out")


def _with_context(db: AnyDatabase, operation: Operation | None, options: Namespace, form: str) -> None:
    paths = paths_by_name(options.fields)
    if form not in _FOR_PEOPLE:
        with output(options.output, paths_of(db)) as out:
            for lines in passage_lines(db, operation, options, paths):
                out.write(lines)
        return
    records, marks = marked(db, operation, options, options.limit or TABLE_ROWS)
    _show(records, options, form, marks)
    wanted = {**paths, **paths_by_name([options.same] if options.same else [])}
    note_unseen(db, (chosen(record, wanted) for record in records), wanted, options)
    if not options.quiet:
        answers = sum(marks.answers)
        total = answers if options.around is not None else db.count(operation, as_of=options.as_of)
        show(_footer(answers, total, options))


def check_sort(options: Namespace) -> None:
    """Raises UsageError where several --sort name one field twice."""
    from jitdb.errors import QueryError
    from jitdb.operators.nodes.selection import sort_keys

    try:
        options.sort = options.sort and sort_keys("--sort", options.sort)
    except QueryError as error:
        raise UsageError(f"query: {error.reason}") from None


def deduped(db: AnyDatabase, operation: Operation | None, options: Namespace) -> Operation | None:
    """The question for the records that --dedup leaves, as they are now."""
    if not options.dedup:
        return operation
    query = db.query(operation)
    query = query.sort_by(*options.sort) if options.sort else query.sort_by_arrival() if options.arrival else query
    query = query if options.as_of is None else query.as_of(options.as_of)
    found: Operation = query.dedup(options.dedup, options.last).set()
    paths = list(paths_by_name(options.dedup).values())
    if not options.quiet and not db.count(found) and query.count():
        from jitdb.cli.output.notes import note_unknown_columns

        note_unknown_columns(db, paths if len(paths) == 1 else filter(db.evidence().lack, paths), options)
    elif not options.quiet:
        from jitdb.cli.output.notes import note_called_otherwise

        note_called_otherwise(db, operation, paths, options, taken="left out")
    return found


def _for_people(db: AnyDatabase, operation: Operation | None, options: Namespace, form: str) -> None:
    from jitdb.display.columns import left_out
    from jitdb.display.terminal import columns

    limit = options.limit or TABLE_ROWS
    records = list(records_of(db, operation, settings_of(options), options, limit))
    total = db.count(operation, as_of=options.as_of)  # behind the pages, whose scan brings all indexes up to date
    hidden = _show(records, options, form)
    note_unseen(db, records, paths_by_name(options.fields), options)
    if not options.quiet:
        if told := left_out(hidden, columns(80)):
            show(told)
        show(_footer(len(records), total, options))


def _show(records: Sequence[Any], options: Namespace, form: str, marks: Marks | None = None) -> Sequence[str]:
    """Print records; return the fields that a table has no room for."""
    from jitdb.cli.output.pretty import are_of_log, show_pretty
    from jitdb.display.parts import Records

    if form == "pretty" or (options.format == "auto" and not options.fields and are_of_log(records)):
        show_pretty(records, options, marks)
        return []
    paths, first = paths_by_name(options.fields), [key.path for key in options.sort]
    by_name = bool(paths) and marks is None
    return show_records(Records(records, paths, by_name, first, options.timestamp, marks))


def _footer(shown: int, total: int, options: Namespace) -> str:
    if not shown:
        return "no records match" if not total else f"{total:,} records match, none behind the first {options.skip:,}"
    following = options.skip + shown
    if shown == total:
        return counted(total, "record", "records")
    more = f"; more with --skip {following}" if following < total else ""
    return f"records {options.skip + 1:,} to {following:,} of {total:,}{more}"
