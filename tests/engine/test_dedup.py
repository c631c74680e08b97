"""The first record of each value, and the last, against a loop over decoded records."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, value_at, value_key
from jitdb.errors import QueryError
from jitdb.operators import dedup, equal, field, from_db, paginate, query, to_awaitable, to_result

RECORDS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "a": st.sampled_from([None, True, 0, 1, 1.0, "", "x", "1", [1], {"x": 1}]),
            "m": st.fixed_dictionaries({}, optional={"b": st.sampled_from(["x", "y", None])}),
            "n": st.integers(-3, 3) | st.sampled_from([0.5, None, "text"]),
            "ts": st.integers(0, 6).map(lambda n: 1_700_000_000 + n) | st.just("2023-11-14T22:13:23Z"),
        },
    ),
    max_size=40,
)
BYS = st.sampled_from([["a"], ["m.b"], ["a", "m.b"], ["n"]])
ORDERS = st.sampled_from(["declared", "arrival", "n", "-n", "a"])
PATHS = {"a": ("a",), "m.b": ("m", "b"), "n": ("n",)}


def numbered(records: list[Any], first: int = 0) -> list[Any]:
    """So that no two are equal."""
    return [{**record, "id": number} for number, record in enumerate(records, first)]


def kept(records: list[Any], by: list[str], last: bool) -> set[int]:
    """The numbers of those that stay, of records in the order of the question."""
    found: dict[Any, int] = {}
    for record in reversed(records) if last else records:
        values = [value_at(record, PATHS[name]) for name in by]
        if UNDEFINED not in values:
            found.setdefault(tuple(map(value_key, values)), record["id"])
    return set(found.values())


def check(db: Any, by: list[str], order: str, last: bool, where: Any = None) -> None:
    """Each way to ask. The order is that of the whole answer, which is tested elsewhere."""
    asked = db.query(where)
    asked = asked if order == "declared" else asked.sort_by_arrival() if order == "arrival" else asked.sort_by(order)
    whole, falling = asked.all(), asked.descending().all()
    ids = kept(whole, by, last)
    expected = [record for record in whole if record["id"] in ids]
    reverse = [record for record in falling if record["id"] in ids]
    once = asked.dedup(by[0] if len(by) == 1 else by, last=last)
    assert once.all() == list(once) == expected
    assert [record for page in once.pages(3) for record in page.data] == expected
    assert once.descending().all() == reverse
    assert once.descending().page(2).data == reverse[:2]
    page = once.start_from(1).page(2)
    assert (page.data, page.total, once.count(), len(once.set())) == (expected[1:3], *[len(expected)] * 3)
    assert once.select("id").all() == [{"id": record["id"]} for record in expected]
    counts = once.value_counts("a")
    assert counts.total == len(expected)
    assert by != ["a"] or all(row.count == 1 for row in counts)


@settings(max_examples=30, deadline=None)
@given(records=RECORDS, more=RECORDS, by=BYS, order=ORDERS, last=st.booleans(), drawn=st.data())
def test_one_log(
    tmp_path_factory: Any, records: list[Any], more: list[Any], by: list[str], order: str, last: bool, drawn: Any
) -> None:
    """With records that are deleted, that come later, and after a compaction."""
    records, more = numbered(records), numbered(more, len(records))
    with Log(tmp_path_factory.mktemp("log") / "a.log") as log, JITDB(log, "memory", timestamp="ts") as db:
        offsets = list(log.append_many(records))
        log.flush()
        if drawn.draw(st.booleans()):
            db.prepare(equal("a", 1), equal("m.b", 1))
        check(db, by, order, last)
        check(db, by, order, last, field("n") >= 0)
        for number in drawn.draw(st.sets(st.sampled_from(range(len(records))))) if records else ():
            log.delete(int(offsets[number]))
        log.append_many(more)
        log.flush()
        check(db, by, order, last)
        log.compact()
        check(db, by, order, last)


@settings(max_examples=25, deadline=None)
@given(parts=st.lists(RECORDS, min_size=1, max_size=3), by=BYS, order=ORDERS, last=st.booleans())
def test_many_logs(tmp_path_factory: Any, parts: list[list[Any]], by: list[str], order: str, last: bool) -> None:
    """A change of one of them is seen."""
    folder = tmp_path_factory.mktemp("logs")
    for number, records in enumerate(parts):
        lines = [json.dumps(record) + "\n" for record in numbered(records, 100 * number)]
        (folder / f"{number}.ndjson").write_text("".join(lines))
    with jitdb.open_many(str(folder), "memory", timestamp="ts", threads=1) as logs:
        check(logs, by, order, last)
        check(logs, by, order, last, field("n") >= 0)
        (folder / "0.ndjson").write_text("".join(reversed((folder / "0.ndjson").read_text().splitlines(True))))
        logs.refresh()
        check(logs, by, order, last)


@pytest.fixture
def events(tmp_path: Path) -> Iterator[JITDB]:
    lines = [{"ts": 1_700_000_000 + 60 * n, "user": f"u{n % 7}", "ms": n * 37 % 101} for n in range(300)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with jitdb.open(tmp_path / "a.ndjson", "memory", timestamp="ts") as db:
        yield db


async def awaited(db: JITDB) -> Any:
    return await db.aio.query(field("ms") > 50).dedup("user", last=True).all()


def test_every_way_to_ask(events: JITDB) -> None:
    newest = events.query(field("ms") > 50).dedup("user", last=True)
    expected = newest.all()
    assert len(expected) == 7
    assert query(from_db(events), dedup("user", last=True), paginate(9), to_result()).total == 7
    asked = query(newest, to_awaitable())
    assert asyncio.run(asked) == expected
    assert asyncio.run(awaited(events)) == expected
    assert newest.to_arrow(["user"])["user"].to_pylist() == [record["user"] for record in expected]
    assert events.all(newest.set()) == expected
    assert next(len(passage) for passage in newest.context(1, 0)) >= 2
    slowest = events.query().sort_by("-ms").dedup("user")
    most: dict[str, int] = {}
    for record in events.all():
        most[record["user"]] = max(most.get(record["user"], 0), record["ms"])
    assert {record["user"]: record["ms"] for record in slowest} == most
    assert repr(dedup(["user", "m.b"], last=True)) == "dedup(['user', 'm.b'], last=True)"
    assert repr(dedup("user")) == "dedup('user')"
    places = events.all(as_offsets=True, sort_by="arrival")
    assert events.query().as_of(places[2]).dedup("user").count() == 3


def test_what_it_takes_is_explained(events: JITDB) -> None:
    asked = events.query().dedup("user")
    assert "user" in [index.name for index in asked.explain().indexes]
    assert asked.explain().scan_bytes > 0  # asking how it would be answered builds nothing
    assert "not asked yet" in str(asked)
    asked.all()
    assert asked.explain().scan_bytes == 0
    assert "7 answers" in str(asked)


def test_what_is_refused(events: JITDB) -> None:
    for wrong, told in (
        (lambda: events.query().dedup("tags[]"), "may lead to many"),
        (lambda: events.query().dedup([]), "takes the field"),
        (lambda: events.query().dedup("user", last=1), "last is True"),  # type: ignore[arg-type]
        (lambda: events.query().dedup("user").live(), "never ends"),
    ):
        with pytest.raises(QueryError, match=told):
            wrong()


def test_a_field_that_nobody_has(events: JITDB) -> None:
    with pytest.warns(jitdb.errors.QuestionWarning, match="did you mean `user`"):
        assert events.query().dedup("usr").all() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert events.query(field("ms") > 1e9).dedup("user").all() == []


def test_fields_of_paths(tmp_path: Path) -> None:
    """What a log's path says is a value like others, to be compared and to sort by."""
    for day in (1, 2, 3):
        (tmp_path / f"day={day}").mkdir()
        lines = [json.dumps({"ts": f"2026-11-0{day}T0{n}:00:00Z", "user": n // day}) for n in range(4)]
        (tmp_path / f"day={day}" / "a.ndjson").write_text("\n".join(lines) + "\n")
    with jitdb.open_many(str(tmp_path), "memory", timestamp="ts") as logs:
        assert [record["ts"][8:13] for record in logs.query().dedup("day")] == ["01T00", "02T00", "03T00"]
        assert logs.query().dedup(["_path", "user"]).count() == 4 + 2 + 2
        latest = logs.query().sort_by("-day", "ts").dedup("user").all()
        assert [record["ts"][8:13] for record in latest] == ["03T00", "03T03", "01T02", "01T03"]
        assert logs.query().dedup("user", last=True).value_counts("day").as_dict() == {3: 2, 1: 2}


def test_many_small_files(tmp_path: Path) -> None:
    """Files that are counted together are asked one by one for sets of records."""
    for number in range(40):
        lines = [json.dumps({"ts": 1_700_000_000 + 10 * number + n, "user": f"u{number * n % 7}"}) for n in range(5)]
        (tmp_path / f"{number:02}.ndjson").write_text("\n".join(lines) + "\n")
    with jitdb.open_many(str(tmp_path)) as logs:
        assert logs.count() == 200
        assert logs.query().dedup("user").count() == 7
        assert logs.query().dedup("user").value_counts("user").counts == (1,) * 7
        kept = logs.query(field("user") == "u3").set()
        assert logs.count(kept) == logs.value_counts("user", kept).total == len(kept)
