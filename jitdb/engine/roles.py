"""Which fields of a log say when, how bad, and what: its time, level and message.

They are found in the first records, by the names that logging libraries give them, so all processes choose the same as
long as the log's beginning is what it was.

| | time | level | message |
| --- | --- | --- | --- |
| zap, Caddy | ts (seconds) | level | msg |
| pino, bunyan | time | level (numbers) | msg |
| slog, logrus, Traefik | time | level | msg |
| structlog | timestamp | level | event |
| ECS | @timestamp | log.level, or the key "log.level" | message |
| Logstash, Log4j, winston | @timestamp, timestamp, time | level | message |
| Stackdriver | timestamp, time | severity | message, textPayload, jsonPayload.message |
| MongoDB | t.$date | s | msg |
| PostgreSQL | timestamp | error_severity | message |
| Python | asctime | levelname, levelno | message |
| Serilog | @t | @l (none: information) | @m, @mt |
| GELF | timestamp (seconds) | level (numbers) | short_message |
| Fluent Bit, Vector | date, timestamp | level | log, message |
| journald | __REALTIME_TIMESTAMP | PRIORITY | MESSAGE |
| OpenTelemetry | timeUnixNano | severityText, severityNumber | body |
| CloudTrail, Azure | eventTime, time | level | eventName, operationName |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.common.paths import TIMESTAMPS, Path, parse_path
from jitdb.common.times import time_of
from jitdb.common.values import UNDEFINED, number_of, value_at
from jitdb.errors import LogError
from jitdb.log.reading.sampling import first
from jitdb.operators.nodes.levels import rank_of

if TYPE_CHECKING:
    from jitdb.log.source import LogSource

USUAL: Final[tuple[Path, ...]] = tuple(map(parse_path, TIMESTAMPS))
TIMES: Final = (
    "time", "ts", "@timestamp", "datetime", "date", "created_at", "createdAt", "event_time", "eventTime", "@t",
    "asctime", "updated_at", "start_time", "startTime", "published", "time_iso8601",
    "time_local", "__REALTIME_TIMESTAMP", "timeUnixNano", "observedTimeUnixNano", "startTimeUnixNano",
    "requestReceivedTimestamp", "receiveTimestamp", "t", "timestamp",
)  # fmt: skip
LEVELS: Final = (
    "level", "severity", "log.level", "levelname", "lvl", "loglevel", "log_level", "severityText", "severity_text",
    "PRIORITY", "error_severity", "@l", "levelno", "severityNumber", "severity_number", "syslog_severity", "s", "PRI",
)  # fmt: skip
MESSAGES: Final = (
    "message", "msg", "event", "short_message", "textPayload", "jsonPayload.message", "body", "@m", "@mt", "text",
    "log", "CONTENT", "request", "eventName", "operationName",
)  # fmt: skip
_LOOKED_AT: Final = 16  # records
_PLAUSIBLE: Final = 10**17  # nanoseconds: a number is a time from 1973 on, where only the field's name says so


class Roles(NamedTuple):
    """The fields that say when, how bad, and what; None where there is none."""

    time: Path | None
    level: Path | None
    message: Path | None


def found_time(log: LogSource) -> tuple[Path, ...] | None:
    """The fields of the time; None where there is no record yet to look at.

    `timestamp` and `value.timestamp`, those that a record has a time in; else the first of TIMES that at least half of
    them have one in; else those two.
    """
    try:
        records = _first_of(log)
    except LogError:  # raised again to who reads these records
        return USUAL
    if not records:
        return None
    usual = _usual(records)
    found = None if usual else _time_in(records)
    return usual or (USUAL if found is None else (found,))


def found_roles(log: LogSource) -> Roles:
    """The fields of the first records. Raises LogError."""
    return roles_of(_first_of(log))


def roles_of(records: Sequence[Any]) -> Roles:
    """The fields of these records.

    >>> roles_of([{"ts": 1795132803.7, "level": "info", "msg": "served"}])
    Roles(time=('ts',), level=('level',), message=('msg',))
    >>> roles_of([{"@timestamp": "2026-11-20T14:03:11Z", "log.level": "warn", "message": "slow"}]).level
    ('log.level',)
    """
    return Roles(
        next(iter(_usual(records)), None) or _time_in(records),
        _first_that(records, LEVELS, lambda path, value: rank_of(value, path) is not None, False),
        _first_that(records, MESSAGES, lambda path, value: isinstance(value, str) and value != "", True),
    )


def _first_of(log: LogSource) -> list[dict[str, Any]]:
    return [record for record in first(log.beginning(), _LOOKED_AT) if isinstance(record, dict)]


def _usual(records: Sequence[Any]) -> tuple[Path, ...]:
    """Those of the usual fields in which some record has a time."""
    return tuple(path for path in USUAL if any(time_of(value_at(record, path)) is not None for record in records))


def _time_in(records: Sequence[Any]) -> Path | None:
    return _first_that(records, TIMES, lambda _, value: _is_time(value), True)


def _first_that(
    records: Sequence[Any], names: Sequence[str], is_one: Callable[[Path, Any], bool], of_all: bool
) -> Path | None:
    """The first field of these names that at least half of the records hold such a value in; where not `of_all`, half
    of those that have it.
    """
    for name in names:
        for path in _spelled(records, name):
            values = [value for record in records if (value := value_at(record, path)) is not UNDEFINED]
            count = sum(is_one(path, value) for value in values)
            if count and 2 * count >= (len(records) if of_all else len(values)):
                return path
    return None


def _spelled(records: Sequence[Any], name: str) -> Iterator[Path]:
    """The fields that the name may mean: inside each other, a key with a dot in it, a key in other case."""
    path = tuple(name.split("."))
    yield path
    keys = dict.fromkeys(key for record in records if isinstance(record, dict) for key in record)
    yield from ((key,) for key in keys if isinstance(key, str) and key.lower() == name.lower() and (key,) != path)


def _is_time(value: Any) -> bool:
    time = time_of(value)
    return time is not None and (number_of(value) is None or time >= _PLAUSIBLE)
