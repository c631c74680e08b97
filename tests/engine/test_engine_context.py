"""What stands around answers is what a plain program finds that has all records in a list."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import MISSING, field, same

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.building import scan
from jitdb.errors import LogError, QueryError
from jitdb.indexes.segment import ZONE
from jitdb.operators import equal, everything, gt, not_, offsets
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.passages import Passages

HOSTS: list[Any] = ["a", "b", 1, 1.0, True, None, ["a"], {"x": 1}, MISSING]


def record(number: int, time: int | None, host: Any, wanted: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"n": number, "wanted": wanted}
    if time is not None:
        made["time"] = 1_700_000_000 + time
    if host is not MISSING:
        made["host"] = host
    return made


RECORDS = st.lists(st.tuples(st.integers(0, 9) | st.none(), st.sampled_from(HOSTS), st.booleans()), max_size=60)
AROUND = st.fixed_dictionaries(
    {
        "before": st.integers(0, 4),
        "after": st.integers(0, 4),
        "same": st.sampled_from([None, "host"]),
        "arrival": st.booleans(),
        "descending": st.booleans(),
        "skip": st.integers(0, 3),
        "limit": st.integers(1, 6) | st.none(),
        "above": st.integers(0, 60) | st.none(),
    }
)


def expected(records: list[dict[str, Any]], asked: dict[str, Any]) -> list[list[tuple[int, bool]]]:
    """Passages of (n, whether it is an answer): runs of what is near an answer, in the line of each value."""
    line = list(records) if asked["arrival"] else sorted(records, key=lambda each: (each.get("time", -1), each["n"]))
    turned = line[::-1] if asked["descending"] else line
    stop = None if asked["limit"] is None else asked["skip"] + asked["limit"]
    answers = [each["n"] for each in turned if each["wanted"]][asked["skip"] : stop]
    if asked["above"] is not None:
        line = [each for each in line if each["n"] > asked["above"] or each["n"] in answers]
    values: list[Any] = []
    for each in line if asked["same"] else line[:1]:
        if not any(same(value, field(each, ["host"])) for value in values):
            values.append(field(each, ["host"]))
    runs: list[list[int]] = []
    for value in values:
        own = [each["n"] for each in line if not asked["same"] or same(value, field(each, ["host"]))]
        near = {
            place
            for answer in answers
            if answer in own
            for place in range(own.index(answer) - asked["before"], own.index(answer) + asked["after"] + 1)
        }
        for place, number in enumerate(own):
            if place in near and place - 1 in near and place:
                runs[-1].append(number)
            elif place in near:
                runs.append([number])
    runs.sort(key=lambda run: min(answers.index(number) for number in run if number in answers))
    return [[(number, number in answers) for number in (run[::-1] if asked["descending"] else run)] for run in runs]


def found(db: Any, asked: dict[str, Any]) -> list[list[tuple[int, bool]]]:
    among = None if asked["above"] is None else gt(asked["above"], "n")
    passages = db.context(
        equal("wanted", True), asked["before"], asked["after"], same=asked["same"], among=among, limit=asked["limit"],
        start_from=asked["skip"], descending=asked["descending"],
        sort_by="arrival" if asked["arrival"] else "declared",
    )  # fmt: skip
    return [[(each.record["n"], each.is_match) for each in passage] for passage in passages]


def wanted(db: Any, *around: int, **more: Any) -> list[list[tuple[int, bool]]]:
    passages = db.context(equal("wanted", True), *around, **more)
    return [[(each.record["n"], each.is_match) for each in passage] for passage in passages]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDS, st.lists(AROUND, min_size=1, max_size=4), st.sets(st.integers(0, 59)))
def test_random_contexts(tmp_path: Path, rows: list[Any], questions: list[dict[str, Any]], gone: set[int]) -> None:
    records = [record(number, *row) for number, row in enumerate(rows)]
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, Log(Path(folder) / "a.log") as log:
        places = log.append_many(records)
        log.flush()
        db = JITDB(log, "memory", timestamp="time")
        for asked in questions:
            assert found(db, asked) == expected(records, asked)
        kept = [each for each in records if each["n"] not in gone]
        log.delete_many([place for each, place in zip(records, places, strict=True) if each["n"] in gone])
        for asked in questions:
            assert found(db, asked) == expected(kept, asked)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RECORDS, AROUND)
def test_lines_of_somebody_else(tmp_path: Path, rows: list[Any], asked: dict[str, Any]) -> None:
    records = [record(number, *row) for number, row in enumerate(rows)]
    path = Path(tempfile.mkdtemp(dir=tmp_path)) / "a.ndjson"
    path.write_text("".join(json.dumps(each) + "\n\n" for each in records))
    with jitdb.open(path, "memory", timestamp="time") as db:
        assert found(db, asked) == expected(records, asked)


def test_few_answers_of_many_zones(tmp_path: Path) -> None:
    """Where only a part of a long line is looked at, nothing is missed: times that jump, lack, or are all the same."""
    chance = random.Random(7)
    count = 120_000
    times = [place // 3 + chance.randrange(50) for place in range(count)]
    for place in chance.sample(range(count), 8):
        times[place] = chance.choice([0, times[0], times[-1], 20_000, chance.randrange(50_000), -1])
    times[60_000:66_000] = [20_500] * 6000
    wanted = sorted({0, 1, 5, count - 1, 63_000, 63_002, *chance.sample(range(count), 8)})
    lines = [
        json.dumps({"wanted": place in wanted, "even": place % 2 == 0, **({"time": time} if time >= 0 else {})}) + "\n"
        for place, time in enumerate(times)
    ]
    path = tmp_path / "a.ndjson"
    path.write_text("".join(lines))
    by_time = sorted(range(count), key=lambda place: (times[place], place))
    with jitdb.open(path, timestamp="time", time_unit="s") as db:
        places = {offset: place for place, offset in enumerate(db.all(sort_by="arrival", as_offsets=True))}
        for _ in range(24):
            before, after = chance.choice([0, 1, 4, 3000]), chance.choice([0, 1, 4, 9000])
            arrival, limit, even = chance.random() < 0.5, chance.choice([1, 2, 5, None]), chance.random() < 0.3
            order = range(count) if arrival else by_time
            answers = [place for place in order if place in wanted][:limit]
            line = [place for place in order if not even or place % 2 == 0 or place in answers]
            at = {place: number for number, place in enumerate(line)}
            runs: list[list[int]] = []
            end = -1
            for place in answers:
                first, stop = max(0, at[place] - before), min(len(line), at[place] + after + 1)
                if first > end or not runs:
                    runs.append([])
                runs[-1] += line[max(first, end) if runs[-1] else first : stop]
                end = stop
            shown = db.context(
                equal("wanted", True), before, after, limit=limit, sort_by="arrival" if arrival else "declared",
                among=equal("even", True) if even else None, as_offsets=True,
            )  # fmt: skip
            assert [[places[each.place] for each in passage] for passage in shown] == runs


@pytest.mark.parametrize("order", ["arrival", "declared"])
def test_passages_that_end_where_zones_do(tmp_path: Path, order: Any) -> None:
    """They do not touch only because nothing that is between them was looked at."""
    path = tmp_path / "a.ndjson"
    chosen = (ZONE - 6, 2 * ZONE + 2)
    path.write_text("".join(f'{{"time":{n},"wanted":{json.dumps(n in chosen)},"n":{n}}}\n' for n in range(15 * ZONE)))
    with jitdb.open(path, "memory", timestamp="time") as db:
        passages = wanted(db, 2, 5, sort_by=order)
        assert [(passage[0][0], passage[-1][0]) for passage in passages] == [
            (ZONE - 8, ZONE - 1), (2 * ZONE, 2 * ZONE + 7)
        ]  # fmt: skip


def test_one_scan_for_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question's index, the one of the shared value and the time come from one pass."""
    path = tmp_path / "a.log"
    with Log(path) as log:
        log.append_many(record(number, number, "ab"[number % 2], number % 50 == 7) for number in range(5000))
    scans: list[tuple[int, int]] = []

    class Counted(scan.Scan):
        def run(self, *arguments: Any) -> Any:
            scans.append((self.start, self.stop))
            return super().run(*arguments)

    monkeypatch.setattr(scan, "Scan", Counted)
    with jitdb.open(path, read_only=True) as db:
        assert len(list(db.context(equal("wanted", True), 1, 1, same="host"))) == 100
        assert len(scans) == 1
    names = sorted(file.name.split("_")[0].split(".")[0] for file in (tmp_path / "a.log.jitdb" / "indexes").iterdir())
    assert [name for name in names if name not in ("", "lock")] == ["deleted", "host", "offsets", "time", "wanted"]


def test_sets_of_logs(tmp_path: Path) -> None:
    """What stands around an answer is of its log; passages of all come by the time of their first answers."""
    first = [record(number, 2 * number, "a", number in (2, 3, 8)) for number in range(10)]
    second = [record(100 + number, 2 * number + 1, "b", number in (0, 4)) for number in range(10)]
    for name, records in (("a", first), ("b", second)):
        with Log(tmp_path / f"{name}.log") as log:
            log.append_many(records)
    with jitdb.open_many(str(tmp_path / "*.log")) as logs:
        assert wanted(logs, 1, 1) == [
            [(100, True), (101, False)],
            [(1, False), (2, True), (3, True), (4, False)],
            [(103, False), (104, True), (105, False)],
            [(7, False), (8, True), (9, False)],
        ]
        assert wanted(logs, 1, 0, limit=2) == [[(100, True)], [(1, False), (2, True)]]
        assert wanted(logs, 1, 0, limit=2, descending=True) == [[(8, True), (7, False)], [(104, True), (103, False)]]
        assert wanted(logs, 1, 0, among=gt(2, "n"), limit=2) == [[(100, True)], [(2, True)]]
        (place,) = (each for passage in logs.context(equal("n", 8), as_offsets=True) for each in passage)
        assert place.record == place.place
        assert place.place.path.endswith("a.log")


def test_an_answer_without_records_around(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        db = JITDB(log, "memory")
        assert list(db.context(everything(), 3, 3)) == []
        log.append({"n": 1, "wanted": True})
        log.flush()
        assert wanted(db, 3, 3) == wanted(db) == [[(1, True)]]
        assert list(db.context(not_(everything()), 3, 3)) == []
        assert db.context(everything(), 1).total == 1
        for wrong in ({"before": -1}, {"after": 1.5}, {"same": 5}, {"among": "n = 5"}, {"among": 5}, {"limit": 0}):
            with pytest.raises(QueryError):
                db.context(everything(), **wrong)  # type: ignore[arg-type]


def test_as_of_an_earlier_state(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        places = log.append_many(record(number, number, "a", number == 3) for number in range(6))
        log.flush()
        db = JITDB(log, "memory")
        assert wanted(db, 1, 5, as_of=places[4]) == [[(2, False), (3, True), (4, False)]]
        assert wanted(db, 1, 5, as_of=places[2]) == []


def test_records_that_go_while_passages_are_read(tmp_path: Path) -> None:
    """Deleted ones are left out, with their passage where no answer is left in it; after a compaction it is said."""
    with Log(tmp_path / "a.log") as log:
        places = log.append_many(record(number, number, "a", number % 10 == 5) for number in range(5000))
        log.flush()
        db = JITDB(log, "memory")
        passages = db.context(equal("wanted", True), 1, 1)
        assert [each.record["n"] for each in next(passages)] == [4, 5, 6]
        log.delete_many([places[4004], places[4015]])
        rest = [[each.record["n"] for each in passage] for passage in passages]
        assert [4005, 4006] in rest
        assert [4024, 4025, 4026] in rest
        assert len(rest) == 498
        passages = db.context(equal("wanted", True), 1, 1)
        next(passages)
        log.compact()
        with pytest.raises(LogError, match="ask again"):
            list(passages)
        assert len(list(db.context(equal("wanted", True), 1, 1))) == 499


def test_methods_of_queries(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        places = log.append_many(record(number, 9 - number, "ab"[number % 2], number == 5) for number in range(10))
        log.flush()
        db = JITDB(log, "memory")

        def numbers(operation: Operation, **more: Any) -> list[int]:
            (passage,) = db.query(operation).sort_by_arrival().context(1, 2, **more)
            return [each.record["n"] for each in passage]

        assert numbers(offsets([places[5]])) == [4, 5, 6, 7]
        assert numbers(equal("wanted", True), same="host") == [3, 5, 7, 9]
        assert numbers(equal("wanted", True), among=equal("host", "a")) == [4, 5, 6, 8]


def test_async_loops(tmp_path: Path) -> None:
    """The same passages, of one log and of a set; what cancels the loop ends the read."""
    for name in "ab":
        with Log(tmp_path / f"{name}.log") as log:
            log.append_many(record(number, number, name, number % 7 == 2) for number in range(50))

    async def gathered(passages: Passages) -> list[Any]:
        return [passage async for passage in passages]

    with jitdb.open_many(str(tmp_path / "*.log")) as logs, jitdb.open(tmp_path / "a.log") as db:
        for asked in (logs, db):
            expected = list(asked.context(equal("wanted", True), 1, 1))
            passages = asked.context(equal("wanted", True), 1, 1)
            assert asyncio.run(gathered(passages)) == expected
            assert len(expected) == passages.total == (14 if asked is logs else 7)
            assert asyncio.run(gathered(asked.query(equal("wanted", True)).context(1, 1))) == expected


def test_a_cancelled_loop_ends_the_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Log(tmp_path / "a.log") as log:
        log.append_many(record(number, number, "a", True) for number in range(9))
        log.flush()
        db, begun, ended = JITDB(log, "memory"), threading.Event(), threading.Event()
        passages = db.context(equal("wanted", True), 1, 1)

        def wait(cancel: threading.Event) -> None:
            begun.set()
            assert cancel.wait(60)
            ended.set()

        monkeypatch.setattr(db._manager, "ask", lambda operation, order, cancel, look, also: wait(cancel))

        async def main() -> None:
            task = asyncio.create_task(anext(passages))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert ended.wait(60)
