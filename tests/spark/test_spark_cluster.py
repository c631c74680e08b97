"""Killed workers, second attempts, killed drivers: the files are the local engine's all the same, or not there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, make_log
from range_cases import build_by_ranges, files_of, merged_files

from jitdb import Log
from jitdb.engine.catalog.catalog import Catalog
from jitdb.indexes.files.folder import take_locks
from jitdb.indexes.spec import OFFSETS
from jitdb.log.io import osfile

HERE = Path(__file__).parent
PATHS = os.pathsep.join([str(HERE.parent), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATHS}


@pytest.fixture(scope="module")
def scenarios(programs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in programs["cluster_script.py"].printed() if line.startswith("{")]
    return {row["scenario"]: row for row in rows}


@pytest.mark.parametrize("name", ["killed", "a second attempt"])
def test_the_same_bytes_on_two_workers(scenarios: dict[str, dict[str, Any]], name: str) -> None:
    assert scenarios[name]["same"]


def test_a_slow_task_was_tried_twice(scenarios: dict[str, dict[str, Any]]) -> None:
    assert scenarios["a second attempt"]["twice"] >= 1
    assert scenarios["a second attempt"]["seconds"] < 60  # the loser sleeps for so long


DRIVER = """
import time
from engine_helpers import QUESTIONS
from jitdb import Log
from jitdb.operators import predicate
from range_cases import build_by_ranges

def slow(value):
    print("scanning", flush=True)
    time.sleep(60)

with Log(PATH, read_only=True) as log:
    build_by_ranges(log, log.sidecar / "indexes", [*QUESTIONS, predicate("value.sequence", slow, name="slow")], 1 << 16)
"""


def test_a_driver_killed_while_it_scans(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    make_log(path, 3000)
    script = DRIVER.replace("PATH", repr(str(path)))
    with subprocess.Popen([sys.executable, "-c", script], env=ENVIRONMENT, stdout=subprocess.PIPE) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == b"scanning\n"
            with Log(path, read_only=True) as log:  # meanwhile nobody else builds these
                assert take_locks(osfile.fs, log.sidecar / "indexes", [OFFSETS.file_name()]) is None
        finally:
            driver.send_signal(signal.SIGKILL)
    assert files_of(path.parent / "x.log.jitdb" / "indexes") == {}
    with Log(path, read_only=True) as log:
        build_by_ranges(log, log.sidecar / "indexes", QUESTIONS, 1 << 16)
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "locally", QUESTIONS)


class Killed(BaseException):
    """What no code expects."""


@pytest.mark.parametrize("at", [1, 2, 7])
def test_a_driver_killed_while_it_writes(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    make_log(path, 3000)
    append, left = Catalog.append, [at]

    def dying(self: Catalog, *arguments: Any) -> None:
        append(self, *arguments)
        left[0] -= 1
        if not left[0]:
            raise Killed

    with Log(path, read_only=True) as log:
        with monkeypatch.context() as patch:
            patch.setattr(Catalog, "append", dying)
            with pytest.raises(Killed):
                build_by_ranges(log, log.sidecar / "indexes", QUESTIONS, 1 << 16)
        assert len(files_of(log.sidecar / "indexes")) == at
        build_by_ranges(log, log.sidecar / "indexes", QUESTIONS, 1 << 16)
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "locally", QUESTIONS)
