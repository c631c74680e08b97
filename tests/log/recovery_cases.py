"""Logs as a process leaves them that dies."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from jitdb.log import Log
from jitdb.log.io import osfile

BLOCK = 512


def crashed(tmp_path: Path, name: str = "crashed", **options: Any) -> Path:
    """The files as they are when the process dies now: a copy of them while the log is open."""
    target = tmp_path / name
    target.mkdir()
    for each in tmp_path.glob("a.log*"):
        copy: Any = shutil.copytree if each.is_dir() else shutil.copy2
        copy(each, target / each.name)
    return target / "a.log"


def not_synced(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files as they are when the process dies in a flush that has written all, and waits for the disk."""
    taken: list[Path] = []

    one = threading.Lock()

    def sync(fd: int) -> None:
        with one:  # the log's and the journal's come at the same time
            if not taken:
                taken.append(crashed(tmp_path))
        os.fsync(fd)

    with monkeypatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(osfile.fs, name, sync)
        log.flush()
    return taken[0]


def open_log(path: Path, **options: Any) -> Log:
    return Log(path, **{"codec": "raw", "block_size": BLOCK, **options})


def values(log: Log) -> list[bytes]:
    return [record.value for record in log.stream(raw=True)]


RECORDS = [b"%03d" % number + b"x" * (number % 60) for number in range(60)]
