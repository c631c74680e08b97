"""The formats of lines: how each is recognised, and how its lines become records.

A new format is a row here. Most are a pattern; what a pattern cannot say has a part in render_kernels.py. Fields have
the names that the format's documentation gives them. The first row that fits a file is its format.

    pattern   of a record's first line (pattern.py); also what a file of the format is recognised by
    kinds     of the pattern's groups: a NUMBER is one where it spells one, and left out where it is "-" or empty; a
              BODY is JSON, or text that goes on with the lines that follow; LEVELED is one in which a level may
              stand (level_kernels.py); NIL is text that is left out where it is
              "-"; BSD_TIME and KLOG_TIME are times without a year, which become ISO 8601
    joins     lines that begin no record belong to the one before them (render_kernels.py says which these are); else
              they are lines that are not understood
    path      of the elements of lines that are the records, and of what around them belongs to each
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from jitdb.common.digests import blake2b
from jitdb.log.lines.batch_path import BatchPath
from jitdb.log.lines.formats.headers import table_of
from jitdb.log.lines.formats.kinds import (
    BATCH,
    BODY,
    BSD_TIME,
    CRI,
    DOCKER,
    JOURNAL,
    KLOG_TIME,
    LEVELED,
    LOGFMT,
    LTSV,
    NIL,
    NUMBER,
    OTLP,
    PATTERN,
    TABLE,
    WORD,
)
from jitdb.log.lines.formats.pattern import compile_pattern

VERSION: Final = 8  # of what kernels make of lines: raise it with each change of that
_FEW: Final = 8  # lines: as many as a record with a stack trace may have
_TRIED: Final = 64  # lines that are looked at


class Format(NamedTuple):
    """See the head of this file."""

    name: str
    title: str
    how: int
    pattern: str = ""
    kinds: Mapping[str, int] = MappingProxyType({})
    joins: bool = False
    is_line: Callable[[bytes], bool] | None = None  # None: the pattern says
    path: BatchPath | None = None  # None: lines are records

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that its pattern, or a table's header, gives."""
        if self.how == TABLE:
            return table_of(self.name, self.pattern).names
        return compile_pattern(self.pattern).names

    @property
    def is_json(self) -> bool:
        """Whether its lines are JSON."""
        return self.how in (DOCKER, JOURNAL, BATCH, OTLP)

    @property
    def tag(self) -> str:
        """Names the format among the indexes of a file: another one where lines become other records."""
        of_batches = () if self.path is None else (tuple(self.path),)
        said = repr((VERSION, self.how, self.pattern, sorted(self.kinds.items()), self.joins, *of_batches))
        return f"{self.name}-v{blake2b(said.encode(), digest_size=4).hexdigest()}"


def _is_docker(line: bytes) -> bool:
    if not re.match(rb'\s*\{\s*"log"\s*:\s*"', line):
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= {"log", "stream", "time"}


def _is_journal(line: bytes) -> bool:
    if b'"__REALTIME_TIMESTAMP"' not in line:
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "__REALTIME_TIMESTAMP" in found


_PAIR: Final = rb'=(?:"(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s|$)'
_FIRST_PAIR: Final = re.compile(rb"[A-Za-z_@][\w.:@/\[\]\x80-\xff-]*" + _PAIR)  # no `CEF:0|vendor|...|src=1`
_NEXT_PAIR: Final = re.compile(rb'[A-Za-z_@][^\s="]*' + _PAIR)


def _is_logfmt(line: bytes) -> bool:
    """Whether a line begins with a key and its value, and has another one."""
    first = _FIRST_PAIR.match(line)
    return bool(first and _NEXT_PAIR.search(line, first.end()))


_LTSV: Final = re.compile(rb"[A-Za-z_][\w.-]*:[^\t]*(?:\t[\w.-]+:[^\t]*)+")

_CRI: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]+) std(?:out|err) [FP](?::[^ ]*)?(?: |$)")
_QUOTED: Final = r'[^"\\]*(?:\\.[^"\\]*)*'  # what may stand between quotes
_REQUEST: Final = (
    r" (?P<remote_logname>[^ ]+) (?P<remote_user>[^\[]*) "
    r"\[(?P<time_local>[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} [+-][0-9]{4})\] "
    r'"(?P<request>(?P<request_method>[A-Z]+) (?P<request_uri>[^ "]+)(?: (?P<server_protocol>HTTP/[0-9.]+))?|'
    rf'{_QUOTED})" '
    r"(?P<status>[0-9]{3}|-) (?P<body_bytes_sent>[0-9]+|-)"
)
_ACCESS: Final = r"(?:(?P<virtual_host>[A-Za-z][A-Za-z0-9.-]*:[0-9]+) )?(?P<remote_addr>[^ ]+)" + _REQUEST
_ACCESS_KINDS: Final = MappingProxyType({"status": NUMBER, "body_bytes_sent": NUMBER, "remote_logname": NIL})
# Lines of programs that mostly run in containers, where these say when: klog of Kubernetes, and accesses.
_INSIDE: Final = (
    r"(?P<level>[IWEF])[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+ +(?P<threadid>[0-9]+) "
    r"(?P<file>[^ :\]]+):(?P<line>[0-9]+)\] (?P<msg>.*)|"
    r"(?P<remote_addr>[0-9A-Fa-f.:]+)"  # an address alone: else any text might begin so
    + _REQUEST
    + rf'(?: "(?P<http_referer>{_QUOTED})" "(?P<http_user_agent>{_QUOTED})"(?: (?P<more>.*))?)?$'
)
_INSIDE_KINDS: Final = MappingProxyType({"threadid": NUMBER, "line": NUMBER, "msg": BODY, **_ACCESS_KINDS})
_SYSLOG_TIME: Final = r"[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}"
_ISO: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"
    r"(?: ?(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2}|[+-][01][0-9]))?"
)

_TIMES: Final = frozenset(("time", "timestamp", "ts", "date", "datetime"))  # groups of times in a user's pattern
_SLASHES: Final = r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_C_TIME: Final = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)? [0-9]{4}"
_LEVELS: Final = "(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|FATAL|PANIC|SEVERE)"
_JAVA_TIME: Final = r"[0-9]{2}-[A-Z][a-z]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"  # Tomcat
_SPARK_TIME: Final = r"2[0-9]/(?:0[1-9]|1[0-2])/[0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}"
_COLOUR: Final = r"\x1b\[[0-9;]*m"  # of a terminal
# What looks like a host may be a level: programs write `2026-11-25 01:00:00 INFO app.db: connected`.
_SYSLOG_LINE: Final = re.compile(
    rf"(?:<[0-9]{{1,3}}>)?(?:{_SYSLOG_TIME}|[0-9-]{{10}}T[0-9:.]+(?:Z|[+-][0-9:]+)) (?!{_LEVELS} )[^ \[]+ "
    r"[^ :\[{]+(?:\[[^\]]*\])?:".encode()
)

FORMATS: Final = (
    Format("docker", "Docker json-file", DOCKER, _INSIDE, _INSIDE_KINDS, joins=True, is_line=_is_docker),
    Format("journald", "systemd-journald, as JSON", JOURNAL, is_line=_is_journal),
    Format(
        "cri", "Kubernetes CRI", CRI, _INSIDE, _INSIDE_KINDS, joins=True, is_line=lambda line: bool(_CRI.match(line)),
    ),
    Format(
        "syslog5424", "syslog, RFC 5424", PATTERN,
        r"<(?P<PRI>[0-9]{1,3})>(?P<VERSION>[0-9]{1,2}) (?P<TIMESTAMP>[^ ]+) (?P<HOSTNAME>[^ ]+) (?P<APP_NAME>[^ ]+) "
        r"(?P<PROCID>[^ ]+) (?P<MSGID>[^ ]+) (?P<STRUCTURED_DATA>-|"
        rf'(?:\[(?:[^\]"]|"{_QUOTED}")*\])+)(?: (?:\xef\xbb\xbf)?(?P<MSG>.*))?',
        MappingProxyType({"PRI": NUMBER, "VERSION": NUMBER, "PROCID": NIL, "TIMESTAMP": NIL, "HOSTNAME": NIL,
                          "APP_NAME": NIL, "MSGID": NIL, "STRUCTURED_DATA": NIL, "MSG": BODY}),
        joins=True,
    ),
    Format(
        "syslog", "syslog, RFC 3164", PATTERN,
        rf"(?:<(?P<PRI>[0-9]{{1,3}})>)?(?P<TIMESTAMP>{_SYSLOG_TIME}|{_ISO}) (?P<HOSTNAME>[^ ]+) "
        r"(?P<TAG>[^ :\[{]+)(?:\[(?P<PID>[^\]]*)\])?: ?(?P<CONTENT>.*)",
        MappingProxyType({"PRI": NUMBER, "TIMESTAMP": BSD_TIME, "PID": NUMBER, "CONTENT": BODY}),
        joins=True, is_line=lambda line: bool(_SYSLOG_LINE.match(line)),
    ),
    Format(
        "klog", "klog of Kubernetes", PATTERN,
        r"(?P<severity>[IWEF])(?P<time>[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}) +(?P<threadid>[0-9]+) "
        r"(?P<file>[^ :\]]+):(?P<line>[0-9]+)\] (?P<msg>.*)",
        MappingProxyType({"time": KLOG_TIME, "threadid": NUMBER, "line": NUMBER, "msg": BODY}),
        joins=True,
    ),
    Format(
        "combined", "nginx and Apache, combined", PATTERN,
        _ACCESS + rf' "(?P<http_referer>{_QUOTED})" "(?P<http_user_agent>{_QUOTED})"(?: (?P<more>.*))?$',
        _ACCESS_KINDS,
    ),
    Format("common", "Apache, common", PATTERN, _ACCESS + "$", _ACCESS_KINDS),
    Format("ltsv", "LTSV", LTSV, joins=True, is_line=lambda line: bool(_LTSV.fullmatch(line))),
    Format("logfmt", "logfmt", LOGFMT, joins=True, is_line=_is_logfmt),
    Format(
        "text", "text with times", PATTERN,
        rf"(?:{_COLOUR})?(?:[DIWEFA], )?"  # Ruby's
        rf"\[?(?P<time>{_ISO}|{_SLASHES}|{_SYSLOG_TIME}|{_C_TIME}|{_JAVA_TIME}|{_SPARK_TIME})"
        rf"(?:{_COLOUR})?(?: #[0-9]+\]|\])?:? ?(?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "text": LEVELED}), joins=True,
    ),
    Format("plain", "text of no format that is known", PATTERN, r"(?P<text>.*)"),
)  # fmt: skip
FORMATS_OF_JSON: Final = tuple(row for row in FORMATS if row.is_json)
# Batches are recognised by the beginning of a file (batches.py).
BATCHES: Final = (
    Format(
        "otlp", "OpenTelemetry, as JSON", OTLP,
        path=BatchPath(
            (("resourceLogs", "resourceSpans", "resourceMetrics"), None, ("scopeLogs", "scopeSpans", "scopeMetrics"),
             None, ("logRecords", "spans", "metrics"), None),
            ((2, "resource"), (4, "scope")),
        ),
    ),
    Format(
        "cloudwatch", "CloudWatch, as JSON", BATCH,
        path=BatchPath((("logEvents",), None), ((0, "owner"), (0, "logGroup"), (0, "logStream"))),
    ),
)  # fmt: skip
TABLES: Final = (  # rows under a header, which is the pattern of a form (headers.py)
    Format("csv", "CSV", TABLE),
    Format("tsv", "TSV", TABLE),
    Format("w3c", "W3C extended log", TABLE),
    Format("zeek", "log of Zeek", TABLE),
)
BY_NAME: Final = {row.name: row for row in (*FORMATS, *BATCHES, *TABLES)}


@lru_cache
def _line_test(name: str) -> Callable[[bytes], Any]:
    row = BY_NAME[name]
    return row.is_line or re.compile(row.pattern.encode("latin-1")).match


def recognised(lines: Sequence[bytes], among: Sequence[Format] = FORMATS[:-1]) -> Format | None:
    """The format of a file whose first lines are these; None where no row fits.

    One fits where all lines are the format's, or more than half of them; or the first one and a quarter of all, where
    stack traces may stand between. Of few lines, the first one is enough for that: more come.
    """
    lines = [line.removesuffix(b"\r") for line in lines[:_TRIED] if line.strip()]
    for row in among if lines else ():
        is_line = _line_test(row.name)
        fitting = sum(1 for line in lines if is_line(line))
        is_much = 4 * fitting >= len(lines) or len(lines) < _FEW
        if 2 * fitting > len(lines) or (row.joins and is_much and is_line(lines[0])):
            return row
    return None


@lru_cache
def row_of(name: str, pattern: str) -> Format:
    """The format of this name; of the user's own pattern; of a table with this header. Raises InvalidArgument."""
    if name not in BY_NAME:
        return own(pattern)
    row = BY_NAME[name]
    return row._replace(pattern=pattern) if row.how == TABLE else row


@lru_cache
def own(pattern: str) -> Format:
    """The format of the user's own pattern. Raises InvalidArgument."""
    names = compile_pattern(pattern).names
    kinds = {name: BSD_TIME if name.lower() in _TIMES else WORD for name in names}
    return Format("pattern", "a pattern", PATTERN, pattern, MappingProxyType(kinds), joins=True)
