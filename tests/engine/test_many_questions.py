"""What a question costs, and what is kept for it, does not follow how many others were asked before."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import jitdb
from jitdb import JITDB, LogSet
from jitdb.engine.answering.order import Column
from jitdb.indexes.files.index import Index
from jitdb.logset import asking, bundling
from jitdb.operators import field

CODE = str(Path(jitdb.__file__).parent)
LEVEL = field("level") == "error"


def work(function: Callable[[], object]) -> int:
    """How many bytecodes of jitdb it takes."""
    done = 0

    def each(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        done += event == "opcode"
        frame.f_trace_opcodes = frame.f_code.co_filename.startswith(CODE)
        return each

    before = sys.gettrace()
    gc.disable()  # or what other tests left is put away meanwhile, and counts
    sys.settrace(each)
    try:
        function()
    finally:
        sys.settrace(before)
        gc.enable()
    return done


def lines(count: int) -> str:
    records = (
        {"time": 1_700_000_000 + n, "level": ("error", "info")[n % 2], "size": n, "user": f"u{n}"} for n in range(count)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


def ask(db: JITDB | LogSet, numbers: range) -> None:
    """Distinct questions, each of which builds nothing."""
    for number in numbers:
        db.count(field("user") == f"u{number}")
        db.query(field("size") < number).value_counts("level")
        db.query(field("size") > number).histogram("size")


QUESTIONS: dict[str, Callable[[Any], object]] = {
    "count": lambda db: db.count(LEVEL),
    "page": lambda db: db.query(LEVEL).page(3),
    "value_counts": lambda db: db.query(LEVEL).value_counts("user", limit=3),
    "histogram": lambda db: db.query(LEVEL).histogram("size"),
    "stats": lambda db: db.query(LEVEL).stats("size"),
    "timeline": lambda db: db.query(LEVEL).timeline(),
    "explain": lambda db: db.query(LEVEL).explain(),
}


@pytest.mark.parametrize("many", [False, True], ids=["log", "set"])
def test_the_same_question_costs_the_same_after_many_others(tmp_path: Path, many: bool) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ndjson").write_text(lines(50))
    with jitdb.open_many(tmp_path) if many else jitdb.open(tmp_path / "a.ndjson") as db:
        ask(db, range(2))
        gc.collect()

        def costs() -> dict[str, int]:
            return {name: work(partial(question, db)) for name, question in QUESTIONS.items()}

        for _ in range(3):
            before = costs()
        ask(db, range(2, 200))
        gc.collect()
        db.count(LEVEL)  # forgets the blobs of what is gone
        after = costs()
    assert {name: cost for name, cost in after.items() if cost > 1.1 * before[name] + 100} == {}, before


def held(kind: type) -> int:
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


def test_questions_about_text_leave_no_empty_indexes(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(lines(50))
    with jitdb.open(tmp_path / "a.ndjson") as db:
        db.count(field("user").contains("u"))
        before = held(Index)
        for number in range(20):
            db.count(field("user").contains(f"{number}"))
        assert held(Index) == before


def test_orders_share_what_they_know_of_their_fields(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(lines(50))
    with jitdb.open(tmp_path / "a.ndjson") as db:
        before = held(Column)
        for keys in permutations(("size", "-size", "level", "-level", "user"), 3):
            if len({key.lstrip("-") for key in keys}) == len(keys):
                assert len(db.query().sort_by(*keys).page(3).data) == 3
        assert held(Column) == before + 3


def test_sets_remember_no_more_questions_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_MOST", 20)
    monkeypatch.setattr(bundling, "_CHOICES", 5)
    for number in range(10):
        (tmp_path / f"{number}.ndjson").write_text(lines(5))
    with jitdb.open_many(tmp_path) as logs:
        for number in range(10):
            of_some = field("_path") != str(tmp_path / f"{number}.ndjson")
            assert logs.count((field("size") < number) & of_some) == 9 * min(number, 5)
            assert len(logs.query(field("size") < number).all()) == 10 * min(number, 5)
        assert len(logs._asking._known) <= 20
        assert logs._asking._bundles is not None
        assert len(logs._asking._bundles._found) <= 5
