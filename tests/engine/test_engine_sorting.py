"""Answers sorted by fields: as the oracle sorts them, whichever index it comes from, page by page and in sets."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_helpers import manager_of
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle, place_of
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.common.values import UNDEFINED, value_key
from jitdb.engine.answering import order as orders
from jitdb.engine.answering.value_order import place_of_key, ranks_of
from jitdb.errors import QueryError
from jitdb.log.codecs.fields.located import FieldValues
from jitdb.operators import everything, field, from_db, live, query, sort_by, to_iter
from jitdb.operators.nodes.selection import sort_keys

TEXTS = [
    "",
    "a",
    "a\0",
    "ab",
    "abcdefgh",
    "abcdefgh\0",
    "abcdefghi",
    "abcdefghijklmnopq",
    "Z",
    "é",
    "zebra",
    "\U0001f600",
    "ﬀ",
]
TIMES = [
    "2026-11-01",
    "2026-11-01T00:00:00Z",
    "2026-11-01T01:00:00.5+01:00",
    "1969-12-31T23:59:59.999999999Z",
    "01/Nov/2026:01:00:00 +0100",
]
NUMBERS = [0, -0.0, 1, 1.5, -7, 2**53, 2**53 + 1, 2**63, -(2**63), 2**64 - 1, 1e300, float("inf"), float("-inf")]
SPELLED = ["0", "1.5", "-7", "+7", "1e0", str(2**53 + 1), str(2**64 - 1), "1" + "0" * 30, "1700000000"]
NOTHING = [None, float("nan")]
OTHERS = [True, False, b"", b"a", b"b", [], [1], {}, {"a": 1}, {"$date": "2026-11-01"}, {"$date": 7}]
VALUES = TEXTS + TIMES + NUMBERS + SPELLED + NOTHING + OTHERS


@pytest.fixture(autouse=True, scope="module", params=[1, orders.FEW])
def _few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Choose the best of many records before they are sorted, also where there are few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "FEW", request.param)
        yield


def opened(tmp_path: Path, records: Sequence[Any], folder: str | None = "memory") -> JITDB:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return jitdb.open(path, folder)


def numbers(db: JITDB, *fields: Any, **settings: Any) -> list[int]:
    return [record["n"] for record in db.all(sort_by=list(fields), **settings)]


def test_ranks_are_the_oracles_order() -> None:
    values = [*VALUES, UNDEFINED]
    random.Random(1).shuffle(values)
    keys = [value_key(value) for value in values]
    ranks = ranks_of(FieldValues.of_keys(keys)).tolist()
    for value, key, rank in zip(values, keys, ranks, strict=True):
        place = None if value is UNDEFINED else place_of(value)
        assert (place is None) == (rank != rank) == (place_of_key(key) is None), value
        for other, its_key, its_rank in zip(values, keys, ranks, strict=True):
            theirs = None if other is UNDEFINED else place_of(other)
            if place is not None and theirs is not None:
                less = place < theirs
                assert (rank < its_rank) == less, (value, other)
                assert (place_of_key(key) < place_of_key(its_key)) == less, (value, other)  # type: ignore[operator]


@settings(max_examples=tries(60, 2000), deadline=None)
@given(st.lists(st.text("ab\0é\U0001f600", max_size=20) | st.text(max_size=12), unique=True))
def test_texts_are_ranked_by_code_points(texts: list[str]) -> None:
    ranks = ranks_of(FieldValues.of_keys([value_key("#" + text) for text in texts]))
    assert [texts[at] for at in np.argsort(ranks)] == sorted(texts)


@settings(max_examples=tries(25, 500), deadline=None)
@given(data=st.data())
def test_pages_are_the_oracles(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of fields of numbers, of times, of text, and of all kinds; all at once, by pages, and after the log has grown."""
    kinds = st.sampled_from([NUMBERS + NOTHING, NUMBERS + SPELLED, SPELLED, [*TIMES, None], TEXTS, VALUES, [1, 2, 3]])
    pools = {name: data.draw(kinds, name) for name in ("a", "b", "c")}
    made = random.Random(data.draw(st.integers(0, 99), "seed"))

    def record() -> dict[str, Any]:
        return {name: made.choice(pool) for name, pool in pools.items() if made.random() < 0.9}

    with Log(tmp_path_factory.mktemp("sorted") / "log", codec="msgpack", block_size=512) as log:
        db = JITDB(log, "memory")
        known: list[Any] = []
        offsets: list[int] = []
        for _ in range(2):
            fresh = [record() for _ in range(data.draw(st.integers(0, 60), "records"))]
            offsets += map(int, log.append_many(fresh))
            known += fresh
            log.flush()
            names = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True), "names")
            keys = sort_keys("", [data.draw(st.sampled_from(["", "-"])) + name for name in names])
            descending, limit = data.draw(st.booleans(), "descending"), data.draw(st.integers(1, 9), "limit")
            oracle = Oracle(known, offsets, set())
            expected = [offsets[seq] for seq in oracle.sorted_by(everything(), keys, descending=descending)]
            order: dict[str, Any] = {"sort_by": list(keys), "descending": descending, "as_offsets": True}
            assert [at for page in db.pages(limit=limit, **order) for at in page.data] == expected
            page = JITDB(log, "memory").paginate(limit=limit, start_from=3, **order)
            assert (page.data, page.total) == (expected[3 : 3 + limit], len(known))
            assert db.all(**order) == expected


def test_first_pages_of_many_zones(tmp_path: Path) -> None:
    """More records than a zone has: of sorted, random and few values, with ties and gaps at every border."""
    count = 20_000
    made = np.random.default_rng(3)
    fields = {
        "rising": np.arange(count) // 3,
        "random": made.integers(0, 1 << 40, count),
        "few": made.integers(0, 3, count),
        "gaps": np.where(made.random(count) < 0.7, -1, made.integers(0, 1000, count)),
    }
    records = [
        {name: int(column[at]) for name, column in fields.items() if name != "gaps" or column[at] >= 0} | {"n": at}
        for at in range(count)
    ]
    oracle = Oracle(records, range(count), set())
    db = opened(tmp_path, records)
    for by in (["rising"], ["-rising"], ["-random"], ["few", "-random"], ["-gaps", "n"], ["gaps"], ["few", "gaps"]):
        for descending in (False, True):
            seqs = oracle.sorted_by(everything(), sort_keys("", by), descending=descending)
            expected = list(db.all(sort_by="arrival", as_offsets=True))
            expected = [expected[seq] for seq in seqs]
            for limit in (1, 10, 4000, 15_000):
                page = db.paginate(limit=limit, sort_by=by, descending=descending, as_offsets=True)
                assert page.data == expected[:limit], (by, descending, limit)


def forms_of(db: JITDB) -> set[str]:
    return {spec.form for spec in manager_of(db).index_names().values() if spec and spec.paths == (("a",),)}


def test_the_index_that_holds_all_values_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    lines = {
        "column": [3, 1.5, None, 2], "time": ["2026-01-02", "2026-01-01T23:00-05:00"], "dictionary": ["b", 7, "a"],
    }  # fmt: skip
    for form, values in lines.items():
        path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values))
        with jitdb.open(path, "memory") as db:
            found = [record["a"] for record in db.all(sort_by="a")]
            assert found == sorted(values, key=lambda value: place_of(value) or (9,))  # type: ignore[arg-type]
            assert forms_of(db) == {form}


def test_a_field_that_turns_out_to_be_mixed(tmp_path: Path) -> None:
    """The first records do not tell, nor does what is indexed: others come."""
    db = opened(tmp_path, [{"n": at, "a": at % 7} for at in range(20)] + [{"n": 20, "a": "text"}, {"n": 21, "a": -1}])
    assert numbers(db, "a")[-1:] == [20]
    assert forms_of(db) == {"column", "dictionary"}
    later = opened(tmp_path, [{"n": 0, "a": 5}, {"n": 1, "a": 3}], None)
    assert numbers(later, "a") == [1, 0]
    with open(later.log.path, "a") as file:
        file.write('{"n":2,"a":"2026-01-01"}\n{"n":3,"a":"x"}\n{"n":4,"a":4}\n')
    later.refresh()
    assert numbers(later, "-a") == [3, 2, 0, 4, 1]
    with jitdb.open(later.log.path) as again:
        assert numbers(again, "a") == [1, 4, 0, 2, 3]


def test_one_scan_answers_the_first_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = opened(tmp_path, [{"n": at, "a": -at, "b": "xyz"[at % 3]} for at in range(100)])
    scans = []
    build = manager_of(db).build
    monkeypatch.setattr(manager_of(db), "build", lambda *arguments: (scans.append(1), build(*arguments))[1])
    page = db.paginate(field("b") == "x", limit=2, sort_by=["-b", "a"])
    assert ([record["n"] for record in page.data], page.total) == ([99, 96], 34)
    assert len(scans) == 1


def test_ways_to_say_it(tmp_path: Path) -> None:
    rows = [{"n": 0, "-a": 2, "arrival": 1}, {"n": 1, "-a": 1, "arrival": 0}, {"n": 2, "x": {"y": 1}}]
    db = opened(tmp_path, rows)
    assert numbers(db, "arrival") == [1, 0, 2]
    assert [record["n"] for record in db.all(sort_by="arrival")] == [0, 1, 2]
    assert numbers(db, field("-a")) == numbers(db, field("-a"), descending=False) == [1, 0, 2]
    assert numbers(db, -field("-a")) == [record["n"] for record in db.query().sort_by(-field("-a"))] == [0, 1, 2]
    assert [record["n"] for record in query(from_db(db), sort_by("x.y"), to_iter())] == [2, 0, 1]
    asked = db.query().sort_by("x.y", -field("n"), field("-a"))
    assert repr(asked.question.changed(db=None)) == """query(sort_by('x.y', '-n', '["-a"]'))"""

    async def gone_through() -> list[int]:
        return [record["n"] async for record in asked.batch(1)]

    assert asyncio.run(gone_through()) == [record["n"] for page in asked.pages(1) for record in page.data] == [2, 1, 0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda db: db.query().sort_by(), "none was given"),
        (lambda db: db.query().sort_by("a", "-a"), "twice"),
        (lambda db: db.query().sort_by("-"), "at least one key"),
        (lambda db: db.query().sort_by("a[].b"), "may lead to many"),
        (lambda db: db.all(sort_by=7), "not 7"),
        (lambda db: db.all(sort_by=[("a", "b")]), "field"),
        (lambda db: query(from_db(db), sort_by("a"), live()), "leave sort_by"),
    ],
)
def test_what_cannot_be_sorted_by_is_told(tmp_path: Path, wrong: Any, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        wrong(opened(tmp_path, [{"a": 1}]))


def test_pages_go_on_after_a_compaction(tmp_path: Path) -> None:
    with Log(tmp_path / "log", codec="bipf", block_size=512) as log:
        places = log.append_many([{"n": at, "a": at % 10, "b": "text"[at % 4]} for at in range(200)])
        log.flush()
        db = JITDB(log)
        pages = db.pages(limit=7, sort_by=["a", "-b"])
        expected = [record["n"] for record in db.all(sort_by=["a", "-b"])]
        found = [record["n"] for record in next(pages).data]
        gone = set(range(0, 200, 3)) - set(found)
        for at in gone:
            log.delete(places[at])
        log.flush()
        db.compact()
        found += [record["n"] for page in pages for record in page.data]
        assert found == [at for at in expected if at not in gone]


@pytest.mark.parametrize("by", [["a"], ["-a", "b"], ["day", "-a"], ["-day"], ["b", "-day", "a"]])
@pytest.mark.parametrize("descending", [False, True])
def test_sets_of_logs_are_merged(tmp_path: Path, by: list[str], descending: bool) -> None:
    """Numbers in one log are beside text in the other; fields of folders sort, too."""
    made = random.Random(5)
    pools = [[*NUMBERS, None], TIMES, [1, 2], list(TEXTS)]
    known: list[Any] = []
    paths = []
    for number, pool in enumerate(pools):
        path = tmp_path / f"day={number % 3}" / f"{number}.ndjson"
        path.parent.mkdir(exist_ok=True)
        rows = [{"a": made.choice(pool), "b": made.choice(["x", "y"])} for _ in range(40)]
        rows = [json.loads(json.dumps(row)) for row in rows if row["a"] not in (float("inf"), float("-inf"))]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    with jitdb.open_many(tmp_path, "memory", labelled=True) as logs:
        for member in logs.members:
            known += [json.loads(line) | dict(member.fields) for line in Path(member.path).read_text().splitlines()]
        oracle = Oracle(known, range(len(known)), set())
        expected = [known[seq] for seq in oracle.sorted_by(everything(), sort_keys("", by), descending=descending)]
        asked = logs.query().sort_by(*by)
        asked = asked.descending() if descending else asked
        assert asked.all() == expected
        assert asked.start_from(5).page(20).data == expected[5:25]
        assert [record for page in asked.pages(9) for record in page.data] == expected


def test_what_stands_around_sorted_answers_is_of_their_time(tmp_path: Path) -> None:
    """The two largest, in that order, each with what came before and after it."""
    sizes = [5, 1, 8, 2, 3, 1, 9]
    db = opened(tmp_path, [{"n": at, "timestamp": 100 + at, "size": size} for at, size in enumerate(sizes)])
    for asked, expected in ((["-size"], [[5, 6], [1, 2]]), (["size", "n"], [[0, 1], [4, 5]])):
        passages = list(db.query().sort_by(*asked).context(1, 0, limit=2))
        assert [[seen.record["n"] for seen in passage] for passage in passages] == expected
        assert [[seen.is_match for seen in passage] for passage in passages] == [[False, True], [False, True]]
    assert [seen.record["n"] for seen in next(db.query().sort_by("size").descending().context(1, 0, limit=1))] == [5, 6]
