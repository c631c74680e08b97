"""--since, --until, --time-unit, and the notes on times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jitdb.cli import main
from jitdb.operators.nodes.instants import instant_at

Run = Callable[..., tuple[str, str]]

NOW = 1_700_000_000_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("count", …)`: what a command that succeeds writes, and what it says besides."""

    def call(*arguments: str) -> tuple[str, str]:
        assert main(list(arguments)) == 0
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps({"ts": f"2026-11-{day:02}T12:00:00", "n": day}) + "\n" for day in range(1, 31)))
    return str(path)


def test_between_two_times(run: Run, log: str) -> None:
    assert run("count", log, "--since", "2026-11-05T12:00", "--until", "2026-11-08")[0] == "3\n"
    assert run("count", log, 'ts >= "2026-11-05T12:00Z" and ts < "2026-11-08"')[0] == "3\n"
    assert run("count", log, "n > 6", "--since", "2026-11-05", "--until", "2026-11-08")[0] == "1\n"
    assert run("query", log, "--since", "2026-11-30", "--fields", "n")[0] == '{"n":30}\n'


def test_the_choice_is_said(run: Run, log: str) -> None:
    ran = run("query", log, "--descending", "--limit", "1", "--fields", "n")
    assert ran == ('{"n":30}\n', "")
    zone = "jitdb: times of `ts` without a zone are read as UTC\n"
    assert run("count", log, "--since", "2026-11-05")[1] == zone
    for command in (["count"], ["query"], ["timeline"]):  # of nothing, all that it may be because of
        said = run(*command, log, "--since", "2099-11-05")[1]
        assert said.startswith(f"jitdb: the time is `ts`; --timestamp names another field\n{zone}")
    assert run("query", log, "--limit", "1", "--timestamp", "ts", "--arrival")[1] == ""


def test_many_logs_are_merged_by_times_of_all_kinds(run: Run, tmp_path: Path) -> None:
    Path(tmp_path, "a.ndjson").write_text('{"ts":"2023-11-14T22:13:20Z","n":1}\n{"ts":"2023-11-14T22:13:22Z","n":3}\n')
    Path(tmp_path, "b.ndjson").write_text('{"time":1700000001000,"n":2}\n{"time":1700000003000,"n":4}\n')
    lines = run("query", str(tmp_path), "--fields", "n")[0].split()
    assert lines == ['{"n":1}', '{"n":2}', '{"n":3}', '{"n":4}']


def test_folders_are_passed_over_by_their_dates(run: Run, tmp_path: Path) -> None:
    for day in (14, 15, 16):
        folder = tmp_path / f"date=2023-11-{day}"
        folder.mkdir()
        folder.joinpath("a.ndjson").write_text(f'{{"n":{day}}}\n')
    assert run("count", str(tmp_path), 'date >= "2023-11-15"')[0] == "2\n"
    assert not (tmp_path / "date=2023-11-14" / "a.ndjson.jitdb").exists()


@pytest.mark.parametrize(
    ("typed", "time"),
    [
        ("2h", NOW - 7200 * 10**9),
        ("1h30m", NOW - 5400 * 10**9),
        ("90s ago", NOW - 90 * 10**9),
        ("7d", NOW - 7 * 86_400 * 10**9),
        ("now", NOW),
        ("today", 19_675 * 86_400 * 10**9),
        ("yesterday", 19_674 * 86_400 * 10**9),
        ("1700000000.5", NOW + 5 * 10**8),
        ("2023-11-14T23:13:20+01:00", NOW),
    ],
)
def test_what_a_person_types(typed: str, time: int) -> None:
    assert instant_at(typed, NOW).time == time


def test_what_is_no_time(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", log, "--since", "soon"]) == 2
    assert "--since: 'soon' is no time; write 2026-11-01" in capsys.readouterr().err
