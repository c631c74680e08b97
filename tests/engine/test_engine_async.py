"""Async consumers on a log that takes a while: the loop runs on, cancelling stops the scan, pages wait to be wanted."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import FIXTURE, POSTS, calls_of, make_log
from waiting import until_async

import jitdb
from jitdb import JITDB, Log
from jitdb.errors import QueryCancelled
from jitdb.operators import (
    absent,
    batch,
    count,
    equal,
    from_db,
    not_,
    paginate,
    predicate,
    query,
    to_async_iter,
    to_awaitable,
    where,
)

pytestmark = pytest.mark.slow

REPEATS = 24  # of the fixture: 100 MB, 120,000 records


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log of whole blocks, one fixture after the other."""
    path = tmp_path_factory.mktemp("big") / "big.bipf"
    content = FIXTURE.read_bytes()
    with open(path, "wb") as file:
        for _ in range(REPEATS):
            file.write(content)
    yield path
    shutil.rmtree(path.parent)


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels are compiled, or loaded, before anything is timed."""
    path = tmp_path_factory.mktemp("warm") / "log"
    make_log(path, 10)
    with jitdb.open(path) as db:
        db.count(POSTS)
        db.count(equal("key", "%000001", prefix=32))


@pytest.fixture
def db(big: Path) -> Iterator[JITDB]:
    """A database without any index yet."""
    with Log(big, codec="bipf", block_size=65536, read_only=True) as log:
        yield JITDB(log, "memory", threads=2)


def test_the_loop_runs_on_while_the_first_question_scans(db: JITDB) -> None:
    async def main() -> tuple[int, list[float]]:
        gaps: list[float] = []
        asked = asyncio.ensure_future(query(from_db(db), where(POSTS), count(), to_awaitable()))
        before = time.perf_counter()
        while not asked.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - before)
            before = now
        return await asked, gaps

    total, gaps = asyncio.run(main())
    assert total > 0
    assert total % REPEATS == 0
    assert len(gaps) > 5
    assert max(gaps) < 0.5


def test_a_cancelled_task_stops_the_scan_and_what_it_indexed_is_kept(db: JITDB) -> None:
    end = db.log.durable_end
    started, ended = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(value: Any) -> bool:
        seen.append(1)
        if len(seen) > 1000:
            started.set()
        if not ended.is_set():
            time.sleep(0.002)
        return True

    question = predicate("key", slow)

    async def main() -> float:
        asked = asyncio.ensure_future(query(from_db(db), where(question), count(), to_awaitable()))
        await until_async(started.is_set)
        asked.cancel()
        begin = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await until_async(lambda: db.status.state == "idle")
        return time.perf_counter() - begin

    assert asyncio.run(main()) < 2
    assert 0 < db.status.done < end
    left = db.explain(question)["scan_bytes"]
    assert 0 < left < end
    calls = len(seen)
    ended.set()
    found = db.count(question)
    assert db.status.total == left
    assert found == db.count(not_(absent("key"))) > REPEATS * 4000
    assert len(seen) > calls


def test_a_cancelled_question_leaves_the_one_that_waits_for_its_scan(db: JITDB) -> None:
    """Two ask the same; the one who scans is cancelled; the other one goes on where it stopped."""
    cancel = threading.Event()
    answers: list[Any] = []

    def ask(stop: threading.Event | None) -> None:
        try:
            answers.append(db.count(POSTS, cancel=stop))
        except QueryCancelled as error:
            answers.append(error)

    first = threading.Thread(target=ask, args=(cancel,))
    second = threading.Thread(target=ask, args=(None,))
    first.start()
    while db.status.state == "idle" and first.is_alive():
        time.sleep(0.0002)  # it does not scan for long
    second.start()
    cancel.set()
    first.join()
    second.join()
    whole = db.count(POSTS)
    assert whole in answers
    assert whole % REPEATS == 0


def test_one_who_waits_for_a_scan_can_be_cancelled(db: JITDB) -> None:
    cancel = threading.Event()
    started, release = threading.Event(), threading.Event()

    def held(value: Any) -> bool:
        started.set()
        return release.wait(10)

    scan = threading.Thread(target=db.count, args=(predicate("value.content.type", held),))
    scan.start()
    try:
        assert started.wait(10)
        threading.Timer(0.05, cancel.set).start()
        begin = time.perf_counter()
        with pytest.raises(QueryCancelled):
            db.count(POSTS, cancel=cancel)
        assert time.perf_counter() - begin < 1
    finally:
        release.set()
        scan.join()


def test_an_async_iterator_reads_a_page_when_it_is_wanted(db: JITDB) -> None:
    assert isinstance(db.log, Log)
    reads = calls_of(db.log, "get_many_raw")

    async def main() -> None:
        async with query(from_db(db), where(POSTS), batch(10), to_async_iter()) as posts:
            for number in range(25):
                assert (await anext(posts))["value"]["content"]["type"] == "post"
                await asyncio.sleep(0)
                assert len(reads) == number // 10 + 1
        assert len(reads) == 3
        pages = query(from_db(db), where(POSTS), paginate(10), to_async_iter())
        assert len(await anext(pages)) == 10
        await pages.aclose()
        await asyncio.sleep(0.01)
        assert len(reads) == 4

    asyncio.run(main())


def test_an_async_iterator_that_is_cancelled_in_its_first_scan(db: JITDB) -> None:
    async def main() -> None:
        records = query(from_db(db), where(POSTS), to_async_iter())
        reading = asyncio.ensure_future(anext(records))
        while db.status.state == "idle" and not reading.done():
            await asyncio.sleep(0)  # it does not scan for long
        reading.cancel()
        await asyncio.wait([reading])
        assert reading.cancelled()
        with pytest.raises(QueryCancelled):  # half an answer is not taken for a whole one
            await anext(records)
        await until_async(lambda: db.status.state == "idle")
        assert db.status.done <= db.status.total

    asyncio.run(main())
    assert db.count(POSTS) % REPEATS == 0


def test_many_tasks_ask_at_once(db: JITDB) -> None:
    async def main() -> list[int]:
        kinds = ("post", "vote", "contact", "about", "pub", "channel")
        asked = [
            query(from_db(db), where(equal("value.content.type", kind)), count(), to_awaitable()) for kind in kinds
        ]
        return await asyncio.gather(*asked, query(from_db(db), count(), to_awaitable()))

    *kinds, total = asyncio.run(main())
    assert total == REPEATS * 5000
    assert all(kind % REPEATS == 0 for kind in kinds)
    assert 0 < sum(kinds) <= total
