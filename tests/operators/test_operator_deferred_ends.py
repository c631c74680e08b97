"""Tasks of questions that fail, are wrong, or whose asker goes away."""

import asyncio
import gc
import logging
import threading
import time

import pytest
from deferred_tasks import BOOM, CONSUMERS, FAILING, POST, Boom, Patient, raises, resolve, resolve_async
from toy_database import ToyDatabase, small_database
from waiting import until

from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators import (
    deferred,
    equal,
    from_db,
    live_seqs,
    not_,
    or_,
    query,
    seqs,
    to_async_iter,
    to_awaitable,
    to_iter,
    to_result,
    where,
)
from jitdb.operators.tasks.deferred import MOST_THREADS


@pytest.fixture
def db():
    return small_database()


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
@pytest.mark.parametrize("task", FAILING)
def test_errors_come_out_unchanged_and_the_others_are_aborted(db, task, consume):
    patient = Patient()
    waiting = failing_after(patient, task)
    started = time.perf_counter()
    with pytest.raises(Boom) as raised:
        consume([from_db(db), where(patient.operation), deferred(waiting)])
    assert raised.value is BOOM
    assert time.perf_counter() - started < 10
    patient.check()


def failing_after(patient, task):
    """The same task, failing once the patient ones have begun."""
    if task is raises:

        def waiting(meta):
            patient.wait()
            raise BOOM

        return waiting

    async def waiting_async(meta):
        await patient.begun_async()
        raise BOOM

    return waiting_async


def test_an_error_ends_the_iterators(db):
    results = query(from_db(db), deferred(raises), to_iter())
    with pytest.raises(Boom):
        next(results)
    assert list(results) == []

    async def main():
        results = query(from_db(db), deferred(raises), to_async_iter())
        with pytest.raises(Boom):
            await anext(results)
        return [record async for record in results]

    assert asyncio.run(main()) == []


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (lambda meta: "type = 1", r"equality is written `==`, not `=`"),
        (lambda meta: [seqs([1])], "put a star before it"),
        (lambda meta: 5, "gives an operation or None, and 5 is no operation"),
        (lambda meta: not_(live_seqs([1])), r"below no not_\(\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_wrong_answers_of_tasks(db, task, message):
    for consume in (CONSUMERS["to_result"], CONSUMERS["to_awaitable"]):
        with pytest.raises(QueryError, match=message):
            consume([from_db(db), deferred(task)])


def takes_keyword(meta, *, index):
    pass


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (POST, "an operation needs no deferred"),
        (5, r"a function \(meta\) that gives an operation, not 5"),
        (lambda: POST, r"it is called with 1 argument, and .* takes \(\)"),
        (lambda meta, cb: POST, r"it is called with 1 argument, and .* takes \(meta, cb\)"),
        (takes_keyword, r"takes \(meta, \*, index\)"),
    ],
)
def test_wrong_tasks(task, message):
    with pytest.raises(QueryError, match=message):
        deferred(task)


def test_any_number_of_arguments_is_one(db):
    assert resolve(deferred(lambda *arguments: seqs([len(arguments)])), db) == seqs([1])


def test_a_task_that_cancels_itself(db):
    async def task(meta):
        raise asyncio.CancelledError

    with pytest.raises(QueryCancelled, match="not by who asked"):
        resolve(deferred(task), db)
    with pytest.raises(QueryCancelled, match="not by who asked"):
        asyncio.run(resolve_async(deferred(task), db))


# The asker goes away


@pytest.mark.parametrize("ask", [lambda parts: query(*parts, to_awaitable()), lambda parts: first_of(parts)])
def test_a_cancelled_task_aborts_them(db, ask):
    patient = Patient()

    async def main():
        task = asyncio.ensure_future(ask([from_db(db), where(patient.operation)]))
        await patient.begun_async()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    patient.check()


@pytest.mark.parametrize("ask", [lambda parts: query(*parts, to_awaitable()), lambda parts: first_of(parts)])
def test_async_tasks_have_ended_when_who_asked_has(db, ask):
    begun, ended = asyncio.Event(), []

    async def task(meta):
        begun.set()
        try:
            await asyncio.sleep(20)
        finally:
            await asyncio.sleep(0.01)
            ended.append(meta.aborted)

    async def failing(meta):
        await begun.wait()
        raise BOOM

    async def main():
        asking = asyncio.ensure_future(ask([from_db(db), deferred(task)]))
        await begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert ended == [True]

        begun.clear()
        with pytest.raises(Boom):
            await ask([from_db(db), where(deferred(task) | deferred(failing))])
        assert ended == [True, True]

    asyncio.run(main())


async def first_of(parts):
    return await anext(query(*parts, to_async_iter()))


def test_a_timeout_never_makes_half_an_answer_look_whole(db):
    patient = Patient()

    async def main():
        results = query(from_db(db), where(patient.operation), to_async_iter())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(results), 0.05)
        with pytest.raises(QueryCancelled):
            await anext(results)

    asyncio.run(main())
    patient.check()


def test_closing_an_iterator_aborts_them(db):
    patient = Patient()
    results = query(from_db(db), where(patient.operation), to_iter())
    got = []
    thread = threading.Thread(target=lambda: got.extend(results))
    thread.start()
    patient.wait()
    results.close()
    thread.join(10)
    assert not thread.is_alive()
    assert got == []
    patient.check()


def test_closing_an_async_iterator_aborts_them(db):
    patient = Patient()

    async def main():
        results = query(from_db(db), where(patient.operation), to_async_iter())
        reading = asyncio.create_task(anext(results))
        await patient.begun_async()
        await results.aclose()
        with pytest.raises(StopAsyncIteration):
            await reading
        with pytest.raises(StopAsyncIteration):
            await anext(results)

    asyncio.run(main())
    patient.check()


def test_a_cancel_event_aborts_them(db):
    patient, cancel = Patient(), threading.Event()
    threading.Thread(target=lambda: (patient.wait(), cancel.set())).start()
    with pytest.raises(QueryCancelled, match="before its deferred operations were there"):
        resolve(patient.operation, db, cancel)
    patient.check()


def test_done_tasks_are_not_aborted(db):
    metas = []

    def quick(meta):
        meta.on_abort(lambda: pytest.fail("it was done"))
        metas.append(meta)
        return POST

    def slow(meta):
        until(lambda: metas)
        time.sleep(0.01)
        raise BOOM

    with pytest.raises(Boom):
        resolve(deferred(quick) & deferred(slow), db)
    assert not metas[0].aborted


def test_abort_callbacks_that_come_late_or_fail(db, caplog):
    calls, metas = [], []

    def waiting(meta):
        meta.on_abort(lambda: 1 / 0)
        meta.on_abort(lambda: calls.append("second"))
        metas.append(meta)
        until(lambda: calls)

    def failing(meta):
        until(lambda: metas)
        raise BOOM

    with caplog.at_level(logging.ERROR, "jitdb"), pytest.raises(Boom):
        resolve(deferred(waiting) & deferred(failing), db)
    until(lambda: calls)
    assert "an abort callback of the task waiting failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    (meta,) = metas
    assert meta.aborted
    meta.on_abort(lambda: calls.append("at once"))
    assert calls == ["second", "at once"]
    assert repr(meta) == "<Meta of waiting, aborted>"


def test_tasks_that_had_no_thread_yet_never_begin(db):
    begun, gate = [], threading.Event()

    def waiting(number):
        def task(meta):
            begun.append(number)
            meta.on_abort(gate.set)
            gate.wait(20)

        return task

    cancel = threading.Event()
    threading.Thread(target=lambda: (until(lambda: len(begun) == MOST_THREADS), cancel.set())).start()
    with pytest.raises(QueryCancelled):
        resolve(or_(*(deferred(waiting(number)) for number in range(3 * MOST_THREADS))), db, cancel)
    time.sleep(0.05)
    assert len(begun) == MOST_THREADS


def test_a_database_is_needed_first():
    for end in (to_result(), to_iter(), to_async_iter(), to_awaitable()):
        with pytest.raises(QueryError, match=r"add from_db\(db\)"):
            query(deferred(lambda meta: pytest.fail("was asked")), end)
    gc.collect()


def test_tasks_ask_the_database_themselves():
    db = ToyDatabase([{"root": n % 3, "id": n} for n in range(9)])

    def replies_to_the_first(meta):
        (first,) = query(from_db(meta.db), where(seqs([1])), to_result())
        return equal("root", first["root"])

    assert [record["id"] for record in query(from_db(db), deferred(replies_to_the_first), to_result())] == [1, 4, 7]
