"""Formats whose lines are as their documentation has them (documented.txt), asked as whole files, cut, and mixed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log.lines.documented import DOCUMENTED
from log.lines.format_oracle import scalar
from log.lines.test_format_records import SAMPLES
from log.lines.walking import walked
from thoroughness import tries

import jitdb
from jitdb.engine.roles import roles_of
from jitdb.log.lines.detection import form_at
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.formats.recognising import recognised
from jitdb.log.lines.formats.rendering import Renderer
from jitdb.log.lines.formats.table import BY_NAME, FORMATS
from jitdb.log.lines.line_log import LineLog
from jitdb.operators.nodes.levels import rank_of

NOVEMBER = 1_795_860_000  # 2026-11-28T10:00:00
#: Of each, how many of its records have a time, and a level from warn on; None: it has none.
KNOWN: dict[str, tuple[int, int | None]] = {
    "cisco": (10, 5), "cef": (4, 2), "leef": (3, 4), "runserver": (3, None), "mysqlgeneral": (3, None),
    "rails": (1, None), "railslogger": (2, 0), "weblogic": (3, 1), "fastlog": (4, 1), "unbound": (2, 1),
    "slashes": (2, 1), "websphere": (3, 1), "hdfs": (2, 1), "logcat": (3, 2), "lambda": (2, 2), "celery": (2, 1),
    "leveltime": (3, 2), "prefixed": (6, 4), "nlb": (2, None), "nats": (2, 1), "colours": (2, 2),
    "monit": (3, 2), "capnslog": (2, 1), "golog": (2, 1),
    "prosody": (3, 2), "puppet": (2, 1), "vmware": (2, 1), "icinga2": (3, 2), "journalctl": (3, 1),
    "gin": (2, 1), "aiohttp": (2, None), "hypercorn": (2, 1), "morgan": (0, 1), "phpfpm": (3, None),
    "gorouter": (2, None), "lograge": (3, 1), "tornado": (3, 2), "telegraf": (3, 2), "gluster": (2, 1),
    "syslogaccess": (3, 1), "postgres": (11, 4), "pgbouncer": (2, 1), "structlog": (5, 3),
}  # fmt: skip


def written(path: Path, lines: bytes) -> Path:
    path.write_bytes(lines)
    os.utime(path, (NOVEMBER, NOVEMBER))
    return path


@pytest.mark.parametrize("name", DOCUMENTED)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_file_is_recognised_and_each_record_is_read(tmp_path: Path, name: str, newline: bytes) -> None:
    expected = [record for _, record in DOCUMENTED[name]]
    path = written(tmp_path / "a.txt", b"".join(lines + b"\n" for lines, _ in DOCUMENTED[name]).replace(b"\n", newline))
    found = form_at(path)
    assert found is not None
    assert found.format == name
    for size in (13, 1 << 16):
        with LineLog(path, folder="memory", form=found) as log:
            assert [same(value) for _, value in walked(log, size) if value is not None] == expected
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == len(expected)
        assert list(map(same, db.all(sort_by="arrival"))) == expected


def same(record: Any) -> Any:
    """Texts of several lines keep the newlines of their file."""
    return {key: value.replace("\r", "") if isinstance(value, str) else value for key, value in record.items()}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_times_and_levels_are_known(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "a.txt", b"".join(lines + b"\n" for lines, _ in DOCUMENTED[name]))
    times, bad = KNOWN[name]
    with jitdb.open(path, indexes="memory") as db:
        assert db.query().since("2020-01-01").count() == times
        roles = roles_of(db.all(sort_by="arrival"))
        assert (roles.level is None) == (bad is None)
        if roles.level is not None:
            assert db.count(f'{roles.level[0]} >= "warn"') == bad


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_line_that_was_cut_says_nothing_else(name: str) -> None:
    """A value of it is the beginning of the whole line's, or it is no record of the format."""
    renderer = Renderer(BY_NAME[name], lambda: NOVEMBER * 10**9)
    texts = {"text", "CONTENT", "MESSAGE", "argument", "request", "TAG", "HOSTNAME", "seq_no", "uptime", "RefProc"}
    texts |= {"more", "trace", "event"}  # what is left
    texts |= {"dst_port"}  # of IPv6, whose address may have been cut
    for lines, whole in DOCUMENTED[name]:
        for record in filter(None, renderer.rendered([lines[:size] for size in range(1, len(lines))])):
            found = json.loads(record)
            for key in found.keys() & whole.keys() - texts:
                said, value = str(whole[key]), str(found[key]).rstrip("\\")
                # What is left of the next key.
                is_more = name in ("cef", "leef", "structlog") and value.startswith(f"{said} ")
                is_more |= found[key] is True  # of a pair that lacks its value
                assert said.startswith(value) or is_more, (lines, key, value)


@pytest.mark.parametrize("name", SAMPLES)
def test_no_format_takes_the_lines_of_another(name: str) -> None:
    """All lines of a sample, as often as a file may have them, and with blank lines and stack traces between."""
    if name not in {row.name for row in FORMATS}:
        return
    lines = SAMPLES[name][0].split(b"\n")
    for others in ([], [b""], [b"\tat x.Y.z(Y.java:1)"] if BY_NAME[name].joins else []):
        found = recognised([*lines, *others] * 9)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"2026-11-28 10:00:00 INFO done 100%: see CEF:0|a|b", "text"),
        (b"20261128 10:00:00 INFO up", "text"),
        (b"20261128T100000.123Z INFO up", "text"),
        (b"Sat Nov 28 2026 10:00:00 GMT+0000 (Coordinated Universal Time) INFO up", "text"),
        (b'10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /%41-5-X: HTTP/1.1" 200 5', "common"),
        (b'10.0.0.1 - - [28/Nov/2026:10:00:00 +0000] "GET /CEF:0|a|b|c|d|e|f| HTTP/1.1" 200 5 "-" "-"', "combined"),
        (b"I, [2026-11-28T10:00:00.123456 #7]  INFO -- : up", "text"),
        (b"2026-11-28 10:00:00 +0000 it failed (warning): no", "text"),
        (b"2026-11-28T10:00:00Z error (see [1] above) x", "text"),
        (b"Nov 28 10:00:00 the error was found", "text"),
        (b"Nov 28 10:00:00 h sshd[7]: Started session", "syslog"),
        (b'Nov 28 10:00:00 h nginx: [28/Nov/2026:10:00:00 +0000] "GET /', "syslog"),
        (b"I, [2026-11-28T10:00:00.123456 #7]  INFO -- : method=GET was sent", "text"),
        (b"2026-11-28T10:00:00Z E is! here", "text"),
        (b"Nov 28 10:00:00 h unbound: [7:0] info: x", "syslog"),
        (b'level=info msg="Started GET \\"/\\" for 1 at 2"', "logfmt"),
    ],
)
def test_what_only_mentions_a_format_is_none(line: bytes, name: str) -> None:
    found = recognised([line] * 9)
    assert found is not None
    assert found.name == name


def test_lines_of_syslog_among_those_of_devices(tmp_path: Path) -> None:
    """A collector writes what several hosts say into one file."""
    cisco = b"Nov 28 10:00:00 fw1 %ASA-3-302013: Built\n"
    other = b"<34>Nov 28 10:00:01 h su[12]: failed\n"
    for device, count in ((cisco, 2), (cisco.replace(b"%ASA-3-302013: Built", b"CEF:0|a|b|1|5|n|7|x=1"), 2)):
        with jitdb.open(written(tmp_path / f"{device[20:30].hex()}.txt", (device + other) * 2), indexes="memory") as db:
            assert db.count('TAG == "su" and PID == 12') == count
            assert db.query().since("2026-11-28T10:00:01Z").count() == count
            assert db.count('HOSTNAME == "fw1"') == count


LINES = 9


@pytest.mark.parametrize(
    ("days", "name", "time"),
    [
        (["28/11/2026 10:00:00"], "dayfirst", "2026-11-28T10:00:00"),
        (["11/28/2026 10:00:00"], "monthfirst", "2026-11-28T10:00:00"),
        (["05/11/2026 10:00:00"] * LINES + ["13/11/2026 10:00:00"], "dayfirst", "2026-11-05T10:00:00"),
        (["05/11/2026 10:00:00"] * 30_000 + ["05/13/2026 10:00:00"], "monthfirst", "2026-05-11T10:00:00"),
        (["05/11/2026 10:00:00"], "slashes", "2026-11-05T10:00:00"),
        (["28-11-2026 10:00:00"], "dayfirst", "2026-11-28T10:00:00"),
        (["05-11-2026 10:00:00"], "slashes", "2026-11-05T10:00:00"),
        (["11-05-2026 10:00:00"] * LINES + ["11-28-2026 10:00:00"], "monthfirst", "2026-11-05T10:00:00"),
        (["11-28-2026 10:00:00.123 +0100"], "monthfirst", "2026-11-28T10:00:00.123 +0100"),
        (["28/11/2026 10:00:00", "11/28/2026 10:00:00"], "slashes", "2026-11-28T10:00:00"),  # both: nothing is known
        (["[11/28/26 1:00:00:123 UTC] 00000017 A I"], "webspheremonth", "2026-11-28T01:00:00.123"),
        (["[28/11/26 1:00:00:123 UTC] 00000017 A I"], "websphereday", "2026-11-28T01:00:00.123"),
        (["[05.11.26 1:00:00:123 UTC] 00000017 A I"], "websphere", "2026-11-05T01:00:00.123"),  # dots: the day
        (["[05/11/26 1:00:00:123 UTC] 00000017 A I"], "websphere", "2026-05-11T01:00:00.123"),
    ],
)
def test_the_first_lines_tell_days_from_months_or_a_note_says_what_was_guessed(
    tmp_path: Path, days: list[str], name: str, time: str
) -> None:
    path = written(tmp_path / "a.txt", "".join(f"{day} x\n" for day in days).encode())
    found = form_at(path)
    assert found is not None
    assert found.format == name
    with jitdb.open(path, indexes="memory") as db:
        record = db.query().sort_by_arrival().first()
        assert record is not None
        assert record.get("time", record.get("timestamp")) == time
        asked = db.query().since("2026-01-01")
        assert asked.count() == sum(name != "slashes" or day[3:5] <= "12" for day in days)  # others are no times
        is_doubtful = any("first, as the first lines do not tell" in said for said in db.remarks(asked.question))
        assert is_doubtful == (name in ("slashes", "websphere"))


def test_days_that_a_caller_tells_from_months_are_certain(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"05/11/2026 10:00:00 x\n")
    with jitdb.open(path, format="monthfirst", indexes="memory") as db:
        asked = db.query().since("2026-05-11").until("2026-05-12")
        assert (asked.count(), db.remarks(asked.question, is_full=False)) == (
            1,
            ["times of `time` without a zone are read as UTC"],
        )


def test_small_files_of_a_folder_have_the_note_too(tmp_path: Path) -> None:
    for number in range(12):
        written(tmp_path / f"{number}.log", b"05/11/2026 10:00:00 x\n" * 3)
    with jitdb.open_many(tmp_path) as logs:
        asked = logs.query().since("2026-11-05")
        assert asked.count() == 36
        assert any("the day first, as" in said for said in logs.remarks(asked.question))


@pytest.mark.parametrize(
    ("line", "timestamp"),
    [
        ('date=2026-11-28 time=10:00:00 devname="F" tz="+0100" level="notice"', "2026-11-28T10:00:00+0100"),
        ('date=2026-11-28 time=10:00:00 tz="-08:00"', "2026-11-28T10:00:00-08:00"),
        ("date=2026-11-28 time=10:00:00", "2026-11-28T10:00:00"),
        ("date=2026-11-28 time=10:00:0", None),
        ("date=20261128 time=10:00:00 a=1", None),
        ("a=1 date=2026-11-28 time=10:00:00", None),
        ("date=2026-11-28 time=10:00:00 timestamp=5", 5),
        ('date=2026-11-28 time=10:00:00 tz="+', "2026-11-28T10:00:00"),
    ],
)
def test_a_day_and_a_time_of_day_make_a_timestamp(line: str, timestamp: Any) -> None:
    (record,) = Renderer(BY_NAME["logfmt"], lambda: 0).rendered([line.encode()])
    assert json.loads(record).get("timestamp") == timestamp


def test_times_of_osquery(tmp_path: Path) -> None:
    path = tmp_path / "osqueryd.results.log"
    path.write_text('{"name":"x","calendarTime":"Sat Nov 28 10:00:00 2026 UTC","action":"added"}\n' * 3)
    with jitdb.open(path, indexes="memory") as db:
        assert db.query().since("2026-11-28T10:00:00Z").until("2026-11-28T10:00:01Z").count() == 3


PIECES = [
    "a",
    "src",
    "x.y[0]",
    "=",
    "=",
    " ",
    " ",
    "  ",
    "\\=",
    "\\\\",
    "\\n",
    "\\",
    "|",
    '"',
    "é",
    "\t",
    "^",
    "7",
    "007",
    "?",
]


def pairs(parts: list[tuple[str, str]]) -> dict[str, Any]:
    """Keys and values as texts, in which a backslash takes the meaning from what follows."""
    meanings = {"n": "\n", "r": "\r", "=": "=", "|": "|", "\\": "\\"}
    record = {}
    for key, said in parts:
        value = said.rstrip(" \t")
        text = re.sub(r"\\([nr=|\\])", lambda found: meanings[found[1]], value)
        record[key] = scalar(value) if value == text else text
    return record


def of_cef(text: str) -> dict[str, Any]:
    keys = [*re.finditer(r"(?:^|(?<= ))([A-Za-z0-9_.\[\]-]+)=", text)]
    ends = [*(key.start() - 1 for key in keys[1:]), len(text)][: len(keys)]
    return pairs([(key[1], text[key.end() : end]) for key, end in zip(keys, ends, strict=True)])


def of_leef(text: str, between: str) -> dict[str, Any]:
    if between not in text:
        return of_cef(text)
    found = (re.match(r"([A-Za-z0-9_.\[\]-]+)=", part) for part in text.split(between))
    return pairs([(key[1], key.string[key.end() :]) for key in found if key])


@settings(max_examples=tries(300, 5000), deadline=None)
@example(" a=")
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_pairs_of_cef_and_leef_are_those_of_the_oracle(text: str) -> None:
    cef = {"cefVersion": "0", "deviceVendor": "v", "deviceProduct": "p", "deviceVersion": "1", "name": "n",
           "deviceEventClassId": "i", "deviceSeverity": 5}  # fmt: skip
    leef = {"leefVersion": "2.0", "vendor": "v", "product": "p", "version": "1", "eventID": "7"}
    lines = [f"CEF:0|v|p|1|i|n|5|{text}", *(f"LEEF:2.0|v|p|1|7|{mark}|{text}" for mark in ("^", "x5E", "0x09", ""))]
    wanted = [cef | of_cef(text), *(leef | of_leef(text, between) for between in "^^\t\t")]
    for line, expected in zip(lines, wanted, strict=True):
        (record,) = Renderer(BY_NAME[line.partition(":")[0].lower()], lambda: 0).rendered([line.encode()])
        assert json.loads(record) == expected


def test_colours_of_a_terminal_around_a_request(tmp_path: Path) -> None:
    line = b'127.0.0.1 - - [28/Nov/2026 10:00:00] "\x1b[31m\x1b[1mGET /x HTTP/1.1\x1b[0m\x1b[0m" 404 -\n'
    with jitdb.open(written(tmp_path / "a.txt", line * 3), indexes="memory") as db:
        assert db.count('status == 404 and request_uri == "/x" and request == "GET /x HTTP/1.1"') == 3


def coloured(record: dict[str, Any], logger: str = "") -> str:
    """A line as structlog writes it on a terminal."""
    pairs = " ".join(f"\x1b[36m{key}\x1b[0m=\x1b[35m{value}\x1b[0m" for key, value in record.items())
    name = f" [\x1b[0m\x1b[1m\x1b[34m{logger}\x1b[0m]\x1b[0m" if logger else ""
    level = "[\x1b[31m\x1b[1merror    \x1b[0m]"
    head = f"\x1b[2m2026-11-28 10:00:00\x1b[0m {level} \x1b[1mpaid                          \x1b[0m"
    return f"{head}{name} {pairs}" if pairs else f"{head}{name}"


SHOWN: dict[str, Any] = {
    "34": 34, "-1.5": -1.5, "True": True, "False": False, "None": None, "E1": "E1", "": "", "'34'": "34",
    "'a b'": "a b",
    "'a=b c=d'": "a=b c=d", '"it\'s"': "it's", r"'it\'s \"x\"'": 'it\'s "x"', r"'a\nb\t\\\x1b\x9f'": "a\nb\t\\\x1b\x9f",
    r"'\ud800'": r"\ud800", "[1, 2]": "[1, 2]", "{'a': 'b c=d'}": "{'a': 'b c=d'}",
    "<Foo object at 0x7f>": "<Foo object at 0x7f>",
    "a<b": "a<b", "(": "(", ")": ")", "é": "é", "10.0.0.1": "10.0.0.1", "'": "",
}  # fmt: skip


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("logger", ["", "shop.pay"])
def test_values_as_python_writes_them(shown: str, logger: str) -> None:
    pairs = {"a": "1", "value": shown} | ({} if shown == "'" else {"z": "x"})
    named = {"logger": logger} if logger else {}
    said = {"timestamp": "2026-11-28 10:00:00", "level": "error", "event": "paid", **named}
    line = coloured(pairs, logger)
    for each in (line, re.sub("\x1b\\[[0-9;]*m", "", line)):
        (record,) = Renderer(BY_NAME["structlog"], lambda: 0).rendered([each.encode()])
        assert json.loads(record) == said | {"a": 1, "value": SHOWN[shown]} | ({"z": "x"} if "z" in pairs else {})


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("up", {"event": "up"}),
        ("up in [cache]", {"event": "up in [cache]"}),
        ("retry n=3 failed", {"event": "retry n=3 failed"}),
        ("retry [x.y] n=3 s='a b=c'", {"event": "retry", "logger": "x.y", "n": 3, "s": "a b=c"}),
        ("retry n=3 failed               a=1", {"event": "retry n=3 failed", "a": 1}),
        ("retry  twice                   [x]", {"event": "retry  twice", "logger": "x"}),
        ("an event of more than thirty bytes [x]", {"event": "an event of more than thirty bytes", "logger": "x"}),
        ("an event of more than thirty bytes [x] y", {"event": "an event of more than thirty bytes [x] y"}),
        ("\x1b[1man event\x1b[0m and more", {"event": "\x1b[1man event\x1b[0m and more"}),
        ("\x1b[1man e=1 v\x1b[0m a=1", {"event": "an e=1 v", "a": 1}),
        ("", {"event": ""}),
    ],
)  # fmt: skip
def test_where_an_event_ends(shown: str, said: dict[str, Any]) -> None:
    (record,) = Renderer(BY_NAME["structlog"], lambda: 0).rendered([f"[info     ] {shown}".encode()])
    assert json.loads(record) == {"level": "info", **said}


def test_a_file_of_structlog_with_colours(tmp_path: Path) -> None:
    lines = [coloured({"ms": str(number), "code": "E1"}) for number in range(300, 309)] + [coloured({})]
    path = written(tmp_path / "a.txt", "".join(f"{line}\n" for line in lines).encode())
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('ms > 300 and code == "E1" and level >= "error" and event == "paid"') == 8
        assert db.query().since("2026-11-28T10:00:00Z").count() == 10


def test_a_request_of_rails_is_a_record_with_all_that_it_says(tmp_path: Path) -> None:
    lines, _ = DOCUMENTED["rails"][0]
    failed = lines.replace(b"Completed 200 OK", b"Completed 500 Internal Server Error")
    trace = b"\n\n  \nRuntimeError (boom):\n  \napp/controllers/posts_controller.rb:5:in `index'\n\n\n"
    path = written(tmp_path / "development.log", (lines + b"\n\n\n" + failed + trace) * 5)
    with jitdb.open(path, indexes="memory") as db:
        assert db.count() == 10
        assert db.count('status >= 500 and "RuntimeError (boom)" in text and controller == "PostsController"') == 5


@pytest.mark.parametrize(
    ("field", "values", "least", "count"),
    [
        ("deviceSeverity", [0, 3, 4, 6, 7, 8, 9, 10, 11], "warn", 6),
        ("deviceSeverity", ["Low", "Medium", "High", "Very-High", "Unknown", "9"], "error", 3),
        ("sev", [1, 5, 8, 10], "error", 2),
        ("severity", ["Low", "High", 3, 6], "error", 1),
        ("level", [".", "-", "*", "#"], "info", 3),
        ("level", [".", "-", "*", "#"], "notice", 2),
    ],
)
def test_scales_of_levels(tmp_path: Path, field: str, values: list[Any], least: str, count: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({field: value}) + "\n" for value in values))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count(f'{field} >= "{least}"') == count


def test_a_dash_where_no_level_is_makes_no_field_the_level() -> None:
    assert roles_of([{"s": "-", "severity": "-", "PRI": 13}]).level == ("PRI",)
    assert rank_of("-", ("level",)) == 2


def test_a_format_that_is_said_reads_lines_of_syslog_alone() -> None:
    (record,) = Renderer(LineForm(format="cef").row or BY_NAME["cef"], lambda: 0).rendered([b"Nov 28 10:00:00 h a: b"])
    assert json.loads(record)["TAG"] == "a"
