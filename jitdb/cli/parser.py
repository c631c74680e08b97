"""Reading a command line: argparse, with a subparser for each command, and complaints in our own words."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from jitdb.cli.commands import COMMANDS, module_of
from jitdb.cli.failures import Diagnostic, UsageError
from jitdb.cli.options import OPTIONS
from jitdb.cli.output.output import columns, flush, show_lines
from jitdb.errors import JitdbError

_EXAMPLES: Final = "examples:"


class Program(argparse.ArgumentParser):
    """`jitdb COMMAND …`. A command's module, which has its parser, is imported when that is asked for."""

    def __init__(self) -> None:
        super().__init__(prog="jitdb", add_help=False, allow_abbrev=False)
        commands = self.add_subparsers(prog="jitdb", dest="command", required=True)
        commands.choices = commands._name_parser_map = _Parsers(dict.fromkeys(COMMANDS))


class _Parsers(dict[str, Any]):
    """The commands' parsers, by name."""

    def __getitem__(self, name: str) -> Parser:
        parser: Parser = module_of(name).PARSER
        return parser


class Once(argparse.Action):
    """An option that other commands take several times, and this one does not: the last would win silently."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is said twice, and stands here once")
        setattr(namespace, self.dest, values)


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
        self._groups: dict[str, Any] = {"": self}
        self._is_inner = False
        self._negative_number_matcher = re.compile(r"-[\d.]")  # also several, as bins are: -50,0,50

    def take(self, *names: str, **changes: Any) -> None:
        """Add options of the table in options.py; `changes` are what is different here."""
        for name in names:
            option = OPTIONS[name]
            self.group(option.group).add_argument(*option.flags, **{**option.settings, **changes})

    def group(self, title: str) -> Any:
        """The group of options that help shows under this title."""
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title)
        return self._groups[title]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """The options, which may stand between operands. Raises UsageError; SystemExit after --help."""
        if self._is_inner:  # argparse's own way to find them calls this
            return super().parse_known_args(args, namespace)
        args = _with_falling(sys.argv[1:] if args is None else args)
        self._is_inner = True
        try:
            options, rest = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inner = False
        if rest:
            self._complain_of(rest)
        if "more_logs" in options:
            from jitdb.cli.expressions import pass_over_sidecars

            pass_over_sidecars(options)
        return options, rest

    def print_help(self, file: Any = None) -> None:
        """argparse would keep silent where it cannot be written. Raises OSError."""
        show_lines(self.format_help().rstrip("\n"))
        flush()

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
        from jitdb.cli.meant import nearest_option

        meant = {option: nearest_option(option, self.long_options()) for option in unknown}
        guesses = [f"{option} (did you mean {near}?)" if near else option for option, near in meant.items()]
        if len(guesses) > 1:
            self.error(f"there are no options {', '.join(guesses)}")
        option = unknown[0]
        if meant[option]:
            raise UsageError(f"{self.name}: there is no option {option}; did you mean {meant[option]}?")
        self._tell_others(option)
        self.error(f"there is no option {option}")

    def _tell_others(self, option: str) -> None:
        """Raises UsageError where it is an option of other commands, or one that no command of ours needs."""
        from jitdb.cli.meant import commands_with, is_expression_option

        if is_expression_option(option) and any(action.dest == "expressions" for action in self._actions):
            told = f"the expression stands behind the log: jitdb {self.name} LOG 'EXPR'"
            raise UsageError(f"{self.name}: there is no option {option}", told)
        others = [f"`jitdb {name}`" for name in commands_with(option)] if option.startswith("--") else []
        if others:
            have = "has it" if len(others) == 1 else "have it"
            raise UsageError(f"{self.name}: there is no option {option} here; {' and '.join(others)} {have}")

    def long_options(self) -> list[str]:
        """Its options, by their long names."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """The value of an option. What the library has against it is said as what its type has."""
        try:
            return text if action.type is None else action.type(text)  # type: ignore[operator]
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(action, str(error)) from None
        except JitdbError as error:
            told = Diagnostic.of(error)
            raise argparse.ArgumentError(action, "; ".join((told.message, *told.hints))) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from jitdb.common.spelling import nearest

        near = nearest(str(value).lower(), action.choices)
        meant = f"; did you mean {near}?" if near else ""
        there = ", ".join(map(str, action.choices))
        raise argparse.ArgumentError(action, f"{value!r} is none of {there}{meant}")


def _with_falling(arguments: Sequence[str]) -> list[str]:
    """`--sort -size` as one argument: to argparse `-size` is an option.

    >>> _with_falling(["log", "--sort", "-size", "-n", "5"])
    ['log', '--sort=-size', '-n', '5']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--sort" and argument.startswith("-") and not argument.startswith("--"):
            joined[-1] = f"--sort={argument}"
        else:
            joined.append(argument)
    return joined


class _Help(argparse.HelpFormatter):
    """Options in one column wide enough for most of them; examples as they are written."""

    def __init__(self, prog: str) -> None:
        # argparse would import shutil to find the width, each time that an argument is added.
        super().__init__(prog, max_help_position=26, width=max(60, min(columns(82), 122)) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)
