"""Deferred operations: the answer is that of the operation with the results of the tasks in their places."""

import asyncio
import copy
import itertools
import threading
import time

import pytest
from any_operation import leaves
from deferred_tasks import CONSUMERS, FORMS, POST, asynchronous, collected, plain, resolve, resolve_async
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from toy_database import small_database
from waiting import until

from jitdb.errors import QueryError
from jitdb.operators import (
    and_,
    as_of,
    as_offsets,
    count,
    deferred,
    descending,
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
    to_iter,
    to_json,
    to_result,
    where,
)
from jitdb.operators.question import Live, Question
from jitdb.operators.tasks.deferred import MOST_ROUNDS, MOST_THREADS, resolved


@pytest.fixture
def db():
    return small_database()


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
    until(lambda: not loop["running"].is_running())

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


def test_no_threads_are_left(db):
    resolve(or_(*(deferred(form(seqs([1]))) for form in FORMS)), db)
    until(lambda: not [thread for thread in threading.enumerate() if "jitdb" in thread.name])


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
