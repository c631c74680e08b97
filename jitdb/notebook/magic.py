"""`%jitdb` and `%%jitdb`: from the words of a line, and the expression of a cell, to an answer."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.commands import COMMANDS, find_command
from jitdb.cli.expressions import read_question
from jitdb.cli.failures import Diagnostic, Failure, UsageError, warnings_on_one_line
from jitdb.cli.opening import asked, is_pattern
from jitdb.cli.options import OPTIONS, READING
from jitdb.cli.parser import Command
from jitdb.common.paths import format_path
from jitdb.common.spelling import nearest
from jitdb.display.terminal import terminals_guarded, visible
from jitdb.errors import JitdbError
from jitdb.notebook.variables import Names, database_named, databases, in_expression, in_word

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

#: The commands that a notebook has.
ASKING: Final = (
    "query", "count", "values", "timeline", "stats", "histogram", "patterns", "fields", "facets", "diff", "explain",
)  # fmt: skip

_OPEN: Final = Command(
    "open",
    lambda _: 0,
    "LOG [as NAME] [options]",
    "Open a log, a folder of logs or a pattern, read-only, as a variable.",
    [("open events.ndjson as events", "then: %%jitdb events")],
    ("log", "more_logs", *READING),
)

_USAGE: Final = """\
%jitdb open LOG [as NAME]                    open a log, a folder or a pattern, as a variable (db)
%%jitdb [COMMAND] [NAME or LOG] [options]    ask it; the expression is the cell
%jitdb [COMMAND] [NAME or LOG] ['EXPR'] [options]
%jitdb close [NAME]

COMMAND: query (when left out), count, values FIELD, timeline, stats FIELD, histogram FIELD, patterns, fields,
         facets, diff, explain
rows << …                                    keep the answer instead of showing it
{variable}, $variable                        a value of Python's, in expressions and options
%jitdb help COMMAND, %jitdb help expressions
"""

_KEPT: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*<<(?:\s+|$)")
_KEPT_BEHIND: Final = re.compile(r"(?:^|\s)([A-Za-z_]\w*)\s*<<\s*$")
NO_LOG: Final = "\0"  # no file is called so


class Magic:
    """The magics of one IPython shell, and the logs that they opened."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._open: dict[str, ExitStack] = {}  # by variable
        self.current = ""  # the variable of the one that was opened last

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """Ask a log, in the words of the command line.

        Raises MagicFailed, which IPython shows without a traceback.
        """
        with told_shortly("--quiet" in line.split() or "-q" in line.split()):
            first, _, rest = line.strip().partition(" ")
            if first == "open":
                return self._opened(rest)
            if first == "close":
                return self.close(rest.strip() or self.current)
            if first in ("help", "--help", "-h") or not (first or (cell or "").strip()):
                return _help(rest.split())
            try:
                return self._answered(read(line, cell, self._shell.user_ns, self._current()))
            except SystemExit:  # argparse ends so after --help
                return None

    def _answered(self, question: Asked) -> Any:
        with asked(question.options) as db:
            if question.options.db is not None:
                db.refresh()
            found = _answer(db, question.options, bool(question.keep))
        if not question.keep:
            return found
        self._shell.user_ns[question.keep] = found
        return None

    def _current(self) -> str:
        """The database for lines that name none: the one opened last, or the only one."""
        known = databases(self._shell.user_ns)
        return self.current if self.current in known else known[0] if len(known) == 1 else ""

    def _opened(self, line: str) -> AnyDatabase:
        words = [in_word(word, self._shell.user_ns) for word in split(line)]
        name = "db"
        if "as" in words[1:]:
            place = words.index("as", 1)
            if place + 1 == len(words) or not words[place + 1].isidentifier():
                raise UsageError(
                    "open: the name of a variable is missing behind `as`", f"usage: %jitdb {_OPEN.parser.usage}"
                )
            name = words[place + 1]
            del words[place : place + 2]
        options: Namespace = _OPEN.parser.read(words)
        with ExitStack() as opening:
            db = opening.enter_context(asked(options))
            self.close(name)
            self._open[name] = opening.pop_all()
        self._shell.user_ns[name] = db
        self.current = name
        return db

    def close(self, name: str = "") -> None:
        """Close the log that was opened as this variable, or all."""
        for each in [name] if name else list(self._open):
            opened = self._open.pop(each, None)
            if opened is not None:
                opened.close()
                self._shell.user_ns.pop(each, None)
        self.current = "" if not name or name == self.current else self.current


def _answer(db: AnyDatabase, options: Namespace, is_kept: bool) -> Any:
    """The answer of the command; all of it if it is kept, unless --limit says otherwise.

    Raises UsageError, Failure, JitdbError.
    """
    if options.command != "query" and getattr(options, "format", "table") != "table":
        raise UsageError(
            f"{options.command}: --format is for a shell; here the answer is a value", "keep it: name << …"
        )
    command = find_command(options.command)
    options.is_kept = is_kept
    if options.command != "query":
        options.format = "" if is_kept else "table"  # which has few rows, unless --limit says how many
    read_question(options, command.takes_field(options))
    assert command.answer is not None  # as of all that ASKING names
    return command.answer(db, options, lambda _: None)  # the cell shows it


def _help(topics: list[str]) -> None:
    from jitdb.cli.help import show_help

    if topics:
        show_help(topics)
    else:
        print(_USAGE, end="")


# --- the words of a line ---------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What a line, and the cell below it, ask.

    keep:    the variable that gets the answer; empty: it is shown
    options: as of the command line; `db` is the open database, or None if `log` is to be opened
    """

    keep: str
    options: Namespace


def kept(line: str, cell: str | None) -> tuple[str, str, str | None]:
    """The variable of `name << …`, and what is left of the line and of the cell.

    >>> kept("rows << db --limit 5", "level == 1"), kept("db rows <<", "level == 1"), kept("db", "rows << level == 1")
    (('rows', 'db --limit 5', 'level == 1'), ('rows', 'db', 'level == 1'), ('rows', 'db', 'level == 1'))
    """
    if found := _KEPT.match(line):
        return found[1], line[found.end() :], cell
    if cell is not None and (found := _KEPT_BEHIND.search(line)):
        return found[1], line[: found.start()], cell
    if cell is not None and (found := _KEPT.match(cell)):
        return found[1], line, cell[found.end() :]
    return "", line, cell


def split(line: str) -> list[str]:
    """The words, as a shell has them. Raises UsageError."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"the line is not complete: {error}", "put expressions between single quotes") from None


def read(line: str, cell: str | None, names: Names, current: str) -> Asked:
    """Parse them. `current` is the variable of the database opened last. Raises UsageError, QueryError."""
    keep, line, cell = kept(line, cell)
    words = [in_word(word, names) for word in split(line)]
    command = words.pop(0) if words and words[0] in ASKING else "query"
    if words and words[0] in COMMANDS and command == "query" and not _is_place(words[0], names):
        raise UsageError(f"`jitdb {words[0]}` is for a shell", f"!jitdb {line.strip()}")
    if cell is not None and cell.strip():
        words.append(in_expression(cell.strip(), names))
    options = find_command(command).parser.read([NO_LOG, *words])
    options.db = _choose_log(options, names, current, has_cell=bool(cell and cell.strip()))
    return Asked(keep, options)


def _choose_log(options: Namespace, names: Names, current: str, has_cell: bool) -> AnyDatabase | None:
    """Take the log from the operands, a variable or a path; else the current one."""
    operands: list[str] = options.expressions if "expressions" in options else options.more_logs
    is_one_more = has_cell and len(operands) > 1 + find_command(options.command).takes_field(options)
    if operands and (_is_place(operands[0], names) or is_one_more or not current):
        options.log = operands.pop(0)
    elif current:
        options.log = current
    else:
        known = ", ".join(databases(names))
        hint = f"there are: {known}" if known else "%jitdb open LOG as db"
        raise UsageError(f"{options.command}: the log is missing", hint)
    if "more_logs" not in options:
        options.more_logs = []
    db = database_named(options.log, names)
    if db is None:
        _check_place(options.log, names)
    else:
        _refuse_opening(options)
        options.timestamp = list(map(format_path, db.declared_time))  # so that no note names it
    return db


def _is_place(word: str, names: Names) -> bool:
    return database_named(word, names) is not None or os.path.exists(word) or (is_pattern(word) and "/" in word)


def _check_place(word: str, names: Names) -> None:
    """Raises Failure if it is neither a file nor a variable, and a similar name is."""
    if os.path.exists(word) or is_pattern(word) or os.sep in word:
        return
    if word in names:
        kind = type(names[word]).__name__
        raise Failure(f"the variable {word} is of type {kind}, not an open database", f"a path stands so: {{{word}}}")
    meant = nearest(word, [*databases(names), *ASKING])
    if meant:
        raise Failure(f"{word}: there is neither such a file nor such a variable; did you mean {meant}?")


def _refuse_opening(options: Namespace) -> None:
    """Raises UsageError for options about how a log is opened: this one is open."""
    given = vars(options)
    for name in READING:
        if given.get(name):
            flag = OPTIONS[name].flags[0]
            raise UsageError(
                f"{flag} says how a log is opened, and {options.log} is open",
                f"%jitdb open LOG as {options.log} {flag} …",
            )


# --- errors ----------------------------------------------------------------------------------------------------------


_TOLD = (JitdbError, Failure, OSError, MemoryError, ImportError)


class MagicFailed(Exception):
    """What IPython shows of an error, which is its cause: the message and what to do."""

    def __init__(self, told: Diagnostic) -> None:
        super().__init__("\n".join((told.message, *(f"  {hint}" for hint in told.hints))))

    def _render_traceback_(self) -> list[str]:  # IPython looks for this method
        return [visible(f"jitdb: {self}")]


class MagicInterrupted(MagicFailed, KeyboardInterrupt):
    """The same for a cell that was stopped."""


@contextmanager
def told_shortly(quiet: bool = False) -> Iterator[None]:
    """Within this, errors that a user can cause become MagicFailed; notes and warnings are lines below the cell."""
    try:
        with terminals_guarded(), redirect_stderr(sys.stdout), warnings_on_one_line(quiet):
            yield
    except KeyboardInterrupt as interrupt:
        raise MagicInterrupted(Diagnostic.of(interrupt)) from interrupt
    except _TOLD as error:
        raise MagicFailed(Diagnostic.of(error)) from error
