"""Spans, chunks, zones and batches of a few records each: the boundaries of a log of many millions, in a small one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from engine_helpers import POSTS, QUESTIONS, check, index_files, make_log, message, messages, oracle_of
from questions import DATA, load_cases, operation
from thoroughness import tries

from jitdb import JITDB, Log
from jitdb.indexes.segment import LAYOUTS, SPAN
from jitdb.operators import and_, equal, not_, predicate

pytestmark = pytest.mark.slow

SMALL = {
    "SPAN": 64,  # records
    "CHUNK_BYTES": 1024,
    "SLICE_RECORDS": 5,
    "ZONE": 8,
    "BATCH": 3,
    "FEW": 2,
    "FEW_VALUES": 5,
    "RECORDS_A_VALUE": 4,
    "_ANSWERS": 2,
    "_PLANS": 2,
    "REMEMBERED": 3,
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All these constants are small, in whichever module somebody imported them."""
    for name in (
        "engine.building.scan",
        "engine.answering.candidate_filter",
        "engine.answering.order",
        "engine.manager",
        "indexes.kinds.set_builders",
        "indexes.files.index",
        *(f"indexes.kinds.{layout.content.partition(':')[0]}" for layout in LAYOUTS.values()),
        "engine.catalog.carry",
    ):
        importlib.import_module(f"jitdb.{name}")
    for name, module in list(sys.modules.items()):
        for constant, value in SMALL.items():
            if name.startswith("jitdb.") and hasattr(module, constant):
                monkeypatch.setattr(module, constant, value)


def test_answers_across_spans(tmp_path: Path) -> None:
    assert SPAN == 1 << 20
    path = tmp_path / "log"
    offsets = make_log(path, 100)
    deleted = 0
    for turn, count in enumerate((28, 1, 63, 64, 65, 200)):
        with Log(path) as log:
            db = JITDB(log, threads=1 + turn % 2)
            check(db, oracle_of(log), QUESTIONS[turn % 2 :: 2])
            offsets += map(int, log.append_many(messages(count, first=len(offsets))))
            for offset in offsets[10 * turn : 10 * turn + 3]:
                log.delete(offset)
                deleted += 1
            log.flush()
            check(db, oracle_of(log))
            check(JITDB(log), oracle_of(log))
            assert db.count() == len(offsets) - deleted


def test_the_fixtures_questions_across_spans(tmp_path: Path) -> None:
    path = tmp_path / "ssb.bipf"
    path.write_bytes((DATA / "ssb-5k-deleted.bipf").read_bytes())
    cases = [
        (found, answer)
        for case, answer in load_cases()[:: tries(80, 12)]
        if (found := operation(case["where"])) is not None
    ]
    with Log(path, codec="bipf") as log:
        db = JITDB(log)
        db.prepare(*(found for found, _ in cases))
        for found, answer in cases:
            assert db.count(found) == answer["total"]
            assert db.paginate(found, limit=7, descending=True).total == answer["total"]


def test_the_same_files_however_the_log_grew(tmp_path: Path) -> None:
    """A segment a span, once it is full: what was indexed bit by bit is merged into what one scan makes."""
    with Log(tmp_path / "log", codec="bipf", block_size=4096) as log:
        bit_by_bit = JITDB(log)
        for number in range(64):
            log.append_many([message(number), message(1000 + number)])
            log.flush()
            bit_by_bit.prepare(*QUESTIONS)
        at_once = JITDB(log, tmp_path / "at once")
        at_once.prepare(*QUESTIONS)
        check(bit_by_bit, oracle_of(log))
        check(at_once, oracle_of(log))
        assert len(index_files(log)) == len(list((tmp_path / "at once").glob("*.index")))


def test_an_interrupted_scan_keeps_whole_spans_and_parts(tmp_path: Path) -> None:
    make_log(tmp_path / "log", 400)
    with Log(tmp_path / "log") as log:
        db = JITDB(log, threads=1)
        seen: list[str] = []

        def interrupt(key: str) -> bool:
            seen.append(key)
            if len(seen) == 300:
                raise KeyboardInterrupt
            return True

        question = and_(POSTS, not_(predicate("key", interrupt)), equal("value.author", "@1"))
        with pytest.raises(KeyboardInterrupt):
            db.count(question)
        done = {row["form"]: row["records"] for row in db.explain(question)["indexes"]}
        assert all(128 < records < 300 for records in done.values()), done
        check(db, oracle_of(log), [*QUESTIONS, question])
        check(JITDB(log), oracle_of(log))
        assert sorted(set(seen)) == [f"%{number:06d}" for number in range(400)]
