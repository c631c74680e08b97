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
| PostgreSQL | timestamp, log_time | error_severity | message |
| Terraform | @timestamp | @level | @message |
| osquery | unixTime, calendarTime | | |
| CEF, LEEF | rt, devTime | deviceSeverity, sev | msg |
| loguru | record.time.timestamp | record.level.name | record.message |
| Exchange | date-time | | |
| Python | asctime | levelname, levelno | message |
| Serilog | @t | @l (none: information) | @m, @mt |
| GELF | timestamp (seconds) | level (numbers) | short_message |
| Fluent Bit, Vector | date, timestamp | level | log, message |
| journald | __REALTIME_TIMESTAMP | PRIORITY | MESSAGE |
| OpenTelemetry | timeUnixNano | severityText, severityNumber | body |
| CloudTrail, Azure | eventTime, time | level | eventName, operationName |
| Windows | TimeCreated, Event.System.TimeCreated | LevelDisplayName, Event.System.Level | Message |
| macOS | timestamp | messageType | eventMessage |
| Cloudflare, Log4j 2 | EdgeStartTimestamp, timeMillis, instant | level | message |
| Bluesky, Debezium | time_us, ts_ms | | |
| Protocol Buffers | timestamp (seconds, nanos) | | |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

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
    "time", "ts", "@timestamp", "datetime", "timestamp", "date", "created_at", "createdAt", "event_time", "eventTime",
    "@t", "asctime", "updated_at", "start_time", "startTime", "published", "time_iso8601",
    "time_local", "__REALTIME_TIMESTAMP", "timeUnixNano", "observedTimeUnixNano", "startTimeUnixNano",
    "requestReceivedTimestamp", "receiveTimestamp", "EdgeStartTimestamp", "timeMillis", "TimeGenerated", "TimeCreated",
    "t", "accept_date", "requestdatetime", "instant", "start",
    "time_us", "time_ms", "time_ns", "timestamp_ms", "timestampMs", "timestamp_ns", "ts_ms", "event_timestamp",
    "eventTimestamp", "occurred_at", "occurredAt", "logged_at", "epoch",
    "record.time.timestamp", "log_time", "unixTime", "calendarTime", "rt", "devTime", "date-time",
    "Event.System.TimeCreated.SystemTime", "Event.System.TimeCreated.#attributes.SystemTime",
)  # fmt: skip
LEVELS: Final = (
    "LevelDisplayName", "level", "severity", "log.level", "@level", "levelname", "lvl", "loglevel", "log_level",
    "severityText", "severity_text", "PRIORITY", "error_severity", "@l", "levelno", "severityNumber", "severity_number",
    "syslog_severity", "record.level.name", "s", "deviceSeverity", "sev", "PRI", "messageType", "Event.System.Level",
)  # fmt: skip
MESSAGES: Final = (
    "message", "msg", "event", "short_message", "textPayload", "jsonPayload.message", "body",
    "@m", "@mt", "@message", "text", "log", "CONTENT", "request", "request_line", "eventName", "operationName",
    "eventMessage", "record.message", "query", "argument",
)  # fmt: skip
#: Keys without marks that say the same of a request in the logs of different programs.
_SAME: Final = (
    "status statuscode httpstatus httpstatuscode responsecode scstatus responsestatus elbstatuscode elbresponsecode "
    "downstreamstatus originstatus",
    "ip clientip remoteaddr remoteip srcip sourceip sourceipaddress cip clientaddr remoteaddress clientaddress "
    "ipaddress",
    "useragent ua httpuseragent csuseragent",
    "path uri requesturi requestpath urlpath uripath csuristem",
    "method httpmethod requestmethod verb csmethod",
    "requestid reqid xrequestid correlationid",
    "duration took elapsed latency durationms elapsedms latencyms requesttime responsetime timetaken",
)
_FIRST_OF: Final = {name: names.split()[0] for names in _SAME for name in names.split()}
#: Names that other things have, too: asked for, they may mean something else than the time, the level or the message.
_OF_OTHERS: Final = frozenset((
    "date", "created_at", "createdat", "updated_at", "start_time", "starttime", "published", "t", "s", "pri", "event",
    "body", "text", "log", "request", "eventname", "operationname", "start", "rt", "sev", "query", "argument",
))  # fmt: skip
_LOOKED_AT: Final = 16  # records
_LOOKED_AT_FOR_TIMES: Final = 256
_FIRST: Final[WeakKeyDictionary[LogSource, tuple[Any, list[dict[str, Any]]]]] = WeakKeyDictionary()
_ROLES: Final[WeakKeyDictionary[LogSource, tuple[list[dict[str, Any]], Roles]]] = WeakKeyDictionary()
_PLAUSIBLE: Final = 10**17  # nanoseconds: a number is a time from 1973 on, where only the field's name says so


class Roles(NamedTuple):
    """The fields that say when, how bad, and what; None where there is none."""

    time: Path | None
    level: Path | None
    message: Path | None


def found_time(log: LogSource) -> tuple[Path, ...] | None:
    """The fields of the time; None where there is no record yet to look at, or it was changed just now.

    `timestamp` and `value.timestamp`, those that a record has a time in; else the first of TIMES that at least half of
    them have one in, or, where a program says much before its first time, half of more records; else the first of TIMES
    that half of these have, empty where it is no time; else that of its format, which leaves it out of some; else those
    two.
    """
    if log.known_time is not None:
        return log.known_time
    try:
        records = first_of(log)
        if not records:
            return None
        if times := _times_in(records):
            return times
        more = list(first(log.beginning(), _LOOKED_AT_FOR_TIMES))
        return _times_in(more) or _mostly_empty(more) or _sparse_time(log) or USUAL
    except LogError:  # raised again to who reads these records
        return None


def found_roles(log: LogSource) -> Roles:
    """The fields of the first records. Raises LogError."""
    records, known = first_of(log), _ROLES.get(log)
    if known is None or known[0] is not records:  # which are kept as long as they are the same
        roles = roles_of(records)
        known = _ROLES[log] = records, roles._replace(time=roles.time or next(iter(_sparse_time(log)), None))
    return known[1]


def _sparse_time(log: LogSource) -> tuple[Path, ...]:
    return () if log.sparse_time is None else (log.sparse_time[0],)


def roles_of(records: Sequence[Any]) -> Roles:
    """The fields of these records.

    >>> roles_of([{"ts": 1795132803.7, "level": "info", "msg": "served"}])
    Roles(time=('ts',), level=('level',), message=('msg',))
    >>> roles_of([{"@timestamp": "2026-11-20T14:03:11Z", "log.level": "warn", "message": "slow"}]).level
    ('log.level',)
    """
    return Roles(
        next(iter(_usual(records)), None) or _time_in(records),
        _first_that(records, LEVELS, _is_level, False),
        _first_that(records, MESSAGES, _is_message, True),
    )


def is_usual(path: Path) -> bool:
    """Whether its name is a usual one of the time, the level or the message, and of nothing else."""
    name = _joined(path)
    return name not in _OF_OTHERS and any(name in names for names, _ in _usual_names())


def is_level_name(path: Path) -> bool:
    """Whether its name is a usual one of the level, and of nothing else."""
    name = _joined(path)
    return name not in _OF_OTHERS and name in _usual_names()[1][0]


def is_time_name(path: Path) -> bool:
    """Whether its name is a usual one of the time."""
    return _joined(path) in _usual_names()[0][0]


def has_other_names(path: Path) -> bool:
    """Whether other programs are known to call the field otherwise."""
    return is_usual(path) or is_of_requests(path)


def is_of_requests(path: Path) -> bool:
    """Whether its name is a usual one in logs of requests, as that of their status, client or path is."""
    return bool(path) and plain_key(path[-1]) in _FIRST_OF


def plain_key(key: Any) -> str:
    """A key without marks, in the name that is usual."""
    name = re.sub(r"[^a-z0-9]", "", str(key).lower())
    return _FIRST_OF.get(name, name)


def time_meant(path: Path, number: Any) -> int | None:
    """The time that a number says, in nanoseconds since 1970, where its field has a usual name of the time.

    >>> time_meant(("ts",), 1_700_000_000), time_meant(("ts",), 5), time_meant(("size",), 1_700_000_000)
    (1700000000000000000, None, None)
    """
    if not isinstance(number, (int, float)) or isinstance(number, bool) or not is_time_name(path):
        return None
    time = time_of(number)
    return time if isinstance(time, int) and time >= _PLAUSIBLE else None  # beyond 64 bits it is a float


def in_its_place(path: Path, known: Mapping[Path, Any]) -> Path | None:
    """The one of these fields, given with a value of each, that says what the field says elsewhere: of the same words,
    with dots inside a key or between keys, with `_` or capitals, or of another usual name.

    >>> in_its_place(("level",), {("msg",): "x", ("PRIORITY",): "6"}), in_its_place(("a", "b"), {("a.b",): 1})
    (('PRIORITY',), ('a.b',))
    >>> [in_its_place(("user", "id"), {(name,): "x"}) for name in ("user_id", "userId", "user")]
    [('user_id',), ('userId',), None]
    """
    named = {_joined(other): other for other in reversed(list(known)) if other != path}
    said = {_words(other): other for other in named.values()}
    other = named.get(_joined(path)) or said.get(_words(path))
    if other is not None and not _is_of_windows(other, known):
        return other
    for names, is_one in _usual_names() if is_usual(path) else ():
        if _joined(path) in names:
            others = (named[name] for name in names if name in named and not _is_of_windows(named[name], known))
            return next((other for other in others if is_one(other, known[other])), None)
    return None


def _is_of_windows(path: Path, known: Mapping[Path, Any]) -> bool:
    """Whether it is the number of a level as Windows has it: 1 is critical, 4 information; its name is beside it."""
    return path[-1] == "Level" and any((*path[:-1], name) in known for name in ("LevelDisplayName", "ProviderName"))


def _joined(path: Path) -> str:
    return ".".join(map(str, path)).lower()


def _words(path: Path) -> str:
    return re.sub(r"[^a-z0-9]", "", _joined(path)) or _joined(path)


@cache
def _usual_names() -> tuple[tuple[dict[str, None], Callable[[Path, Any], bool]], ...]:
    """The names of each role, the likeliest first; and whether a value is one of it."""
    roles = ((("timestamp", *TIMES), _is_time), (LEVELS, _is_level), (MESSAGES, _is_message))
    return tuple((dict.fromkeys(map(str.lower, names)), is_one) for names, is_one in roles)


def first_of(log: LogSource) -> list[dict[str, Any]]:
    """Records at its beginning, which are kept: a question that was answered from indexes reads nothing for its notes.

    Raises LogError.
    """
    name = log.identity, log.generation
    kept = _FIRST.get(log)
    if kept is not None and kept[0] == name:
        return kept[1]
    records = [record for record in first(log.beginning(), _LOOKED_AT) if isinstance(record, dict)]
    if len(records) == _LOOKED_AT:  # else more may come
        _FIRST[log] = name, records
    return records


def has_time(records: Sequence[Any], paths: Sequence[Path]) -> bool:
    """Whether one of these records has a time in one of these fields."""
    return any(time_of(value_at(record, path)) is not None for record in records for path in paths)


def _times_in(records: Sequence[Any]) -> tuple[Path, ...]:
    found = _usual(records) or (_time_in(records),)
    return tuple(path for path in found if path is not None)


def _usual(records: Sequence[Any]) -> tuple[Path, ...]:
    """Those of the usual fields in which some record has a time."""
    return tuple(path for path in USUAL if any(time_of(value_at(record, path)) is not None for record in records))


def _mostly_empty(records: Sequence[Any]) -> tuple[Path, ...]:
    """The first of TIMES that at least half of the records have, where it holds times, or nothing."""
    keys = _keys_of(records)
    for name in TIMES:
        for path in _spelled(keys, name):
            values = [value for record in records if (value := value_at(record, path)) is not UNDEFINED]
            held = [value for value in values if value is not None and value != ""]
            if held and 2 * len(values) >= len(records) and all(_is_time(path, value) for value in held):
                return (path,)
    return ()


def _time_in(records: Sequence[Any]) -> Path | None:
    return _first_that(records, TIMES, _is_time, True)


def _first_that(
    records: Sequence[Any], names: Sequence[str], is_one: Callable[[Path, Any], bool], of_all: bool
) -> Path | None:
    """The first field of these names that at least half of the records hold such a value in; where not `of_all`, half
    of those that have it.
    """
    keys = _keys_of(records)
    for name in names:
        for path in _spelled(keys, name):
            values = [value for record in records if (value := value_at(record, path)) is not UNDEFINED]
            count = sum(is_one(path, value) for value in values)
            if count and 2 * count >= (len(records) if of_all else len(values)):
                return path
    return None


def _keys_of(records: Sequence[Any]) -> dict[str, list[str]]:
    """The keys of these records, by what they are in small letters."""
    keys = dict.fromkeys(key for record in records if isinstance(record, dict) for key in record)
    found: dict[str, list[str]] = {}
    for key in keys:
        if isinstance(key, str):
            found.setdefault(key.lower(), []).append(key)
    return found


def _spelled(keys: dict[str, list[str]], name: str) -> Iterator[Path]:
    """Those of the fields that the name may mean: inside each other, a key with a dot in it, a key in other case."""
    path = tuple(name.split("."))
    if path[0] in keys.get(path[0].lower(), ()):
        yield path
    yield from ((key,) for key in keys.get(name.lower(), ()) if (key,) != path)


def _is_time(_: Path, value: Any) -> bool:
    time = time_of(value)
    is_number = isinstance(value, dict) or number_of(value) is not None
    return time is not None and (not is_number or time >= _PLAUSIBLE)


def _is_level(path: Path, value: Any) -> bool:
    return value != "-" and rank_of(value, path) is not None  # of Redis; elsewhere it says that there is none


def _is_message(_: Path, value: Any) -> bool:
    return isinstance(value, str) and value != ""
