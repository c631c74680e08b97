"""`%jitdb` and `%%jitdb`: from the words of a line, and the expression of a cell, to an answer."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import UsageError
from jitdb.cli.opening import asked
from jitdb.cli.options import GENERAL, READING
from jitdb.cli.parser import Parser
from jitdb.notebook.answers import answer
from jitdb.notebook.failures import told_shortly
from jitdb.notebook.variables import databases, in_word
from jitdb.notebook.words import Asked, read, split

if TYPE_CHECKING:
    from jitdb.logset.logset import AnyDatabase

_OPEN: Final = Parser(
    "open",
    "LOG [as NAME] [options]",
    "Open a log, a folder of logs or a pattern, read-only, as a variable.",
    [("open events.ndjson as events", "then: %%jitdb events")],
)
_OPEN.take("log", "more_logs", *READING, *GENERAL)

_USAGE: Final = """\
%jitdb open LOG [as NAME]                    open a log, a folder or a pattern, as a variable (db)
%%jitdb [COMMAND] [NAME or LOG] [options]    ask it; the expression is the cell
%jitdb [COMMAND] [NAME or LOG] ['EXPR'] [options]
%jitdb close [NAME]

COMMAND: query (when left out), count, values FIELD, timeline, stats FIELD, histogram FIELD, fields, explain
rows << …                                    keep the answer instead of showing it
{variable}, $variable                        a value of Python's, in expressions and options
%jitdb help COMMAND, %jitdb help expressions
"""


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
            except SystemExit:  # argparse's way to end after --help
                return None

    def _answered(self, question: Asked) -> Any:
        with asked(question.options) as db:
            if question.options.db is not None:
                db.refresh()  # a cell asks the log as it is now
            found = answer(db, question.options, bool(question.keep))
        if not question.keep:
            return found
        self._shell.user_ns[question.keep] = found
        return None

    def _current(self) -> str:
        """The database that is meant where none is named: the one that was opened last, or the only one."""
        known = databases(self._shell.user_ns)
        return self.current if self.current in known else known[0] if len(known) == 1 else ""

    def _opened(self, line: str) -> AnyDatabase:
        words = [in_word(word, self._shell.user_ns) for word in split(line)]
        name = "db"
        if "as" in words[1:]:
            place = words.index("as", 1)
            if place + 1 == len(words) or not words[place + 1].isidentifier():
                raise UsageError("open: the name of a variable is missing behind `as`", f"usage: %jitdb {_OPEN.usage}")
            name = words[place + 1]
            del words[place : place + 2]
        options: Namespace = _OPEN.parse_args(words)
        options.command = "open"
        with ExitStack() as opening:
            db = opening.enter_context(asked(options))
            self.close(name)
            self._open[name] = opening.pop_all()
        self._shell.user_ns[name] = db
        self.current = name
        return db

    def close(self, name: str = "") -> None:
        """Close what was opened as this variable, or all."""
        for each in [name] if name else list(self._open):
            opened = self._open.pop(each, None)
            if opened is not None:
                opened.close()
                self._shell.user_ns.pop(each, None)
        self.current = "" if not name or name == self.current else self.current


def _help(topics: list[str]) -> None:
    from jitdb.cli.help import show_help

    if topics:
        show_help(topics)
    else:
        print(_USAGE, end="")
