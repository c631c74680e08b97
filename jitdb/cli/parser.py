"""Commands, and how their lines are read: argparse, with a parser for each command, and complaints in our own words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Final, NoReturn

from jitdb.cli.failures import Diagnostic, UsageError
from jitdb.cli.options import GENERAL, OPTIONS, Option
from jitdb.cli.output.output import flush, show_lines
from jitdb.display.terminal import columns
from jitdb.errors import JitdbError

_EXAMPLES: Final = "examples:"

Run = Callable[[argparse.Namespace], int]
Show = Callable[[Any], object]
Answer = Callable[[Any, argparse.Namespace, Show], Any]
Look = Callable[[Any, Any, argparse.Namespace], Any]


class Command:
    """A command: the function that runs it, and what its line may hold.

    operands: what stands behind the name in the usage line
    about:    what the command does, for --help
    examples: (what to type behind `jitdb `, what it does)
    options:  those of the table in options.py by name, or options of its own; those of all commands are added
    answer:   gives what it answers of a database; `show` gets the answer before notes on it are printed. A notebook has
              the commands that have one
    look:     gives the same of a log and the folder of its indexes, without numpy, where fresh indexes have it and no
              note is due; else None
    """

    def __init__(
        self,
        name: str,
        run: Run,
        operands: str,
        about: str,
        examples: Sequence[tuple[str, str]],
        options: Sequence[str | Option],
        answer: Answer | None = None,
    ) -> None:
        self.name, self.run, self.answer = name.rstrip("_"), run, answer
        self.look: Look | None = None
        self.operands, self.about, self.examples, self.options = operands, about, examples, (*options, *GENERAL)

    @cached_property
    def parser(self) -> Parser:
        return Parser(self)

    def takes_field(self, given: argparse.Namespace) -> bool:
        """Whether a field stands before the expression of this line."""
        return "field_and_expression" in self.options and not getattr(given, "share", None)

    def answers(self, answer: Answer) -> Answer:
        """A decorator for the function that answers it."""
        self.answer = answer
        return answer

    def looks(self, look: Look) -> Look:
        """A decorator for the function that answers it at a glance."""
        self.look = look
        return look


def command(
    operands: str, about: str, examples: Sequence[tuple[str, str]], *options: str | Option
) -> Callable[[Run], Command]:
    """Make a command of the function that runs it, under the function's name."""
    return lambda run: Command(run.__name__, run, operands, about, examples, options)


def question(
    operands: str, about: str, examples: Sequence[tuple[str, str]], *options: str | Option
) -> Callable[[Answer], Command]:
    """Make a command of the function that answers it, under the function's name."""

    def made(answer: Answer) -> Command:
        def run(given: argparse.Namespace) -> int:
            from jitdb.cli.expressions import read_question
            from jitdb.cli.opening import seen_or_asked
            from jitdb.cli.output.tables import show_result

            read_question(given, found.takes_field(given))
            show = partial(show_result, given)
            with seen_or_asked(given, found.look) as (seen, db):
                if db is None:
                    show(seen)
                else:
                    answer(db, given, show)
            return 0

        found = Command(answer.__name__, run, operands, about, examples, options, answer)
        return found

    return made


class Parser(argparse.ArgumentParser):
    """The arguments of one command."""

    def __init__(self, command: Command) -> None:
        shown = "\n".join(f"  # {what}\n  jitdb {typed}" for typed, what in command.examples)
        super().__init__(
            prog=f"jitdb {command.name}",
            usage=f"jitdb {command.name} {command.operands}",
            description=command.about,
            epilog=f"{_EXAMPLES}\n{shown}",
            formatter_class=_Help,
            add_help=False,
        )
        self.name = command.name
        self.set_defaults(command=command.name)
        self._positionals.title = "operands"
        self._negative_number_matcher = re.compile(r"-[\d.]")  # also several, as bins are: -50,0,50
        groups: dict[str, Any] = {"": self}
        for each in command.options:
            option = OPTIONS[each] if isinstance(each, str) else each
            if option.group not in groups:
                groups[option.group] = self.add_argument_group(option.group)
            groups[option.group].add_argument(*option.flags, **option.settings)

    def read(self, args: Sequence[str]) -> argparse.Namespace:
        """The options, which may stand between operands. Raises UsageError; SystemExit after --help."""
        options, rest = self.parse_known_intermixed_args(_with_falling(args))
        if rest:
            self._complain_of(rest)
        if "more_logs" in options:
            from jitdb.cli.expressions import pass_over_sidecars

            pass_over_sidecars(options)
        return options

    def format_help(self) -> str:
        """The examples stand before the options: a question is written after one, and there are many options."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        formatter.add_text(self.epilog)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        return formatter.format_help()

    def print_help(self, file: Any = None) -> None:
        """Raises OSError where it cannot be written; argparse would keep silent."""
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
        from jitdb.cli.help import commands_with, is_expression_option, nearest_option

        meant = {option: nearest_option(option, self.long_options()) for option in unknown}
        if len(meant) > 1:
            guesses = [f"{option} (did you mean {near}?)" if near else option for option, near in meant.items()]
            self.error(f"there are no options {', '.join(guesses)}")
        option = unknown[0]
        if meant[option]:
            raise UsageError(f"{self.name}: there is no option {option}; did you mean {meant[option]}?")
        if is_expression_option(option) and any(action.dest == "expressions" for action in self._actions):
            told = f"the expression stands behind the log: jitdb {self.name} LOG 'EXPR'"
            raise UsageError(f"{self.name}: there is no option {option}", told)
        if (
            option == "--last" and "--since" in self._option_string_actions
        ):  # as in --last 1h; of others it is of --dedup
            raise UsageError(f"{self.name}: there is no option --last; did you mean --since?")
        others = [f"`jitdb {name}`" for name in commands_with(option)] if option.startswith("--") else []
        if others:
            have = "has it" if len(others) == 1 else "have it"
            raise UsageError(f"{self.name}: there is no option {option} here; {' and '.join(others)} {have}")
        self.error(f"there is no option {option}")

    def long_options(self) -> list[str]:
        """Its options, by their long names."""
        return [option for option in self._option_string_actions if option.startswith("--")]

    def option(self, flag: str) -> argparse.Action | None:
        """The option with this name."""
        return self._option_string_actions.get(flag)

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """The value of an option. An error of the library becomes one of the option."""
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
