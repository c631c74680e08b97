"""Live queries in event loops: the loop is never held up, waiting takes no thread, and cancelling loses nothing."""

import asyncio
import contextlib
import gc
import itertools
import os
import threading
import time

import pytest
from test_operator_live import EVEN, numbered, numbers_of
from toy_database import ToyDatabase, ToyFeed
from waiting import until_async

from jitdb.errors import LogClosed, QueryError
from jitdb.operators import batch, deferred, from_db, live, live_seqs, paginate, query, seqs, to_async_iter, where


@pytest.fixture
def db():
    return ToyDatabase(numbered(0, 1, 2, 3, 4))


def run(coroutine):
    """Run it; whatever happens it shall not take long, thread pool included."""
    started = time.perf_counter()
    try:
        return asyncio.run(asyncio.wait_for(coroutine, 20))
    finally:
        assert time.perf_counter() - started < 10


async def taken(stream, count):
    return [(await anext(stream))["n"] for _ in range(count)]


async def waits(stream):
    """A task that waits for the next record."""
    task = asyncio.create_task(anext(stream, "ended"))
    await asyncio.sleep(0.03)
    assert not task.done()
    return task


def test_what_comes(db):
    stream = query(from_db(db), live(), to_async_iter())  # outside of any loop: it begins here
    db.append(*numbered(5))

    async def main():
        async with stream:
            assert await taken(stream, 1) == [5]
            task = await waits(stream)
            threading.Thread(target=db.append, args=numbered(6)).start()
            assert (await task)["n"] == 6
            assert stream.cursor == "behind 7"
        assert db.watchers == {}
        assert [record async for record in stream] == []

    run(main())


def test_old_ones_pages_and_cursors(db):
    async def main():
        async with query(from_db(db), where(EVEN), live(old=True), to_async_iter()) as stream:
            assert stream.cursor == "behind 0"
            assert await taken(stream, 2) == [0, 2]
            place = stream.cursor
        async with query(from_db(db), paginate(2), live(after=place), to_async_iter()) as stream:
            assert stream.cursor == place == "behind 3"
            assert numbers_of(await anext(stream)) == [3, 4]
            task = await waits(stream)
            db.append(*numbered(5, 6, 7))
            assert numbers_of(await task) == [5, 6]
            assert numbers_of(await anext(stream)) == [7]
        for size in (1, 2, 100):
            async with query(from_db(db), batch(size), live(old=True), to_async_iter()) as stream:
                assert [(await taken(stream, 1), stream.cursor) for _ in range(3)] == [
                    ([0], "behind 1"),
                    ([1], "behind 2"),
                    ([2], "behind 3"),
                ]

    run(main())


def test_idle_streams_take_no_threads(db):
    async def main():
        before = threading.active_count()
        streams = [query(from_db(db), where(seqs([5 + n])), live(), to_async_iter()) for n in range(300)]
        tasks = [asyncio.create_task(anext(stream)) for stream in streams]
        await asyncio.sleep(0.3)
        assert len(db.watchers) == 300
        assert not any(task.done() for task in tasks)

        # Each thread of the pool is free: so many jobs as it has threads meet each other.
        loop = asyncio.get_running_loop()
        pool = min(32, (os.cpu_count() or 1) + 4)
        meeting = threading.Barrier(pool)
        await asyncio.gather(*(loop.run_in_executor(None, meeting.wait, 10) for _ in range(pool)))
        assert threading.active_count() <= before + pool

        db.append(*numbered(*range(5, 305)))
        assert numbers_of(await asyncio.gather(*tasks)) == list(range(5, 305))
        for stream in streams:
            await stream.aclose()

    run(main())


def test_the_loop_runs_while_it_is_read(db, monkeypatch):
    reading, go_on, read = threading.Event(), threading.Event(), ToyFeed.read

    def slow(self):
        reading.set()
        assert go_on.wait(10)
        return read(self)

    monkeypatch.setattr(ToyFeed, "read", slow)

    async def main():
        async with query(from_db(db), live(old=True), to_async_iter()) as stream:
            task = asyncio.create_task(anext(stream))
            await until_async(reading.is_set)
            for _ in range(5):
                await asyncio.sleep(0.001)
            assert not task.done()
            go_on.set()
            assert (await task)["n"] == 0

    run(main())


def test_a_waking_between_looking_and_waiting(db, monkeypatch):
    rest, read = numbered(*range(5, 30)), ToyFeed.read

    def read_then_append(self):
        portion = read(self)
        if portion is None and rest:
            db.append(rest.pop(0))
        return portion

    monkeypatch.setattr(ToyFeed, "read", read_then_append)

    async def main():
        async with query(from_db(db), live(), to_async_iter()) as stream:
            assert await taken(stream, 25) == list(range(5, 30))

    run(main())


def test_an_idle_stream_looks_once(db, monkeypatch):
    reads, read = [], ToyFeed.read
    monkeypatch.setattr(ToyFeed, "read", lambda self: (reads.append(1), read(self))[1])

    async def main():
        async with query(from_db(db), live(), to_async_iter()) as stream:
            task = await waits(stream)
            db.append(*numbered(5))
            assert (await task)["n"] == 5
            task = await waits(stream)
            assert len(reads) == 3
        assert await task == "ended"

    run(main())


def test_a_timeout_loses_nothing(db):
    async def main():
        stream = query(from_db(db), live(), to_async_iter())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.02)
        db.append(*numbered(5))
        assert await taken(stream, 1) == [5]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.02)
        assert stream.cursor == "behind 6"
        await stream.aclose()

    run(main())


def test_cancelling_while_it_is_read_loses_nothing(db, monkeypatch):
    """The thread goes on; what it read is there for the next who asks, and so is what came meanwhile."""
    reading, go_on, read, reads = threading.Event(), threading.Event(), ToyFeed.read, []

    def slow(self):
        reads.append(1)
        portion = read(self)
        if len(reads) in (1, 3):
            reading.set()
            assert go_on.wait(10)
        return portion

    monkeypatch.setattr(ToyFeed, "read", slow)

    async def cancelled_in_reading(stream):
        reading.clear()
        go_on.clear()
        task = asyncio.create_task(anext(stream))
        await until_async(reading.is_set)
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < 1

    async def main():
        async with query(from_db(db), batch(2), live(old=True, after="behind 3"), to_async_iter()) as stream:
            await cancelled_in_reading(stream)  # it has 3 and 4
            tasks = [asyncio.create_task(anext(stream)) for _ in range(3)]
            await asyncio.sleep(0.01)
            tasks.pop(0).cancel()
            await asyncio.sleep(0.01)
            pool = [thread for thread in threading.enumerate() if thread.name.startswith("asyncio_")]
            assert len(pool) == 1  # nobody occupies another thread
            go_on.set()
            assert numbers_of([await task for task in tasks]) == [3, 4]

            task = await waits(stream)  # read 2 finds nothing
            task.cancel()
            await cancelled_in_reading(stream)  # read 3 has found nothing
            db.append(*numbered(5))
            next_one = asyncio.create_task(anext(stream))
            await asyncio.sleep(0.01)
            go_on.set()
            assert (await next_one)["n"] == 5

    run(main())


@pytest.mark.parametrize("close", ["aclose", "close", "thread"])
def test_closing_releases_all_who_wait(db, close):
    async def main():
        stream = query(from_db(db), live(), to_async_iter())
        waiting = [await waits(stream) for _ in range(3)]
        started = time.perf_counter()
        if close == "aclose":
            await stream.aclose()
        elif close == "close":
            stream.close()
        else:
            threading.Thread(target=stream.close).start()
        assert await asyncio.gather(*waiting) == ["ended"] * 3
        assert time.perf_counter() - started < 1
        assert db.watchers == {}
        assert await anext(stream, "ended") == "ended"

    run(main())


def test_cancelling_a_task_ends_its_waiting(db):
    async def read(got):
        async for record in query(from_db(db), live(old=True), to_async_iter()):
            got.append(record["n"])

    async def main():
        got = []
        task = asyncio.create_task(read(got))
        await until_async(lambda: len(got) >= 5)
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        del task
        gc.collect()
        assert db.watchers == {}  # and the stream, which nobody has any more, was closed

    run(main())


def test_tasks_share_a_stream(db):
    async def read(stream):
        return [record["n"] async for record in stream]

    async def main():
        stream = query(from_db(db), batch(3), live(), to_async_iter())
        tasks = [asyncio.create_task(read(stream)) for _ in range(4)]
        for n in range(5, 205):
            db.append(*numbered(n))
            if n % 20 == 0:
                await asyncio.sleep(0.002)
        await until_async(lambda: stream.cursor == "behind 205")
        stream.close()
        return await asyncio.gather(*tasks)

    got = run(main())
    assert sorted(itertools.chain(*got)) == list(range(5, 205))


def test_one_loop_after_another(db):
    stream = query(from_db(db), live(old=True), to_async_iter())

    async def some():
        assert await taken(stream, 2) == [some.n, some.n + 1]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(taken(stream, 9), 0.02)

    some.n = 0
    run(some())
    db.append(*numbered(5, 6))
    some.n = 5
    run(some())
    assert len(db.watchers) == 1
    stream.close()
    assert db.watchers == {}


def test_two_loops_at_once(db):
    async def main():
        stream = query(from_db(db), live(), to_async_iter())
        task = await waits(stream)

        async def other():
            with pytest.raises(QueryError, match="another event loop"):
                await anext(stream)

        await asyncio.to_thread(asyncio.run, other())
        stream.close()
        assert await task == "ended"

    run(main())


def test_an_error_comes_out_once_and_ends_it(db, monkeypatch):
    def read(self):
        raise LogClosed("closed")

    async def main():
        stream = query(from_db(db), live(), to_async_iter())
        task = await waits(stream)
        monkeypatch.setattr(ToyFeed, "read", read)
        db.append()
        with pytest.raises(LogClosed):
            await task
        assert [record async for record in stream] == []
        assert db.watchers == {}

    run(main())


def test_deferred_parts(db):
    loops = []

    async def task(meta):
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return EVEN

    async def main():
        async with query(from_db(db), deferred(task), live(), to_async_iter()) as stream:
            db.append(*numbered(5, 6, 7))
            assert stream.cursor == "behind 5"
            assert await taken(stream, 1) == [6]
            waiting = await waits(stream)
            db.append(*numbered(8))
            assert (await waiting)["n"] == 8
        assert loops == [asyncio.get_running_loop()]
        assert db.watchers == {}

        async def gives_live_seqs(meta):
            return live_seqs([[1, 3], 4])

        async with query(from_db(db), where(deferred(gives_live_seqs)), live(old=True), to_async_iter()) as stream:
            assert await taken(stream, 3) == [1, 3, 4]

    run(main())


def test_leaving_while_tasks_are_out(db):
    cancelled = []

    async def task(meta):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append(meta.aborted)
            raise

    async def main():
        stream = query(from_db(db), deferred(task), live(), to_async_iter())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(stream), 0.02)
        assert cancelled == [True]
        waiting = await waits(stream)  # the task is asked again
        stream.close()
        assert await waiting == "ended"
        assert cancelled == [True, True]

        stream = query(from_db(db), deferred(lambda meta: 1 / 0), live(), to_async_iter())
        with pytest.raises(ZeroDivisionError):
            await anext(stream)
        assert await anext(stream, "ended") == "ended"

    run(main())


def test_the_wrong_loop(db):
    async def awaited(thing):
        return await thing

    with contextlib.closing(query(from_db(db), live(), to_async_iter())) as stream:
        with pytest.raises(QueryError, match=r"end the query with to_iter\(\)"):
            list(stream)
        with pytest.raises(QueryError, match="no end to `await`"):
            asyncio.run(awaited(stream))
