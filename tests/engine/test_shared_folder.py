"""Two users of one group share logs in a folder with setgid: what lies beside these is the group's, whoever made it."""

from __future__ import annotations

import json
import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted import GROUP, OTHER, THIRD, as_root, folder, run_as

import jitdb
from jitdb.errors import LogError
from jitdb.log import Log
from jitdb.log.io.filenames import STORE
from jitdb.operators import field

__all__ = ["folder"]


@pytest.fixture(params=[0o002, 0o007], ids=oct, autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def write(path: Path, count: int) -> None:
    """So many records of each of three kinds more."""
    records = [{"kind": number % 3, "n": number} for number in range(3 * count)]
    if path.suffix == ".log":
        with Log(path) as log:
            log.append_many(records)
            log.delete(log.append({"kind": 1}))
            log.compact()
    else:
        with open(path, "a") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))


def ask(path: Path, *names: str) -> tuple[int, list[str]]:
    """How many are of kind 1, and what was warned of; indexes and a set are kept."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with jitdb.open(path, progress=False) as db:
            db.sets["mine"] = db.query(field("kind") == 1).set()
            for name in names:
                db.count(field(name) == 1)
            return db.count(field("kind") == 1), [str(each.message) for each in found]


@as_root
@pytest.mark.parametrize("name", ["a.log", "a.ndjson"])
def test_what_is_beside_a_shared_log_is_the_groups(folder: Path, name: str, umask: int) -> None:
    path = folder / "private" / name
    path.parent.mkdir()
    write(path, 10)
    ask(path, "n")  # so that all is imported: other users may not read where Python is
    path = folder / "shared" / name
    path.parent.mkdir()
    os.chown(path.parent, 0, GROUP)
    path.parent.chmod(0o2775)
    expected = 0
    for count, user, other in (40, OTHER, THIRD), (41, THIRD, OTHER), (42, OTHER, THIRD), (43, THIRD, OTHER):
        run_as(user, lambda count=count: write(path, count), others=(GROUP,))  # type: ignore[misc]
        expected += count
        assert run_as(user, lambda: ask(path), others=(GROUP,)) == (expected, [])
        assert run_as(other, lambda: ask(path, "n"), others=(GROUP,)) == (expected, [])
    beside = [path, *path.parent.rglob("*")]
    assert len(beside) > 8
    mode = 0o666 & ~umask
    for each in beside:
        found = each.stat()
        assert (found.st_gid, each.name) == (GROUP, each.name)
        folder_mode = 0o775 if each.name == STORE else 0o777 & ~umask  # a store has the permissions of its folder
        assert stat.S_IMODE(found.st_mode) == (mode if each.is_file() else stat.S_ISGID | folder_mode), each
    assert {each.stat().st_uid for each in beside} == {OTHER, THIRD}
    if umask == 0o007:
        with pytest.raises(LogError):
            run_as(12399, lambda: ask(path))
