"""Live questions: every matching record that comes, once, in the order of the log, wherever one goes on."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest
from engine_helpers import POSTS, QUESTIONS, expected, make_log, message, messages, oracle_of
from waiting import until

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.reading.feed import GATHERED
from jitdb.errors import DecodeError, LogClosed, QueryCancelled, QueryError
from jitdb.operators import (
    and_,
    as_offsets,
    equal,
    from_db,
    live,
    live_seqs,
    or_,
    paginate,
    query,
    to_async_iter,
    to_iter,
    where,
)

pytestmark = pytest.mark.slow


def drain(feed: Any) -> list[Any]:
    """All that is there now."""
    found = []
    while (portion := feed.read()) is not None:
        assert portion.data
        found += portion.data
    return found


def key(number: int) -> str:
    return f"%{number:06d}"


def posts(numbers: range) -> list[str]:
    return [key(number) for number in numbers if message(number)["value"]["content"]["type"] == "post"]


@pytest.fixture
def db(tmp_path: Path) -> Any:
    make_log(tmp_path / "a.log", 500)
    with jitdb.open(tmp_path / "a.log") as opened:
        yield opened


@pytest.mark.parametrize("limit", [1, 7, 1000])
@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_old_records_are_those_of_the_question(db: JITDB, question: Any, limit: int) -> None:
    offsets = drain(db.feed(question, limit=limit, old=True, as_offsets=True))
    assert offsets == expected(oracle_of(db.log), question, arrival=True)


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_new_records_are_those_of_the_question(db: JITDB, question: Any) -> None:
    feed = db.feed(question, limit=10, as_offsets=True)
    end = db.log.durable_end
    assert feed.read() is None
    found = []
    for first in range(500, 800, 25):
        db.log.append_many(messages(25, first))
        db.log.flush()
        found += drain(feed)
    assert found == [offset for offset in expected(oracle_of(db.log), question, arrival=True) if offset >= end]


def test_it_begins_where_the_log_ended_when_it_was_made(db: JITDB) -> None:
    feed = db.feed(POSTS)
    db.log.append_many(messages(10, 500))
    db.log.flush()
    assert [record["key"] for record in drain(feed)] == posts(range(500, 510))


def test_only_durable_records_come(db: JITDB) -> None:
    feed = db.feed()
    db.log.append(message(500))
    assert feed.read() is None
    db.log.flush()
    assert [record["key"] for record in drain(feed)] == [key(500)]


def test_the_oracle_agrees_through_deletions_compactions_and_new_processes(tmp_path: Path) -> None:
    """Random doings; now and then the feed is dropped and another one goes on from its cursor."""
    chooser = random.Random(11)
    path = tmp_path / "a.log"
    make_log(path, 100)
    db = jitdb.open(path)
    feed, cursor = db.feed(POSTS, limit=3, old=True), ""
    delivered: list[str] = []
    alive = {key(number) for number in range(100)}
    wanted: list[str] = posts(range(100))
    count = 100
    for _ in range(300):
        doing = chooser.choice("aaaarrrddcon")
        if doing == "a":
            new = chooser.randrange(1, 30)
            db.log.append_many(messages(new, count))
            wanted += posts(range(count, count + new))
            alive |= {key(number) for number in range(count, count + new)}
            count += new
            db.log.flush()
        elif doing == "r":
            for _ in range(chooser.randrange(4)):
                portion = feed.read()
                if portion is not None:
                    taken = chooser.randrange(1, len(portion.data) + 1)
                    delivered += [record["key"] for record in portion.data[:taken]]
                    cursor = portion.cursor(taken)
                    if taken < len(portion.data):
                        feed = db.feed(POSTS, limit=3, after=cursor)
        elif doing == "d" and alive:
            victim = chooser.choice(sorted(alive))
            alive.discard(victim)
            if victim in wanted and victim not in delivered:
                wanted.remove(victim)  # gone before it was delivered
            (offset,) = db.all(equal("key", victim), as_offsets=True)
            db.log.delete(offset)
            if chooser.random() < 0.7:
                db.log.flush()
        elif doing == "c":
            db.compact()
        elif doing == "o":
            db.close()
            db = jitdb.open(path)
            feed = db.feed(POSTS, limit=3, after=cursor) if cursor else db.feed(POSTS, limit=3, old=True)
        elif doing == "n":
            feed = db.feed(POSTS, limit=3, after=cursor) if cursor else db.feed(POSTS, limit=3, old=True)
        assert delivered == wanted[: len(delivered)]
    delivered += [record["key"] for record in drain(feed)]
    assert delivered == wanted
    db.close()


def test_a_cursor_may_stand_anywhere(db: JITDB) -> None:
    portion = db.feed(POSTS, limit=50, old=True).read()
    assert portion is not None
    rest = [record["key"] for record in drain(db.feed(POSTS, limit=50, old=True))]
    for count in (1, 2, 25, 50):
        again = drain(db.feed(POSTS, limit=50, after=portion.cursor(count)))
        assert [record["key"] for record in again] == rest[count:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "zz.1.2.3",
        "00" * 16 + ".1.2",
        "00" * 16 + ".1.2.3.4",
        "00" * 16 + f".1.2.{1 << 63}",
        "lines:" + "[" * 100_000,
        f'lines:[["a",1,2,3,{1 << 63},"",""]]',
        5,
        None,
        b"x",
    ],
)
def test_what_is_no_cursor(db: JITDB, text: Any) -> None:
    if text is not None:
        with pytest.raises(QueryError, match="no cursor"):
            db.feed(POSTS, after=text)


def test_a_cursor_of_another_log(db: JITDB, tmp_path: Path) -> None:
    make_log(tmp_path / "b.log", 3)
    with jitdb.open(tmp_path / "b.log") as other:
        feed = other.feed(old=True)
        drain(feed)
        cursor = feed.cursor
    with pytest.raises(QueryError, match="of another log"):
        db.feed(POSTS, after=cursor).read()


def test_a_log_that_is_made_while_one_waits(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    with jitdb.open(tmp_path / "a.log", read_only=True) as db:
        feed = db.feed(POSTS)
        assert feed.read() is None
        cursor = feed.cursor
        make_log(tmp_path / "a.log", 10)
        db.refresh()
        assert [record["key"] for record in drain(feed)] == posts(range(10))
        assert [record["key"] for record in drain(db.feed(POSTS, after=cursor))] == posts(range(10))


def test_an_older_copy_of_the_log(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 50)
    shutil.copy(tmp_path / "a.log", tmp_path / "old.log")
    shutil.copytree(tmp_path / "a.log.jitdb", tmp_path / "old.log.jitdb")
    with jitdb.open(tmp_path / "a.log") as db, jitdb.open(tmp_path / "old.log", read_only=True) as old:
        db.log.append_many(messages(50, 50))
        db.log.flush()
        feed = db.feed(old=True)
        drain(feed)
        with pytest.raises(QueryError, match="older copy"):
            old.feed(after=feed.cursor).read()


def test_a_reader_that_has_not_refreshed_knows_the_place(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 50)
    with jitdb.open(tmp_path / "a.log") as db, jitdb.open(tmp_path / "a.log", read_only=True) as reader:
        db.log.append_many(messages(50, 50))
        db.log.flush()
        feed = db.feed(old=True)
        drain(feed)
        behind = reader.feed(after=feed.cursor)
        assert behind.read() is None
        db.log.append_many(messages(1, 100))
        db.log.flush()
        reader.refresh()
        assert [record["key"] for record in drain(behind)] == [key(100)]


def test_a_record_that_cannot_be_decoded_is_told_of_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with Log(path, codec="raw") as log:
        log.append_many([msgpack.packb({"n": number}) if number % 4 != 2 else b"\xc1\xc1" for number in range(12)])
    with jitdb.open(path, codec="msgpack") as db:
        for limit in (1, 3, 100):
            feed = db.feed(limit=limit, old=True)
            got, told = [], 0
            while True:
                try:
                    portion = feed.read()
                except DecodeError as error:
                    told += 1
                    got.append(error.offset)
                    continue
                if portion is None:
                    break
                got += [record["n"] for record in portion.data]
            assert told == 3
            assert [n for n in got if n not in (2, 6, 10)] == got
            assert len(got) == 12


def test_the_history_of_compactions_may_be_lost(db: JITDB) -> None:
    feed = db.feed(POSTS, old=True)
    portion = feed.read()
    assert portion is not None
    db.log.delete(0)
    db.compact()
    (db.log.sidecar / "moved-2").unlink()
    with pytest.raises(QueryError, match="not known any more"):
        db.feed(POSTS, after=portion.cursor(1)).read()


def test_many_matches_are_looked_up_piece_by_piece(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    count = 2 * GATHERED + 1000
    with jitdb.open(path, create=True) as db:
        db.log.append_many([{"n": number, "even": number % 2 == 0} for number in range(count)])
        db.log.flush()
        feed = db.feed(equal("even", True), limit=10_000, old=True)
        assert [record["n"] for record in drain(feed)] == list(range(0, count, 2))
        feed = db.feed(limit=100_000, old=True)
        first = feed.read()
        assert first is not None
        assert len(first.data) == GATHERED


def test_deleted_before_delivery(db: JITDB) -> None:
    feed = db.feed(POSTS, limit=5, old=True)
    portion = feed.read()
    assert portion is not None
    keys = posts(range(500))
    for victim in keys[5:9]:
        db.log.delete(db.all(equal("key", victim), as_offsets=True)[0])  # not even flushed
    assert [record["key"] for record in portion.data + drain(feed)] == keys[:5] + keys[9:]


def test_closing(db: JITDB) -> None:
    feed = db.feed(POSTS)
    feed.close()
    with pytest.raises(QueryCancelled):
        feed.read()


def test_the_log_is_closed_under_a_waiting_stream(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 5)
    for read_only in (False, True):
        db = jitdb.open(tmp_path / "a.log", read_only=read_only)
        stream = db.live(POSTS)
        threading.Timer(0.1, db.close).start()
        with pytest.raises(LogClosed):
            next(stream)


def test_a_loop_gets_what_comes(db: JITDB) -> None:
    got: list[str] = []
    stream = db.live(POSTS)
    thread = threading.Thread(target=lambda: got.extend(record["key"] for record in stream))
    thread.start()
    for first in range(500, 600, 10):
        db.log.append_many(messages(10, first))
        db.log.flush()
        until(lambda first=first: len(got) == len(posts(range(500, first + 10))))  # type: ignore[misc]
    stream.close()
    thread.join(10)
    assert got == posts(range(500, 600))


def test_a_slow_reader_holds_nobody_up(db: JITDB) -> None:
    slow, quick = db.live(POSTS), db.live(POSTS)
    for first in range(500, 3000, 500):
        db.log.append_many(messages(500, first))
        db.log.flush()
        wanted = posts(range(first, first + 500))
        assert [next(quick)["key"] for _ in wanted] == wanted
    wanted = posts(range(500, 3000))
    assert [next(slow)["key"] for _ in wanted] == wanted
    slow.close()
    quick.close()


WRITER = """
    import sys, time
    sys.path.insert(0, sys.argv[2])
    from engine_helpers import messages
    from jitdb import Log
    with Log(sys.argv[1], flush_interval=0.005) as log:
        print("ready", flush=True)
        for line in sys.stdin:
            first, count, doing = line.split()
            if doing == "compact":
                log.delete(next(log.stream()).offset)
                log.compact()
            log.append_many(messages(int(count), int(first)))
            log.flush()
            print(time.time(), flush=True)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    helpers = str(Path(__file__).parents[1])
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path), helpers],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


def test_another_process_writes_and_compacts(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make_log(path, 50)
    writer = start_writer(path)
    assert writer.stdin is not None
    assert writer.stdout is not None
    got: list[tuple[str, float]] = []
    with jitdb.open(path, read_only=True) as db:
        stream = query(from_db(db), where(POSTS), live(old=True), to_iter())
        thread = threading.Thread(target=lambda: got.extend((record["key"], time.time()) for record in stream))
        thread.start()
        until(lambda: len(got) == len(posts(range(50))))
        delays = []
        for step in range(12):
            time.sleep(0.3 if step % 4 == 0 else 0.02)  # after a pause it is looked for less often
            first = 50 + 10 * step
            writer.stdin.write(f"{first} 10 {'compact' if step % 3 == 2 else 'append'}\n")
            writer.stdin.flush()
            durable = float(writer.stdout.readline())
            until(lambda first=first: len(got) == len(posts(range(first + 10))))  # type: ignore[misc]
            delays.append(got[-1][1] - durable)
        stream.close()
        thread.join(10)
    writer.stdin.close()
    assert writer.wait(20) == 0
    assert [name for name, _ in got] == posts(range(170))
    assert sorted(delays)[len(delays) // 2] < 0.5, delays


def test_async_loops_and_pages(db: JITDB) -> None:
    import asyncio

    async def run() -> list[list[int]]:
        pages: list[list[int]] = []
        stream = query(from_db(db), where(POSTS), as_offsets(), live(old=True), paginate(30), to_async_iter())
        async with stream:
            async for page in stream:
                pages.append(page)
                if sum(map(len, pages)) == 200:
                    db.log.append_many(messages(10, 500))
                    db.log.flush()
                elif sum(map(len, pages)) == 204:
                    break
        return pages

    pages = asyncio.run(run())
    assert [offset for page in pages for offset in page] == expected(oracle_of(db.log), POSTS, arrival=True)
    assert max(map(len, pages)) == 30


# --- seqs that keep coming ------------------------------------------------------------------------------------------


class Tap:
    """A source of seqs that gives what is put into it."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.ready = threading.Condition()
        self.taken = 0

    def put(self, *items: int) -> None:
        with self.ready:
            self.items += items
            self.ready.notify_all()

    def __iter__(self) -> Any:
        while True:
            with self.ready:
                while self.taken == len(self.items):
                    self.ready.wait()
                item = self.items[self.taken]
                self.taken += 1
            if item is None:
                return
            yield item


def drained(feed: Any, tap: Tap) -> list[int]:
    until(lambda: tap.taken == len(tap.items))
    time.sleep(0.01)
    return drain(feed)


def test_seqs_that_came_late_and_early(db: JITDB) -> None:
    tap = Tap()
    offsets = oracle_of(db.log).offsets
    feed = db.feed(and_(POSTS, live_seqs(tap)), limit=2, old=True, as_offsets=True)
    assert drained(feed, tap) == []
    tap.put(4, 0, 1, 9)  # 1 is no post
    assert drained(feed, tap) == [offsets[0], offsets[4], offsets[9]]
    tap.put(4, 5, 504)  # 4 again; 504 is still to come
    assert drained(feed, tap) == [offsets[5]]
    db.log.append_many(messages(10, 500))
    db.log.flush()
    late = oracle_of(db.log).offsets
    assert drained(feed, tap) == [late[504]]
    tap.put(504, 505)
    assert drained(feed, tap) == [late[505]]
    tap.put(None)  # type: ignore[arg-type]
    feed.close()


def test_a_record_that_matched_before_does_not_come_again(db: JITDB) -> None:
    tap = Tap()
    feed = db.feed(or_(POSTS, live_seqs(tap)), limit=100, old=True, as_offsets=True)
    offsets = oracle_of(db.log).offsets
    assert len(drained(feed, tap)) == 200
    tap.put(0, 1, 2, 4)  # 0 and 4 are posts
    assert drained(feed, tap) == [offsets[1], offsets[2]]
    tap.put(None)  # type: ignore[arg-type]
    feed.close()


def test_seqs_given_before_a_compaction_are_followed(db: JITDB) -> None:
    tap = Tap()
    feed = db.feed(live_seqs(tap), limit=1)
    db.log.append_many(messages(3, 500))
    db.log.flush()
    tap.put(10, 11, 502, 600)
    until(lambda: tap.taken == 4)
    time.sleep(0.02)
    assert [record["key"] for record in feed.read().data] == [key(10)]
    db.log.delete(0)
    db.compact()
    assert [record["key"] for record in drain(feed)] == [key(11), key(502)]
    tap.put(None)  # type: ignore[arg-type]
    feed.close()
