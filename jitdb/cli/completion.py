"""How a command line may go on, for a shell that asks: commands, options, their values, files, and fields of the log.

argcomplete asks argparse; what a word may be that argparse knows nothing of is told here, by the metavar of its option.
"""

from __future__ import annotations

import os
import re
from argparse import _SubParsersAction
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.commands import COMMANDS
from jitdb.cli.parser import Program
from jitdb.common.paths import format_path

if TYPE_CHECKING:
    from argparse import Action

_EXPRESSIONS: Final = frozenset({"EXPR", "FIELD [EXPR]"})
_FIELDS: Final = (
    frozenset({"PATH", "PATHS", "FIELD"}) | _EXPRESSIONS
)  # metavars of what may be, or hold, fields of the log
_SAMPLE: Final = 50  # records looked at: a person waits
_FOLLOWING: Final = (" == ", " in [", " > ", " < ", " is absent")  # what may come behind a field
_BEFORE: Final = re.compile(r"(.*[\s(,~-])?")  # what stands before the field at the end of an expression, or of a list


def complete() -> None:
    """Answer the shell, and end; nothing without argcomplete (`pip install 'jitdb[completion]'`)."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(_Described(), always_complete_options=False, default_completer=offered)


class _Described(Program):
    """With the line of each command, which some shells show."""

    def __init__(self) -> None:
        super().__init__()
        assert self._subparsers is not None
        (commands,) = self._subparsers._group_actions
        described = _SubParsersAction._ChoicesPseudoAction
        commands._choices_actions = [described(name, (), line) for name, line in COMMANDS.items()]  # type: ignore[attr-defined]


def offered(prefix: str, action: Action, **_: Any) -> dict[str, str]:
    """What a word that begins so may be, a field of the log where one is meant, or a file; nothing is said of each."""
    from argcomplete.completers import FilesCompleter
    from argcomplete.lexers import split_line

    line = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    quote, words = line[0], line[3]
    # Of the words, for argparse reads options before operands, and would not know the log yet.
    log = next((path for path in map(os.path.expanduser, words[2:]) if os.path.isfile(path)), None)
    files = {file: "" for file in FilesCompleter()(prefix) if not file.endswith(".jitdb/")}  # which nobody means
    if log is None or action.metavar not in _FIELDS:
        return files
    before = _BEFORE.match(prefix)
    assert before is not None  # it matches nothing, too
    begun = prefix[before.end() :]
    fields = [f"{before[0]}{name}" for name in fields_of(log) if name.startswith(begun)]
    if action.metavar in _EXPRESSIONS:
        if quote and len(fields) == 1:  # several keep the shell from ending the word
            fields = [f"{fields[0]}{following}" for following in _FOLLOWING]
        return {**dict.fromkeys(fields, ""), **({} if quote else files)}
    return dict.fromkeys(fields, "")


def fields_of(log: str) -> list[str]:
    """The fields that some records of the log have, as expressions write them; none where it cannot be read."""
    from jitdb.engine.hinting.spelling import fields_in
    from jitdb.errors import JitdbError
    from jitdb.log.any_log import open_any
    from jitdb.log.reading.sampling import sample

    with suppress(JitdbError, OSError), open_any(log, read_only=True, folder="memory") as opened:
        return list(map(format_path, fields_in(sample(opened, _SAMPLE))))
    return []
