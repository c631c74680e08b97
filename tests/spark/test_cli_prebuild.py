"""`jitdb prebuild`, in a process of its own."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import make_log
from range_cases import files_of

from jitdb import JITDB, Log
from jitdb.cli import main
from jitdb.cli.commands import find_command
from jitdb.operators import equal
from jitdb.spark_ext import sessions


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands get the session of all tests, and do not stop it."""

    class Shared:
        sparkContext = spark.sparkContext  # noqa: N815

        def stop(self) -> None:
            pass

    monkeypatch.setattr(sessions, "session", lambda master, **conf: Shared())


EXAMPLES = re.findall(r"^  (jitdb .*)$", find_command("prebuild").parser.format_help(), re.M)


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
