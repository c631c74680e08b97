"""Text behind names of containers, and text beside JSON: which lines are one record, and what a question reaches."""

from __future__ import annotations

import json
import os
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log.lines.format_oracle import goes_on, with_body
from log.lines.walking import walked
from thoroughness import tries

import jitdb
from jitdb.engine.roles import found_roles
from jitdb.errors import MalformedWarning, NotALog, QuestionWarning
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.line_log import LineLog

NOVEMBER = 1_795_860_000  # 2026-11-28T10:00:00
TEXTS = [
    "2026-11-28 10:00:00 up", "2026-11-28 10:00:00   indented", "up", "  at x", "\tat a.b(C.java:1)", "",
    "Traceback (most recent call last):", "ValueError: x", "java.lang.Error: x", '{"a": 1}', '{"a": ', "goroutine 1:",
    "main.main()", "x | y", "web-1  | z",
]  # fmt: skip
NAMES = ["web-1  | ", "db-1   | ", "[pod/web-1/app] "]


def record(name: str, texts: list[str]) -> dict[str, Any]:
    """The record of these texts behind the name."""
    pod = re.fullmatch(r"\[pod/(.*)/(.*)\] ", name)
    found = {"pod": pod[1], "container": pod[2]} if pod else {"container": name.split()[0]} if name else {}
    if timed := re.match(r"(2026-11-28 10:00:00) ?(.*)$", texts[0]):
        found["time"], texts = timed[1], [timed[2], *texts[1:]]
    return with_body(found, "text", [text.encode() for text in texts])


def records_of(lines: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """A line belongs to the record of the line before it, if that is behind the same name and it goes on with it."""
    found = list[tuple[str, list[str]]]()
    for number, (name, text) in enumerate(lines):
        if number and lines[number - 1][0] == name and goes_on(lines[number - 1][1], text):
            found[-1][1].append(text)
        else:
            found.append((name, [text]))
    return [record(name, texts) for name, texts in found]


@pytest.mark.parametrize(("format", "names"), [("prefixed", NAMES), ("mixed", [""])])
def test_lines_of_several_containers(tmp_path: Path, format: str, names: list[str]) -> None:
    path = tmp_path / "a.log"

    @settings(max_examples=tries(150, 3000), deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(TEXTS)), min_size=1, max_size=12))
    def check(lines: list[tuple[str, str]]) -> None:
        lines = [line for line in lines if "".join(line)]  # a blank line is a part of the record before it, or none
        path.write_text("".join(f"{name}{text}\n" for name, text in lines))
        os.utime(path, (NOVEMBER, NOVEMBER))
        expected = records_of(lines)
        with LineLog(path, folder="memory", form=LineForm(format=format)) as log:
            assert [found.value for found in log.stream()] == expected
        for size in (13, 1 << 16):
            with LineLog(path, folder="memory", form=LineForm(format=format)) as log:
                assert [value for _, value in walked(log, size) if value is not None] == expected

    check()


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("web-1  | up", LineForm(format="prefixed")),
        ("\x1b[36mweb-1  | \x1b[0mup", LineForm(format="prefixed")),
        ("shop.1.k2@node7    | up", LineForm(format="prefixed")),
        ('web-1  | {"level": "error"}', LineForm(allow_prefix=True)),
        ('[pod/a/b] {"level": "error"}', LineForm(allow_prefix=True)),
        ("web | up", LineForm(format="plain")),
        ("INFO  | up", LineForm(format="levels")),
    ],
)
def test_what_is_text_of_containers(tmp_path: Path, line: str, form: LineForm) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{line}\n" * 9)
    assert form_at(path, any_text=True) == form


def test_text_of_one_container_beside_json_of_another(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text('web-1  | {"level":"error","n":1}\n' * 30 + "db-1   | FATAL: no room\n")
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('level >= "error"') == 31
        assert db.count('container == "web-1" and n == 1') == 30


@pytest.mark.parametrize(("most", "form"), [(100, "mixed"), (60, "plain")])
def test_json_behind_a_long_banner(tmp_path: Path, most: int, form: str) -> None:
    path = tmp_path / "a.log"
    path.write_text("a banner\n" * 70 + '{"level":"error"}\n' * most)
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == 70 + most
        assert db.count('level >= "error"') == (most if form == "mixed" else 0)
    found = form_at(path, any_text=True)
    assert found is not None
    assert found.format == form


def test_text_behind_json_is_told_with_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text('{"level":"info"}\n' * 100 + "Error: boom\n    at main.js:5\nERROR gone\n")
    with jitdb.open(path, indexes="memory") as db, pytest.warns(MalformedWarning, match="3 lines") as told:
        assert db.count('* contains "boom"') == 0
    assert all(name in remedy for warning in told if (remedy := str(warning.message.remedy)) for name in ["mixed"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with jitdb.open(path, indexes="memory", format="mixed") as db:
            assert db.count() == 102
            assert db.count('level == "info"') == 100
            assert db.count('level >= "error"') == 2
            assert [found.count for found in db.find("main.js")] == [1]


def test_text_beside_json_in_small_files_is_told(tmp_path: Path) -> None:
    for number in range(12):
        text = "npm ERR! boom\n\nnpm ERR! x\n" if number < 3 else ""
        (tmp_path / f"{number}.log").write_text('app: {"level":"info"}\n' * 100 + text)
    for _ in range(2):
        with jitdb.open_many(tmp_path) as logs, pytest.warns(MalformedWarning) as told:
            assert logs.count('level == "info"') == 1200
        said = [warning.message for warning in told if isinstance(warning.message, MalformedWarning)]
        assert sum(each.count for each in said) == 6  # a file that was written just now is asked alone
        assert all("without JSON" in each.reason for each in said)
        assert all("line 1" not in each.reason for each in said if each.path == str(tmp_path))  # they are of no file
    with jitdb.open_many(tmp_path, format="mixed") as logs:
        assert logs.count('* contains "boom"') == 3
        assert logs.count('level == "info"') == 1200


def test_queries_without_the_time_of_the_one_before(tmp_path: Path) -> None:
    """MariaDB leaves out a time that is that of the line before: a note has the command that writes it there."""
    begun = "mariadbd, Version: 10.11.19. started with:\nTcp port: 1  Unix socket: \nTime\t\t    Id Command\tArgument\n"
    asked = "".join(
        f"261128 {hour:2}:53:25\t    22 Connect\troot@localhost on test\n" + "\t\t    22 Query\tselect\n\t 1\n" * 5
        for hour in (9, 10)
    )
    path, timed = tmp_path / "general.log", tmp_path / "timed.log"
    path.write_text(begun + asked)
    with jitdb.open(path, indexes="memory") as db:
        since = db.query().since("2026-11-28T10:00:00Z")
        assert since.count() == 1
        (remark,) = (said for said in db.remarks(since.question) if "without a time" in said)
        assert "in `event_time`, 10 of 12 looked at" in remark
        assert found_roles(db.log).time == ("event_time",)
    command = remark[remark.index("awk") :].replace("FILE", str(path)).replace("TIMED", str(timed))
    subprocess.run(command, shell=True, check=True)
    with jitdb.open(timed, indexes="memory") as db:
        since = db.query().since("2026-11-28T10:00:00Z")
        assert (since.count(), db.count('argument == "select\\n\\t 1"'), db.count()) == (6, 10, 12)
        assert not any("without a time" in said for said in db.remarks(since.question))


def test_headers_are_no_records(tmp_path: Path) -> None:
    banner = "/usr/sbin/mysqld, Version: 8.0.36 (MySQL). started with:\nTcp port: 3306\nTime  Id Command"
    asked = [f"2026-11-28T10:00:00.{number:06}Z\t   12 Query\tselect {number}" for number in range(800)]
    asked[400:400] = [banner]  # it was started again
    path = tmp_path / "general.log"
    path.write_text("\n".join([banner, *asked]) + "\n")
    logcat = tmp_path / "logcat.txt"
    line = "11-28 10:00:00.123  1702  2395 E Tag: x\n"
    logcat.write_text(f"--------- beginning of main\n{line}--------- beginning of crash\n{line}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with jitdb.open(path, indexes="memory") as db:
            assert db.count() == 800
            assert [found["argument"] for found in db.all(sort_by="arrival")] == [f"select {n}" for n in range(800)]
            assert db.count('* contains "mysqld"') == 0
        with jitdb.open(logcat, indexes="memory") as db:
            assert db.count() == db.count('level >= "error" and text == "x"') == 2


FLASK = (
    " * Serving Flask app 'app'\n * Debug mode: on\n"
    "\x1b[31m\x1b[1mWARNING: This is a development server. Do not use it in a production deployment. Use a production "
    "WSGI server instead.\x1b[0m\n"
    " * Running on all addresses (0.0.0.0)\n * Running on http://127.0.0.1:5000\n"
    "\x1b[33mPress CTRL+C to quit\x1b[0m\n * Restarting with stat\n * Debugger is active!\n"
    " * Debugger PIN: 123-456-789\n"
)
DJANGO = (
    "Watching for file changes with StatReloader\nPerforming system checks...\n\n"
    "System check identified no issues (0 silenced).\n\nYou have 18 unapplied migration(s).\n"
    "Run 'python manage.py migrate' to apply them.\nNovember 28, 2026 - 10:00:00\n"
    "Django version 5.2.19, using settings 'shop.settings'\nStarting development server at http://127.0.0.1:8000/\n"
    "Quit the server with CONTROL-C.\n\nWARNING: This is a development server. Do not use it in production.\n"
    "For more information on production servers see: https://docs.djangoproject.com/\n"
)
PYTHON = "Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...\n"


@pytest.mark.parametrize(
    "banner",
    [FLASK, FLASK[FLASK.index("\x1b[31m") :], FLASK[FLASK.index("\x1b[31m") :].replace("\x1b[31m\x1b[1m", ""), DJANGO,
     DJANGO[DJANGO.index("Perf") :], PYTHON],
)  # fmt: skip
def test_what_development_servers_say_at_their_start_is_no_record(tmp_path: Path, banner: str) -> None:
    request = '127.0.0.1 - - [28/Nov/2026 10:00:00] "GET / HTTP/1.1" 200 -\n'
    failed = "[2026-11-28 10:00:01,300] ERROR in app: Exception on /boom [GET]\nTraceback (most recent call last):\n"
    failed += '  File "app.py", line 11, in boom\nKeyError: 5\n' + request.replace("200", "500")
    path = tmp_path / "server.log"
    for lines in (banner + request, (banner + failed) * 2 + request):
        path.write_text(lines)
        with jitdb.open(path, indexes="memory") as db:
            count = lines.count("GET / ")
            assert db.count("status >= 200") == count
            assert db.query().since("2026-11-28T10:00:00Z").count() == db.count() == count + lines.count("Exception")
            assert db.count("status == 500") == db.count('"KeyError: 5" in text') == lines.count("KeyError")


def test_what_is_printed_behind_a_banner_is_found(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    request = '127.0.0.1 - - [28/Nov/2026 10:00:00] "GET / HTTP/1.1" 200 -\n'
    path.write_text(f"{FLASK}a line that the program prints\n{request}")
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('* contains "program prints"') == 1
        assert db.count() == 2


def test_requests_to_uvicorn(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(
        "INFO:     Started server process [7]\n"
        'INFO:     127.0.0.1:5000 - "GET /a?b=1 HTTP/1.1" 500 Internal Server Error\n'
        'INFO:     127.0.0.1:5001 - "GET /a HTTP/1.1" 200 OK\n'
        'INFO:     127.0.0.1:5001 - "GET /a HTTP/1.1" 200 OK, said a client\n'
        "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n"
    )
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == 5
        assert db.all("status_code >= 500") == [{
            "level": "INFO", "client_addr": "127.0.0.1:5000", "request_line": "GET /a?b=1 HTTP/1.1", "method": "GET",
            "full_path": "/a?b=1", "http_version": "1.1", "status_code": 500,
        }]  # fmt: skip
        assert db.count("status_code is absent") == 3
        assert db.count('level >= "error"') == 1


def test_level_and_time_of_threads(tmp_path: Path) -> None:
    """A time in brackets is no thread."""
    path = tmp_path / "a.log"
    path.write_text("ERROR [2026-11-28 10:00:00,123] x\nINFO [main] 2026-11-28 10:00:00,123 y\n")
    with jitdb.open(path, indexes="memory") as db:
        first, second = (json.loads(json.dumps(found)) for found in db.all(sort_by="arrival"))
        assert first == {"level": "ERROR", "time": "2026-11-28 10:00:00,123", "text": "x"}
        assert second == {"level": "INFO", "thread": "main", "time": "2026-11-28 10:00:00,123", "text": "y"}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("p=12 u=root n=ansible | fatal: [web1]: FAILED! => {}", "fatal"),
        ("p=12 u=root n=ansible | notfatal: [web1]", None),
        ("p=12 u=root n=ansible | fatal: none", None),
        ("p=12 u=root n=ansible WARNING| fatal: [web1]: UNREACHABLE!", "WARNING"),
        ("TLS Error: TLS handshake failed", "Error"),
        ("203.0.113.9:1194 TLS Error: no", "Error"),
        ("it said: TLS Error no", None),
        ("a Error: no", None),
        ("TLS Errors: no", None),
        ("INFO TLS Error: no", "INFO"),
    ],
)
def test_levels_of_ansible_and_openvpn(tmp_path: Path, text: str, level: str | None) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"2026-11-28 10:00:00,123 {text}\n")
    with jitdb.open(path, indexes="memory") as db:
        (found,) = db.all()
        assert found.get("level") == level
        assert db.count('level >= "error"') == (level in ("fatal", "Error"))


def test_priorities_of_snort_are_levels_of_their_own(tmp_path: Path) -> None:
    line = "11/28-10:00:00.123456  [**] [1:1:1] x [**] [Priority: {}] {{TCP}} 10.0.0.1:80 -> 10.0.0.2:81\n"
    path = tmp_path / "alert_fast.txt"
    path.write_text("".join(line.format(number) for number in (1, 2, 3, 4, 5, 10, 0)))
    with jitdb.open(path, indexes="memory") as db:
        expected = ["error", "warning", "info", "info", None, None, None]
        assert [found.get("level") for found in db.all(sort_by="arrival")] == expected
        assert (db.count('level >= "error"'), db.count('level >= "warn"')) == (1, 2)
        with pytest.warns(QuestionWarning, match='did you mean `level >= "error"`'):
            db.count('priority >= "error"')


@pytest.mark.parametrize(
    ("asked", "meant"),
    [('level >= "error"', "level >= 3"), ('level > "notice"', "level > 1"), ('level < "warn"', "level < 2")],
)
def test_levels_of_nextcloud(tmp_path: Path, asked: str, meant: str) -> None:
    path = tmp_path / "nextcloud.log"
    record = {"reqId": "x", "remoteAddr": "10.0.0.1", "app": "core", "userAgent": "curl", "version": "28.0.1.1"}
    path.write_text("".join(json.dumps({**record, "level": number % 5}) + "\n" for number in range(10)))
    with jitdb.open(path, indexes="memory") as db, pytest.warns(QuestionWarning, match=f"did you mean `{meant}`"):
        db.count(asked)


def test_a_note_on_users_of_sshd_has_a_pattern_that_works(tmp_path: Path) -> None:
    path = tmp_path / "auth.log"
    path.write_text(
        "Nov 28 10:00:00 h sshd[12]: Failed password for invalid user admin from 203.0.113.9 port 4000 ssh2\n"
        "Nov 28 10:00:01 h sshd[12]: Accepted publickey for ada from 10.0.0.5 port 4001 ssh2: RSA SHA256:x\n"
        "Nov 28 10:00:02 h sshd-session[12]: Invalid user bob from 203.0.113.9 port 4002\n"
        "Nov 28 10:00:03 h su[13]: root opened a session for ada\n"
    )
    with jitdb.open(path, indexes="memory") as db, pytest.warns(QuestionWarning, match="--log-format") as told:
        assert db.count('user == "ada"') == 0
    pattern = re.search(r"--log-format '(.*)'", str(told[0].message))
    assert pattern is not None
    with jitdb.open(path, indexes="memory", format=pattern[1]) as db:
        assert db.count() == 4
        assert db.count('user == "ada" and ip == "10.0.0.5"') == 1
        assert {row.value: row.count for row in db.value_counts("user")} == {"ada": 1, "admin": 1, "bob": 1}
        assert db.query().since("2026-11-28T10:00:02").count() == 2


def test_a_first_row_of_times_of_day_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("10:00:00,web,up\n10:00:01,web,down\n")
    with pytest.raises(NotALog, match="--columns NAMES"):
        jitdb.open(path)


def test_a_name_that_fills_its_column(tmp_path: Path) -> None:
    """One blank stands behind the longest name."""
    path = tmp_path / "dev.log"
    path.write_text('web    | INFO up\nworker | {"level": "error", "n": 1}\nworker | ERROR down\n' * 4)
    with jitdb.open(path) as db:
        assert dict(db.value_counts("container")) == {"web": 4, "worker": 8}
        assert db.count('level >= "error"') == 8
