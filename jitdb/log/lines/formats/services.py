"""The formats of certain services: each is a pattern, with the names that the service's documentation has."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from jitdb.log.lines.formats.kernels.kinds import (
    BODY,
    BSD_TIME,
    GRADED,
    LEVELED,
    NUMBER,
    PAIRS,
    PATTERN,
    SHOWN,
)
from jitdb.log.lines.formats.row import (
    ACCESSED,
    BSD,
    CLOCK,
    COLOUR,
    DASHED,
    ISO,
    LEVELS,
    NL,
    QUOTED,
    REST,
    Format,
    absent,
    begins,
    numbers,
)

_UWSGI_TIME: Final = rf"[A-Z][a-z]{{2}} {BSD} [0-9]{{4}}"
_HAPROXY_HTTP: Final = (
    rf"(?P<client_ip>[^ ]+):(?P<client_port>[0-9]+) \[(?P<accept_date>{ACCESSED}\.[0-9]+)\] (?P<frontend_name>[^ ]+) "
    r"(?P<backend_name>[^ /]+)/(?P<server_name>[^ ]+) (?P<TR>-?[0-9]+)/(?P<Tw>-?[0-9]+)/(?P<Tc>-?[0-9]+)/"
    r"(?P<Tr>-?[0-9]+)/\+?(?P<Ta>-?[0-9]+) (?P<status_code>-?[0-9]+) \+?(?P<bytes_read>[0-9]+) "
    r"(?P<captured_request_cookie>[^ ]+) (?P<captured_response_cookie>[^ ]+) (?P<termination_state>[^ ]{4}) "
    r"(?P<actconn>[0-9]+)/(?P<feconn>[0-9]+)/(?P<beconn>[0-9]+)/(?P<srv_conn>[0-9]+)/\+?(?P<retries>[0-9]+) "
    r"(?P<srv_queue>[0-9]+)/(?P<backend_queue>[0-9]+) (?:\{(?P<captured_request_headers>[^}]*)\} )?"
    r'(?:\{(?P<captured_response_headers>[^}]*)\} )?"(?P<http_request>[^"]*)"?'
)
_HAPROXY_TCP: Final = (
    rf"(?P<client_ip>[^ ]+):(?P<client_port>[0-9]+) \[(?P<accept_date>{ACCESSED}\.[0-9]+)\] (?P<frontend_name>[^ ]+) "
    r"(?P<backend_name>[^ /]+)/(?P<server_name>[^ ]+) (?P<Tw>-?[0-9]+)/(?P<Tc>-?[0-9]+)/\+?(?P<Tt>-?[0-9]+) "
    r"\+?(?P<bytes_read>[0-9]+) (?P<termination_state>[^ ]{2}) "
    r"(?P<actconn>[0-9]+)/(?P<feconn>[0-9]+)/(?P<beconn>[0-9]+)/(?P<srv_conn>[0-9]+)/\+?(?P<retries>[0-9]+) "
    r"(?P<srv_queue>[0-9]+)/(?P<backend_queue>[0-9]+)"
)
_HAPROXY_HEAD: Final = (
    rf"(?:<(?P<PRI>[0-9]{{1,3}})>)?(?P<TIMESTAMP>{BSD}|{ISO}) (?P<HOSTNAME>[^ ]+) "
    r"(?P<TAG>[^ :\[{]+)(?:\[(?P<PID>[^\]]*)\])?: "
)
#: Envoy's default format, and Istio's. Its groups have other names than those of accesses and klog, beside which it
#: stands in table.py.
ENVOY: Final = (
    rf'\[(?P<start_time>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{CLOCK}\.[0-9]+Z)\] "(?P<method>[^ "]+) (?P<path>[^ "]+) '
    r'(?P<protocol>[^ "]+)" (?P<response_code>[0-9]+) (?P<response_flags>[^ ]+) (?:(?P<response_code_details>[^ "]+) '
    r'(?P<connection_termination_details>[^ "]+) "(?P<upstream_transport_failure_reason>[^"]*)" )?'
    r"(?P<bytes_received>[0-9]+) (?P<bytes_sent>[0-9]+) (?P<duration>[0-9]+) (?P<upstream_service_time>[^ ]+) "
    r'"(?P<x_forwarded_for>[^"]*)" "(?P<user_agent>[^"]*)" "(?P<request_id>[^"]*)" "(?P<authority>[^"]*)" '
    r'"(?P<upstream_host>[^"]*)"(?: (?P<upstream_cluster>[^ ]+) (?P<upstream_local_address>[^ ]+) '
    r"(?P<downstream_local_address>[^ ]+) (?P<downstream_remote_address>[^ ]+) (?P<requested_server_name>[^ ]+) "
    r"(?P<route_name>[^ ]+))?"
)
ENVOY_KINDS: Final = MappingProxyType(
    numbers("response_code bytes_received bytes_sent duration upstream_service_time")
    | absent(
        "method path protocol response_flags response_code_details connection_termination_details "
        "upstream_transport_failure_reason x_forwarded_for user_agent request_id authority upstream_host "
        "upstream_cluster upstream_local_address downstream_local_address downstream_remote_address "
        "requested_server_name route_name"
    )
)

#: As Redis, it mostly runs in containers.
NATS: Final = (
    rf"\[(?P<pid>[0-9]+)\] (?P<time>[0-9]{{4}}/[0-9]{{2}}/[0-9]{{2}} {CLOCK}(?:\.[0-9]+)?) "
    r"\[(?P<level>TRC|DBG|INF|WRN|ERR|FTL)\] (?P<text>.*)"
)

_HAPROXY_LINE: Final = (
    r"(?:<[0-9]+>)?[^\[]+ haproxy\[[0-9]+\]: |[^ ]+:[0-9]+ \[[^ ]+\] [^ ]+ [^ ]+ -?[0-9]+(?:/[-+0-9]+){2,4} "
)
#: structlog's console; the rest is read by kernels/console.py.
_C: Final = rf"(?:{COLOUR})*"
_STRUCTLOG_HEAD: Final = (
    rf"{_C}(?:(?:(?P<timestamp>{ISO})|(?P<clock>{CLOCK}(?:\.[0-9]+)?)){_C} )?\[{_C}"
    rf"(?P<level>trace|debug|info|notice|warn|warning|error|critical|fatal|exception|notset) *{_C}\] "
)
_STRUCTLOG_LEVELS: Final = ["debug", "info", "notice", "warn", "warning", "error", "critical", "exception", "notset"]
_STRUCTLOG_PADDED: Final = "|".join(f"{level:9}" for level in _STRUCTLOG_LEVELS)
_STRUCTLOG_NAMED: Final = "|".join(f"(?P<level>{level}){' ' * (9 - len(level))}" for level in _STRUCTLOG_LEVELS)
#: In containers, which say when: only levels that are padded tell it from lines of other programs.
STRUCTLOG: Final = (
    rf"{_C}(?:(?:{ISO}|{CLOCK}(?:\.[0-9]+)?){_C} )?\[{_C}"
    rf"(?:{_STRUCTLOG_NAMED}){_C}\] (?P<event>.*)"
)

_JUL_TIME: Final = r"[A-Z][a-z]{2} [0-9]{1,2}, [0-9]{4} [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: |\xe2\x80\xaf)[AP]M"
_JUL_LEVEL: Final = "SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST"
_NEST_TIME: Final = r"[01][0-9]/[0-3][0-9]/[0-9]{4}, [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: |\xe2\x80\xaf)[AP]M"
_SECONDS: Final = r"-?[0-9]+(?:\.[0-9]+)?"
_NLB_TEXTS: Final = (
    "cert_arn certificate_serial tls_cipher_suite tls_protocol_version tls_named_group domain_name alpn_fe_protocol "
    "alpn_be_protocol alpn_client_preference_list tls_connection_creation_time"
)
_RAILS_ID: Final = r"\[(?P<request_id>[0-9A-Fa-f-]{16}[0-9A-Fa-f-]*)\] "
_RAILS_STARTED: Final = (
    rf'Started (?P<method>[A-Z]+) "(?P<path>[^"\r\n]*)" for (?P<remote_ip>[^ \r\n]+) at (?P<time>{ISO})'
)
_RAILS_PROCESSING: Final = (
    r"Processing by (?P<controller>[A-Za-z0-9_:]+)#(?P<action>[^ \r\n]+)(?: as (?P<format>[^ \r\n]+))?"
)
_RAILS_COMPLETED: Final = (
    r"Completed (?P<status>[0-9]{3})[^\r\n]*? in (?P<duration>[0-9.]+)ms"
    r"(?: \((?:Views: (?P<view_runtime>[0-9.]+)ms)?(?:(?: \| )?ActiveRecord: (?P<db_runtime>[0-9.]+)ms)?)?"
)
_RAILS_KINDS: Final = MappingProxyType(numbers("pid status duration view_runtime db_runtime"))

_ATTRIBUTE: Final = "[^<>]*|<[^<>]*>"  # of a message of WebLogic
_WEBLOGIC_TIME: Final = (
    r"[A-Z][a-z]{2} [0-9]{1,2}, [0-9]{4},? [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:,[0-9]+)?(?: |\xe2\x80\xaf)[AP]M"
)
_WEBLOGIC_END: Final = r" <(?P<MSGID>[^<>\[]*)> <(?P<MESSAGE>[\s\S]*?)(?:> *)?$"

SERVICES: Final = (
    Format(
        "auditd", "auditd", PATTERN,
        r"(?:node=(?P<node>[^ ]+) )?type=(?P<type>[^ ]+) msg=audit\((?P<time>[0-9]+\.[0-9]+):(?P<serial>[0-9]+)\):"
        r" *(?P<fields>.*)",
        MappingProxyType({**numbers("time serial"), "fields": PAIRS}),
        joins=True, mark=b" msg=audit(",
    ),
    Format(
        "haproxy", "HAProxy", PATTERN,
        f"(?:{_HAPROXY_HEAD})?(?:{_HAPROXY_HTTP}|{_HAPROXY_TCP}|(?P<CONTENT>.*))",
        MappingProxyType({
            **numbers("PRI PID client_port TR Tw Tc Tr Ta Tt status_code bytes_read actconn feconn beconn srv_conn "
                       "retries srv_queue backend_queue"),
            **absent("captured_request_cookie captured_response_cookie"), "TIMESTAMP": BSD_TIME, "CONTENT": BODY,
        }),
        joins=True, mark=b"/",
        is_line=begins(_HAPROXY_LINE),
    ),
    Format(
        "squid", "Squid", PATTERN,
        r"(?P<time>[0-9]{9,10}\.[0-9]{3}) +(?P<elapsed>-?[0-9]+) (?P<remotehost>[^ ]+) (?P<code>[A-Z_]+)/"
        r"(?P<status>[0-9]{3}) (?P<bytes>[0-9]+) (?P<method>[^ ]+) (?P<URL>[^ ]+) (?P<rfc931>[^ ]+) "
        r"(?P<peerstatus>[^ /]+)/(?P<peerhost>[^ ]+) (?P<type>[^ ]+)(?: (?P<more>.*))?$",
        MappingProxyType({**numbers("time elapsed status bytes"), **absent("rfc931 peerhost type")}),
        mark=b" HIER_",
    ),
    Format("envoy", "Envoy and Istio", PATTERN, ENVOY, ENVOY_KINDS, joins=True, mark=b'] "'),
    Format(
        "alb", "load balancer of AWS (application)", PATTERN,
        rf"(?P<type>[a-z0-9]+) (?P<time>{ISO}) (?P<elb>[^ ]+) (?P<client_ip>[^ ]+):(?P<client_port>[0-9]+) "
        r"(?:(?P<target_ip>[^ ]+):(?P<target_port>[0-9]+)|-) "
        rf"(?P<request_processing_time>{_SECONDS}) (?P<target_processing_time>{_SECONDS}) "
        rf"(?P<response_processing_time>{_SECONDS}) (?P<elb_status_code>[0-9]+|-) (?P<target_status_code>[0-9]+|-) "
        r'(?P<received_bytes>[0-9]+) (?P<sent_bytes>[0-9]+) "(?P<request_verb>[^ "]+) (?P<request_url>[^ "]+) '
        rf'(?P<request_proto>[^ "]+) ?" "(?P<user_agent>{QUOTED})" (?P<ssl_cipher>[^ ]+) (?P<ssl_protocol>[^ ]+) '
        r'(?P<target_group_arn>[^ ]+) "(?P<trace_id>[^"]*)" "(?P<domain_name>[^"]*)" "(?P<chosen_cert_arn>[^"]*)" '
        r'(?P<matched_rule_priority>[^ ]+) (?P<request_creation_time>[^ ]+) "(?P<actions_executed>[^"]*)" '
        r'"(?P<redirect_url>[^"]*)" "(?P<lambda_error_reason>[^"]*)"(?: "(?P<target_port_list>[^"]*)" '
        r'"(?P<target_status_code_list>[^"]*)" "(?P<classification>[^"]*)" "(?P<classification_reason>[^"]*)"'
        r"(?: (?P<conn_trace_id>[^ ]+))?)?",
        MappingProxyType({
            **numbers("client_port target_port request_processing_time target_processing_time sent_bytes "
                       "response_processing_time elb_status_code target_status_code received_bytes "
                       "matched_rule_priority"),
            **absent("user_agent ssl_cipher ssl_protocol target_group_arn trace_id domain_name chosen_cert_arn "
                      "actions_executed redirect_url lambda_error_reason target_port_list target_status_code_list "
                      "classification classification_reason conn_trace_id"),
        }),
        mark=b" app/",
    ),
    Format(
        "elb", "load balancer of AWS (classic)", PATTERN,
        rf"(?P<timestamp>{ISO}) (?P<elb_name>[^ ]+) (?P<request_ip>[^ ]+):(?P<request_port>[0-9]+) "
        r"(?:(?P<backend_ip>[^ ]+):(?P<backend_port>[0-9]+)|-) "
        rf"(?P<request_processing_time>{_SECONDS}) (?P<backend_processing_time>{_SECONDS}) "
        rf"(?P<client_response_time>{_SECONDS}) (?P<elb_response_code>[0-9]+|-) (?P<backend_response_code>[0-9]+|-) "
        r'(?P<received_bytes>[0-9]+) (?P<sent_bytes>[0-9]+) "(?P<request_verb>[^ "]+) (?P<url>[^ "]+) '
        rf'(?P<protocol>[^ "]+) ?"(?: "(?P<user_agent>{QUOTED})" (?P<ssl_cipher>[^ ]+) (?P<ssl_protocol>[^ ]+))?',
        MappingProxyType({
            **numbers("request_port backend_port request_processing_time backend_processing_time sent_bytes "
                       "client_response_time elb_response_code backend_response_code received_bytes"),
            **absent("request_verb url protocol user_agent ssl_cipher ssl_protocol"),
        }),
        mark=b"://",
    ),
    Format(
        "nlb", "load balancer of AWS (network)", PATTERN,
        rf"(?P<type>tls) (?P<version>[0-9.]+) (?P<time>{ISO}) (?P<elb>net/[^ ]+) (?P<listener_id>[^ ]+) "
        r"(?P<client_ip>[^ ]+):(?P<client_port>[0-9]+) (?:(?P<target_ip>[^ ]+):(?P<target_port>[0-9]+)|-) "
        rf"(?P<tcp_connection_time_ms>{_SECONDS}|-) (?P<tls_handshake_time_ms>{_SECONDS}|-) "
        r"(?P<received_bytes>[0-9]+) (?P<sent_bytes>[0-9]+) (?P<incoming_tls_alert>[^ ]+)"
        + "".join(rf" (?P<{name}>[^ ]+)" for name in _NLB_TEXTS.split()[:-1])
        + r"(?: (?P<tls_connection_creation_time>[^ ]+))?",
        MappingProxyType({
            **numbers("client_port target_port tcp_connection_time_ms tls_handshake_time_ms received_bytes sent_bytes "
                       "incoming_tls_alert"),
            **absent(_NLB_TEXTS),
        }),
        mark=b" net/",
    ),
    Format(
        "s3", "accesses of S3", PATTERN,
        r"(?P<bucketowner>[^ ]+) (?P<bucket_name>[^ ]+) "
        rf"\[(?P<requestdatetime>{ACCESSED} [+-][0-9]{{4}})\] (?P<remoteip>[^ ]+) (?P<requester>[^ ]+) "
        r"(?P<requestid>[^ ]+) (?P<operation>[^ ]+) (?P<key>[^ ]+) "
        rf'(?:"(?P<request_uri>{QUOTED})"|-) (?P<httpstatus>[0-9]+|-) (?P<errorcode>[^ ]+) (?P<bytessent>[0-9]+|-) '
        r"(?P<objectsize>[0-9]+|-) (?P<totaltime>[0-9]+|-) (?P<turnaroundtime>[0-9]+|-) "
        rf'(?:"(?P<referrer>{QUOTED})"|-) (?:"(?P<useragent>{QUOTED})"|-) (?P<versionid>[^ ]+)'
        r"(?: (?P<hostid>[^ ]+) (?P<sigv>[^ ]+) (?P<ciphersuite>[^ ]+) (?P<authtype>[^ ]+) (?P<endpoint>[^ ]+) "
        r"(?P<tlsversion>[^ ]+)(?: (?P<accesspointarn>[^ ]+)(?: (?P<aclrequired>[^ ]+))?)?)?",
        MappingProxyType({
            **numbers("httpstatus bytessent objectsize totaltime turnaroundtime"),
            **absent("remoteip requester key errorcode referrer useragent versionid hostid sigv ciphersuite authtype "
                      "endpoint tlsversion accesspointarn aclrequired"),
        }),
        mark=b" REST.",
    ),
    Format(
        "rails", "Rails, a request or a tagged line", PATTERN,
        rf"(?P<text>{_RAILS_STARTED}(?:[\s\S]*?\n{_RAILS_PROCESSING})?(?:[\s\S]*?\n{_RAILS_COMPLETED})?[\s\S]*|"
        rf"{_RAILS_ID}(?:{_RAILS_STARTED}|{_RAILS_PROCESSING}|{_RAILS_COMPLETED})?[\s\S]*)",
        _RAILS_KINDS, joins=True, spans=True, mark=b"Started ",
        is_line=begins(
            r"(?:\[[0-9A-Fa-f-]{16,}\] )?(?:Started [A-Z]+ \"|Processing by \S+#|Completed [0-9]{3} |"
            r"  (?:Parameters: |Render|\x1b\[|[A-Z][\w: ]+ \([0-9.]+ms\)|\xe2\x86\xb3 ))"
        ),
    ),
    Format(
        "railslogger", "Rails, behind the head of Ruby's Logger", PATTERN,
        rf"[DIWEFA], \[(?P<time>{ISO}) #(?P<pid>[0-9]+)\] +(?P<level>[A-Z]+) -- (?P<progname>[^: ]+)?: "
        rf"(?P<text>(?:{_RAILS_ID})?(?:\[[^\]]*\] )*(?:{_RAILS_STARTED.replace('<time>', '<started>')}|"
        rf"{_RAILS_PROCESSING}|{_RAILS_COMPLETED})?.*)",
        MappingProxyType({**_RAILS_KINDS, "text": BODY}), joins=True, mark=b"Started ",
    ),
    Format(
        "weblogic", "WebLogic", PATTERN,
        rf"####<(?P<DATE>[^<>]*)> <(?P<SEVERITY>[A-Za-z]+)> <(?P<SUBSYSTEM>{_ATTRIBUTE})> <(?P<MACHINE>{_ATTRIBUTE})> "
        rf"<(?P<SERVER>{_ATTRIBUTE})> <(?P<THREAD>{_ATTRIBUTE})> <(?P<USERID>{_ATTRIBUTE})> <(?P<TXID>{_ATTRIBUTE})> "
        rf"<(?P<CONTEXTID>{_ATTRIBUTE})> <(?P<TIMESTAMP>[0-9]+)>(?: <(?P<SUPP_ATTRS>\[[^<>]*)>)?{_WEBLOGIC_END}|"
        rf"<(?P<TIMESTAMP>{_WEBLOGIC_TIME}) (?P<timezone>[^<>]+)> <(?P<SEVERITY>[A-Za-z]+)> "
        rf"<(?P<SUBSYSTEM>{_ATTRIBUTE})>{_WEBLOGIC_END}",
        MappingProxyType({"TIMESTAMP": BSD_TIME}),
        joins=True, spans=True, mark=b"> <", is_line=begins(rf"####<[^>]+> <[A-Za-z]+> <|<{_WEBLOGIC_TIME} [^>]+> <"),
    ),
    Format(
        "fastlog", "fast.log of Snort and Suricata", PATTERN,
        rf"(?P<timestamp>[0-9]{{2}}/[0-9]{{2}}(?:/[0-9]{{2,4}})?-{CLOCK}\.[0-9]+) +(?:\[(?P<action>[A-Za-z]+)\] )?"
        r'\[\*\*\] \[(?P<gid>[0-9]+):(?P<sid>[0-9]+):(?P<rev>[0-9]+)\] "?(?P<msg>.*?)"? \[\*\*\]'
        r"(?: \[Classification: (?P<class>[^\]]*)\])?(?: \[Priority: (?P<priority>[0-9]+)\])?(?: \[AppID: (?P<appid>"
        r"[^\]]*)\])? (?:\{(?P<proto>[^}]*ICMP[^}]*)\} (?P<src_addr>[^ ]*:[^ ]*:[^ ]*) -> (?P<dst_addr>[^ ]+)|"
        r"\{(?P<proto>TCP|UDP|SCTP)\} (?P<src_addr>[^ ]+):(?P<src_port>[0-9]+) -> (?P<dst_addr>[^ ]+):"
        r"(?P<dst_port>[0-9]+)|\{(?P<proto>[^}]*)\}(?: (?P<src_addr>[0-9.]+)(?::(?P<src_port>[0-9]+))? -> "
        r"(?P<dst_addr>[0-9.]+)(?::(?P<dst_port>[0-9]+))?)?)",
        MappingProxyType({**numbers("gid sid rev src_port dst_port"), "timestamp": BSD_TIME, "priority": GRADED}),
        mark=b"[**]",
    ),
    Format(
        "unbound", "Unbound", PATTERN,
        rf"(?:\[(?P<time>[0-9]+)\]|(?P<time>{BSD}|{ISO})) unbound\[(?P<pid>[0-9]+):(?P<thread>[0-9a-f]+)\] "
        r"(?P<level>[a-z]+): (?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "pid": NUMBER, "text": BODY}),
        joins=True, mark=b" unbound[",
    ),
    Format(
        "structlog", "structlog's console", PATTERN, rf"{_STRUCTLOG_HEAD}(?P<event>.*)",
        MappingProxyType({"event": SHOWN}),
        joins=True, mark=b"] ",
        is_line=begins(
            rf"{_C}(?:(?:{ISO}|{CLOCK}(?:\.[0-9]+)?){_C} )?\[{_C}(?:{_STRUCTLOG_PADDED}){_C}\] "
        ),
    ),
    Format(
        "jul", "java.util.logging", PATTERN,
        rf"(?P<time>{_JUL_TIME}) (?P<logger>[^ \r\n]+)(?: (?P<method>{REST}))?"
        rf"(?:{NL}(?P<level>{_JUL_LEVEL}): ?(?P<message>{REST}))?",
        MappingProxyType({"time": BSD_TIME, "message": BODY}),
        joins=True, spans=True,
        is_line=begins(rf"{_JUL_TIME} [^ ]|(?:{_JUL_LEVEL}): "),
    ),
    Format(
        "apt", "apt's history.log", PATTERN,
        rf"Start-Date: (?P<time>{REST})(?:{NL}Commandline: (?P<Commandline>{REST}))?"
        rf"(?:{NL}Requested-By: (?P<Requested_By>{REST}))?"
        + "".join(rf"(?:{NL}{what}: (?P<{what}>{REST}))?" for what in (
            "Install", "Reinstall", "Upgrade", "Downgrade", "Remove", "Purge", "Error"
        )) + rf"(?:{NL}End-Date: (?P<end>{REST}))?",
        MappingProxyType({"time": BSD_TIME, "end": BSD_TIME}),
        joins=True, spans=True, mark=b"Start-Date: ",
        is_line=begins(r"[A-Z][A-Za-z-]+: "),
    ),
    Format(
        "dmesg", "the kernel's ring buffer", PATTERN,
        r"(?:<(?P<PRI>[0-9]{1,3})>|(?P<facility>[a-z]+) *:(?P<level>[a-z]+) *: )?"
        r"\[ *(?P<uptime>[0-9]{1,9}\.[0-9]{6})\](?:\[ *(?P<caller>[A-Z][0-9]+)\])? (?P<text>.*)",
        MappingProxyType({"PRI": NUMBER, "uptime": NUMBER, "text": BODY}),
        joins=True, mark=b"] ",
    ),
    Format(
        "npm", "npm's debug log", PATTERN,
        r"(?P<number>[0-9]+) (?P<level>silly|verbose|http|timing|info|notice|warn|error) (?P<text>.*)",
        MappingProxyType({"number": NUMBER, "text": BODY}),
        joins=True,
    ),
    Format(
        "nest", "NestJS", PATTERN,
        rf"\[(?P<app>[^\] ]+)\] (?P<pid>[0-9]+) +- (?P<time>{_NEST_TIME}) +"
        r"(?P<level>LOG|ERROR|WARN|DEBUG|VERBOSE|FATAL) (?P<text>.*)",
        MappingProxyType({"pid": NUMBER, "time": BSD_TIME, "text": BODY}),
        joins=True, mark=b" - ",
    ),
    Format(
        "uwsgi", "uWSGI", PATTERN,
        r"\[pid: (?P<pid>[0-9]+)\|app: (?P<app>-?[0-9]+)\|req: (?P<req>[^ \]]+)\] (?P<addr>[^ ]+) \((?P<user>[^)]*)\) "
        rf"\{{[^}}]*\}} \[(?P<time>{_UWSGI_TIME})\] (?P<method>[^ ]+) "
        r"(?P<uri>[^ ]+) => generated (?P<rsize>[0-9]+) bytes in (?P<msecs>[0-9]+) msecs \((?P<proto>[^ )]+) "
        r"(?P<status>[0-9]+)\)(?: (?P<more>.*))?|"
        rf"(?P<text>\*\*\* Starting uWSGI [^\[]*\[(?P<time>{_UWSGI_TIME})\] \*\*\*)",
        MappingProxyType({**numbers("pid app rsize msecs status"), "text": BODY}),
        joins=True, mark=b"[pid: ", banner=(b"*** Starting uWSGI ",),
    ),
    Format(
        "heroku", "Heroku", PATTERN,
        rf"(?P<time>{ISO}) (?P<source>app|heroku)\[(?P<dyno>[^\] ]+)\]: (?P<text>.*)",
        MappingProxyType({"text": LEVELED}),
        joins=True, mark=b"]: ",
    ),
    Format(
        "nats", "NATS", PATTERN, NATS, MappingProxyType({"pid": NUMBER, "text": BODY}), joins=True, mark=b"] ",
    ),
    Format(
        "tinyproxy", "Tinyproxy", PATTERN,
        rf"(?P<level>CRITICAL|ERROR|WARNING|NOTICE|CONNECT|INFO) +(?P<time>{BSD}) \[(?P<pid>[0-9]+)\]: (?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "pid": NUMBER, "text": BODY}),
        joins=True, mark=b"]: ",
    ),
    Format(
        "hdfs", "Hadoop, compact", PATTERN,
        rf"(?P<time>[0-9]{{6}} [0-9]{{6}}) (?P<pid>[0-9]+) (?P<level>{LEVELS}) (?P<component>[^ :]+): ?(?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "pid": NUMBER, "text": BODY}),
        joins=True,
    ),
    Format(
        "logcat", "logcat of Android", PATTERN,
        rf"(?P<time>(?:[0-9]{{4}}-)?[0-9]{{2}}-[0-9]{{2}} {CLOCK}\.[0-9]+(?: [+-][0-9]{{4}})?) +"
        r"(?:(?:(?P<uid>[^ ]+) +)?(?P<pid>[0-9]+) +(?P<tid>[0-9]+) (?P<level>[VDIWEF]) "
        r"(?P<tag>[^:]*?) *: ?(?P<text>.*)|"
        r"(?P<level>[VDIWEF])/(?P<tag>[^(]*?) *\( *(?P<pid>[0-9]+)\): ?(?P<text>.*))|-{9} beginning of .*",
        MappingProxyType({"time": BSD_TIME, "pid": NUMBER, "tid": NUMBER, "text": BODY}),
        joins=True, skips=True, mark=b": ",
    ),
    Format(
        "lambda", "functions of AWS Lambda", PATTERN,
        r"(?P<type>START|END|REPORT) RequestId: (?P<requestId>[^ \t]+)(?:[ \t]+Version: (?P<version>[^ \t]+))?"
        r"(?:[ \t]+Duration: (?P<duration>[0-9.]+) ms)?(?:[ \t]+Billed Duration: (?P<billedDuration>[0-9.]+) ms)?"
        r"(?:[ \t]+Memory Size: (?P<memorySize>[0-9]+) MB)?(?:[ \t]+Max Memory Used: (?P<maxMemoryUsed>[0-9]+) MB)?"
        r"(?:[ \t]+Init Duration: (?P<initDuration>[0-9.]+) ms)?(?:[ \t]+(?P<more>[^ \t].*))?|"
        r"(?P<type>INIT_START) (?P<text>.*)|"
        rf"(?P<timestamp>{ISO})\t(?P<requestId>[0-9A-Za-z-]+)\t(?:(?P<level>[A-Z]+)\t)?(?P<text>.*)|"
        rf"\[(?P<level>[A-Z]+)\]\t(?P<timestamp>{ISO})\t(?P<requestId>[0-9A-Za-z-]*)\t(?P<text>.*)",
        MappingProxyType({
            **numbers("duration billedDuration memorySize maxMemoryUsed initDuration"), "text": BODY,
        }),
        joins=True, mark=b" RequestId: ",
    ),
    Format(
        "celery", "Celery", PATTERN,
        rf"\[(?P<time>{ISO}): (?P<level>[A-Z]+)/(?P<processName>[^\]]+)\] (?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"/",
    ),
    Format(
        "php", "errors of PHP", PATTERN,
        rf"\[(?P<time>{DASHED}) (?P<timezone>[A-Za-z][A-Za-z0-9_+/:-]*)\] "
        r"(?:PHP (?P<level>[A-Z][a-z]+(?: [a-z]+)*): +)?(?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"] PHP ",
    ),
    Format(
        "monit", "Monit", PATTERN,
        rf"\[(?:(?P<timezone>[A-Z]+|[+-][0-9]+) (?P<time>{BSD})|(?P<time>{ISO}))\] "
        r"(?P<level>debug|info|notice|warning|error|critical|alert|emergency) *: +(?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "text": BODY}),
        joins=True, mark=b"] ",
    ),
    Format(
        "capnslog", "etcd before 3.5 (capnslog)", PATTERN,
        rf"(?P<time>{ISO}) (?P<level>[CEWNIDT]) \| (?P<package>[^ :]+): (?P<text>.*)|"
        rf"(?P<package>raft)(?P<time>[0-9/]{{10}} {CLOCK}) (?P<level>[A-Z]+): (?P<text>.*)",
        MappingProxyType({"text": BODY}), joins=True, mark=b" | ",
    ),
    Format(
        "prosody", "Prosody", PATTERN,
        rf"(?P<time>{BSD}) (?P<source>[^ \t]+)(?: *\t|  +)(?P<level>debug|info|warn|error)(?:\t|  +)(?P<text>.*)",
        MappingProxyType({"time": BSD_TIME, "text": BODY}),
        joins=True,
    ),
    Format(
        "puppet", "Puppet", PATTERN,
        rf"(?P<time>[0-9-]{{10}} {CLOCK} [+-][0-9]{{4}}) (?P<source>[A-Z][A-Za-z:]*|/.*?) "
        r"\((?P<level>debug|info|notice|warning|err|alert|emerg|crit)\): (?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"): ",
    ),
    Format(
        "icinga2", "Icinga 2", PATTERN,
        rf"\[(?P<time>{ISO})\] (?P<level>debug|notice|information|warning|critical)/(?P<facility>[A-Za-z0-9]+): "
        r"(?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"] ",
    ),
    Format(
        "vmware", "ESXi and vCenter", PATTERN,
        rf"(?P<time>{ISO}) (?P<level>trivia|verbose|info|warning|error|panic) (?P<process>[^ \[]+)"
        r"\[(?P<thread>[0-9A-Za-z]+)\] (?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"] ",
    ),
    Format(
        "telegraf", "Telegraf", PATTERN,
        rf"(?P<time>{ISO}) (?P<level>[TDIWE])! (?:\[(?P<plugin>[a-z]+\.[^\]]+)\] )?(?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b"! ",
    ),
    Format(
        "gluster", "GlusterFS", PATTERN,
        rf"\[(?P<time>{ISO})\] (?P<level>[MACEWNIDT]) (?:\[MSGID: (?P<msgid>[0-9]+)\] )?"
        r"\[(?P<file>[^ :\]]+):(?P<line>[0-9]+):(?P<function>[^ \]]+)\] (?P<domain>[^ ]+): (?P<text>.*)",
        MappingProxyType({"msgid": NUMBER, "line": NUMBER, "text": BODY}),
        joins=True, mark=b".c:",
    ),
    Format(
        "cbs", "Windows' setup (CBS, DISM)", PATTERN,
        rf"(?P<time>{ISO}), (?P<level>Info|Warning|Error|Perf|Fatal) +(?P<component>[A-Za-z]+) +(?P<text>.*)",
        MappingProxyType({"text": BODY}),
        joins=True, mark=b", ",
    ),
)  # fmt: skip
