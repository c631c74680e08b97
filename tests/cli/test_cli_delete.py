"""Records go by an expression or by their age, once that is agreed to; what is only read is refused before any goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from cli_helpers import EVENTS, make_log, records_of
from test_cli_terminal import at_a_terminal

DAY = 86_400_000
SAID = 'level == "error"'
LEFT = [event for event in EVENTS if event["level"] != "error"]


def test_what_matches_goes_and_its_room_with_compact(run, events: Path) -> None:
    done = run("delete", "events.log", SAID, "--yes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "events.log: deleted 2 records, 3 stay\n", "")
    assert records_of(events) == LEFT
    assert run("delete", "events.log", SAID, "--yes").stdout == "nothing to delete: none of 3 records matches\n"
    done = run("delete", "events.log", "status == 404", "--yes", "--compact").stdout.splitlines()
    assert done[0] == "events.log: deleted 1 record, 2 stay"
    assert done[1].startswith("removed 3 deleted records, 2 stay: ")
    assert records_of(events) == LEFT[:2]


def test_a_dry_run_changes_nothing(run, events: Path) -> None:
    done = run("delete", "events.log", SAID, "--dry-run")
    assert (done.returncode, done.stdout) == (0, "2 of 5 records of events.log would be deleted\n")
    assert records_of(events) == EVENTS


def test_a_value_that_is_spelled_otherwise_deletes_nothing(run, events: Path) -> None:
    for option in ("--yes", "--dry-run"):
        done = run("delete", "events.log", 'level != "Error"', option)
        assert (done.returncode, done.stdout) == (1, "")
        assert 'did you mean `level == "error"`?' in done.stderr
    assert records_of(events) == EVENTS
    assert run("delete", "events.log", 'level != "debug"', "--dry-run").returncode == 0  # nothing is like it


@pytest.mark.parametrize("command", ["count", "query", "delete"])
def test_who_has_no_time_is_not_old(run, folder: Path, command: str) -> None:
    make_log(folder / "orders.log", [{"paid": True, "created at": "2026-10-01T00:00:00Z"}] * 3)
    options = ["--yes"] if command == "delete" else []
    done = run(command, "orders.log", "--until", "2026-11-01", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no record has a time under" in done.stderr
    assert "--timestamp '[\"created at\"]'" in done.stderr
    named = run(command, "orders.log", "--until", "2026-11-01", "--timestamp", '["created at"]', *options)
    assert named.returncode == 0


MISSPELT = ('levle != "error"', 'not (tiem >= "2026-10-10")', 'level == "debug" or levle is absent')


@pytest.mark.parametrize("question", MISSPELT)
@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_a_field_that_no_record_has_deletes_nothing(run, events: Path, question: str, option: str) -> None:
    done = run("delete", "events.log", question, option)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("jitdb: no record has ")
    assert "nothing was deleted; --force" in done.stderr
    assert "`tiem`" in done.stderr or "`levle`; did you mean `level`?" in done.stderr
    assert records_of(events) == EVENTS
    assert run("delete", "events.log", question, "--dry-run", "--force").stdout.startswith("5 of 5 records")


def test_a_field_that_only_some_logs_have(run, folder: Path) -> None:
    (folder / "logs").mkdir()
    make_log(folder / "logs" / "a.log", [{"n": 1, "late": 1}, {"n": 2}])
    make_log(folder / "logs" / "b.log", [{"n": 1}])
    make_log(folder / "logs" / "c.log", [])
    assert run("delete", "logs", "laet is absent", "--yes").returncode == 1
    done = run("delete", "logs", "late is absent", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert records_of(folder / "logs" / "a.log") == [{"n": 1, "late": 1}]
    assert records_of(folder / "logs" / "b.log") == []


@pytest.mark.parametrize("compact", [[], ["--compact"]])
def test_retention_keeps_what_is_young_and_what_has_no_time(run, folder: Path, compact: list[str]) -> None:
    now = int(time.time() * 1000)
    records = [{"time": now - days * DAY - 60_000, "days": days} for days in (0, 10, 29, 30, 31, 400)]
    records.append({"days": "unknown"})
    make_log(folder / "a.log", records)
    done = run("delete", "a.log", "--older-than", "30d", "--yes", *compact)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a.log: deleted 3 records, 4 stay\n")
    assert "the time is `time`" in done.stderr
    assert [record["days"] for record in records_of(folder / "a.log")] == [0, 10, 29, "unknown"]


def test_age_and_expression_together(run, events: Path) -> None:
    assert (
        run("delete", "events.log", SAID, "--older-than", "1d", "--since", "2023-11-14T22:13:22Z", "--yes").returncode
        == 0
    )
    assert records_of(events) == [*EVENTS[:3], EVENTS[4]]


def test_logs_of_a_folder(run, folder: Path) -> None:
    (folder / "logs" / "day=1").mkdir(parents=True)
    (folder / "logs" / "day=2").mkdir()
    for day in (1, 2):
        make_log(folder / "logs" / f"day={day}" / "a.log", EVENTS)
    assert run("delete", "logs", f"day == 2 and {SAID}", "--yes").stdout == (
        f"logs{os.sep}day=2{os.sep}a.log: deleted 2 records, 3 stay\n"
    )
    assert run("delete", "logs", "day == 1", "--dry-run").stdout == "5 of 8 records of 2 logs would be deleted\n"
    assert records_of(folder / "logs" / "day=1" / "a.log") == EVENTS


def test_somebody_elses_lines_are_refused_before_anything_goes(run, events: Path) -> None:
    (events.parent / "logs").mkdir()
    log = make_log(events.parent / "logs" / "a.log", EVENTS)
    (events.parent / "logs" / "b.ndjson").write_bytes((events.parent / "events.ndjson").read_bytes())
    for where in ("events.ndjson", "logs"):
        done = run("delete", where, SAID, "--yes")
        assert (done.returncode, done.stdout) == (1, "")
        assert "which is only read: it cannot be deleted from" in done.stderr
        assert "jitdb import" in done.stderr
        assert "jitdb export" in done.stderr
    assert records_of(log) == EVENTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say which records"),
        ([SAID], "nobody is there to be asked"),
        (["--older-than", "yesterday"], "a length of time is expected"),
        (["--older-than=-3d"], "a length of time is expected"),
    ],
)
def test_what_is_not_said_clearly_deletes_nothing(run, events: Path, arguments: list[str], said: str) -> None:
    done = run("delete", "events.log", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert records_of(events) == EVENTS


@pytest.mark.parametrize(("answer", "code", "left"), [(b"y\n", 0, LEFT), (b"n\n", 1, EVENTS), (b"\n", 1, EVENTS)])
def test_a_terminal_is_asked(events: Path, answer: bytes, code: int, left: list[object]) -> None:
    def type_it(terminal: int) -> None:
        os.write(terminal, answer)

    found, seen = at_a_terminal(events.parent, "delete", "events.log", SAID, when=(b"[y/N]", type_it))
    assert found == code, seen
    assert "delete 2 of 5 records of events.log? [y/N]" in seen
    assert records_of(events) == left
