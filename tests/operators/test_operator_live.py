"""Live queries in plain loops: nothing missed, nothing twice, and the waiting ends when it shall."""

import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from toy_database import ToyDatabase, ToyFeed
from waiting import until

from jitdb.errors import LogClosed, QueryError
from jitdb.operators import (
    as_of,
    as_offsets,
    batch,
    count,
    debug,
    deferred,
    descending,
    equal,
    from_db,
    live,
    paginate,
    query,
    seqs,
    sort_by_arrival,
    start_from,
    to_async_iter,
    to_awaitable,
    to_callback,
    to_iter,
    to_result,
    where,
)
from jitdb.operators.question import Live

EVEN = equal("even", True)


def numbered(*numbers):
    return [{"n": n, "even": n % 2 == 0} for n in numbers]


def numbers_of(records):
    return [record["n"] for record in records]


@pytest.fixture
def db():
    return ToyDatabase(numbered(0, 1, 2, 3, 4))


def taken(stream, count):
    return numbers_of(itertools.islice(stream, count))


def in_thread(function):
    """Run it beside; gives the thread and the list that its result comes into."""
    got = []
    thread = threading.Thread(target=lambda: got.append(function()), daemon=True)
    thread.start()
    return thread, got


def joined(thread):
    thread.join(10)
    return not thread.is_alive()


def waits(stream):
    """Whether it finds nothing now; it waits in a thread, which is given back with what it will get."""
    thread, got = in_thread(lambda: next(stream, "ended"))
    thread.join(0.03)
    assert thread.is_alive()
    return thread, got


# What comes


def test_it_begins_with_what_comes(db):
    with query(from_db(db), live(), to_iter()) as stream:
        db.append(*numbered(5, 6))  # before it was read, but after it was asked
        assert taken(stream, 2) == [5, 6]
        thread, got = waits(stream)
        db.append(*numbered(7))
        assert joined(thread)
        assert numbers_of(got) == [7]


def test_old_ones_first(db):
    with query(from_db(db), where(EVEN), live(old=True), to_iter()) as stream:
        assert taken(stream, 3) == [0, 2, 4]
        db.append(*numbered(5, 6))
        assert taken(stream, 1) == [6]


def test_behind_a_cursor(db):
    with query(from_db(db), live(old=True), to_iter()) as stream:
        assert taken(stream, 2) == [0, 1]
        place = stream.cursor
    db.append(*numbered(5))
    for began in (live(after=place), live(True, place)):  # what is old lies before the cursor
        with query(from_db(db), began, to_iter()) as stream:
            assert stream.cursor == place
            assert taken(stream, 4) == [2, 3, 4, 5]


def test_pages_are_lists_of_what_is_there(db):
    with query(from_db(db), paginate(3), live(old=True), to_iter()) as stream:
        assert [numbers_of(next(stream)), numbers_of(next(stream))] == [[0, 1, 2], [3, 4]]
        db.append(*numbered(5))
        assert numbers_of(next(stream)) == [5]


@pytest.mark.parametrize(("parts", "limit"), [([batch(2)], 2), ([paginate(3)], 3), ([], 100)])
def test_how_many_are_read_at_a_time(db, parts, limit):
    query(from_db(db), *parts, live(), to_iter()).close()
    assert [(name, question.portion, question.live) for name, question in db.calls] == [("feed", limit, Live())]


def test_offsets_and_the_order_of_arrival(db):
    with query(from_db(db), where(EVEN), sort_by_arrival(), as_offsets(), live(old=True), to_iter()) as stream:
        assert list(itertools.islice(stream, 3)) == [0, 20, 40]


def test_the_cursor_is_exact_inside_a_portion(db):
    for size in (1, 2, 3, 100):
        with query(from_db(db), batch(size), live(old=True), to_iter()) as stream:
            for n in range(5):
                assert next(stream)["n"] == n
                with query(from_db(db), live(after=stream.cursor), as_offsets(), to_iter()) as rest:
                    assert list(itertools.islice(rest, 4 - n)) == [10 * m for m in range(n + 1, 5)]
    with query(from_db(db), paginate(2), live(old=True), to_iter()) as stream:
        assert [(numbers_of(next(stream)), stream.cursor) for _ in range(2)] == [
            ([0, 1], "behind 2"),
            ([2, 3], "behind 4"),
        ]


def test_the_cursor_passes_what_does_not_match(db):
    with query(from_db(db), where(equal("n", 1)), live(old=True), to_iter()) as stream:
        assert stream.cursor == "behind 0"
        assert taken(stream, 1) == [1]
        assert stream.cursor == "behind 2"
        thread, got = waits(stream)
        assert stream.cursor == "behind 5"  # while another thread waits in it
        stream.close()
        assert joined(thread)
        assert got == ["ended"]
        assert stream.cursor == "behind 5"


def test_the_cursor_stays_when_it_is_closed(db):
    stream = query(from_db(db), live(old=True), to_iter())
    assert taken(stream, 3) == [0, 1, 2]
    stream.close()
    assert list(stream) == []
    assert stream.cursor == "behind 3"
    unread = query(from_db(db), live(), to_iter())
    unread.close()
    assert unread.cursor == "behind 5"


def test_resuming_anywhere_gives_each_record_once(db):
    chance = random.Random(7)
    got, place, next_number = [], None, 5
    for _ in range(60):
        size = chance.choice([batch(1), batch(3), paginate(2), paginate(7)])
        with query(from_db(db), where(EVEN), size, live(old=True, after=place), to_iter()) as stream:
            for _ in range(chance.randrange(3)):
                there = [n for n in range(next_number) if n % 2 == 0 and n not in got]
                if not there:
                    break
                given = next(stream)
                got += numbers_of(given if isinstance(given, list) else [given])
            place = stream.cursor
        grown = chance.randrange(4)
        db.append(*numbered(*range(next_number, next_number + grown)))
        next_number += grown
    assert got == [n for n in range(next_number) if n % 2 == 0][: len(got)]
    assert len(got) > 20


# Nothing is lost


def test_a_waking_between_looking_and_waiting(db, monkeypatch):
    """Appends that come just after the feed was found empty, and before the loop waits."""
    rest = numbered(*range(5, 30))
    read = ToyFeed.read

    def read_then_append(self):
        portion = read(self)
        if portion is None and rest:
            db.append(rest.pop(0))
        return portion

    monkeypatch.setattr(ToyFeed, "read", read_then_append)
    stream = query(from_db(db), live(), to_iter())
    thread, got = in_thread(lambda: taken(stream, 25))
    assert joined(thread)
    assert got == [list(range(5, 30))]


def test_an_idle_stream_looks_once(db, monkeypatch):
    reads, read = [], ToyFeed.read
    monkeypatch.setattr(ToyFeed, "read", lambda self: (reads.append(1), read(self))[1])
    with query(from_db(db), live(), to_iter()) as stream:
        db.append(*numbered(5))
        assert taken(stream, 1) == [5]
        thread, _ = waits(stream)
        assert len(reads) == 2
    assert joined(thread)


def test_threads_share_a_stream(db):
    stream = query(from_db(db), batch(3), live(), to_iter())
    got = [in_thread(lambda: numbers_of(stream)) for _ in range(4)]
    for n in range(5, 305):
        db.append(*numbered(n))
        if n % 50 == 0:
            time.sleep(0.005)
    until(lambda: stream.cursor == "behind 305")
    stream.close()
    assert all(joined(thread) for thread, _ in got)
    assert sorted(itertools.chain(*(found for _, (found,) in got))) == list(range(5, 305))


# The end of waiting


@pytest.mark.parametrize("leave", [lambda stream: stream.close(), lambda stream: stream.__exit__(None, None, None)])
def test_closing_releases_all_who_wait(db, leave):
    stream = query(from_db(db), live(), to_iter())
    waiting = [waits(stream) for _ in range(3)]
    started = time.perf_counter()
    leave(stream)
    for thread, got in waiting:
        assert joined(thread)
        assert got == ["ended"]
    assert time.perf_counter() - started < 1
    assert list(stream) == []
    assert db.watchers == {}
    stream.close()


def test_closing_stops_a_read(db, monkeypatch):
    reading = threading.Event()

    def read(self):
        reading.set()
        until(lambda: self.closed)
        return original(self)

    original = ToyFeed.read
    monkeypatch.setattr(ToyFeed, "read", read)
    stream = query(from_db(db), live(old=True), to_iter())
    thread, got = in_thread(lambda: next(stream, "ended"))
    assert reading.wait(10)
    stream.close()
    assert joined(thread)
    assert got == ["ended"]


def test_a_stream_that_is_thrown_away_closes_itself(db):
    stream = query(from_db(db), live(old=True), to_iter())
    next(stream)
    assert len(db.watchers) == 1
    del stream
    gc.collect()
    assert db.watchers == {}
    for _ in query(from_db(db), live(old=True), to_iter()):
        break
    assert db.watchers == {}


PROGRAM = """
import os, signal, threading, time
from test_operator_live import ToyDatabase, numbered
from jitdb.operators import from_db, live, query, to_iter

db = ToyDatabase(numbered(0))
stream = query(from_db(db), live(old=True), to_iter())
def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
    interrupt.at = time.perf_counter()
threading.Thread(target=interrupt).start()
try:
    for record in stream:
        print("got", record["n"], flush=True)
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - interrupt.at < 1)
    db.append(*numbered(1))
    print("then", next(stream)["n"], stream.cursor)
"""


def test_an_interrupt_ends_the_waiting():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.stdout.split("\n")[:3] == ["got 0", "interrupted True", "then 1 behind 2"], run.stderr
    assert run.returncode in (0, -signal.SIGINT)


def test_an_error_comes_out_once_and_ends_it(db, monkeypatch):
    stream = query(from_db(db), live(old=True), batch(2), to_iter())
    assert taken(stream, 1) == [0]

    def read(self):
        raise LogClosed("closed")

    monkeypatch.setattr(ToyFeed, "read", read)
    assert taken(stream, 1) == [1]
    with pytest.raises(LogClosed):
        next(stream)
    assert list(stream) == []
    assert stream.cursor == "behind 2"
    assert db.watchers == {}


def test_an_error_reaches_who_waits(db, monkeypatch):
    stream = query(from_db(db), live(), to_iter())

    def failing():
        with pytest.raises(LogClosed):
            next(stream)
        return "raised"

    thread, got = in_thread(failing)
    thread.join(0.03)

    def read(self):
        raise LogClosed("closed")

    monkeypatch.setattr(ToyFeed, "read", read)
    db.append()
    assert joined(thread)
    assert got == ["raised"]


# Deferred parts


def test_deferred_parts_are_made_at_the_first_record_and_the_place_before(db):
    def task(meta):
        db.append(*numbered(7))
        return EVEN

    stream = query(from_db(db), deferred(task), live(), to_iter())
    db.append(*numbered(5, 6))
    assert stream.cursor == "behind 5"
    db.append(*numbered(8))
    assert taken(stream, 2) == [6, 8]
    thread, got = waits(stream)
    db.append(*numbered(9, 10))
    assert joined(thread)
    assert numbers_of(got) == [10]
    stream.close()
    assert db.watchers == {}


def test_deferred_parts_behind_a_cursor_and_from_the_beginning(db):
    for began, expected in ((live(old=True), [0, 2, 4]), (live(after="behind 1"), [2, 4])):
        with query(from_db(db), deferred(lambda meta: EVEN), began, to_iter()) as stream:
            assert taken(stream, len(expected)) == expected


def test_closing_while_tasks_are_out(db):
    aborted, begun = threading.Event(), threading.Event()

    def task(meta):
        meta.on_abort(aborted.set)
        begun.set()
        assert aborted.wait(10)

    stream = query(from_db(db), deferred(task), live(), to_iter())
    thread, got = in_thread(lambda: next(stream, "ended"))
    assert begun.wait(10)
    stream.close()
    assert joined(thread)
    assert got == ["ended"]
    assert aborted.is_set()


def test_an_error_of_a_task(db):
    stream = query(from_db(db), deferred(lambda meta: 1 / 0), live(), to_iter())
    with pytest.raises(ZeroDivisionError):
        next(stream)
    assert list(stream) == []


# What cannot be asked


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([count(), to_iter()], r"never ends, so count\(\) has no number"),
        ([descending(), to_iter()], r"leave descending\(\) out"),
        ([start_from(3), to_iter()], r"leave start_from\(\) out; live\(after=cursor\) goes on behind"),
        ([as_of(20), to_iter()], r"live\(after=cursor\) gives what came since"),
        ([to_result()], r"to_result\(\) gives the answer in one piece.*to_iter\(\).*to_async_iter\(\)"),
        ([to_callback(print)], r"to_callback\(print\) gives the answer in one piece"),
        ([to_awaitable()], r"to_awaitable\(\) gives the answer in one piece"),
    ],
)
def test_parts_that_contradict_live(db, parts, message):
    with pytest.raises(QueryError, match=message):
        query(from_db(db), live(), *parts)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: live(5), "old is True.*or False, not 5"),
        (lambda: live("behind 3"), "old is True"),
        (lambda: live(after=320), "after is a cursor.*not 320"),
        (lambda: live(after=""), "after is a cursor"),
        (lambda: query(live(), to_iter()), r"add from_db\(db\)"),
        (lambda: query(live(), to_async_iter()), r"add from_db\(db\)"),
    ],
)
def test_mistakes(make, message):
    with pytest.raises(QueryError, match=message):
        make()


def test_live_is_a_part_like_others(db, caplog):
    asked = query(from_db(db), where(EVEN), live(old=True))
    assert repr(query(asked, debug()))[:-1].endswith("where(equal('even', True)), live(old=True), debug()")
    assert repr(query(live(True, "behind 3"))) == "query(live(old=True, after='behind 3'))"
    assert repr(query(live(True), live())) == "query(live())"
    assert asked.explain() == f"I look at each record: {EVEN!r}"
    with caplog.at_level("DEBUG", "jitdb"), query(asked, debug(), to_iter()) as stream:
        next(stream)
    assert "3 records came" in caplog.text
    with pytest.raises(QueryError, match="for a plain loop"):
        stream.__aiter__()


# as_of


def test_an_earlier_state(db):
    for place, n in ((20, 3), (0, 1), (-1, 0), ("behind 4", 4)):
        asked = query(from_db(db), as_of(place))
        assert numbers_of(query(asked, to_result())) == list(range(n))
        assert query(asked, count(), to_result()) == n
        page = query(asked, paginate(1), to_result())
        assert (len(page.data), page.total) == (min(n, 1), n)
        assert numbers_of(query(asked, to_iter())) == list(range(n))
    assert repr(query(as_of(0), as_of("a.b"))) == "query(as_of('a.b'))"
    assert query(query(as_of(0))).question.as_of == 0


@pytest.mark.parametrize("wrong", [-2, True, None, 1.0, "", b"x", seqs([1])])
def test_no_place(wrong):
    with pytest.raises(QueryError, match=r"as_of\(place\) takes an offset.*or the cursor"):
        as_of(wrong)
