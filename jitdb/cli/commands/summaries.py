"""The commands that summarize all records that match: values, timeline, stats, histogram, patterns, fields.

Each asks the method of databases that has the summary (operators/summaries/asking.py), and notes what the answer leaves
unsaid: fields that no record has, values that are no numbers.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING, Final, TypeAlias

from jitdb.cli.expressions import read_expression
from jitdb.cli.failures import UsageError, note
from jitdb.cli.options import READING, SUMMARY, changed, instant, number, option
from jitdb.cli.output.tables import TABLE_ROWS
from jitdb.cli.parser import Show, question
from jitdb.common.paths import format_path
from jitdb.common.values import MAP, UNDEFINED, value_at
from jitdb.operators.nodes.field_ref import as_path
from jitdb.operators.summaries.summary import AUTO, BINS, QUANTILES, SERIES

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.log.any_log import AnyLog
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Query
    from jitdb.operators.summaries.distinct import DistinctCounts
    from jitdb.operators.summaries.exploring.patterns import Patterns
    from jitdb.operators.summaries.fields import Fields
    from jitdb.operators.summaries.histograms import Histogram
    from jitdb.operators.summaries.shares import Shares
    from jitdb.operators.summaries.stats import Stats, StatsBy
    from jitdb.operators.summaries.timelines import Timeline
    from jitdb.operators.summaries.value_counts import GroupCounts, ValueCounts

    AnyStats: TypeAlias = Stats | StatsBy | DistinctCounts

_OF_A_FIELD: Final = "LOG FIELD [EXPR] [options]"
_DAY: Final = 86_400  # seconds
_FIRST_YEAR: Final = 1990
_COMMON: Final = (*SUMMARY, *READING)


def bins(text: str) -> int | list[float]:
    """How many, or where they begin.

    >>> bins("10"), bins("0,10,100")
    (10, [0.0, 10.0, 100.0])
    """
    try:
        return [float(part) for part in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a number of bins is expected, or where they begin and the last one ends, as in 0,10,100, not {text!r}"
        ) from None


def shares(text: str) -> list[float]:
    """Quantiles, as shares from 0 to 1.

    >>> shares("0.5,0.99")
    [0.5, 0.99]
    """
    try:
        found = [float(share) for share in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 <= share <= 1 for share in found):
        raise argparse.ArgumentTypeError(f"shares from 0 to 1, such as 0.5,0.99, not {text}")
    return found


def one_field(text: str) -> Path:
    """A path."""
    return as_path("--field", text)


@question(
    _OF_A_FIELD,
    "Count records by the value of a field, the most frequent value first. Of equally frequent values the smaller "
    "comes first.",
    [
        ("values events.log level", "of all records"),
        ("values events.log user.name 'level == \"error\"' --limit 5", "of those that match"),
        ("values events.log level --by status,user.name", "of several fields together"),
        ("values events.log level --format csv", "for a spreadsheet"),
    ],
    *("log", "field_and_expression"),
    changed("by", "count it together with another field, or several: a.b,c.d"),
    changed("limit", f"at most N values (default: {TABLE_ROWS} in a table, else all)"),
    *_COMMON,
)
def values(db: AnyDatabase, options: Namespace, show: Show) -> ValueCounts | GroupCounts:
    paths = [options.path, *_by(options)]
    query, limit = _query(db, options), _rows(options)
    counts = query.group_count(*paths, limit=limit) if options.by else query.value_counts(options.path, limit=limit)
    show(counts)
    _note_nothing(db, options, counts.total, paths if counts.missing == counts.total else ())
    if 0 < counts.missing < counts.total:
        _note_otherwise(db, options, paths)
    _note_maps(db, options, paths)
    from jitdb.cli.output.loose import note_what_is_loose

    note_what_is_loose(db, options, is_empty=counts.missing == counts.total)
    return counts


@values.looks
def seen_values(log: AnyLog, indexes: File, options: Namespace) -> ValueCounts | None:
    from jitdb.engine.face.glance import values_at_a_glance

    counts = None if options.operation is not None or options.by else values_at_a_glance(log, indexes, options.path)
    if not counts or not any(key != b"\0" for key in counts) or any(key[0] == MAP for key in counts):
        return None  # a note may be due
    from jitdb.cli.output.loose import note_loose
    from jitdb.operators.summaries.summary import Ranked
    from jitdb.operators.summaries.value_counts import counted_values, in_order

    missing = counts.pop(b"\0", 0)
    there = [((key,), count) for key, count in counts.items() if count]
    total = sum(counts.values()) + missing
    note_loose(log, options)
    return counted_values(options.path, Ranked(in_order(there, _rows(options)), len(there), total, missing))


@question(
    "LOG [EXPR] [options]",
    "Count records over time, by the time in each record, in UTC or in the time of a place.",
    [
        ("timeline events.log", "in about as many steps as a screen has lines"),
        ("timeline events.log 'level == \"error\"' --every 1h", "by the hour"),
        ("timeline events.log --every 1d --by level", "and by another field"),
        ("timeline events.log --every 1m --per 1s", "and how many a second"),
    ],
    *("log", "expressions"),
    option("--every STEP", "10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y, … (default: by the span)", default=AUTO),
    "tz",
    changed("by", "count the most frequent values of another field, or of several, separately"),
    option("--per TIME", "show rates, too: how many records in each 1s, 1m, 1h, …"),
    changed("limit", f"at most N of these values (default: {SERIES})"),
    *_COMMON,
)
def timeline(db: AnyDatabase, options: Namespace, show: Show) -> Timeline:
    by = _by(options)
    line = _query(db, options).timeline(
        every=options.every, by=by, limit=options.limit or SERIES, tz=options.tz, per=options.per
    )
    show(line)
    _note_nothing(db, options, line.total, () if line.values or not line.rows else by, of_times=True)
    _note_times(db, options, line)
    _note_maps(db, options, by)
    return line


@timeline.looks
def seen_timeline(log: AnyLog, indexes: File, options: Namespace) -> Timeline | None:
    if options.operation is not None or options.by or options.tz or options.timestamp or options.time_unit:
        return None
    from jitdb.engine.face.glance_by_time import timeline_at_a_glance
    from jitdb.operators.summaries.timelines import TimelineAsked

    line = timeline_at_a_glance(log, indexes, TimelineAsked(options.every, per=options.per))
    return None if line is None or _is_of_days(line) or _is_of_the_past(line) else line  # a note may be due


@question(
    _OF_A_FIELD,
    "Summarize the numbers of a field: how many, the smallest and the largest, sum, mean, standard deviation and "
    "quantiles; or how many different values it has; or, without a field, of which share of the records an expression "
    "is true. Sums and counts are exact; a quantile is one of the numbers.",
    [
        ("stats events.log ms --every 1m --by service,status", "over time, for each value of other fields"),
        ("stats events.log bytes --by user --order sum --limit 10", "the greatest sums"),
        ("stats events.log user --distinct --every 1d", "how many different values, a day"),
        ("stats events.log --share 'level == \"error\"' --every 1m", "which share of the records are errors"),
    ],
    *("log", "field_and_expression"),
    "by",
    option("--every STEP", "a row for each step of time: 10s, 15m, 1h, 1d, 1w, 1mo, 1q, 1y, …, or auto"),
    "tz",
    option("--distinct", "count the different values of the field, of any kind"),
    option("--share EXPR", "the share of the records for which EXPR is true; give no FIELD with it"),
    option(
        "--order NAME",
        "the rows of --by with the greatest first: records, count, sum, mean, max, p95, distinct, matching, share, …; "
        "'min asc' puts the least first",
    ),
    option("--quantiles SHARES", "such as 0.5,0.9,0.99", type=shares),
    changed("limit", f"at most N values of --by (default: {TABLE_ROWS} in a table, else all)"),
    *_COMMON,
)
def stats(db: AnyDatabase, options: Namespace, show: Show) -> AnyStats | Shares:
    if options.share:
        return _shares(db, options, show)
    from jitdb.operators.summaries.stats import Stats

    query, path, by, quantiles = _query(db, options), options.path, _by(options), options.quantiles
    limit, timed = _rows(options) if by else None, {"every": options.every, "tz": options.tz, "order": options.order}
    found: AnyStats
    if options.distinct:
        if quantiles:
            raise UsageError("stats: --quantiles are those of numbers, and --distinct counts values of any kind")
        found = query.count_distinct(path, by, limit=limit, **timed)
        numbers = found.total - found.missing
    elif by or any(timed.values()):
        found = query.stats_by(path, by, limit=limit, quantiles=quantiles or QUANTILES, **timed)
        numbers = sum(row.stats.count for row in found)
    else:
        found = query.stats(path, quantiles=quantiles or QUANTILES)
        numbers = found.count
    show(found)
    is_empty, counted = not isinstance(found, Stats) and found.missing == found.total, [path] * options.distinct + by
    _note_nothing(db, options, found.total, counted if is_empty else ())
    if 0 < numbers < found.total:
        _note_otherwise(db, options, [path, *by])
    _note_maps(db, options, counted)
    if options.every is not None and not isinstance(found, Stats):
        _note_times(db, options, found)
    if not is_empty and not options.distinct:
        _note_others(db, options, found.total, numbers)
    return found


@stats.looks
def seen_stats(log: AnyLog, indexes: File, options: Namespace) -> Stats | None:
    others = options.by, options.every, options.tz, options.distinct, options.share, options.order
    if options.operation is not None or any(others):
        return None
    from jitdb.engine.face.glance import numbers_at_a_glance

    counts = numbers_at_a_glance(log, indexes, options.path)
    if not counts or not counts.keys() - {None}:
        return None  # a note is due
    from jitdb.operators.summaries.stats import StatsAsked

    numbers = {number: count for number, count in counts.items() if number is not None}
    return StatsAsked(options.path, options.quantiles or QUANTILES).of_counts(numbers, sum(counts.values()))


def _shares(db: AnyDatabase, options: Namespace, show: Show) -> Shares:
    if options.distinct or options.quantiles:
        raise UsageError("stats: --share is of a condition, --distinct and --quantiles are of a field: leave one out")
    from jitdb.cli.output.notes import note_counted

    condition, by = read_expression(options.share), _by(options)
    timed = {"every": options.every, "tz": options.tz, "order": options.order}
    found = _query(db, options).share(condition, by, limit=_rows(options) if by else None, **timed)
    show(found)
    is_empty = bool(found.total) and found.missing == found.total
    _note_nothing(db, options, found.total, by if is_empty else ())
    _note_maps(db, options, by)
    if found.total:
        note_counted(db, condition, options, is_empty=not found.matching)
    if options.every is not None:
        _note_times(db, options, found)
    return found


@question(
    _OF_A_FIELD,
    "Count records by the size of a number. A bin includes its lower bound, not its upper one.",
    [
        ("histogram events.log status", "in bins of a round width"),
        ("histogram events.log status 'level == \"error\"' --bins 0,400,500,600", "in bins of your own"),
    ],
    *("log", "field_and_expression"),
    option("--bins N", f"at most N (default: {BINS}), or their bounds: 0,10,100", type=bins, default=BINS),
    *_COMMON,
)
def histogram(db: AnyDatabase, options: Namespace, show: Show) -> Histogram:
    found = _query(db, options).histogram(options.path, bins=options.bins)
    show(found)
    _note_nothing(db, options, found.total)
    _note_others(db, options, found.total, found.total - found.missing)
    return found


@question(
    "LOG [EXPR] [options]",
    "Show what messages look like: patterns, in which placeholders such as <num> stand for what varies, how many "
    'records have each, and when. `message fits "PATTERN"` asks for the records of one.',
    [
        ("patterns events.log", "of all records, by the field of the message"),
        ("patterns events.log 'level == \"error\"' --field error.text", "of those that match, of another field"),
        ("patterns events.log --since 1h --new-since 1h", "of the last hour, and which are new in it"),
        ("query events.log 'message fits \"user <*> took <num>ms\"'", "the records of a pattern"),
    ],
    *("log", "expressions"),
    option("--field PATH", "the field of the texts (default: the usual one, such as message or msg)", type=one_field),
    option("--every STEP", "the step of the counts over time: 1m, 1h, … (default: by the span)", default=AUTO),
    option(
        "--new-since TIME",
        "mark those that no earlier record of the log has, and show them first: 14:00, 2h (ago)",
        type=instant,
    ),
    changed("limit", f"at most N patterns (default: {TABLE_ROWS} in a table, else all)"),
    *_COMMON,
)
def patterns(db: AnyDatabase, options: Namespace, show: Show) -> Patterns:
    found = _query(db, options).patterns(
        field=options.field, limit=_rows(options), every=options.every, new_since=options.new_since
    )
    show(found)
    is_empty = found.missing == found.total
    kinds = next((field.kinds for field in db.fields() if field.path == found.path), None) if is_empty else None
    if kinds and found.total:
        note(
            options, f"`{format_path(found.path)}` holds no text but {' and '.join(kinds)}: `jitdb values` counts them"
        )
    _note_nothing(db, options, found.total, [found.path] if is_empty and not kinds else ())
    others = [format_path(path) for path in db.messages if path != found.path] if found.missing else []
    if options.field is None and others:
        note(options, f"other logs have their messages elsewhere: --field {others[0]}" + _or(others[1:]))
    return found


@question(
    "LOG [options]",
    "List the fields of the records: path, kinds of values, share of the records that have it, and examples. Looks at "
    "a sample of records from all over the log, and indexes nothing.",
    [
        ("fields events.log", "as a table"),
        ("fields events.log --all", "also rare fields"),
        ("fields events.log --format json", "for programs"),
    ],
    *("log", "more_logs"),
    option("--sample N", "look at N records (default: 1000)", type=number(1), default=1000),
    option("--all", "look at all records, which takes longer"),
    *("summary_format", "escape_formulas", *READING),
)
def fields(db: AnyDatabase, options: Namespace, show: Show) -> Fields:
    found: Fields = db.fields(None if options.all else options.sample)
    show(found)
    return found


def _or(names: Sequence[str]) -> str:
    return f" (or {', '.join(names)})" if names else ""


def _query(db: AnyDatabase, options: Namespace) -> Query:
    query = db.query(options.operation)
    return query if options.as_of is None else query.as_of(options.as_of)


def _by(options: Namespace) -> list[Path]:
    return [as_path("--by", name) for name in options.by]


def _rows(options: Namespace) -> int | None:
    """How many rows are asked for: a table for people is short."""
    limit: int | None = options.limit or (TABLE_ROWS if options.format == "table" else None)
    return limit


def _note_nothing(
    db: AnyDatabase, options: Namespace, total: int, empty: Iterable[Path] = (), *, of_times: bool = False
) -> None:
    """Note which fields of the question no record has, why nothing matched, or that these are `empty`: each, or all of
    them together.

    of_times: notes on times follow, and say whether all records are of another time
    """
    from jitdb.cli.output.notes import (  # late: values of fresh indexes need none
        note_counted,
        note_missing,
        note_unknown_columns,
    )

    (note_missing if of_times else note_counted)(db, options.operation, options, is_empty=not total)
    fields = list(empty)
    if total and fields and not options.quiet:
        unknown = fields if len(fields) == 1 else list(filter(db.evidence().lack, fields))
        note_unknown_columns(db, unknown, options)


def _note_otherwise(db: AnyDatabase, options: Namespace, fields: Sequence[Path]) -> None:
    from jitdb.cli.output.notes import note_called_otherwise

    note_called_otherwise(db, options.operation, fields, options)


def _note_maps(db: AnyDatabase, options: Namespace, counted: Sequence[Path]) -> None:
    """Note which of the fields whose values are counted hold maps."""
    if counted and not options.quiet:
        from jitdb.engine.hinting.hints import map_hints

        for line in map_hints(db.evidence(), counted):
            note(options, line)


def _is_of_days(line: Timeline) -> bool:
    """Whether its steps are shorter than a day, and all records are at midnight of UTC."""
    from jitdb.operators.summaries.arithmetic.calendar import parse_step

    step, starts = parse_step(line.every), [row.start for row in line if row.count]
    is_short = not step.months and step.nanoseconds < _DAY * 10**9
    return is_short and bool(starts) and all(not start.timestamp() % _DAY for start in starts)


def _is_of_the_past(line: Timeline) -> bool:
    """Whether it begins before logs were written, and is no count of seconds from a start."""
    return bool(line.rows) and 1970 < line.rows[0].start.year < _FIRST_YEAR


def _note_times(db: AnyDatabase, options: Namespace, found: Timeline | StatsBy | DistinctCounts | Shares) -> None:
    """Note which field is the time, that none of the records has one, that it holds days alone, or that times without a
    zone stand beside others, or are moved by --tz.
    """
    from jitdb.cli.output.notes import no_time_found, note_times, time_fields

    note_times(db, options.operation, options, ordered=True, is_full=not found.total)
    if found.total and not options.quiet:
        from jitdb.cli.opening import is_many
        from jitdb.engine.hinting.evidence import AS_UTC, AT_MIDNIGHT, SIZED
        from jitdb.operators import and_, declared_time
        from jitdb.operators.summaries.timelines import Timeline

        line = found if isinstance(found, Timeline) else None
        as_times = and_(options.operation, declared_time >= "1970-01-01T00:00:00Z")
        for remark in db.remarks(db.query(as_times).question):
            is_odd = SIZED in remark and line is not None and _is_of_the_past(line)
            is_mixed = AS_UTC in remark and is_many(options) and not options.tz
            if AT_MIDNIGHT in remark or is_odd or is_mixed:
                note(options, remark)
            elif AS_UTC in remark and options.tz:
                told = f"steps are those of the clock that wrote them; if it is that of {options.tz}, say --log-tz"
                note(options, f"{remark}: without --tz, {told} {options.tz}")
        if line is not None and _is_of_days(line):
            _note_days(db, options)
    if found.total and not found.rows:
        from jitdb.engine.hinting.knowledge import SAMPLE
        from jitdb.operators.summaries.fields import fields_in

        records = db.sample(SAMPLE)
        shown, meant = time_fields(db, fields_in(records), options)
        of_field = f"none of these records has a time under {shown}", f"say --timestamp {meant or 'PATH'}"
        note(options, ": ".join(of_field if meant or options.timestamp else no_time_found(records, fields_in(records))))


def _note_days(db: AnyDatabase, options: Namespace) -> None:
    """Note which field of the time holds days alone, in all records of a sample that have it."""
    from jitdb.engine.hinting.evidence import AT_MIDNIGHT
    from jitdb.engine.hinting.knowledge import SAMPLE
    from jitdb.operators.nodes.instants import day_of

    records = db.sample(SAMPLE)
    for path in db.declared_time:
        times = [value for record in records if (value := value_at(record, path)) not in (UNDEFINED, None)]
        if times and all(map(day_of, times)):
            note(options, f"`{format_path(path)}` {AT_MIDNIGHT}")


def _is_text(db: AnyDatabase) -> bool:
    """Whether its records are lines of text."""
    from jitdb.engine.hinting.dialects import is_of_text
    from jitdb.engine.hinting.knowledge import SAMPLE

    return any(map(is_of_text, db.sample(SAMPLE)))


def _note_others(db: AnyDatabase, options: Namespace, total: int, numbers: int) -> None:
    """Note where the values of the field are text that spells numbers, or are not, or not all, numbers."""
    from jitdb.cli.output.notes import note_unknown_columns
    from jitdb.engine.hinting.hints import number_hints

    path, name = options.path, format_path(options.path)
    if path in db.declared_time and not options.timestamp:
        inside = "; numbers in the text have names by --log-format '(?P<name>...)'" if _is_text(db) else ""
        note(options, f"`{name}` is the time of each record, which `jitdb timeline` counts by{inside}")
        return
    for line in number_hints(db.evidence(), [path]):
        note(options, line)
    if numbers == total or options.quiet:
        return
    if not numbers:
        kinds = next((field.kinds for field in db.fields() if field.path == path), None)
        if kinds is None:
            note_unknown_columns(db, [path], options)
        elif "number" not in kinds:  # else those are in rows that are not shown
            other = "timeline" if path in db.declared_time else "values"
            note(options, f"`{name}` holds no numbers, only {' and '.join(kinds)}: `jitdb {other}` counts its values")
        return
    from jitdb.operators import gt

    if db.remarks(db.query(gt(0, path)).sort_by_arrival().question):
        note(options, f"some values of `{name}` are no numbers, and left out here: `jitdb values` counts them, too")
