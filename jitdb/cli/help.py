"""What `jitdb` and `jitdb help` print; and which command or option was probably meant by an unknown word."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Final

from jitdb import __version__
from jitdb.cli.commands import COMMANDS, WANTED, find_command
from jitdb.cli.failures import UsageError
from jitdb.common.formats import ENDINGS
from jitdb.common.spelling import nearest
from jitdb.errors import import_command

_OVERVIEW: Final = """\
jitdb {version}: ask logs where they lie. The first question about a field builds its index.

  jitdb count app.ndjson 'level == "error" and status >= 500'
  jitdb query logs/ 'user.name == "ada"' --since 2h --descending --limit 5
  kubectl logs web | jitdb values - level

{commands}

`jitdb help COMMAND` describes one command, `jitdb help expressions` how to write questions.
New here? `jitdb demo` shows it at work on a log of its own, in some seconds.
"""

_EXPRESSIONS: Final = """\
An expression looks like Python and is never evaluated. Put it in single quotes and text inside it in double quotes:
without quotes the shell interprets <, > and blanks.

"""

_COLUMN: Final = 10  # characters: wider than what one wants, and the names that are listed in lines
_WIDTH: Final = 79

_LIKE: Final = 0.7  # of 1: what two letters of difference leave of a word of seven

# Other tools' names for our commands. They count before likeness: `find` is much like `fields`, and means `query`.
_COMMANDS: Final = {
    "load": "import", "add": "import", "append": "import", "create": "import", "init": "import", "ingest": "import",
    "dump": "export", "cat": "export", "select": "query", "search": "find", "get": "query",
    "grep": "find", "rg": "find", "zgrep": "find", "egrep": "find", "wc": "count",
    "ls": "info", "stat": "info", "show": "query", "index": "prepare",
    "check": "verify", "fsck": "verify", "test": "verify", "fix": "repair", "mend": "repair", "recover": "repair",
    "vacuum": "compact", "shrink": "compact", "gc": "compact",
    "rm": "delete", "remove": "delete", "purge": "delete", "prune": "delete", "expire": "delete", "retain": "delete",
    "uniq": "values", "top": "values", "distinct": "stats", "nunique": "stats", "rate": "timeline", "dedup": "query",
    "cluster": "patterns", "templates": "patterns", "categorize": "patterns",
    "alias": "save", "bookmark": "save", "name": "save",
    "follow": "tail", "watch": "tail", "listen": "tail", "head": "query", "sort": "query", "drop": "indexes",
    "forget": "indexes", "clean": "indexes", "clear": "indexes",
}  # fmt: skip

# Other tools' names for our options.
_OPTIONS: Final = {
    "reverse": ("descending",), "newest": ("descending",), "desc": ("descending",),
    "head": ("limit",), "max": ("limit",), "count": ("limit",), "lines": ("limit",), "offset": ("skip",),
    "order": ("sort", "descending"), "order-by": ("sort",), "sort-by": ("sort",),
    "columns": ("fields",), "select": ("fields",), "keys": ("fields",), "field": ("fields",), "group-by": ("by",),
    "from": ("since",), "after": ("since",), "start": ("since",), "to": ("until",), "before": ("until",),
    "end": ("until",), "out": ("output",), "outfile": ("output",), "force": ("yes",), "check": ("dry-run",),
    "verbose": ("debug",), "jobs": ("threads",), "workers": ("threads",), "silent": ("quiet",), "follow": ("old",),
    "top": ("limit",), "percentiles": ("quantiles",), "percentile": ("quantiles",), "percent": ("quantiles",),
    "rate": ("per",), "sort": ("order",), "unique": ("distinct", "dedup"),
    "uniq": ("distinct", "dedup"), "interval": ("every",), "step": ("every",), "bucket": ("every",), "span": ("every",),
    "drop-all": ("forget",), "clear": ("forget",), "clean": ("forget",), "purge": ("forget",),
}  # fmt: skip
_EXPRESSION: Final = frozenset({"where", "filter", "expr", "expression", "query", "match", "grep"})


def what_to_show(words: list[str]) -> Callable[[], int]:
    """What a command line without a command runs: help, or the version. Raises UsageError."""
    name = words[0] if words else "help"
    if name in ("-h", "--help"):
        return show_overview
    if name == "help":
        return lambda: show_help(words[1:])
    if name in ("--version", "-V", "version"):
        return show_version
    raise _option_first(words) if name.startswith("-") else unknown_command(name)


def show_overview() -> int:
    """The commands, by what one wants; of those that are wanted less often the names."""
    shown, rows = "", []
    for name, wanted in WANTED.items():
        if wanted:
            rows.append(f"{'' if wanted == shown else wanted:{_COLUMN}}{name:{_COLUMN}}{COMMANDS[name]}")
            shown = wanted
    more = ", ".join(name for name, wanted in WANTED.items() if not wanted)
    rows += textwrap.wrap(more, _WIDTH, initial_indent=f"{'more':{_COLUMN}}", subsequent_indent=" " * _COLUMN)
    print(_OVERVIEW.format(version=__version__, commands="\n".join(rows)), end="")
    return 0


def show_version() -> int:
    """The version, and that of Python, as a bug report needs them."""
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
        find_command(topic).parser.print_help()
    else:
        raise unknown_command(topic)
    return 0


def _option_first(words: list[str]) -> UsageError:
    name = next((word for word in words if word in COMMANDS), None)
    typed = words[0]
    if name is not None:
        known = find_command(name).parser.long_options()
        typed = typed if typed in known else nearest_option(typed, known) or typed
    return UsageError(
        f"there is no option {words[0]} before the command",
        f"options stand behind it: jitdb {name or 'COMMAND'} … {typed}",
    )


def unknown_command(name: str) -> UsageError:
    """The error for an unknown command. It suggests one."""
    if os.path.isfile(name):
        import shlex

        text = name.endswith((".ndjson", ".jsonl", ".json", *ENDINGS))
        typed = import_command(name) if text else f"jitdb query {shlex.quote(name)}"
        return UsageError(f"{name} is a file, and a command comes first; did you mean `{typed}`?")
    meant = _COMMANDS.get(name.lower()) or nearest(name.lower(), [*COMMANDS, "help"])
    if meant:
        return UsageError(f"there is no command {name!r}; did you mean `jitdb {meant}`?")
    return UsageError(f"there is no command {name!r}", f"there are: {', '.join(COMMANDS)}")


def is_expression_option(option: str) -> bool:
    """Whether it is what other tools call the option that selects records."""
    return option.lstrip("-").lower() in _EXPRESSION


def nearest_option(option: str, known: Sequence[str]) -> str:
    """The known option that other tools call so, or that is written most like this one; empty if none is.

    >>> [nearest_option(option, ["--codec", "--descending"]) for option in ("--codecs", "--reverse", "--order-of")]
    ['--codec', '--descending', '']
    """
    typed = option.lstrip("-").lower()  # dashes would count as likeness
    names = [each.lstrip("-") for each in known]
    others = [other for other in _OPTIONS.get(typed, ()) if other in names]
    near = others[0] if others else nearest(typed, names, _LIKE)
    return f"--{near}" if near else ""


def commands_with(option: str) -> list[str]:
    """The commands that have this option."""
    return [name for name in COMMANDS if find_command(name).parser.option(option) is not None]
