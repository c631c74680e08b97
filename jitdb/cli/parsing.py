"""Reading a command's arguments: argparse, with complaints in our own words, and the options that commands share."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from jitdb.cli.error_text import UsageError

if TYPE_CHECKING:
    from jitdb.operators import Operation

_EXAMPLES: Final = "examples:"
_EXPRESSION: Final = r"[<>=!]=|[<>()]|\s(in|is|and|or)\s"
_BARE_WORD: Final = r"([=<>]|\bin\b|[(,\[])\s*(?!(?:True|False|None)\b)[A-Za-z_][\w ]*([]),]|$|\b(and|or)\b)"
_LIKE: Final = 0.7  # of 1: what two letters of difference leave of a word of seven
_QUOTING: Final = "put all of one between single quotes and text in it between double quotes, or the shell takes a part"
_UNITS: Final = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20}


class Parser(argparse.ArgumentParser):
    """The arguments of one command.

    name:     as it is typed
    operands: what stands in the usage line behind the name
    about:    what the command does, for --help
    examples: (what to type behind `jitdb `, what it does)
    """

    def __init__(self, name: str, operands: str, about: str, examples: Sequence[tuple[str, str]]) -> None:
        shown = "\n".join(f"  # {what}\n  jitdb {typed}" for typed, what in examples)
        super().__init__(
            prog=f"jitdb {name}",
            usage=f"jitdb {name} {operands}",
            description=about,
            epilog=f"{_EXAMPLES}\n{shown}",
            formatter_class=_Help,
            add_help=False,
        )
        self.name = name
        self._positionals.title = "operands"

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options. Raises UsageError; SystemExit after --help."""
        options, rest = self.parse_known_intermixed_args(arguments)
        if rest:
            self._complain_of(rest)
        options.command = self.name
        return options

    def error(self, message: str) -> NoReturn:
        """argparse found something wrong."""
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        if missing:
            verb = "are" if "," in missing[1] else "is"
            message = f"{missing[1]} {verb} missing"
        raise UsageError(f"{self.name}: {message}", f"usage: {self.usage}; `jitdb help {self.name}` has examples")

    def _complain_of(self, rest: Sequence[str]) -> NoReturn:
        unknown = [argument.partition("=")[0] for argument in rest if argument.startswith("-") and argument != "-"]
        if not unknown:
            self.error(f"too many operands: {' '.join(rest)}")
        known = [option for option in self._option_string_actions if option.startswith("--")]
        meant = {option: nearest_option(option, known) for option in unknown}
        told = [f"{option} (did you mean {near}?)" if near else option for option, near in meant.items()]
        if len(told) > 1:
            self.error(f"there are no options {', '.join(told)}")
        if meant[unknown[0]]:
            raise UsageError(f"{self.name}: there is no option {unknown[0]}; did you mean {meant[unknown[0]]}?")
        self.error(f"there is no option {unknown[0]}")


def nearest_option(option: str, known: Sequence[str]) -> str:
    """The option that is written most like this one; empty if none is much like it.

    >>> [nearest_option(option, ["--codec", "--descending"]) for option in ("--codecs", "--order")]
    ['--codec', '']
    """
    import difflib

    names = [each.lstrip("-") for each in known]  # the dashes would count as likeness
    close = difflib.get_close_matches(option.lstrip("-"), names, n=1, cutoff=_LIKE)
    return f"--{close[0]}" if close else ""


class _Help(argparse.HelpFormatter):
    """Options in one column wide enough for most of them; examples as they are written."""

    def __init__(self, prog: str) -> None:
        # argparse would import shutil to find the width, each time that an argument is added.
        super().__init__(prog, max_help_position=26, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)


def _width() -> int:
    """Columns of the terminal, within reason; 80 where there is none."""
    try:
        columns = int(os.environ.get("COLUMNS", "")) or os.get_terminal_size(sys.stdout.fileno()).columns
    except (ValueError, OSError, AttributeError):
        columns = 82
    return max(60, min(columns, 122)) - 2


def add_common(parser: Parser, *, indexes: bool = True) -> None:
    """The options of every command that reads a log."""
    log = parser.add_argument_group("the log")
    add_format(log)
    if indexes:
        log.add_argument(
            "--timestamp", metavar="PATH", action="append",
            help="field that says when a record was made; given more than once, the smallest number counts "
            "(default: timestamp and value.timestamp)",
        )  # fmt: skip
        log.add_argument("--sequence", metavar="PATH", help='field behind index("sequence") (default: value.sequence)')
        log.add_argument(
            "--indexes", metavar="DIR", default="",
            help="folder of the index files, or `none` to keep them in memory (default: LOG.jitdb/indexes)",
        )  # fmt: skip
        log.add_argument(
            "--threads", metavar="N", type=number(1), default=0, help="threads of a scan (default: one a core)"
        )
    add_general(parser)


def add_format(group: Any) -> None:
    """How the bytes of the log are read."""
    group.add_argument("--codec", choices=("msgpack", "bipf", "raw"), help="of the records (default: found by looking)")
    group.add_argument(
        "--block-size", metavar="BYTES", type=size, help="of the log, such as 65536 or 64K (default: found by looking)"
    )


def add_general(parser: Parser) -> None:
    """The options of every command."""
    general = parser.add_argument_group("in general")
    general.add_argument("--no-progress", action="store_true", help="no progress bar")
    general.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, notes or warnings; errors are still told"
    )
    general.add_argument("--debug", action="store_true", help="show the traceback of an error")
    general.add_argument("-h", "--help", action="help", help="show this")


def add_expression(parser: Parser) -> None:
    """The EXPR of a command that takes one or none."""
    parser.add_argument(
        "expressions", metavar="EXPR", nargs="*", default=[],
        help="which records, between quotes, such as 'value.content.type == \"post\"'; all when left out "
        "(see `jitdb help expressions`)",
    )  # fmt: skip


def one_expression(options: argparse.Namespace) -> Operation | None:
    """The command's expression, None when there is none. Raises UsageError, QueryError."""
    texts: list[str] = options.expressions
    check_operands(options)
    if len(texts) > 1:
        raise UsageError(
            f"the expression came in {len(texts)} pieces: {' | '.join(texts)}",
            "put all of it between single quotes, and text in it between double quotes: 'type == \"post\"'",
        )
    return read_expression(texts[0]) if texts else None


def check_operands(options: argparse.Namespace) -> None:
    """Raises UsageError where the expression stands in the place of the log."""
    log, texts = options.log, options.expressions
    if os.path.exists(log) or not is_expression(log):
        return
    import shlex

    command = f"jitdb {options.command}"
    files = [text for text in texts if os.path.isfile(text)]
    if files:
        others = [log, *(text for text in texts if text != files[0])]
        raise UsageError(
            f"{options.command}: the log comes first, the expression behind it",
            f"{command} {shlex.join([files[0], *others])}",
        )
    if not texts:
        raise UsageError(
            f"{options.command}: LOG is missing before the expression", f"{command} LOG {shlex.quote(log)}"
        )


def is_expression(text: str) -> bool:
    """Whether it can only be an expression.

    >>> is_expression('level == "error"'), is_expression("user.name")
    (True, False)
    """
    return re.search(_EXPRESSION, text) is not None


def read_expression(text: str) -> Operation:
    """The operation. Raises QueryError with a caret under the place."""
    from jitdb.errors import QueryError
    from jitdb.operators import parse_expression

    try:
        return parse_expression(text)
    except QueryError as error:
        hint = "`jitdb help expressions` shows how they are written"
        error.add_note(hint + (f"; {_QUOTING}" if _was_eaten(text) else ""))
        raise


def _was_eaten(text: str) -> bool:
    """Whether the shell may have taken a part of the expression: a redirection, or the quotes around a text.

    >>> _was_eaten("status"), _was_eaten("level == error"), _was_eaten("level = 5")
    (True, True, False)
    """
    if '"' in text or "'" in text:
        return False
    return re.fullmatch(r"[\w.]+", text) is not None or re.search(_BARE_WORD, text) is not None


class number:  # noqa: N801  (argparse shows it as a function)
    """A whole number of at least `least`."""

    def __init__(self, least: int) -> None:
        self._least = least

    def __call__(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = self._least - 1
        if value < self._least:
            raise argparse.ArgumentTypeError(f"a whole number of {self._least} or more is expected, not {text!r}")
        return value


def size(text: str) -> int:
    """A number of bytes that can be a block size.

    >>> size("64K"), size("1MiB"), size("65536")
    (65536, 1048576, 65536)
    """
    found = re.fullmatch(r"([0-9_,]+)\s*([a-z]*)", text.strip().lower())
    unit = _UNITS.get(found[2]) if found else None
    digits = found[1].replace(",", "").replace("_", "") if found else ""
    if unit is None or not digits:
        raise argparse.ArgumentTypeError(f"a number of bytes is expected, such as 65536, 64K or 1M, not {text!r}")
    from jitdb.errors import LogError
    from jitdb.log.blocks.layout import check_block_size

    try:
        return check_block_size(int(digits) * unit)
    except LogError as error:
        raise argparse.ArgumentTypeError(error.reason) from None


def fields(text: str) -> list[str]:
    """Field paths with commas between them."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"field paths with commas between them are expected, not {text!r}")
    return names
