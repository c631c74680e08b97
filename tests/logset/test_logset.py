"""Many logs answer as one: what a set gives is what the records of all its logs, put into one list, would say."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, message
from oracle import Oracle

import jitdb
from jitdb import JITDB, Log, LogSet
from jitdb.engine.reading.paging import Page, Pages
from jitdb.errors import InvalidArgument, LogClosed, LogError, LogWarning, QueryError, QuestionWarning
from jitdb.logset.member import Member
from jitdb.logset.merging import Place
from jitdb.operators import declared_time, everything, field, not_, offsets, predicate, seqs, starts_with
from jitdb.operators.nodes.operation import Operation
from jitdb.operators.nodes.positions import Offsets, Seqs

NAMES = ["b.log", "date=2026-11-21/a.log", "date=2026-11-21/hour=7/c.log", "date=2026-11-22/a.log", "empty.log"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five logs, of two codecs, and a file of JSON Lines; their records are those of one, dealt out."""
    records = [message(number) for number in range(400)]
    for number, record in enumerate(records):
        if number % 10 == 0:
            record.pop("timestamp")
            record["value"].pop("timestamp")
    chosen = random.Random(7)
    for name, codec in zip(NAMES, ("msgpack", "bipf", "msgpack", "bipf", "msgpack"), strict=True):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with Log(path, codec=codec, block_size=4096) as log:
            if name != "empty.log":
                log.append_many([record for record in records if chosen.random() < 0.4])
    with open(tmp_path / "date=2026-11-22" / "d.ndjson", "w") as file:
        file.writelines(json.dumps(record) + "\n" for record in records if chosen.random() < 0.3)
    return tmp_path


@pytest.fixture
def logs(folder: Path) -> Iterator[LogSet]:
    with jitdb.open_many(folder) as logs:
        yield logs


def values_of(path: str) -> list[Any]:
    if path.endswith(".ndjson"):
        return [json.loads(line) for line in Path(path).read_text().splitlines()]
    with Log(path, read_only=True) as log:
        return [record.value for record in log.stream()]


def of_all(logs: LogSet, operation: Operation) -> list[Any]:
    """The answer by decoding: in the order of time, then of paths, then of the logs."""
    timed = []
    for member in logs.members:
        values = values_of(member.path)
        oracle = Oracle([{**value, **member.fields} for value in values], range(len(values)), set())
        for seq, value in enumerate(values):
            if oracle.holds(operation, seq):
                when = oracle.time_of(value)
                timed.append(((when is not None, when or 0), value))
    timed.sort(key=lambda each: each[0])
    return [value for _, value in timed]


ASKED = [
    *(each for each in QUESTIONS if not any(isinstance(leaf, Seqs | Offsets) for leaf in each.leaves())),
    field("date") == "2026-11-21",
    (field("date") == "2026-11-22") | (field("value.content.type") == "post"),
    ~(field("date") == "2026-11-22") & (field("value.content.type") == "post"),
    field("hour") == 7,
    field("hour") >= 7,
    field("hour").absent(),
    field("date", "x").absent(),
    field("hour").isin([7, 8]) | (field("date") == "2026-11-22"),
    starts_with("date", "2026-11"),
    predicate("date", lambda date: date.endswith("22"), name="ends"),
    field("date").includes("2026-11-22"),
    declared_time > 1550,
]


@pytest.mark.parametrize("operation", ASKED, ids=repr)
def test_answers_are_those_of_all_records(logs: LogSet, operation: Operation) -> None:
    expected = of_all(logs, operation)
    query = logs.query(operation)
    assert query.count() == len(expected)
    assert query.all() == expected
    assert query.descending().all() == expected[::-1]
    assert list(query.batch(7)) == expected
    page = query.start_from(3).page(5)
    assert (page.data, page.total, page.next_seq) == (expected[3:8], len(expected), 3 + len(expected[3:8]))
    assert [record for page in query.descending().pages(11) for record in page] == expected[::-1]


def test_questions_by_path(logs: LogSet, folder: Path) -> None:
    path = str(folder / "b.log")
    with jitdb.open(path, read_only=True) as db:
        assert logs.query(field("_path") == path).count() == db.count() > 0
    assert logs.query(starts_with("_path", str(folder))).count() == logs.count()


def test_logs_in_which_nothing_can_match_are_not_opened(folder: Path) -> None:
    (folder / "date=2026-11-23").mkdir()
    (folder / "date=2026-11-23" / "broken.log").write_bytes(b"\xff" * 3)
    with jitdb.open_many(folder) as logs:
        assert logs.query(field("date") == "2026-11-22").count() > 0
        assert logs.explain(field("date") == "2026-11-22")["skipped"] == 3  # b.log may have dates of its own
        with pytest.warns(LogWarning, match=r"broken\.log"):
            logs.count()


def test_labelled_records_have_the_fields_of_their_logs(folder: Path) -> None:
    with jitdb.open_many(folder, labelled=True) as logs:
        for record in logs.query(field("hour") == 7):
            assert record["_path"] == str(folder / NAMES[2])
            assert (record["date"], record["hour"]) == ("2026-11-21", 7)


def test_offsets_are_places(logs: LogSet) -> None:
    places = logs.query(field("value.content.type") == "vote").as_offsets().all()
    records = logs.query(field("value.content.type") == "vote").all()
    assert {type(place) for place in places} == {Place}
    for place, record in zip(places, records, strict=True):
        with jitdb.open(place.path, read_only=True, indexes="memory") as db:
            assert db.query(offsets([place.offset])).all() == [record]


def test_by_arrival_one_log_comes_after_the_other(logs: LogSet) -> None:
    expected = []
    for member in logs.members:
        expected += values_of(member.path)
    assert logs.query().sort_by_arrival().all() == expected
    assert logs.query().sort_by_arrival().descending().all() == expected[::-1]


def test_times_of_equal_floats_are_told_apart(tmp_path: Path) -> None:
    times = [2**53 + number for number in (1, 3, 2, 0)]  # of two that are one as floats, the later in the first log
    for number, when in enumerate(times):
        with Log(tmp_path / f"{number}.log") as log:
            log.append({"timestamp": when})
    with jitdb.open_many(tmp_path) as logs:
        assert [record["timestamp"] for record in logs.query()] == sorted(times)


def test_what_a_place_in_one_log_means(logs: LogSet) -> None:
    for operation in (seqs([1]), not_(offsets([0])), everything() & seqs([1])):
        with pytest.raises(QueryError, match="places in one log"):
            logs.query(operation).count()
    with pytest.raises(QueryError, match="one log"):
        logs.query().as_of(0).count()


def test_files_that_come_and_go_are_seen_by_refresh(logs: LogSet, folder: Path) -> None:
    before = logs.count()
    with Log(folder / "new.log") as log:
        log.append({"n": 1})
    with Log(folder / "b.log") as log:
        log.append({"n": 1})
    assert logs.count() == before
    assert logs.refresh()
    assert logs.query(field("n") == 1).count() == 2
    assert logs.count() == before + 2
    (folder / "new.log").unlink()
    assert logs.refresh()
    assert logs.count() == before + 1
    assert not logs.refresh()


def test_places_of_logs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = {
        "*.log": ["b.log", "empty.log"],
        "**/*.log": sorted(NAMES),
        "date=*/a.log": [NAMES[1], NAMES[3]],
        "b.log": ["b.log"],
        "nothing*": [],
    }
    for where, names in found.items():
        with jitdb.open_many(where) as logs:
            assert [member.path for member in logs.members] == names
    with jitdb.open_many(["b.log", "*.log", folder / "b.log"]) as logs:
        assert [member.path for member in logs.members] == ["b.log", "empty.log"]
    with pytest.raises(LogError, match="no such file"):
        jitdb.open_many(["b.log", "missing.log"])


def test_a_folder_without_files_is_told(tmp_path: Path) -> None:
    """Files may come, so it is no error."""
    with jitdb.open_many([tmp_path, tmp_path / "*.log"]) as logs:
        with pytest.warns(QuestionWarning, match=f"no file is in {tmp_path} or {tmp_path}/\\*.log$"):
            assert logs.count() == 0
        (tmp_path / "a.log").write_text('{"n": 1}\n')
        logs.refresh()
        assert logs.count() == 1
    with pytest.warns(QuestionWarning, match="no log was named"), jitdb.open_many([]) as logs:
        assert logs.count() == 0
    with pytest.warns(QuestionWarning, match=r"no file is in nothing\*$"), jitdb.open_many("nothing*") as logs:
        assert logs.count() == 0
    with pytest.raises(InvalidArgument):
        jitdb.open_many(os.devnull)


def test_indexes_in_one_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("indexes")
    with jitdb.open_many(folder, place) as logs:
        found = logs.query(field("value.content.type") == "post").count()
    assert len(list(place.iterdir())) == 5  # an empty log has none
    assert not list(folder.rglob("indexes"))
    with jitdb.open_many(folder, place) as logs:
        assert logs.explain(field("value.content.type") == "post")["scan_bytes"] == 0
        assert logs.query(field("value.content.type") == "post").count() == found


@pytest.fixture
def few_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs stay open, and few records of each are read at once."""
    import jitdb.logset.merging as merging
    from jitdb.logset import open_logs

    monkeypatch.setattr(open_logs, "most_open", lambda: 2)
    monkeypatch.setattr(merging, "_HELD", 1)


@pytest.mark.usefixtures("few_open")
def test_more_logs_than_are_kept_open(folder: Path) -> None:
    opened: list[JITDB] = []

    def open_log(member: Member) -> JITDB:
        opened.append(jitdb.open(member.path, read_only=True))
        return opened[-1]

    with LogSet(folder, open_log) as logs:
        expected = of_all(logs, everything())
        for _ in range(2):
            assert logs.count() == len(expected)
            assert logs.query().all() == expected
            assert logs.query().descending().all() == expected[::-1]
            assert sum(not db.log.closed for db in opened) <= 3


@pytest.mark.usefixtures("few_open")
def test_a_log_that_is_opened_again_is_as_it_was(folder: Path) -> None:
    with jitdb.open_many(folder) as logs:
        expected = of_all(logs, everything())
        pages = logs.query().pages(10)
        found = next(pages).data
        with Log(folder / "b.log") as log:
            log.append({"timestamp": -1, "n": "new"})
        with open(folder / "date=2026-11-22" / "d.ndjson", "a") as file:
            file.write('{"timestamp": 99999999}\n')
        found += [record for page in pages for record in page]
        assert found == expected


@pytest.mark.usefixtures("few_open")
@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_log_that_is_opened_again_and_another_is_an_error(folder: Path, change: str) -> None:
    with jitdb.open_many(folder) as logs:
        pages = logs.query().pages(10)
        next(pages)
        if change == "deleted":
            with Log(folder / "b.log") as log:
                log.delete(next(iter(log.stream())).offset)
        else:
            path = folder / "date=2026-11-22" / "d.ndjson"
            path.unlink()
            path.write_text('{"timestamp": 1}\n' * 400)
        with pytest.raises(LogError, match="while its records were read"):
            list(pages)


def test_few_files_may_be_open(tmp_path: Path) -> None:
    """Every way to ask, in a process that may open fewer files than there are logs."""
    for number in range(110):
        with open(tmp_path / f"{number:03}.ndjson", "w") as file:
            file.writelines(json.dumps({"n": number, "timestamp": 1000 * turn + number}) + "\n" for turn in range(30))
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
import jitdb
from jitdb.operators import field
with jitdb.open_many(sys.argv[1]) as logs:
    assert logs.count(field("n") < 50) == 1500
    times = [record["timestamp"] for record in logs.query()]
    assert len(times) == 3300 and times == sorted(times)
    feed = logs.feed(logs.query(field("n") >= 5).live(old=True).question)
    assert sum(len(portion.data) for portion in iter(feed.read, None)) == 105 * 30
    for number in (0, 7, 109):
        with open(f"{sys.argv[1]}/{number:03}.ndjson", "a") as file:
            file.write('{"n": 77}\\n')
    assert sum(len(portion.data) for portion in iter(feed.read, None)) == 3
    feed.close()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=120)


def test_a_closed_set_answers_nothing(logs: LogSet) -> None:
    logs.close()
    with pytest.raises(LogClosed):
        logs.count()


def test_it_is_asked_in_all_ways(logs: LogSet) -> None:
    import asyncio

    async def ask() -> tuple[int, int]:
        gone = [record async for record in logs.query()]
        return len(gone), len(await logs.query())

    assert asyncio.run(ask()) == (logs.count(), logs.count())
    assert len(logs.query().first()) > 0


def test_more_records_than_one_log_can_have(tmp_path: Path) -> None:
    """What logs say of their sizes is added up without a bound; here each says that it has three billion more."""
    more = 3 * 10**9

    class Large(JITDB):
        def count(self, *arguments: Any, **settings: Any) -> int:
            return super().count(*arguments, **settings) + more

        def pages_to_merge(self, *arguments: Any) -> Pages:
            pages = super().pages_to_merge(*arguments)
            read = pages.read

            def larger() -> Page | None:
                page = read()
                return None if page is None else Page(page.data, page.total + more, page.next_seq, page.duration)

            pages.read = larger  # type: ignore[method-assign]
            return pages

    for number in range(4):
        with Log(tmp_path / f"{number}.log") as log:
            log.append_many({"timestamp": 10 * turn + number} for turn in range(5))
    with LogSet(tmp_path, lambda member: Large(Log(member.path, read_only=True), progress=False)) as logs:
        assert logs.count() == 4 * more + 20 > 1 << 32
        assert logs.count(start_from=1 << 33) == 4 * more + 20 - (1 << 33)
        page = logs.query().descending().page(3)
        assert (page.total, page.next_seq) == (4 * more + 20, 3)
        assert [record["timestamp"] for record in page.data] == [43, 42, 41]
        page = logs.query().start_from(2).page(3)
        assert (page.total, page.next_seq) == (4 * more + 20, 5)
        assert [record["timestamp"] for record in page.data] == [2, 3, 10]


def test_a_file_that_was_empty_is_of_the_kind_that_came(tmp_path: Path) -> None:
    """Numbered rotation under a set that stays open: each name is that of an empty file once."""
    names = [tmp_path / name for name in ("app.log", "app.log.1", "app.log.2")]
    names[0].touch()
    names[1].write_text('{"n": 1}\n')
    names[2].touch()
    with jitdb.open_many(tmp_path) as logs:
        assert logs.count() == 1
        names[1].rename(names[2])
        names[0].rename(names[1])
        names[0].write_text('{"n": 2}\n')
        assert logs.count() == 2
        assert sorted(record["n"] for record in logs.query()) == [1, 2]
