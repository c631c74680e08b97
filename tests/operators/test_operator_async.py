"""Async consumers: the loop is never held up, a page is read when it is wanted, and leaving stops the scan."""

import asyncio
import gc
import itertools
import threading
import time

import pytest
from test_operator_query import Slow, Watched
from toy_database import small_database
from waiting import until_async

from jitdb.errors import LogClosed, QueryCancelled
from jitdb.operators import batch, count, equal, from_db, paginate, query, to_async_iter, to_awaitable, where

POST = equal("value.content.type", "post")


def run(coroutine):
    """Run it; whatever happens it shall not take long, thread pool included."""
    started = time.perf_counter()
    try:
        return asyncio.run(asyncio.wait_for(coroutine, 20))
    finally:
        assert time.perf_counter() - started < 10


class SlowCount(Slow):
    def count(self, question, *, cancel=None):
        self.cancelled = cancel
        self.page(1, 1, cancel)


# to_awaitable


def test_awaitable_gives_the_result():
    db = small_database()
    assert asyncio.run(query(from_db(db), where(POST), count(), to_awaitable())) == 3

    async def main():
        page = await query(from_db(db), where(POST), paginate(2), to_awaitable())
        records = await query(from_db(db), to_awaitable())
        return len(page.data), page.total, len(records)

    assert run(main()) == (2, 3, 5)


def test_awaitables_run_beside_each_other():
    barrier = threading.Barrier(3)

    class Meeting(Watched):
        def count(self, question, *, cancel=None):
            barrier.wait(10)
            return 7

    async def main():
        return await asyncio.gather(*(query(from_db(Meeting()), count(), to_awaitable()) for _ in range(3)))

    assert run(main()) == [7, 7, 7]


def test_awaitable_raises_the_error():
    class Broken(Watched):
        def count(self, question, *, cancel=None):
            raise LogClosed("closed")

    with pytest.raises(LogClosed):
        run(query(from_db(Broken()), count(), to_awaitable()))


def test_cancelling_an_awaitable_stops_the_scan():
    db = SlowCount()

    async def main():
        task = asyncio.create_task(query(from_db(db), count(), to_awaitable()))
        await until_async(db.working.is_set)  # the loop runs while the database works
        assert not db.cancelled.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert db.cancelled.is_set()

    run(main())


def test_a_timeout_stops_the_scan():
    db = SlowCount()

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(query(from_db(db), count(), to_awaitable()), 0.05)

    run(main())
    assert db.cancelled.is_set()


# to_async_iter


def test_records_and_pages():
    db = Watched(range(10))

    async def main():
        one_by_one = [record async for record in query(from_db(db), batch(3), to_async_iter())]
        pages = [page async for page in query(from_db(db), paginate(4), to_async_iter())]
        counted = [number async for number in query(from_db(small_database()), count(), to_async_iter())]
        return one_by_one, pages, counted

    assert run(main()) == (list(range(10)), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], [5])


def test_pages_are_read_only_when_asked_for():
    db = Watched(range(10))

    async def main():
        results = query(from_db(db), batch(5), to_async_iter())
        seen = []
        for _ in range(10):
            await anext(results)
            await asyncio.sleep(0.005)
            seen.append(db.read)
        return seen

    assert run(main()) == [1] * 5 + [2] * 5


def test_the_loop_runs_while_a_page_is_read():
    db = Slow()

    async def main():
        results = query(from_db(db), paginate(3), to_async_iter())
        await anext(results)
        reading = asyncio.create_task(anext(results))
        await until_async(db.working.is_set)
        ticks = 0
        for _ in range(5):
            await asyncio.sleep(0.001)
            ticks += 1
        await results.aclose()
        with pytest.raises(StopAsyncIteration):
            await reading
        return ticks

    assert run(main()) == 5
    assert db.closed.wait(10)


def test_cancelling_the_task_stops_the_scan():
    db = Slow()

    async def read(got):
        async for page in query(from_db(db), paginate(3), to_async_iter()):
            got.append(page)

    async def main():
        got = []
        task = asyncio.create_task(read(got))
        await until_async(db.working.is_set)
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < 1
        assert db.cancelled.is_set()
        return got

    assert run(main()) == [[0, 1, 2]]
    assert db.closed.wait(10)


def test_half_an_answer_never_looks_like_a_whole_one():
    db = Slow()

    async def main():
        results = query(from_db(db), paginate(3), to_async_iter())
        await anext(results)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(results), 0.05)
        with pytest.raises(QueryCancelled, match="cancelled before the last record"):
            await anext(results)
        await results.aclose()

    run(main())


def test_closing_waits_for_nothing():
    released = threading.Event()

    class Deaf(Slow):
        def page(self, first, limit, cancel):
            if first:
                self.working.set()
                released.wait(20)
            return super(Slow, self).page(first, limit, cancel)

    db = Deaf()

    async def main():
        async with query(from_db(db), paginate(3), to_async_iter()) as results:
            await anext(results)
            reading = asyncio.create_task(anext(results))
            await until_async(db.working.is_set)
            started = time.perf_counter()
        assert time.perf_counter() - started < 1
        assert not db.closed.is_set()  # the thread is still inside
        released.set()
        with pytest.raises(StopAsyncIteration):
            await reading

    run(main())
    assert db.closed.wait(10)  # it closed behind itself


def test_leaving_the_loop_lets_go():
    db = Watched()

    async def main():
        async for _ in query(from_db(db), to_async_iter()):
            break
        gc.collect()
        assert db.closed.is_set()

        results = query(from_db(db), to_async_iter())
        await anext(results)
        db.closed.clear()
        await results.aclose()
        assert db.closed.is_set()
        assert [record async for record in results] == []

    run(main())


def test_an_abandoned_scan_is_cancelled():
    db = Slow()

    async def main():
        results = query(from_db(db), paginate(3), to_async_iter())
        await anext(results)
        task = asyncio.create_task(anext(results))
        await until_async(db.working.is_set)
        task.cancel()
        del results
        await asyncio.gather(task, return_exceptions=True)
        await until_async(db.closed.is_set)

    run(main())


def test_tasks_share_an_iterator():
    db = Watched(range(1000))

    async def read(results):
        got = []
        async for record in results:
            got.append(record)
            if record % 50 == 0:
                await asyncio.sleep(0)
        return got

    async def main():
        results = query(from_db(db), batch(10), to_async_iter())
        return await asyncio.gather(*(read(results) for _ in range(4)))

    assert sorted(itertools.chain(*run(main()))) == list(range(1000))


def test_cancelling_one_of_two_waiting_tasks_leaves_the_other():
    gate = threading.Event()

    class Gated(Watched):
        def page(self, first, limit, cancel):
            gate.wait(10)
            return super().page(first, limit, cancel)

    db = Gated(range(4))

    async def main():
        results = query(from_db(db), paginate(2), to_async_iter())
        reading = asyncio.create_task(anext(results))
        waiting = asyncio.create_task(anext(results))
        await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.sleep(0.01)
        gate.set()
        return await reading, await anext(results)

    assert run(main()) == ([0, 1], [2, 3])


def test_an_error_comes_out_and_ends_it():
    class Broken(Watched):
        def page(self, first, limit, cancel):
            raise LogClosed("closed")

    db = Broken()

    async def main():
        results = query(from_db(db), to_async_iter())
        with pytest.raises(LogClosed):
            await anext(results)
        return [record async for record in results]

    assert run(main()) == []
    assert db.closed.is_set()
