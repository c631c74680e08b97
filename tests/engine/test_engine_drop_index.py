"""Indexes are dropped, and nobody who uses them gets another answer."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from engine_helpers import POSTS, TYPE, VOTES, check, make_log, oracle_of

from jitdb import JITDB, Log
from jitdb.errors import QueryError
from jitdb.indexes.files.index import Index
from jitdb.operators import equal

pytestmark = pytest.mark.slow

ASK = """
import sys
from jitdb import JITDB, Log
from jitdb.operators import equal

with JITDB(Log(sys.argv[1], read_only=True), progress=False) as db:
    for line in sys.stdin:
        print(db.count(equal("value.content.type", "post")), flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Log:
    make_log(tmp_path / "a.log", 300)
    return Log(tmp_path / "a.log")


def files(log: Log) -> set[str]:
    return {path.name for path in log.sidecar.glob("indexes/*.index")}


@pytest.mark.parametrize("how", ["name", "path", "keys", "question"])
def test_a_dropped_index_is_gone_and_built_anew(log: Log, how: str) -> None:
    with log, JITDB(log, progress=False) as db:
        assert db.count(POSTS) == 120
        name = db.explain(POSTS)["indexes"][-1]["index"]
        before = files(log)
        which = {"name": name, "path": TYPE, "keys": TYPE.split("."), "question": POSTS}[how]
        assert db.drop_index(which) == (name,)
        assert files(log) == before - {name}
        assert db.explain(POSTS)["indexes"][-1]["records"] == 0
        check(db, oracle_of(log))
        assert name in files(log)


def test_all_of_them_at_once(log: Log) -> None:
    with log, JITDB(log, progress=False) as db:
        check(db, oracle_of(log))
        assert set(db.drop_index(*files(log)))
        assert not files(log)
        check(db, oracle_of(log))


def test_indexes_in_memory_too(log: Log) -> None:
    with log, JITDB(log, "memory", progress=False) as db:
        assert db.count(POSTS) == 120
        assert len(db.drop_index(TYPE)) == 1
        assert db.explain(POSTS)["indexes"][-1]["records"] == 0
        assert db.count(POSTS) == 120


def test_another_process_and_another_object_go_on(log: Log) -> None:
    with log, JITDB(log, progress=False) as db, JITDB(Log(log.path, read_only=True), progress=False) as other:
        child = subprocess.Popen(
            [sys.executable, "-c", ASK, str(log.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            for _ in range(3):
                child.stdin.write("\n")
                child.stdin.flush()
                assert child.stdout.readline() == "120\n"
                assert other.count(POSTS) == db.count(POSTS) == 120
                db.drop_index(TYPE)
                assert other.count(VOTES) == 60
            child.stdin.close()
        assert child.returncode == 0


def test_what_no_index_has_is_refused_with_the_nearest(log: Log) -> None:
    with log, JITDB(log, progress=False) as db:
        db.count(POSTS)
        with pytest.raises(QueryError, match=r"no index of 'value.content.typ'.*did you mean 'value.content.type'"):
            db.drop_index("value.content.typ")
        with pytest.raises(QueryError, match="none was given"):
            db.drop_index()
        assert db.drop_index(equal("never.asked", 1)) == ()


def test_explain_leaves_no_index_in_memory(tmp_path: Path) -> None:
    """Who tells strangers what their questions would cost keeps nothing of them."""
    make_log(tmp_path / "log", 50)
    with Log(tmp_path / "log") as log:
        db = JITDB(log)
        db.count(POSTS)
        for number in range(20):
            assert db.explain(equal(f"field {number}", 1))["scan_bytes"] == log.durable_end
        held = [each for each in gc.get_objects() if isinstance(each, Index)]
        assert not [index.name for index in held if index.spec.file_name().startswith("field")]
        assert db.count(POSTS) == 20
