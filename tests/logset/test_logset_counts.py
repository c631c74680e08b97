"""A set counts again only the logs that were changed: the counts are those of the files, whatever became of them."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

import jitdb
from jitdb import JITDB, LogSet
from jitdb.log.lines.files.stamp import Stamp
from jitdb.logset.open_logs import OpenLogs
from jitdb.operators import field, predicate

SIXES = field("n") == 6


def lines(*numbers: int) -> str:
    return "".join(json.dumps({"n": number}) + "\n" for number in numbers)


def settle(path: Path) -> None:
    """Its times are older than a tick of the clock, as those of most files are."""
    before = time.time_ns() - 10**9
    os.utime(path, ns=(before, before))
    until(lambda: Stamp.of(os.stat(path)).is_settled())  # its ctime, too, which nobody can set


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which logs were opened, while sets keep none open."""
    found: list[str] = []
    begin = OpenLogs.__init__

    def watched(logs: OpenLogs, open_log: object) -> None:
        begin(logs, lambda member: found.append(Path(member.path).name) or open_log(member))  # type: ignore[operator]
        logs.most = 0

    monkeypatch.setattr(OpenLogs, "__init__", watched)
    return found


@pytest.fixture
def logs(tmp_path: Path, opened: list[str]) -> Iterator[LogSet]:
    for name in "abc":
        (tmp_path / f"{name}.ndjson").write_text(lines(1, 6, 3, 6))
    for name in "abc":
        settle(tmp_path / f"{name}.ndjson")
    with jitdb.open_many(tmp_path) as logs:
        assert logs.count(SIXES) == 6
        opened.clear()
        yield logs


def test_what_was_not_changed_is_not_opened(logs: LogSet, opened: list[str]) -> None:
    assert [logs.count(SIXES) for _ in range(3)] == [6, 6, 6]
    assert opened == []
    assert logs.count(SIXES, start_from=5) == 1
    assert logs.count(field("n") >= 3) == 9  # another question
    assert sorted(set(opened)) == ["a.ndjson", "b.ndjson", "c.ndjson"]
    opened.clear()
    assert (logs.count(field("n") >= 3), logs.count(SIXES), opened) == (9, 6, [])


def test_what_was_changed_is(logs: LogSet, opened: list[str], tmp_path: Path) -> None:
    with open(tmp_path / "a.ndjson", "a") as file:
        file.write(lines(6, 7))
    assert (logs.count(SIXES), opened) == (7, ["a.ndjson"])
    (tmp_path / "a.ndjson").write_text(lines(1, 1, 3, 6))  # the size that it had
    logs.refresh()
    assert logs.count(SIXES) == 5
    (tmp_path / "c.ndjson").rename(tmp_path / "d.ndjson")
    (tmp_path / "c.ndjson").write_text(lines(6))
    logs.refresh()
    assert logs.count(SIXES) == 1 + 2 + 1 + 2
    (tmp_path / "b.ndjson").unlink()
    logs.refresh()
    assert logs.count(SIXES) == 1 + 1 + 2


def test_a_fresh_file_is_looked_at_again(tmp_path: Path, opened: list[str]) -> None:
    """Within a tick of the clock another change may show in no time of it."""
    for name in "ab":
        (tmp_path / f"{name}.ndjson").write_text(lines(1, 6))
        soon = time.time_ns() + 10**13
        os.utime(tmp_path / f"{name}.ndjson", ns=(soon, soon))
    with jitdb.open_many(tmp_path) as logs:
        logs.warns_of_questions = False  # which looks at a log, too
        assert (logs.count(SIXES), logs.count(SIXES)) == (2, 2)
    assert len(opened) == 4


def test_functions_are_asked_again_where_they_are_to_be(logs: LogSet, opened: list[str], tmp_path: Path) -> None:
    accepted = {6}
    asked = predicate("n", lambda number: number in accepted, name="accepted")
    assert logs.count(asked) == 6
    accepted.add(3)
    assert logs.count(asked) == 6  # it is indexed
    with logs.using(str(tmp_path / "b.ndjson")) as one:
        one.reindex()
    assert logs.count(asked) == 7


def test_a_count_that_a_refresh_came_between_is_not_kept(
    logs: LogSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count = JITDB.count

    def interrupted(db: JITDB, *args: object, **settings: object) -> int:
        found = count(db, *args, **settings)  # type: ignore[arg-type]
        if Path(db.log.path).name != "a.ndjson":  # which another thread may be counting now
            return found
        monkeypatch.setattr(JITDB, "count", count)
        (tmp_path / "a.ndjson").write_text(lines(6, 6, 6))
        settle(tmp_path / "a.ndjson")
        db.refresh()
        return found

    monkeypatch.setattr(JITDB, "count", interrupted)
    asked = field("n") > 5
    assert logs.count(asked) == 6
    assert logs.count(asked) == 7


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_small_logs_are_asked_by_one_thread_unless_they_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.ndjson").write_text(lines(6, number))
    count, threads = JITDB.count, set[int]()

    def counted(db: JITDB, *args: object, **settings: object) -> int:
        threads.add(threading.get_ident())
        time.sleep(seconds)
        return count(db, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(JITDB, "count", counted)
    monkeypatch.setattr(time, "process_time", lambda: 0.0 if seconds else time.perf_counter())  # whatever else runs
    with jitdb.open_many(tmp_path, threads=3, codec="json") as logs:  # so they are not counted together
        assert logs.count(SIXES) == 31
    assert (threads == {threading.get_ident()}) is not bool(seconds)
