"""`jitdb completion`, and what its script asks for at each Tab: how a command line may go on.

argcomplete asks argparse. The metavar of an option says where fields of the log may stand.
"""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace, _SubParsersAction
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.commands import COMMANDS, find_command
from jitdb.cli.failures import Failure
from jitdb.cli.options import option
from jitdb.cli.parser import Parser, command
from jitdb.common.paths import format_path

if TYPE_CHECKING:
    from argparse import Action

_SHELLS: Final = ("bash", "zsh", "fish")
_EXPRESSIONS: Final = frozenset({"EXPR", "FIELD [EXPR]"})
_FIELDS: Final = (
    frozenset({"PATH", "PATHS", "FIELD"}) | _EXPRESSIONS
)  # metavars of what may be, or hold, fields of the log
_SAMPLE: Final = 50  # records looked at: a person waits
_FOLLOWING: Final = (" == ", " in [", " > ", " < ", " is absent")  # what may come behind a field
_BEFORE: Final = re.compile(r"(.*[\s(,~-])?")  # what stands before the field at the end of an expression, or of a list


@command(
    "[bash|zsh|fish]",
    "Print the script that lets the Tab key complete jitdb's commands, options and their values, files, saved "
    "questions, and fields of the log in expressions and options. Needs argcomplete: pip install 'jitdb[completion]'.",
    [
        ("completion bash", "in ~/.bashrc: source <(jitdb completion bash)"),
        ("completion zsh", "in ~/.zshrc, after compinit: source <(jitdb completion zsh)"),
        ("completion fish", "in config.fish: jitdb completion fish | source"),
    ],
    option("shell SHELL", "default: the shell in $SHELL", nargs="?", choices=_SHELLS),
)
def completion(options: Namespace) -> int:
    """Print it."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError:
        raise Failure(
            "completion takes argcomplete, which is not installed", "pip install 'jitdb[completion]'"
        ) from None
    shell = options.shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in _SHELLS:
        raise Failure("completion: $SHELL does not say which shell this is", f"say one of {', '.join(_SHELLS)}")
    print(shellcode(["jitdb"], shell=shell))
    return 0


def complete() -> None:
    """Answer the shell and exit. Does nothing without argcomplete (`pip install 'jitdb[completion]'`)."""
    try:
        import argcomplete
    except ImportError:
        return
    program = ArgumentParser(prog="jitdb", add_help=False)
    commands = program.add_subparsers()
    commands.choices = commands._name_parser_map = _Parsers(dict.fromkeys(COMMANDS))
    described = _SubParsersAction._ChoicesPseudoAction  # some shells show the line of each command
    commands._choices_actions = [described(name, (), line) for name, line in COMMANDS.items()]
    argcomplete.autocomplete(program, always_complete_options=False, default_completer=offered)


class _Parsers(dict[str, Any]):
    """The commands' parsers by name: argcomplete looks at one."""

    def __getitem__(self, name: str) -> Parser:
        return find_command(name).parser


def offered(prefix: str, action: Action, **_: Any) -> dict[str, str]:
    """The words that begin so: fields of the log where one is expected, else files. Their descriptions are empty."""
    from argcomplete.completers import FilesCompleter
    from argcomplete.lexers import split_line

    line = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))
    quote, words = line[0], line[3]
    if action.metavar == "NAME":
        return dict.fromkeys((name for name in saved() if name.startswith(prefix)), "")
    # argparse reads options before operands, and does not know the log yet.
    log = next((path for path in map(os.path.expanduser, words[2:]) if os.path.isfile(path)), None)
    files = {file: "" for file in FilesCompleter()(prefix) if not file.endswith(".jitdb/")}
    before = _BEFORE.match(prefix)
    assert before is not None  # it matches nothing, too
    begun = prefix[before.end() :]
    if begun[:1] == "@" and action.metavar in _EXPRESSIONS:
        return dict.fromkeys((f"{before[0]}@{name}" for name in saved() if name.startswith(begun[1:])), "")
    if log is None or action.metavar not in _FIELDS:
        return files
    fields = [f"{before[0]}{name}" for name in fields_of(log) if name.startswith(begun)]
    if action.metavar in _EXPRESSIONS:
        if quote and len(fields) == 1:  # several keep the shell from ending the word
            fields = [f"{fields[0]}{following}" for following in _FOLLOWING]
        return {**dict.fromkeys(fields, ""), **({} if quote else files)}
    return dict.fromkeys(fields, "")


def saved() -> list[str]:
    """The names of saved questions; none where they cannot be read."""
    from jitdb.errors import QueryError
    from jitdb.operators.text.saved import Book

    with suppress(QueryError):
        return list(Book().texts)
    return []


def fields_of(log: str) -> list[str]:
    """The fields of a sample of the log, as expressions write them; none if it cannot be read."""
    from jitdb.errors import JitdbError
    from jitdb.log.any_log import open_any
    from jitdb.log.columnar.table_file import kind_at
    from jitdb.log.lines.kept import kept
    from jitdb.log.reading.sampling import sample
    from jitdb.operators.summaries.fields import fields_in

    is_table = kind_at(log) is not None
    if is_table and not kept(log):
        return []  # reading its rows may take long
    folder = None if is_table else "memory"
    with suppress(JitdbError, OSError), open_any(log, read_only=True, folder=folder) as opened:
        return list(map(format_path, fields_in(sample(opened, _SAMPLE))))
    return []
