"""The words of a line, and the cell below it: what is kept by which name, which command, which log, which options."""

from __future__ import annotations

import os
import re
import shlex
from argparse import Namespace
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.cli.commands import COMMANDS
from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.opening import is_pattern
from jitdb.cli.options import FORMAT, LINES, OPTIONS, READING
from jitdb.cli.parser import Program
from jitdb.common.paths import format_path
from jitdb.common.spelling import nearest
from jitdb.notebook.answers import ANSWERS, OF_A_FIELD
from jitdb.notebook.variables import Names, database_named, databases, in_expression, in_word

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

_KEPT: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*<<(?:\s+|$)")
_KEPT_BEHIND: Final = re.compile(r"(?:^|\s)([A-Za-z_]\w*)\s*<<\s*$")
NO_LOG: Final = "\0"  # no file is called so


class Asked(NamedTuple):
    """What a line, and the cell below it, ask.

    keep:    the variable that gets the answer; empty: it is shown
    options: as the command line has them; `db` is the open database that is asked, None where `log` is to be opened
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
    """What is asked; `current` is the variable of the database that was opened last. Raises UsageError, QueryError."""
    keep, line, cell = kept(line, cell)
    words = [in_word(word, names) for word in split(line)]
    command = words.pop(0) if words and words[0] in ANSWERS else "query"
    if words and words[0] in COMMANDS and command == "query" and not _is_place(words[0], names):
        raise UsageError(f"`jitdb {words[0]}` is for a shell", f"!jitdb {line.strip()}")
    if cell is not None and cell.strip():
        words.append(in_expression(_lines_as_one(cell), names))
    options = Program().parse_args([command, NO_LOG, *words])
    options.db = _choose_log(options, names, current, has_cell=bool(cell and cell.strip()))
    return Asked(keep, options)


def _lines_as_one(cell: str) -> str:
    """The cell as one expression: in brackets, lines and comments may end where they like."""
    text = cell.strip()
    return f"(\n{text}\n)" if "\n" in text or "#" in text else text


def _choose_log(options: Namespace, names: Names, current: str, has_cell: bool) -> AnyDatabase | None:
    """Take the log from the operands: a variable, or a place; else the current one."""
    operands: list[str] = options.expressions if "expressions" in options else options.more_logs
    is_one_more = has_cell and len(operands) > 1 + (options.command in OF_A_FIELD)  # than the command has without it
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
        options.timestamp = list(map(format_path, db.declared_time))  # so no note says which it is
    return db


def _is_place(word: str, names: Names) -> bool:
    return database_named(word, names) is not None or os.path.exists(word) or (is_pattern(word) and "/" in word)


def _check_place(word: str, names: Names) -> None:
    """Raises Failure where neither a file nor a variable is called so, and one of similar name is."""
    if os.path.exists(word) or is_pattern(word) or os.sep in word:
        return
    if word in names:
        kind = type(names[word]).__name__
        raise Failure(f"the variable {word} is of type {kind}, not an open database", f"a path stands so: {{{word}}}")
    meant = nearest(word, [*databases(names), *ANSWERS])
    if meant:
        raise Failure(f"{word}: there is neither such a file nor such a variable; did you mean {meant}?")


def _refuse_opening(options: Namespace) -> None:
    """Raises UsageError for options that say how a log is opened: this one is open."""
    given = vars(options)
    for name in (*READING, *FORMAT, *LINES):
        if given.get(name):
            flag = OPTIONS[name].flags[0]
            raise UsageError(
                f"{flag} says how a log is opened, and {options.log} is open",
                f"%jitdb open LOG as {options.log} {flag} …",
            )
