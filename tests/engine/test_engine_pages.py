"""Pages of one answer fit together, whatever happens to the log while somebody reads them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import POSTS, QUESTIONS, TYPE, calls_of, check, expected, index_files, make_log, message, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import IndexWarning
from jitdb.indexes import segment
from jitdb.operators import (
    batch,
    descending,
    equal,
    everything,
    from_db,
    gt,
    not_,
    or_,
    paginate,
    query,
    sort_by_arrival,
    start_from,
    to_iter,
    where,
)  # fmt: skip

pytestmark = pytest.mark.slow

ORDERS = [
    {"descending": backwards, "sort_by": by} for backwards in (False, True) for by in ("declared", "arrival")
]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_growth_and_deletions_between_pages(tmp_path: Path, order: dict[str, Any]) -> None:
    make_log(tmp_path / "log", 500)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        question = or_(POSTS, gt(20, "sequence"))
        arrival = order["sort_by"] == "arrival"
        before = expected(oracle_of(log), question, descending=order["descending"], arrival=arrival)
        pages = db.pages(question, limit=7, **order)
        seen: list[str] = []
        gone: set[int] = set()
        for number, page in enumerate(pages):
            seen += [record["key"] for record in page.data]
            assert page.total == len(before)
            log.append_many([{**message(10_000 + 3 * number + n), "timestamp": n} for n in range(3)])
            for offset in before[len(seen) + len(gone) + 2 :: 41][:2]:
                if offset not in gone:
                    log.delete(offset)
                    gone.add(offset)
            if number % 2:
                log.flush()
                assert db.count(question) > len(before) - len(gone)  # others go on asking
        first = {offset: record["key"] for offset, record in zip(before, _records(log, before, gone), strict=True)}
        assert seen == [first[offset] for offset in before if offset not in gone]
        assert len(gone) > 20
        check(db, oracle_of(log), [question])


def _records(log: Log, offsets: list[int], gone: set[int]) -> list[Any]:
    return [{"key": None} if offset in gone else log.get(offset) for offset in offsets]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_the_chain_of_next_seq_is_the_whole_answer(tmp_path: Path, order: dict[str, Any]) -> None:
    make_log(tmp_path / "log", 700)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        for question in QUESTIONS:
            whole = db.all(question, as_offsets=True, **order)
            for limit in (1, 3, 50, 1000):
                if limit == 1 and len(whole) > 100:
                    continue
                chained: list[int] = []
                start = 0
                for _ in itertools.count():
                    page = db.paginate(question, limit=limit, start_from=start, as_offsets=True, **order)
                    assert page.total == len(whole)
                    chained += page.data
                    if not page.data:
                        break
                    start = page.next_seq
                assert chained == whole


def test_start_from(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        whole = db.all(POSTS, as_offsets=True)
        assert len(whole) == 40
        for skip in (0, 1, 39, 40, 41, 10**12):
            assert db.all(POSTS, as_offsets=True, start_from=skip) == whole[skip:]
            assert db.count(POSTS, start_from=skip) == max(0, 40 - skip)
            page = db.paginate(POSTS, limit=5, start_from=skip, as_offsets=True)
            assert (page.data, page.total, page.next_seq) == (whole[skip : skip + 5], 40, skip + len(page.data))
            rest = [offset for page in db.pages(POSTS, limit=7, start_from=skip, as_offsets=True) for offset in page]
            assert rest == whole[skip:]


def test_iterators_of_queries(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        asked = query(from_db(db), where(not_(POSTS)), descending())
        records = list(query(asked, to_iter()))
        assert records == db.all(not_(POSTS), descending=True)
        assert list(query(asked, batch(11), to_iter())) == records
        assert list(itertools.chain(*query(asked, paginate(11), to_iter()))) == records
        assert list(query(asked, start_from(100), to_iter())) == records[100:]
        arrived = list(query(asked, sort_by_arrival(), to_iter()))
        assert [record["key"] for record in arrived] == sorted((r["key"] for r in records), reverse=True)


def test_an_iterator_reads_a_page_when_it_is_wanted(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        reads = calls_of(log, "get_many_raw")
        with query(from_db(db), where(POSTS), batch(10), to_iter()) as posts:
            assert reads == []
            assert next(posts)["key"] == "%000000"
            assert len(reads) == 1
            for _ in range(9):
                next(posts)
            assert len(reads) == 1
            next(posts)
            assert len(reads) == 2
        assert list(posts) == []
        assert len(reads) == 2


def test_everything_that_was_left_is_deleted(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 100)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        pages = db.pages(everything(), limit=10, sort_by="arrival")
        assert [record["key"] for record in next(pages)] == [f"%{n:06d}" for n in range(10)]
        for offset in offsets[10:]:
            log.delete(offset)
        assert list(pages) == []


@pytest.mark.parametrize("flushed", [True, False])
def test_offsets_of_what_is_deleted_between_pages_are_left_out(tmp_path: Path, flushed: bool) -> None:
    make_log(tmp_path / "log", 200)
    with Log(tmp_path / "log", flush_interval=3600) as log:
        db = JITDB(log)
        wanted = db.all(POSTS, as_offsets=True)
        pages = db.pages(POSTS, limit=5, as_offsets=True)
        found = list(next(pages))
        for offset in (wanted[0], wanted[7]):
            log.delete(offset)
        if flushed:
            log.flush()
        found += [offset for page in pages for offset in page]
        assert found == [offset for offset in wanted if offset != wanted[7]]


def test_an_index_that_is_damaged_between_pages(tmp_path: Path) -> None:
    """What orders the answer is built again, and the pages go on: deleted records do not move the others."""
    offsets = make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        JITDB(log).prepare(POSTS)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)  # reads the files of the first one when it needs them
        before = expected(oracle_of(log), POSTS, descending=True)
        pages = db.pages(POSTS, limit=9, descending=True, as_offsets=True)
        first = next(pages)
        for path in index_files(log):
            content = bytearray(path.read_bytes())
            for at in range(len(content) // 2, len(content), 50):
                content[at] ^= 0xFF
            with open(path, "r+b") as file:
                file.write(content)
        gone = [offset for offset in before[3:60:5] if offset in offsets]
        for offset in gone:
            log.delete(offset)
        segment.blob_cache.clear()
        with pytest.warns(IndexWarning, match="rebuilt"):
            rest = [offset for page in pages for offset in page.data]
        assert first.data + rest == before[:9] + [offset for offset in before[9:] if offset not in gone]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("skipped", [0, 4])
def test_deletions_and_an_index_built_again_between_pages(tmp_path: Path, order: dict[str, Any], skipped: int) -> None:
    """A column that is built again has no time of the deleted records: that must not move the others."""
    make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        wanted = JITDB(log).all(POSTS, as_offsets=True, **order)[skipped:]
        db = JITDB(log)  # which has put nothing in order yet
        pages = db.pages(POSTS, limit=3, start_from=skipped, as_offsets=True, **order)
        got = list(next(pages).data)
        gone = {wanted[1], wanted[2], *wanted[40:46]}
        for offset in gone:
            log.delete(offset)
        log.flush()  # their bytes are zero before they are looked at again
        db.reindex()
        db.count(POSTS)
        db.all(POSTS, **order)  # others had it built again before the pages go on
        for page in pages:
            got += page.data
        assert got == wanted[:3] + [offset for offset in wanted[3:] if offset not in gone]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_an_index_that_is_damaged_before_the_first_page(tmp_path: Path, order: dict[str, Any]) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        wanted = JITDB(log).all(POSTS, as_offsets=True, **order)[5:]
        for path in index_files(log):
            content = bytearray(path.read_bytes())
            content[-8] ^= 0xFF
            path.write_bytes(content)
        segment.blob_cache.clear()
        with pytest.warns(IndexWarning, match="rebuilt"):
            pages = list(JITDB(log).pages(POSTS, limit=9, start_from=5, as_offsets=True, **order))
        assert [offset for page in pages for offset in page] == wanted


def test_a_compaction_while_the_pages_follow_another(tmp_path: Path) -> None:
    offsets = make_log(tmp_path / "log", 300)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        wanted = [record["key"] for record in db.all(POSTS)]
        pages = db.pages(POSTS, limit=10)
        got = [record["key"] for record in next(pages)]
        for offset in offsets[1::5]:  # votes
            log.delete(offset)
        db.compact()
        removals = log.removals
        votes = db.all(equal(TYPE, "contact"), as_offsets=True)

        def late(generation: int) -> Any:
            known = removals(generation)
            if votes:
                for offset in votes[:30]:
                    log.delete(offset)
                votes.clear()
                log.compact()
            return known

        log.removals = late  # type: ignore[method-assign]
        for page in pages:
            got += [record["key"] for record in page]
        assert got == wanted
        assert not votes
