"""Every example of docs/command-line.md and of --help is run; the page's outputs are compared."""

from __future__ import annotations

import gzip
import io
import json
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import EVENTS, ROOT, environment, make_log

from jitdb.cli import main
from jitdb.cli.commands import COMMANDS, module_of
from jitdb.stores.hyperdb import HyperDB

PAGE = (ROOT / "docs" / "command-line.md").read_text()


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


def examples_of_the_page() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.rstrip())
    return found


_SHELL = set("|<>&;")  # ends of words that only a shell understands


def here(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """As a shell would run it, without a process, which takes longer than what it does."""
    with io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) as both, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", both)
        patched.setattr(sys, "stderr", both)
        code = main(arguments)
        return code, both.buffer.getvalue().decode()  # type: ignore[attr-defined]


def tidy(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.splitlines()]
    return [line for line in lines if line]


def test_the_page_shows_what_happens(shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "events.ndjson").write_text(re.search(r"```json\n(.*?)```", PAGE, re.S)[1])  # type: ignore[index]
    examples = examples_of_the_page()
    assert len(examples) > 20
    monkeypatch.chdir(shell.folder)
    for command, expected in examples:
        words = shlex.split(command)
        plain = words[0] == "jitdb" and words[1] != "tail" and not _SHELL & {word[-1] for word in words[2:]}
        _, output = here(words[1:], monkeypatch) if plain else shell(command)
        wanted, got = [line for line in expected if line], tidy(output)
        assert len(wanted) == len(got), f"$ {command}\n{output}"
        for pattern, line in zip(wanted, got, strict=True):
            assert re.fullmatch(re.escape(pattern).replace("…", ".*"), line), (
                f"$ {command}\n{line!r} is not {pattern!r}"
            )


def test_the_page_names_every_command_and_option() -> None:
    for name in COMMANDS:
        assert f"`jitdb {name}" in PAGE
        for action in module_of(name).PARSER._actions:
            for option in action.option_strings:
                if option.startswith("--") and option not in ("--help", "--json", "--keep", "--runs"):
                    assert option in PAGE, f"{option} of {name}"


def help_examples() -> list[tuple[str, str]]:
    found = []
    for name in COMMANDS:
        text = module_of(name).PARSER.format_help()
        lines = re.findall(r"^  (jitdb .*)$", text, re.M)
        assert 2 <= len(lines) <= 4, name
        if name != "prebuild":  # with Spark: tests/spark/test_cli_prebuild.py
            found += [(name, line) for line in lines]
    return found


@pytest.mark.parametrize(("name", "line"), help_examples(), ids=[line[:60] for _, line in help_examples()])
def test_the_examples_of_help_run(shell, name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = shell.folder
    text = "".join(json.dumps(event) + "\n" for event in EVENTS)
    (folder / "people.csv").write_text("name,age\nada,36\n")
    for file in ("events.ndjson", "new.ndjson"):
        (folder / file).write_text(text)
    for file in ("2023.ndjson.gz", "2024.ndjson.gz"):
        (folder / file).write_bytes(gzip.compress(text.encode()))
    if name != "import" or "--append" in line:
        make_log(folder / "events.log", EVENTS)
    if "'logs/" in line or " logs" in line:
        (folder / "logs").mkdir()
        make_log(folder / "logs" / "a.log", EVENTS)
    if name == "hyperdb":
        with HyperDB(folder / "notes", create=True) as db:
            db.put("life/cat", b"meow")
    words = shlex.split(line)
    if {"|", "<", ">", "&"} & set(words):
        code, output = shell(f"set -o pipefail; {line}")
        assert code == 0, output
    else:  # starting a process takes longer than what it does
        monkeypatch.chdir(folder)
        assert main(words[1:]) == 0


def test_the_overview_names_every_command(shell) -> None:
    code, output = shell("jitdb")
    assert code == 0
    for name, summary in COMMANDS.items():
        assert f"  {name} " in output
        assert summary in output
