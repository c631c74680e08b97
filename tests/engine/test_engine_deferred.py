"""Parts of a question that a task makes when it is asked, over a real log."""

from __future__ import annotations

import asyncio
import queue
import threading
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, VOTES, expected, make_log, oracle_of

import jitdb
from jitdb import JITDB
from jitdb.errors import QueryCancelled
from jitdb.operators import (
    and_,
    as_offsets,
    count,
    deferred,
    equal,
    from_db,
    live,
    not_,
    offsets,
    or_,
    query,
    seqs,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
    where,
)


@pytest.fixture
def db(tmp_path: Path) -> Any:
    make_log(tmp_path / "a.log", 300)
    with jitdb.open(tmp_path / "a.log") as opened:
        yield opened


def test_what_a_task_finds_counts_as_if_it_had_been_written(db: JITDB) -> None:
    async def slowly(meta: Any) -> Any:
        await asyncio.sleep(0.01)
        return seqs([1, 5, 9, 299])

    def by_asking(meta: Any) -> Any:
        return offsets(meta.db.all(equal("value.author", "@3"), as_offsets=True))

    def from_a_callback(meta: Any) -> Any:
        came: queue.Queue[Any] = queue.Queue()
        threading.Timer(0.01, came.put, (VOTES,)).start()
        return came.get(timeout=10)

    question = or_(and_(deferred(slowly), POSTS), and_(deferred(by_asking), not_(deferred(from_a_callback))))
    plain = or_(and_(seqs([1, 5, 9, 299]), POSTS), and_(equal("value.author", "@3"), not_(VOTES)))
    wanted = expected(oracle_of(db.log), plain)
    assert wanted
    asked = query(from_db(db), where(question), as_offsets())
    assert query(asked, to_result()) == wanted
    assert list(query(asked, to_iter())) == wanted
    assert asyncio.run(query(asked, to_awaitable())) == wanted
    assert db.all(question, as_offsets=True) == wanted
    assert db.count(question) == query(asked, count(), to_result()) == len(wanted)

    async def loop() -> list[Any]:
        return [offset async for offset in query(asked, to_async_iter())]

    assert asyncio.run(loop()) == wanted
    got: list[Any] = []
    query(asked, to_callback(lambda error, result: got.append((error, result))))
    assert got == [(None, wanted)]


def test_in_the_chain_of_a_query(db: JITDB) -> None:
    found = query(from_db(db), deferred(lambda meta: seqs([0, 4, 6])), where(POSTS), as_offsets(), to_result())
    assert found == expected(oracle_of(db.log), and_(seqs([0, 4, 6]), POSTS))


def test_a_task_that_fails(db: JITDB) -> None:
    def fails(meta: Any) -> Any:
        raise ZeroDivisionError("no such index")

    with pytest.raises(ZeroDivisionError, match="no such index"):
        db.count(and_(POSTS, deferred(fails)))
    assert db.count(POSTS) == 120


def test_a_task_is_aborted_when_the_asker_goes_away(db: JITDB) -> None:
    aborted = threading.Event()
    begun = threading.Event()

    def waits(meta: Any) -> None:
        meta.on_abort(aborted.set)
        begun.set()
        assert aborted.wait(10)

    cancel = threading.Event()

    def ask() -> None:
        with pytest.raises(QueryCancelled):
            db.count(deferred(waits), cancel=cancel)

    asker = threading.Thread(target=ask)
    asker.start()
    assert begun.wait(10)
    cancel.set()
    asker.join(10)
    assert not asker.is_alive()
    assert aborted.is_set()


def test_live(db: JITDB) -> None:
    stream = query(from_db(db), where(and_(deferred(lambda meta: POSTS))), as_offsets(), live(old=True), to_iter())
    wanted = expected(oracle_of(db.log), POSTS, arrival=True)
    assert [next(stream) for _ in wanted] == wanted
    stream.close()
