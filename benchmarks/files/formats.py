"""One count over the formats that logs have, beside the tools that people take for each, as whole processes.

The same 400,000 requests are written in every format, in half an hour of one service. Each tool counts those of
status 503 and must give the same number. Milliseconds, medians of JITDB_BENCH_RUNS runs in turns; jitdb is asked twice:
before any index is there, and again. rg counts lines that hold a text: it knows no fields, and is there as the floor of
reading a file. What is not installed is left out.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import jitdb

from ..data import FOLDER
from ..measure import number
from .tools import RUNS, Row, duckdb_command, jitdb_command

RECORDS: Final = 400_000
TOOLS: Final = ("jitdb, first", "jitdb, again", "rg", "jq", "Miller", "DuckDB", "lnav")
_START: Final = datetime(2026, 11, 20, tzinfo=UTC)
_LNAV: Final = ["lnav", "-n", "-c", ";select count(*) from {table} where {where}", "-c", ":write-csv-to -"]
_ACCESS: Final = r'^\S+ \S+ \S+ \[[^]]+\] "[^"]*" (\d+) '


class Format(NamedTuple):
    """One way to write the requests, and how each tool is asked; empty where a tool does not read it.

    `jq` is a condition, `sql` what DuckDB counts from, with its condition, FILE standing for the path.
    """

    suffix: str
    jitdb: str
    rg: str
    jq: str = ""
    miller: tuple[str, ...] = ()
    sql: str = ""
    lnav: tuple[str, str] = ("", "")


FORMATS: Final = {
    "JSON Lines": Format(
        "ndjson", "status == 503", '"status": 503', ".status == 503", ("--ijsonl", "$status == 503"),
        "read_json_auto('FILE') where status = 503",
    ),
    "Docker json-file": Format(
        "docker.log", "status == 503", r'\\"status\\": 503', "(.log | fromjson).status == 503", (),
        "read_json('FILE', columns = {log: 'varchar'}) where json_extract(log, '$.status')::int = 503",
    ),
    "CRI, JSON inside": Format("cri.log", "status == 503", '"status": 503'),
    "logfmt": Format("logfmt.log", "status == 503", "status=503", "", ("--idkvp", "--ifs", "space", "$status == 503")),
    "syslog (RFC 3164)": Format(
        "syslog", 'CONTENT contains "status 503"', "status 503", lnav=("syslog_log", "log_body like '%status 503%'")
    ),
    "access (combined)": Format(
        "access.log", "status == 503", '" 503 ',
        sql=f"read_csv('FILE', columns = {{line: 'varchar'}}, delim = '\x01', quote = '', header = false)"
        f" where regexp_extract(line, '{_ACCESS}', 1) = '503'",
        lnav=("access_log", "sc_status = 503"),
    ),
    "CSV": Format(
        "csv", "status == 503", ",503,", "", ("--icsv", "$status == 503"), "read_csv_auto('FILE') where status = 503",
    ),
    "text with times": Format("text.log", 'text contains "status 503"', "status 503"),
}  # fmt: skip


def run() -> Iterator[Row]:
    yield Row("", ["MB", *TOOLS])
    yield Row("---", ["---"] * (len(TOOLS) + 1))
    for name, form in FORMATS.items():
        path = log_of(name)
        commands = {tool: command for tool, command in _commands(form, path).items() if _installed(command)}
        times: dict[str, list[float]] = {tool: [] for tool in commands}
        counts = set()
        for _ in range(RUNS):
            jitdb.forget(path)
            for tool, command in commands.items():
                begin = time.perf_counter()
                counts.add(_count(command))
                times[tool].append(1e3 * (time.perf_counter() - begin))
        if len(counts) != 1:
            raise AssertionError(f"{name}: the tools disagree: {counts}")
        cells = [number(statistics.median(times[tool])) if tool in times else "" for tool in TOOLS]
        yield Row(name, [number(path.stat().st_size / 1e6), *cells])


def log_of(name: str) -> Path:
    """The log in a format of FORMATS, made if it is not there."""
    path = FOLDER / f"requests.{FORMATS[name].suffix}"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".tmp")
        with open(temporary, "w") as file:
            file.writelines(line + "\n" for line in _lines(name))
        temporary.rename(path)
    return path


def _lines(name: str) -> Iterator[str]:
    if name == "CSV":
        yield "time,level,method,path,status,ms,user,message"
    for when, fields in _requests():
        yield _line(name, when, fields)


def _requests() -> Iterator[tuple[datetime, dict[str, Any]]]:
    chance = random.Random(17)
    for index in range(RECORDS):
        status = chance.choice((200, 200, 200, 200, 200, 201, 304, 404, 500, 503))
        yield (
            _START + timedelta(milliseconds=4.5 * index),
            {
                "level": "error" if status >= 500 else "info",
                "method": chance.choice(("GET", "GET", "POST")),
                "path": f"/item/{chance.randrange(4000)}",
                "status": status,
                "ms": round(chance.expovariate(0.02), 2),
                "user": f"u-{chance.randrange(20_000):05}",
                "message": "request completed",
            },
        )


def _line(name: str, when: datetime, fields: dict[str, Any]) -> str:
    stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = "{method} {path} user {user} status {status} in {ms} ms".format_map(fields)
    inside = json.dumps({"time": stamp, **fields})
    match name:
        case "Docker json-file":
            return json.dumps({"log": inside + "\n", "stream": "stdout", "time": stamp})
        case "CRI, JSON inside":
            return f"{stamp} stdout F {inside}"
        case "logfmt":
            quoted = {**fields, "message": '"request completed"'}
            return f"time={stamp} " + " ".join(f"{key}={value}" for key, value in quoted.items())
        case "syslog (RFC 3164)":
            return f"{when:%b %e %H:%M:%S} web-1 shop[4242]: {told}"
        case "access (combined)":
            request = f'"{fields["method"]} {fields["path"]} HTTP/1.1" {fields["status"]} {int(fields["ms"] * 100)}'
            return f'203.0.113.7 - {fields["user"]} [{when:%d/%b/%Y:%H:%M:%S} +0000] {request} "-" "curl/8.5.0"'
        case "CSV":
            return ",".join((stamp, *map(str, fields.values())))
        case "text with times":
            return f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03} {fields['level'].upper()} shop.http: {told}"
    return inside


def _commands(form: Format, path: Path) -> dict[str, list[str]]:
    table, where = form.lnav
    *reader, condition = form.miller or ("", "")
    ask = jitdb_command(["count", form.jitdb], path)
    counted = ["filter", condition, "then", "count"]
    lnav = [word.format(table=table, where=where) for word in _LNAV]
    return {
        "jitdb, first": ask,
        "jitdb, again": ask,
        "rg": ["rg", "-c", "-F" if "\\" not in form.rg else "-e", form.rg, str(path)],
        "jq": ["jq", "-n", f"reduce (inputs | select({form.jq})) as $_ (0; . + 1)", str(path)] if form.jq else [],
        "Miller": ["mlr", *reader, *counted, str(path)] if form.miller else [],
        "DuckDB": duckdb_command(f"select count(*) from {form.sql.replace('FILE', str(path))}") if form.sql else [],
        "lnav": [*lnav, str(path)] if table else [],
    }


def _installed(command: list[str]) -> bool:
    return bool(command) and shutil.which(command[0]) is not None


def _count(command: list[str]) -> int:
    """The one number of what a tool prints."""
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int("".join(filter(str.isdigit, told)))
