"""Tasks of each form, and ways to ask questions that hold them."""

import asyncio
import functools
import threading

from waiting import until_async

from jitdb.operators import (
    deferred,
    equal,
    or_,
    query,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
)
from jitdb.operators.question import Question
from jitdb.operators.tasks.deferred import resolved, resolved_async

POST = equal("value.content.type", "post")


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
        await until_async(lambda: self.begun._value >= 2)

    def check(self):
        """All were told once, and have ended."""
        for _ in range(2):
            assert self.ended.acquire(timeout=10)
        assert sorted(self.told) == ["async", "plain"]
