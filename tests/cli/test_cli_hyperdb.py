"""`jitdb hyperdb`, and what is typed wrong."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jitdb.cli import main
from jitdb.stores.hyperdb import HyperDB


@pytest.fixture
def told(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., tuple[int, str, str]]:
    """`told("get", …)`: the exit code, and what is written to both."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["hyperdb", *arguments])
        said = capfdbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return call


def test_there_and_back(
    tmp_path: Path, told: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "db")
    assert told("put", folder, "/life/cat", "meow") == (0, "", "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n")))
    assert told("put", folder, "life/dog")[0] == 0
    assert told("get", folder, "life/cat") == (0, "meow\n", "")
    assert told("list", folder, "life")[1].splitlines() == ["life/cat", "life/dog"]
    version = json.loads(told("info", folder, "--json")[1])["version"]
    assert told("delete", folder, "life/cat") == (0, "", "")
    assert told("get", folder, "life/cat") == (1, "", "")
    assert told("get", folder, "life/cat", "--version", version) == (0, "meow\n", "")
    assert [line.split()[1:3] for line in told("history", folder)[1].splitlines()] == [
        ["1", "put"], ["2", "put"], ["3", "delete"],
    ]  # fmt: skip
    assert told("put", folder, "two\nlines\x1b[2J", "x\ny")[0] == 0
    assert told("list", folder, "two\nlines\x1b[2J")[1] == "two\\nlines\\x1b[2J\n"
    assert told("history", folder)[1].splitlines()[-1].endswith(" 4 put two\\nlines\\x1b[2J x\\ny")
    with HyperDB(folder, read_only=True) as db:
        assert db["life/dog"] == b"\xff\n"


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [
        (2, ["gte", "DB", "x"], "'gte' is none of put, get, delete, list, history, info; did you mean get?"),
        (2, ["get", "DB"], "get needs a key"),
        (2, ["put", "DB", "a", "b", "c"], "too many operands: c"),
        (2, ["list", "DB", "a", "b"], "list takes no value"),
        (2, ["info", "DB", "a"], "info takes no key"),
        (2, ["put", "DB", "a", "b", "--version", "00"], "cannot be written to"),
        (1, ["get", "nowhere", "a"], "`jitdb hyperdb put` makes one"),
        (1, ["get", "DB", "a", "--version", "zz"], "is no version"),
        (1, ["get", "DB", "a", "--version", "ab" * 32 + "01"], "which is not here"),
        (1, ["put", "DB", "\udcff", "b"], "is not Unicode text"),
    ],
)
def test_what_is_typed_wrong(
    code: int, arguments: list[str], said: str, tmp_path: Path, told: Callable[..., tuple[int, str, str]]
) -> None:
    with HyperDB(tmp_path / "db", create=True) as db:
        db.put("a", b"1")
    found, out, error = told(*(str(tmp_path / "db") if each == "DB" else each for each in arguments))
    assert (found, out) == (code, "")
    assert error.startswith("jitdb: ")
    assert said in error
    assert not Path("nowhere").exists()


def test_who_has_it_open_is_named_and_readers_read(tmp_path: Path, told: Callable[..., tuple[int, str, str]]) -> None:
    with HyperDB(tmp_path / "db", create=True) as db:
        db.put("a", b"1")
        db.flush()
        assert told("get", str(tmp_path / "db"), "a") == (0, "1\n", "")
        code, _, error = told("put", str(tmp_path / "db"), "a", "2")
        assert code == 1
        assert "has it open for writing" in error


def test_nothing_is_open_while_it_waits_for_a_value(
    tmp_path: Path, told: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert not (tmp_path / "db").exists()
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Interrupted()))
    assert told("put", str(tmp_path / "db"), "a")[0] == 130
    assert not (tmp_path / "db").exists()
