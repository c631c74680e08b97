"""The formats of databases: each is a pattern, with the names that the database's documentation has."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from jitdb.log.lines.formats.kernels.kinds import BODY, BSD_TIME, DOUBLED, NIL, NUMBER, PATTERN, ZONED_TIME
from jitdb.log.lines.formats.row import CLOCK, ISO, NL, REST, Format, begins, numbers

#: It mostly runs in containers: table.py reads it behind the names of these, too.
REDIS: Final = (
    rf"(?P<pid>[0-9]+):(?P<role>[XCSM]) (?P<time>[0-9]{{2}} [A-Z][a-z]{{2}} [0-9]{{4}} {CLOCK}\.[0-9]{{3}}) "
    r"(?P<level>[.*#-]) (?P<message>.*)"
)
#: Postgres' log_destination csvlog: a row has no header, and values go on in further lines.
_CSVLOG: Final = (
    "user_name", "database_name", "process_id", "connection_from", "session_id", "session_line_num",
    "command_tag", "session_start_time", "virtual_transaction_id", "transaction_id", "error_severity",
    "sql_state_code", "message", "detail", "hint", "internal_query", "internal_query_pos", "context", "query",
    "query_pos", "location", "application_name", "backend_type", "leader_pid", "query_id",
)  # fmt: skip
_CSVLOG_LEAST: Final = 22  # of these: those behind came with later versions
_CSVLOG_TIME: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} {CLOCK}\.[0-9]{{3}} [A-Z0-9+-]+"


def _value(name: str) -> str:
    return rf',(?:"(?P<{name}>[^"]*(?:(?:""|\n)[^"]*)*)"|(?P<{name}>[^",]+))?'


#: What stands in front of each row: a line in a value that begins like one has quotes in it doubled, or other numbers.
_CLOSED: Final = r',(?:"[^"]*(?:""[^"]*)*"|[^",\r\n]*)'
_CSVLOG_HEAD: Final = rf'{_CLOSED[1:]}{_CLOSED},"?[0-9]+"?{_CLOSED},"?[0-9a-f]+\.[0-9a-f]+"?,"?[0-9]+"?'


def _csvlog() -> str:
    """A whole row; or one that goes on in further lines, was cut, or has more values: its first line is a row's."""
    values = [_value(name) for name in _CSVLOG]
    later = ""
    for value in reversed(values[_CSVLOG_LEAST:]):
        later = f"(?:{value}{later})?"
    open_value = r',"[^"]*(?:""[^"]*)*'
    text = rf"(?P<text>{_CSVLOG_HEAD}(?:{_CLOSED})*(?:{open_value})?(?:\r?\n[\s\S]*)?)$"
    return rf"(?P<log_time>{_CSVLOG_TIME})(?:{''.join(values[:_CSVLOG_LEAST])}{later}$|,{text})"


_POSTGRES_HOST: Final = r"(?:(?P<remote_host>[^ (]+)(?:\((?P<remote_port>[0-9]+)\))?)?"
#: Behind the time: log_line_prefix of RDS; of pgBadger and Cloud SQL; of upstream and Debian.
_POSTGRES_PREFIX: Final = (
    rf":{_POSTGRES_HOST}:(?P<user_name>[^ :@(]+)?@(?P<database_name>[^ :]+)?:\[(?P<process_id>[0-9]+)\]:|"
    r" \[(?P<process_id>[0-9]+)\]: (?:\[(?P<session_line_num>[0-9]+)-[0-9]+\] )?"
    r"(?:(?:user=(?P<user_name>[^,]+)?,db=(?P<database_name>[^, ]+)?|"
    r"db=(?P<database_name>[^,]+)?,user=(?P<user_name>[^, ]+)?)"
    rf"(?:,app=(?P<application_name>[^,].*?)?)?(?:,client={_POSTGRES_HOST})? )?|"
    r" \[(?P<process_id>[0-9]+)\] (?:(?P<user_name>[^ @]+)@(?P<database_name>[^ ]+) )?"
)
_POSTGRES_LEVEL: Final = (
    "LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?|STATEMENT|DETAIL|HINT|CONTEXT|QUERY|LOCATION"
)

_BANNER: Final = r"[^ #]+, Version: |Tcp port: |Time +Id Command|"  # of a server of MySQL that starts
_SLOW_USER: Final = (
    r"# User@Host: (?P<user>[^\[\r\n]*)\[[^\]\r\n]*\] @ (?P<host>[^ \r\n]*) \[(?P<ip>[^\]\r\n]*)\]"
    r"(?: +Id: +(?P<Id>[0-9]+))?"
)
_SLOW_HEAD: Final = (
    rf"(?:{NL}# Thread_id: (?P<Thread_id>[0-9]+)  Schema: (?P<Schema>[^ \r\n]*)  QC_hit: (?P<QC_hit>[A-Za-z]+))?"
    rf"(?:{NL}# Query_time: +(?P<Query_time>[0-9.]+) +Lock_time: +(?P<Lock_time>[0-9.]+) +Rows_sent: +"
    rf"(?P<Rows_sent>[0-9]+) +Rows_examined: +(?P<Rows_examined>[0-9]+){REST}(?:{NL}# {REST})*)?"
    rf"(?:{NL}use (?P<db>[^;\r\n]*);)?(?:{NL}SET timestamp=(?P<timestamp>[0-9.]+);)?(?:{NL}(?P<query>[\s\S]*))?"
)

_COMMANDS: Final = (  # of MySQL's protocol
    "Sleep|Quit|Init DB|Query|Field List|Create DB|Drop DB|Refresh|Shutdown|Statistics|Processlist|Connect(?: Out)?|"
    "Kill|Debug|Ping|Time|Delayed insert|Change user|Binlog Dump(?: GTID)?|Table Dump|Register (?:Slave|Replica)|"
    "Prepare|Execute|Long Data|Close stmt|Reset stmt|Set option|Fetch|Daemon|Error|Reset Connection|clone|"
    "Group Replication Data Stream subscription"
)
_GENERAL: Final = (
    rf"(?P<event_time>{ISO}|[0-9]{{6}} [ 0-9][0-9]:[0-9]{{2}}:[0-9]{{2}})?\t+ *(?P<thread_id>[0-9]+) "
    rf"(?P<command_type>{_COMMANDS})(?: *\t|$)"
)
#: MariaDB and MySQL 5 say the time of the first query of a second. A record is read without those before it.
_GENERAL_SPARSE: Final = (
    "such a query has the time of the one before it, and this writes it there: "
    r"awk '/^[0-9]+ [ 0-9][0-9]:[0-9:]+\t/{t=substr($0,1,15)} /^\t\t *[0-9]+ [A-Z]/{sub(/^\t/,t)} 1' FILE > TIMED"
)

DATABASES: Final = (
    Format(
        "mysql", "errors of MySQL and MariaDB", PATTERN,
        rf"(?P<time>{ISO}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}  [0-9]:[0-9]{{2}}:[0-9]{{2}}) (?P<thread>[0-9]+) "
        r"\[(?P<level>[A-Za-z]+)\] (?:\[(?P<err_code>MY-[0-9]+)\] \[(?P<subsystem>[^\]]+)\] )?(?P<msg>.*)",
        MappingProxyType({"time": BSD_TIME, "thread": NUMBER, "msg": BODY}),
        joins=True,
    ),
    Format(
        "mysqlslow", "slow queries of MySQL and MariaDB", PATTERN,
        rf"(?:# Time: (?P<time>{REST})(?:{NL}{_SLOW_USER}{_SLOW_HEAD})?|{_SLOW_USER}{_SLOW_HEAD}|"
        r"[^ #]+, Version: [\s\S]*)",
        MappingProxyType({
            "time": BSD_TIME, **numbers("Id Thread_id Query_time Lock_time Rows_sent Rows_examined timestamp"),
        }),
        joins=True, spans=True, skips=True, mark=b"# Query_time: ", leads="time",
        is_line=begins(
            rf"# [A-Z][A-Za-z@_]+: |SET timestamp=|use |{_BANNER}[A-Za-z ]+.*;$"
        ),
    ),
    Format(
        "mysqlgeneral", "general query log of MySQL and MariaDB", PATTERN,
        rf"{_GENERAL}(?P<argument>[\s\S]*)|[^ #]+, Version: [\s\S]*",
        MappingProxyType({"event_time": BSD_TIME, "thread_id": NUMBER}),
        joins=True, spans=True, skips=True, mark=b"\t", is_line=begins(_BANNER + re.sub(r"\?P<\w+>", "?:", _GENERAL)),
        sparse=_GENERAL_SPARSE,
    ),
    Format(
        "csvlog", "Postgres' csvlog", PATTERN, _csvlog(),
        MappingProxyType({
            "log_time": BSD_TIME, **dict.fromkeys(_CSVLOG, DOUBLED),
            **numbers("process_id session_line_num transaction_id internal_query_pos query_pos leader_pid query_id"),
        }),
        joins=True, spans=True, mark=b",",
        is_line=begins(f"{_CSVLOG_TIME},{_CSVLOG_HEAD}"),
    ),
    Format(
        "postgres", "Postgres' log as text", PATTERN,
        rf"(?P<time>[0-9-]{{10}} {CLOCK}(?:\.[0-9]+)? (?:[A-Z]{{3,5}}|[+-][0-9:]+))(?:{_POSTGRES_PREFIX})"
        rf"(?P<level>{_POSTGRES_LEVEL}):  (?P<message>(?:duration: (?P<duration_ms>[0-9.]+) ms)?.*)",
        MappingProxyType({**numbers("process_id session_line_num remote_port duration_ms"), "message": BODY}),
        joins=True, mark=b":  ",
    ),
    Format(
        "pgbouncer", "PgBouncer", PATTERN,
        rf"(?P<time>{ISO}(?: [A-Z]{{3,5}})?) \[(?P<process_id>[0-9]+)\] (?P<level>NOISE|DEBUG|LOG|WARNING|ERROR|FATAL) "
        r"(?P<text>.*)",
        MappingProxyType({"time": ZONED_TIME, "process_id": NUMBER, "text": BODY}),
        joins=True, mark=b"] ",
    ),
    Format(
        "redis", "Redis and Valkey", PATTERN, REDIS,
        MappingProxyType({"pid": NUMBER, "message": BODY}),
        joins=True,
    ),
    Format(
        "cassandra", "Cassandra", PATTERN,
        rf"(?P<level>[A-Z]+) +\[(?P<thread>[^\]]*)\] (?P<time>{ISO}) (?P<file>[^ :]+):(?P<line>[0-9]+) - (?P<text>.*)",
        MappingProxyType({"line": NUMBER, "text": BODY}),
        joins=True, mark=b".java:",
    ),
    Format(
        "clickhouse", "ClickHouse", PATTERN,
        rf"(?P<time>[0-9]{{4}}\.[0-9]{{2}}\.[0-9]{{2}} {CLOCK}\.[0-9]+) (?:\[(?P<host>[^\] ]+)\] )?"
        r"\[ (?P<thread_id>[0-9]+) \] \{(?P<query_id>[^}]*)\} <(?P<level>[A-Za-z]+)> (?P<logger_name>[^:]+): "
        r"(?P<message>.*)",
        MappingProxyType({"time": BSD_TIME, "thread_id": NUMBER, "message": BODY}),
        joins=True, mark=b"} <",
    ),
    Format(
        "mongod", "MongoDB before 4.4", PATTERN,
        rf"(?P<time>{ISO}) (?P<severity>[FEWID][1-5]?) (?P<component>[A-Z_]+|-) +\[(?P<context>[^\]]*)\] "
        r"(?P<message>.*)",
        MappingProxyType({"component": NIL, "message": BODY}),
        joins=True, mark=b" [",
    ),
)  # fmt: skip
