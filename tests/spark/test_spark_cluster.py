"""Killed workers, second attempts, killed drivers: the files are the local engine's all the same, or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import QUESTIONS, make_log
from range_cases import build_by_ranges, files_of, merged_files

from jitdb import Log
from jitdb.engine.catalog.catalog import Catalog


@pytest.fixture(scope="module")
def scenarios(programs: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in programs["cluster_script.py"].printed() if line.startswith("{")]
    return {row["scenario"]: row for row in rows}


@pytest.mark.parametrize("name", ["killed", "a second attempt"])
def test_the_same_bytes_on_two_workers(scenarios: dict[str, dict[str, Any]], name: str) -> None:
    assert scenarios[name]["same"]


def test_a_slow_task_was_tried_twice(scenarios: dict[str, dict[str, Any]]) -> None:
    assert scenarios["a second attempt"]["twice"] >= 1
    assert scenarios["a second attempt"]["seconds"] < 300  # the loser sleeps for so long


@pytest.mark.parametrize("name", ["read twice", "written twice"])
def test_second_attempts(scenarios: dict[str, dict[str, Any]], name: str) -> None:
    assert scenarios[name]["same"]
    assert scenarios[name]["won"] >= 2  # of two jobs


def test_the_pipeline_of_the_examples(scenarios: dict[str, dict[str, Any]]) -> None:
    found = scenarios["pipeline"]
    assert found["differences"] == []
    assert found["same"]
    assert found["killed"]
    assert found["failures"] == 1


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
