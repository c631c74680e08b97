"""Every example of docs/command-line.md and of --help is run; the page's outputs are compared."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from cli_helpers import EVENTS, ROOT, make_log
from page_examples import shows_what_happens

from jitdb.cli import main
from jitdb.cli.commands import COMMANDS, WANTED, find_command
from jitdb.cli.commands.demo_log import demo_lines
from jitdb.stores.hyperdb import HyperDB

PAGE = (ROOT / "docs" / "command-line.md").read_text()


def test_the_page_shows_what_happens(shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "events.ndjson").write_text(re.search(r"```json\n(.*?)```", PAGE, re.S)[1])  # type: ignore[index]
    monkeypatch.chdir(shell.folder)
    assert shows_what_happens(PAGE, shell, monkeypatch) > 20


def test_the_page_on_exploring_shows_what_happens(shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.folder / "demo").mkdir()
    (shell.folder / "demo" / "shop.ndjson").write_text("".join(demo_lines()))
    monkeypatch.chdir(shell.folder)
    assert shows_what_happens((ROOT / "docs" / "exploring.md").read_text(), shell, monkeypatch) >= 2


def test_the_page_names_every_command_and_option() -> None:
    for name in COMMANDS:
        assert f"`jitdb {name}" in PAGE
        for option in find_command(name).parser.long_options():
            if option not in ("--help", "--json", "--keep", "--runs"):
                assert option in PAGE, f"{option} of {name}"


def help_examples() -> list[tuple[str, str]]:
    found = []
    for name in COMMANDS:
        text = find_command(name).parser.format_help()
        lines = re.findall(r"^  (jitdb .*)$", text, re.M)
        assert 2 <= len(lines) <= 4, name
        if name not in ("prebuild", "explore", "mcp"):  # tests of spark, explorer and assistant
            found += [(name, line) for line in lines]
    return found


@pytest.mark.parametrize(("name", "line"), help_examples(), ids=[line[:60] for _, line in help_examples()])
def test_the_examples_of_help_run(shell, name: str, line: str, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = shell.folder
    (settings / "jitdb").mkdir()
    (settings / "jitdb" / "questions").write_text("slow = ms > 500\n")
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
    assert len(output.splitlines()) <= 24, "a screen"
    assert max(map(len, output.splitlines())) <= 100
    for name, summary in COMMANDS.items():
        assert re.search(rf" {name}\b", output)
        assert (f" {name:10}{summary}\n" in output) == bool(WANTED[name])


def test_the_page_and_the_overview_have_one_order() -> None:
    assert re.findall(r"^\|[a-z ]*\| `jitdb (\w+)", PAGE, re.M) == list(COMMANDS)
