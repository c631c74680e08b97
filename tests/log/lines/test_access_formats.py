"""Accesses of servers and frameworks: lines made of values, of which the records are the same values again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log.lines.format_oracle import scalar
from thoroughness import tries

import jitdb
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.formats.recognising import recognised
from jitdb.log.lines.formats.rendering import Renderer
from jitdb.log.lines.formats.table import BY_NAME

NOVEMBER = 1_795_860_000 * 10**9  # 2026-11-28
STAMP = "28/Nov/2026:10:00:00 +0000"
#: Of each format how a line is written of values: `{name}`, with `{name:>9}` for one that is padded.
LINES = {
    "gin": ['[GIN] 2026/11/28 - 10:00:00 | {status} | {latency:>13} | {client_ip:>15} | {method:<7}  "{path}"',
            '[GIN] 2026/11/28 - 10:00:00 |\x1b[97;42m {status} \x1b[0m| {latency:>13} | {client_ip:>15} '
            '|\x1b[97;44m {method:<7} \x1b[0m "{path}"'],
    "aiohttp": ['{remote_addr} [{time_local}] "{request}" {status} {body_bytes_sent} "{http_referer}" '
                '"{http_user_agent}"'],
    "hypercorn": ['[{time}] [{process}] [{level}] {remote_addr} - - [{time_local}] "{request}" {status} '
                  '{body_bytes_sent} "{http_referer}" "{http_user_agent}"'],
    "morgan": ["{method} {url} {status} {response_time} ms - {content_length}",
               "\x1b[0m{method} {url} \x1b[36m{status}\x1b[0m {response_time} ms - {content_length}\x1b[0m",
               "{method} {url} {status} {content_length} - {response_time} ms",
               "{remote_addr} - {method} {url} HTTP/{http_version} {status} {content_length} - {response_time} ms"],
    "phpfpm": ['{remote_addr} -  {time_local} "{request}" {status}',
               '{remote_addr} - {remote_user} {time_local} "{request}" {status} {script} {request_duration} '
               "{request_memory} {request_cpu}%"],
    "gorouter": ['{request_host} - [{start_time}] "{request_method} {request_url} {request_protocol}" {status_code} '
                 '{bytes_received} {bytes_sent} "{referer}" "{user_agent}" "{remote_address}" "{backend_address}" '
                 'x_forwarded_for:"{x_forwarded_for}" x_forwarded_proto:"http" vcap_request_id:"{vcap_request_id}" '
                 'response_time:{response_time} app_id:"{app_id}" app_index:"{app_index}" x_cf_routererror:"-"'],
    "lograge": ["I, [{time} #{pid}]  {level} -- : {text}", "I, [{time} #{pid}]  {level} -- : [{request_id}] {text}"],
    "syslogaccess": ['{TIMESTAMP} {HOSTNAME} {TAG}[{PID}]: {remote_addr} - ada [{time_local}] "{request}" {status} '
                     '{body_bytes_sent} "{http_referer}" "{http_user_agent}"'],
    "tornado": ["[{level} {time} {module}:{lineno}] {status} {method} {uri} ({remote_ip}) {request_time}ms"],
    "telegraf": ["{time} {level}! [{plugin}] {text}"],
    "gluster": ["[{time}] {level} [MSGID: {msgid}] [{file}.c:{line}:{function}] {domain}: {text}"],
}  # fmt: skip
METHODS, PATHS = st.sampled_from(["GET", "POST", "UNKNOWN"]), st.sampled_from(["/", "/a?b=1", "/é%20", "http://x/y"])
COUNTS = st.sampled_from(["0", "17", "123456789", "-"])
SIZES, SECONDS = st.sampled_from(["0", "17", "123456789"]), st.sampled_from(["0.001", "12", "1.234"])
STATUS = st.sampled_from(["200", "404", "500"])
ADDRESSES = st.sampled_from(["10.0.0.1", "::1", "fe80::1"])
TEXTS = st.sampled_from(["-", "curl/8.5", "a b", 'q\\"x', "é"])
ISO = st.sampled_from(["2026-11-28T10:00:00.123456", "2026-11-28 10:00:00"])
VALUES: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(("status", "status_code"), STATUS), **dict.fromkeys(("method", "request_method"), METHODS),
    **dict.fromkeys(("path", "url", "request_url", "uri"), PATHS),
    **dict.fromkeys(("content_length", "body_bytes_sent"), COUNTS),
    **dict.fromkeys(("bytes_received", "bytes_sent", "process", "pid", "PID", "request_memory", "app_index", "lineno",
                     "msgid", "line"), SIZES),
    **dict.fromkeys(("response_time", "request_duration", "request_cpu", "request_time"), SECONDS),
    **dict.fromkeys(("client_ip", "remote_addr", "remote_address", "backend_address", "remote_ip"), ADDRESSES),
    **dict.fromkeys(("http_referer", "http_user_agent", "referer", "user_agent"), TEXTS),
    "time": ISO, "start_time": ISO, "time_local": st.just(STAMP), "TIMESTAMP": st.just("Nov 28 10:00:00"),
    "latency": st.sampled_from(["1.234567ms", "12.345µs", "1m2.5s"]), "level": st.sampled_from(["I", "E", "W"]),
    "http_version": st.sampled_from(["1.1", "2.0"]), "request_protocol": st.just("HTTP/1.1"),
    "x_forwarded_for": st.sampled_from(["10.0.0.9", "10.0.0.9, ::1"]), "script": st.just("/var/www/a.php"),
    **{name: st.sampled_from(["a", "web-1", "x.y"]) for name in (
        "remote_user", "request_host", "vcap_request_id", "app_id", "HOSTNAME", "TAG", "module", "file", "function",
        "domain",
    )},
    "plugin": st.just("inputs.cpu"), "request_id": st.just("0123abcd-0123-4567-89ab-0123456789ab"),
    "text": st.sampled_from(["no route", "method=GET path=/ status=200 duration=5.3", "a: b"]),
}  # fmt: skip
#: Fields that are numbers where they spell one, and are left out where they are a dash.
NUMBERS = {
    "status", "status_code", "content_length", "body_bytes_sent", "bytes_received", "bytes_sent", "process", "pid",
    "PID", "request_memory", "app_index", "lineno", "msgid", "line", "response_time", "request_duration",
    "request_cpu", "request_time",
}  # fmt: skip
#: Of gorouter, what is a dash where there is none.
ABSENT = {"referer", "user_agent"}


@st.composite
def accesses(draw: st.DrawFn, name: str) -> tuple[str, dict[str, Any]]:
    """A line, and its record."""
    form = draw(st.sampled_from(LINES[name]))
    values = {key: draw(VALUES[key]) for key in re.findall(r"\{(\w+)", form) if key != "request"}
    record: dict[str, Any] = dict(values)
    if "{request}" in form:
        method, uri = draw(METHODS), draw(PATHS)
        version = {"hypercorn": " 1.1", "phpfpm": ""}.get(name, " HTTP/1.1")
        values["request"] = record["request"] = f"{method} {uri}{version}"
        record |= {"request_method": method, "request_uri": uri}
        record |= {"server_protocol": version[1:]} if version else {}
    line = form.format(**values)
    record = {key: scalar(value) if key in NUMBERS else value for key, value in record.items()
              if not (value == "-" and (key in NUMBERS or (name == "gorouter" and key in ABSENT)))}  # fmt: skip
    if name == "gin":
        record["time"] = "2026-11-28T10:00:00"
    if name == "gorouter":
        record["x_forwarded_proto"] = "http"
    if name == "gluster":
        record["file"] += ".c"
    if name == "tornado":
        record["text"] = line.partition("] ")[2]
    if name == "syslogaccess":
        record |= {"TIMESTAMP": "2026-11-28T10:00:00", "remote_user": "ada", "CONTENT": line.partition("]: ")[2]}
    if record.get("text", "").startswith("method="):
        pairs = (pair.partition("=") for pair in record["text"].split(" "))
        record |= {key: scalar(value) for key, _, value in pairs}
    return line, record


@pytest.mark.parametrize("name", LINES)
def test_a_record_has_the_values_of_which_its_line_is_made(name: str) -> None:
    renderer = Renderer(BY_NAME[name], lambda: NOVEMBER)

    @settings(max_examples=tries(100, 2000), deadline=None)
    @given(st.lists(accesses(name), min_size=1, max_size=4))
    def check(made: list[tuple[str, dict[str, Any]]]) -> None:
        found = [json.loads(record) for record in renderer.rendered([line.encode() for line, _ in made])]
        assert found == [record for _, record in made]
        row = recognised([line.encode() for line, _ in made])
        if name != "lograge" or made[0][1]["text"].startswith("method="):
            assert row is not None
            assert row.name == name

    check()


PFSENSE = [
    "<134>Nov 28 10:00:00 filterlog[812]: 4,,,1000000103,igb0,match,block,in,4,0x0",
    "<13>Nov 28 10:00:01 root: no: more",
    "<38>Nov  8 10:00:02 sshd[7]: error: no",
]


def test_a_head_of_syslog_with_a_priority_may_lack_a_host(tmp_path: Path) -> None:
    path = tmp_path / "filter.log"
    path.write_text("".join(f"{line}\n" for line in PFSENSE) * 3)
    found = form_at(path)
    assert found is not None
    assert found.format == "syslog"
    with jitdb.open(path, indexes="memory") as db:
        records = db.all(sort_by="arrival")[:3]
    for line, record in zip(PFSENSE, records, strict=True):
        said = re.fullmatch(r"<(\d+)>\w+ +\d+ (\S+) ([^ :\[]+)(?:\[(\d+)\])?: (.*)", line)
        assert said is not None
        assert (record["PRI"], record["TAG"], record["CONTENT"]) == (int(said[1]), said[3], said[5])
        assert record.get("PID") == (int(said[4]) if said[4] else None)
        assert record["TIMESTAMP"].endswith(said[2])
        assert "HOSTNAME" not in record


@pytest.mark.parametrize("host", ["h", "fe80::1", "10.0.0.1", "a:b"])
def test_a_host_of_syslog_is_none_of_its_programs(host: str) -> None:
    (record,) = Renderer(BY_NAME["syslog"], lambda: NOVEMBER).rendered(
        [f"<34>Nov 28 10:00:00 {host} su[1]: x".encode()]
    )
    assert json.loads(record) == {
        "PRI": 34, "TIMESTAMP": "2026-11-28T10:00:00", "HOSTNAME": host, "TAG": "su", "PID": 1, "CONTENT": "x",
    }  # fmt: skip


def test_a_trace_among_accesses_of_morgan_belongs_to_its_text(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(
        "GET /a 200 1.5 ms - 12\nGET /b 500 2 ms - 5\nError: no\n    at x (a.js:1)\nserver is up\n"
        + "GET /c 200 1 ms - 1\n" * 4
    )
    with jitdb.open(path, indexes="memory") as db:
        assert db.count("status >= 500") == 1
        assert [record["text"] for record in db.all("text is not null", sort_by="arrival")] == [
            "Error: no\n    at x (a.js:1)", "server is up",
        ]  # fmt: skip
