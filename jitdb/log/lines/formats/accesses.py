"""The formats of accesses: of servers and their frameworks, alone and in what syslog writes."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from jitdb.log.lines.formats.kernels.kinds import BODY, BSD_TIME, LEVELED, NIL, NUMBER, PATTERN
from jitdb.log.lines.formats.row import ACCESSED, CLOCK, COLOUR, ISO, QUOTED, Format, begins
from jitdb.log.lines.formats.syslogs import SYSLOG, SYSLOG_HEAD, SYSLOG_KINDS

REQUESTED: Final = (
    r'(?P<request>(?P<request_method>[A-Z]+) (?P<request_uri>[^ "\x1b]+)(?: (?P<server_protocol>HTTP/[0-9.]+))?'
)
ANSWERED: Final = r'" (?P<status>[0-9]{3}|-) (?P<body_bytes_sent>[0-9]+|-)'
# Behind an access: what ingress-nginx of Kubernetes adds; else it is `more`.
MORE: Final = (
    r"(?: (?:(?P<request_length>[0-9]+) (?P<request_time>[0-9.]+) \[(?P<proxy_upstream_name>[^\]]*)\] "
    r"\[(?P<proxy_alternative_upstream_name>[^\]]*)\] (?P<upstream_addr>[^ ]+(?:, [^ ]+)*) "
    r"(?P<upstream_response_length>[^ ]+(?:, [^ ]+)*) (?P<upstream_response_time>[^ ]+(?:, [^ ]+)*) "
    r"(?P<upstream_status>[^ ]+(?:, [^ ]+)*) (?P<req_id>[0-9a-f]+)|(?P<more>.*)))?$"
)
REQUEST: Final = (
    r" (?P<remote_logname>[^ ]+) (?P<remote_user>[^\[]*) "
    rf'\[(?P<time_local>{ACCESSED} [+-][0-9]{{4}})\] "{REQUESTED}|{QUOTED}){ANSWERED}'
)
ACCESS: Final = r"(?:(?P<virtual_host>[A-Za-z][A-Za-z0-9.-]*:[0-9]+) )?(?P<remote_addr>[^ ]+)" + REQUEST
ACCESS_KINDS: Final = MappingProxyType({
    "status": NUMBER, "body_bytes_sent": NUMBER, "remote_logname": NIL,
    "request_length": NUMBER, "request_time": NUMBER, "proxy_alternative_upstream_name": NIL, "upstream_addr": NIL,
    "upstream_response_length": NUMBER, "upstream_response_time": NUMBER, "upstream_status": NUMBER,
})  # fmt: skip

_TIME_LOCAL: Final = rf"(?P<time_local>{ACCESSED} [+-][0-9]{{4}})"
_AGENT: Final = rf' "(?P<http_referer>{QUOTED})" "(?P<http_user_agent>{QUOTED})"'
#: Hypercorn names the version of HTTP alone, and leaves quotes in the last field as they are.
_HYPERCORN: Final = (
    rf"(?:\[(?P<time>{ISO})\] \[(?P<process>[0-9]+)\] \[(?P<level>[A-Z]+)\] )?(?:(?P<remote_addr>[^ ]+) "
    rf"(?P<remote_logname>[^ ]+) (?P<remote_user>[^ ]+) \[{_TIME_LOCAL}\] "
    r'"(?P<request>(?P<request_method>[A-Z]+) (?P<request_uri>[^ "]+) (?P<server_protocol>[0-9.]+))'
    rf'{ANSWERED} "(?P<http_referer>{QUOTED})" "(?P<http_user_agent>.*)"$'
)
_COLOURED: Final = rf"(?:{COLOUR})*"
_MORGAN: Final = (
    rf"{_COLOURED}(?P<method>[A-Z]+) (?P<url>[^ ]+) {_COLOURED}(?P<status>[0-9]{{3}}|-){_COLOURED} (?:"
    r"(?P<response_time>[0-9.]+|-) ms - (?P<content_length>[0-9]+|-)|"  # dev
    rf"(?P<content_length>[0-9]+|-) - (?P<response_time>[0-9.]+|-) ms){_COLOURED}$|"  # tiny
    r"(?P<remote_addr>[^ ]+) (?P<remote_user>[^ ]+) (?P<method>[A-Z]+) (?P<url>[^ ]+) HTTP/(?P<http_version>[0-9.]+) "
    r"(?P<status>[0-9]{3}|-) (?P<content_length>[0-9]+|-) - (?P<response_time>[0-9.]+|-) ms$"  # short
)


def _key(name: str) -> str:
    return rf'(?: {name}:(?:"(?P<{name}>[^"]*)"|(?P<{name}>[^ "]+)))?'


#: In the order in which gorouter writes them; what is not there was not known to its version.
_GOROUTER_KEYS: Final = (
    "x_forwarded_for x_forwarded_proto vcap_request_id response_time gorouter_time app_id app_index instance_id "
    "failed_attempts failed_attempts_time dns_time dial_time tls_time backend_time x_cf_routererror"
)
_GIN: Final = (
    rf"\[GIN\] (?P<time>[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} - {CLOCK}) \|{_COLOURED} *(?P<status>[0-9]{{3}}) ?{_COLOURED}"
    rf"\| *(?P<latency>[^ |]+) \| *(?P<client_ip>[^ |]+) \|{_COLOURED} ?(?P<method>[A-Z]+) *{_COLOURED} *"
    rf'"(?P<path>{QUOTED})"$|(?P<text>\[GIN-debug\] .*)'
)
#: Of Ruby's Logger, with the id of a request behind it.
_LOGRAGE: Final = (
    rf"[DIWEFA], \[(?P<time>{ISO}) #(?P<pid>[0-9]+)\] +(?P<level>[A-Z]+) -- (?P<progname>[^: ]+)?: "
    r"(?:\[(?P<request_id>[0-9A-Fa-f-]{16}[0-9A-Fa-f-]*)\] )?"
)
_IN_SYSLOG: Final = rf"(?P<remote_addr>[0-9A-Za-z.:-]+){REQUEST}(?:{_AGENT}{MORE.removesuffix('$')})?$"

ACCESSES: Final = (
    Format(
        "gin", "Gin", PATTERN, _GIN, MappingProxyType({"time": BSD_TIME, "status": NUMBER, "text": LEVELED}),
        joins=True, mark=b"[GIN",
    ),
    Format(
        "aiohttp", "accesses of aiohttp", PATTERN,
        rf'(?P<remote_addr>[^ ]+) \[{_TIME_LOCAL}\] "{REQUESTED}|{QUOTED}){ANSWERED}{_AGENT}(?: (?P<more>.*))?$',
        ACCESS_KINDS, joins=True, mark=b'] "',
    ),
    Format(
        "hypercorn", "Hypercorn", PATTERN, rf"{_HYPERCORN}|(?P<text>.*))",
        MappingProxyType({**ACCESS_KINDS, "process": NUMBER, "remote_user": NIL, "text": BODY}),
        joins=True, mark=b'] "', is_line=begins(re.sub(r"\?P<\w+>", "?:", _HYPERCORN) + ")"),
    ),
    Format(
        "morgan", "morgan of Express (dev, tiny, short)", PATTERN, rf"{_MORGAN}|(?P<text>.*)",
        MappingProxyType({
            "status": NUMBER, "content_length": NUMBER, "response_time": NUMBER, "remote_user": NIL, "text": LEVELED,
        }),
        joins=True, folds=True, mark=b" ms", is_line=begins(re.sub(r"\?P<\w+>", "?:", _MORGAN)),
    ),
    Format(
        "phpfpm", "accesses of php-fpm", PATTERN,
        rf"(?P<remote_addr>[^ ]+) - (?P<remote_user>[^ ]+)? {_TIME_LOCAL} "
        r'"(?P<request>(?P<request_method>[A-Z]+) (?P<request_uri>[^"]*))" (?P<status>[0-9]{3})'
        r"(?: (?P<script>[^ ]+) (?P<request_duration>[0-9.]+) (?P<request_memory>[0-9]+) (?P<request_cpu>[0-9.]+)%|"
        r" (?P<more>.*))?$",
        MappingProxyType({
            "status": NUMBER, "request_duration": NUMBER, "request_memory": NUMBER, "request_cpu": NUMBER,
        }),
        joins=True, mark=b' "',
    ),
    Format(
        "gorouter", "gorouter of Cloud Foundry", PATTERN,
        rf'(?P<request_host>[^ ]+) - \[(?P<start_time>{ISO})\] "(?P<request_method>[A-Z]+) (?P<request_url>[^ "]+) '
        r'(?P<request_protocol>[^ "]+)" (?P<status_code>[0-9]{3}|-) (?P<bytes_received>[0-9]+) (?P<bytes_sent>[0-9]+) '
        rf'"(?P<referer>{QUOTED})" "(?P<user_agent>{QUOTED})" "(?P<remote_address>[^"]*)" "(?P<backend_address>[^"]*)"'
        + "".join(map(_key, _GOROUTER_KEYS.split())) + r"(?: (?P<more>.*))?$",
        MappingProxyType({
            **dict.fromkeys((
                "status_code", "bytes_received", "bytes_sent", "response_time", "gorouter_time", "app_index",
                "failed_attempts", "failed_attempts_time", "dns_time", "dial_time", "tls_time", "backend_time",
            ), NUMBER),
            **dict.fromkeys((
                "referer", "user_agent", "backend_address", "x_forwarded_for", "x_forwarded_proto", "vcap_request_id",
                "app_id", "instance_id", "x_cf_routererror",
            ), NIL),
        }),
        joins=True, mark=b"vcap_request_id:",
    ),
    Format(
        "lograge", "Rails' lograge, behind the head of Ruby's Logger", PATTERN, rf"{_LOGRAGE}(?P<text>.*)",
        MappingProxyType({"pid": NUMBER, "text": BODY}), joins=True, mark=b"method=",
        is_line=begins(re.sub(r"\?P<\w+>", "?:", _LOGRAGE) + r"method=[A-Z]+ path="),
    ),
    Format(
        "tornado", "Tornado and Jupyter", PATTERN,
        rf"(?:{COLOUR})?\[(?P<level>[DIWEC]) (?P<time>[0-9]{{6}} {CLOCK}|{ISO}) (?P<module>[^ :\]]+)"
        rf"(?::(?P<lineno>[0-9]+))?\](?:{COLOUR})? (?P<text>(?:(?P<status>[0-9]{{3}}) (?P<method>[A-Z]+) "
        r"(?P<uri>[^ ]+) \((?P<remote_ip>[^ )]+)\) (?P<request_time>[0-9.]+)ms)?.*)",
        MappingProxyType({
            "time": BSD_TIME, "lineno": NUMBER, "status": NUMBER, "request_time": NUMBER, "text": BODY,
        }),
        joins=True, mark=b"] ",
    ),
)  # fmt: skip
#: Behind the head of syslog: where the lines of such a file are mostly accesses. Other lines are those of syslog.
IN_SYSLOG: Final = Format(
    "syslogaccess", "accesses in syslog (nginx, Apache, Fastly)", PATTERN,
    rf"{SYSLOG_HEAD}(?P<CONTENT>{_IN_SYSLOG})|{SYSLOG}", MappingProxyType({**ACCESS_KINDS, **SYSLOG_KINDS}),
    joins=True, mark=b'] "', is_line=begins(re.sub(r"\?P<\w+>", "?:", SYSLOG_HEAD + _IN_SYSLOG)),
)  # fmt: skip
