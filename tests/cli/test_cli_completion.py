"""What shells are told when the Tab key is pressed: by the program, and in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import environment, make_log

import jitdb
from jitdb.cli.commands.completion import fields_of

pytest.importorskip("argcomplete")

# What is typed, and all that may come.
LINES = [
    ("jitdb comp", {"compact", "completion"}),
    ("jitdb import --codec", {"--codec"}),
    ("jitdb query x --format ta", {"table"}),
    ("jitdb count ev", {"events.log", "events.ndjson"}),
    ("jitdb query events.log --fields us", {"user", "user.name"}),
    ("jitdb query events.log --fields level,stat", {"level,status"}),
    ("jitdb query events.log --sort level,-stat", {"level,-status"}),
    ("jitdb query events.ndjson --same user.", {"user.name"}),
    ("jitdb count events.log 'status > 1 and us", {"status > 1 and user", "status > 1 and user.name"}),
    ("jitdb count events.log 'not stat", {f"not status {each}" for each in ("==", "in [", ">", "<", "is absent")}),
    ("jitdb query none.log --fields us", set()),
    ("jitdb count events.log @s", {"@slow", "@services"}),
    ("jitdb count events.log 'level == 1 and not (@b", {"level == 1 and not (@bad"}),
    ("jitdb values events.log level @sl", {"@slow"}),
    ("jitdb save --remove sl", {"slow"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), LINES, ids=[line for line, _ in LINES])
def test_what_may_come(events: Path, settings: Path, line: str, wanted: set[str]) -> None:
    (settings / "jitdb").mkdir()
    (settings / "jitdb" / "questions").write_text("slow = ms > 1\nservices = a == 1\nbad = @slow\n")
    offered = events.parent / "offered"
    asked = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_TYPE": "9", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(offered), "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_SHELL": "fish",
    }  # fmt: skip
    variables = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path), **asked}
    command = [sys.executable, "-m", "jitdb"]
    subprocess.run(command, cwd=events.parent, env=variables, check=True, timeout=120)
    assert {each.strip() for each in offered.read_text().split("\n") if each} == wanted


def test_fields_are_those_of_some_records(events: Path) -> None:
    wanted = ["time", "level", "status", "user", "user.name", "message", "tags", "tags[]"]
    assert fields_of("events.log") == fields_of("events.ndjson") == wanted
    assert fields_of("none.log") == fields_of(str(events.parent)) == []


def test_fields_are_written_as_expressions_have_them(folder: Path) -> None:
    make_log(folder / "a.log", [{"log.level": "x", "items": [{"sku": "a"}, {"other": 1}], "if": {"b c": 1}}])
    wanted = ['["log.level"]', "items", "items[]", "items[].sku", "items[].other", '["if"]', '["if"]["b c"]']
    assert fields_of("a.log") == wanted


def test_the_program_says_that_it_completes() -> None:
    assert b"PYTHON_ARGCOMPLETE_OK" in Path(jitdb.__file__).with_name("__main__.py").read_bytes()[:1024]


def in_shell(shell: str, folder: Path, script: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    program = folder / "bin" / "jitdb"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m jitdb "$@"\n')
    program.chmod(0o755)
    variables = {**environment(), "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(folder)}
    variables["PATH"] = f"{program.parent}:{variables['PATH']}"
    done = subprocess.run(
        [shell, "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bash(events: Path) -> None:
    told = in_shell(
        "bash",
        events.parent,
        """source <(jitdb completion bash)
        COMP_LINE='jitdb query events.log --fields us' COMP_POINT=34 COMP_TYPE=9
        COMP_WORDS=(jitdb query events.log --fields us) COMP_CWORD=4
        _python_argcomplete jitdb us --fields
        printf '%s\\n' "${COMPREPLY[@]}"; complete -p jitdb""",
    )
    assert told.splitlines()[:2] == ["user", "user.name"]
    assert "_python_argcomplete jitdb" in told.splitlines()[2]


def test_fish(events: Path) -> None:
    script = (
        "jitdb completion fish | source; complete -C 'jitdb query events.log --fields us'; complete -C 'jitdb expl'"
    )
    lines = [line.split("\t")[0] for line in in_shell("fish", events.parent, script).splitlines()]
    assert lines == ["user", "user.name", "explain"]


def test_zsh(events: Path) -> None:
    script = "autoload -Uz compinit; compinit -u -D; source <(jitdb completion zsh); print $_comps[jitdb]"
    assert in_shell("zsh", events.parent, script) == "_python_argcomplete\n"


def test_a_shell_that_nobody_knows(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = run("completion")
    assert (done.returncode, done.stdout) == (1, "")
    assert "say one of bash, zsh, fish" in done.stderr
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert run("completion").stdout == run("completion", "bash").stdout


def test_without_argcomplete_it_says_what_to_install(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    done = run("completion", "bash")
    assert done.returncode == 1
    assert "pip install 'jitdb[completion]'" in done.stderr
