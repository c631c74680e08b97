"""Records as people read a log: time, level, who logs, message; then the other fields, as many as a line has room for.

Stack traces, and other texts of several lines, are one line below the record. What each field is, the names of usual
dialects tell (engine/roles.py), so records of several programs may be mixed.
"""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from jitdb.cli.output.output import STDOUT, has_colours, named, show_lines
from jitdb.common.paths import Path, format_path, parse_path
from jitdb.common.times import AUTO, as_text, is_zoneless, time_of, with_zone
from jitdb.common.values import UNDEFINED, value_at
from jitdb.display.cells import cell, json_text, printable
from jitdb.display.terminal import Terminal, columns
from jitdb.engine.roles import Roles, roles_of
from jitdb.operators.nodes.levels import rank_of

if TYPE_CHECKING:
    from jitdb.display.parts import Marks

_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "NOTE", "WARN", "ERROR", "FATAL", "ALERT", "EMERG")  # by rank
_COLOURS: Final = ("2", "2", "36", "36", "33", "31", "1;31", "1;31", "1;31")  # numbers of escape sequences, by rank
_DIM: Final = "2"
_BOLD: Final = "1"
_LOGGERS: Final = (
    "logger", "log.logger", "logger_name", "loggerName", "SourceContext", "component", "module", "target", "name", "c",
    "TAG", "APP_NAME", "SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT", "service.name", "resource.attributes.service.name",
    "service", "app", "program",
)  # fmt: skip
_WIDEST: Final = 20  # characters of a logger's name
_VALUE: Final = 40  # characters of another field's value
_LEAST: Final = 20  # characters of the line that tells of a stack trace
_OPAQUE: Final = 8  # characters of a long hash or number: their beginnings tell them apart
_HASH: Final = re.compile(r"(?=.*[0-9])[0-9A-Za-z_-]{17,}")
_MESSAGE: Final = 4  # lines of the terminal that a message may have
_SHAPES: Final = 1024  # kinds of records, by their keys, whose roles are kept
_QUOTED: Final = frozenset(' "=\\')
_ROOM: Final = len("  +99")
_DEEPEST: Final = 4  # maps in maps whose fields are shown one by one
_ENDLESS: Final = 1 << 20  # cells of a line in a pipe


class Span(NamedTuple):
    """Some text, and how it looks: the number of an escape sequence, or nothing."""

    text: str
    style: str = ""


class Shown(NamedTuple):
    """What the options say.

    width: of the terminal, in cells
    utc:   times are in UTC, else local; those without a zone are as they stand
    traces: all lines of texts of several lines
    full:  all fields, and whole values
    log_tz: the zone of times that say none; None: they are shown as they stand
    """

    width: int
    utc: bool = False
    traces: bool = False
    full: bool = False
    log_tz: str | None = None


class _Shape(NamedTuple):
    """Where things are in records with the same keys."""

    roles: Roles
    logger: Path | None


class Pretty:
    """Makes lines of records, one after the other."""

    def __init__(self, shown: Shown, time: Path | None = None) -> None:
        """time: the field of the time, where the caller named one"""
        self._shown, self._time = shown, time
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._day = ""
        self._has_time = self._has_level = False
        self._logger_width = 0

    @classmethod
    def of(cls, options: Namespace, margin: int = 0) -> Pretty:
        """As the options say, so many cells narrower than the terminal."""
        time = parse_path(options.timestamp[0]) if options.timestamp else None
        shown = Shown(columns(_ENDLESS) - margin, options.utc, options.traces, options.full, options.log_tz)
        return cls(shown, time)

    def is_of_log(self, record: Any) -> bool:
        """Whether the record has a message; else it is a row of data."""
        return isinstance(record, dict) and self._shape(record).roles.message is not None

    def lines(self, record: Any, mark: str = "") -> Iterator[list[Span]]:
        """The lines of a record, after one that names the day where that is another than before.

        Each begins with what `mark` says of the record, those of the day with as many blanks.

        >>> pretty = Pretty(Shown(60, utc=True))
        >>> record = {"ts": "2026-11-20T14:03:11Z", "level": "warn", "msg": "slow", "ms": 5021, "id": "u 1"}
        >>> print(*("".join(span.text for span in line) for line in pretty.lines(record)), sep="\\n")
        2026-11-20 UTC
        14:03:11.000 WARN  slow  ms=5021 id="u 1"
        """
        margin = Span(mark, _BOLD)
        if not isinstance(record, dict):
            yield [margin, Span(cell(record))]
            return
        roles, logger = self._shape(record)
        said = None if roles.time is None else value_at(record, roles.time)
        time = time_of(said, with_zone(AUTO, self._shown.log_tz))
        if time is not None:
            as_it_stands = not self._shown.log_tz and isinstance(said, str) and is_zoneless(said)
            day, clock = _moment(time, self._shown.utc, as_it_stands)
            if day != self._day:
                self._day = day
                yield [Span(" " * len(mark)), Span(day, _DIM)]
            self._has_time = True
        line = [Span(clock if time is not None else " " * 12, _DIM)] if self._has_time else []
        line += self._level(record, roles) + self._logger(record, logger)
        message = _without_level(_text(record, roles.message), record, roles)
        first, *more = message.split("\n") if message else [""]
        line.append(self._message(first))
        taken = {path for path in (roles.time, roles.level, roles.message, logger) if path is not None}
        fields = list(_leaves(record, (), taken))
        fields.sort(key=lambda field: str(field[0][0]).startswith("_"))  # what a shipper added comes last
        texts = [(format_path(path), value) for path, value in fields if isinstance(value, str) and "\n" in value]
        short = [(path, value) for path, value in fields if not (isinstance(value, str) and "\n" in value)]
        yield [margin, *_joined(line + self._fitting(line, short))]
        indent = Span(" " * 12) if self._has_time else Span(" ")
        for name, text in [("", "\n".join(more))] * bool(more) + texts:
            for told in self._below(name, text):
                yield [margin, indent, Span(" "), told]

    def _shape(self, record: dict[str, Any]) -> _Shape:
        keys = tuple(record)
        found = self._shapes.get(keys)
        if found is None:
            if len(self._shapes) >= _SHAPES:
                self._shapes.clear()
            roles = roles_of([record])
            roles = roles._replace(time=self._time or roles.time)
            found = self._shapes[keys] = _Shape(roles, _logger_of(record, roles))
        return found

    def _level(self, record: dict[str, Any], roles: Roles) -> list[Span]:
        rank = None if roles.level is None else rank_of(value_at(record, roles.level), roles.level)
        if rank is not None:
            self._has_level = True
            return [Span(f"{_LEVELS[int(rank)]:5}", _COLOURS[int(rank)])]
        return [Span(" " * 5)] if self._has_level else []

    def _logger(self, record: dict[str, Any], logger: Path | None) -> list[Span]:
        name = printable(_text(record, logger))
        self._logger_width = max(self._logger_width, min(cell_len(name), _WIDEST))
        if not self._logger_width:
            return []
        return [Span(_cut(name, self._logger_width) if name else " " * self._logger_width, _DIM)]

    def _message(self, text: str) -> Span:
        text = printable(text.expandtabs(4).rstrip())
        if not self._shown.full:
            text = _shortened(text, _MESSAGE * self._shown.width)
        return Span(text, _BOLD)

    def _fitting(self, line: Sequence[Span], fields: Sequence[tuple[Path, Any]]) -> list[Span]:
        """The fields that there is room for behind this line, and how many there are more."""
        full = self._shown.full
        room = self._shown.width - sum(cell_len(span.text) + 1 for span in line) - 1
        shown, hidden = [], 0
        for path, value in fields:
            text = f"{printable(format_path(path))}={_value(value, full)}"
            size = cell_len(text) + 1
            if full or size <= room - _ROOM:
                shown.append(text)
                room -= size
            else:
                hidden += 1
        more = [f"+{hidden}"] if hidden else []
        return [Span(" " + " ".join(shown + more), _DIM)] if shown or more else []

    def _below(self, name: str, text: str) -> Iterator[Span]:
        """All lines of a text; or the one that sums it up (of Python the last, else the first), and their number."""
        lines = [printable(line.expandtabs(4).rstrip()) for line in text.split("\n") if line.strip()]
        if not lines:
            return
        head = f"{printable(name)}: " if name else ""
        if self._shown.traces or self._shown.full:
            yield from (Span(head * (not number) + line, _DIM) for number, line in enumerate(lines))
            return
        is_python = any(line.startswith("Traceback ") for line in lines)
        told = head + (lines[-1] if is_python else lines[0])
        count = f"  ({len(lines)} lines: --traces)" if len(lines) > 1 else ""
        yield Span(_shortened(told, max(self._shown.width - 14 - len(count), _LEAST)) + count, _DIM)


def are_of_log(records: Sequence[Any]) -> bool:
    """Whether most of the records have a message; else they are rows of data."""
    pretty = Pretty(Shown(_VALUE))
    return 2 * sum(map(pretty.is_of_log, records)) > len(records)


def show_pretty(records: Iterable[Any], options: Namespace, marks: Marks | None = None) -> int:
    """Print the records, and return their number.

    marks: which of them match, among those around them
    """
    pretty, count = Pretty.of(options, 0 if marks is None else 2), 0
    for count, record in enumerate(records, 1):
        if marks is not None and count - 1 in marks.begins:
            _show([Span("--", _DIM)])
        mark = "" if marks is None else "> " if marks.answers[count - 1] else "  "
        for line in pretty.lines(record, mark):
            _show(line)
    return count


def as_bytes(lines: Iterable[Sequence[Span]]) -> bytes:
    """Lines for standard output."""
    write = painted if has_colours() else plain
    return "".join(write(line) + "\n" for line in lines).encode("utf-8", "replace")


def _show(line: Sequence[Span]) -> None:
    stream = sys.stdout
    if isinstance(stream, Terminal) and has_colours():
        with named(STDOUT):
            stream.paint(painted(line) + "\n")
    else:
        show_lines(plain(line))


def painted(line: Sequence[Span]) -> str:
    """The line with the escape sequences of its styles."""
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text for text, style in line)


def plain(line: Sequence[Span]) -> str:
    """The line without them."""
    return "".join(text for text, _ in line).rstrip()


def _joined(line: Sequence[Span]) -> list[Span]:
    """The spans with a blank between them."""
    found: list[Span] = []
    for span in line:
        if found and span.text:
            found.append(Span(" "))
        found.append(span)
    return found


def _moment(time: float, utc: bool, is_zoneless: bool = False) -> tuple[str, str]:
    """The day with its zone, and the time of day to the millisecond. Without a zone, both are as they stand.

    >>> _moment(1795183391118000000, True), _moment(1795183391118000000, False, True)
    (('2026-11-20 UTC', '14:03:11.118'), ('2026-11-20', '14:03:11.118'))
    """
    try:
        moment = datetime.fromtimestamp(int(time) // 10**9, UTC)
        moment = moment if utc or is_zoneless else moment.astimezone()
    except (OverflowError, ValueError, OSError):  # infinite, or beyond the year 9999
        return "", cell(as_text(time) if isinstance(time, int) else time)
    zone = "" if is_zoneless else f" {moment:%Z}"
    return f"{moment:%Y-%m-%d}{zone}", f"{moment:%H:%M:%S}.{int(time) % 10**9 // 10**6:03}"


def _without_level(message: str, record: dict[str, Any], roles: Roles) -> str:
    """The message without the level at its beginning, which stands before it already."""
    level = _text(record, roles.level)
    found = re.match(rf"\s*\[?\s*{re.escape(level)}\s*\]?:?\s+(?:-+\s+)?", message) if level else None
    return message[found.end() :] if found else message


def _text(record: Any, path: Path | None) -> str:
    value = UNDEFINED if path is None else value_at(record, path)
    return value if isinstance(value, str) else ""


def _logger_of(record: dict[str, Any], roles: Roles) -> Path | None:
    """The field of these names that has a short text."""
    taken = (roles.time, roles.level, roles.message)
    for name in _LOGGERS:
        for path in (tuple(name.split(".")), (name,), ("resource", "attributes", "service.name")):
            text = _text(record, path)
            if text and "\n" not in text and path not in taken and ".".join(map(str, path)) == name:
                return path
    return None


def _leaves(value: dict[str, Any], before: Path, taken: Collection[Path]) -> Iterator[tuple[Path, Any]]:
    """The fields of a record, and of maps in it, but those that are taken."""
    for key, inner in value.items():
        path = (*before, key)
        if path in taken:
            continue
        if isinstance(inner, dict) and inner and len(path) < _DEEPEST:
            yield from _leaves(inner, path, taken)
        else:
            yield path, inner


def _value(value: Any, full: bool) -> str:
    """The value as logfmt has it: quotes only where it needs them.

    >>> _value("a b", False), _value("ok", False), _value([1, "x"], False), _value("y" * 50, False)
    ('"a b"', 'ok', '[1,"x"]', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…')
    >>> _value("9f3a775e0c11d2b4a6", False)
    '9f3a775…'
    """
    is_word = isinstance(value, str) and value and value.isprintable() and _QUOTED.isdisjoint(value)
    text = value if is_word else printable(json_text(value, 1 << 20 if full else 4 * _VALUE))
    if full:
        return text
    return _shortened(text, _OPAQUE if is_word and _HASH.fullmatch(value) else _VALUE)


def _shortened(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _cut(text: str, width: int) -> str:
    """The text in so many cells, with blanks behind it where it is shorter."""
    return set_cell_size(_shortened(text, width), width)
