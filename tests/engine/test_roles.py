"""Which fields say when, how bad and what: of records as the usual libraries write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import jitdb
from jitdb.engine.roles import found_time, roles_of

TIME = "2026-11-20T14:03:11.123Z"
DIALECTS: list[tuple[str, dict[str, Any], tuple[Any, Any, Any]]] = [
    ("zap", {"level": "info", "ts": 1795132803.7, "caller": "a.go:1", "msg": "x"}, (("ts",), ("level",), ("msg",))),
    ("pino", {"level": 30, "time": 1795132803700, "pid": 1, "msg": "x"}, (("time",), ("level",), ("msg",))),
    ("bunyan", {"name": "a", "level": 50, "time": TIME, "msg": "x", "v": 0}, (("time",), ("level",), ("msg",))),
    ("slog", {"time": TIME, "level": "INFO", "msg": "x"}, (("time",), ("level",), ("msg",))),
    ("structlog", {"event": "x", "level": "info", "timestamp": TIME}, (("timestamp",), ("level",), ("event",))),
    ("ECS", {"@timestamp": TIME, "log": {"level": "warn"}, "message": "x"},
     (("@timestamp",), ("log", "level"), ("message",))),
    ("ECS, dotted", {"@timestamp": TIME, "log.level": "WARN", "message": "x"},
     (("@timestamp",), ("log.level",), ("message",))),
    ("Stackdriver", {"severity": "ERROR", "receiveTimestamp": TIME, "jsonPayload": {"message": "x"}},
     (("receiveTimestamp",), ("severity",), ("jsonPayload", "message"))),
    ("MongoDB", {"t": {"$date": "2026-11-20T14:03:11.123+00:00"}, "s": "I", "c": "NETWORK", "msg": "x"},
     (("t",), ("s",), ("msg",))),
    ("PostgreSQL", {"timestamp": "2026-11-20 14:03:11.123 UTC", "error_severity": "LOG", "message": "x"},
     (("timestamp",), ("error_severity",), ("message",))),
    ("Python", {"asctime": "2026-11-20 14:03:11,123", "levelname": "ERROR", "levelno": 40, "message": "x"},
     (("asctime",), ("levelname",), ("message",))),
    ("Serilog", {"@t": TIME, "@l": "Warning", "@mt": "x {y}"}, (("@t",), ("@l",), ("@mt",))),
    ("GELF", {"timestamp": 1795132803.7, "level": 3, "short_message": "x", "host": "h"},
     (("timestamp",), ("level",), ("short_message",))),
    ("Fluent Bit", {"date": 1795132803.7, "log": "x"}, (("date",), None, ("log",))),
    ("journald", {"__REALTIME_TIMESTAMP": "1795132803724838", "PRIORITY": "6", "MESSAGE": "x"},
     (("__REALTIME_TIMESTAMP",), ("PRIORITY",), ("MESSAGE",))),
    (".NET", {"Timestamp": TIME, "Level": "Error", "Message": "x"}, (("Timestamp",), ("Level",), ("Message",))),
    ("CloudTrail", {"eventTime": TIME, "eventName": "PutObject"}, (("eventTime",), None, ("eventName",))),
    ("Cloudflare", {"EdgeEndTimestamp": TIME, "EdgeStartTimestamp": TIME, "RayID": "x"},
     (("EdgeStartTimestamp",), None, None)),
    ("Log4j 2", {"timeMillis": 1795132803724, "level": "ERROR", "loggerName": "a", "message": "x"},
     (("timeMillis",), ("level",), ("message",))),
    ("syslog", {"TIMESTAMP": "2026-10-11T22:14:15", "HOSTNAME": "h", "TAG": "su", "CONTENT": "x"},
     (("TIMESTAMP",), None, ("CONTENT",))),
    ("syslog, RFC 5424", {"PRI": 165, "TIMESTAMP": TIME, "MSG": "x"}, (("TIMESTAMP",), ("PRI",), ("MSG",))),
    ("klog", {"severity": "E", "time": "2026-11-20T14:03:11.123456", "line": 1, "msg": "x"},
     (("time",), ("severity",), ("msg",))),
    ("access logs", {"time_local": "20/Nov/2026:14:03:11 +0100", "request": "GET / HTTP/1.1", "status": 200},
     (("time_local",), None, ("request",))),
    ("CRI", {"time": TIME, "stream": "stdout", "message": "x"}, (("time",), None, ("message",))),
    ("Bluesky", {"did": "did:plc:x", "time_us": 1795132803724838, "commit": {"record": {"createdAt": TIME}}},
     (("time_us",), None, None)),
    ("Protocol Buffers", {"timestamp": {"seconds": 1795132803, "nanos": 5}}, (("timestamp",), None, None)),
    ("a length of time", {"start": {"seconds": 3}}, (None, None, None)),
    ("numbers alone", {"t": 12, "s": "soon", "level": "ground"}, (None, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "record", "roles"), DIALECTS, ids=[each[0] for each in DIALECTS])
def test_dialects(tmp_path: Path, name: str, record: dict[str, Any], roles: tuple[Any, Any, Any]) -> None:
    assert tuple(roles_of([record] * 3)) == roles
    with jitdb.Log(tmp_path / "a.log", codec="json") as log:
        log.append_many([record] * 3)
    with jitdb.Log(tmp_path / "a.log", read_only=True) as log:
        found = found_time(log)
    assert found is not None
    assert roles[0] is None or found[0] == roles[0]


def test_what_few_records_have_is_no_role() -> None:
    records: list[Any] = [{"a": 1}, {"a": 2}, {"time": TIME, "msg": "x", "level": "warn"}]
    assert tuple(roles_of(records)) == (None, ("level",), None)
    assert tuple(roles_of([])) == tuple(roles_of([1, "x", None])) == (None, None, None)


@pytest.mark.parametrize("empty", ["null", '""', '[null, ""]'])
def test_a_time_that_most_records_have_empty(tmp_path: Path, empty: str) -> None:
    each = json.loads(empty) if empty.startswith("[") else [json.loads(empty)]
    path = tmp_path / "a.jsonl"
    lines = [{"time": TIME if at == 40 else each[at % len(each)], "n": at} for at in range(60)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with jitdb.open(path) as db:
        assert found_time(db.log) == (("time",),)
        assert db.query().since("2026-11-20").count() == 1


@pytest.mark.parametrize("value", ["soon", 5, {}])
def test_a_field_with_other_values_is_no_time(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{"time": TIME if at == 40 else value if at == 50 else None} for at in range(60)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with jitdb.open(path) as db:
        assert ("time",) not in (found_time(db.log) or ())
