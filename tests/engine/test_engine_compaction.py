"""Compaction under questions: answers, pages and indexes go on, and nothing is scanned again."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, calls_of, check, expected, make_log, message, messages, oracle_of
from thoroughness import tries

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.records import Records
from jitdb.errors import LogError, LogReadOnly
from jitdb.log.io import osfile
from jitdb.operators import (
    batch,
    descending,
    equal,
    everything,
    field,
    from_db,
    gt,
    not_,
    predicate,
    query,
    to_async_iter,
    where,
)

pytestmark = pytest.mark.slow


def is_small(value: Any) -> bool:
    return isinstance(value, int) and value < 20


def delete(db: JITDB, keys: list[int]) -> None:
    oracle = oracle_of(db.log)
    for seq in keys:
        db.log.delete(oracle.offsets[seq])  # type: ignore[attr-defined]
    db.log.flush()  # type: ignore[attr-defined]


def test_all_answers_after_a_compaction_without_a_scan(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 1000)
    with jitdb.open(tmp_path / "a.log") as db:
        check(db, oracle_of(db.log))
        delete(db, [*range(0, 300, 2), 555, 777, 999])
        check(db, oracle_of(db.log))
        done = db.compact()
        assert done.removed == 153
        reads = calls_of(db.log, "read_blocks")
        check(db, oracle_of(db.log))
        assert len(reads) <= len(QUESTIONS)  # the end of a run of records is looked at; nothing is scanned
        db.log.append_many(messages(50, 1000))
        db.log.flush()
        check(db, oracle_of(db.log))
    with jitdb.open(tmp_path / "a.log", read_only=True) as db:
        assert db.declared_time == (("timestamp",), ("value", "timestamp"))  # for which the first block was read
        reads = calls_of(db.log, "read_blocks")
        check(db, oracle_of(db.log))
        assert not reads


def test_indexes_that_were_not_open_are_taken_over_when_asked_for(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 1000)
    with jitdb.open(tmp_path / "a.log") as db:
        check(db, oracle_of(db.log))
        delete(db, [0, 5, 999])
        check(db, oracle_of(db.log))
    with Log(tmp_path / "a.log") as log:
        log.compact()  # knows nothing of indexes
        log.delete(next(log.stream()).offset)
        log.compact()
    with jitdb.open(tmp_path / "a.log") as db:
        reads = calls_of(db.log, "read_blocks")
        check(db, oracle_of(db.log))
        assert len(reads) <= len(QUESTIONS)


def test_indexes_in_memory_are_taken_over(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 1000)
    with jitdb.open(tmp_path / "a.log", "memory") as db:
        check(db, oracle_of(db.log))
        delete(db, [0, 5, 999])
        db.compact()
        reads = calls_of(db.log, "read_blocks")
        check(db, oracle_of(db.log))
        assert len(reads) <= len(QUESTIONS)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort_by", ["declared", "arrival"])
@pytest.mark.parametrize("question", [POSTS, everything(), not_(equal("value.author", "@3"))], ids=repr)
def test_pages_go_on(tmp_path: Path, question: Any, sort_by: str, descending: bool) -> None:
    make_log(tmp_path / "a.log", 600)
    chooser = random.Random(3)
    with jitdb.open(tmp_path / "a.log") as db:
        pages = db.pages(question, limit=17, sort_by=sort_by, descending=descending)
        wanted = db.all(question, sort_by=sort_by, descending=descending)
        total = len(wanted)
        got: list[Any] = []
        for number, page in enumerate(pages):
            assert page.total == total
            got += page.data
            if number % 3 == 1:
                alive = oracle_of(db.log)
                victims = chooser.sample([s for s in range(len(alive.records)) if s not in alive.deleted], 20)
                gone = [alive.records[seq]["key"] for seq in victims]
                taken = {record["key"] for record in got}
                wanted = [record for record in wanted if record["key"] not in gone or record["key"] in taken]
                delete(db, victims)
                db.compact()
                db.log.append_many(messages(5, 1000 + number))
                db.log.flush()
        assert [record["key"] for record in got] == [record["key"] for record in wanted]


def test_pages_of_a_reader_go_on(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 300)
    with jitdb.open(tmp_path / "a.log") as db, jitdb.open(tmp_path / "a.log", read_only=True) as reader:
        pages = reader.pages(POSTS, limit=10)
        wanted = reader.all(POSTS)
        got = list(next(pages))
        delete(db, [1, 2, 3])
        db.compact()
        got += next(pages)
        reader.refresh()
        for page in pages:
            got += page.data
        assert got == wanted
        check(reader, oracle_of(reader.log))


def test_two_async_iterators_at_one_time_go_on(tmp_path: Path) -> None:
    """One database, two tasks in turns, a compaction in another thread between any two of their pages."""
    make_log(tmp_path / "a.log", 300)
    asked = [(POSTS, True), (not_(equal("value.author", "@3")), False)]

    async def main(db: JITDB) -> None:
        wanted = [[r["key"] for r in db.all(question, descending=order)] for question, order in asked]
        streams = [
            query(from_db(db), where(question), *([descending()] if order else []), batch(9), to_async_iter())
            for question, order in asked
        ]
        got: list[list[str]] = [[], []]
        for turn in range(4):
            for mine, stream in zip(got, streams, strict=True):
                mine += [(await anext(stream))["key"] for _ in range(13)]
            # What they have of their pages stays; of the rest, every seventh record goes.
            held = {key for mine, keys in zip(got, wanted, strict=True) for key in keys[: -(-len(mine) // 9) * 9]}
            alive = oracle_of(db.log)
            live = {seq: record["key"] for seq, record in enumerate(alive.records) if seq not in alive.deleted}
            victims = [seq for seq, key in live.items() if key not in held][turn::7]
            gone = {live[seq] for seq in victims}
            wanted = [[key for key in keys if key not in gone] for keys in wanted]
            await asyncio.to_thread(delete, db, victims)
            await asyncio.to_thread(db.compact)
        for mine, stream in zip(got, streams, strict=True):
            mine += [record["key"] async for record in stream]
        assert got == wanted

    with jitdb.open(tmp_path / "a.log") as db:
        asyncio.run(main(db))


def test_questions_while_it_runs(tmp_path: Path) -> None:
    """Threads ask, one deletes and compacts: every answer lies between the states at question and answer."""
    make_log(tmp_path / "a.log", 1000)
    db = jitdb.open(tmp_path / "a.log")
    states = [frozenset(range(1000))]
    reached = 0  # the newest state whose records are deleted for certain
    failures: list[BaseException] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                before = states[reached]
                found = frozenset(int(record["key"][1:]) for record in db.all(POSTS))
                after = states[-1]
                assert {n for n in after if n % 5 in (0, 4)} <= found <= {n for n in before if n % 5 in (0, 4)}
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    chooser = random.Random(9)
    for _ in range(tries(3, 12)):
        oracle = oracle_of(db.log)
        victims = chooser.sample([s for s in range(len(oracle.records)) if s not in oracle.deleted], 50)
        gone = {int(oracle.records[seq]["key"][1:]) for seq in victims}
        states.append(states[-1] - gone)
        delete(db, victims)
        reached += 1
        assert db.compact().removed == 50
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    check(db, oracle_of(db.log))
    db.close()


def test_the_last_records_are_asked_for_while_the_new_file_is_made_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []

    class Cut(osfile.FileSystem):
        """Whenever something is cut off, another thread asks."""

        def truncate(self, fd: int, size: int) -> None:
            if is_compacting and asking is not threading.current_thread():
                ask()
            super().truncate(fd, size)

    def ask() -> None:
        nonlocal asking
        asking = threading.Thread(target=lambda: found.extend(db.paginate(limit=5, descending=True, sort_by="arrival")))
        asking.start()
        asking.join()

    asking: threading.Thread | None = None
    is_compacting = False
    monkeypatch.setattr(osfile, "fs", Cut())
    make_log(tmp_path / "a.log", 200)
    with jitdb.open(tmp_path / "a.log", "memory") as db:
        delete(db, [0])
        assert db.count() == 199
        is_compacting = True
        db.log.compact()
        is_compacting = False
        assert found
        assert (db.count(), len(list(db.log.stream()))) == (199, 199)
        db.log.append_many(messages(100, 200))
        db.log.flush()
        assert db.count() == 299
        check(db, oracle_of(db.log))


def test_a_question_that_scans_while_the_log_is_compacted(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 3000)
    with jitdb.open(tmp_path / "a.log") as db:
        delete(db, list(range(100)))
        asked = threading.Event()
        original = db.log.read_blocks

        def slowly(*arguments: Any) -> Any:
            got = original(*arguments)
            if not asked.is_set():
                asked.set()
                db.log.compact()  # between reading and indexing what was read
            return got

        db.log.read_blocks = slowly  # type: ignore[method-assign]
        assert db.count(POSTS) == len([n for n in range(100, 3000) if n % 5 in (0, 4)])
        db.log.read_blocks = original  # type: ignore[method-assign]
        check(db, oracle_of(db.log))


BUILDER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    import warnings; warnings.simplefilter("error")
    from engine_helpers import QUESTIONS, check, oracle_of
    import jitdb
    with jitdb.open(sys.argv[1], read_only=True) as db:
        for line in sys.stdin:
            db.refresh()
            check(db, oracle_of(db.log), QUESTIONS[int(line) :])
            print("right", flush=True)
"""


def test_readers_in_other_processes_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    make_log(path, 400)
    helpers = str(Path(__file__).parents[1])
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(BUILDER), str(path), helpers],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    with jitdb.open(path) as db:
        for step in range(5):
            if step:
                delete(db, [step, 2 * step + 10, 350 - step])
                db.compact() if step % 2 else db.log.compact()
                db.log.append_many(messages(7, 1000 * step))
                db.log.flush()
            for number, reader in enumerate(readers):
                assert reader.stdin is not None
                reader.stdin.write(f"{number * step}\n")
                reader.stdin.flush()
            for reader in readers:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "right\n"
            check(db, oracle_of(db.log))
    for reader in readers:
        assert reader.stdin is not None
        reader.stdin.close()
        assert reader.wait(20) == 0


def test_predicates_are_taken_over_without_being_called(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 500)
    calls = []

    def watched(value: Any) -> bool:
        calls.append(value)
        return is_small(value)

    question = predicate("value.sequence", watched, name="small")
    with jitdb.open(tmp_path / "a.log") as db:
        before = db.count(question)
        delete(db, [0, 400])
        calls.clear()
        db.compact()
        assert db.count(question) == before - 1
        assert not calls


def test_nothing_to_do(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 10)
    with jitdb.open(tmp_path / "a.log") as db:
        assert db.compact().removed == 0
    with jitdb.open(tmp_path / "a.log", read_only=True) as db, pytest.raises(LogReadOnly):
        db.compact()


# --- earlier states -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_any_question_as_of_an_earlier_state(tmp_path: Path, question: Any) -> None:
    offsets = make_log(tmp_path / "a.log", 400)
    with jitdb.open(tmp_path / "a.log") as db:
        delete(db, [3, 100])
        oracle = oracle_of(db.log)
        for last in (-1, 0, 3, 57, 399):
            place = -1 if last < 0 else offsets[last]
            for descending in (False, True):
                wanted = [o for o in expected(oracle, question, descending=descending) if o <= place]
                assert db.count(question, as_of=place) == len(wanted)
                assert db.all(question, as_of=place, as_offsets=True, descending=descending) == wanted
                page = db.paginate(question, limit=5, as_of=place, as_offsets=True, descending=descending)
                assert (page.data, page.total) == (wanted[:5], len(wanted))
                pages = db.pages(question, limit=50, as_of=place, as_offsets=True, descending=descending)
                assert [offset for page in pages for offset in page] == wanted


def test_as_of_the_middle_of_a_record_is_as_of_that_record(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "a.log", 10)
    with jitdb.open(tmp_path / "a.log") as db:
        assert [db.count(as_of=offsets[4] + shift) for shift in (-1, 0, 1)] == [4, 5, 5]


def test_as_of_a_cursor_holds_after_compactions(tmp_path: Path) -> None:
    make_log(tmp_path / "a.log", 100)
    with jitdb.open(tmp_path / "a.log") as db:
        portion = db.feed(limit=40, old=True).read()
        assert portion is not None
        place = portion.cursor(40)
        delete(db, [0, 1, 50])
        db.compact()
        assert [record["key"] for record in db.all(as_of=place, sort_by="arrival")] == [
            message(number)["key"] for number in range(2, 40)
        ]


@pytest.mark.parametrize("place", [-2, 1 << 40, 1.5, True, "x", b"y"])
def test_what_is_no_earlier_state(tmp_path: Path, place: Any) -> None:
    make_log(tmp_path / "a.log", 10)
    with jitdb.open(tmp_path / "a.log") as db, pytest.raises((LogError, jitdb.errors.QueryError)) as caught:
        db.count(gt(3, "sequence"), as_of=place)
    assert "as_of" in str(caught.value) or "cursor" in str(caught.value)


def test_a_compaction_that_another_thread_follows_while_records_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Whoever read them has other places in hand than the indexes, which are good: they are not dropped."""
    with jitdb.open(tmp_path / "a.log", create=True) as db:
        db.log.append_many([{"n": n, "pad": "p" * (n % 50)} for n in range(2000)])
        db.log.flush()
        db.log.delete(0)
        db.log.flush()
        assert db.count(field("n") > 3) == 1996
        read = Records.read
        held: list[Any] = []

        def followed() -> None:
            db.compact()
            assert db.count(field("n") == 5) == 1
            held.append(db.pages(everything(), limit=10))
            held.append(next(held[0]))

        def read_late(self: Records, offsets: Any) -> Any:
            monkeypatch.setattr(Records, "read", read)
            other = threading.Thread(target=followed)
            other.start()
            other.join()
            return read(self, offsets)

        monkeypatch.setattr(Records, "read", read_late)
        assert len(db.all(field("n") > 3)) == 1996
        assert sum(map(len, held[0])) == 1989
        assert not recwarn.list
