"""Async programs ask in the same words: each answer is the synchronous one, and the event loop never waits for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until_async

import jitdb
from jitdb import JITDB, LogSet
from jitdb.errors import QueryError
from jitdb.operators import Query, deferred, field, from_db, predicate, query, where

RECORDS: list[dict[str, Any]] = [
    {"n": n, "level": ("info", "error")[n % 2], "ms": n % 10, "time": 1_700_000_000_000 + n} for n in range(300)
]
ERRORS = [record for record in RECORDS if record["level"] == "error"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path / "a.ndjson"


@pytest.fixture(params=["one", "many"])
def db(request: pytest.FixtureRequest, path: Path) -> Iterator[JITDB | LogSet]:
    with jitdb.open(path, read_only=True) if request.param == "one" else jitdb.open_many(path) as db:
        yield db


#: Of each word of a query that asks: how it is said, and what a plain program finds.
WORDS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "count": (lambda asked: asked.count(), len(ERRORS)),
    "all": (lambda asked: asked.all(), ERRORS),
    "offsets": (lambda asked: asked.offsets(), 150),
    "first": (lambda asked: asked.first(), ERRORS[0]),
    "page": (lambda asked: asked.page(3), ERRORS[:3]),
    "pages": (lambda asked: asked.pages(40), [40, 40, 40, 30]),
    "context": (lambda asked: asked.where("n == 7").context(1, 1), [[6, 7, 8]]),
    "set": (lambda asked: asked.set(), 150),
    "to_arrow": (lambda asked: asked.to_arrow(["n"]), [{"n": record["n"]} for record in ERRORS]),
    "to_pandas": (lambda asked: asked.to_pandas(["n"]), [record["n"] for record in ERRORS]),
    "to_polars": (lambda asked: asked.to_polars(["n"]), [{"n": record["n"]} for record in ERRORS]),
    "to_record_batches": (lambda asked: asked.to_record_batches(["n"]), [{"n": record["n"]} for record in ERRORS]),
    "to_numpy": (lambda asked: asked.to_numpy("n"), [record["n"] for record in ERRORS]),
    "explain": (lambda asked: asked.explain(), True),
    "value_counts": (lambda asked: asked.value_counts("level"), {"error": 150}),
    "group_count": (lambda asked: asked.group_count("level", "ms"), {("error", ms): 30 for ms in range(1, 10, 2)}),
    "histogram": (lambda asked: asked.histogram("ms", bins=[0, 5, 10]), [60, 90]),
    "timeline": (lambda asked: asked.timeline(every="1y"), [150]),
    "stats": (lambda asked: asked.stats("ms"), sum(record["ms"] for record in ERRORS)),
    "stats_by": (lambda asked: asked.stats_by("ms", "level"), [("error", sum(record["ms"] for record in ERRORS))]),
    "count_distinct": (lambda asked: asked.count_distinct("ms", "level"), [("error", 5)]),
    "facets": (lambda asked: asked.facets(fields=["level"]), {("level",): "error"}),
    "difference": (lambda asked: asked.difference(fields=["n"]), []),
    "patterns": (lambda asked: asked.patterns(field="level"), [("error", 150)]),
    "share": (
        lambda asked: asked.share("ms > 5", "level"),
        [("error", sum(record["ms"] > 5 for record in ERRORS), 150)],
    ),
}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "offsets": len,
    "page": lambda page: page.data,
    "pages": lambda pages: [len(page.data) for page in pages],
    "context": lambda passages: [[seen.record["n"] for seen in passage] for passage in passages],
    "set": len,
    "to_arrow": lambda table: table.to_pylist(),
    "to_pandas": lambda frame: frame["n"].tolist(),
    "to_polars": lambda frame: frame.to_dicts(),
    "to_record_batches": lambda batches: [row for batch in batches for row in batch.to_pylist()],
    "to_numpy": lambda arrays: arrays["n"].tolist(),
    "explain": lambda told: told.log_bytes > 0,
    "value_counts": dict,
    "group_count": dict,
    "histogram": lambda rows: [row.count for row in rows],
    "timeline": lambda rows: [row.count for row in rows],
    "stats": lambda stats: stats.sum,
    "stats_by": lambda rows: [(row.value, row.stats.sum) for row in rows],
    "count_distinct": lambda rows: [(row.value, row.distinct) for row in rows],
    "facets": lambda found: found.same,
    "difference": lambda found: [str(row) for row in found],
    "patterns": lambda rows: [(row.pattern, row.count) for row in rows],
    "share": lambda rows: [(row.value, row.matching, row.count) for row in rows],
}
ASKS_NOTHING = {
    "where", "since", "until", "descending", "sort_by", "sort_by_arrival", "select", "start_from", "paginate", "batch",
    "as_offsets", "as_raw", "as_of", "dedup", "debug", "live", "changed",
}  # fmt: skip


def test_each_word_of_a_query_is_tried_here() -> None:
    words = {name for name in dir(Query) if not name.startswith("_")} - {"question", "aio"}
    assert words == WORDS.keys() | ASKS_NOTHING


def plain(name: str, answer: Any) -> Any:
    return PLAIN.get(name, lambda found: found)(answer)


@pytest.mark.parametrize("name", WORDS)
def test_each_word_gives_what_it_gives_without_await(db: JITDB | LogSet, name: str) -> None:
    say, wanted = WORDS[name]

    async def asked() -> Any:
        return await say(db.query("level == 'error'").aio)

    assert plain(name, asyncio.run(asked())) == plain(name, say(db.query("level == 'error'"))) == wanted


class Turn:
    """A predicate that is true once the event loop has had a turn while it waited: it never is where the loop waits for
    the answer.
    """

    def __init__(self) -> None:
        self.waiting, self.had = threading.Event(), threading.Event()

    def __call__(self, value: Any) -> bool:
        self.waiting.set()
        if not self.had.wait(10):
            raise TimeoutError("the event loop was held up")
        return value == "error"

    async def take(self) -> None:
        await until_async(self.waiting.is_set)
        self.had.set()


@pytest.mark.parametrize("name", sorted(WORDS.keys() - {"explain"}))
def test_the_loop_goes_on_while_a_query_is_answered(path: Path, name: str) -> None:
    """The scan waits for the loop, so an answer means that the loop was not held up."""
    say, wanted = WORDS[name]

    async def asked() -> Any:
        turn = Turn()
        with jitdb.open(path, "memory", read_only=True) as db:
            took = asyncio.ensure_future(turn.take())
            answer = await say(db.query(predicate("level", turn, "turn")).aio)
            if name in ("pages", "context", "to_record_batches"):  # which read when they are gone through
                return await asyncio.to_thread(plain, name, answer)
            await took
            return plain(name, answer)

    assert asyncio.run(asked()) == wanted


@pytest.mark.parametrize("name", ["pages", "context", "to_record_batches"])
def test_parts_of_an_answer_are_gone_through_beside_the_loop(path: Path, name: str) -> None:
    say, wanted = WORDS[name]

    async def asked() -> Any:
        turn = Turn()
        with jitdb.open(path, "memory", read_only=True) as db:
            took = asyncio.ensure_future(turn.take())
            parts = [part async for part in say(db.query(predicate("level", turn, "turn")).aio)]
            await took
            return plain(name, parts)

    assert asyncio.run(asked()) == wanted


def test_a_database_is_asked_in_the_same_words(path: Path) -> None:
    async def asked(db: JITDB) -> None:
        error = field("level") == "error"
        assert await db.aio.count("level == 'error'") == await db.aio.count(error, start_from=0) == len(ERRORS)
        assert await db.aio.query("level == 'error'").where("ms > 5").count() == 60
        assert await db.aio.all(error, descending=True) == ERRORS[::-1]
        assert [page.total async for page in db.aio.pages(error, limit=100)] == [150, 150]
        assert dict(await db.aio.value_counts("level", error)) == {"error": 150}
        assert (await db.aio.stats("ms", "level == 'error'")).count == 150
        assert [row["n"] async for each in db.aio.field_batches(error, select=["n"]) for row in each.rows()] == [
            record["n"] for record in ERRORS
        ]
        assert await db.aio.prepare(error) >= 0
        assert await db.aio.lookup(error, 1)
        assert (await db.aio.verify()).ok
        assert await db.aio.refresh() is False
        assert db.aio.log is db.log
        assert await query(from_db(db), where(error)).aio.count() == 150
        assert [record async for record in db.aio.query(error)] == await db.aio.query(error) == ERRORS
        with pytest.raises(AttributeError, match="did you mean count"):
            _ = db.aio.cuont

    with jitdb.open(path, read_only=True) as db:
        asyncio.run(asked(db))


def test_a_database_is_written_to_and_closed(tmp_path: Path) -> None:
    async def kept() -> int:
        async with jitdb.open(tmp_path / "a.log", create=True).aio as db:
            db.log.append_many(RECORDS)
            db.log.flush()
            assert await db.delete("level == 'error'") == 150
            assert (await db.compact()).removed == 150
            return int(await db.count())

    assert asyncio.run(kept()) == 150
    with jitdb.open(tmp_path / "a.log") as db:  # it was closed: it can be opened for writing
        assert db.count() == 150


def test_live_questions_wait_in_the_loop(db: JITDB | LogSet, path: Path) -> None:
    async def come() -> list[int]:
        before = threading.active_count()
        found: list[int] = []
        for stream in (db.query("n >= 300").aio.live(), db.aio.live("n >= 300")):
            reading = asyncio.ensure_future(anext(aiter(stream)))
            await asyncio.sleep(0.3)
            assert not reading.done()
            assert threading.active_count() <= before + 3
            with open(path, "a") as file:
                file.write(json.dumps({"n": 300 + len(found)}) + "\n")
            found.append((await asyncio.wait_for(reading, 20))["n"])
        return found

    assert asyncio.run(come()) == [300, 301]


def test_errors_come_out_where_it_is_awaited(db: JITDB | LogSet) -> None:
    async def asked() -> None:
        with pytest.raises(QueryError, match="equality is written"):
            db.aio.query("level = 1")
        with pytest.raises(QueryError, match="equality is written"):
            await db.aio.count("level = 1")
        with pytest.raises(QueryError, match="a live query never ends"):
            await db.query().live().aio.count()
        with pytest.raises(ZeroDivisionError):
            await db.query(predicate("ms", lambda ms: 1 // ms > 0, "divides")).aio.count()

    asyncio.run(asked())


def test_async_tasks_of_a_question_run_in_the_loop(db: JITDB | LogSet) -> None:
    async def asked() -> int:
        here = asyncio.get_running_loop()

        async def task(meta: Any) -> str:
            assert asyncio.get_running_loop() is here
            assert meta.db is db
            return "level == 'error'"

        return int(await db.query(deferred(task)).aio.count())

    assert asyncio.run(asked()) == 150


@pytest.mark.parametrize("of", ["query", "database", "summary", "pages"])
def test_a_cancelled_task_ends_the_scan(tmp_path: Path, of: str) -> None:
    """All calls of the function together take ten seconds."""
    begun, calls = threading.Event(), []

    def slow(value: Any) -> bool:
        calls.append(value)
        begun.set()
        time.sleep(0.005)
        return True

    async def cancelled(db: JITDB) -> None:
        asked = predicate("n", slow, "slow")

        async def wait() -> Any:
            if of == "pages":
                return [page async for page in db.query(asked).aio.pages(10)]
            if of == "summary":
                return await db.aio.value_counts("n", asked)
            return await (db.query(asked).aio.count() if of == "query" else db.aio.count(asked))

        task = asyncio.ensure_future(wait())
        await until_async(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    (tmp_path / "b.ndjson").write_text("".join(f'{{"n": {n}}}\n' for n in range(2000)))
    with jitdb.open(tmp_path / "b.ndjson", "memory", read_only=True) as db:
        asyncio.run(cancelled(db))  # which waits for the thread at its end
        assert len(calls) < 500
        assert db.count() == 2000


def test_an_answer_to_be_awaited_does_nothing_until_then(db: JITDB | LogSet) -> None:
    asked: list[Any] = []
    db.query(predicate("level", asked.append, "asked")).aio.count()
    assert not asked


def test_an_answer_is_run_as_a_coroutine_is(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n{"n": 2}\n')
    with jitdb.open(tmp_path / "a.json", "memory") as db:
        assert asyncio.run(db.query("n > 1").aio.count()) == 1

        async def both() -> list[int]:
            return [await asyncio.create_task(db.aio.count("n > 0")), await db.aio.count()]

        assert asyncio.run(both()) == [2, 2]
        unused = db.aio.count()
        unused.close()
