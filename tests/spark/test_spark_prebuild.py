"""prebuild() on a small cluster of one machine: the local engine's files, whatever happens meanwhile."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, check, make_log, messages, oracle_of
from range_cases import build_locally, damage, files_of, gathered, merged_files

import jitdb
from jitdb import Log
from jitdb.errors import IndexWarning, LogWarning, QueryError
from jitdb.indexes.spec import IndexSpec
from jitdb.operators import equal, predicate
from jitdb.spark_ext import prebuild
from jitdb.spark_ext.errors import CopyDiffers

BLOCK = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_log(tmp_path / "x.log", 3000)
    return tmp_path / "x.log"


def expected(path: Path, operations: Any = QUESTIONS) -> dict[str, bytes]:
    with Log(path, read_only=True) as log:
        return merged_files(log, path.parent / f"local {len(list(path.parent.iterdir()))}", operations)


@pytest.mark.parametrize("merge_on_driver", [0, 1 << 30], ids=["spans apart", "taken in by the driver"])
def test_the_same_files(spark: Any, path: Path, merge_on_driver: int) -> None:
    summary = prebuild(spark, path, operations=QUESTIONS, range_bytes=20 * BLOCK, merge_on_driver=merge_on_driver)
    folder = path.parent / "x.log.jitdb" / "indexes"
    assert bool(list(folder.glob("spans/*"))) == (not merge_on_driver)
    assert summary.records == 3000
    assert summary.tasks == 5
    assert path.stat().st_size - BLOCK < summary.scanned <= path.stat().st_size
    assert "3,000 records" in str(summary)
    with jitdb.open(path) as db:
        assert db.explain(equal("value.author", "@3"))["scan_bytes"] == 0
        check(db, oracle_of(db.log))
    assert gathered(folder) == expected(path)
    again = prebuild(spark, path, operations=QUESTIONS)
    assert again.tasks == 0
    assert "nothing to do" in str(again)


def test_only_what_is_new(spark: Any, path: Path) -> None:
    with Log(path) as log:
        build_locally(log, path.parent / "x.log.jitdb" / "indexes", QUESTIONS[:4])
        before = log.durable_end
        log.append_many(messages(700, first=3000))
        for offset in log.append_many(messages(30, first=3700))[::3]:
            log.delete(int(offset))
    summary = prebuild(spark, path, operations=QUESTIONS[:4], range_bytes=10 * BLOCK)
    assert summary.records == 730
    assert 0 < summary.scanned <= path.stat().st_size - before
    assert files_of(path.parent / "x.log.jitdb" / "indexes") == expected(path, QUESTIONS[:4])
    assert prebuild(spark, path, operations=QUESTIONS, range_bytes=40 * BLOCK).records == 3730
    assert files_of(path.parent / "x.log.jitdb" / "indexes") == expected(path)


def test_fields_and_columns_by_name(spark: Any, path: Path, tmp_path: Path) -> None:
    summary = prebuild(
        spark,
        path,
        fields=["value.content.type", ("value", "author")],
        indexes=["timestamp", "value.sequence", IndexSpec("prefix", (("key",),), prefix_offset=1)],
        folder=tmp_path / "elsewhere",
    )
    names = sorted(each.file for each in summary.indexes)
    assert names == sorted(files_of(tmp_path / "elsewhere"))
    assert len(names) == 7
    assert not files_of(path.parent / "x.log.jitdb" / "indexes")
    with jitdb.open(path, tmp_path / "elsewhere") as db:
        assert db.count(equal("value.content.type", "post")) == 1200


def test_one_field_one_operation_one_column_need_no_list(spark: Any, path: Path, tmp_path: Path) -> None:
    one = prebuild(
        spark,
        path,
        fields="value.author",
        operations=equal("key", "k1"),
        indexes="value.sequence",
        folder=tmp_path / "a",
    )
    many = prebuild(
        spark, path, fields=["value.author"], operations=[equal("key", "k1")], indexes=["value.sequence"],
        folder=tmp_path / "b",
    )  # fmt: skip
    assert [each.file for each in one.indexes] == [each.file for each in many.indexes]
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert " in 1 task, " in str(one)


def test_the_verdict_of_many_values(spark: Any, tmp_path: Path) -> None:
    # 300 values: too many in 3,000 records, which no single range of them shows.
    with Log(tmp_path / "x.log", codec="msgpack", block_size=BLOCK) as log:
        log.append_many([{"few": number % 20, "many": f"value {number % 300}"} for number in range(3000)])
    prebuild(spark, tmp_path / "x.log", fields=["few", "many"], range_bytes=BLOCK * 2)
    operations = [equal("few", 1), equal("many", "value 1")]
    assert files_of(tmp_path / "x.log.jitdb" / "indexes") == expected(tmp_path / "x.log", operations)


def test_predicates_are_sent_to_the_workers(spark: Any, path: Path) -> None:
    wanted = {3, 5}
    operation = predicate("value.sequence", lambda value: value % 7 in wanted, name="some")
    prebuild(spark, path, operations=[operation], range_bytes=30 * BLOCK)
    with jitdb.open(path) as db:
        assert db.explain(operation)["scan_bytes"] == 0
        assert db.count(operation) == sum(number // 11 % 7 in wanted for number in range(3000))


def test_a_predicate_that_raises_leaves_nothing(spark: Any, path: Path) -> None:
    operation = predicate("value.sequence", lambda value: 1 / (value - 200), name="broken")
    with pytest.raises(Exception, match="ZeroDivisionError"):
        prebuild(spark, path, operations=[operation], range_bytes=30 * BLOCK)
    assert not files_of(path.parent / "x.log.jitdb" / "indexes")
    # and no lock is left behind
    assert prebuild(spark, path, fields=["value.author"]).records == 3000


def test_what_cannot_be_built(spark: Any, path: Path) -> None:
    with pytest.raises(QueryError, match="takes a function; hand over its operation"):
        prebuild(spark, path, indexes=[IndexSpec("predicate", (("a",),), name="x")])
    with pytest.raises(QueryError, match="not 7"):
        prebuild(spark, path, indexes=[7])  # type: ignore[list-item]
    with pytest.raises(jitdb.errors.LogError, match="no such"):
        prebuild(spark, path.parent / "y.log")


def test_a_damaged_index_is_built_anew(spark: Any, path: Path) -> None:
    prebuild(spark, path, operations=QUESTIONS)
    wanted = expected(path)
    folder = path.parent / "x.log.jitdb" / "indexes"
    with Log(path) as log:
        log.append_many(messages(50, first=3000))
    for file in folder.glob("*author*"):
        raw = bytearray(file.read_bytes())
        raw[-1] ^= 1
        file.write_bytes(raw)
    assert files_of(folder) != wanted
    with pytest.warns(IndexWarning, match="author"):
        prebuild(spark, path, operations=QUESTIONS, range_bytes=30 * BLOCK)
    assert files_of(folder) == expected(path)


def test_damaged_blocks_are_named(spark: Any, path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[7 * BLOCK : 7 * BLOCK + 2] = b"\xff\xff"
    damage(path, data)
    with pytest.warns(LogWarning, match=r"block 7 \(offsets 28,672 to 32,768\) is damaged"):
        summary = prebuild(spark, path, operations=QUESTIONS, range_bytes=20 * BLOCK)
    assert summary.damaged == (7,)
    assert "damaged blocks: 1, the first is 7" in str(summary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        assert files_of(path.parent / "x.log.jitdb" / "indexes") == expected(path)


class Substituting:
    """A predicate that puts another file at the log's path when it reaches a worker: a machine with another copy."""

    def __init__(self, path: Path, data: bytes | None) -> None:
        self.path, self.data = path, data

    def __call__(self, value: object) -> bool:
        return True

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.data is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_bytes(self.data)


@pytest.mark.parametrize("kind", ["missing", "stale", "another"])
def test_a_worker_with_another_copy(spark: Any, path: Path, kind: str) -> None:
    good = path.read_bytes()
    other = {"missing": None, "stale": good[: len(good) // BLOCK // 2 * BLOCK], "another": good[:-BLOCK] + bytes(BLOCK)}
    message = {"missing": "has no such file", "stale": "an old copy", "another": "another file there"}[kind]
    operation = predicate("value.author", Substituting(path, other[kind]), name="all")
    with pytest.raises(CopyDiffers, match=message) as caught:
        prebuild(spark, path, operations=[operation])
    assert os.uname().nodename in str(caught.value)
    assert "must lie on storage that all machines share" in str(caught.value)
    assert not files_of(path.parent / "x.log.jitdb" / "indexes")
