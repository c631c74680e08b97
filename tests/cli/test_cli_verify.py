"""`jitdb verify` and `jitdb repair`: what they say, and their exit codes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import EVENTS, make_log, records_of

import jitdb
from jitdb.operators import equal


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = make_log(tmp_path / "events.log", EVENTS * 200, block_size=4096)
    with jitdb.open(path, read_only=True) as db:
        db.prepare(equal("level", "error"))
    return path


@pytest.fixture
def run(run) -> Callable[..., tuple[int, str, str]]:
    """The command line in this process: its code, and what it said."""

    def call(*arguments: object) -> tuple[int, str, str]:
        done = run(*map(str, arguments))
        return done.returncode, done.stdout, done.stderr

    return call


def harm(path: Path, at: int, data: bytes) -> None:
    """Other bytes, though the file's time does not tell."""
    stamp = path.stat().st_mtime_ns
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(stamp, stamp))


def test_a_sound_log(run, log: Path) -> None:
    code, out, err = run("verify", log)
    assert (code, err) == (0, "")
    assert "events.log: sound; 1,000 records" in out
    assert out.count("sound (content checked)") == 4


def test_a_damaged_block(run, log: Path) -> None:
    harm(log, 4096, b"\xff\xff\xff\xff\xff\xff")
    code, out, _ = run("verify", log)
    assert code == 1
    assert "events.log, byte 4,096: block 1 is damaged: its CRC is" in out
    before = log.read_bytes()
    code, out, _ = run("repair", log, "--dry-run")
    assert (code, log.read_bytes()) == (0, before)
    assert "repair keeps" in out
    code, out, _ = run("repair", log, "--quiet")
    assert code == 0
    assert "block 1: " in out
    assert "the log counts as a new one" in out
    assert run("verify", log)[0] == 0
    assert len(records_of(log)) > 980


def test_a_damaged_index(run, log: Path) -> None:
    file = next((log.parent / "events.log.jitdb" / "indexes").glob("level.*"))
    file.write_bytes(file.read_bytes()[:-3] + b"abc")
    code, out, _ = run("verify", log)
    assert code == 1
    assert f"{file.name}: damaged" in out
    assert run("verify", log, "--indexes", "none")[0] == 0
    code, out, _ = run("repair", log, "--quiet")
    assert code == 0
    assert f"index {file.name} (damaged): dropped" in out
    assert "sound (content checked)" in run("verify", log)[1]
    assert run("count", log, 'level == "error"')[1] == "400\n"


def test_a_sample(run, log: Path) -> None:
    code, out, _ = run("verify", log, "--sample", "10%")
    assert code == 0
    assert "with 95 % confidence fewer than" in out
    assert out.count("sound (sample checked)") == 4


def test_json(run, log: Path) -> None:
    harm(log, 4096 + 77, b"\xff\xff")
    code, out, _ = run("verify", log, "--json")
    assert code == 1
    found = json.loads(out)
    assert found["ok"] is False
    assert found["log"]["findings"][0]["block"] == 1
    code, out, _ = run("repair", log, "--json", "--quiet")
    assert (code, json.loads(out)["new_identity"]) == (0, True)


@pytest.mark.parametrize("sample", ["0", "101%", "1.5", "some", "-5"])
def test_samples_that_mean_nothing(run, log: Path, sample: str) -> None:
    code, _, err = run("verify", log, f"--sample={sample}")
    assert code == 2
    assert "a part of the records" in err


def test_a_log_that_is_written_to(run, process, log: Path) -> None:
    with jitdb.open(log) as db:
        assert db.count() == 1000
        assert run("verify", log)[0] == 0
        done = process("repair", log)
        assert done.returncode == 1
        assert str(os.getpid()) in done.stderr


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_no_log(run, tmp_path: Path, command: str) -> None:
    code, _, err = run(command, tmp_path / "none.log")
    assert code == 1
    assert "there is no such file" in err


@pytest.mark.parametrize("question", [[], ["time > 0"]], ids=["all", "matches"])
def test_export_of_a_damaged_log_says_so(run, log: Path, question: list[str]) -> None:
    harm(log, 4096 + 50, b"\xff\xff\xff")
    code, out, err = run("export", log, *question)
    assert code == 1
    assert "block 1 (offsets 4,096 to 8,192) is damaged" in err
    assert "--skip-bad" in err
    with jitdb.Log(log, read_only=True) as reader:
        wanted = [row.offset for row in reader.stream(raw=True) if row.offset // 4096 != 1]
    code, out, err = run("export", log, *question, "--skip-bad", "--quiet")
    assert (code, len(out.splitlines())) == (1, len(wanted))
    assert "the records of 1 damaged block are left out" in err
    run("repair", log)
    assert run("export", log, *question)[0] == 0
