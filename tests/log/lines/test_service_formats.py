"""Formats of certain services: files of their lines, with others between, against a reader that cuts each line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log.lines import service_oracle as oracle
from log.lines.format_oracle import _of_text, scalar
from log.lines.walking import walked
from thoroughness import tries

import jitdb
from jitdb.log.lines.form import LineForm
from jitdb.log.lines.formats.rendering import Renderer
from jitdb.log.lines.formats.table import BY_NAME
from jitdb.log.lines.line_log import LineLog

NOVEMBER = 1_795_200_000 * 10**9  # 2026-11-20
OTHERS = [
    "\tat x.Y.z(Y.java:1)", "java.lang.IllegalStateException: closed", '{"level": "info", "n": 1}', "", "words alone",
    "2026-11-20 14:03:11,123 ERROR boom", "level=error msg=x n=5", "ERROR: no", "[WARN] no", "error: no",
    "app: ERROR no", "14:03:11.123 [main] ERROR x", "E1120 14:03:11.123456 7 a.go:1] no",
]  # fmt: skip


def lines_of(name: str) -> st.SearchStrategy[bytes]:
    """A file whose first line is the format's own: mostly the first texts of each part, which fit."""
    parts = [st.one_of(st.just(texts[0]), st.sampled_from(texts)) for texts in oracle.PARTS[name]]
    line = st.tuples(*parts).map("".join)
    first = oracle.first_of(name)
    mixed = st.one_of(line, line, line, st.sampled_from(OTHERS))
    return st.lists(mixed, max_size=10).map(lambda lines: "".join(f"{line}\n" for line in [first, *lines]).encode())


#: Where formats have the time, if not in `time`.
TIMES = {
    "haproxy": "TIMESTAMP", "envoy": "start_time", "elb": "timestamp", "s3": "requestdatetime",
    "mysqlgeneral": "event_time", "weblogic": "TIMESTAMP", "fastlog": "timestamp", "lambda": "timestamp",
}  # fmt: skip


@pytest.mark.parametrize("name", oracle.PARTS)
def test_records_are_those_of_the_oracle(tmp_path: Path, name: str) -> None:
    path, parse = tmp_path / "a.log", oracle.parser_of(name)

    @settings(max_examples=tries(60, 500), deadline=None)
    @given(lines_of(name))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        os.utime(path, (1_795_200_000, 1_795_200_000))  # nobody waits whether more of the last record comes
        found = [record for record in expected(name, parse, data) if record is not None]
        with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
            assert [record.value for record in log.stream() if record.value is not None] == found
        for size in (13, 1 << 16):
            with LineLog(path, folder="memory", form=LineForm(format=name)) as log:
                assert [value for _, value in walked(log, size) if value is not None] == found

    check()


def expected(name: str, parse: Any, data: bytes) -> list[dict[str, Any] | None]:
    def is_own(line: bytes) -> bool:
        return oracle.of(parse, [line]) is not None

    def record_of(lines: list[bytes]) -> dict[str, Any]:
        return oracle.of(parse, lines) or {}

    time = TIMES.get(name, "time")
    if BY_NAME[name].joins:
        return _of_text(data, is_own, record_of, time)
    lines = [line for line in data.split(b"\n") if line.strip()]  # one that does not fit belongs to none
    return [_of_text(line + b"\n", is_own, record_of, time)[0] for line in lines]


def test_a_line_that_was_cut_says_nothing_of_another_field() -> None:
    for name in oracle.PARTS:
        line = oracle.first_of(name).encode()
        whole = oracle.of(oracle.parser_of(name), [line])
        assert whole is not None
        renderer = Renderer(BY_NAME[name], lambda: NOVEMBER)
        for record in filter(None, renderer.rendered([line[:size] for size in range(1, len(line))])):
            found = json.loads(record)
            for key in set(found) & set(whole) - {"text", "message", "msg", "CONTENT"}:
                is_key = found[key] is True  # of a pair that lacks its value
                said = str(whole[key]) + (f" {whole['timezone']}" if key == "time" and "timezone" in whole else "")
                assert is_key or said.startswith(str(found[key])), (name, key, found)


FLOWS = """\
version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start end action log-status
2 123456789010 eni-1 172.31.16.139 172.31.16.21 20641 22 6 20 4249 1795155001 1795155061 ACCEPT OK
2 123456789010 eni-1 172.31.9.69 172.31.9.12 49761 3389 6 20 4249 1795155002 1795155062 REJECT OK
2 123456789010 eni-1 - - - - - - - 1795155003 1795155063 - NODATA
"""


def test_flow_logs_of_aws(tmp_path: Path) -> None:
    path = tmp_path / "flow.log"
    path.write_text(FLOWS)
    names, *rows = (line.split(" ") for line in FLOWS.splitlines())
    with jitdb.open(path, indexes="memory") as db:
        assert db.all() == [
            {name: scalar(value) for name, value in zip(names, row, strict=True) if value != "-"} for row in rows
        ]
        assert db.declared_time == (("start",),)
        assert db.query().since("2026-11-20T06:10:02Z").count() == 2


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("E1120 06:10:01.123456  7 a.cc:10] x", "2026-11-20T06:10:01.123456"),
        ("E20251120 06:10:01.123456  7 a.cc:10] x", "2025-11-20T06:10:01.123456"),
        ("E251120 06:10:01.123456 7 util/a.go:10 [T1] 1  x", "2025-11-20T06:10:01.123456"),
    ],
)
def test_times_of_glog(line: str, time: str) -> None:
    (record,) = Renderer(BY_NAME["klog"], lambda: NOVEMBER).rendered([line.encode()])
    found = json.loads(record)
    assert (found["time"], found["severity"], found["line"]) == (time, "E", 10)


def test_php_has_a_zone_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "php_errors.log"
    path.write_text("[20-Nov-2026 06:10:01 Europe/Berlin] PHP Fatal error:  boom\n" * 2)
    with jitdb.open(path, indexes="memory") as db:
        asked = db.query('level >= "error" and time >= "2026-11-20T06:00:00Z"')
        assert asked.count() == 2
        assert any("though Europe/Berlin stands behind them" in remark for remark in db.remarks(asked.question))


@pytest.mark.parametrize(
    ("levels", "least", "count"),
    [
        (["Parse error", "Fatal error", "Warning", "Deprecated"], "error", 2),
        ([".", "*", "#"], "warn", 1),
        (["Note", "System", "ERROR"], "notice", 2),
        (["Fault", "Default", "Error"], "error", 2),
    ],
)
def test_levels_of_services(tmp_path: Path, levels: list[str], least: str, count: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"level": level}) + "\n" for level in levels))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count(f'level >= "{least}"') == count


def test_levels_of_nxlog_are_numbers_that_rise(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text("".join(f'{{"SeverityValue": {number}, "EventID": 4624}}\n' for number in range(1, 6)))
    with jitdb.open(path, indexes="memory") as db:
        assert [db.count(f'SeverityValue >= "{level}"') for level in ("debug", "info", "warn", "error", "crit")] == [
            5, 4, 3, 2, 1,
        ]  # fmt: skip


def test_levels_of_windows_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "evtx.json"
    time = {"#attributes": {"SystemTime": "2026-11-20T06:10:01.123456Z"}}
    records = ({"Event": {"System": {"Level": number, "TimeCreated": time}}} for number in range(6))
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with jitdb.open(path, indexes="memory") as db:
        assert db.count('Event.System.Level >= "error"') == 2
        assert db.query().since("2026-11-20T06:10:01Z").count() == 6
