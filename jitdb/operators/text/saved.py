"""Questions that were saved under names: `@slow` in an expression stands for the one that is called `slow`.

All lie in one file of plain text, which people may write, too: `jitdb/questions` in the user's folder for settings
(XDG_CONFIG_HOME, else ~/.config).

    # what we look at first
    slow = ms > 1000
    bad = @slow and
        level >= "error"

A line that begins with a blank goes on with the one before; `#` begins a comment.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from jitdb.common.spelling import nearest
from jitdb.errors import QueryError, QuestionsDamaged
from jitdb.log.io import osfile

NAME: Final = r"[^\W\d]\w*"
_LINE: Final = re.compile(rf"({NAME})\s*=(?!=)\s*(.*)")
_MOST: Final = 1000  # questions that stand in one, those within others too
_PATIENCE: Final = 5.0  # seconds to wait for another process that saves
_PAUSE: Final = 0.01


def questions_file() -> Path:
    """Where the questions of this user are."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    root = Path(folder) if os.path.isabs(folder) else Path.home() / ".config"
    return root / "jitdb" / "questions"


class _Question(NamedTuple):
    text: str
    lines: range  # in the file


class Book:
    """The questions that are saved now. Raises QuestionsDamaged, and QueryError where the file cannot be read."""

    def __init__(self) -> None:
        self.path = questions_file()
        self._used = 0
        try:
            data = osfile.fs.read_if_there(self.path) or b""
        except OSError as error:
            raise QueryError(f"it cannot be read: {error.strerror or error}", path=self.path) from error
        self._lines: list[str] = []
        self._questions: dict[str, _Question] = {}
        self._read(data)

    def _read(self, data: bytes) -> None:
        at, name = 0, ""
        for number, raw in enumerate(data.splitlines(keepends=True)):
            try:
                line = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise self._damaged(number, at + error.start, "text in UTF-8", repr(raw[error.start :][:20])) from None
            self._lines.append(line)
            found = _LINE.fullmatch(line)
            if line[:1] in (" ", "\t") and line.strip():
                if not name:
                    raise self._damaged(number, at, "NAME = EXPRESSION, which this line goes on with", repr(line[:60]))
                text, lines = self._questions[name]
                self._questions[name] = _Question(f"{text}\n{line.strip()}", range(lines.start, number + 1))
            elif found is not None:
                name = found[1]
                if name in self._questions:
                    first = self._questions[name].lines.start + 1
                    raise self._damaged(number, at, f"another name, as line {first} has this one", repr(name))
                self._questions[name] = _Question(found[2].strip(), range(number, number + 1))
            elif line.strip() and line[0] != "#":
                raise self._damaged(number, at, "NAME = EXPRESSION, or a comment behind #", repr(line[:60]))
            at += len(raw)

    def _damaged(self, line: int, offset: int, expected: str, got: str) -> QuestionsDamaged:
        what = f"line {line + 1} (offset {offset:,}) of the saved questions is none: expected {expected}, got {got}"
        parts = {"offset": offset, "line": line + 1, "expected": expected, "got": got}
        return QuestionsDamaged(what, path=self.path, remedy="mend the line, or remove it: it is plain text", **parts)

    @property
    def texts(self) -> dict[str, str]:
        """The expressions, by their names."""
        return {name: question.text for name, question in self._questions.items()}

    def text_of(self, name: str, within: tuple[str, ...]) -> str:
        """The expression of this name. `within`: the questions that it stands in. Raises QueryError."""
        if name in within:
            way = " uses ".join(f"@{each}" for each in (*within[within.index(name) :], name))
            raise QueryError(f"a question cannot stand in itself: {way}")
        if name not in self._questions:
            raise QueryError(f'{self.lack_of(name)}; a field of this name is written ["@{name}"]')
        self._used += 1
        if self._used > _MOST:
            raise QueryError(f"more than {_MOST:,} saved questions stand in this one")
        return self._questions[name].text

    def lack_of(self, name: str) -> str:
        """What to say where no question has this name."""
        near = nearest(name, self._questions)
        names = ", ".join(f"@{each}" for each in self._questions)
        meant = f" (did you mean @{near}?)" if near else f" (there are: {names})" if names else ""
        return f"no question is saved as @{name}{meant}"

    def users_of(self, name: str) -> list[str]:
        """The questions in which it stands."""
        used = re.compile(rf"@{name}\b")
        return [each for each, question in self._questions.items() if used.search(question.text)]

    def put(self, name: str, text: str) -> None:
        """Put a question in, or in the place of the one with this name."""
        first, *rest = text.splitlines()
        self._replace(name, [f"{name} = {first}", *(f"    {line.strip()}" for line in rest if line.strip())])

    def take(self, name: str) -> None:
        """Take this one out."""
        self._replace(name, [])

    def _replace(self, name: str, lines: list[str]) -> None:
        where = self._questions[name].lines if name in self._questions else range(len(self._lines), len(self._lines))
        self._lines[where.start : where.stop] = lines
        self._lines, made = [], self._lines
        self._questions = {}
        self._read("".join(f"{line}\n" for line in made).encode())

    def write(self) -> None:
        """Write all of it, in one moment. Raises QueryError."""
        path = Path(os.path.realpath(self.path))  # a link to it stays
        try:
            osfile.fs.replace_file(path, "".join(f"{line}\n" for line in self._lines).encode())
        except OSError as error:
            raise _unwritable(error, self.path) from error


def _unwritable(error: OSError, path: Path) -> QueryError:
    return QueryError(
        f"no question can be saved here: {error.strerror or error}",
        path=path,
        remedy="set XDG_CONFIG_HOME to a folder that you may write, for all commands that use saved questions",
    )


@contextmanager
def writing() -> Iterator[Book]:
    """Within, no other process saves questions. Raises QueryError."""
    folder, late = questions_file().parent, time.monotonic() + _PATIENCE
    with ExitStack() as held:
        try:
            os.makedirs(folder, exist_ok=True)
            lock = held.enter_context(osfile.Descriptor(osfile.fs, folder, os.O_RDONLY | os.O_DIRECTORY))
        except OSError as error:
            raise _unwritable(error, folder) from error
        while not osfile.fs.lock(lock):
            if time.monotonic() > late:
                raise QueryError("another process saves questions", path=folder, remedy="try again")
            time.sleep(_PAUSE)
        yield Book()
