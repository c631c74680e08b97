"""The options that commands share, in one table: each is written once, with its type, its help and its group.

A command takes them by name: `PARSER.take("log", "expressions", *READING, *GENERAL)`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.times import UNITS

if TYPE_CHECKING:
    from jitdb.operators.nodes.instants import Instant
    from jitdb.operators.nodes.sort_key import SortKey

_UNITS: Final = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20}


def number(least: int) -> Callable[[str], int]:
    """A whole number of at least `least`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"a whole number of {least} or more is expected, not {text!r}")
        return value

    return read


def size(text: str) -> int:
    """A number of bytes that can be a block size.

    >>> size("64K"), size("1MiB"), size("65536")
    (65536, 1048576, 65536)
    """
    found = re.fullmatch(r"([0-9_,]+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS.get(found[2]) if found else None
    digits = found[1].replace(",", "").replace("_", "") if found else ""
    if unit is None or not digits:
        raise argparse.ArgumentTypeError(f"a number of bytes is expected, such as 65536, 64K or 1M, not {text!r}")
    from jitdb.log.blocks.block_format import check_block_size

    return check_block_size(int(digits) * unit)


def codec(text: str) -> str:
    """The name of a codec, of ours or of an installed package.

    >>> codec("bipf")
    'bipf'
    """
    from jitdb.log.codecs import get_codec

    return get_codec(text).name


def each(text: str) -> str:
    """A path to the elements of arrays."""
    from jitdb.log.lines.each import parse_each

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
    from jitdb.operators.nodes.sorting import sort_keys

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


def age(text: str) -> Instant:
    """How long ago.

    >>> age("yesterday")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: a length of time is expected, such as 30d, 12h or 1h30m, not 'yesterday'
    """
    from jitdb.errors import QueryError
    from jitdb.operators.nodes.instants import instant_at, length_of

    try:
        length_of(text)
        return instant_at(text)
    except QueryError:
        raise argparse.ArgumentTypeError(
            f"a length of time is expected, such as 30d, 12h or 1h30m, not {text!r}"
        ) from None


class Option(NamedTuple):
    """What argparse is to be given, and the title of the group that help shows it in; empty: operands and options."""

    group: str
    flags: tuple[str, ...]
    settings: dict[str, Any]


def _option(group: str, *flags: str, **settings: Any) -> Option:
    return Option(group, flags, settings)


_SHOWN: Final = "which records, and how"
_AROUND: Final = "what stands around them"
_LOG: Final = "the log"
_GENERAL: Final = "in general"

OPTIONS: Final = {
    "log": _option("", "log", metavar="LOG", help="file of the log"),
    "more_logs": _option("", "more_logs", metavar="LOG", nargs="*", default=[], help=argparse.SUPPRESS),
    "expressions": _option(
        "", "expressions", metavar="EXPR", nargs="*", default=[],
        help="which records, between quotes, such as 'value.content.type == \"post\"'; all when left out "
        "(see `jitdb help expressions`)",
    ),
    "field_and_expression": _option(
        "", "expressions", metavar="FIELD [EXPR]", nargs="*", default=[],
        help="the field, such as status; then which records, all when left out",
    ),
    "json": _option("", "--json", action="store_true", help="one JSON object instead of text"),
    "force": _option("", "--force", action="store_true", help="do it to a log of a store, too"),
    "dry_run": _option("", "--dry-run", action="store_true", help="tell what would be done, and change nothing"),
    "summary_format": _option(
        "", "--format", choices=("table", "csv", "tsv", "json", "ndjson"), default="table",
        help="table: for people; json: one object of all; ndjson: a line each",
    ),
    "escape_formulas": _option(
        "", "--escape-formulas", action="store_true",
        help="of CSV and TSV: an apostrophe before text that a spreadsheet would take for a formula",
    ),
    "output": _option(
        "", "-o", "--output", metavar="FILE", help="write there (replaced if it exists; .gz compresses)"
    ),
    "limit": _option(_SHOWN, "-n", "--limit", metavar="N", type=number(1), help="at most N records (default: all)"),
    "offsets": _option(_SHOWN, "--offsets", action="store_true", help="the records' offsets instead, one a line"),
    "fields": _option(_SHOWN, "--fields", metavar="PATHS", type=fields, help="keys of each JSON line: a.b,c.d"),
    "sort": _option(
        _SHOWN, "--sort", metavar="PATHS", type=sort_fields, action="extend", default=[],
        help="by the values of these fields: a.b,-c.d (with a - the greatest first)",
    ),
    "same": _option(
        _AROUND, "--same", metavar="PATH", help="only records that have the same value in this field",
    ),
    "as_of": _option(
        _SHOWN, "--as-of", metavar="PLACE", type=as_of,
        help="ask the log as it was when it ended there: with the record at this offset, or before this cursor",
    ),
    "codec": _option(
        _LOG, "--codec", metavar="NAME", type=codec,
        help="of the records: msgpack, bipf, raw, or of an installed package (default: found by looking)",
    ),
    "block_size": _option(
        _LOG, "--block-size", metavar="BYTES", type=size,
        help="of the log, such as 65536 or 64K (default: found by looking)",
    ),
    "allow_prefix": _option(
        _LOG, "--allow-prefix", action="store_true",
        help="of JSON Lines: let text stand before the JSON of a line, as container runtimes write it; lines without "
        "JSON are text",
    ),
    "each": _option(
        _LOG, "--each", metavar="PATH", type=each, default="",
        help="of JSON Lines: the elements that are records, of batches in one line: items[], or "
        "resourceLogs[].scopeLogs[].logRecords[]",
    ),
    "timestamp": _option(
        _LOG, "--timestamp", metavar="PATH", action="append",
        help="field that says when a record was made; given more than once, the earliest time counts "
        "(default: the one of a usual name, such as timestamp, time, ts or @timestamp)",
    ),
    "time_unit": _option(
        _LOG, "--time-unit", choices=UNITS,
        help="of times that are numbers (auto: told by their size; number: not times at all)",
    ),
    "since": _option(
        _SHOWN, "--since", metavar="TIME", type=instant,
        help="from then on: 2026-11-01, 2026-11-01T12:00, 2h (ago), 7d, today, yesterday",
    ),
    "older_than": _option(_SHOWN, "--older-than", metavar="AGE", type=age, help="made so long ago: 30d, 12h, 2w"),
    "until": _option(_SHOWN, "--until", metavar="TIME", type=instant, help="before then"),
    "sequence": _option(
        _LOG, "--sequence", metavar="PATH", help='field behind index("sequence") (default: value.sequence)'
    ),
    "indexes": _option(
        _LOG, "--indexes", metavar="DIR", default="",
        help="folder of the index files, or `none` to keep them in memory (default: LOG.jitdb/indexes)",
    ),
    "threads": _option(
        _LOG, "--threads", metavar="N", type=number(1), default=0, help="threads of a scan (default: one a core)"
    ),
    "no_progress": _option(_GENERAL, "--no-progress", action="store_true", help="no progress bar"),
    "quiet": _option(
        _GENERAL, "-q", "--quiet", action="store_true", help="no progress, notes or warnings; errors are still told"
    ),
    "debug": _option(_GENERAL, "--debug", action="store_true", help="show the traceback of an error"),
    "help": _option(_GENERAL, "-h", "--help", action="help", help="show this"),
}  # fmt: skip

FORMAT: Final = ("codec", "block_size")  # how the bytes of a log are read
LINES: Final = ("allow_prefix", "each")  # and of JSON Lines
READING: Final = (*FORMAT, *LINES, "timestamp", "time_unit", "sequence", "indexes", "threads")  # of who asks a log
SUMMARY: Final = ("since", "until", "as_of", "summary_format", "escape_formulas")  # of who counts
GENERAL: Final = ("no_progress", "quiet", "debug", "help")  # of all commands
