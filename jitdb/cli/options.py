"""The options that commands share, in one table, each with its type, its help and its group. Commands name them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.formats import CODECS
from jitdb.common.times import UNITS

if TYPE_CHECKING:
    from jitdb.common.paths import Path
    from jitdb.operators.nodes.instants import Instant
    from jitdb.operators.nodes.selection import SortKey

_UNITS: Final = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}


def number(least: int) -> Callable[[str], int]:
    """A type: a whole number of at least `least`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"a whole number of {least} or more is expected, not {text!r}")
        return value

    return read


def bytes_read(text: str) -> int:
    """The bytes that may be read.

    >>> bytes_read("2G")
    2147483648
    """
    return _bytes(text)


def memory(text: str) -> int:
    """The bytes that may be held in memory.

    >>> memory("256M")
    268435456
    """
    from jitdb.common.memory import LEAST

    found = _bytes(text)
    if found < LEAST:
        raise argparse.ArgumentTypeError(f"{LEAST >> 20}M or more are expected, such as 256M, not {text!r}")
    return found


def size(text: str) -> int:
    """The bytes of a block.

    >>> size("64K"), size("1MiB"), size("65536")
    (65536, 1048576, 65536)
    """
    from jitdb.log.blocks.block_format import check_block_size

    return check_block_size(_bytes(text))


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9_,]+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS.get(found[2]) if found else None
    digits = found[1].replace(",", "").replace("_", "") if found else ""
    if unit is None or not digits:
        raise argparse.ArgumentTypeError(f"a number of bytes is expected, such as 65536, 64K or 1M, not {text!r}")
    return int(digits) * unit


def codec(text: str) -> str:
    """The name of a codec, of ours or of an installed package.

    >>> codec("bipf")
    'bipf'
    """
    from jitdb.log.codecs import get_codec

    return get_codec(text).name


def each(text: str) -> str:
    """A path to the elements of arrays."""
    from jitdb.log.lines.form import parse_each

    parse_each(text)
    return text


def fields(text: str) -> list[str]:
    """Field paths with commas between them."""
    from jitdb.common.paths import parse_path, split_paths

    names = split_paths(text)
    if not all(names):
        raise argparse.ArgumentTypeError(f"field paths with commas between them are expected, not {text!r}")
    for name in names:
        parse_path(name)
    return names


def sort_fields(text: str) -> list[SortKey]:
    """The same to sort by, each with a `-` in front where the greatest comes first."""
    from jitdb.operators.nodes.selection import sort_keys

    return list(sort_keys("--sort", fields(text)))


def as_of(text: str) -> int | str:
    """An offset or a cursor.

    >>> as_of("320")
    320
    """
    from jitdb.cli.places import read_place

    if re.fullmatch(r"-?[0-9][0-9_,]*", text.strip()):
        return int(text.replace(",", "").replace("_", ""))
    found = read_place(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"an offset, such as `jitdb query --offsets` prints, or a cursor is expected, not {text!r}"
        )
    return found


def instant(text: str) -> Instant:
    """A point in time, or how long ago."""
    from jitdb.operators.nodes.instants import instant_at

    return instant_at(text)


def zone(text: str) -> str:
    """The name of a zone, that all machines know."""
    from jitdb.operators.summaries.arithmetic.calendar import zone_named

    return zone_named(text)


def one_of(text: str) -> tuple[Path, str]:
    """A field and a file.

    >>> one_of("user.id=users.txt")
    (('user', 'id'), 'users.txt')
    """
    from jitdb.common.paths import parse_path

    path, _, file = text.partition("=")
    if not path or not file:
        raise argparse.ArgumentTypeError(
            f"a field and a file with a value a line are expected, such as user=users.txt, not {text!r}"
        )
    return parse_path(path), file


def moment(text: str) -> tuple[str, Instant]:
    """The same, and how it was typed."""
    return text, instant(text)


class Moment(argparse.Action):
    """Takes a point in time; `typed_times` has how each was typed, and `by_clock` the options whose text goes by the
    clock of this place.
    """

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        from jitdb.operators.nodes.instants import is_by_clock

        text, found = values
        setattr(namespace, self.dest, found)
        namespace.typed_times = getattr(namespace, "typed_times", {}) | {self.dest: text}
        if is_by_clock(text):
            namespace.by_clock = (*getattr(namespace, "by_clock", ()), self.dest)


def age(text: str) -> Instant:
    """How long ago.

    >>> age("yesterday")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: a length of time is expected, such as 30d, 12h or 1h30m, not 'yesterday'
    """
    from jitdb.common.times import length_of_units
    from jitdb.operators.nodes.instants import instant_at

    if text.startswith("-") or length_of_units(text) is None:
        raise argparse.ArgumentTypeError(f"a length of time is expected, such as 30d, 12h or 1h30m, not {text!r}")
    return instant_at(text)


class Option(NamedTuple):
    """The arguments of argparse for an option, and the title of its group in the help; empty: operands and options."""

    group: str
    flags: tuple[str, ...]
    settings: dict[str, Any]


def option(spec: str, help: str, *, group: str = "", **settings: Any) -> Option:
    """An option, or an operand: its flags, and what help calls its value. Without a value it is a switch.

    >>> option("-n, --limit N", "at most N").flags, option("--old", "begin with old ones").settings["action"]
    (('-n', '--limit'), 'store_true')
    """
    *flags, last = spec.split(", ")
    flag, _, metavar = last.partition(" ")
    if metavar:
        settings["metavar"] = metavar
    elif not {"choices", "action"} & settings.keys():
        settings["action"] = "store_true"
    return Option(group, (*flags, flag), {"help": help, **settings})


def changed(name: str, help: str, **settings: Any) -> Option:
    """An option of the table with other words, and other settings."""
    shared = OPTIONS[name]
    return Option(settings.pop("group", shared.group), shared.flags, {**shared.settings, "help": help, **settings})


SHOWN: Final = "which records, and how"
AROUND: Final = "records around the matches"
_LOG: Final = "the log"
_GENERAL: Final = "in general"
_SUMMARIES: Final = ("table", "csv", "tsv", "json", "ndjson")

OPTIONS: Final = {
    "log": option(
        "log LOG", "a log, of any format; where a command asks, also a folder, a pattern in quotes ('logs/*.gz'), or "
        "- for standard input",
    ),
    "more_logs": option("more_logs LOG", argparse.SUPPRESS, nargs="*", default=[]),
    "expressions": option(
        "expressions EXPR", "which records, in quotes, such as 'level == \"error\" and status >= 500'; without it, all "
        "(see `jitdb help expressions`)", nargs="*", default=[],
    ),
    "field_and_expression": option(
        "expressions FIELD [EXPR]", "a field, such as status; then which records (default: all)", nargs="*", default=[]
    ),
    "text_and_expression": option(
        "expressions TEXT [EXPR]", "a text; then which records (default: all)", nargs="*", default=[]
    ),
    "json": option("--json", "write one JSON object instead of text"),
    "force": option("--force", "allow this on a log of a store, too"),
    "dry_run": option("--dry-run", "show what would be done; change nothing"),
    "summary_format": option(
        "--format", "table: for people; json: one object with everything; ndjson: one line a row",
        choices=_SUMMARIES, default="table",
    ),
    "escape_formulas": option(
        "--escape-formulas", "in CSV and TSV, put an apostrophe before text that a spreadsheet would run as a formula"
    ),
    "output": option("-o, --output FILE", "write to FILE (replaced if it exists; .gz compresses)"),
    "skip_bad": option("--skip-bad", "skip lines that are no records; the exit code is then 1"),
    "limit": option("-n, --limit N", "at most N records (default: all)", type=number(1), group=SHOWN),
    "offsets": option("--offsets", "print the records' offsets, one a line", group=SHOWN),
    "raw": option("--raw", "print records as they stand in the file, all their lines", group=SHOWN),
    "fields": option("--fields PATHS", "keys of each JSON line: a.b,c.d; _path is the log", type=fields, group=SHOWN),
    "sort": option(
        "--sort PATHS", "sort by these fields: a.b,-c.d (- puts the greatest first)",
        type=sort_fields, action="extend", default=[], group=SHOWN,
    ),
    "full": option("--full", "pretty: all fields, whole values, messages and stack traces", group=SHOWN),
    "traces": option("--traces", "pretty: stack traces, and other texts of several lines, as lines", group=SHOWN),
    "utc": option("--utc", "pretty: times in UTC (default: in the local zone)", group=SHOWN),
    "by": option(
        "--by PATHS", "a row for each value of another field, or of several: a.b,c.d",
        type=fields, action="extend", default=[],
    ),
    "tz": option("--tz ZONE", "use the time of a place, such as Europe/Berlin (default: UTC)"),
    "same": option("--same PATH", "show only records with the same value in this field", group=AROUND),
    "as_of": option(
        "--as-of PLACE", "ask the log as it was when it ended with the record at this offset, or before this cursor",
        type=as_of, group=SHOWN,
    ),
    "one_of": option(
        "--in PATH=FILE", "only records whose field PATH is a line of FILE, as with grep -f (- for standard input)",
        type=one_of, action="append", default=[], dest="one_of", group=SHOWN,
    ),
    "since": option(
        "--since TIME", "only records from this time on: 2h (ago), 7d, today, or 14:00 by the clock of this machine. A "
        "date with a time (2026-11-01T12:00) is in UTC, or has its zone behind it (+01:00). With --log-tz, or --tz, "
        "both are in that zone",
        type=moment, action=Moment, group=SHOWN,
    ),
    "until": option("--until TIME", "only records before this time", type=moment, action=Moment, group=SHOWN),
    "older_than": option("--older-than AGE", "only records older than this: 30d, 12h, 2w", type=age, group=SHOWN),
    "codec": option(
        "--codec NAME", f"format of the records: {', '.join(CODECS)} or an installed one (default: detected)",
        type=codec, group=_LOG,
    ),
    "block_size": option(
        "--block-size BYTES", "block size of the log, such as 65536 or 64K (default: detected)", type=size, group=_LOG
    ),
    "allow_prefix": option(
        "--allow-prefix", "JSON Lines may have text before the JSON, as from container runtimes and syslog; lines "
        "without JSON are skipped", group=_LOG,
    ),
    "each": option(
        "--each PATH", "each line of JSON Lines is a batch, whose records are at PATH: items[], or "
        "resourceLogs[].scopeLogs[].logRecords[]", type=each, default="", group=_LOG,
    ),
    "log_format": option(
        "--log-format FORMAT", "format of the lines: logfmt, cri, syslog, combined ..., or a pattern with groups "
        "(?P<name>...), or a log_format of nginx (default: detected)", default="", group=_LOG,
    ),
    "timestamp": option(
        "--timestamp PATH", "field that holds the time of a record; of several, the earliest time counts (default: a "
        "field with a usual name, such as timestamp, time, ts or @timestamp)", action="append", group=_LOG,
    ),
    "time_unit": option(
        "--time-unit", "unit of times that are numbers (auto: by their size; number: they are no times)",
        choices=UNITS, group=_LOG,
    ),
    "log_tz": option(
        "--log-tz ZONE", "zone of the log's times that say none: Europe/Berlin, +02:00, or local, that of this machine "
        "(default: UTC)", type=zone, default=None, group=_LOG,
    ),
    "sequence": option(
        "--sequence PATH", 'field that index("sequence") in an expression stands for: in logs of feeds, the number of '
        "a record among its author's; no other log needs it (default: value.sequence)", group=_LOG,
    ),
    "indexes": option(
        "--indexes DIR", "folder of the index files; `none` keeps indexes in memory (default: .jitdb beside the log)",
        default="", group=_LOG,
    ),
    "threads": option(
        "--threads N", "threads of a scan (default: one a core)", type=number(1), default=0, group=_LOG
    ),
    "memory": option(
        "--memory BYTES", "the most bytes to keep and work with: 256M, 2G (default: 512M)", type=memory, group=_LOG
    ),
    "max_bytes": option(
        "--max-bytes BYTES", "the most to read of logs to build indexes, such as 2G; a question that needs more is "
        "refused", type=bytes_read, group=_LOG,
    ),
    "no_progress": option("--no-progress", "show no progress bar", group=_GENERAL),
    "quiet": option("-q, --quiet", "no progress, notes or warnings; only errors", group=_GENERAL),
    "debug": option("--debug", "show the traceback of an error", group=_GENERAL),
    "help": option("-h, --help", "show this", action="help", group=_GENERAL),
}  # fmt: skip

FORMAT: Final = ("codec", "block_size")  # how to read the bytes of a log
LINES: Final = ("allow_prefix", "each", "log_format")  # how to read lines
DATABASE: Final = (  # how to ask
    "timestamp", "time_unit", "log_tz", "sequence", "indexes", "threads", "memory", "max_bytes",
)  # fmt: skip
READING: Final = (*FORMAT, *LINES, *DATABASE)  # for questions
PRETTY: Final = ("traces", "full", "utc")  # how lines for people look
SUMMARY: Final = ("one_of", "since", "until", "as_of", "summary_format", "escape_formulas")  # for summaries
GENERAL: Final = ("no_progress", "quiet", "debug", "help")  # every command has these
