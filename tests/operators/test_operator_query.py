"""Parts in any order make a query; what cannot be asked is refused in a sentence."""

import itertools
import logging
import threading
import time

import numpy as np
import pytest
from toy_database import ToyDatabase, small_database

from jitdb.errors import LogClosed, QueryCancelled, QueryError
from jitdb.operators import (
    Query,
    and_,
    as_offsets,
    batch,
    count,
    debug,
    descending,
    equal,
    everything,
    field,
    from_db,
    gt,
    paginate,
    query,
    sort_by_arrival,
    start_from,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
    where,
)
from jitdb.operators.question import Question

POST = equal("value.content.type", "post")
LATE = gt(2, "value.sequence")


@pytest.fixture
def db():
    return small_database()


# Putting parts together


def test_parts_in_any_order(db):
    parts = [from_db(db), where(POST), descending(), start_from(1), as_offsets(), to_result()]
    for _ in parts:
        parts.append(parts.pop(0))
        assert query(*parts) == [20, 0]


def test_conditions_add_up(db):
    asked = query(where(POST), where(None), where(), where(LATE))
    assert asked.question.operation == and_(POST, LATE)
    assert query(where(POST, None, LATE)).question.operation == and_(POST, LATE)
    assert query(where()).question == query(where(None)).question == query().question == Question()
    assert query(asked, where(everything())).question.operation == and_(POST, LATE, everything())


def test_a_query_is_piped_further_and_never_changed(db):
    posts = query(from_db(db), where(POST), start_from(1), paginate(1))
    assert query(posts, to_result()).data == [db.records[2]]
    assert query(posts, start_from(2), where(LATE), to_result()).data == []
    assert query(start_from(0), posts).question.start_from == 1  # said later counts
    assert query(posts, query(start_from(0))).question.start_from == 0  # also where it is what holds unless said
    assert query(posts, paginate(2), to_result()).total == 3
    assert posts == query(from_db(db), where(POST), start_from(1), paginate(1))
    with pytest.raises(AttributeError):
        posts.question.limit = 5


def test_results_of_each_kind(db):
    assert query(from_db(db), count(), to_result()) == 5
    assert query(from_db(db), count(), start_from(9), to_result()) == 0
    page = query(from_db(db), where(POST), paginate(2), to_result())
    assert (len(page.data), page.total, page.next_seq) == (2, 3, 2)
    assert query(from_db(db), batch(2), to_result()) == db.records
    query(from_db(db), sort_by_arrival(), to_result())
    assert db.calls[-1][1].sort_by == "arrival"


def test_numbers_of_numpy_are_numbers():
    assert query(paginate(np.int64(3))).question.limit == 3
    assert type(query(start_from(np.uint8(3))).question.start_from) is int


def test_repr_and_html_show_the_query(db):
    asked = query(from_db(db), where(field("a") == "<b>"), start_from(3), descending(), sort_by_arrival(), paginate(9))
    assert (
        repr(query(where(POST), count(), debug()))
        == "query(where(equal('value.content.type', 'post')), count(), debug())"
    )
    assert repr(asked) == (
        "query(\n    from_db(ToyDatabase()),\n    where(equal('a', '<b>')),\n    start_from(3),\n"
        "    descending(),\n    sort_by_arrival(),\n    paginate(9),\n)"
    )
    assert "&lt;b&gt;" in asked._repr_html_()
    assert asked.explain() == "I look at each record: equal('a', '<b>')"
    assert [repr(part) for part in (paginate(2), where(POST), to_iter())] == [
        "paginate(2)",
        "where(equal('value.content.type', 'post'))",
        "to_iter()",
    ]


@pytest.mark.parametrize("end", [to_result(), to_callback(print), to_awaitable(), to_iter(), to_async_iter()])
def test_somebody_must_be_asked(end):
    with pytest.raises(QueryError, match=r"add from_db\(db\)"):
        query(where(POST), end)


def test_explaining_needs_a_database():
    with pytest.raises(QueryError, match=r"add from_db\(db\)"):
        query(where(POST)).explain()


@pytest.mark.parametrize(
    ("mistake", "hint"),
    [
        (lambda db: query(from_db(db), POST), r"wrap the operation in where\(...\): where\(equal"),
        (lambda db: query(db), r"wrap the database in from_db\(...\)"),
        (lambda db: query(descending), r"descending is a function: was it meant to be called, as in descending\(...\)"),
        (lambda db: query(None), "None is no part of a query"),
        (lambda db: query("x"), "'x' is no part of a query"),
        (lambda db: query(field("a")), "is no part of a query"),
        (
            lambda db: from_db("ssb.log"),
            r"takes an open database, as jitdb.open\(path\) gives it, not 'ssb.log' \(str\)",
        ),
        (lambda db: where("a = 1"), "equality is written"),
        (lambda db: where([POST]), "put a star before it"),
        (lambda db: where(True), "compare a field"),
        (lambda db: where(POST, equal), "was it meant to be called"),
        (lambda db: query(to_result(), to_iter()), r"here are two: to_result\(\) and to_iter\(\)"),
        (lambda db: query(count(), paginate(2)), "nothing to paginate"),
        (lambda db: query(query(batch(2)), count()), "nothing to batch"),
        (lambda db: query(paginate(2), batch(2)), "choose one of them"),
        (lambda db: to_callback(5), r"takes a function \(error, result\), not 5"),
    ],
)
def test_mistakes_are_explained(db, mistake, hint):
    with pytest.raises(QueryError, match=hint):
        mistake(db)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0, "1", None, float("nan"), np.float64(1), np.bool_(True)])
def test_sizes_are_whole_numbers(wrong):
    for part in (paginate, batch):
        with pytest.raises(QueryError, match=f"{part.__name__}.*, 1 or more, not"):
            part(wrong)
    if wrong != 0 or isinstance(wrong, bool):
        with pytest.raises(QueryError, match="0 or more, not"):
            start_from(wrong)


# to_callback


def test_callback_gets_the_result(db):
    got = []
    assert query(from_db(db), count(), to_callback(lambda *both: got.append(both))) is None
    assert got == [(None, 5)]


def test_callback_gets_the_error():
    class Broken(ToyDatabase):
        def count(self, question, **how):
            raise LogClosed("closed")

    got = []
    query(from_db(Broken([])), count(), to_callback(lambda *both: got.append(both)))
    ((error, result),) = got
    assert isinstance(error, LogClosed)
    assert result is None


def test_errors_of_the_callback_itself_come_out(db):
    calls = []

    def callback(error, result):
        calls.append(error)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        query(from_db(db), count(), to_callback(callback))
    assert calls == [None]  # and it is not called a second time with its own error


# to_iter


def test_records_one_by_one(db):
    assert list(query(from_db(db), to_iter())) == db.records
    assert list(query(from_db(db), batch(2), start_from(1), to_iter())) == db.records[1:]
    assert ("pages", 2) in [(name, question.portion) for name, question in db.calls]


def test_pages(db):
    assert list(query(from_db(db), paginate(2), to_iter())) == [db.records[:2], db.records[2:4], db.records[4:]]
    assert list(query(from_db(db), where(equal("a", 1)), paginate(2), to_iter())) == []


def test_a_count_is_one_number(db):
    assert list(query(from_db(db), count(), to_iter())) == [5]


class Watched(ToyDatabase):
    """Says how far it was read, and whether it was let go."""

    def __init__(self, records=range(100)):
        super().__init__(list(records))
        self.read = 0
        self.closed = threading.Event()
        self.cancelled = None

    def some_pages(self, question, cancel):
        self.cancelled = cancel
        limit = question.portion
        try:
            for first in range(question.start_from, len(self.records), limit):
                self.read += 1
                yield self.page(first, limit, cancel)
        finally:
            self.closed.set()

    def page(self, first, limit, cancel):
        from toy_database import ToyPage

        return ToyPage(self.records[first : first + limit], len(self.records), first + limit)


def test_pages_are_read_when_asked_for():
    db = Watched()
    results = query(from_db(db), batch(10), to_iter())
    assert db.read == 0
    for _ in range(10):
        next(results)
    assert db.read == 1
    next(results)
    assert db.read == 2


@pytest.mark.parametrize("leave", [lambda results: results.close(), lambda results: results.__exit__(None, None, None)])
def test_closing_lets_go(leave):
    db = Watched()
    results = query(from_db(db), to_iter())
    next(results)
    leave(results)
    assert db.closed.is_set()
    assert db.cancelled.is_set()
    assert list(results) == []
    results.close()


def test_leaving_a_loop_lets_go():
    db = Watched()
    for _ in query(from_db(db), to_iter()):
        break
    assert db.closed.is_set()


def test_never_started_never_asks():
    db = Watched()
    query(from_db(db), to_iter()).close()
    assert db.calls == []
    assert db.read == 0
    assert list(query(from_db(db), to_iter())) == list(range(100))


def test_an_error_ends_the_iterator():
    class Broken(Watched):
        def page(self, first, limit, cancel):
            if first:
                raise LogClosed("closed")
            return super().page(first, limit, cancel)

    db = Broken()
    results = query(from_db(db), batch(3), to_iter())
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LogClosed):
        next(results)
    assert list(results) == []
    assert db.closed.is_set()


def test_threads_share_an_iterator():
    db = Watched(range(5000))
    results = query(from_db(db), batch(7), to_iter())
    got = [[] for _ in range(4)]
    threads = [threading.Thread(target=lambda mine: mine.extend(results), args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(itertools.chain(*got)) == list(range(5000))


class Slow(Watched):
    """A page takes as long as it takes until it is cancelled."""

    def __init__(self):
        super().__init__()
        self.working = threading.Event()

    def page(self, first, limit, cancel):
        if not first:
            return super().page(first, limit, cancel)
        self.working.set()
        if not cancel.wait(30):
            raise AssertionError("nobody cancelled")
        raise QueryCancelled("cancelled")


def test_closing_from_another_thread_stops_the_scan():
    db = Slow()
    results = query(from_db(db), paginate(3), to_iter())
    got = []
    thread = threading.Thread(target=lambda: got.extend(results))
    thread.start()
    assert db.working.wait(10)
    started = time.perf_counter()
    results.close()
    assert time.perf_counter() - started < 1
    thread.join(10)
    assert got == [[0, 1, 2]]
    assert db.closed.wait(10)


def test_a_database_that_cancels_by_itself_is_heard():
    class Moody(Watched):
        def page(self, first, limit, cancel):
            raise QueryCancelled("not in the mood")

    with pytest.raises(QueryCancelled, match="mood"):
        list(query(from_db(Moody()), to_iter()))


# debug


def test_debug_logs_and_passes_through(db, caplog):
    caplog.set_level(logging.DEBUG, "jitdb")
    assert query(from_db(db), where(POST), count(), debug(), to_result()) == 3
    assert len(query(from_db(db), paginate(2), debug(), to_result()).data) == 2
    assert len(query(from_db(db), debug(), to_result())) == 5
    assert len(list(query(from_db(db), paginate(2), debug(), to_iter()))) == 3
    text = caplog.text
    for part in (
        "where(equal('value.content.type', 'post'))",
        "a count of 3",
        "2 of 5 records",
        "5 records",
        "a page in",
    ):
        assert part in text


def test_debug_logs_failures(db, caplog):
    caplog.set_level(logging.DEBUG, "jitdb")
    db.records = None
    with pytest.raises(TypeError):
        query(from_db(db), count(), debug(), to_result())
    assert "failed after" in caplog.text


def test_without_debug_nothing_is_logged(db, caplog):
    caplog.set_level(logging.DEBUG, "jitdb")
    query(from_db(db), count(), to_result())
    list(query(from_db(db), to_iter()))
    assert caplog.text == ""


def test_queries_compare_by_what_they_ask(db):
    assert query(from_db(db), where(POST & LATE)) == query(where(LATE), where(POST), from_db(db))
    assert query(where(POST)) != query(where(LATE))
    assert isinstance(query(), Query)
