"""`jitdb query`: show the records that match, as lines of JSON or as a table."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from jitdb.cli.expressions import one_expression
from jitdb.cli.failures import UsageError
from jitdb.cli.opening import asked, paths_of
from jitdb.cli.options import GENERAL, READING, number
from jitdb.cli.output.fields import chosen, note_unseen, paths_by_name, settings_of
from jitdb.cli.output.formats import FORMATS, format_of, records_of, write_answer
from jitdb.cli.output.notes import note_answer, note_order
from jitdb.cli.output.output import output, show
from jitdb.cli.output.passages import passage_lines, passage_table, take_context, wants_context
from jitdb.cli.output.sheet import TABLE_ROWS
from jitdb.cli.parser import Parser
from jitdb.common.words import counted

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

PARSER = Parser(
    "query",
    "LOG [EXPR] [options]",
    "Show the records that match, oldest first: as a table on a terminal, as NDJSON (one JSON value a line) into a "
    'pipe or file. What JSON has no word for, such as bytes, comes as {"$bytes": "…base64…"}; docs/command-line.md '
    "lists all.",
    [
        ("query events.log 'level == \"error\"' --descending --limit 5", "the five newest errors"),
        ("query events.log --fields time,user.name,message", "columns of your choice"),
        ("query events.log --sort -status,user.name --limit 5", "the five of the highest status, then by name"),
        ("query events.log 'user.name == \"ada\"' --output ada.ndjson", "into a file"),
    ],
)
PARSER.take("log", "expressions")
_SHOWN = PARSER.group("which records, and how")
PARSER.take("limit", help=f"at most N records (default: {TABLE_ROWS} in a table, else all)")
_SHOWN.add_argument("--skip", metavar="N", type=number(0), default=0, help="leave out the first N")
_SHOWN.add_argument("--descending", action="store_true", help="newest first, by the timestamp that a record declares")
_SHOWN.add_argument("--arrival", action="store_true", help="in the order of the log, not of declared timestamps")
PARSER.take("sort")
PARSER.take("since", "until", "as_of", "offsets")
take_context(PARSER)
_SHOWN.add_argument(
    "--format", choices=FORMATS, default="auto",
    help="auto: a table on a terminal, else what the name of FILE ends in (.csv, .tsv, .arrow, .parquet), or ndjson; "
    "one of " + ", ".join(FORMATS[1:]),
)  # fmt: skip
_SHOWN.add_argument(
    "--text", action="store_true",
    help="of JSON Lines: put the text before a record into its field _prefix, and lines of text behind it into _text",
)  # fmt: skip
PARSER.take("fields", help="columns of the table, or keys of each JSON line: a.b,c.d")
PARSER.take("output", "escape_formulas", *READING, *GENERAL)


def run(options: Namespace) -> int:
    """Write the records, a page at a time."""
    operation = one_expression(options)
    if options.offsets and (options.fields or options.format not in ("auto", "ndjson")):
        raise UsageError(f"query: --offsets prints offsets only; leave --fields and --format {options.format} out")
    if options.offsets and options.text:
        raise UsageError("query: --offsets prints offsets only; leave --text out")
    if options.format == "table" and options.output:
        raise UsageError("query: a table is for the terminal; --output writes other formats")
    form = "ndjson" if options.offsets else format_of(options, "table")
    has_context = wants_context(options)
    if form not in ("table", "ndjson") and (has_context or (options.text and form != "json")):
        other = "--text" if options.text else "-A, -B, -C and --around"
        raise UsageError(f"query: {other} and --format {form} do not go together", "--format ndjson does")
    if options.sort and options.arrival:
        raise UsageError("query: --sort and --arrival both say in which order; leave one of them out")
    check_sort(options)
    with asked(options) as db:
        note_order(db, operation, options)
        if has_context:
            _with_context(db, operation, options, form)
        elif form == "table":
            _table(db, operation, options)
        else:
            write_answer(db, operation, settings_of(options), options, form)
        is_empty = options.around is None and not db.count(operation, as_of=options.as_of)
        note_answer(db, operation, options, is_empty=is_empty)
    return 0


def _with_context(db: AnyDatabase, operation: Operation | None, options: Namespace, form: str) -> None:
    paths = paths_by_name(options.fields)
    if form != "table":
        with output(options.output, paths_of(db)) as out:
            for lines in passage_lines(db, operation, options, paths):
                out.write(lines)
        return
    records, answers = passage_table(db, operation, options, paths, options.limit or TABLE_ROWS)
    wanted = {**paths, **paths_by_name([options.same] if options.same else [])}
    note_unseen(db, (chosen(record, wanted) for record in records), wanted, options)
    if not options.quiet:
        total = answers if options.around is not None else db.count(operation, as_of=options.as_of)
        show(_footer(answers, total, options))


def check_sort(options: Namespace) -> None:
    """Raises UsageError where several --sort name one field twice."""
    from jitdb.errors import QueryError
    from jitdb.operators.nodes.sorting import sort_keys

    try:
        options.sort = options.sort and sort_keys("--sort", options.sort)
    except QueryError as error:
        raise UsageError(f"query: {error.reason}") from None


def _table(db: AnyDatabase, operation: Operation | None, options: Namespace) -> None:
    from jitdb.cli.output.table import print_table

    limit = options.limit or TABLE_ROWS
    records = list(records_of(db, operation, settings_of(options), options, limit))
    total = db.count(operation, as_of=options.as_of)  # behind the pages, whose scan brings all indexes up to date
    paths = paths_by_name(options.fields)
    first = [key.path for key in options.sort]
    hidden = print_table(records, paths, options.timestamp, by_name=bool(paths), first=first)
    note_unseen(db, records, paths, options)
    if not options.quiet:
        _tell_left_out(hidden)
        show(_footer(len(records), total, options))


def _tell_left_out(names: list[str]) -> None:
    from jitdb.cli.output.table import console
    from jitdb.display.columns import left_out

    said = left_out(names, console().width)
    if said:
        show(said)


def _footer(shown: int, total: int, options: Namespace) -> str:
    if not shown:
        return "no records match" if not total else f"{total:,} records match, none behind the first {options.skip:,}"
    following = options.skip + shown
    if shown == total:
        return counted(total, "record", "records")
    more = f"; more with --skip {following}" if following < total else ""
    return f"records {options.skip + 1:,} to {following:,} of {total:,}{more}"
