"""What `jitdb` alone says, and `jitdb help`; and which command was probably meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from jitdb import __version__
from jitdb.cli.commands import COMMANDS, module_of
from jitdb.cli.failures import UsageError
from jitdb.errors import import_command

_OVERVIEW: Final = """\
jitdb {version}: ask an append-only log questions. Indexes are built when a question first needs them.

usage: jitdb COMMAND …

{commands}

New here? `jitdb demo` takes some seconds. Then, with your own data:

  jitdb import events.ndjson events.log
  jitdb count events.log 'level == "error" and status >= 500'
  jitdb query events.log 'user.name == "ada"' --descending --limit 5

`jitdb help COMMAND` tells about one command, `jitdb help expressions` how questions are written.
"""

_EXPRESSIONS: Final = """\
An expression looks like Python and is never evaluated. Put it between single quotes, and text in it between double
quotes: the shell would take <, > and blanks for itself.

"""


def what_to_show(words: list[str]) -> Callable[[], int]:
    """For a command line without a command: what says so, helps, or tells the version. Raises UsageError."""
    name = words[0] if words else "help"
    if name in ("-h", "--help"):
        return show_overview
    if name == "help":
        return lambda: show_help(words[1:])
    if name in ("--version", "-V", "version"):
        return show_version
    raise _option_first(words) if name.startswith("-") else unknown_command(name)


def show_overview() -> int:
    """What `jitdb` says when it is asked for nothing."""
    width = max(map(len, COMMANDS)) + 2
    rows = "\n".join(f"  {name:{width}}{summary}" for name, summary in COMMANDS.items())
    print(_OVERVIEW.format(version=__version__, commands=rows), end="")
    return 0


def show_version() -> int:
    """The version, and that of the Python it runs on: what a report of a mistake needs."""
    print(f"jitdb {__version__} (Python {sys.version.split()[0]})")
    return 0


def show_help(topics: list[str]) -> int:
    """`jitdb help`, `jitdb help COMMAND`, `jitdb help expressions`."""
    if not topics:
        return show_overview()
    topic = topics[0]
    if topic in ("expressions", "expression"):
        from jitdb.operators.text.expression import EXPRESSION_HELP

        print(_EXPRESSIONS + EXPRESSION_HELP, end="")
    elif topic in COMMANDS:
        module_of(topic).PARSER.print_help()
    else:
        raise unknown_command(topic)
    return 0


def _option_first(words: list[str]) -> UsageError:
    from jitdb.cli.meant import nearest_option

    command = next((word for word in words if word in COMMANDS), None)
    typed = words[0]
    if command is not None:
        known = module_of(command).PARSER.long_options()
        typed = typed if typed in known else nearest_option(typed, known) or typed
    return UsageError(
        f"there is no option {words[0]} before the command",
        f"options stand behind it: jitdb {command or 'COMMAND'} … {typed}",
    )


def unknown_command(name: str) -> UsageError:
    """The error for a command that does not exist, with the one that was probably meant."""
    from jitdb.common.spelling import nearest

    if os.path.isfile(name):
        import shlex

        text = name.endswith((".ndjson", ".jsonl", ".json", ".gz", ".zst"))
        typed = import_command(name) if text else f"jitdb query {shlex.quote(name)}"
        return UsageError(f"{name} is a file, and a command comes first; did you mean `{typed}`?")
    meant = _SYNONYMS.get(name.lower()) or nearest(name.lower(), [*COMMANDS, "help"])
    if meant:
        return UsageError(f"there is no command {name!r}; did you mean `jitdb {meant}`?")
    return UsageError(f"there is no command {name!r}", f"there are: {', '.join(COMMANDS)}")


# What other tools call it; this counts first: `find` is much like `fields`, and means `query`.
_SYNONYMS: Final = {
    "load": "import", "add": "import", "append": "import", "create": "import", "init": "import", "ingest": "import",
    "dump": "export", "cat": "export", "find": "query", "select": "query", "search": "query", "get": "query",
    "ls": "info", "stat": "info", "show": "query", "index": "prepare",
    "check": "verify", "fsck": "verify", "test": "verify", "fix": "repair", "mend": "repair", "recover": "repair",
    "vacuum": "compact", "shrink": "compact", "gc": "compact",
    "rm": "delete", "remove": "delete", "purge": "delete", "prune": "delete", "expire": "delete", "retain": "delete",
    "follow": "tail", "watch": "tail", "listen": "tail", "head": "query", "sort": "query", "drop": "indexes",
}  # fmt: skip
