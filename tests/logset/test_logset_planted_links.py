"""Bundles that another user planted: nothing is changed behind his links, nor shown to him that he may not read."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from planted import OTHER, THIRD, as_root, folder, plant, run_as

import jitdb
from jitdb.log.lines.bundles.bundle import Bundle, BundledFile, Kind
from jitdb.log.lines.files.stamp import Stamp
from jitdb.log.lines.form import LineForm
from jitdb.operators import field

__all__ = ["folder"]

LINES = '{"n": 6}\n{"n": 7}\n'


@as_root
@pytest.mark.parametrize("inside", [False, True], ids=["store", "bundle"])
def test_bundles_behind_a_planted_link(folder: Path, inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, victim = folder / "logs", folder / "victim"
    logs.mkdir()
    victim.mkdir(0o700)
    for number in range(12):
        (logs / f"{number}.ndjson").write_text(LINES)
    time.sleep(0.03)  # until a change shows in the times of a file
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))

    def asked() -> int:
        with jitdb.open_many(logs, progress=False) as found:
            return found.count(field("n") == 6)

    assert asked() == 12
    store = logs / ".jitdb"
    (place,) = (each for each in store.iterdir() if each.is_dir())
    moved = place if inside else store
    for each in moved.iterdir():
        each.rename(victim / each.name)
    moved.rmdir()
    plant(moved, victim)
    for each in [logs, *logs.iterdir()]:
        os.chown(each, OTHER, OTHER, follow_symlinks=False)
    before = [(each, each.stat()[:7], each.stat().st_mtime_ns) for each in [victim, *victim.rglob("*")]]
    assert asked() == 12
    (logs / "3.ndjson").rename(logs / "33.ndjson")  # so that the bundle would be written again
    assert asked() == 12
    (logs / "5.ndjson").write_text(LINES + LINES)  # and be removed
    assert asked() == 13
    assert [(each, each.stat()[:7], each.stat().st_mtime_ns) for each in [victim, *victim.rglob("*")]] == before


@as_root
@pytest.mark.parametrize("where", ["here", "elsewhere", "behind links"])
def test_a_planted_bundle_shows_nobody_private_files(folder: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, private = folder / "logs", folder / "private"
    for each in (logs, private):
        each.mkdir()
        each.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "cache").mkdir(0o777)
    (folder / "cache").chmod(0o777)
    names = [f"{number}.ndjson" for number in range(12)]
    for name in names:
        file = (logs if where == "here" else private) / name
        file.write_text(f'{{"n": 6, "word": "secret {name}"}}\n')
        file.chmod(0o600)
        os.chown(file, THIRD, THIRD)
        if where == "behind links":
            plant(logs / name, file)
        if where == "elsewhere":
            (logs / name).write_text('{"n": 6, "word": "x"}\n')
    time.sleep(0.03)  # until a change shows in the times of a file
    asked_once(logs)  # so that all is imported: other users may not read where Python is
    for beside in folder.rglob("*.jitdb"):
        shutil.rmtree(beside, ignore_errors=True)

    def forge() -> None:
        place = logs / ".jitdb" / ("ab" * 16)
        place.mkdir(parents=True)
        for each in (place, place.parent):
            each.chmod(0o777)
        there = [os.path.relpath((logs if where == "here" else private) / name, logs) for name in names]
        if where == "behind links":
            there = names
        stamps = {name: Stamp.of((logs / name).resolve().stat()) for name in there}
        files = [BundledFile(name, stamp, stamp.size) for name, stamp in stamps.items()]
        kind = Kind((THIRD, THIRD, 0o600), LineForm(format="json"))
        made = Bundle(str(logs), place, b"\xab" * 16, kind, tuple(files))
        (place / "members").write_bytes(made.pack())
        (place / "members").chmod(0o666)

    def seen() -> list[Path]:
        return [path for path in folder.rglob("*") if os.access(path, os.R_OK) and is_told(path)]

    def is_told(path: Path) -> bool:
        return path.is_file() and b"secret" in path.read_bytes()

    run_as(OTHER, forge)
    assert run_as(THIRD, lambda: asked_once(logs)) == 12
    assert run_as(OTHER, seen) == []


def asked_once(logs: Path) -> int:
    with jitdb.open_many(logs, progress=False) as found:
        found.count(field("word") == "secret 1.ndjson")
        return found.count(field("n") == 6)
