"""What a question will take is told before it is asked, and nothing is built for that."""

from __future__ import annotations

import json
from pathlib import Path

from cli_helpers import EVENTS, make_log

from jitdb.log import Log

ASKED = 'level == "error" and status > 500'


def test_before_and_after_the_question(run, events: Path) -> None:
    with Log(events, read_only=True) as log:
        size = log.durable_end
    before = run("explain", "events.log", ASKED)
    assert before.returncode == 0, before.stderr
    assert before.stdout.splitlines() == [
        "level (==, in, absent): not there yet",
        "status (<, <=, >, >=): not there yet",
        "offsets (where each record lies): not there yet",
        "deleted (a set of records): not there yet",
        f"one scan of {size} bytes, all of the log, to build what is missing; it pays with the first question, "
        "which would read as much without",
    ]
    assert not list((events.parent / "events.log.jitdb").glob("indexes/*.index"))
    run("count", "events.log", 'level == "error"')
    half = run("explain", "events.log", ASKED).stdout.splitlines()
    assert half[0].startswith("level (==, in, absent): 5 records, ")
    assert half[0].endswith(", fresh")
    assert half[1] == "status (<, <=, >, >=): not there yet"
    run("count", "events.log", ASKED)
    assert run("explain", "events.log", ASKED).stdout.splitlines()[-1] == "nothing is to be scanned"
    with Log(events) as log:
        log.append(EVENTS[0])
    grown = run("explain", "events.log", ASKED).stdout.splitlines()
    assert grown[0].endswith(" bytes behind the log")
    assert grown[-1].startswith("one scan of ")
    assert ", of " in grown[-1]


def test_for_programs(run, events: Path) -> None:
    told = json.loads(run("explain", "events.log", ASKED, "--json").stdout)
    assert {index["name"]: index["state"] for index in told["indexes"]} == dict.fromkeys(
        ("offsets", "deleted", "level", "status"), "missing"
    )
    assert told["scan_bytes"] == told["log_bytes"]
    assert json.loads(run("explain", "events.log", "--json").stdout)["where"] == "everything()"


def test_candidates_are_told(run, folder: Path) -> None:
    make_log(folder / "a.log", [{"name": f"name {number}"} for number in range(5000)])
    asked = 'name.startswith("name 1")'
    run("count", "a.log", asked)
    told = run("explain", "a.log", asked).stdout
    assert "5,000 candidates are looked at, in at most " in told


def test_several_logs(run, folder: Path) -> None:
    for day in (1, 2, 3):
        (folder / "logs" / f"day={day}").mkdir(parents=True)
        make_log(folder / "logs" / f"day={day}" / "a.log", EVENTS)
    run("count", "logs/day=1/a.log", 'level == "error"')
    told = run("explain", "logs", 'level == "error" and day < 3').stdout.splitlines()
    assert told[0] == "level (==, in, absent): of 2 logs, 1 fresh, 1 missing"
    assert told[-2].startswith("scans of ")
    assert told[-1] == "1 other log is not opened: nothing there can match"


def test_what_order_and_surroundings_take(run, events: Path) -> None:
    def told(*more: str) -> list[str]:
        done = run("explain", "events.log", 'level == "error"', *more)
        assert done.returncode == 0, done.stderr
        return [line.split(" (")[0] for line in done.stdout.splitlines() if "not there yet" in line]

    plain = ["level", "offsets", "deleted"]
    assert told() == plain
    assert sorted(told("--sort", "status", "--same", "user.name")) == sorted([*plain, "status", "user.name"])
    asked = ("query", "events.log", 'level == "error"', "-C", "1", "--sort", "status", "--same", "user.name")
    assert run(*asked).returncode == 0
    assert told("--sort", "status", "--same", "user.name") == []
    (events.parent / "logs").mkdir()
    make_log(events.parent / "logs" / "a.log", EVENTS)
    assert "user.name (" in run("explain", "logs", "--same", "user.name").stdout
    assert run("explain", "events.log", "--sort", "a,a").returncode == 2


def test_what_is_told_is_a_value_and_a_mapping(events: Path) -> None:
    from jitdb.engine.database import open as open_db
    from jitdb.operators import field

    with open_db(events) as db:
        asked = db.query((field("level") == "error") & (field("status") > 500))
        told = asked.explain()
        assert not told.is_ready
        assert told.pays_after == 1  # without an index the question reads the log, too
        assert (told.scan_bytes, told["scan_bytes"], dict(told)["log_bytes"]) == (db.log.durable_end,) * 3
        assert [index.name for index in told.by_question()] == ["level", "status", "offsets", "deleted"]
        assert {index["state"] for index in told["indexes"]} == {"missing"}
        assert str(told.indexes[0]).endswith("not there yet")
        assert "it pays with the first question" in str(told)
        assert told == db.explain(asked.question)
        asked.count()
        fresh = asked.explain()
        assert fresh.is_ready
        assert fresh.pays_after == 0
        assert str(fresh).endswith("nothing is to be scanned")
        costly = fresh.changed(scan_bytes=500, log_bytes=1000, confirm_bytes=900)
        assert costly.pays_after == 5  # 500 and 5 times 900 are no more than 5 times 1,000
        assert costly.changed(confirm_bytes=1000).pays_after is None
        assert json.loads(json.dumps(fresh.as_dict()))["where"] == fresh.where
        names = {index.name: index for index in db.indexes()}
        assert names["level"].state == "fresh"
        assert names["level"].use == "==, in, absent"
        assert names["status"]["records"] == 5
        assert "level" in str(db.indexes())
