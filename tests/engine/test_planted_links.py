"""Nothing is written, removed or given away through a link that another user put into a sidecar, or in its place."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from homes import entry_of
from planted import OTHER, THIRD, as_root, folder, plant

import jitdb
from jitdb.errors import IndexWarning, LogError, LogReadOnly
from jitdb.log import Log
from jitdb.log.io import osfile
from jitdb.operators import field

__all__ = ["folder"]

RECORDS = [{"kind": f"kind {number % 3}", "n": number} for number in range(300)]
WAYS = {"blocks": "a.log", "lines": "a.ndjson"}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def path(folder: Path, request: pytest.FixtureRequest) -> Path:
    """A log of another user."""
    path = folder / request.param
    if path.suffix == ".log":
        with Log(path) as log:
            log.append_many(RECORDS)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    give(folder)
    return path


def give(folder: Path, owner: int = OTHER) -> None:
    for each in [folder, *folder.rglob("*")]:
        os.chown(each, owner, owner, follow_symlinks=False)


def ask(path: Path, **options: Any) -> list[str]:
    """Ask what needs indexes; gives what was warned of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with jitdb.open(path, progress=False, **options) as db:
            assert db.count(field("kind") == "kind 1") == 100
            assert db.count(field("n") >= 290) == 10
            assert len(db.query(field("kind") == "kind 2").page(7).data) == 7
    assert all(each.category is IndexWarning for each in found)
    return [str(each.message) for each in found]


def state(folder: Path) -> dict[str, Any]:
    """Everything of a folder that must stay as it is."""
    return {
        str(each): (each.lstat().st_uid, each.lstat().st_mode, each.read_bytes() if each.is_file() else None)
        for each in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def victim(folder: Path) -> Iterator[Path]:
    """Files of root's, of names that jitdb would remove in a folder of its own."""
    victim = folder.parent / f"{folder.name}-victim"
    victim.mkdir(0o700)
    names = ["kind.equal-0123456789ab.index", "a.index.999999999-1.tmp", "deleted.deleted-0123456789ab.index", "lock",
             "asked", "meta.1.tmp", "next-log", "mend"]  # fmt: skip
    for name in names:
        (victim / name).write_text("precious")
    yield victim
    for each in victim.iterdir():
        each.unlink()
    victim.rmdir()


def sidecar_of(path: Path) -> Path:
    return path.with_name(path.name + ".jitdb") if path.suffix == ".log" else entry_of(path)


@as_root
def test_indexes_behind_a_planted_link_are_kept_in_memory(path: Path, victim: Path) -> None:
    ask(path)
    indexes = sidecar_of(path) / "indexes"
    for each in indexes.iterdir():
        each.rename(victim / each.name)  # what is there is found damaged, superseded, or of use
    indexes.rmdir()
    (victim / "kind.equal-0123456789ab.index").write_text("precious")
    plant(indexes, victim)
    before = state(victim)
    with jitdb.open(path, progress=False) as db, pytest.warns(IndexWarning, match="kept in memory"):
        db.reindex()
    said = ask(path)
    assert state(victim) == before
    assert len(said) <= 1
    for each in list(victim.iterdir()):
        each.unlink()
    before = state(victim)
    said = ask(path)
    assert state(victim) == before
    assert len(said) == 1
    assert f"indexes is a link that user {OTHER} made" in said[0]
    assert "remove it" in said[0]
    assert "kept in memory" in said[0]


@as_root
def test_no_index_is_dropped_behind_a_planted_link(path: Path, victim: Path) -> None:
    ask(path)
    indexes = sidecar_of(path) / "indexes"
    for each in indexes.iterdir():
        each.rename(victim / each.name)
    indexes.rmdir()
    plant(indexes, victim)
    before = state(victim)
    with jitdb.open(path, progress=False) as db, pytest.raises(LogError, match="is a link that user"):
        db.drop_index(field("kind") == "kind 1")
    assert state(victim) == before


@as_root
@pytest.mark.parametrize("is_old", [False, True])
def test_a_planted_link_in_place_of_a_sidecar_is_read_alone(path: Path, victim: Path, is_old: bool) -> None:
    sidecar = path.with_name(path.name + ".jitdb") if is_old else sidecar_of(path)
    if sidecar.exists():
        osfile.fs.remove(sidecar)
    sidecar.parent.mkdir(exist_ok=True)
    plant(sidecar, victim)
    before = state(victim)
    said = ask(path, read_only=True)
    assert state(victim) == before
    assert len(said) <= 1
    if path.suffix == ".log":
        with pytest.raises(LogReadOnly, match=rf"a\.log\.jitdb is a link that user {OTHER} made.*remove it"):
            Log(path)
    assert state(victim) == before
    assert victim.stat().st_uid == 0  # nor was it given to the owner of the log


@as_root
def test_sets_are_not_kept_or_removed_behind_a_planted_link(path: Path, victim: Path) -> None:
    with jitdb.open(path, progress=False) as db:
        db.sets["mine"] = db.query(field("n") > 3).set()
    sets = sidecar_of(path) / "sets"
    (kept,) = sets.iterdir()
    kept.rename(victim / kept.name)
    sets.rmdir()
    plant(sets, victim)
    before = state(victim)
    with jitdb.open(path, progress=False) as db:
        with pytest.raises(LogError, match="is a link that user"):
            db.sets["mine"] = db.query(field("n") > 4).set()
        with pytest.raises(LogError, match="is a link that user"):
            del db.sets["mine"]
        assert len(db.sets["mine"]) == 296
    assert state(victim) == before


@as_root
@pytest.mark.parametrize("names", [("indexes",), ()], ids=["indexes", "sidecar"])
@pytest.mark.parametrize(
    ("link", "target"), [(0, 0), (0, THIRD), (OTHER, OTHER)], ids=["own", "own to another's", "another's to his own"]
)
def test_links_that_are_trusted(path: Path, folder: Path, names: tuple[str, ...], link: int, target: int) -> None:
    ask(path)
    place = sidecar_of(path).joinpath(*names)
    elsewhere = folder / "elsewhere"
    place.rename(elsewhere)
    if names:
        osfile.fs.remove(elsewhere)
        elsewhere.mkdir()
    os.chown(elsewhere, target, target)
    plant(place, elsewhere, link)
    assert ask(path) == []
    assert list(elsewhere.glob("*.index" if names else "indexes/*.index"))


@pytest.mark.parametrize("names", [("indexes",), ()], ids=["indexes", "sidecar"])
@pytest.mark.parametrize("name", WAYS.values(), ids=WAYS.keys())
def test_a_link_of_ones_own(tmp_path: Path, name: str, names: tuple[str, ...]) -> None:
    path = tmp_path / name
    if path.suffix == ".log":
        with Log(path) as log:
            log.append_many(RECORDS)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    ask(path)
    place = sidecar_of(path).joinpath(*names)
    elsewhere = tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    for each in elsewhere.rglob("*.index"):
        each.unlink()
    assert ask(path) == []
    assert list(elsewhere.rglob("*.index"))


@as_root
@pytest.mark.parametrize("change", ["rename", "unlink", "rmdir", "mkdir"])
def test_each_way_to_change_something(folder: Path, victim: Path, change: str) -> None:
    sidecar = folder / "a.log.jitdb"
    sidecar.mkdir()
    plant(sidecar / "indexes", victim)
    name = sidecar / "indexes" / "lock"
    ways: dict[str, Callable[[], object]] = {
        "rename": lambda: osfile.fs.rename(name, name.with_name("other")),
        "unlink": lambda: osfile.fs.unlink(name),
        "rmdir": lambda: osfile.fs.rmdir(name),
        "mkdir": lambda: osfile.fs.mkdir(name.with_name("other"), 0o700),
    }
    before = state(victim)
    with pytest.raises(PermissionError, match="is a link that user"):
        ways[change]()
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        with pytest.raises(PermissionError, match="is a link that user"):
            osfile.Descriptor(osfile.fs, name, flags)
    osfile.fs.share_folder(sidecar / "indexes")
    assert state(victim) == before
