"""What the tests of the command line share: a log, and the program as a user runs it."""

from __future__ import annotations

import io
import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import EVENTS, FIXTURE, environment, make_log

from jitdb.cli import main

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's settings, which is not that of who runs the tests."""
    folder = tmp_path_factory.mktemp("settings")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("count", "events.log", …)`: the command line, in this process and in tmp_path: what it said, its code."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with monkeypatch.context() as patched:
            patched.chdir(tmp_path)
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            code = main(arguments)
        said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(arguments, code, *said)

    return call


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """The same as a process of its own: for signals, pipes and what else only a process has."""

    def call(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        settings: dict[str, Any] = {
            "capture_output": True,
            "text": True,
            "cwd": tmp_path,
            "env": environment(),
            "timeout": 120,
        }
        return subprocess.run([sys.executable, "-m", "jitdb", *arguments], **{**settings, **options}, check=False)

    return call


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """events.log of five records and events.ndjson, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.ndjson").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    return make_log(tmp_path / "events.log", EVENTS)


@pytest.fixture
def ssb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fixture of 5,000 records, in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(FIXTURE, tmp_path / "ssb.log")
    return tmp_path / "ssb.log"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(tmp_path: Path):
    """Runs a line in bash, with `jitdb` and `python` on the path; gives exit code and all output."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("jitdb", f"{sys.executable} -m jitdb"), ("python", sys.executable)):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "work"
    folder.mkdir()
    variables = environment()
    variables["PATH"] = f"{programs}:{variables['PATH']}"

    def call(line: str) -> tuple[int, str]:
        outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=variables, **outputs, timeout=120, check=False)
        return done.returncode, done.stdout.decode()

    call.folder = folder  # type: ignore[attr-defined]
    return call


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """`said(records, "query", …)`: what a command that succeeds says besides its answer."""
    monkeypatch.chdir(tmp_path)

    def call(records: list[Any], command: str, *arguments: str) -> str:
        path = tmp_path / "x.log"
        if not path.exists():
            make_log(path, records)
        code = main([command, "x.log", *arguments])
        out, err = capsys.readouterr()
        is_told = command in ("count", "query") and not {"-q", "--quiet"}.isdisjoint(arguments)
        assert code == int(is_told and out in ("", "0\n"))  # as in grep, 1 says that none matches
        return err

    return call
