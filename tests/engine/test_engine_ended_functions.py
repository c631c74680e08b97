"""A function of the user that raises StopIteration fails the question: it never passes for the end of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_codec import Masked

import jitdb
from jitdb import JITDB, Log
from jitdb.common.paths import Keys
from jitdb.errors import EncodeError, JitdbError, QueryError
from jitdb.log.codecs.base import Buffer
from jitdb.operators import (
    count,
    deferred,
    equal,
    from_db,
    live,
    live_seqs,
    paginate,
    predicate,
    query,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
    where,
)
from jitdb.operators.chain import Part
from jitdb.operators.nodes.operation import Operation

ENDS = (StopIteration, StopAsyncIteration)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[JITDB]:
    with jitdb.open(tmp_path / "log", create=True) as db:
        db.log.append_many([{"n": n, "tags": [n] if n else []} for n in range(5)])
        db.log.flush()
        yield db


def by_result(*parts: Part) -> Any:
    return query(*parts, to_result())


def by_callback(*parts: Part) -> Any:
    given: list[tuple[Any, Any]] = []
    query(*parts, to_callback(lambda error, result: given.append((error, result))))
    [(error, result)] = given
    if error is not None:
        raise error
    return result


def by_awaitable(*parts: Part) -> Any:
    async def ask() -> Any:
        return await asyncio.wait_for(query(*parts, to_awaitable()), 5)

    return asyncio.run(ask())


def by_iterator(*parts: Part) -> Any:
    return list(query(*parts, to_iter()))


def by_async_iterator(*parts: Part) -> Any:
    async def ask() -> Any:
        async with query(*parts, to_async_iter()) as records:
            return [record async for record in records]

    return asyncio.run(asyncio.wait_for(ask(), 5))


CONSUMERS = {
    "result": (by_result, ()),
    "callback": (by_callback, ()),
    "awaitable": (by_awaitable, ()),
    "iterator": (by_iterator, ()),
    "async iterator": (by_async_iterator, ()),
    "count": (by_result, (count(),)),
    "count by iterator": (by_iterator, (count(),)),
    "count by awaitable": (by_awaitable, (count(),)),
    "page": (by_result, (paginate(2),)),
    "pages": (by_iterator, (paginate(2),)),
    "pages by async iterator": (by_async_iterator, (paginate(2),)),
    "live": (by_iterator, (live(old=True),)),
    "live by async iterator": (by_async_iterator, (live(old=True),)),
}


def a_predicate(end: type[Exception]) -> Operation:
    def first(tags: Any) -> bool:
        if not tags:
            raise end
        return bool(tags[0] > 1)

    return predicate("tags", first)


def a_seek_function(end: type[Exception]) -> Operation:
    def find(record: bytes, start: int) -> int:
        raise end

    return equal(find, 1, index_type="n")


def a_checking_seek_function(end: type[Exception]) -> Operation:
    """One that fails only where candidates are checked: the scan has asked it about each record before."""
    asked: list[bytes] = []

    def find(record: bytes, start: int) -> int:
        if record in asked:
            raise end
        asked.append(record)
        return record.index(b"\xa1n") + 2

    return equal(find, 1, index_type="n", prefix=32)


def a_task(end: type[Exception]) -> Operation:
    def task(meta: Any) -> Operation:
        raise end

    return deferred(task)


def an_async_task(end: type[Exception]) -> Operation:
    async def task(meta: Any) -> Operation:
        await asyncio.sleep(0)
        raise end

    return deferred(task)


FUNCTIONS = {
    "predicate": (a_predicate, "the predicate 'first'"),
    "seek": (a_seek_function, "the seek function find"),
    "seek of candidates": (a_checking_seek_function, "the seek function find"),
    "task": (a_task, "the task task"),
    "async task": (an_async_task, "the task task"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_function_ends_with_is_an_error_of_the_question(
    db: JITDB, function: str, consumer: str, end: type[Exception]
) -> None:
    (make, name), (ask, parts) = FUNCTIONS[function], CONSUMERS[consumer]
    with pytest.raises(QueryError, match=rf"^{name}.* raised {end.__name__}") as raised:
        ask(from_db(db), where(make(end)), *parts)
    cause = raised.value.__cause__
    assert (isinstance(cause, end) and cause.__traceback__ is not None) or function == "callback task"
    assert db.count(equal("n", 1)) == 1  # the next question is answered


def test_the_end_that_a_source_of_live_seqs_raises_is_an_error(db: JITDB) -> None:
    class Source:
        def __iter__(self) -> Iterator[int]:
            raise StopIteration

    with pytest.raises(QueryError, match=r"^the source of live_seqs\(Source\) raised StopIteration"):
        by_iterator(from_db(db), where(live_seqs(Source())), live(old=True))


def ending(method: str) -> Masked:
    """A codec that forgets the default of next() in one of its functions."""

    def ends(self: Masked, *arguments: Any) -> Any:
        return next(value for value in ())

    return type("Ending", (Masked,), {"name": "masked", method: ends})()  # type: ignore[no-any-return]


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_what_an_own_codec_ends_with_is_an_error(tmp_path: Path, consumer: str) -> None:
    with Log(tmp_path / "log", codec=Masked()) as log:
        log.append_many([{"n": 1}, {"n": 1}])
    ask, parts = CONSUMERS[consumer]
    said = r"^decode\(\) of the codec 'masked' raised StopIteration"
    with jitdb.open(tmp_path / "log", codec=ending("decode")) as db, pytest.raises(QueryError, match=said):
        ask(from_db(db), where(equal("n", 1)), *parts)


def test_no_record_is_lost_where_an_own_codec_ends(tmp_path: Path) -> None:
    class Picky(Masked):
        def encode(self, value: Any) -> bytes:
            if value == {"n": 1}:
                raise StopIteration
            return super().encode(value)

    with Log(tmp_path / "log", codec=Picky()) as log:
        with pytest.raises(EncodeError, match=r"^encode\(\) of the codec 'masked' raised StopIteration"):
            log.append_many([{"n": 0}, {"n": 1}, {"n": 2}])
        with pytest.raises(EncodeError, match="raised StopIteration"):
            log.append({"n": 1})
        log.append({"n": 3})
        log.flush()
        assert [record.value for record in log.stream()] == [{"n": 3}]


def test_a_codec_says_itself_what_it_raises() -> None:
    class Plain(Masked):
        def find(self, record: Buffer, path: Keys) -> Any:
            raise ZeroDivisionError

        def is_valid(self, record: Buffer) -> bool:
            raise StopAsyncIteration

    with pytest.raises(ZeroDivisionError):
        Plain().find(b"", ("a",))
    with pytest.raises(JitdbError, match=r"is_valid\(\) of the codec 'masked' raised StopAsyncIteration"):
        Plain().is_valid(b"")
    assert Plain.find.__name__ == "find"
