"""`jitdb save`, and `@NAME` in the questions of all commands."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_helpers import EVENTS, environment

from jitdb.operators.text.saved import Book


def file_of(settings: Path) -> Path:
    return settings / "jitdb" / "questions"


def test_what_is_saved_stands_in_any_question(run, events: Path, settings: Path) -> None:
    assert run("save").stdout == "no question is saved: jitdb save NAME 'EXPR'\n"
    told = run("save", "bad", "status >= 500")
    assert (told.returncode, told.stdout) == (0, f"@bad is saved in {file_of(settings)}\n")
    assert run("save", "@ada", '@bad and user.name == "ada"', "--quiet").stdout == ""
    assert run("save").stdout == '@bad  status >= 500\n@ada  @bad and user.name == "ada"\n'
    assert run("save", "bad").stdout == "status >= 500\n"
    assert file_of(settings).read_text() == 'bad = status >= 500\nada = @bad and user.name == "ada"\n'
    bad = [event for event in EVENTS if event["status"] >= 500]
    ada = [event for event in bad if event.get("user", {}).get("name") == "ada"]
    for asked, wanted in (("@bad", bad), ("@ada", ada), ("@bad and not @ada", [x for x in bad if x not in ada])):
        assert run("count", "events.log", asked, "--quiet").stdout == f"{len(wanted)}\n"
        assert len(run("query", "events.ndjson", asked, "--quiet").stdout.splitlines()) == len(wanted)
        assert len(run("export", "events.log", asked, "--quiet").stdout.splitlines()) == len(wanted)
    assert run("values", "events.log", "status", "@bad").returncode == 0
    assert run("save", "bad", "status >= 400", "-q").returncode == 0
    assert run("count", "events.log", "@ada", "--quiet").stdout == "1\n"
    assert run("count", "events.log", "@bad", "--quiet").stdout == "3\n"
    told = run("save", "--remove", "bad")
    assert told.stderr == "jitdb: @ada asked for it, and cannot be asked any more\n"
    assert told.stdout == f"@bad is removed from {file_of(settings)}\n"
    assert file_of(settings).read_text() == 'ada = @bad and user.name == "ada"\n'
    told = run("count", "events.log", "@ada")
    assert told.returncode == 2
    assert "no question is saved as @bad (did you mean @ada?)" in told.stderr
    assert f"in @ada, which is saved in {file_of(settings)}" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("save", "x", "a = 1"), "equality is written `==`, not `=`"),
        (("save", "x", "@x and a == 1"), "no question is saved as @x"),
        (("save", "x", ""), "the expression is empty"),
        (("save", "status >= 500"), "a name has letters, digits and _, and begins with a letter, not 'status >= 500'"),
        (("save", "1x", "a == 1"), "a name has letters"),
        (("save", "--remove"), "--remove takes a name"),
        (("save", "--remove", "x", "a == 1"), "--remove takes a name"),
        (("save", "--remove", "x"), "no question is saved as @x"),
        (("save", "x"), "no question is saved as @x"),
        (("save", "x", 'a == """b\n  c"""'), "text in quotes has a newline in it"),
        (("count", "events.log", "@x"), "no question is saved as @x; a field of this name is written"),
        (("sav", "x"), "did you mean `jitdb save`"),
    ],
)
def test_mistakes_are_said_and_save_nothing(run, events: Path, settings: Path, arguments: tuple[str, ...], said: str):
    told = run(*arguments)
    assert said in told.stderr
    assert told.returncode in (1, 2)
    assert not file_of(settings).exists()


def test_a_file_that_a_person_wrote_stays_as_it_is(run, events: Path, settings: Path) -> None:
    file_of(settings).parent.mkdir()
    mine = '# mine\n\nbad =   status >= 500  # the worst\n\tor level == "fatal"\n\n# last\nlast = level == "info"\n'
    file_of(settings).write_text(mine)
    assert run("count", "events.log", "@bad", "-q").stdout == "2\n"
    assert run("save", "new", 'level\n  == "info"', "-q").returncode == 0
    assert file_of(settings).read_text() == mine + 'new = level\n    == "info"\n'
    assert run("count", "events.log", "@new", "-q").stdout == run("count", "events.log", "@last", "-q").stdout == "3\n"
    assert run("save", "bad", "status == 500", "-q").returncode == 0
    assert file_of(settings).read_text().startswith("# mine\n\nbad = status == 500\n\n# last\n")
    for name in ("bad", "new", "last"):
        assert run("save", "--remove", name, "-q").returncode == 0
    assert file_of(settings).read_text() == "# mine\n\n\n# last\n"


def test_a_link_to_the_file_stays_a_link(run, folder: Path, settings: Path) -> None:
    file_of(settings).parent.mkdir()
    (folder / "dotfiles").write_text("a = b == 1\n")
    file_of(settings).symlink_to(folder / "dotfiles")
    assert run("save", "c", "@a").returncode == 0
    assert file_of(settings).is_symlink()
    assert (folder / "dotfiles").read_text() == "a = b == 1\nc = @a\n"


def test_a_folder_that_cannot_be_written_is_named(run, folder: Path, settings: Path) -> None:
    (settings / "jitdb").write_text("a file")
    told = run("save", "a", "b == 1")
    assert told.returncode == 2
    assert told.stderr == (
        f"jitdb: {settings / 'jitdb'}: no question can be saved here: File exists\n"
        "  set XDG_CONFIG_HOME to a folder that you may write, for all commands that use saved questions\n"
    )


def test_many_processes_that_save_lose_nothing(folder: Path, settings: Path) -> None:
    command = [sys.executable, "-m", "jitdb", "save", "--quiet"]
    running = [subprocess.Popen([*command, f"n{number}", f"n == {number}"], env=environment()) for number in range(6)]
    seen: list[int] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.append(len(Book().texts))  # raises where half of it is there

    reader = threading.Thread(target=read)
    reader.start()
    assert [process.wait(60) for process in running] == [0] * 6
    ended.set()
    reader.join()
    assert Book().texts == {f"n{number}": f"n == {number}" for number in range(6)}
    assert seen == sorted(seen)
    assert os.listdir(settings / "jitdb") == ["questions"]
