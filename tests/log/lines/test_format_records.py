"""Records of formats: each question of a file in chunks of any size against a reader of the whole text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

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
