"""Deferred operations: the answer is that of the operation with the results of the tasks in their places."""

import asyncio
import copy
import functools
import gc
import itertools
import logging
import threading
import time

import pytest
from any_operation import leaves
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from toy_database import ToyDatabase, small_database

from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators import (
    and_,
    as_of,
    as_offsets,
    count,
    deferred,
    descending,
    equal,
    everything,
    format_expression,
    from_db,
    live,
    live_seqs,
    not_,
    or_,
    paginate,
    query,
    seqs,
    sort_by_arrival,
    start_from,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_json,
    to_result,
    where,
)
from jitdb.operators.question import Live, Question
from jitdb.operators.tasks.deferred import MOST_ROUNDS, resolved, resolved_async
from jitdb.operators.tasks.round import MOST_THREADS

POST = equal("value.content.type", "post")


@pytest.fixture
def db():
    return small_database()


def resolve(operation, db, cancel=None):
    return resolved(Question(operation=operation, db=db), cancel).operation


async def resolve_async(operation, db):
    return (await resolved_async(Question(operation=operation, db=db))).operation


class Awaited:
    """Is no coroutine function, but gives what is awaited."""

    def __init__(self, given):
        self.given = given

    async def __call__(self, meta):
        await asyncio.sleep(0)
        return self.given


def plain(given):
    return lambda meta: given


def with_default(given):
    return lambda meta, given=given: given


def asynchronous(given):
    async def task(meta):
        await asyncio.sleep(0.001)
        return given

    return task


def partial(given):
    async def task(given, meta):
        return given

    return functools.partial(task, given)


FORMS = [plain, with_default, asynchronous, partial, Awaited]


async def collected(results):
    return [record async for record in results]


def by_callback(parts):
    got = []
    query(*parts, to_callback(lambda error, result: got.append((error, result))))
    ((error, result),) = got
    assert (error is None) != (result is None)
    if error is not None:
        raise error
    return result


async def in_a_loop(parts):
    return query(*parts, to_result())


CONSUMERS = {
    "to_result": lambda parts: query(*parts, to_result()),
    "to_result in a loop": lambda parts: asyncio.run(in_a_loop(parts)),
    "to_callback": by_callback,
    "to_awaitable": lambda parts: asyncio.run(query(*parts, to_awaitable())),
    "to_iter": lambda parts: list(query(*parts, to_iter())),
    "to_async_iter": lambda parts: asyncio.run(collected(query(*parts, to_async_iter()))),
}


# What they give


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_task_for_each_consumer(db, form, consume):
    parts = [from_db(db), deferred(form(seqs([1, 3, 4]))), where(not_(deferred(form(seqs([4])))))]
    assert consume(parts) == [db.records[1], db.records[3]]


@pytest.mark.parametrize("consume", CONSUMERS.values(), ids=CONSUMERS)
def test_they_are_asked_anew_each_time(db, consume):
    numbers = itertools.count()
    parts = [from_db(db), deferred(lambda meta: seqs([next(numbers)]))]
    assert [consume(parts) for _ in range(3)] == [[record] for record in db.records[:3]]


def test_counts_pages_and_explanations(db):
    posts = query(from_db(db), deferred(asynchronous(POST)))
    assert query(posts, count(), to_result()) == 3
    assert query(posts, paginate(2), to_result()).total == 3
    assert list(query(posts, paginate(2), to_iter())) == [[db.records[0], db.records[2]], [db.records[3]]]
    assert list(query(posts, count(), to_iter())) == [3]
    assert asyncio.run(collected(query(posts, count(), to_async_iter()))) == [3]
    assert posts.explain() == f"I look at each record: {POST!r}"


def test_nothing_is_asked_before_the_first_record(db):
    calls = []

    def task(meta):
        calls.append(meta.db)
        return POST

    parts = [from_db(db), where(deferred(task))]
    results = [query(*parts, to_iter()), query(*parts, to_async_iter())]
    assert query(*parts).question.operation == deferred(task)
    assert calls == []
    assert next(results[0]) == db.records[0]
    assert calls == [db]  # and the task was told whom to ask
    for result in results[:1]:
        result.close()


def test_a_task_that_stands_twice_is_asked_once(db):
    calls = []

    def task(meta):
        calls.append(1)
        return POST

    asked_twice = or_(and_(deferred(task), seqs([0])), and_(deferred(task), seqs([3])))
    assert query(from_db(db), where(asked_twice), count(), to_result()) == 2
    assert len(calls) == 1
    assert deferred(task) == deferred(task) != deferred(lambda meta: POST)
    assert hash(deferred(task)) == hash(deferred(task))


def test_none_is_everything(db):
    assert resolve(deferred(plain(None)), db) == everything()
    assert resolve(not_(deferred(asynchronous(None))), db) == not_(everything())
    assert query(from_db(db), deferred(plain(None)), count(), to_result()) == 5


def test_a_task_gives_tasks(db):
    def nested(depth):
        return POST if depth == 0 else and_(everything(), deferred(lambda meta: nested(depth - 1)))

    assert db.find(resolve(nested(MOST_ROUNDS), db)) == [0, 2, 3]
    with pytest.raises(QueryError, match=f"{MOST_ROUNDS} times over"):
        resolve(nested(MOST_ROUNDS + 1), db)
    with pytest.raises(QueryError, match=f"{MOST_ROUNDS} times over"):
        asyncio.run(resolve_async(nested(MOST_ROUNDS + 1), db))


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda args: ("and", args)),
        st.lists(inner, min_size=1, max_size=3).map(lambda args: ("or", args)),
        inner.map(lambda arg: ("not", [arg])),
        st.tuples(st.sampled_from(FORMS), inner),
    ),
    max_leaves=6,
)


def built(tree, defer):
    """The operation of a tree; where it says so, made by a task, or (without `defer`) at once."""
    match tree:
        case (str(name), args):
            return {"and": and_, "or": or_, "not": not_}[name](*(built(arg, defer) for arg in args))
        case (form, inner):
            return deferred(form(built(inner, defer))) if defer else built(inner, defer)
    return tree


def rounds(tree):
    """How many tasks stand within each other."""
    match tree:
        case (str(), args):
            return max(map(rounds, args))
        case (_, inner):
            return 1 + rounds(inner)
    return 0


@settings(deadline=None)
@given(trees)
def test_results_take_the_places_of_their_tasks(tree):
    assume(rounds(tree) <= MOST_ROUNDS)
    db = small_database()
    expected, operation = built(tree, False), built(tree, True)
    found = resolve(operation, db)
    assert found == expected == asyncio.run(resolve_async(operation, db))
    assert found.unresolved == 0
    assert query(from_db(db), where(operation), to_result()) == query(from_db(db), where(expected), to_result())


def test_operations_without_tasks_are_left_as_they_are(db):
    operation = and_(POST, or_(seqs([1]), not_(seqs([2]))))
    assert operation.unresolved == 0
    assert resolve(operation, db) is operation
    assert asyncio.run(resolve_async(operation, db)) is operation
    question = Question(operation=operation, db=db)
    assert resolved(question) is question
    mixed = and_(POST | seqs([1]), deferred(plain(seqs([1]))))
    assert resolve(mixed, db).args[0] is mixed.args[0]


def test_live_seqs_of_a_task_stand_for_what_was_given_unless_it_is_live(db):
    question = Question(operation=deferred(lambda meta: live_seqs([1])), db=db)
    assert resolved(question).operation == seqs([1])
    assert repr(resolved(question.changed(live=Live())).operation) == "live_seqs(list)"


SHAPES = [
    ((), (None, False, None, 0, "declared", None)),
    ((descending(), paginate(3), start_from(2)), (None, True, 3, 2, "declared", None)),
    ((sort_by_arrival(), as_of(20)), (None, False, None, 0, "arrival", 20)),
    ((live(),), ((False, None), False, None, 0, "declared", None)),
    ((live(old=True), paginate(2)), ((True, None), False, 2, 0, "declared", None)),
]


def shape_of(meta):
    return meta.live, meta.descending, meta.limit, meta.start_from, meta.sort_by, meta.as_of


@pytest.mark.parametrize(("parts", "expected"), SHAPES)
def test_a_task_sees_how_its_query_is_asked(db, parts, expected):
    seen = []

    def task(meta):
        seen.append(shape_of(meta))
        return seqs([0])

    async def first(stream):
        async for _ in stream:
            return

    asked_so = query(from_db(db), deferred(task), *parts)
    if expected[0] is None:
        query(asked_so, to_result())
        asyncio.run(query(asked_so, to_awaitable()))
        list(query(asked_so, to_iter()))
        asyncio.run(first(query(asked_so, to_async_iter())))
        asked_so.explain()
        assert seen == [expected] * 5
    elif expected[0][0]:
        with query(asked_so, to_iter()) as stream:
            next(stream)
        asyncio.run(first(query(asked_so, to_async_iter())))
        assert seen == [expected] * 2
    else:
        asked_so.explain()
        assert seen == [expected]


def test_one_task_serves_live_and_other_queries(db):
    def task(meta):
        return live_seqs(iter([[1, 3], [0]])) if meta.live else seqs([1, 3])

    there = query(from_db(db), deferred(task))
    assert query(there, count(), to_result()) == 2
    with query(there, live(old=True), as_offsets(), to_iter()) as stream:
        assert sorted(itertools.islice(stream, 3)) == [0, 10, 30]


def test_what_it_looks_like():
    def in_my_index(meta):
        return POST

    shown = repr(query(deferred(in_my_index), where(not_(POST))))
    assert shown == "query(where(and_(deferred(in_my_index), not_(equal('value.content.type', 'post')))))"
    assert copy.copy(deferred(in_my_index)) == deferred(in_my_index)
    for written in (to_json, format_expression):
        with pytest.raises(QueryError, match=r"a task .*deferred\(in_my_index\).*the operation that it gives"):
            written(not_(deferred(in_my_index)))


# Side by side


def test_tasks_run_side_by_side(db):
    threads, loop = threading.Barrier(3), {}

    def in_thread(numbers):
        def task(meta):
            threads.wait(10)
            return seqs(numbers)

        return task

    def in_loop(number):
        async def task(meta):
            loop.setdefault("running", asyncio.get_running_loop())
            loop.setdefault("all", asyncio.Event())
            loop[number] = True
            if len(loop) == 5:
                loop["all"].set()
            assert loop["running"] is asyncio.get_running_loop()
            await loop["all"].wait()
            return seqs([number])

        return task

    operation = or_(*(deferred(in_thread([n])) for n in range(3)), *(deferred(in_loop(n)) for n in range(2, 5)))
    assert db.find(resolve(operation, db)) == [0, 1, 2, 3, 4]
    assert until(lambda: not loop["running"].is_running())

    loop.clear()

    async def main():
        found = await resolve_async(operation, db)
        assert loop["running"] is asyncio.get_running_loop()  # tasks of the caller's loop
        return found

    assert db.find(asyncio.run(main())) == [0, 1, 2, 3, 4]


def test_more_tasks_than_threads(db):
    most, now = [0], [0]
    lock = threading.Lock()

    def task(number):
        def run(meta):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.001)
            with lock:
                now[0] -= 1
            return seqs([number])

        return run

    operation = or_(*(deferred(task(number)) for number in range(5 * MOST_THREADS)))
    assert resolve(operation, db) == or_(*(seqs([number]) for number in range(5 * MOST_THREADS)))
    assert 1 < most[0] <= MOST_THREADS


def until(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    return condition()


def test_no_threads_are_left(db):
    resolve(or_(*(deferred(form(seqs([1]))) for form in FORMS)), db)
    assert until(lambda: not [thread for thread in threading.enumerate() if "jitdb" in thread.name])


def test_contexts_are_those_of_the_asker(db):
    import contextvars

    variable = contextvars.ContextVar("variable", default=0)
    seen = []

    def in_thread(meta):
        seen.append(variable.get())

    async def in_loop(meta):
        seen.append(variable.get())

    variable.set(7)
    resolve(deferred(in_thread) & deferred(in_loop), db)
    asyncio.run(resolve_async(deferred(in_thread) & deferred(in_loop), db))
    assert seen == [7, 7, 7, 7]


# Errors


class Boom(Exception):
    pass


BOOM = Boom("unchanged")


async def raises_in_loop(meta):
    raise BOOM


def raises(meta):
    raise BOOM


FAILING = [raises, raises_in_loop]


class Patient:
    """Tasks that wait until they are aborted, and know how often they were told."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.told = []
        self.ended = threading.Semaphore(0)

    def plain(self, meta):
        event = threading.Event()
        meta.on_abort(lambda: self.told.append("plain"))
        meta.on_abort(event.set)
        self.begun.release()
        assert event.wait(20)
        assert meta.aborted
        self.ended.release()
        raise RuntimeError("nobody listens")

    async def asynchronous(self, meta):
        meta.on_abort(lambda: self.told.append("async"))
        self.begun.release()
        try:
            await asyncio.sleep(20)
        finally:
            assert meta.aborted
            self.ended.release()

    @property
    def operation(self):
        return or_(*(deferred(task) for task in (self.plain, self.asynchronous)))

    def wait(self):
        for _ in range(2):
            assert self.begun.acquire(timeout=10)

    async def begun_async(self):
        while self.begun._value < 2:
            await asyncio.sleep(0.001)

    def check(self):
        """All were told once, and have ended."""
        for _ in range(2):
            assert self.ended.acquire(timeout=10)
        assert sorted(self.told) == ["async", "plain"]


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
        (lambda meta: "type == 1", r"gives an operation or None: 'type == 1' is no operation but text"),
        (lambda meta: [seqs([1])], "put a star before it"),
        (lambda meta: 5, "gives an operation or None: 5 is no operation"),
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
        assert until(lambda: metas)
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
        assert until(lambda: metas)
        raise BOOM

    with caplog.at_level(logging.ERROR, "jitdb"), pytest.raises(Boom):
        resolve(deferred(waiting) & deferred(failing), db)
    assert until(lambda: calls)
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
