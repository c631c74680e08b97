"""Formats whose records are several lines: slow queries of MySQL, Postgres' csvlog, java.util.logging, apt's history.
Times at the beginnings of lines."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log.lines.walking import walked
from thoroughness import tries

import jitdb
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.files.file import LineFile
from jitdb.log.lines.form import LineForm, line_form
from jitdb.log.lines.formats.databases import _CSVLOG
from jitdb.log.lines.line_log import LineLog

BANNER = "/usr/sbin/mysqld, Version: 8.0.36 (MySQL). started with:\nTcp port: 3306  Unix socket: /x\nTime  Id Command"
USERS = ["root", "a b", ""]
QUERIES = [
    "select 1;",
    "select a,\n b\nfrom t where a=1 and b=2;",
    "a=1 b=2;",
    "# administrator command: Quit;",
    '{"a": 1};',
]


@st.composite
def slow_query(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """The lines of a slow query, and its record."""
    lines, record = list[str](), dict[str, Any]()
    if draw(st.booleans()):
        said, time = draw(
            st.sampled_from([
                ("2026-11-20T06:10:01.123456Z", "2026-11-20T06:10:01.123456Z"),
                ("261120  6:10:01", "2026-11-20T06:10:01"),
                ("261120 16:10:01", "2026-11-20T16:10:01"),
            ])
        )  # fmt: skip
        lines.append(f"# Time: {said}")
        record["time"] = time
    user = draw(st.sampled_from(USERS))
    is_maria = draw(st.booleans())
    lines.append(f"# User@Host: {user}[x] @ db [10.0.0.1]" + ("" if is_maria else "  Id:    17"))
    record |= {"user": user, "host": "db", "ip": "10.0.0.1"}
    if is_maria:
        lines.append("# Thread_id: 17  Schema: d  QC_hit: No")
        record |= {"Thread_id": 17, "Schema": "d", "QC_hit": "No"}
    else:
        record["Id"] = 17
    took = draw(st.sampled_from(["0.027177", "12.5"]))
    lines.append(f"# Query_time: {took}  Lock_time: 0.5  Rows_sent: 2  Rows_examined: 6")
    record |= {"Query_time": float(took), "Lock_time": 0.5, "Rows_sent": 2, "Rows_examined": 6}
    if is_maria:
        lines.append("# Rows_affected: 0  Bytes_sent: 11")
    if draw(st.booleans()):
        lines.append("use `d`;")
        record["db"] = "`d`"
    query = draw(st.sampled_from(QUERIES))
    lines += ["SET timestamp=1795155001;", query]
    return "\n".join(lines), {**record, "timestamp": 1795155001, "query": query}


def test_slow_queries(tmp_path: Path) -> None:
    banner = st.just((BANNER, dict[str, Any]()))
    check(tmp_path, "mysqlslow", st.one_of(slow_query(), slow_query(), slow_query(), banner))


ROW = '2026-11-20 06:10:01.123 UTC,"ada","shop",17,"[local]",6b0b39.286a,1,"SELECT",2026-11-20 06:00:00 UTC,3/5,0,LOG'
VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        [
            "x",
            "a b",
            'says "no"',
            "two\nlines",
            "a,b",
            '""',
            "2026-11-20 06:10:01",
            "level=error n=5",
            ROW,
            f"insert into x values ('\n{ROW}\n')",
            "2026-11-20 06:10:01.123 UTC,\n2026-11-20 06:10:01.123 UTC,,",
        ]
    ),
    st.text(st.sampled_from('a,"\n é'), max_size=8),
)


_FIRST = ("user_name", "database_name", "connection_from")  # which stand in the first line of a row


@st.composite
def row(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A row of csvlog, as Postgres quotes it: texts are in quotes, numbers and what is absent are not."""
    time = "2026-11-20 06:10:01.123 UTC"
    counts = {
        "process_id",
        "session_line_num",
        "transaction_id",
        "internal_query_pos",
        "query_pos",
        "leader_pid",
        "query_id",
    }
    record: dict[str, Any] = {"log_time": time}
    parts = [time]
    for name in _CSVLOG[: draw(st.sampled_from([22, 23, 25]))]:
        value = 17 if name in counts else "6b0b39.286a" if name == "session_id" else draw(VALUES)
        if value and name in _FIRST:
            value = value.replace("\n", " ")
        if value is not None:
            record[name] = value
        parts.append("" if value is None else str(value) if name in counts else '"' + value.replace('"', '""') + '"')
    return ",".join(parts), record


def test_rows_of_postgres(tmp_path: Path) -> None:
    check(tmp_path, "csvlog", row())


@st.composite
def of_java(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    said, time = draw(
        st.sampled_from([
            ("Nov 20, 2026 2:10:01 PM", "2026-11-20T14:10:01"), ("Nov 2, 2026 12:10:01 AM", "2026-11-02T00:10:01"),
            ("Nov 20, 2026 12:10:01\u202fPM", "2026-11-20T12:10:01"),
        ])
    )  # fmt: skip
    message = draw(
        st.sampled_from(["up", "two\nlines", "no\njava.io.IOException: x\n\tat A.b(A.java:1)", "", "a=1 then"])
    )
    level = draw(st.sampled_from(["INFO", "SEVERE", "FINEST"]))
    record = {"time": time, "logger": "com.x.App", "method": "main", "level": level, "message": message}
    return f"{said} com.x.App main\n{level}: {message}", record


def test_java_util_logging(tmp_path: Path) -> None:
    check(tmp_path, "jul", of_java())


@st.composite
def of_apt(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    lines, record = ["Start-Date: 2026-11-20  06:10:01"], dict[str, Any](time="2026-11-20T06:10:01")
    for name in ("Commandline", "Requested-By", "Install", "Upgrade", "Remove", "Purge"):
        if draw(st.booleans()):
            value = draw(st.sampled_from(["apt-get install x", "x:amd64 (1.0, 1.1), y:amd64 (2)", "ada (1000)"]))
            lines.append(f"{name}: {value}")
            record[name.replace("-", "_")] = value
    lines.append("End-Date: 2026-11-20  06:10:09")
    return "\n".join(lines) + "\n", {**record, "end": "2026-11-20T06:10:09"}


def test_empty_ends_of_rows_between_returns_and_newlines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    line = '2026-11-20 06:10:01.123 UTC,,,17,,"6b0b39.286a",17,,,,17,,,,,,,17,,,17,,'
    path.write_bytes(f'{line}\r\n{line}\r\n{line}"x"\r\n'.encode())
    os.utime(path, (1_795_200_000, 1_795_200_000))
    with LineLog(path, folder="memory", form=LineForm(format="csvlog")) as log:
        found = [value for _, value in walked(log, 13)]
    assert [value.get("application_name") for value in found] == [None, None, "x"]


def test_history_of_apt(tmp_path: Path) -> None:
    check(tmp_path, "apt", of_apt())


def check(tmp_path: Path, name: str, records: st.SearchStrategy[tuple[str, dict[str, Any]]]) -> None:
    """Whatever way through a file is taken, its records are these; and its format is recognised."""
    path = tmp_path / "a.log"

    @settings(max_examples=tries(60, 500), deadline=None)
    @given(st.lists(records, min_size=1, max_size=8), st.sampled_from(["\n", "\n", "\r\n"]))
    def all_ways(parts: list[tuple[str, dict[str, Any]]], newline: str) -> None:
        path.write_bytes("".join(f"{text}\n" for text, _ in parts).replace("\n", newline).encode())
        os.utime(path, (1_795_200_000, 1_795_200_000))  # nobody waits whether more of the last record comes
        wanted = [{key: _with(value, newline) for key, value in record.items()} for _, record in parts if record]
        with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
            assert [record.value for record in log.stream()] == wanted
        for size in (13, 1 << 16):
            with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
                assert [value for _, value in walked(log, size) if value is not None] == wanted
        if any(set(record) > {"text"} for _, record in parts):
            found = form_at(path)
            assert found is not None
            assert found.format == name

    all_ways()


def _with(value: Any, newline: str) -> Any:
    """Texts of several lines keep their newlines; blanks and newlines at their end are the file's."""
    return value.replace("\n", newline) if isinstance(value, str) else value


def test_a_text_of_a_row_may_look_like_anything(tmp_path: Path) -> None:
    path = tmp_path / "postgresql.csv"  # whose name says that it has a header
    texts = ["2026-11-20 06:10:01 x", "a=1 b=2\nc=3 d=4", '{"a": 1}\n{"b": 2}', "x" * 200_000 + '"\n' * 1000]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for text in texts:
        cells = ["x"] * 22
        cells[2], cells[4], cells[5], cells[12] = "17", "6b0b39.286a", "1", text
        out.write("2026-11-20 06:10:01.123 CET,")
        writer.writerow(cells)
    path.write_text(out.getvalue())
    with jitdb.open(path, indexes="memory") as db:
        assert [record["message"] for record in db.all()] == texts
        assert db.query().since("2026-11-20T05:10").until("2026-11-20T05:11").count() == 4  # CET is an hour ahead


@pytest.mark.parametrize("rest", [',"x"' * 30, ',"cut\nmore', ',""', "", ',LOG,"a\nb"c'])
def test_a_row_that_does_not_fit_loses_nothing(tmp_path: Path, rest: str) -> None:
    path, head = tmp_path / "a.log", '"a","b",17,"h:1",6b.1,1'
    path.write_text(f"2026-11-20 06:10:01.123 UTC,{head}{rest}\n" * 2)
    with jitdb.open(path, format="csvlog", indexes="memory") as db:
        assert db.all() == [{"log_time": "2026-11-20 06:10:01.123 UTC", "text": f"{head}{rest}"}] * 2


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("20.11.2026 14:03:11.5 *ERROR* [main] x", "2026-11-20T14:03:11.5"),
        ("11/20/2026 02:03:11 PM|ERROR|x", "2026-11-20T14:03:11"),
        ("11/20/2026 12:03:11 AM ERROR x", "2026-11-20T00:03:11"),
        ("1795155001: ERROR x", 1795155001),
        ("[1795155001] ERROR x", 1795155001),
        ("2026-11-20T14:03:11.123Z query-errors: ERROR: x", "2026-11-20T14:03:11.123Z"),  # no host of syslog
        ("ERROR 2026-11-20 14:03:11,123 77 x", "2026-11-20 14:03:11,123"),
    ],
)
def test_times_at_the_beginning_of_a_line(tmp_path: Path, line: str, time: Any) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{line}\n" * 9)
    with jitdb.open(path, indexes="memory") as db:
        record = db.all()[0]
        assert (record["time"], record["level"]) == (time, "ERROR")
        assert db.query().since("2026-11-20").count() == 9
        assert db.count('level >= "error"') == 9


def test_a_date_is_no_time_unless_all_of_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    odd = [
        "20.11.26 14:03:11",
        "11/20/2026 14:03:11",
        "11/20/2026 2:03 PM",
        "Nov 20, 2026 14:03",
        "99.99.9999",
        "261120 14.03.11",
    ]
    path.write_text("".join(f"{text} | x\n" for text in odd))
    with jitdb.open(path, format=r"(?P<time>[^|]*[^| ]) ?\| (?P<text>.*)", indexes="memory") as db:
        assert [record["time"] for record in db.all()] == odd


def test_connections_of_haproxy(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.log"
    http = '10.0.0.1:5 [20/Nov/2026:06:10:01.655] fe be/s1 0/0/1/2/3 200 125 - - ---- 1/1/0/0/0 0/0 "GET /h HTTP/1.1"'
    tcp = "10.0.0.1:6 [20/Nov/2026:06:10:02.655] tc tb/s1 1/0/+5007 150 sD 1/1/0/0/0 0/0"
    path.write_text(f"[NOTICE]   (9740) : New worker forked\n{tcp}\n{http}\n" * 4)
    with jitdb.open(path, indexes="memory") as db:
        assert db.count("status_code == 200") == 4
        assert (
            db.query("Tt > 5000").select("client_port", "termination_state", "bytes_read").all()
            == [{"client_port": 6, "termination_state": "sD", "bytes_read": 150}] * 4
        )


def test_haproxy_among_other_programs_of_syslog(tmp_path: Path) -> None:
    """Whatever the first lines are most of, the others keep their tags; of a syslog, a note says who has the fields."""
    http = '10.0.0.1:5 [20/Nov/2026:06:10:01.655] fe be/s1 0/0/1/2/3 503 125 - - ---- 1/1/0/0/0 0/0 "GET /h HTTP/1.1"'
    ours = f"Nov 20 06:10:01 lb haproxy[7]: {http}\n"
    others = "Nov 20 06:10:02 lb dovecot: up\nNov 20 06:10:02 lb sshd[9]: Failed\nNov 20 06:10:02 lb backup: ok\n"
    (tmp_path / "a.log").write_text(ours * 9 + others)
    (tmp_path / "b.log").write_text(others * 9 + ours * 9)
    for name, format in (("a", None), ("b", "haproxy")):
        with jitdb.open(tmp_path / f"{name}.log", indexes="memory", format=format) as db:
            tags = dict(db.value_counts("TAG").rows)
            assert tags["haproxy"] == 9
            assert tags["dovecot"] == tags["sshd"] == tags["backup"] == (1 if name == "a" else 9)
            assert db.count("status_code == 503 and Ta == 3") == 9
    with jitdb.open(tmp_path / "b.log", indexes="memory") as db:
        db.warns_of_questions = False
        for question in ("Ta > 1", "status_code == 503"):
            name = question.split()[0]
            assert db.count(question) == 0
            (told,) = db.hints(question)
            assert told.endswith(f"`{name}`: of what HAProxy says, --log-format haproxy gives it")


@pytest.mark.parametrize("more", ["0.005", "rt=0.005 id=ab", "12"])
def test_what_stands_behind_an_access_is_more(tmp_path: Path, more: str) -> None:
    path = tmp_path / "access.log"
    path.write_text(f'10.0.0.1 - - [20/Nov/2026:06:10:01 +0000] "GET / HTTP/1.1" 503 5 {more}\n' * 9)
    with jitdb.open(path, indexes="memory") as db:
        assert db.count("status >= 500") == 9
        assert db.all()[0]["more"] == more


def test_a_record_of_many_lines_is_read_in_large_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at a time, each would copy all that was read before: 16 MB took minutes."""
    path = tmp_path / "a.log"
    trace = b"\n".join(b'  File "a.py", line %d, in f' % number for number in range(200_000))
    whole = b"2026-11-20 15:00:00 ERROR no\n" + trace
    path.write_bytes(whole + b"\n2026-11-20 15:00:01 INFO yes\n")
    reads: list[int] = []
    real, real_file = LineLog.read_blocks, LineFile.read

    def blocks(self: LineLog, start: int, stop: int, buffer: Any) -> int:
        reads.append(stop - start)
        return real(self, start, stop, buffer)

    def bytes_of(self: LineFile, size: int, offset: int) -> bytes:
        reads.append(size)
        return real_file(self, size, offset)

    with LineLog(path, folder="memory", form=form_at(path)) as log:
        monkeypatch.setattr(LineLog, "read_blocks", blocks)
        monkeypatch.setattr(LineFile, "read", bytes_of)
        assert [record["text"].splitlines()[-1] for _, record in walked(log, 1 << 22)][:1] == [
            '  File "a.py", line 199999, in f'
        ]
        assert len(reads) < 40
        reads.clear()
        assert log.get_many_text([0]) == [whole]
        assert len(reads) < 200


@pytest.mark.parametrize(
    ("program", "format"), [("nginx", "combined"), ("flask", "runserver"), ("etcd", "capnslog"), ("pino", "json")]
)
def test_a_program_names_the_format_that_it_writes(program: str, format: str) -> None:
    assert line_form(given=program) == line_form(given=format)


@pytest.mark.parametrize("prefix", ["shop: ", "[worker-1] ", "api/v1 "])
def test_a_time_behind_what_a_program_of_go_puts_before_it(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "a.log").write_text(f"{prefix}2026/11/29 18:48:00 ERROR no\n{prefix}2026/11/29 18:48:01 up\n" * 4)
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.count("level >= 'error'") == 4
        assert db.query().since("2026-11-29T18:48:01").count() == 4
        assert db.value_counts("prefix").rows[0].value == prefix.strip("[]: ")


@pytest.mark.parametrize(
    "line", ["ERROR 2026/11/20 10:00:00 a", "[ERROR] 2026/11/20 10:00:00 a", "[2026-11-20 10:00:00] shop: ERROR a"]
)
def test_a_level_is_found_beside_a_prefix(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.log").write_text(f"{line}\n" * 4)
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.count("level >= 'error'") == 4


def test_seconds_before_a_level(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("1795972091.964297 INFO up\n1795972092.964297 ERROR no\n" * 4)
    with jitdb.open(tmp_path / "a.log", indexes="memory") as db:
        assert db.count("level >= 'error'") == 4
        assert db.query().since("2026-11-29T17:08:12").count() == 4


def test_a_year_of_two_digits_is_first_where_it_may_be_one(tmp_path: Path) -> None:
    given = r"\[(?P<time>[^\]]+)\] (?P<text>.*)"
    for day, time in (("26/11/02", "2026-11-02T17:12:28"), ("11/02/26", "11/02/26 17:12:28")):
        (tmp_path / "a.log").write_text(f"[{day} 17:12:28] up\n" * 4)
        with jitdb.open(tmp_path / "a.log", indexes="memory", format=given) as db:
            assert db.all()[0]["time"] == time


def test_the_level_and_the_time_of_loguru(tmp_path: Path) -> None:
    level = {"icon": "x", "name": "ERROR", "no": 40}
    record = {"level": level, "message": "no", "time": {"repr": "x", "timestamp": 1795972091.9}}
    (tmp_path / "a.json").write_text(json.dumps({"text": "no", "record": record}) + "\n")
    with jitdb.open(tmp_path / "a.json", indexes="memory") as db:
        assert db.times.paths == (("record", "time", "timestamp"),)
        assert db.query("record.level.name >= 'error'").since("2026-11-29").count() == 1
        db.warns_of_questions = False
        assert db.count("level >= 'error'") == 0
        assert 'did you mean `record.level.name >= "error"`?' in db.hints("level >= 'error'")[0]
