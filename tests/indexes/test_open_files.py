"""How many files indexes keep open, and what becomes of those that were closed meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_helpers import POSTS, VOTES, make_log
from index_cases import opened

from jitdb import JITDB, Log
from jitdb.errors import IndexDamaged
from jitdb.indexes.files import file
from jitdb.indexes.segment import blob_cache
from jitdb.log.io import osfile
from jitdb.operators import equal

FIELDS = [f"field{number}" for number in range(40)]
QUESTIONS = [equal(name, 7) for name in FIELDS]


def open_indexes() -> int:
    names = (f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd"))
    return sum(os.readlink(each).endswith(".index") for each in names if os.path.islink(each))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Log(tmp_path / "a.log", codec="msgpack") as log:
        log.append_many(dict.fromkeys(FIELDS, number % 10) for number in range(100))
    return tmp_path / "a.log"


def test_forty_indexes_do_not_keep_forty_files_open(path: Path) -> None:
    with JITDB(Log(path), progress=False) as db:
        for _ in range(2):
            for question in QUESTIONS:
                assert db.count(question) == 10
                assert open_indexes() <= file.OPEN_FILES
    assert open_indexes() == 0
    with JITDB(Log(path, read_only=True), progress=False) as first, JITDB(Log(path), progress=False) as second:
        for question in QUESTIONS:
            assert first.count(question) == second.count(question) == 10
        assert open_indexes() <= file.OPEN_FILES
    assert open_indexes() == 0


def test_a_closed_file_that_another_process_replaced_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "OPEN_FILES", 1)
    path = tmp_path / "a.log"
    make_log(path, 300)
    with JITDB(Log(path, read_only=True), progress=False) as db, JITDB(Log(path), progress=False) as other:
        posts = db.all(POSTS, as_offsets=True)
        for index in opened(other):
            index.rewrite()  # other files have the names now
        blob_cache.clear()
        assert db.all(VOTES, as_offsets=True) == other.all(VOTES, as_offsets=True)
        for gone in path.with_name("a.log.jitdb").glob("indexes/*.index"):
            gone.unlink()
        blob_cache.clear()
        db.reindex(0)
        assert db.all(POSTS, as_offsets=True) == posts


def test_a_file_is_opened_again_only_if_it_is_the_one_that_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "a.index", tmp_path / "b.index"
    path.write_bytes(b"mine")
    other.write_bytes(b"yours")
    reader = file.FileReader(osfile.fs, path)
    reader.close()
    assert reader(0, 4) == b"mine"
    reader.close()
    other.rename(path)
    with pytest.raises(IndexDamaged, match="another file has its name"):
        reader(0, 4)


_FEW_DESCRIPTORS = """
import resource, sys
from jitdb import JITDB, Log
from jitdb.operators import equal

resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for _ in range(2):
    with JITDB(Log(sys.argv[1]), progress=False) as db:
        assert [db.count(equal(f"field{number}", 7)) for number in range(80)] == [10] * 80
    db.log.close()
print("answered")
"""


def test_eighty_indexes_with_64_descriptors(tmp_path: Path) -> None:
    with Log(tmp_path / "a.log") as log:
        log.append_many(dict.fromkeys((f"field{number}" for number in range(80)), number % 10) for number in range(100))
    command = [sys.executable, "-W", "error", "-c", _FEW_DESCRIPTORS, str(tmp_path / "a.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "answered\n", done.stderr
