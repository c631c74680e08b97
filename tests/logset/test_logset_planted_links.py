"""Bundles behind a link that another user put there: the files are asked, and nothing is changed through the link."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from planted import OTHER, as_root, folder, plant

import jitdb
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
