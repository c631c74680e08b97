"""The `console` blocks of a page of documentation, run as a reader would; `…` stands for anything."""

from __future__ import annotations

import io
import re
import shlex
import sys

import pytest

from jitdb.cli import main


def examples_of(page: str) -> list[tuple[str, list[str]]]:
    """The commands of a page, and the lines that each shows."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S):
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


def shows_what_happens(page: str, shell, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run what the page runs, in this folder, and compare; gives how many commands these were."""
    examples = examples_of(page)
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
    return len(examples)
