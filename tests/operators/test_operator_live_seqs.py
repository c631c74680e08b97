"""Seqs that keep coming: the source is read beside, once, no faster than it is taken, and let go of in the end."""

import asyncio
import gc
import itertools
import queue
import threading
import time

import numpy as np
import pytest
from test_operator_live import (
    EVEN,
    in_thread,
    joined,
    numbered,
    numbers_of,
    taken,
    waits,
)
from toy_database import ToyDatabase
from waiting import until

from jitdb.errors import QueryCancelled, QueryError
from jitdb.operators import (
    and_,
    as_offsets,
    count,
    equal,
    format_expression,
    from_db,
    live,
    live_seqs,
    not_,
    or_,
    query,
    seqs,
    to_awaitable,
    to_iter,
    to_json,
    to_result,
    where,
)
from jitdb.operators.tasks.live_seqs import MOST_WAITING, LiveSeqs, SeqSource, sources_of


@pytest.fixture
def db():
    return ToyDatabase(numbered(*range(10)))


class Pushed:
    """An iterable that gives what is pushed, and then waits; END ends it, an exception is raised."""

    END = object()

    def __init__(self, *items):
        self.items = queue.SimpleQueue()
        self.push(*items)
        self.closed = threading.Event()

    def push(self, *items):
        for item in items:
            self.items.put(item)

    def __iter__(self):
        try:
            while (item := self.items.get(timeout=20)) is not self.END:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed.set()


class PushedAsync(Pushed):
    """The same for async loops; it only ends by being cancelled or pushed to."""

    __iter__ = None

    async def __aiter__(self):
        try:
            while True:
                while self.items.empty():
                    await asyncio.sleep(0.001)
                item = self.items.get()
                if item is self.END:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.closed.set()


KINDS = pytest.mark.parametrize("kind", [Pushed, PushedAsync])


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("jitdb live_seqs")]


# In live queries


@KINDS
def test_records_come_when_their_seqs_do(db, kind):
    source = kind(2, 5)
    with query(from_db(db), where(live_seqs(source)), live(old=True), to_iter()) as stream:
        assert taken(stream, 2) == [2, 5]
        thread, got = waits(stream)
        source.push(1)  # before the others: it comes late, but comes
        assert joined(thread)
        assert numbers_of(got) == [1]
        thread, got = waits(stream)
        source.push([10, 11])  # no such records yet
        thread.join(0.03)
        assert thread.is_alive()
        db.append(*numbered(10))
        assert joined(thread)
        assert numbers_of(got) == [10]
    if kind is Pushed:
        assert not source.closed.is_set()  # its thread is inside the user's code, and is left alone
        source.push(1)
    assert source.closed.wait(10)
    until(lambda: not threads())


@KINDS
def test_beside_other_conditions(db, kind):
    one, two = live_seqs(kind([1, 2, 3, 4], Pushed.END)), live_seqs(kind([4, 5, 6, 7], Pushed.END))
    question = or_(and_(one, EVEN), and_(two, one), and_(two, equal("n", 7)))
    with query(from_db(db), where(question), live(old=True), as_offsets(), to_iter()) as stream:
        assert sorted(itertools.islice(stream, 3)) == [20, 40, 70]


@KINDS
def test_errors_of_the_source_come_out(db, kind):
    boom = ZeroDivisionError("unchanged")
    source = kind(3, [7], boom)
    stream = query(from_db(db), where(live_seqs(source)), live(old=True), to_iter())
    assert taken(stream, 2) == [3, 7]
    with pytest.raises(ZeroDivisionError) as raised:
        next(stream)
    assert raised.value is boom
    assert list(stream) == []
    until(lambda: not threads())


@KINDS
def test_an_error_behind_seqs_that_match_nothing(db, kind):
    source = kind()
    stream = query(from_db(db), where(live_seqs(source)), live(old=True), to_iter())

    def failing():
        with pytest.raises(KeyError):
            next(stream)
        return "raised"

    thread, got = in_thread(failing)
    thread.join(0.03)
    source.push(1_000, KeyError("at once"))
    assert joined(thread)
    assert got == ["raised"]


@KINDS
def test_the_end_of_a_source_ends_no_query(db, kind):
    source = kind([11], Pushed.END)
    with query(from_db(db), where(live_seqs(source)), live(), to_iter()) as stream:
        assert source.closed.wait(10)
        until(lambda: not threads())
        thread, got = waits(stream)
        db.append(*numbered(10, 11, 12))
        assert joined(thread)
        assert numbers_of(got) == [11]


def test_a_question_that_is_not_live_takes_what_was_given(db):
    source = Pushed()
    given = live_seqs(source)
    asked_now = query(from_db(db), where(and_(given, EVEN)), as_offsets(), to_result())
    assert asked_now == []
    with query(from_db(db), where(given), live(old=True), to_iter()) as stream:
        source.push([2, 3], 8)
        assert taken(stream, 3) == [2, 3, 8]
        for end in (to_result(), to_iter()):
            assert list(query(from_db(db), where(and_(given, EVEN)), as_offsets(), end)) == [20, 80]
        assert asyncio.run(query(from_db(db), where(given), count(), to_awaitable())) == 3
    source.push(Pushed.END)


@pytest.mark.parametrize("values", [[[3, 1], 4], ([3], [1, 4]), np.array([3, 1, 4]), {1, 3, 4}])
def test_a_list_is_there_as_a_whole(db, values):
    for _ in range(2):  # and nothing of it is used up
        assert query(from_db(db), where(live_seqs(values)), as_offsets(), to_result()) == [10, 30, 40]
    with pytest.raises(QueryError, match="integers"):
        query(from_db(db), where(live_seqs([1, "x"])), to_result())


def test_a_source_is_read_once(db):
    operation = live_seqs([1])
    asked = query(from_db(db), where(operation), live(old=True))
    with query(asked, to_iter()) as stream:
        assert taken(stream, 1) == [1]
        with pytest.raises(QueryError, match=r"live_seqs\(list\) was given to a live query before.*a new source"):
            query(asked, to_iter())
    unread = SeqSource([1])
    unread.close()
    with pytest.raises(QueryError, match="read once"):
        unread.start()


def test_nothing_is_read_before_it_is_asked(db):
    source = iter([1, 2, 3])
    asked = query(from_db(db), where(live_seqs(source)), live(old=True))
    assert next(source) == 1
    with query(asked, to_iter()) as stream:
        assert taken(stream, 2) == [2, 3]


def test_a_stream_that_is_thrown_away_lets_go_of_its_source(db):
    source = PushedAsync(1)
    stream = query(from_db(db), where(live_seqs(source)), live(old=True), to_iter())
    next(stream)
    del stream
    gc.collect()
    assert source.closed.wait(10)
    until(lambda: not threads())


# What stands for it


def test_its_value():
    source = [1]
    one, other = live_seqs(source), live_seqs(source)
    assert LiveSeqs(one.source) == one != other
    assert hash(LiveSeqs(one.source)) == hash(one)
    assert repr(and_(one, EVEN)) == "and_(live_seqs(list), equal('even', True))"
    assert sources_of(or_(and_(one, EVEN), and_(one, other), EVEN)) == [one.source, other.source]
    assert sources_of(not_(EVEN)) == []
    assert repr(live_seqs(number for number in source)) == "live_seqs(<genexpr>)"


def test_not_below_not():
    for below in (live_seqs([1]), and_(EVEN, or_(live_seqs([1]), EVEN))):
        with pytest.raises(QueryError, match=r"live_seqs\(\) stands below no not_\(\)"):
            not_(below)
        with pytest.raises(QueryError, match="below no not_"):
            below.__invert__()


def test_it_cannot_be_written_down():
    for written in (to_json, format_expression):
        with pytest.raises(QueryError, match=r"a source of seqs .*live_seqs\(list\).*seqs\(\.\.\.\)"):
            written(and_(EVEN, live_seqs([1])))


@pytest.mark.parametrize("wrong", [5, "12", b"12", None, np.int64(5), seqs])
def test_no_source(wrong):
    with pytest.raises(QueryError, match=r"live_seqs\(\) takes an iterable or async iterable of integers, not"):
        live_seqs(wrong)


# The source itself


def started(values):
    source = SeqSource(values)
    source.start()
    return source


def all_of(source, count):
    got, deadline = [], time.monotonic() + 10
    while len(got) < count:
        assert time.monotonic() < deadline
        got += source.take()
        time.sleep(0.001)
    return got


def test_items_are_seqs_or_many():
    items = [1, [2, 3], (4,), np.int32(5), np.array([6, 7]), np.array([], np.int64), [], range(8, 10), {10}, iter([11])]
    got = all_of(started(items), 11)
    assert got == list(range(1, 12))
    assert {type(seq) for seq in got} == {int}
    assert all_of(started(np.arange(5)), 5) == list(range(5))


@pytest.mark.parametrize("wrong", [-1, 2**64, True, 1.0, "1", [1, "2"], [[1]], None, np.float64(1), [-1]])
def test_items_that_are_none(wrong):
    source = started([7, wrong, 8])
    until(lambda: source.error)
    assert source.take() == [7]
    for _ in range(2):
        with pytest.raises(QueryError, match=r"live_seqs\(\) takes"):
            source.take()


@KINDS
def test_it_is_read_no_faster_than_it_is_taken(kind):
    pushed = kind(*range(10), list(range(MOST_WAITING)), *range(10))
    source = started(pushed)
    until(lambda: pushed.items.qsize() == 10)
    time.sleep(0.03)
    assert pushed.items.qsize() == 10  # it waits
    assert len(source.take()) == MOST_WAITING + 10
    assert all_of(source, 10) == list(range(10))
    source.close()
    pushed.push(1)
    assert pushed.closed.wait(10)


@KINDS
def test_closing_ends_the_waiting_for_room(kind):
    pushed = kind(list(range(MOST_WAITING + 1)), 1)
    source = started(pushed)
    until(lambda: pushed.items.qsize() == 1)
    time.sleep(0.01)
    source.close()
    assert pushed.closed.wait(10)
    assert source.take() == []
    until(lambda: not threads())
    source.close()


def test_every_seq_is_taken_once_while_threads_watch():
    def numbers():
        for number in range(20_000):
            yield number
            if number % 1000 == 0:
                time.sleep(0.0005)

    source, woken, got = SeqSource(numbers()), threading.Event(), []
    end = source.watch(woken.set)
    source.start()
    while len(got) < 20_000:
        woken.clear()
        came = source.take()
        got += came
        if not came:
            assert woken.wait(10)  # what comes between taking and waiting wakes too
    assert got == list(range(20_000))
    end()
    end()
    assert source.take() == []


@KINDS
def test_watching(kind):
    calls, pushed = [], kind()
    source = SeqSource(pushed)
    end = source.watch(lambda: calls.append(1))
    source.start()
    time.sleep(0.02)
    assert calls == []
    pushed.push(1)
    until(lambda: calls == [1])
    assert source.take() == [1]
    pushed.push([])
    pushed.push(2)
    until(lambda: calls == [1, 1])
    end()
    source.take()
    pushed.push(3, Pushed.END)
    assert all_of(source, 1) == [3]
    assert calls == [1, 1]
    source.close()


def test_a_source_that_cancels_itself():
    async def numbers():
        yield 1
        raise asyncio.CancelledError

    source = started(numbers())
    assert all_of(source, 1) == [1]
    until(lambda: source.error)
    with pytest.raises(QueryCancelled, match=r"the source of live_seqs\(numbers\) was cancelled"):
        source.take()


def test_an_error_after_closing_goes_where_errors_of_threads_go(monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: shown.append(arguments.exc_value))
    pushed, boom = Pushed(1), RuntimeError("late")
    source = started(pushed)
    all_of(source, 1)
    source.close()
    pushed.push(boom)
    until(lambda: shown == [boom])
