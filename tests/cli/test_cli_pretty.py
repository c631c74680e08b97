"""Records as people read a log: `jitdb query` and `jitdb tail` on a terminal, and --format pretty."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from test_cli_terminal import at_a_terminal

from jitdb.cli import main
from jitdb.cli.output.pretty import Pretty, Shown, are_of_log, painted, plain

WEB = {"time": "2026-11-20T14:03:11.5Z", "level": "error", "logger": "web.http", "message": "failed", "status": 503}
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1\n\n  x\nValueError: no\n'
_SEQUENCE = re.compile("\x1b\\[[0-9;]*m")


def seen(*records: Any, width: int = 80, **shown: bool) -> list[str]:
    pretty = Pretty(Shown(width, utc=True, **shown))
    return [plain(line) for record in records for line in pretty.lines(record)]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (WEB, "14:03:11.500 ERROR web.http failed  status=503"),
        ({"ts": 1795183391.25, "level": "info", "msg": "served"}, "14:03:11.250 INFO  served"),
        ({"time": 1795183391250, "level": 40, "name": "api", "msg": "slow"}, "14:03:11.250 WARN  api slow"),
        ({"t": {"$date": "2026-11-20T14:03:11.250Z"}, "s": "E", "c": "NETWORK", "msg": "m"},
         "14:03:11.250 ERROR NETWORK m"),
        ({"__REALTIME_TIMESTAMP": "1795183391250000", "PRIORITY": "3", "_SYSTEMD_UNIT": "a.service", "MESSAGE": "m"},
         "14:03:11.250 ERROR a.service m"),
        ({"timeUnixNano": "1795183391250000000", "severityNumber": 17, "body": "m",
          "resource": {"attributes": {"service.name": "web"}}}, "14:03:11.250 ERROR web m"),
        ({"@timestamp": "2026-11-20T14:03:11.250Z", "log.level": "WARN", "log.logger": "a", "message": "m"},
         "14:03:11.250 WARN  a m"),
    ],
)  # fmt: skip
def test_dialects_read_alike(record: dict[str, Any], expected: str) -> None:
    assert seen(record) == ["2026-11-20 UTC", expected]


def test_the_day_is_said_where_it_changes() -> None:
    lines = seen(WEB, WEB, {**WEB, "time": "2026-11-21T00:00:00Z"}, {"message": "no time"})
    assert [line for line in lines if line.startswith("20")] == ["2026-11-20 UTC", "2026-11-21 UTC"]
    assert lines[-1] == "                            no time"


def test_fields_that_have_no_room_are_counted() -> None:
    record = {"message": "m", **{f"field{number}": number for number in range(30)}}
    (line,) = seen(record, width=60)
    shown = re.findall(r"field\d+=\d+", line)
    assert line == f"m  {' '.join(shown)} +{30 - len(shown)}"
    assert 3 <= len(shown) <= 5
    (line,) = seen(record, width=60, full=True)
    assert line.endswith("field29=29")


def test_traces_are_a_line_or_all() -> None:
    assert seen({"msg": "boom", "exc": TRACE}) == ["boom", "  exc: ValueError: no  (4 lines: --traces)"]
    assert seen({"msg": "boom\n" + TRACE}) == ["boom", "  ValueError: no  (4 lines: --traces)"]
    assert seen({"msg": "boom", "stack": "java.io.E: x\n\tat a.B(B.java:1)"}) == [
        "boom", "  stack: java.io.E: x  (2 lines: --traces)"
    ]  # fmt: skip
    assert seen({"msg": "boom", "exc": TRACE}, traces=True)[1:] == [
        "  exc: Traceback (most recent call last):", '    File "a.py", line 1', "    x", "  ValueError: no"
    ]  # fmt: skip


def test_random_records_never_act_and_fit() -> None:
    rng = random.Random(7)
    texts = [
        "a",
        "",
        "ü",
        "日本語のログ",
        "\x1b[2J",
        "a\nb",
        "\u202e",
        "x" * 300,
        "\t",
        "\r",
        "👍🏽",
        "\ud800",
        "=",
        "a b",
    ]

    def value(depth: int = 0) -> Any:
        kind = rng.randrange(7 if depth < 5 else 5)
        if kind == 5:
            return {rng.choice(texts): value(depth + 1) for _ in range(rng.randrange(4))}
        if kind == 6:
            return [value(depth + 1) for _ in range(rng.randrange(4))]
        return rng.choice([rng.choice(texts), rng.random() * 10**12, -1, 1 << 70, None, True, float("nan")])

    names = ["time", "level", "message", "msg", "logger", "ts", "service", *texts]
    for _ in range(2000):
        width = rng.choice([40, 80, 200])
        pretty = Pretty(Shown(width, utc=rng.random() < 0.5, traces=rng.random() < 0.3))
        for _ in range(3):
            record = {rng.choice(names): value() for _ in range(rng.randrange(8))} if rng.random() < 0.95 else value()
            for line in pretty.lines(record):
                text = plain(line)
                assert text.isprintable()
                assert _SEQUENCE.sub("", painted(line)).rstrip() == text
                message = pretty._shape(record).roles.message if isinstance(record, dict) else None
                if message is None and isinstance(record, dict) and not pretty._shown.traces:
                    assert cell_len(text) <= max(width, 60)


def test_rows_of_data_are_no_log() -> None:
    assert are_of_log([WEB, WEB, {"a": 1}])
    assert not are_of_log([{"a": 1, "name": "x"}, WEB])
    assert not are_of_log([])


def test_on_a_terminal_and_in_pipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text("".join(json.dumps({**WEB, "n": number}) + "\n" for number in range(3)))
    common = ("query", "a.ndjson", "n > 0", "-q")
    _, text = at_a_terminal(tmp_path, *common, TZ="Europe/Berlin", COLUMNS="80")
    assert "\x1b[2m2026-11-20 CET\x1b[0m" in text
    assert "\x1b[31mERROR\x1b[0m" in text
    assert "15:03:11.500" in text
    _, text = at_a_terminal(tmp_path, *common, "--utc", NO_COLOR="1")
    assert text.splitlines() == [
        "2026-11-20 UTC",
        *(f"14:03:11.500 ERROR web.http failed  status=503 n={n}" for n in (1, 2)),
    ]
    _, text = at_a_terminal(tmp_path, "query", "a.ndjson", "n == 1", "-C", "1", "--utc", NO_COLOR="1")
    assert [line[:2] for line in text.splitlines()[:4]] == ["  ", "  ", "> ", "  "]
    assert main(["query", str(path), "n == 2", "--format", "pretty", "--utc"]) == 0
    assert "14:03:11.500 ERROR web.http failed  status=503 n=2\n" in capsys.readouterr().out
    assert main(["query", str(path), "n == 2"]) == 0
    assert json.loads(capsys.readouterr().out) == {**WEB, "n": 2}
    assert main(["query", str(path), "--format", "pretty", "--fields", "n"]) == 2
    assert "say --format table" in capsys.readouterr().err


def test_tail_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_text(json.dumps(WEB) + "\n" + '{"n": "\\u001b[2J"}\n')
    _, text = at_a_terminal(tmp_path, "tail", "a.ndjson", "--old", "-n", "2", "-q", NO_COLOR="1", TZ="UTC")
    assert "14:03:11.500 ERROR web.http failed  status=503\r\n" in text
    assert '{"n":"\\u001b[2J"}' in text
    _, text = at_a_terminal(tmp_path, "tail", "a.ndjson", "--old", "-n", "1", "-q", "--format", "ndjson")
    assert json.loads(text.splitlines()[-1]) == WEB
