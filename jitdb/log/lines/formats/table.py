"""The formats of lines: how each is recognised, and how its lines become records.

A new format is a row here. Most are a pattern; what a pattern cannot say has a part in kernels/rendering.py. Fields
have the names that the format's documentation gives them. The first row that fits a file is its format.

row.py says what is in a row, accesses.py has those of accesses, databases.py those of databases, services.py those of
other services, syslogs.py syslog and what devices write, slashed.py those of which each file tells whether days or
months come first.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from jitdb.log.lines.batch_path import BatchPath
from jitdb.log.lines.formats.accesses import (
    ACCESS,
    ACCESS_KINDS,
    ACCESSES,
    ANSWERED,
    IN_SYSLOG,
    MORE,
    REQUEST,
    REQUESTED,
)
from jitdb.log.lines.formats.databases import DATABASES, REDIS
from jitdb.log.lines.formats.kernels.kinds import (
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
    SHOWN,
    STAMPED,
    TABLE,
    WORD,
    ZONED_TIME,
)
from jitdb.log.lines.formats.pattern import compile_pattern
from jitdb.log.lines.formats.row import BSD, CLOCK, COLOUR, DASHED, ISO, LEVELS, QUOTED, Format, begins
from jitdb.log.lines.formats.services import ENVOY, ENVOY_KINDS, NATS, SERVICES, STRUCTLOG
from jitdb.log.lines.formats.slashed import GUESSED, KNOWN_DAYS
from jitdb.log.lines.formats.syslogs import DEVICES, SYSLOG5424, SYSLOG_KINDS, SYSLOGS, TAGGED


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
# Docker and kubectl write nine digits of the second. Where a program writes neither its own time nor a trace behind
# these, a line is text behind a time.
_OWN_DAY: Final = r"[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}[T ]|[0-9]{2}[-/. ](?:[0-9]{2}|[A-Z][a-z]{2})[-/. ][0-9]{4},? "
_STAMPED: Final = begins(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{9}(?:Z|[+-][0-9:]{5})(?: ?$| (?:[\t ]+at |Caused by: |Suppressed: |"
    rf"[IWEF][0-9]{{4}} {CLOCK}\.|[^ ]+ [^ ]+ [^ ]+ \[[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}}:|"
    r"(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable)(?::|$)|Traceback \(most recent call last\)|"
    rf"(?:{COLOUR})?\[?(?:{LEVELS}:? +\[?)?(?:{_OWN_DAY}|[A-Z][a-z]{{2}} [ 0-9]?[0-9],? |{CLOCK}[.,: \]])))"
)
# Lines of programs that mostly run in containers, where these say when: klog of Kubernetes, accesses, proxies, syslog,
# and structlog's console.
_INSIDE: Final = "|".join((
    r"(?P<level>[IWEF])[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+ +(?P<threadid>[0-9]+) "
    r"(?P<file>[^ :\]]+):(?P<line>[0-9]+)\] (?P<msg>.*)",
    r"(?P<remote_addr>[0-9A-Fa-f.:]+)"  # an address alone: else any text might begin so
    + REQUEST
    + rf'(?: "(?P<http_referer>{QUOTED})" "(?P<http_user_agent>{QUOTED})"{MORE.removesuffix("$")})?$',
    ENVOY,
    SYSLOG5424,
    rf"<(?P<PRI>[0-9]{{1,3}})>(?P<TIMESTAMP>{BSD}|{ISO}) (?P<HOSTNAME>[^ ]+) {TAGGED}",
    rf"(?P<TIMESTAMP>{BSD}) (?P<HOSTNAME>[^ ]*[a-z0-9][^ ]*) {TAGGED}",  # capital letters alone are a level
))  # fmt: skip
_IN_CONTAINERS: Final = f"{_INSIDE}|{STRUCTLOG}"
_INSIDE_KINDS: Final = MappingProxyType({
    "threadid": NUMBER, "line": NUMBER, "msg": BODY, **ACCESS_KINDS, **ENVOY_KINDS, **SYSLOG_KINDS,
    "MSG": LEVELED, "CONTENT": LEVELED, "event": SHOWN,
})  # fmt: skip

_TIMES: Final = frozenset(("time", "timestamp", "ts", "date", "datetime"))  # groups of times in a user's pattern
_SLASHES: Final = r"[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_DOTS: Final = rf"[0-9]{{4}}\.[0-9]{{2}}\.[0-9]{{2}} {CLOCK}(?:[.,][0-9]+)?"
_C_TIME: Final = (
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?: [A-Z]{3,5})? [0-9]{4}"
)
_JS_TIME: Final = rf"[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [0-9]{{2}} [0-9]{{4}} {CLOCK} GMT[+-][0-9]{{4}}(?: \([^()]*\))?"
_BASIC: Final = rf"[12][0-9]{{3}}[01][0-9][0-3][0-9](?:T[0-9]{{6}}|[T ]{CLOCK})(?:[.,][0-9]+)?Z?"
_SPARK_TIME: Final = r"2[0-9]/(?:0[1-9]|1[0-2])/[0-3][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}"
_DOTTED: Final = rf"[0-3][0-9]\.[01][0-9]\.[0-9]{{4}} {CLOCK}(?:[.,][0-9]+)?"
_TWELVE: Final = r"[01][0-9]/[0-3][0-9]/[0-9]{4} [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)? [AP]M"
_SINCE_1970: Final = r"[12][0-9]{9}(?:\.[0-9]+)?"  # seconds: Mosquitto, Nagios, Unbound, ping -D
_TIMED: Final = (
    rf"(?:(?:{COLOUR})?(?:[DIWEFA], |update-alternatives )?"  # of Ruby; of Debian
    rf"\[?(?P<time>{ISO}|{_SLASHES}|{BSD}|{_C_TIME}|{DASHED}|{_SPARK_TIME}|{_DOTS}|{_DOTTED}|{_TWELVE}|{_BASIC}|"
    rf"{_JS_TIME})"
    rf"(?:{COLOUR})?(?: #[0-9]+\]|\])?:? ?|\[(?P<time>{_SINCE_1970})\] |(?P<time>{_SINCE_1970}): |"
    r"(?P<time>[12][0-9]{9}\.[0-9]+) )(?P<text>.*)"
)
# Consul, Nomad and Vault write blanks before their lines. In files of other formats such lines may belong to a record.
_INDENTED: Final = rf" +(?P<time>{ISO}) (?P<text>\[{LEVELS}\] .*)"
# Go's log writes what one gives it before the time.
_BEHIND: Final = rf"\[?(?P<prefix>[A-Za-z][A-Za-z0-9_./-]*)\]?:? ?(?P<time>{_SLASHES}) (?P<text>.*)"
_CLOCKED: Final = rf"(?:{COLOUR})?\[?(?P<clock>{CLOCK}(?:[.,][0-9]+)?)\]?(?:{COLOUR})? (?P<text>.*)"
_BY_LEVEL: Final = (
    rf"(?:{COLOUR})?(?:{LEVELS}(?:{COLOUR})?[\[: |\t]|\[(?:{COLOUR})? *{LEVELS} *(?:{COLOUR})?\]|"
    rf"(?:TRAC|DEBU|ERRO|FATA|PANI)(?:{COLOUR})?\[[0-9]|"  # of logrus
    r"(?:trce|dbug|debug|info|notice|warn|warning|fail|error|crit|critical|fatal|panic|alert|emerg|emergency"
    r"|CRIT|ALERT|EMERG|EMERGENCY): )"
)
# Before the lines of several containers or processes: kubectl logs --prefix, pm2 logs, docker compose logs.
_NAMED: Final = (
    r"\[pod/(?P<pod>[^/\] ]+)/(?P<container>[^\] ]+)\](?: |$)|"
    rf"(?:{COLOUR})?(?:(?P<id>[0-9]+)\|(?P<app>[^ |]+)|(?P<container>[A-Za-z0-9][A-Za-z0-9_.@-]*))"
    rf" +\|(?:{COLOUR})?(?: (?:{COLOUR})?|$)"
)
_PADDED: Final = _NAMED.replace(r" +\|", r"  +\|")  # as the shorter names have it, which tell the format
# What Django says of a request before the line of the request.
_DJANGO: Final = (
    r"(?:Internal Server Error|Bad Request|Not Found|Gone|Forbidden|Method Not Allowed|Unauthorized|Too Many Requests|"
    r"Service Unavailable)(?: \([^)]*\))?: /"
)
# What development servers say when they start, or start again: of Flask and Werkzeug; of Django; of Python.
_STARTED: Final = (
    rf"(?:{COLOUR})*(?: \* (?:Serving Flask app|Environment: |Debug mode: |Running on |Restarting with |Debugger |"
    r"Detected change in |Tip: )| *WARNING: This is a development server\.| *Use a production WSGI server instead\.|"
    r"Press CTRL\+C to quit|Watching for file changes with |Performing system checks\.\.\.$|"
    r"System check identified [0-9a-z]+ issues?|You have [0-9]+ unapplied migration|Run 'python manage\.py migrate' |"
    r"[A-Z][a-z]+ [0-9]{2}, [0-9]{4} - [0-9]{2}:[0-9]{2}:[0-9]{2}$|Django version [0-9]|"
    r"Starting development server at |Quit the server with |For more information on production servers see: |"
    r"Serving HTTP on [^ ]+ port [0-9]+ ).*"
)
_FLASK_WARNS: Final = b"WARNING: This is a development server. Do not use it in a production deployment."

FORMATS: Final = (
    Format("docker", "Docker json-file", DOCKER, _IN_CONTAINERS, _INSIDE_KINDS, joins=True, is_line=_is_docker),
    Format("journald", "systemd-journald, as JSON", JOURNAL, is_line=_is_journal),
    Format(
        "cri", "Kubernetes CRI", CRI, _IN_CONTAINERS, _INSIDE_KINDS, joins=True,
        is_line=lambda line: bool(_CRI.match(line)),
    ),
    Format(
        "stamped", "docker logs -t, kubectl logs --timestamps", STAMPED, _IN_CONTAINERS, _INSIDE_KINDS,
        joins=True, is_line=_STAMPED,
    ),
    *SERVICES,
    *DATABASES,
    *ACCESSES,
    *DEVICES,
    IN_SYSLOG,
    *SYSLOGS,
    Format(
        "klog", "klog of Kubernetes, glog", PATTERN,
        r"(?P<severity>[IWEF])(?P<time>(?:[0-9]{4}|[0-9]{6}|[0-9]{8}) [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}) "
        r"+(?P<threadid>[0-9]+) (?P<file>[^ :\]]+):(?P<line>[0-9]+)\]? (?P<msg>.*)",
        MappingProxyType({"time": KLOG_TIME, "threadid": NUMBER, "line": NUMBER, "msg": BODY}),
        joins=True,
    ),
    Format(
        "combined", "nginx and Apache, combined", PATTERN,
        ACCESS + rf' "(?P<http_referer>{QUOTED})" "(?P<http_user_agent>{QUOTED})"{MORE}',
        ACCESS_KINDS,
    ),
    Format("common", "Apache, common", PATTERN, ACCESS + "(?: (?P<more>.*))?$", ACCESS_KINDS),
    Format(
        "runserver", "development servers of Django, Flask and Python", PATTERN,
        r"(?:(?P<remote_addr>[^ ]+) (?P<remote_logname>[^ ]+) (?P<remote_user>[^ ]+) )?"
        rf"\[(?P<time_local>[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}} {CLOCK})\] "
        rf'(?:"(?:{COLOUR})*{REQUESTED})(?:{COLOUR})*{ANSWERED}|"(?P<request>{QUOTED}){ANSWERED}|(?P<text>.*))|'
        rf"(?P<text>{_DJANGO}.*)|{_STARTED}",
        MappingProxyType({**ACCESS_KINDS, "remote_user": NIL, "text": BODY}), joins=True, skips=True, mark=b'] "',
        is_line=begins(
            rf"(?:[^ ]+ [^ ]+ [^ ]+ )?\[[0-9]{{2}}/[A-Z][a-z]{{2}}/[0-9]{{4}} {CLOCK}\] |{_DJANGO}|{_STARTED}"
        ),
        banner=(
            b" * Serving Flask app", _FLASK_WARNS, b"\x1b[31m\x1b[1m" + _FLASK_WARNS,
            b"Watching for file changes with StatReloader", b"Performing system checks...",
        ),
    ),
    Format(
        "colours", "JSON within colours of a terminal", PATTERN,
        rf'(?:{COLOUR})+(?P<text>\{{".*\}})(?:{COLOUR})*$',
        MappingProxyType({"text": BODY}), joins=True, mark=b"\x1b[",
    ),
    Format("ltsv", "LTSV", LTSV, joins=True, is_line=lambda line: bool(_LTSV.fullmatch(line))),
    Format("logfmt", "logfmt", LOGFMT, joins=True, is_line=_is_logfmt),
    Format(
        "text", "text with times", PATTERN, rf"{_TIMED}|{_INDENTED}",
        MappingProxyType({"time": ZONED_TIME, "text": LEVELED}), joins=True,
    ),
    *GUESSED,
    Format(
        "clock", "text with times of day", PATTERN,
        _CLOCKED, MappingProxyType({"text": LEVELED}), joins=True,
    ),
    Format(
        "leveltime", "text with levels and times", PATTERN,
        rf"\[?(?P<level>{LEVELS})\]?(?: -)?:? +(?:\[(?P<thread>[^\]]*[^\]0-9 :,.-][^\]]*)\] +)?"
        rf"\[?(?P<time>{ISO}|{_SLASHES})\]?(?: -)?:? ?(?P<text>.*)",
        MappingProxyType({"time": ZONED_TIME, "text": BODY}), joins=True,
    ),
    Format(
        "levels", "text with levels", PATTERN,
        rf'(?P<level>{LEVELS}): +(?P<client_addr>[^ ]+) - "(?P<request_line>(?P<method>[A-Z]+) (?P<full_path>[^ "]+) '
        r'HTTP/(?P<http_version>[0-9.]+))" (?P<status_code>[0-9]{3})(?: [A-Z][A-Za-z -]*)?$|'  # of uvicorn
        rf"(?P<text>(?:{_BY_LEVEL}|(?:trace|verbose|silly|http|err|severe): ).*)",  # of Winston
        MappingProxyType({"status_code": NUMBER, "text": LEVELED}), joins=True,
    ),
    Format(
        "golog", "Go's log with a prefix", PATTERN, _BEHIND, MappingProxyType({"text": LEVELED}), joins=True,
    ),
    Format(
        "prefixed", "text behind the names of containers or processes", PATTERN,
        rf"(?:{_NAMED})(?:{re.sub('<(?:time_local|start_time|TIMESTAMP)>', '<time>', _INSIDE)}|{REDIS}|{NATS}|{_TIMED}|"
        r"(?P<text>.*))",
        MappingProxyType({
            **_INSIDE_KINDS, "id": NUMBER, "pid": NUMBER, "time": ZONED_TIME, "message": BODY, "text": LEVELED,
        }),
        joins=True, folds=True,
        is_line=begins(re.sub(r"\?P<\w+>", "?:", _PADDED)),
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
    Format("vpcflow", "flow log of AWS", TABLE),
)
# Of a file of which no other row is. Who reads plain text looks whether most of its lines are JSON (detection.py).
MIXED: Final = Format(
    "mixed", "text and JSON", PATTERN, rf"{_TIMED}|(?P<text>.*)",
    MappingProxyType({"time": ZONED_TIME, "text": LEVELED}), joins=True, folds=True,
)  # fmt: skip
# Lines that are none of their file's format, and yet records: behind a time, the head of klog or a time of day, or a
# level, also behind the name of a program, which has no capitals and no dots, as names of exceptions do.
OTHERS: Final = Format(
    "others", "lines of other formats", PATTERN,
    rf"{_TIMED}|(?P<level>[IWEF])(?P<time>[0-9]{{4}} {CLOCK}\.[0-9]+) +(?P<threadid>[0-9]+) "
    rf"(?P<file>[^ :\]]+):(?P<line>[0-9]+)\] (?P<msg>.*)|{_CLOCKED}|"
    rf"(?P<text>(?:{_BY_LEVEL}|[a-z][a-z0-9_-]*: {LEVELS}:? [^ ]).*)",
    MappingProxyType({"time": ZONED_TIME, "threadid": NUMBER, "line": NUMBER, "msg": BODY, "text": LEVELED}),
)  # fmt: skip
BY_NAME: Final = {row.name: row for row in (*FORMATS, MIXED, *KNOWN_DAYS, *BATCHES, *TABLES)}


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
