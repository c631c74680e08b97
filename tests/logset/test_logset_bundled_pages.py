"""Pages of small files that are asked together are those of the files one by one, whatever becomes of them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitdb
from jitdb import LogSet
from jitdb.errors import LogError
from jitdb.log.io.filenames import is_bundle_name
from jitdb.operators import declared_time, field

FILES = 12
EARLY = 1_700_000_000_000


def settle() -> None:
    time.sleep(0.03)  # until a change shows in the times of a file


def text_of(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Few times, so that many records of many files have the same; some have none."""
    chance = random.Random(7)
    for number in range(FILES):
        records: list[dict[str, Any]] = []
        for at in range(20):
            record: dict[str, Any] = {"n": chance.randrange(5), "id": f"{number}.{at}"}
            if at == 0 or chance.random() < 0.9:
                record["timestamp"] = EARLY + chance.randrange(12)
            records.append(record)
        (tmp_path / f"{number:02}.ndjson").write_text(text_of(records))
    settle()
    return tmp_path


def opened(folder: Path | list[Path], **given: Any) -> LogSet:
    return jitdb.open_many(folder, progress=False, **given)


def read(folder: Path) -> list[tuple[str, int, dict[str, Any]]]:
    """All records in the order of their logs' paths, each with its path and its offset."""
    found = []
    for path in sorted(folder.glob("*.ndjson")):
        at = 0
        for line in path.read_bytes().splitlines(keepends=True):
            found.append((str(path), at, json.loads(line)))
            at += len(line)
    return found


def in_time(records: list[tuple[str, int, dict[str, Any]]], descending: bool = False) -> list[Any]:
    ordered = sorted(records, key=lambda each: each[2].get("timestamp", -1))
    return ordered[::-1] if descending else ordered


def ordered(logs: LogSet, descending: bool) -> Any:
    return logs.query().descending() if descending else logs.query()


def ids(records: Any) -> list[str]:
    return [record["id"] for record in records]


def own(folder: Path) -> list[Path]:
    return [path for path in (folder / ".jitdb").glob("*/indexes") if not is_bundle_name(path.parent.name)]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("skipped", [0, 37])
def test_the_order_of_time_with_ties_and_without_a_time(folder: Path, descending: bool, skipped: int) -> None:
    expected = ids(record for _, _, record in in_time(read(folder), descending))
    with opened(folder) as logs:
        page = ordered(logs, descending).start_from(skipped).page(50)
        assert (ids(page.data), page.total) == (expected[skipped : skipped + 50], len(expected))
        assert ids(ordered(logs, descending).all()) == expected
        pages = ordered(logs, descending).pages(7)
        assert ids(record for page in pages for record in page.data) == expected
    assert own(folder) == []


def test_by_arrival_by_fields_and_some_of_them(folder: Path) -> None:
    every = read(folder)
    with opened(folder) as logs:
        assert ids(logs.query().sort_by_arrival().all()) == ids(record for _, _, record in every)
        by_n = sorted(in_time(every), key=lambda each: every.index(each))
        by_n.sort(key=lambda each: each[2]["n"])
        assert ids(logs.query().sort_by("n").all()) == ids(record for _, _, record in by_n)
        late = [each for each in every if each[2].get("timestamp", 0) >= EARLY + 6]
        found = logs.query(declared_time >= EARLY + 6).descending().page(30)
        assert ids(found.data) == ids(record for _, _, record in in_time(late, True)[:30])
        assert found.total == len(late)
    assert own(folder) == []


def test_places_paths_and_what_stands_around(folder: Path) -> None:
    expected = in_time(read(folder), True)
    with opened(folder, labelled=True) as logs:
        newest = logs.query().descending()
        assert [tuple(place) for place in newest.as_offsets().page(25)] == [each[:2] for each in expected[:25]]
        assert [record["_path"] for record in newest.page(25)] == [path for path, _, _ in expected[:25]]
        selected = newest.select("_path", "id").page(25)
        assert [tuple(row.values()) for row in selected] == [(path, each["id"]) for path, _, each in expected[:25]]
        texts = newest.as_raw().page(25)
        assert ids(map(json.loads, texts)) == ids(each for _, _, each in expected[:25])
        by_path = logs.query().sort_by("-_path").page(30).data
        assert ids(by_path[:20]) == [f"11.{at}" for at in range(20)]
        around = next(iter(logs.query(field("id") == "7.5").context(before=1, after=1)))
        assert [seen.place.path for seen in around] == [str(folder / "07.ndjson")] * 3


def test_some_files_of_a_bundle(folder: Path) -> None:
    with opened(folder) as logs:
        logs.query().page(1)
    some = [folder / f"{number:02}.ndjson" for number in (2, 3, 4, 5, 6, 8, 9, 10, 11)]
    expected = in_time([each for each in read(folder) if Path(each[0]) in some], True)
    with opened(some) as logs:
        page = logs.query().descending().page(40)
        assert (ids(page.data), page.total) == (ids(record for _, _, record in expected[:40]), len(expected))
        assert logs.query(field("n") == 3).count() == sum(record["n"] == 3 for _, _, record in expected)
    assert own(folder) == []


def test_renamed_files_come_by_their_names_of_now(folder: Path) -> None:
    with opened(folder) as logs:
        logs.query().page(1)
        for number in range(FILES):
            (folder / f"{number:02}.ndjson").rename(folder / f"new-{(number * 5) % FILES:02}.ndjson")
        settle()
        logs.refresh()
        for descending in (False, True):
            expected = ids(record for _, _, record in in_time(read(folder), descending))
            assert ids(ordered(logs, descending).all()) == expected
    assert own(folder) == []


def test_the_fields_that_they_have_and_where_a_text_is(folder: Path) -> None:
    (folder / "05.ndjson").write_text(text_of([{"other": {"deep": "needle"}, "timestamp": EARLY}] * 3))
    (folder / "08.ndjson").write_text(text_of([{"id": "a needle", "timestamp": EARLY + 1}]))
    settle()
    with opened(folder, labelled=True) as logs:
        assert logs.leaf_paths() == [("n",), ("id",), ("timestamp",), ("other", "deep"), ("_path",)]
        found = logs.find("needle")
        assert [(row.path, row.count, row.logs) for row in found] == [
            (("other", "deep"), 3, (str(folder / "05.ndjson"),)),
            (("id",), 1, (str(folder / "08.ndjson"),)),
        ]
        assert found.total == 4
    assert own(folder) == []


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("arrival", [False, True])
def test_tables(folder: Path, descending: bool, arrival: bool) -> None:
    """Also beside a file that is asked on its own, in the middle of the others."""
    with opened(folder) as logs:
        logs.query().page(1)
    with (folder / "05.ndjson").open("a") as file:
        file.write(text_of([{"id": "new", "n": 1, "timestamp": EARLY + 3}]))
    settle()
    expected = read(folder)[:: -1 if descending else 1] if arrival else in_time(read(folder), descending)
    with opened(folder) as logs:
        query = ordered(logs, descending)
        table = (query.sort_by_arrival() if arrival else query).to_arrow(["id", "_path"])
    assert table.column("id").to_pylist() == ids(record for _, _, record in expected)
    assert table.column("_path").to_pylist() == [path for path, _, _ in expected]
    assert len(own(folder)) == 1


def pages(logs: LogSet) -> Iterator[dict[str, Any]]:
    return (record for page in logs.query().descending().pages(3) for record in page.data)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    from jitdb.logset import merging

    monkeypatch.setattr(merging, "_AT_ONCE", 8)
    monkeypatch.setattr(merging, "_FIRST", 1)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("how", ["grown", "renamed", "both"])
def test_an_answer_stays_as_it_was_asked(folder: Path, how: str) -> None:
    expected = ids(record for _, _, record in in_time(read(folder), True))
    with opened(folder) as logs:
        coming = pages(logs)
        found = [next(coming) for _ in range(11)]
        if how != "renamed":
            for number in (3, 4, 11):
                with (folder / f"{number:02}.ndjson").open("a") as file:
                    file.write(text_of([{"n": 1, "id": "new", "timestamp": EARLY}]))
        if how != "grown":
            for number in reversed(range(FILES)):
                (folder / f"{number:02}.ndjson").rename(folder / f"{number + 1:02}.ndjson")
        found += coming
        assert ids(found) == expected
        logs.refresh()
        now = ids(record for _, _, record in in_time(read(folder), True))
        assert ids(logs.query().descending().all()) == now


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("how", ["removed", "rewritten", "cut"])
def test_an_answer_whose_files_went_is_an_error(folder: Path, how: str) -> None:
    with opened(folder) as logs:
        coming = pages(logs)
        next(coming)
        for path in list(folder.glob("*.ndjson"))[3:9]:
            if how == "removed":
                path.unlink()
            elif how == "cut":
                path.write_text(text_of([{"n": 9, "id": "x"}]))
            else:
                data = path.read_text()
                path.unlink()
                path.write_text(data.replace('"n": 1', '"n": 7') + data)
        with pytest.raises(LogError, match="ask again"):
            list(coming)
        logs.refresh()
        now = ids(record for _, _, record in in_time(read(folder), True))
        assert ids(logs.query().descending().all()) == now


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_random_files(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder, number = tmp_path_factory.mktemp("logs"), iter(range(10**6))
    moment = st.one_of(st.none(), st.integers(0, 4), st.floats(0, 4, allow_nan=False), st.just("2026-11-20T00:00:00Z"))

    def records() -> list[dict[str, Any]]:
        drawn = data.draw(st.lists(moment, min_size=1, max_size=6))
        return [{"id": str(next(number)), **({} if each is None else {"k": each})} for each in drawn]

    for name in range(data.draw(st.integers(8, 14))):
        (folder / f"{name:02}.ndjson").write_text(text_of(records()))
    settle()
    descending, skipped = data.draw(st.booleans()), data.draw(st.integers(0, 5))
    by = data.draw(st.sampled_from(["arrival", "k", "-k"]))

    def asked(logs: LogSet) -> tuple[list[str], int]:
        query = logs.query().sort_by_arrival() if by == "arrival" else logs.query().sort_by(by)
        page = (query.descending() if descending else query).start_from(skipped).page(20)
        return ids(page.data), page.total

    with opened(folder) as logs:
        together = asked(logs)
    one = folder.parent / f"{folder.name}.ndjson"  # all files one behind the other
    one.write_bytes(b"".join(path.read_bytes() for path in sorted(folder.glob("*.ndjson"))))
    with jitdb.open(one, "memory", read_only=True, progress=False) as db:
        query = db.query().sort_by_arrival() if by == "arrival" else db.query().sort_by(by)
        page = (query.descending() if descending else query).start_from(skipped).page(20)
        assert together == (ids(page.data), page.total)
    assert own(folder) == []
