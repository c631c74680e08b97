"""jitdb query --dedup: the first record of each value, or the last, in each order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_the_first_and_the_last_record_of_each_value(run: Run, events: Path) -> None:
    def messages(*options: str) -> list[str]:
        done = run("query", "events.log", *options, "--fields", "message", "-q")
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["message"] for line in done.stdout.splitlines()]

    whole = [json.loads(line) for line in run("query", "events.log", "-q").stdout.splitlines()]
    named = [(record["user"]["name"], record["message"]) for record in whole if "user" in record]
    firsts = dict(reversed(named))
    first, last = [firsts[name] for name in dict(named)], list(dict(named).values())
    assert messages("--dedup", "user.name") == first
    assert sorted(messages("--dedup", "user.name", "--last")) == sorted(last)
    assert messages("--dedup", "user.name", "--descending", "-n", "1") == [first[-1]]
    assert messages("--dedup", "user.name", "--skip", "1") == first[1:]
    assert len(messages("--dedup", "user.name,level")) == 4
    worst = max(whole, key=lambda record: record["status"])
    assert messages("--sort", "-status", "--dedup", "level", "-n", "1") == [worst["message"]]


def test_what_is_said_of_it(run: Run, events: Path) -> None:
    """Notes are those of the question."""
    table = run("query", "events.log", "--dedup", "user.name", "--format", "table").stdout
    assert table.splitlines()[-1] == "2 records"
    assert '"_match":true' in run("query", "events.log", "--dedup", "user.name", "-B", "1").stdout
    for fields in ("usr.name", "level,usr.name"):
        told = run("query", "events.log", "--dedup", fields).stderr.splitlines()
        assert told[0] == "jitdb: none of these records has the field `usr.name`; did you mean `user.name`?"
        assert "`level`" not in "".join(told)
    none = run("query", "events.log", 'level == "ERROR"', "--dedup", "level")
    assert 'did you mean `level == "error"`' in none.stderr
    assert run("query", "events.log", 'level == "none"', "--dedup", "level", "-q").returncode == 1
    for wrong in (["--last"], ["--dedup", "user", "--around", "0"], ["--dedup", "tags[]"]):
        done = run("query", "events.log", *wrong)
        assert (done.returncode, done.stdout) == (2, "")


def test_of_an_earlier_state_and_of_many_logs(run: Run, events: Path) -> None:
    places = run("query", "events.log", "--offsets", "--arrival", "-q").stdout.split()
    done = run("query", "events.log", "--dedup", "level", "--last", "--as-of", places[1], "--offsets", "-q")
    assert done.stdout.split() == places[:2]
    (events.parent / "more").mkdir()
    for number in range(3):
        (events.parent / "more" / f"{number}.ndjson").write_text(
            f'{{"time": {number}, "level": "info", "n": {number}}}\n'
        )
    newest = run("query", "more", "--dedup", "level", "--last", "--fields", "n", "-q").stdout
    assert newest == '{"n":2}\n'


def test_records_that_call_the_field_otherwise_are_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.ndjson").write_text('{"user_id": "u-1"}\n' * 3)
    (tmp_path / "in/b.ndjson").write_text('{"userId": "u-2"}\n' * 3)
    told = "jitdb: `user_id` is called `userId` in in/b.ndjson: their records are {} as those without `user_id`\n"
    assert run("query", "in", "--arrival", "--dedup", "user_id").stderr == told.format("left out")
    assert run("stats", "in", "user_id", "--distinct").stderr == told.format("counted")
