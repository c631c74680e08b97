"""Records of formats: each question of a file in chunks of any size against a reader of the whole text."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from log.lines import format_oracle as oracle
from log.lines import service_oracle as services
from log.lines.documented import DOCUMENTED
from log.lines.walking import walked
from thoroughness import tries

import jitdb.operators
from jitdb.engine.roles import roles_of
from jitdb.errors import InvalidArgument, NotALog
from jitdb.log.lines import line_log
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.files import file
from jitdb.log.lines.files.opening import is_compressed
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.formats.pattern import compile_pattern
from jitdb.log.lines.formats.recognising import recognised
from jitdb.log.lines.formats.rendering import Renderer
from jitdb.log.lines.formats.row import Format
from jitdb.log.lines.formats.table import BY_NAME, FORMATS, own
from jitdb.log.lines.line_log import LineLog

FRAMES = ["Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: no", "\tat x.Y(Y.java:1)", "",
          "Caused by: java.io.IOException", "goroutine 1 [running]:", "main.main()", "\t/x/main.go:3",
          "plain words", "java.lang.IllegalStateException: closed", "a.b.C: no", "System.TimeoutException", "Error: x",
          "x.Error y"]  # fmt: skip
ACCESS = '203.0.113.9 - bob [20/Nov/2026:14:03:11 +0000] "GET /a HTTP/1.1" 503 5'
PAIRS = ["CEF:0|a|b|src=1 dst=2", "a=CEF:0|x b=2",
         'level=error msg="no \\"way" n=5', "a=1", " a=1 b= c ", "a=1 b=é c=\x1b[0m", "a=1 é=2", "a=1 b=2 c d e",
         "x a=1 b=2", 'a="x"y b="1', '"The \\"msg" pod="a/b" n=3', '"m" no', '"m" k=v x', '"m"k=v', '"open k=v',
         "a=1  b=2", "=1 b=2", "1a=1 b=2", 'a=1 b=2 "c"', "a=1 b=2 c", "level=x a=\x7f", 'a=1 b="x\\']  # fmt: skip
BODIES = ['{"level": "info", "n": 1}', '{"a": {"b": [1, 2]}, "t": "é\\n"}', "{}", " { } ", '{"cut": ', "{x}", "[1]",
          "é ü", 'q"uo\\te', "E1120 14:03:11.123456       1 a.go:138] no route",
          ' I1120 14:03:11.123456 1 a.go:1] "m" pod="a/b"',
          'E1120 14:03:11.123456 1 a.go:7] {"n": 1}', ACCESS, ACCESS + ' "-" "curl/8 \xe9" 17 [a-80]',
          '::1 - - [x] "GET /" 200 5',
          "\x1b[31mERROR\x1b[0m x", *FRAMES, "<34>Nov 11 22:14:15 host su[12]: error: no",
          "Nov  1 22:14:15 mx postfix/smtpd[-]: x", "Nov 11 22:14:15 INFO app: x",
          "<165>1 2026-10-11T22:14:15Z h app - ID47 [a@1 b=\"x\"] WARN no", "<1>1 - - - - - -",
          "Nov 11 22:14:15 mac launchd[1] (com.a.b): k=1 n=2 and words", "a=1 b=2 and more words here", 'a=1 b="x',
          "error: no", "zone: Warn: x", "\tinfo\tpkg/a.go:1\tup", "fail: X[1]", "FAIL: x", "log: x",
          "a-b: info: x"]  # fmt: skip
NOVEMBER = 1_795_000_000 * 10**9  # 2026-11-18
TIME = "2026-11-20T00:00:07.553591789Z"


BLANKS = st.sampled_from(["", "", "", "", "\n", "  \n"])


def cri_lines() -> st.SearchStrategy[bytes]:
    line = st.tuples(st.sampled_from(["stdout", "stderr"]), st.sampled_from("FFFP"), st.sampled_from(BODIES), BLANKS)
    return st.lists(line, min_size=1, max_size=12).map(
        lambda lines: "".join(f"{TIME} {stream} {tag} {body}\n{blank}" for stream, tag, body, blank in lines).encode()
    )


def stamped_lines() -> st.SearchStrategy[bytes]:
    line = st.tuples(st.sampled_from(BODIES), BLANKS)
    return st.lists(line, min_size=1, max_size=12).map(
        lambda lines: "".join(f"{TIME} {body}\n{blank}" for body, blank in lines).encode()
    )


def docker_lines() -> st.SearchStrategy[bytes]:
    line = st.tuples(
        st.sampled_from(["stdout", "stderr"]), st.sampled_from(["\n"] * 3 + [""]), st.sampled_from(BODIES), BLANKS
    )
    return st.lists(line, min_size=1, max_size=12).map(
        lambda lines: "".join(
            json.dumps({"log": body + end, "stream": stream, "time": TIME}) + "\n" + blank
            for stream, end, body, blank in lines
        ).encode()
    )


def logfmt_lines() -> st.SearchStrategy[bytes]:
    value = st.sampled_from(
        ["1", "-2.50", "00", "1e5", "true", "False", "x", '"a b"', '"q\\"x"', '"\\n\\x"', "", '"open', "9" * 16, "é",
         "'x y'", "'a=1 b=\"x' y\" c=2'", "'a='b'' c'", "'open", "'no' x'", "''", "'a=''"]
    )  # fmt: skip
    pair = st.tuples(st.sampled_from(["level", "msg", "http.status", "a-b", "é"]), value).map("=".join)
    line = st.lists(st.one_of(pair, pair, st.sampled_from(["alone", "", "="])), min_size=1, max_size=5).map(" ".join)
    return st.lists(st.one_of(line, line, st.sampled_from(FRAMES)), min_size=1, max_size=10).map(
        lambda lines: "".join(f"{line}\n" for line in lines).encode()
    )


def ltsv_lines() -> st.SearchStrategy[bytes]:
    """Labels and values, and lines of text of several formats."""
    label = st.sampled_from(["time", "host", "a.b-c", "é", "", "a b"])
    value = st.sampled_from(["1", "true", "[20/Nov/2026]", "[]", "[x", "a:b", "", "-", "é", 'q"', " x ", "9" * 16])
    part = st.tuples(label, value).map(":".join)
    line = st.lists(st.one_of(part, part, st.sampled_from(["", "alone"])), max_size=5).map("\t".join)
    ends = st.sampled_from(["\n", "\n", "\r\n"])
    whole = st.tuples(st.one_of(line, line, st.sampled_from(MIXED)), ends).map("".join)
    return st.lists(whole, min_size=1, max_size=10).map(lambda lines: ("a:1\tb:2\n" + "".join(lines)).encode())


MIXED = [
    '{"level": "info", "n": 1}', '{"level": "info"} ', '{"cut": ', '{"a": 1}}', '{ "a": 1}', "{}", '{"a": {"b": "}"}}',
    "level=error msg=x n=5", "a=1", " a=1 b=2", "a=1 b=2 c d e", "CEF:0|a|b|src=1 dst=2",
    "2026-11-20 14:03:11,123 ERROR boom",
    "[2026-11-20T14:03:11Z] hello", "2026-11-20 half",
    '2026-11-20T14:03:11Z app {"level": "warn", "n": [1]} ', "E1120 14:03:11.123456       1 a.go:138] x: Failed",
    "2026.11.20 14:03:11 ERROR web[][o.s] x", "    2026-11-20T14:03:11.000Z [INFO]  agent: x",
    " 2026-11-20T14:03:11Z x",
    "ERROR: no", "ERROR[11-20|14:03:11.000] no", "[WARN] a=1 b=2", "error: no", "error : no", "ERRORS: 5", "Error: no",
    "app: ERROR no", "App: ERROR no", "a.b: ERROR no", "app: ERROR", "x.YException: ERROR: no", "  ERROR: no",
    "\x1b[31mFATAL\x1b[0m no", "14:03:11.123 [main] ERROR x - no", "[14:03:11] INFO up", "14:03 ERROR x",
    "W1120 14:03:11.5 7 a.go:1] n=1 ERROR", "W1320 14:03:11.5 7 a.go:1] no",
    *FRAMES,
]  # fmt: skip


def mixed_lines() -> st.SearchStrategy[bytes]:
    """Lines of text of several formats."""
    ends = st.sampled_from(["\n", "\n", "\r\n"])
    line = st.tuples(st.sampled_from(MIXED), ends).map("".join)
    return st.lists(line, min_size=1, max_size=12).map(lambda lines: ("a=1 b=2\n" + "".join(lines)).encode())


def leveled_lines() -> st.SearchStrategy[bytes]:
    """Text behind times, with what may be a level at any place of it."""
    word = st.sampled_from(
        ["ERROR", "error", "[error]", "[core:error]", "[ERROR]", "[Warning]", "[warn ", "production.ERROR:", "LOG:",
         "LOG", "[log]", "(INFO)", "<WARN>|", "ERRORS", "ERROR_CODE", "7ERR", "éERR", "ERRé", "CRITICAL", "XCRITICAL",
         "CRITICAL1", "NOTICE:FATAL", ":error]", "[error", "-PANIC-", "EMERG", "SEVERE",
         "[error  ]", "[  Info ]", "[  warn", ":err ]", ": err]", "[        inf]", "[         inf]", "[WRN]", "FTL",
         "DEBU", "[pid 7]", "{", '{"', '"INFO"',
         "a" * 40, "é" * 20, " "]
    )  # fmt: skip
    text = st.lists(st.one_of(word, word, st.text("ER aOLG[:]{", max_size=6)), max_size=6)
    line = st.tuples(text, st.sampled_from(["", " ", " "])).map(lambda both: both[1].join(both[0]))
    return st.lists(line, min_size=1, max_size=8).map(
        lambda lines: "".join(f"2026-11-20T14:03:11Z {line}\n" for line in lines).encode()
    )


def journald_lines() -> st.SearchStrategy[bytes]:
    value = st.sampled_from(
        ['"x"', '"6"', "null", "[82,97,119]", "[ 195 , 188 ]", "[255, 34, 92, 10, 0]", "[]", "[256]", "[1.5]", "[-1]",
         "[1e2]", "[8, null]", '["a", "b"]', "[[82, 97], [98]]", '{"a": [1, 2]}', "[1", "[01]", '"[82]"', '"\\"[82]"',
         "[0]", "[1000]", "12", "true"]
    )  # fmt: skip
    name = st.sampled_from(["MESSAGE", "_PID", "__REALTIME_TIMESTAMP", "\\u0041[", "é"])
    member = st.tuples(name, st.sampled_from([":", " : "]), value).map(
        lambda parts: f'"{parts[0]}"{parts[1]}{parts[2]}'
    )
    line = st.lists(member, max_size=5).map(lambda members: "{" + ", ".join(members) + "}")
    odd = st.sampled_from(["", " ", "text", '{"a"', "[82, 97]", '{"MESSAGE": [82, 97], }', ' {"MESSAGE" : [82]} \r'])
    return st.lists(st.one_of(line, line, line, odd), min_size=1, max_size=8).map(
        lambda lines: "".join(f"{line}\n" for line in lines).encode()
    )


def records_in(path: Path, name: str) -> list[Any]:
    """All that the log of a file streams."""
    with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
        return [record.value for record in log.stream()]


def whole(records: list[Any]) -> list[Any]:
    return [record for record in records if record is not None]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("cri", cri_lines()),
        ("stamped", stamped_lines()),
        ("docker", docker_lines()),
        ("logfmt", logfmt_lines()),
        ("journald", journald_lines()),
        ("logfmt", mixed_lines()),
        ("ltsv", ltsv_lines()),
        ("text", mixed_lines()),
        ("text", leveled_lines()),
        ("klog", mixed_lines()),
    ],
)
def test_records_are_those_of_the_oracle(tmp_path: Path, name: str, strategy: st.SearchStrategy[bytes]) -> None:
    path = tmp_path / "a.log"

    @settings(max_examples=tries(30, 600), deadline=None)
    @given(strategy)
    def check(data: bytes) -> None:
        path.write_bytes(data)
        expected = whole(getattr(oracle, name)(data))
        assert records_in(path, name) == expected
        with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
            found = list(log.stream(raw=True))
            raws = log.get_many_raw([record.offset for record in found])
            assert [json.loads(raw) for raw in raws if raw is not None] == expected
            assert len(found) == len(expected)
        for size in (13, 1 << 16):
            assert values_walked(path, name, size) == expected

    check()


def values_walked(path: Path, name: str, most: int) -> list[Any]:
    with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
        return [value for _, value in walked(log, most)]


SAMPLES = {
    "mysqlslow": (
        b"# User@Host: ada[ada] @ db []  Id: 17\n# Query_time: 1.5  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 9\n"
        b"SET timestamp=1795132803;\nselect 1;",
        {"user": "ada", "host": "db", "ip": "", "Id": 17, "Query_time": 1.5, "Lock_time": 0.0, "Rows_sent": 1,
         "Rows_examined": 9, "timestamp": 1795132803, "query": "select 1;"},
    ),
    "csvlog": (
        b'2026-11-20 14:03:11.123 UTC,"ada","shop",17,"[local]",6b0b39.286a,1,"SELECT",2026-11-20 14:00:00 UTC,3/5,0,'
        b'ERROR,22012,"division by ""zero""",,,,,,"select 1\n/0",,,"psql","client backend",,0',
        {"log_time": "2026-11-20 14:03:11.123 UTC", "user_name": "ada", "database_name": "shop", "process_id": 17,
         "connection_from": "[local]", "session_id": "6b0b39.286a", "session_line_num": 1, "command_tag": "SELECT",
         "session_start_time": "2026-11-20 14:00:00 UTC", "virtual_transaction_id": "3/5", "transaction_id": 0,
         "error_severity": "ERROR", "sql_state_code": "22012", "message": 'division by "zero"',
         "query": "select 1\n/0", "application_name": "psql", "backend_type": "client backend", "query_id": 0},
    ),
    "jul": (
        b"Nov 20, 2026 2:03:11 PM com.x.App main\nSEVERE: no route",
        {"time": "2026-11-20T14:03:11", "logger": "com.x.App", "method": "main", "level": "SEVERE",
         "message": "no route"},
    ),
    "apt": (
        b"Start-Date: 2026-11-20  14:03:11\nCommandline: apt-get upgrade\nEnd-Date: 2026-11-20  14:03:12",
        {"time": "2026-11-20T14:03:11", "Commandline": "apt-get upgrade", "end": "2026-11-20T14:03:12"},
    ),
    "journald": (
        b'{"__REALTIME_TIMESTAMP": "1795132803724838", "PRIORITY": "6", "MESSAGE": [82, 97, 119, 255], "_PID": "1"}',
        {"__REALTIME_TIMESTAMP": "1795132803724838", "PRIORITY": "6", "MESSAGE": "Raw\ufffd", "_PID": "1"},
    ),
    "combined": (
        b'203.0.113.9 - frank [20/Nov/2026:14:03:11 +0100] "GET /item/5?x=1 HTTP/1.1" 200 512 "https://x.org/" '
        b'"curl/8"',
        {"remote_addr": "203.0.113.9", "remote_user": "frank", "time_local": "20/Nov/2026:14:03:11 +0100",
         "request": "GET /item/5?x=1 HTTP/1.1", "request_method": "GET", "request_uri": "/item/5?x=1",
         "server_protocol": "HTTP/1.1", "status": 200, "body_bytes_sent": 512, "http_referer": "https://x.org/",
         "http_user_agent": "curl/8"},
    ),
    "common": (
        rb'::1 - - [20/Nov/2026:14:03:11 +0100] "\x16\x03\"" 400 -',
        {"remote_addr": "::1", "remote_user": "-", "time_local": "20/Nov/2026:14:03:11 +0100",
         "request": r"\x16\x03\"", "status": 400},
    ),
    "syslog5424": (
        b'<165>1 2026-10-11T22:14:15.003Z host evntslog - ID47 [a@1 iut="3" b="x\\"]"][c] \xef\xbb\xbfAn event',
        {"PRI": 165, "VERSION": 1, "TIMESTAMP": "2026-10-11T22:14:15.003Z", "HOSTNAME": "host", "APP_NAME": "evntslog",
         "MSGID": "ID47", "STRUCTURED_DATA": '[a@1 iut="3" b="x\\"]"][c]', "MSG": "An event"},
    ),
    "syslog": (
        b"<34>Oct 11 22:14:15 host su[12]: 'su root' failed",
        {"PRI": 34, "TIMESTAMP": "2026-10-11T22:14:15", "HOSTNAME": "host", "TAG": "su", "PID": 12,
         "CONTENT": "'su root' failed"},
    ),
    "klog": (
        b"E1120 14:03:11.123456       1 reflector.go:138] k8s.io/x: Failed",
        {"severity": "E", "time": "2026-11-20T14:03:11.123456", "threadid": 1, "file": "reflector.go", "line": 138,
         "msg": "k8s.io/x: Failed"},
    ),
    "text": (
        b"2026-11-20 14:03:11,123 ERROR [main] com.x.Y - boom",
        {"time": "2026-11-20 14:03:11,123", "level": "ERROR", "text": "ERROR [main] com.x.Y - boom"},
    ),
    "logfmt": (b"level=warn msg=\"a b\" n=3", {"level": "warn", "msg": "a b", "n": 3}),
    "ltsv": (
        b"time:[20/Nov/2026:13:00:00 +0000]\thost:10.0.0.5\tstatus:200\treq:GET /a:b HTTP/1.1",
        {"time": "20/Nov/2026:13:00:00 +0000", "host": "10.0.0.5", "status": 200, "req": "GET /a:b HTTP/1.1"},
    ),
    "stamped": (
        f"{TIME} 2026-11-20 14:03:11,123 ERROR [main] c.x.Y - no".encode(),
        {"time": TIME, "level": "ERROR", "message": "2026-11-20 14:03:11,123 ERROR [main] c.x.Y - no"},
    ),
    "cri": (f"{TIME} stderr F hello".encode(), {"time": TIME, "stream": "stderr", "message": "hello"}),
    "docker": (
        json.dumps({"log": "hello\n", "stream": "stdout", "time": TIME}).encode(),
        {"stream": "stdout", "time": TIME, "log": "hello"},
    ),
    **{name: samples[0] for name, samples in DOCUMENTED.items()},
    "levels": (b"WARN root:no route", {"level": "WARN", "text": "WARN root:no route"}),
    **{
        name: (line, services.of(services.parser_of(name), [line]))
        for name in services.PARTS
        for line in [services.first_of(name).encode()]
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("request_line", "parts"),
    [
        ("GET /c HTTP/1.1", ("GET", "/c", "HTTP/1.1")),
        ("GET /c", ("GET", "/c", None)),
        ("GET /c d", (None, None, None)),
        ("GET /c HTTP/1.1 x", (None, None, None)),
        ("GET ", (None, None, None)),
        ("get /c", (None, None, None)),
        ("-", (None, None, None)),
        ("", (None, None, None)),
    ],
)
@pytest.mark.parametrize("end", ["", ' "-" "curl/8"'])
def test_a_request_without_a_protocol(
    tmp_path: Path, request_line: str, parts: tuple[str | None, ...], end: str
) -> None:
    """HTTP/0.9 has such lines, and so have scanners that probe a port."""
    path = tmp_path / "access.log"
    path.write_text(f'::1 - - [20/Nov/2026:14:03:11 +0100] "{request_line}" 200 5{end}\n' * 3)
    record = jitdb.open(path).query().first()
    assert record is not None
    assert tuple(map(record.get, ("request_method", "request_uri", "server_protocol"))) == parts
    assert (record["request"], record["status"]) == (request_line, 200)


@pytest.mark.parametrize("name", [row.name for row in FORMATS[:-1]])
def test_a_line_of_each_format_is_recognised_and_read(name: str) -> None:
    line, expected = SAMPLES[name]
    row = recognised([line])
    assert row is not None
    assert row.name == name
    (record,) = Renderer(row, lambda: NOVEMBER).rendered([line])
    assert json.loads(record) == expected


@pytest.mark.parametrize("name", [row.name for row in FORMATS[:-1]])
def test_small_files_of_a_folder_are_read_as_each_is(tmp_path: Path, name: str) -> None:
    line, expected = SAMPLES[name]
    for number in range(12):
        path = tmp_path / f"{number}.log"
        path.write_bytes((line + b"\n") * 3)
        os.utime(path, (1e9, 1.7e9))
    key = next(key for key, value in expected.items() if not str(value).startswith("2026-"))  # whose year may be told
    with jitdb.open_many(tmp_path) as logs:
        for _ in range(2):
            assert logs.count(jitdb.operators.equal(key, expected[key])) == 36


@pytest.mark.parametrize("name", ["syslog", "klog", "text", "syslog5424"])
def test_lines_that_begin_no_record_belong_to_the_one_before(tmp_path: Path, name: str) -> None:
    line, expected = SAMPLES[name]
    (message,) = roles_of([expected]).message or ()
    path = tmp_path / "a.log"
    path.write_bytes(line + b"\nTraceback:\n  at x\n\n" + line + b"\n")
    assert records_in(path, name) == [{**expected, message: expected[message] + "\nTraceback:\n  at x"}, expected]


def test_a_time_without_a_year_is_of_the_last_one() -> None:
    january = NOVEMBER + 50 * 86_400 * 10**9
    (record,) = Renderer(BY_NAME["syslog"], lambda: january).rendered([b"Dec 31 23:59:59 h a: x"])
    assert json.loads(record)["TIMESTAMP"] == "2026-12-31T23:59:59"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file here is being written while it is opened."""
    monkeypatch.setattr(file, "AT_ONCE", 0)
    monkeypatch.setattr(line_log, "AT_ONCE", 0)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as to:
        to.write(data)


@pytest.mark.parametrize("is_written", [False, True])
def test_a_record_that_goes_on_later_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Asked at each step of a file that grows: never part of a record, nor one twice."""
    monkeypatch.setattr(file, "_SMALL", 0)
    path, folder = tmp_path / "a.log", tmp_path / "indexes"

    @settings(max_examples=40, deadline=None)
    @given(logfmt_lines(), st.lists(st.integers(1, 80), max_size=6))
    def check(data: bytes, steps: list[int]) -> None:
        monkeypatch.setattr(file, "AT_ONCE", 10**12 if is_written else 0)
        data = b"level=first\n" + data
        path.write_bytes(data[:12])
        expected = whole(oracle.logfmt(data))
        with jitdb.open(path, folder, format="logfmt") as db:
            at = 12
            for step in steps:
                append(path, data[at : at + step])
                at += step
                db.log.refresh()
                there = data[: data[:at].rfind(b"\n") + 1]
                known = db.query().sort_by_arrival().all()
                assert known in (whole(oracle.logfmt(there)), whole(oracle.logfmt(there))[:-1])
            append(path, data[at:])
            monkeypatch.setattr(file, "AT_ONCE", 0)
            db.log.refresh()
            assert db.query().sort_by_arrival().all() == expected
            traces = sum("trace" in record for record in expected)
            assert db.count(jitdb.operators.field("trace").present()) == traces

    check()


# Patterns


def spans(pattern: str, line: bytes) -> list[str | None] | None:
    """The groups of a match, by the machine; None where there is none."""
    program = compile_pattern(pattern)
    row = Format("own", "own", 1, pattern)
    (record,) = Renderer(row, lambda: NOVEMBER).rendered([line])
    if not record:
        return None
    found = json.loads(record)
    return [found.get(name) for name in program.names]


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", "x", r"\w", "[^ ]"])


def patterns() -> st.SearchStrategy[str]:
    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        repeated = st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
        either = st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})")
        return st.one_of(repeated, st.lists(inner, min_size=2, max_size=3).map("".join), either)

    return st.recursive(ATOMS, larger, max_leaves=6)


@settings(max_examples=tries(200, 5000), deadline=None)
@example("a*", "a*?b", "aab")
@example("(?:a|ab)", "(?:c|bcd)?", "abcd")
@given(patterns(), patterns(), st.text("abx1 ", max_size=8))
def test_a_pattern_matches_as_re_does(first: str, second: str, line: str) -> None:
    pattern = f"(?P<one>{first})(?P<two>{second})$"
    try:
        compile_pattern(pattern)
    except InvalidArgument as error:
        assert "may be empty" in str(error)  # noqa: PT017
        return
    found = re.match(pattern, line)
    expected = None if found is None else [found["one"], found["two"]]
    assert spans(pattern, line.encode()) == expected


@pytest.mark.parametrize(
    "pattern", [r"(a", "a)", "[a", "a**b(", r"\q", "(?=a)", "(?P<a>x)(?P<a>y)", "*a", "a{2,1}", "(?i)a", "(a*)*"]
)
def test_what_no_pattern_may_hold_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgument, match="pattern"):
        compile_pattern(pattern)


def test_a_pattern_takes_linear_time() -> None:
    line = b"a" * 3000
    assert spans(r"(?P<one>(?:a|a)*(?:a|aa)*)b", line) is None


HOSTILE = [
    b"\xff", b"\xff\xff", b'"', b"{", b"[", b"=" * 40, b"a=" + b'"' * 9, b"\x01\x02", b"<34>", b"<165>1 - - - - - -",
    TIME.encode(), TIME.encode() + b" stdout", TIME.encode() + b" stdout F", b'{"log":"', b'{"log":"a\\', b'{"log":1}',
    b'{"log":"a"}', b'{"log":"{}\\n","stream":"stdout"', b'{"log":"\\ud800\\n","stream":"stdout","time":"x"}',
    "é".encode("latin-1"),
    b"E1120 14:03:11.123456", b"Nov 20 14:03:11", b"Nov 99 99:99:99 h t: x", b"203.0.113.9 - - [",
    b"x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("name", [row.name for row in FORMATS])
def test_hostile_lines_hurt_nobody(tmp_path: Path, name: str) -> None:
    """Whatever stands between, the good lines are there, whole, and nothing is raised."""
    line, expected = SAMPLES.get(name, (b"good line", {"text": "good line"}))
    path = tmp_path / "a.log"

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.binary(max_size=30)), max_size=8))
    def check(others: list[bytes]) -> None:
        parts = [part.replace(b"\n", b" ").replace(b"\0", b" ") for part in others]
        path.write_bytes(b"".join(part + b"\n" + line + b"\n" for part in parts) + line + b"\n")
        assume(not is_compressed(path))  # by its first bytes it is another thing
        found = records_in(path, name)
        key = next(iter(expected))  # of which lines that follow are no part
        good = [record for record in found if isinstance(record, dict) and record.get(key) == expected[key]]
        assert len(good) >= len(parts) + 1
        assert values_walked(path, name, 40) == found

    check()


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-11-20 13:00:00,123 ERROR name: msg", "ERROR"),
        ("2026-11-20 13:00:00,123 - app.name - ERROR - msg", "ERROR"),
        ("2026-11-20T13:00:00.000Z  WARN 12345 --- [nio-8080-exec-0] c.e.shop.Pay : took", "WARN"),
        ("[2026-11-20 13:00:00,123] ERROR msg (kafka.server.KafkaServer)", "ERROR"),
        ("[2026-11-20 13:00:00 +0000] [7] [CRITICAL] WORKER TIMEOUT", "CRITICAL"),
        ("2026/11/20 13:00:00 [error] 7#7: *5 open() failed", "error"),
        ("[Fri Nov 20 13:00:00.123456 2026] [core:error] [pid 7] AH00126", "error"),
        ("2026-11-20 13:00:00.123 UTC [7] LOG:  checkpoint", "LOG"),
        ("2026-11-20 13:00:00.123 UTC [7] FATAL:  no", "FATAL"),
        ("[2026-11-20 13:00:00] production.ERROR: no", "ERROR"),
        ("2026-11-20T13:00:00.000Z [ERROR] agent: no", "ERROR"),
        ("[2026-11-20T13:00:00Z INFO  app::x] no", "INFO"),
        ("2026-11-20T13:00:00.000Z 0 [Warning] [MY-1] [Server] no", "Warning"),
        ("[2026-11-20T13:00:00.000+0000] {taskinstance.py:1} INFO - took", "INFO"),
        ("[2026-11-20T13:00:01.000+0000][0.1s][error  ][gc] GC(1) oops", "error"),
        ("2026-11-20 13:00:00.000 +00:00 [WRN] b", "WRN"),
        ("2026/11/20 13:00:00 ERRO m", "ERRO"),
        ("\x1b[2m2026-11-20T13:00:00.000000Z\x1b[0m \x1b[31mERROR\x1b[0m \x1b[2mapp\x1b[0m: no", "ERROR"),
        ("2026-11-20T13:00:00Z [m[31mERROR x", None),
        ("E, [2026-11-20T13:00:00.123456 #1234] ERROR -- : no", "ERROR"),
        ("26/11/20 13:00:00 ERROR Executor: no", "ERROR"),
        ("2026/11/20 13:00:00 an error came", None),
        ("2026.11.20 13:00:00 ERROR web[][o.s.s] no", "ERROR"),
        ("    2026-11-20T13:00:00.000Z [ERROR]  agent: no", "ERROR"),
        ("20-NOV-2026 13:00:00 * establish * x * 0", None),
        ('2026-11-20T13:00:00Z {"a": "ERROR"}', None),
        ('2026-11-20T13:00:00Z level=warn a="[ERROR]"', "warn"),
        ("2026-11-20 13:00:00 worker-3 job 17 done, ERROR count 0", None),
        ("2026-11-20 13:00:00 main, ERROR, no", "ERROR"),
        ("2026-11-20 13:00:00 it is done, ERROR: no", "ERROR"),
        ("2026-11-20 13:00:00 user opened ALERT settings", None),
        ("2026-11-20 13:00:00 then it wrote ERROR twice", None),
        ("2026-11-20 13:00:00 then it wrote ERROR: no", "ERROR"),
        ("2026-11-20 13:00:00 web app ERROR no", "ERROR"),
        ("2026-11-20 13:00:00 root MainThread ERROR no", "ERROR"),
        ("2026-11-20 13:00:00 GET /docs/ERROR 200", None),
        ("2026-11-20 13:00:00 C:\\logs\\ERROR opened", None),
        ("2026-11-20 13:00:00,000 [pool-ERROR-handler] INFO x", "INFO"),
        ("2026-11-20 13:00:00,000 ERROR-handler INFO x", "INFO"),
        ("2026-11-20 13:00:00,000 [main] INFO [ERROR] x", "INFO"),
        ("2026-11-20 13:00:00,000 [http-1] DEBUG checking for ERROR", "DEBUG"),
        ("2026-11-20 13:00:00 [Server thread/WARN]: no", "WARN"),
        ("[2026-11-20 13:00:00,123: INFO/MainProcess] Task", "INFO"),
        ("2026-11-20 13:00:00 [http-1]-ERROR- no", "ERROR"),
        ("2026-11-20 13:00:00 CET ERROR:  no", "ERROR"),
        ("2026-11-20 13:00:00 web ALERT: no", "ALERT"),
        ("[1795774800] SERVICE ALERT: web;HTTP;CRITICAL;HARD;3;timeout", "CRITICAL"),
        ("[1795774801] SERVICE ALERT: web;HTTP;OK;HARD;3;ok", None),
        ("2026-11-20 13:00:00 imap(ada)<77><p3o/AB>: Error: no", "Error"),
        ("2026-11-20 13:00:00 /etc/app.conf:7: warning: no", "warning"),
        ("2026-11-20 13:00:00 a b: error: no", None),
        ("2026-11-20 13:00:00 (ada): error: no", None),
        ("2026-11-20 13:00:00|Info|MyApp|the ERROR page", "Info"),
        ("2026-11-20 13:00:00|error|MyApp|no", "error"),
        ("2026-11-20 13:00:00|MyApp|the ERROR page", "ERROR"),
        ("2026-11-20 13:00:00 info handling ERROR page", None),
        ("2026-11-20 13:00:00 Info MyApp: FATAL handler", None),
        ("2026-11-20 13:00:00 info web ERROR: no", "ERROR"),
        ("2026-11-20 13:00:00 information on ERROR page", "ERROR"),
        ("2026-11-20 13:00:00 INFO handling ERROR page", "INFO"),
        ("20-Nov-2026 13:00:00.123 general: debug 1: no", "debug"),
        ("20-Nov-2026 13:00:00.123 debug 99: no", "debug"),
        ("20-Nov-2026 13:00:00.123 general: debug: no", "debug"),
        ("20-Nov-2026 13:00:00.123 general: debug 1 no", None),
        ("20-Nov-2026 13:00:00.123 general: error 1: no", None),
        ("2026-11-20 13:00:00.123 | SUCCESS  | a:b:1 - done", "SUCCESS"),
        ("2026-11-20 13:00:00.123 | SUCCESS | a", "SUCCESS"),
        ("2026-11-20 13:00:00.123 SUCCESS | a", None),
        ("2026-11-20 13:00:00.123 | job: SUCCESS | a", None),
        ("2026-11-20 13:00:00.123 | SUCCESS", None),
        ("2026-11-20 13:00:00 [\x1b[33m\x1b[1mwarning  \x1b[0m] no", "warning"),
        ("2026-11-20 13:00:00 [\x1b[1;31merror\x1b[0m] no", "error"),
        ("2026-11-20 13:00:00 [\x1b[31merrors\x1b[0m] no", None),
        ("2026-11-20 13:00:00 [31merror] no", None),
        ("2026-11-20 13:00:00 UTC | TRACE | ERROR | (a.go:1 in run) | no", "ERROR"),
        ("2026-11-20 13:00:00 UTC | CORE | INFO | (a.go:1 in run) | ERROR | x", "INFO"),
        ("2026-11-20 13:00:00 | ERROR    | Debug | no", "ERROR"),
        ("2026-11-20 13:00:00 | ERROR | DEBUG is on", "ERROR"),
        ("2026-11-20 13:00:00 ERROR | DEBUG | no", "ERROR"),
        ("2026-11-20 13:00:00 | error | no", "error"),
        ("2026-11-20 13:00:00 | error no", None),
        ("2026-11-20 13:00:00 | an error | no", None),
        ("[2026-11-20 13:00:00] production.EMERGENCY: no", "EMERGENCY"),
        ("2026-11-20 13:00:00 [emergency] no", "emergency"),
        ("2026-11-20 13:00:00 EMERGENCE", None),
        ("2026-11-20 13:00:00 EMERGENCYS", None),
        ("2026-11-20 13:00:00 CRITICALS", None),
        ("2026-11-20 13:00:00.123 [CRT] LTND: no", "CRT"),
        ("2026-11-20 13:00:00.123 [crt] read", None),
        ("2026-11-20 13:00:00.123 read CRT file", None),
        ("2026-11-20 13:00:00 [api] error: no", "error"),
        ("2026-11-20 13:00:00 [api] the error: no", None),
        ("2026-11-20 13:00:00 [api] error no", None),
        ("2026-11-20 13:00:00 [api] [v2] error: no", None),
        ("2026-11-20 13:00:00 [INFO] error: no", "INFO"),
        ("2026-11-20 13:00:00 [main/INFO] error: no", "INFO"),
        ("2026-11-20 13:00:00 see a[1] error: no", None),
        ("2026-11-20 13:00:00 <error> [1764316804.0003] no", "error"),
        ("2026-11-20 13:00:00 <error>no</error>", None),
        ("2026-11-20 13:00:00 <errors> no", None),
        ("2026-11-20 13:00:00 E1120 13:00:00.000000     900 pod.go:12] no", "E"),
        ("2026-11-20 13:00:00 E1120 was sold", None),
        ("2026-11-20 13:00:00 A1120 13:00:00.000000     900 pod.go:12] no", None),
        ("2026-11-20 13:00:00 verbose: x", "verbose"),
    ],
)
def test_text_behind_a_time_has_its_level(line: str, level: str | None) -> None:
    (record,) = Renderer(BY_NAME["text"], lambda: NOVEMBER).rendered([line.encode()])
    found = json.loads(record)
    assert found.get("level") == level
    assert "a" in found or line.endswith(found["text"])


@pytest.mark.parametrize(
    ("name", "line", "field"),
    [
        ("syslog", "Nov 20 13:00:00 web app[7]: up", "TIMESTAMP"),
        ("combined", '1.2.3.4 - - [20/Nov/2026:13:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl"', "time_local"),
        ("klog", "I1120 13:00:00.123456       1 a.go:1] up", "time"),
        (
            "envoy",
            '[2026-11-20T13:00:00.000Z] "GET / HTTP/1.1" 200 - 0 5 1 1 "-" "curl" "1" "a" "1.2.3.4:80"',
            "start_time",
        ),
        ("logfmt", "ts=2026-11-20T13:00:00Z a=1", "time"),
    ],
)
def test_lines_of_another_kind_have_their_time_where_others_have_it(
    tmp_path: Path, name: str, line: str, field: str
) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{line}\n" * 9 + "2026-11-20 13:00:01 ERROR no\n")
    os.utime(path, (NOVEMBER // 10**9, NOVEMBER // 10**9))
    assert records_in(path, name)[-1] == {field: "2026-11-20 13:00:01", "level": "ERROR", "text": "ERROR no"}
    if name != "logfmt":
        with jitdb.open(path, indexes="memory") as db:
            assert db.query().since("2026-11-20T12:00:00Z").count() == 10


@pytest.mark.parametrize("time", ["Nov 20 13:00:00", "2026-11-20T13:00:00+00:00"])
def test_a_tag_of_syslog_with_a_blank(tmp_path: Path, time: str) -> None:
    path = tmp_path / "syslog"
    path.write_text(f"{time} web sshd[1]: a\n" * 3 + f"{time} web my app[7]: crit: 1\n{time} web no tag 7: x\n")
    os.utime(path, (NOVEMBER // 10**9, NOVEMBER // 10**9))
    found = records_in(path, "syslog")
    at = found[0]["TIMESTAMP"]
    assert found[3] == {
        "TIMESTAMP": at,
        "HOSTNAME": "web",
        "TAG": "my app",
        "PID": 7,
        "level": "crit",
        "CONTENT": "crit: 1",
    }
    assert found[4] == {"TIMESTAMP": at, "text": "web no tag 7: x"}


def test_text_of_syslog_has_its_level(tmp_path: Path) -> None:
    path = tmp_path / "syslog"
    texts = ["up", "error: no room", "ERROR no", "level=error msg=no", '{"level":"error"}', "an error", "warning: late"]
    path.write_text("".join(f"Nov 20 13:00:00 web app[7]: {text}\n" for text in texts))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('level >= "error"') == 4
        assert db.count('level >= "warn"') == 5
        assert db.count("level is absent") == 2


def test_a_banner_of_uwsgi_tells_the_format(tmp_path: Path) -> None:
    path = tmp_path / "uwsgi.log"
    said = ["compiled with version: 12.2.0", "os: Linux", *("detected something else",) * 70]
    banner = "*** Starting uWSGI 2.0.21 (64bit) on [Fri Nov 20 13:00:00 2026] ***"
    line = (
        "[pid: 7|app: 0|req: 1/1] 127.0.0.1 () {32 vars in 470 bytes} [Fri Nov 20 13:00:01 2026] GET / => generated 50 "
        "bytes in 2 msecs (HTTP/1.1 500) 1 headers in 45 bytes"
    )
    path.write_text("\n".join([banner, *said, line, line, ""]))
    with jitdb.open(path, indexes="memory") as db:
        assert [found["text"] for found in db.all() if "text" in found] == ["\n".join([banner, *said])]
        assert db.count("status == 500") == 2
        assert db.query().since("2026-11-20T12:00:00Z").count() == 3


def test_json_behind_words(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text(
        '2026-11-20T10:30:00Z app {"level":"error","ms":5}\n2026-11-20T11:30:00Z app {"level":"info","ms":6}\n'
    )
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('level == "error" and ms == 5 and time == "2026-11-20T10:30:00Z"') == 1
        assert db.all()[1]["text"] == 'app {"level":"info","ms":6}'
        assert db.query().since("2026-11-20T11:00:00Z").count() == 1
        assert "TAG" not in db.all()[0]


def test_text_beside_json_in_containers(tmp_path: Path) -> None:
    said = ['{"level":"info"}', "2026-11-20 13:00:01,000 ERROR [main] boom", '{"level":"error"}', "plain"]
    (tmp_path / "cri.log").write_text("".join(f"{TIME} stdout F {text}\n" for text in said))
    dockers = ({"log": f"{text}\n", "stream": "stdout", "time": TIME} for text in said)
    (tmp_path / "docker.log").write_text("".join(f"{json.dumps(line)}\n" for line in dockers))
    (tmp_path / "stamped.log").write_text("".join(f"{TIME} {text}\n" for text in said[1:] + said[:1]))
    for name in ("cri.log", "docker.log", "stamped.log"):
        with jitdb.open(tmp_path / name, indexes="memory") as db:
            assert db.count('level >= "error"') == 2
            assert db.count("level is absent") == 1


def test_klog_and_accesses_in_containers(tmp_path: Path) -> None:
    """Their fields stand beside the text, which stays as it is; the time is the runtime's."""
    klog, access = "E1120 14:03:11.123456       1 a.go:138] lost lease", ACCESS + ' "-" "curl/8" 507 0.004 [web-80]'
    (tmp_path / "cri.log").write_text("".join(f"{TIME} stderr F {text}\n" for text in (klog, access)))
    dockers = ({"log": f"{text}\n", "stream": "stderr", "time": TIME} for text in (klog, access))
    (tmp_path / "docker.log").write_text("".join(f"{json.dumps(line)}\n" for line in dockers))
    (tmp_path / "stamped.log").write_text("".join(f"{TIME} {text}\n" for text in (klog, access)))
    for name, text in (("cri.log", "message"), ("docker.log", "log"), ("stamped.log", "message")):
        with jitdb.open(tmp_path / name, indexes="memory") as db:
            first, second = db.all()
            assert first == {
                **({} if name == "stamped.log" else {"stream": "stderr"}),
                "time": TIME, text: klog, "level": "E", "threadid": 1, "file": "a.go", "line": 138, "msg": "lost lease",
            }  # fmt: skip
            assert db.all('level >= "error"') == [first]
            assert db.all("status >= 500 and status < 600") == [second]
            assert (second["time"], second[text], second["request_uri"]) == (TIME, access, "/a")
            assert second["more"] == "507 0.004 [web-80]"


@pytest.mark.parametrize("name", ["cri", "docker", "stamped"])
def test_an_exception_of_java_in_a_container_belongs_to_its_error(tmp_path: Path, name: str) -> None:
    said = [
        "2026-11-20 14:03:11 ERROR [main] c.a.B - no", "java.lang.IllegalStateException: Pool closed",
        "\tat com.acme.Pool.get(Pool.java:88)", "Caused by: java.net.SocketTimeoutException: Read timed out",
        "\t... 23 more", "2026-11-20 14:03:12 INFO [main] c.a.B - up", "c.a.Server: up",
    ]  # fmt: skip
    lines = {
        "cri": [f"{TIME} stdout F {text}" for text in said],
        "stamped": [f"{TIME} {text}" for text in said],
        "docker": [json.dumps({"log": f"{text}\n", "stream": "stdout", "time": TIME}) for text in said],
    }
    path = tmp_path / "a.log"
    path.write_text("".join(f"{line}\n" for line in lines[name]))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == 3
        assert db.count('level >= "error" and * contains "SocketTimeoutException"') == 1


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["10:00:00.123 [main] INFO a", "java.lang.IllegalStateException", "\tat a.B.c(B.java:1)", ""], "stamped"),
        (["[2026-11-20 14:03:11] x", "Nov 20 14:03:11 x", "20/11/2026 14:03:11 x"], "stamped"),
        (["Server started", "INFO up", "Connection from 10.0.0.1 closed: bye"], "text"),
        (['{"level":"info"}', '{"level":"error"}'], "text"),
    ],
)
@pytest.mark.parametrize("time", ["2026-11-20T14:03:11.123456789Z", "2026-11-20T14:03:11.123456789+01:00"])
def test_lines_behind_times_of_containers(tmp_path: Path, lines: list[str], name: str, time: str) -> None:
    """Where a program writes no time of its own, nor traces, a line is text behind a time."""
    path = tmp_path / "a.log"
    path.write_text("".join(f"{time} {line}".rstrip() + "\n" for line in lines))
    form = form_at(path)
    assert form is not None
    assert form.format == name
    with jitdb.open(path, indexes="memory") as db:
        assert {record["time"] for record in db.all()} == {time}


def test_a_byte_in_several_groups_has_room_for_each() -> None:
    """Else a record is written over memory that is another's."""
    long = b"\x01" * 100_000
    request = b'203.0.113.9 - - [20/Nov/2026:14:03:11 +0000] "GET /' + long + b' HTTP/1.1" 200 5'
    for row, line, times in (
        (BY_NAME["common"], request, 2),
        (BY_NAME["cri"], TIME.encode() + b" stdout F " + request, 3),
        (own("(?P<a>(?P<b>(?P<c>.*)))"), long, 3),
    ):
        (record,) = Renderer(row, lambda: NOVEMBER).rendered([line])
        assert record.count(b"\\u0001") == times * len(long)


def test_times_of_spark_and_ruby(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    path.write_text(
        "26/11/20 14:31:00 ERROR Executor: no\njava.io.IOException: x\n26/11/20 14:32:00 INFO Executor: up\n"
    )
    with jitdb.open(path, indexes="memory") as db:
        first, last = db.all()
        assert (first["time"], first["level"]) == ("2026-11-20T14:31:00", "ERROR")
        assert db.all(jitdb.operators.gte("2026-11-20T14:31:01Z", "timestamp")) == [last]
    path = tmp_path / "ruby.log"
    path.write_text("I, [2026-11-20T14:31:00.123456 #17]  INFO -- : up\n")
    with jitdb.open(path, indexes="memory") as db:
        assert db.all() == [{"time": "2026-11-20T14:31:00.123456", "level": "INFO", "text": " INFO -- : up"}]


def test_times_of_tomcat(tmp_path: Path) -> None:
    path = tmp_path / "catalina.out"
    path.write_text("20-Nov-2026 14:31:00.250 SEVERE [main] x boom\n\tat a.b(C.java:1)\n20-Nov-2026 14:32:00 INFO up\n")
    with jitdb.open(path, indexes="memory") as db:
        first, last = db.all()
        assert (first["time"], first["level"]) == ("20-Nov-2026 14:31:00.250", "SEVERE")
        assert first["text"] == "SEVERE [main] x boom\n\tat a.b(C.java:1)"
        assert db.all(jitdb.operators.gte("2026-11-20T14:31:01Z", "timestamp")) == [last]


def test_bars_are_no_logfmt() -> None:
    assert recognised([b"CEF:0|Sec|th|1.0|src=10.0.0.5 rt=1795179600000"]) is None
    assert recognised([b"a.b/c:d[0]=1 b=2", b"gr\xc3\xb6\xc3\x9fe=1 b=2"]) == BY_NAME["logfmt"]


@pytest.mark.parametrize("name", ["syslog", "klog", "combined", "logfmt"])
def test_a_format_that_was_said_and_does_not_fit_is_an_error_though_lines_are_of_another(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"2026-11-20T14:03:11Z one\n2026-11-20T14:03:12Z two\n" + b'{"a": 1}\n')
    with pytest.raises(NotALog, match=r"none of its first 3 lines is .*, but"):
        jitdb.open(path, format=name)


def test_a_program_that_changes_to_json_is_counted_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    trace = "java.lang.X: no\n\tat a.b(C.java:1)\nCaused by: x\n"
    path.write_text(f"2026-11-20T14:03:11Z ERROR boom\n{trace}" * 100 + f'{{"level": "error"}}\n{trace}' * 50)
    with jitdb.open(path) as db:
        assert db.count() == 150
        assert db.count(jitdb.operators.equal("level", "error")) == 50
        assert db.count(jitdb.operators.contains("trace", "Caused by")) == 50
        assert db.count(jitdb.operators.contains("text", "Caused by")) == 100


def test_auditd_says_more_between_single_quotes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    inner = 'op=login acct="root" exe="/bin/x" res=%s'
    line = f"type=USER_LOGIN msg=audit(1795179600.123:1): pid=1 msg='{inner}' UID=\"a b\"\n"
    path.write_text(line % "failed" + line % "success" + line % "failed")
    with jitdb.open(path) as db:
        assert db.count(jitdb.operators.equal("res", "failed")) == 2
        assert db.query().first() == {
            "type": "USER_LOGIN", "time": 1795179600.123, "serial": 1, "pid": 1, "op": "login", "acct": "root",
            "exe": "/bin/x", "res": "failed", "UID": "a b",
        }  # fmt: skip


@pytest.mark.parametrize("zone", ["+01", "+0100", "+01:00"])
def test_a_zone_of_two_digits_is_a_part_of_the_time(tmp_path: Path, zone: str) -> None:
    path = tmp_path / "pg.log"
    path.write_text(f"2026-11-20 13:00:00.000 {zone} [100] app@shop ERROR:  m\n" * 2)
    with jitdb.open(path) as db:
        assert db.count(jitdb.operators.gte("2026-11-20T12:00:00Z", "time")) == 2
        assert db.count(jitdb.operators.gt("2026-11-20T12:00:00Z", "time")) == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Nov 20 13:00:00", "2026-11-20T13:00:00"),
        ("Dec  1 13:00:00.25", "2025-12-01T13:00:00.25"),
        ("1795179600.5", 1795179600.5),
        ("2026-11-20 13:00", "2026-11-20 13:00"),
        ("March of the penguins: it", "March of the penguins: it"),
        ("Nov", "Nov"),
    ],
)
def test_times_of_syslog_in_a_pattern(text: str, value: Any) -> None:
    row = own(r"<(?P<Time>[^>]*)> (?P<text>.*)")
    (record,) = Renderer(row, lambda: NOVEMBER).rendered([f"<{text}> x".encode()])
    assert json.loads(record) == {"Time": value, "text": "x"}


def test_a_pattern_that_fits_nothing_in_a_longer_file_is_an_error(tmp_path: Path) -> None:
    """It may be meant for few lines, so it is looked for behind the first 64 KiB, too, and to the last line."""
    path = tmp_path / "a.log"
    path.write_text("nothing of that kind stands here\n" * 3000)
    with pytest.raises(NotALog, match=r"none of its first 3,000 lines is as the pattern says"):
        jitdb.open(path, format="(?P<found>X+)", indexes="memory")
    path.write_text("nothing of that kind stands here\n" * 3000 + "XX")
    with jitdb.open(path, format="(?P<found>X+)", indexes="memory") as db:
        assert db.count('found == "XX"') == 1


@pytest.mark.parametrize("name", [row.name for row in FORMATS if row.spans])
def test_lines_of_records_without_their_first_ones_are_of_no_format(name: str) -> None:
    """`INFO: up` stands in records of java.util.logging, and alone in those of many other programs."""
    lines = SAMPLES[name][0].split(b"\n")
    row = BY_NAME[name]
    assert recognised(lines * 3, [row]) == row
    assert recognised(lines[1:] * 8, [row]) is None


@pytest.mark.parametrize("count", [1, 8, 60])
def test_a_record_among_many_lines_that_might_stand_in_some_is_too_few(count: int) -> None:
    lines = [b"INFO: up", b"SEVERE: no"] * count
    assert recognised([*lines, *SAMPLES["jul"][0].split(b"\n")]) == BY_NAME["levels"]


@pytest.mark.parametrize("text", ["INFO: up\nERROR: x\n", "INFO:     up\n", "WARNING: full\nINFO: ok\nSEVERE: no\n"])
def test_lines_of_uvicorn(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    with jitdb.open(path) as db:
        assert db.count() == text.count("\n")
        assert db.count("level >= 'warn'") == text.count("ERROR") + text.count("WARNING") + text.count("SEVERE")


@pytest.mark.parametrize(("text", "name"), [("h1 app: x", "syslog"), ("ERROR x", "text")])
def test_a_time_without_a_year_may_have_a_fraction(text: str, name: str) -> None:
    row = recognised([line := f"Nov 20 14:03:11.123456 {text}".encode()])
    assert row == BY_NAME[name]
    (record,) = Renderer(row, lambda: NOVEMBER).rendered([line])
    assert "2026-11-20T14:03:11.123456" in json.loads(record).values()


OF_ONE_LINE = [row.name for row in FORMATS[:-1] if row.joins and not row.spans and b"\n" not in SAMPLES[row.name][0]]


@pytest.mark.parametrize("name", OF_ONE_LINE)
def test_a_long_trace_near_the_top(name: str) -> None:
    """It is most of the lines, and none of a record's own: the format is that of the others."""
    line, _ = SAMPLES[name]
    trace = [b"java.lang.IllegalStateException: no room", *(b"\tat a.B.c(B.java:%d)" % number for number in range(90))]
    trace += [b"Caused by: java.lang.Error: gone", *(b"    at a.B.c(B.java:%d)" % number for number in range(90))]
    for before in (1, 2, 5):
        assert recognised([*[line] * before, *trace, *[line] * 9]) == BY_NAME[name]


@pytest.mark.parametrize("name", ["text", "syslog", "cri", "docker", "prefixed", "csvlog"])
def test_lines_that_belong_to_a_record_are_counted_as_one_by_one(name: str) -> None:
    """Those of many lines at once are those that each line and the one before it tell."""
    renderer = Renderer(BY_NAME[name], lambda: NOVEMBER)
    own = {
        "text": b"2026-11-20 13:00:00 up", "syslog": b"Nov 20 13:00:00 web app[7]: up",
        "cri": b"2026-11-20T13:00:00Z stdout F up",
        "docker": b'{"log":"up\\n","stream":"stdout","time":"2026-11-20T13:00:00Z"}',
        "prefixed": b"web-1  | up", "csvlog": b'2026-11-20 06:10:01.123 UTC,,,17,,"6b",17,,,,17,,,,,,,17,,,17,,"x"',
    }[name]  # fmt: skip
    others = [b"", b"\r", b"  at x", b"up", b'{"a": 1}', b"Traceback (most recent call last):", b"a=1 b=2", own + b"\r"]

    @settings(max_examples=tries(150, 3000), deadline=None)
    @given(st.lists(st.sampled_from([own, *others, *others]), min_size=2, max_size=12))
    def check(lines: list[bytes]) -> None:
        data = np.frombuffer(b"\n".join(lines) + bytes(64), np.uint8)
        ends = np.cumsum([len(line) + 1 for line in lines]) - 1
        starts = ends - [len(line) for line in lines]
        places = list(zip(starts.tolist(), ends.tolist(), strict=True))
        begun = [renderer.begins(data, *pair) for pair in pairwise(places)]
        found = renderer.going_on(data, places[0], starts[1:], ends[1:])
        assert found == [*begun, True].index(True)

    check()


def test_accesses_of_an_ingress_of_kubernetes(tmp_path: Path) -> None:
    """Fields as ingress-nginx documents its log format; several upstreams are lists, and text."""
    access = '10.1.2.3 - - [20/Nov/2026:13:00:0{} +0000] "GET / HTTP/1.1" 502 157 "-" "curl/8.0"'
    behind = [
        " 80 0.250 [shop-80] [] 10.0.0.7:80, 10.0.0.8:80 0, 157 0.100, 0.150 502, 502 3a5f3ec4ad8bb8a0",
        " 80 0.004 [shop-80] [] 10.0.0.7:80 12 0.003 200 3a5f3ec4ad8bb8a1", " 0.5", "",
    ]  # fmt: skip
    names = "request_length request_time proxy_upstream_name upstream_addr upstream_response_time upstream_status more"
    wanted = [
        [80, 0.25, "shop-80", "10.0.0.7:80, 10.0.0.8:80", "0.100, 0.150", "502, 502", None],
        [80, 0.004, "shop-80", "10.0.0.7:80", 0.003, 200, None], [None] * 6 + ["0.5"], [None] * 7,
    ]  # fmt: skip
    for name, head in (("access.log", ""), ("0.log", "2026-11-20T13:00:00.1Z stdout F ")):
        path = tmp_path / name
        path.write_text("".join(f"{head}{access.format(n)}{more}\n" for n, more in enumerate(behind)))
        with jitdb.open(path, indexes="memory") as db:
            records = db.query().sort_by_arrival().all()
            assert [[record.get(key) for key in names.split()] for record in records] == wanted
            assert db.count("upstream_status == 200 and request_time < 0.1") == 1


UP = "2026-11-20T14:03:11Z INFO up"
OF_ERROR = {"level": "ERROR", "text": "ERROR: no route"}


@pytest.mark.parametrize(
    ("first", "line", "expected"),
    [
        (UP, "ERROR: no route", OF_ERROR),
        (UP, "[ERROR] no route", {"level": "ERROR", "text": "[ERROR] no route"}),
        (UP, "ERROR:root:no route", {"level": "ERROR", "text": "ERROR:root:no route"}),
        (UP, "ERROR[11-20|14:03:12.000] no", {"level": "ERROR", "text": "ERROR[11-20|14:03:12.000] no"}),
        (UP, "app: ERROR no route", {"level": "ERROR", "text": "app: ERROR no route"}),
        (UP, "14:03:12 [main] ERROR x - no", {"clock": "14:03:12", "level": "ERROR", "text": "[main] ERROR x - no"}),
        (
            UP,
            "E1120 14:03:12.000  1 x.go:7] ERROR no",
            {"level": "E", "time": "2026-11-20T14:03:12.000", "threadid": 1, "file": "x.go", "line": 7,
             "msg": "ERROR no"},
        ),
        ("Nov 20 14:03:11 h app[1]: up", "ERROR: no route", OF_ERROR),
        ("Nov 20 14:03:11 h app[1]: up", "app: ERROR: no", {"level": "ERROR", "text": "app: ERROR: no"}),
        ("I1120 14:03:11.123456       1 x.go:1] up", "error: no", {"level": "error", "text": "error: no"}),
        ("time=2026-11-20T14:03:11Z level=info msg=up", "ERROR: no route", OF_ERROR),
        ("info: up", "fatal: no", {"level": "fatal", "text": "fatal: no"}),
        (UP, "crit: no", {"level": "crit", "text": "crit: no"}),
        ("info: up", "emergency: no", {"level": "emergency", "text": "emergency: no"}),
        ("INFO[0000] up", "ERRO[0003] no   a=1", {"level": "ERRO", "text": "ERRO[0003] no   a=1"}),
        ("INFO[0000] up", "PANI[0003] no", {"level": "PANI", "text": "PANI[0003] no"}),
        ("[ INFO ] up", "[ ERROR ] no", {"level": "ERROR", "text": "[ ERROR ] no"}),
        ("INFO [x] up", "ERROR[11-20|14:03:12] x", {"level": "ERROR", "text": "ERROR[11-20|14:03:12] x"}),
        ("1234:M 20 Nov 2026 14:03:11.123 * up", "ERROR: no route", OF_ERROR),
    ],
)  # fmt: skip
def test_a_line_that_begins_with_a_level_is_no_part_of_the_one_before(
    tmp_path: Path, first: str, line: str, expected: dict[str, Any]
) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{first}\n{line}\n  at x\n{first}\n")
    os.utime(path, (NOVEMBER // 10**9, NOVEMBER // 10**9))
    with jitdb.open(path, indexes="memory") as db:
        before, found, after = db.all(sort_by="arrival")
        (text,) = roles_of([expected]).message or ()
        assert found == {**expected, text: f"{expected[text]}\n  at x"}
        assert before == after
        assert db.count('level >= "error"') == 1


@pytest.mark.parametrize(
    "line",
    [
        "  ERROR: no", "Error: no", "ERRORS: 5", "ERROR", "org.postgresql.util.PSQLException: ERROR: no",
        "ValueError: ERROR 7", "Caused by: x: ERROR: no", "app: ERROR", "Traceback (most recent call last):",
    ],
)  # fmt: skip
def test_a_line_of_a_stack_trace_is_a_part_of_the_one_before(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{UP}\n{line}\n{UP}\n")
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == 2


def test_a_level_on_the_second_line_of_a_record_of_java(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("Nov 20, 2026 2:03:11 PM com.x.App main\nSEVERE: no route\n" * 3)
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == db.count('level >= "error"') == 3


def test_each_level_of_winston_begins_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    words = (
        "info error fatal crit critical emerg emergency alert panic warn warning notice debug trace verbose silly http"
    )
    path.write_text("".join(f"{word}: x\n" for word in words.split()))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == len(words.split())
        assert db.count('level >= "error"') == 8
        assert db.count("level is absent") == 2


@pytest.mark.parametrize(
    ("time", "read"),
    [
        ("Fri 2026-11-20 13:00:00 UTC", "2026-11-20 13:00:00 UTC"),
        ("Fri 2026-11-20 14:00:00 CET", "2026-11-20 14:00:00 CET"),
        ("Fri 2026-11-20 16:00:00 +03", "2026-11-20 16:00:00 +03"),
        ("2026-11-20T14:00:00+0100", "2026-11-20T14:00:00+0100"),
        ("2026-11-20T14:00:00.123456+01:00", "2026-11-20T14:00:00.123456+01:00"),
        ("1795179600.123456", "1795179600.123456"),
    ],
)
def test_text_of_journalctl(tmp_path: Path, time: str, read: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{time} web1 app[812]: error: no\n{time} web1 kernel: up\n{time} web1 a.service[7]: up\n" * 9)
    with jitdb.open(path, indexes="memory") as db:
        found = db.all(sort_by="arrival")[0]
        head = {"TIMESTAMP": read, "HOSTNAME": "web1", "TAG": "app", "PID": 812}
        assert found == {**head, "level": "error", "CONTENT": "error: no"}
        assert db.count('TAG == "kernel"') == db.count('TAG == "a.service"') == 9
        assert db.query().since("2026-11-20T12:59:00Z").until("2026-11-20T13:01:00Z").count() == 27


@pytest.mark.parametrize("word", ["Warn", "error", "INFO"])
def test_a_level_is_no_host(tmp_path: Path, word: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"2026-11-20T13:00:00Z {word} MyApp: handler\n" * 9)
    with jitdb.open(path, indexes="memory") as db:
        assert db.all()[0]["text"] == f"{word} MyApp: handler"
