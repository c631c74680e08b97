"""Lines of programs, whose times, levels and other fields are found where these write them."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_format_records import ACCESS, NOVEMBER, SAMPLES, TIME, records_in
from thoroughness import tries

import jitdb.operators
from jitdb.engine.roles import roles_of
from jitdb.errors import NotALog
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.formats.recognising import recognised
from jitdb.log.lines.formats.rendering import Renderer
from jitdb.log.lines.formats.table import BY_NAME, FORMATS


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
