"""Notes on answers that are right but probably not what was meant: no order by time, a field that no record has.

The indexes say what is true of the log; a sample of its records suggests what was meant.
"""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from time import localtime, strftime
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import note, say
from jitdb.common.paths import ANY, Path, format_path
from jitdb.common.times import AUTO, Nanoseconds, as_text, is_zoneless, time_of, time_of_text, with_zone
from jitdb.common.values import UNDEFINED, kind_name, number_of, value_at
from jitdb.common.words import counted, shown
from jitdb.engine.hinting.fields import OF_TEXT, is_known, unknown_field
from jitdb.engine.hinting.hints import length_in, taken_as_numbers
from jitdb.engine.hinting.knowledge import SAMPLE
from jitdb.engine.roles import is_time_name, roles_of
from jitdb.operators.summaries.fields import fields_in

if TYPE_CHECKING:
    from jitdb.log import LogSource
    from jitdb.logset.logset import AnyDatabase
    from jitdb.operators import Operation

_NUMBERED: Final = r"(\d\d?)(?P<mark>[/-])(\d\d?)(?P=mark)\d{4}(?:,? \d|(?<=\d\d[/-]\d\d[/-]\d{4})$)"
_TO_DOTS: Final = {  # of sed: what finds a date, and what is in place of it
    "/": (r"([0-9]+)/([0-9]+)/([0-9]{4})", r"\2.\1.\3", r"\1.\2.\3"),
    "-": (r"(^|[^0-9-])([0-9]+)-([0-9]+)-([0-9]{4})([^0-9-]|$)", r"\1\3.\2.\4\5", r"\1\2.\3.\4\5"),  # no UUID
}

_DAY: Final = 86_400 * 10**9
_LIKE_NUMBER: Final = (
    r"(?!\d+(?:\.\d+){2,}$)[-+]?[$€£¥]? ?\d[\d.,' ]*(?:%|[$€£¥]|[A-Za-z]{1,3})?"  # no address, no version
)


_LENGTHS: Final = (  # names of lengths of time
    r"(?:up|run|response|request|elapsed|processing|wait|cpu|queue|connect|total|upstream|service|query|lock|exec\w*)_?time$"
)


def note_order(db: AnyDatabase, operation: Operation | None, options: Namespace) -> None:
    """Note that no record of the answer has a time to be ordered by."""
    if options.quiet or options.arrival or options.sort:
        return
    from jitdb.operators import gte

    timed = gte(float("-inf"), "timestamp")
    if is_any(db, timed if operation is None else operation & timed, options):
        return
    if db.count(operation, as_of=options.as_of) < 2:
        return
    known = fields_in(db.sample(SAMPLE))
    if not known:  # raw bytes have no fields
        return
    where, meant = time_fields(db, known, options)
    whose = "record" if operation is None or not db.count(timed) else "record of this answer"
    is_text = known.keys() <= OF_TEXT - {("time",)}
    is_helpful = whose == "record" and (meant or not (options.timestamp or is_text))
    advice = f"; say --timestamp {meant or _holding_time(known)}" if is_helpful else ""
    say(f"jitdb: no {whose} has a time under {where}: this is the order of arrival{advice}")
    named = {path: value for path, value in known.items() if _is_called_time(path) and not isinstance(value, dict)}
    others = [path for path, value in named.items() if time_of(value) is None or number_of(value) is not None]
    if others and not meant:
        path = min(others, key=lambda path: len(format_path(path)))
        odd = f"`{format_path(path)}` holds no time, but {shown(known[path])}"
        numbered = [str(known[path])] if re.match(_NUMBERED, str(known[path])) else []
        usual = "RFC 3339 (2026-11-01T12:00:00Z) and numbers since 1970 are times"
        say(f"  {odd}: " + (_on_numbered("", numbered)[1] if numbered else usual))


def is_any(db: AnyDatabase, operation: Operation | None, options: Namespace) -> bool:
    """Whether a record matches."""
    from jitdb.engine.database import JITDB
    from jitdb.operators.nodes.operation import EVERYTHING

    if isinstance(db, JITDB):
        return db.count(operation, as_of=options.as_of) > 0
    return db.evidence().is_any(EVERYTHING if operation is None else operation)


def no_time_found(records: Sequence[Any], known: Mapping[Path, Any]) -> tuple[str, str]:
    """That no field of these records holds a time that is known, and what helps; in words."""
    called = [path for path in known if (_is_called_time(path) or is_time_name(path)) and time_of(known[path]) is None]
    called = [path for path in called if isinstance(known[path], str)]
    if called and ("clock",) not in known:
        path = min(called, key=lambda path: len(format_path(path)))
        return no_time_in(path, known[path], records)
    if ("clock",) in known:
        return "no time is found: lines begin with a time of day, and no day is known", (
            'ask the time of day as text: clock like "14:%"'
        )
    if known.keys() <= OF_TEXT:
        return "no time is found in the first records: no line begins with a time in a form that is known", (
            "say where it stands in a line: --log-format '...(?P<time>...)...', with a pattern of what is around it"
        )
    named = "no field with a usual name (time, timestamp, ts, @timestamp, date, …) holds a time"
    return f"no time is found in {counted(len(records), 'record', 'records')} looked at: {named}", (
        f"say where it is: --timestamp {_holding_time(known)}"
    )


def _holding_time(known: Mapping[Path, Any]) -> str:
    """The first of these fields with text that is a time, whatever it is called, quoted for a shell; or that it is
    a path.
    """
    held = (format_path(path) for path, value in known.items() if _is_time_text(value))
    return shlex.quote(next(held, "PATH"))


def _is_time_text(value: Any) -> bool:
    return isinstance(value, str) and time_of(value) is not None and number_of(value) is None


def no_time_in(path: Path, value: Any, records: Sequence[Any]) -> tuple[str, str]:
    """That a field which should hold the time holds this instead, as in these records, and what a time is; in words."""
    which = f"values of `{format_path(path)}` such as {shown(value)} are no times, and no record has one"
    if re.match(_NUMBERED, str(value)):
        return _on_numbered(which, [str(value), *(str(value_at(record, path)) for record in records)])
    return which, (
        "times are such as 2026-11-01T12:00:00Z, 2026/11/01 12:00, 01/Nov/2026:12:00:00 +0100, Nov 1 2026 12:00:00, "
        "01.11.2026 12:00:00, 11/1/2026 12:00:00 PM, and numbers since 1970"
    )


def _on_numbered(which: str, values: Sequence[str]) -> tuple[str, str]:
    """What makes times of dates with numbers between slashes or hyphens: dots, the day first. Which is the day, a
    number from 13 on tells; without it, both ways are said.
    """
    dates = [found for value in values if (found := re.match(_NUMBERED, value))]
    is_day, is_month = (any(int(date[place]) > 12 for date in dates) for place in (3, 1))
    date, *made = _TO_DOTS[dates[0]["mark"]]
    if is_day == is_month:
        which += ": nothing tells whether the day or the month comes first"
    else:
        which += f": the {'month' if is_day else 'day'} comes first"
    swapped, kept = (f"sed -E 's#{date}#{to}#g' FILE > NEW" for to in made)
    if is_day == is_month:
        return (
            which,
            f"with dots, as 28.11.2026, they are times: if the day is first, {kept}; if the month is, {swapped}",
        )
    return which, f"with dots and the day first, as 28.11.2026, they are times: {swapped if is_day else kept}"


def time_fields(db: AnyDatabase, known: Mapping[Path, Any], options: Namespace) -> tuple[str, str]:
    """The fields that hold the time, in words; and another field that holds times, quoted for a shell, or \"\"."""
    names = options.timestamp or [format_path(path) for path in db.declared_time]
    times = [
        format_path(path)
        for path, value in known.items()
        if ANY not in path and (_is_time_text(value) or (time_of(value) is not None and _is_called_time(path)))
    ]
    meant = min((name for name in times if name not in names), key=len, default="")
    return " or ".join(f"`{name}`" for name in names), shlex.quote(meant) if meant else ""


def note_times(
    db: AnyDatabase, operation: Operation | None, options: Namespace, *, ordered: bool, is_full: bool = False
) -> None:
    """Note values that are no times, or of several kinds. For an empty answer, or a deletion (`is_full`), note also
    which field holds the time, and how times were read.
    """
    if options.quiet:
        return
    from jitdb.common.paths import TIMESTAMPS
    from jitdb.engine.database import JITDB
    from jitdb.engine.hinting.evidence import UNTIMED

    if is_full:
        note_beyond(db, options)
    by_time = ordered or (operation is not None and operation.compares("timestamp"))
    names = [format_path(path) for path in db.declared_time] if by_time and not options.timestamp else []
    is_one = isinstance(db, JITDB)  # the logs of a set may each have another
    if names and not set(names) & set(TIMESTAMPS) and (is_full or len(names) > 1) and is_one:
        say(f"jitdb: the time is `{' or '.join(names)}`; --timestamp names another field")
    note_zones(options)
    question = db.query(operation)
    for remark in db.remarks((question if ordered else question.sort_by_arrival()).question, is_full=is_full):
        say("jitdb: " + re.sub(r"pass timestamp='(.*)'$", lambda said: f"say --timestamp {said[1]}", remark))
        note_clock(remark, options)
        if UNTIMED in remark and (paths := re.findall("`([^`]*)`", remark))[1:]:
            say("  to read both: " + " ".join(f"--timestamp {shlex.quote(path)}" for path in paths))


def note_zones(options: Namespace) -> None:
    """Note which times of the expression are of UTC, as they name no zone, where --log-tz says another one."""
    zone, asked = options.log_tz, getattr(options, "written", None)
    if not zone or asked is None:
        return
    from jitdb.operators.nodes.compare import Range
    from jitdb.operators.nodes.instants import Instant, day_of, instant_at

    ranges = (leaf for leaf in asked.leaves() if isinstance(leaf, Range))
    bounds = [bound.time for leaf in ranges for _, bound in leaf.bounds if isinstance(bound, Instant)]
    for text in dict.fromkeys(re.findall(r"""(?<=["'])[^"']*(?=["'])""", " ".join(options.expressions))):
        time, day = time_of_text(text), day_of(text)
        if time is None or not is_zoneless(text) or not any(time <= each <= time + _DAY * bool(day) for each in bounds):
            continue
        ahead = int(time - instant_at(text, zone=zone).time) // (60 * 10**9)
        if ahead:
            clock = f"{as_text(time)[:10]}T00:00" if day else text
            meant = f"{clock}{'-' if ahead < 0 else '+'}{abs(ahead) // 60:02}:{abs(ahead) % 60:02}"
            note(options, f'"{text}" in the expression is of UTC, not of {zone}: write "{meant}", or --since, --until')


def note_clock(remark: str, options: Namespace) -> None:
    """Behind the remark that times have no zone: how to say it, that of this place first where the question goes by its
    clock.
    """
    from jitdb.engine.hinting.evidence import AS_UTC

    if AS_UTC not in remark:
        return
    bounds = [getattr(options, name).time // 10**9 for name in getattr(options, "by_clock", ())]
    if any(localtime(second).tm_gmtoff for second in bounds):
        say(f"  if the clock of this place ({strftime('%Z', localtime(bounds[0]))}) wrote them, say --log-tz local")
    else:
        say("  if the clock that wrote them shows no UTC, say its zone: --log-tz Europe/Berlin, +02:00, local")


def note_counted(
    db: AnyDatabase, operation: Operation | None, options: Namespace, *, is_empty: bool, is_full: bool = True
) -> None:
    """The notes on an answer without an order: fields and values that are not there, and how times were read.

    is_full: False: an empty answer is nothing odd
    """
    note_missing(db, operation, options, is_empty=is_empty)
    if operation is not None and any(leaf.compared for leaf in operation.leaves()):
        note_times(db, operation, options, ordered=False, is_full=is_empty and is_full)


def note_fitting(db: AnyDatabase, options: Namespace, total: int) -> None:
    """Note how many of the records are as the pattern says, where others begin with a time, or are of another kind."""
    if (fits := fitting(db, options.log_format)) is None:
        return
    condition, count = fits
    if count < total:
        others = f"the other {total - count:,} are lines of another kind: `{condition}` asks only those that fit"
        note(options, f"{counted(count, 'record is', 'records are')} as the pattern says, {others}")


def fitting(db: AnyDatabase, given: str) -> tuple[str, int] | None:
    """A condition that is true of the records that fit the caller's own pattern, and how many these are; None where the
    format is no pattern, or its groups are those of other lines, too."""
    from jitdb.log.lines.form import line_form
    from jitdb.operators.text.expression import parse_expression

    row = line_form(given=given).row
    if row is None or row.name != "pattern":
        return None
    names = [name for name in row.names if (name,) not in OF_TEXT]
    if not names:
        return None
    is_loose = re.search(r"\||\)[?*{]", row.pattern) is not None  # a group may take no part
    condition = " or ".join(f"{format_path((name,))} is not null" for name in (names if is_loose else names[:1]))
    return condition, db.count(parse_expression(condition))


def note_beyond(db: AnyDatabase, options: Namespace) -> None:
    """Note that all records are before --since, or none is before --until, by the newest or the oldest of them."""
    since, until = (getattr(options, name, None) for name in ("since", "until"))
    told, bound = "", since
    if since is not None and (newest := _time_at_end(db, options, descending=True)) is not None:
        told = f"newest record is of {as_text(newest)}, before --since" if newest < since.time else ""
    if not told and until is not None and (oldest := _time_at_end(db, options, descending=False)) is not None:
        told = f"oldest record is of {as_text(oldest)}, not before --until" if oldest >= until.time else ""
        bound = until
    if told and bound is not None:
        note(options, f"the {told} ({as_text(bound.time // 10**6 * 10**6)})")  # "2h" is of some nanosecond


def _time_at_end(db: AnyDatabase, options: Namespace, *, descending: bool) -> Nanoseconds | None:
    """The time of the newest record, or the oldest, of those that have one."""
    from jitdb.operators import gte

    timed = db.query(gte(float("-inf"), "timestamp"))
    record = (timed.descending() if descending else timed).first()
    paths = [*db.declared_time, *filter(None, [roles_of([record]).time])]
    times = (time_of(value_at(record, path), with_zone(options.time_unit or AUTO, options.log_tz)) for path in paths)
    return next((time for time in times if time is not None), None)


def note_answer(db: AnyDatabase, operation: Operation | None, options: Namespace, *, is_empty: bool) -> None:
    """The notes on records that were shown, or on none."""
    note_missing(db, operation, options, is_empty=is_empty)
    if options.sort and not is_empty:
        note_sorted(db, operation, options)
    note_times(db, operation, options, ordered=not options.arrival and not options.sort, is_full=is_empty)


def note_missing(db: AnyDatabase, operation: Operation | None, options: Namespace, *, is_empty: bool) -> None:
    """Note which fields of the question no record has; for an empty answer also which values they have instead.

    What is proposed stands in the place of the expression: --since and --until stay where they are.
    """
    written = options.written if operation is options.operation else operation
    if written is not None and not options.quiet:
        for hint in db.hints(written, is_empty=is_empty):
            say(f"jitdb: {hint}")
        if is_empty:
            from jitdb.cli.output.loose import note_apart

            note_apart(db, written, options)


def note_called_otherwise(
    db: AnyDatabase, operation: Operation | None, fields: Sequence[Path], options: Namespace, *, taken: str = "counted"
) -> None:
    """Note which logs call a field otherwise whose values are counted, or sorted by, so that these are of the others
    alone.
    """
    from jitdb.engine.hinting.dialects import where_others
    from jitdb.operators import everything

    if options.quiet:
        return
    for path, others in db.evidence().elsewhere(everything() if operation is None else operation, fields).items():
        say(f"jitdb: {where_others(path, others)}: their records are {taken} as those without `{format_path(path)}`")


def note_unknown_columns(db: AnyDatabase, fields: Iterable[Path], options: Namespace) -> None:
    """Note that none of the records shown has these fields."""
    paths = list(fields)
    if paths and not options.quiet:
        known = fields_in(db.sample(SAMPLE))
        for path in paths:
            if is_known(path, known):
                note(options, f"none of these records has the field `{format_path(path)}`, which others have")
        _note_unknown(
            "none of these records has", [path for path in paths if not is_known(path, known)], known, options
        )


def note_sorted(db: AnyDatabase, operation: Operation | None, options: Namespace) -> None:
    """Note fields of --sort that no record has, and those with values of several kinds, by their least and greatest."""
    if options.quiet:
        return
    query, unknown = db.query(operation), []
    for key in options.sort:
        first, last = (value_at(query.sort_by(each).first(), key.path) for each in (key, -key))
        if first is UNDEFINED:
            unknown.append(key.path)
            continue
        sorted_as = [value if number is None else number for value in (first, last) for number in [number_of(value)]]
        if sorted_as != [first, last]:
            say(f"jitdb: {taken_as_numbers(key.path)}")
        elif isinstance(last, str) and (text := length_in(db.evidence(), key.path)):
            name = format_path(key.path)
            by = shlex.quote(f"{'-' if key.descending else ''}duration({name})")
            say(f'jitdb: `{name}` is text such as "{text}", sorted as text: --sort {by} sorts by the length of time')
        elif isinstance(first, str) and re.fullmatch(_LIKE_NUMBER, str(last)) and time_of(last) is None:
            which = f"`{format_path(key.path)}` is text such as {shown(last)}, which spells no number"
            say(f"jitdb: {which}: sorted as text")
        kinds = dict.fromkeys(map(kind_name, sorted_as))
        if len(kinds) > 1:
            held = f"`{format_path(key.path)}` holds values from {' to '.join(kinds)}"
            say(f"jitdb: {held}: each kind is sorted for itself")
    known = [key.path for key in options.sort if key.path not in unknown]
    note_called_otherwise(db, operation, known, options, taken="sorted")
    if unknown:
        _note_unknown("none of these records has", unknown, fields_in(db.sample(SAMPLE)), options)


def note_unseen_fields(log: LogSource, paths: Iterable[Path], options: Namespace) -> None:
    """Before a long scan, note the fields that no record of a sample has."""
    from jitdb.log.reading.sampling import sample

    records = list(sample(log, SAMPLE))
    if records:
        known = fields_in(records)
        unseen = [path for path in paths if not is_known(path, known)]
        _note_unknown(f"none of {len(records):,} records looked at has", unseen, known, options)


def _note_unknown(who: str, paths: Iterable[Path], known: Mapping[Path, Any], options: Namespace) -> None:
    for path in dict.fromkeys(paths):
        note(options, unknown_field(f"{who} the field", path, known))


def _is_called_time(path: Path) -> bool:
    """Whether its name is one of times, and of no length of time."""
    key = str(path[-1]).lower()
    return (
        ANY not in path
        and not re.search(_LENGTHS, key)
        and (key.endswith(("time", "timestamp", "_at", "_ts", "_date")) or key in ("ts", "date"))
    )
