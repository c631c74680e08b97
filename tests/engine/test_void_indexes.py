"""Indexes of fields that nobody has: none is left behind for a question that was only typed wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engine_helpers import manager_of

import jitdb
from jitdb import JITDB, Log
from jitdb.engine.building.scan import Scan
from jitdb.indexes.files.folder import ASKED, is_first
from jitdb.log.io import osfile
from jitdb.operators import absent, contains, equal, gt, includes, starts_with
from jitdb.operators.nodes.operation import Operation

QUESTIONS: list[Operation] = [
    equal("tpye", "post"), equal("tpye", "post", prefix=32), equal("tpye", "x", use_map=True), includes("tpye", 1),
    starts_with("tpye", "p"), contains("tpye", "p"), gt(5, "tpye"), ~absent("tpye"), gt("2020-01-01", "tpye"),
    equal("tpye[]", 1),
]  # fmt: skip


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each scan."""
    found, run = [], Scan.run

    def counted(self: Scan, *rest: Callable[[int], object]) -> None:
        found.append(1)
        run(self, *rest)

    monkeypatch.setattr(Scan, "run", counted)
    return found


def made(path: Path, *more: object) -> Path:
    with Log(path, codec="json") as log:
        log.append_many([{"type": "post", "n": number} for number in range(100)])
        log.append_many(more)
    with jitdb.open(path) as db:
        db.count(equal("type", "post"))  # so that there are those that all questions need
    return path


def files(path: Path) -> set[str]:
    folder = path.parent / f"{path.name}.jitdb" / "indexes"
    return {each.name for each in folder.iterdir()} - {"lock", ASKED}


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_a_question_that_was_typed_wrong_leaves_no_file(tmp_path: Path, scans: list[int], question: Operation) -> None:
    path = made(tmp_path / "log")
    before = files(path)
    del scans[:]
    with jitdb.open(path) as db:
        for _ in range(3):
            assert db.count(question) == 0
        assert len(scans) == 1  # who asked knows it
        db.log.append({"type": "post"})
        db.log.flush()
        assert db.count(question) == 0
        assert files(path) == before
        db.delete(equal("type", "post"))
        db.log.append({"type": "vote"})
        db.compact()
        assert db.count(question) == 0
        assert files(path) == before
    del scans[:]
    with jitdb.open(path) as db:  # who asks again means it
        assert db.count(question) == 0
        assert len(files(path) - before) == 1
        assert len(scans) == 1
    with jitdb.open(path) as db:
        assert db.count(question) == 0
        assert len(scans) == 1


@pytest.mark.parametrize(("question", "record"), [
    (equal("a", 1), {"a": 1}), (contains("a", "x"), {"a": "xx"}), (gt(0, "a"), {"a": 1}),
    (includes("a", 1), {"a": [1]}), (starts_with("a", "x"), {"a": "xx"}), (equal("a", 1, prefix=32), {"a": 1}),
])  # fmt: skip
def test_the_first_record_with_a_value_brings_the_file(tmp_path: Path, question: Operation, record: object) -> None:
    path = made(tmp_path / "log")
    before = files(path)
    with jitdb.open(path) as db:
        assert db.count(question) == 0
        for number in (1, 2):
            db.log.append(record)
            db.log.flush()
            assert db.count(question) == number
            assert len(files(path) - before) == 1
        assert db.verify().ok
    with jitdb.open(path) as db:
        assert db.explain(question)["scan_bytes"] == 0
        assert db.count(question) == 2


def test_what_is_asked_wrong_of_a_field_that_is_there_leaves_its_file(tmp_path: Path) -> None:
    path = made(tmp_path / "log", {"tags": [], "none": None})
    before = files(path)
    with jitdb.open(path) as db:
        for number, question in enumerate((gt(5, "type"), contains("n", "x"), equal("none", 1), equal("tags", 1)), 1):
            assert db.count(question) == 0
            assert len(files(path) - before) == number


def test_prepared_indexes_and_those_of_the_time_have_files(tmp_path: Path) -> None:
    path = made(tmp_path / "log")
    before = files(path)
    with jitdb.open(path, timestamp="when") as db:
        assert len(db.all()) == 100
        assert len(files(path) - before) == 1
        assert db.count(equal("tpye", 1)) == 0
        assert len(files(path) - before) == 1
        db.prepare(equal("tpye", 1), gt(1, "aera"))
        assert len(files(path) - before) == 3
        assert db.verify().ok
    with jitdb.open(path) as db:
        assert db.explain(equal("tpye", 1) & gt(1, "aera"))["scan_bytes"] == 0


def test_full_spans_share_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("content", "builder", "numbers", "set_builders")
    for module in (
        "engine.building.targets",
        "indexes.files.index",
        "indexes.segment",
        *(f"indexes.kinds.{each}" for each in kinds),
    ):
        monkeypatch.setattr(f"jitdb.{module}.SPAN", 64, raising=False)
    with Log(tmp_path / "log", codec="json") as log:
        log.append_many({"n": number} for number in range(300))
        log.flush()
        db = JITDB(log)
        assert db.count(gt(1, "x")) == 0
        (index,) = (each for each in manager_of(db).opened() if each.spec.paths == (("x",),))
        assert len(index.segments) == 5
        assert len({id(segment.blobs) for segment in index.segments[:4]}) == 1
        log.append({"x": 2})
        log.flush()
        assert db.count(gt(1, "x")) == 1
    with jitdb.open(tmp_path / "log") as db:
        assert db.count(gt(1, "x")) == 1


def test_what_was_asked_is_a_line_and_no_line_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    assert is_first(osfile.fs, folder, "a.index")
    assert not is_first(osfile.fs, folder, "a.index")
    assert is_first(osfile.fs, folder, "b.index")
    asked = folder / ASKED
    asked.write_bytes(asked.read_bytes()[:-4])  # torn
    assert is_first(osfile.fs, folder, "b.index")
    assert not is_first(osfile.fs, folder, "a.index")
    asked.write_bytes(b"\xff\x00" * 50_000)
    assert is_first(osfile.fs, folder, "a.index")
    assert asked.stat().st_size < 100
    assert not is_first(osfile.fs, folder, "a.index")
    asked.unlink()
    asked.mkdir()
    assert is_first(osfile.fs, folder, "a.index")
    assert is_first(osfile.fs, folder, "a.index")
