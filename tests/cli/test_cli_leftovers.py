"""What files that are there no more have left beside them is told, and given back with --drop-all; nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_helpers import make_log

from jitdb.cli import main


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder of two files that were asked, one of which is gone, and of what looks like it."""
    monkeypatch.chdir(tmp_path)
    logs = Path("logs")
    (logs / "deep").mkdir(parents=True)
    for name in ("a.ndjson", "deep/b.ndjson"):
        (logs / name).write_text('{"n": 1}\n')
        assert main(["count", str(logs / name), "n == 1"]) == 0
    (logs / "deep" / "b.ndjson").unlink()
    make_log(logs / "own.log", [{"n": 1}])
    (logs / "own.log").rename("own.log")  # whose sidecar says what was deleted, and more
    kept = logs / "kept.ndjson.jitdb"
    (kept / "indexes").mkdir(parents=True)
    (kept / "lines").write_bytes(b"x")
    (kept / "sets").mkdir()
    (logs / "notes.jitdb").mkdir()
    capsys.readouterr()
    return logs


def sidecars(logs: Path) -> set[str]:
    return {path.name for path in logs.rglob("*.jitdb")}


ALL = {"a.ndjson.jitdb", "b.ndjson.jitdb", "own.log.jitdb", "kept.ndjson.jitdb", "notes.jitdb"}
TOLD = "indexes of 1 file that is there no more: "


@pytest.mark.parametrize("where", ["logs", "logs/deep", "logs/deep/b.ndjson", "logs/**/*.ndjson"])
def test_they_are_told_and_given_back(logs: Path, capsys: pytest.CaptureFixture[str], where: str) -> None:
    assert sidecars(logs) == ALL
    assert main(["indexes", where]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith(TOLD)
    assert told.endswith(", which --drop-all gives back")
    assert sidecars(logs) == ALL
    assert main(["indexes", where, "--drop-all"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == told.replace("which --drop-all gives back", "given back")
    assert sidecars(logs) == ALL - {"b.ndjson.jitdb"}
    assert main(["indexes", "logs"]) == 0
    assert "no more" not in capsys.readouterr().out
    assert main(["count", "logs/a.ndjson", "n == 1"]) == 0


def test_what_programs_read_is_as_it_was(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indexes", "logs", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["logs/a.ndjson"]
    assert main(["indexes", "logs", "--drop-all", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert sidecars(logs) == ALL - {"b.ndjson.jitdb"}


def test_a_file_that_never_was(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("logs/c.ndjson", "logs/kept.ndjson", "logs/own.log"):
        assert main(["indexes", name]) == 1
        assert "no such file" in capsys.readouterr().err
