"""What goes wrong, in one line a person can act on: `jitdb: what happened`, and a hint below it.

Errors of the library speak to Python programmers (`pass codec='bipf'`); here they are put into the words of the
command line. A traceback is shown by --debug only.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TextIO

from jitdb.errors import JitdbError, JitdbWarning, LogReadOnly, QueryError


class UsageError(Exception):
    """The command line cannot be understood. `hint` is the next thing to type."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.add_note(hint)


class Failure(Exception):
    """A command cannot do its work, for a reason that only the command line knows."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.add_note(hint)


class Told(NamedTuple):
    """An error as a user reads it."""

    error: BaseException
    message: str
    hints: tuple[str, ...]
    usage: bool  # the user's words are at fault, not the data

    @classmethod
    def of(cls, error: BaseException) -> Told:
        """The words for an error. What was added by add_note becomes a hint."""
        hints = tuple(getattr(error, "__notes__", ()))
        if isinstance(error, KeyboardInterrupt):
            return cls(error, "interrupted", hints, False)
        if isinstance(error, QueryError):
            return cls(error, str(error), hints, True)
        if isinstance(error, (UsageError, Failure)):
            return cls(error, str(error), hints, isinstance(error, UsageError))
        if isinstance(error, LogReadOnly) and error.path is not None and not os.path.exists(error.path):
            folder = os.path.dirname(error.path) or "."
            return cls(
                error, f"{error.path}: the folder {folder} may not be written: no log can be made there", hints, False
            )
        if isinstance(error, JitdbError):
            return cls(error, in_options(str(error)), hints, False)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename is not None else ""
            return cls(error, f"{where}{error.strerror or error}", hints, False)
        if isinstance(error, MemoryError):
            return cls(error, "there is not enough memory for this", hints, False)
        report = "this is a mistake in jitdb: please report it, with what --debug shows"
        return cls(error, f"{type(error).__name__}: {error}", (*hints, report), False)


# The library's advice, in options of the command line.
_OPTIONS: Final = (
    (r"pass create=True for a new, empty log", "make a log with `jitdb import`"),
    (r" \(without read_only=True it would be made\)", ""),
    (
        r"has it open for writing; open it with read_only=True, or close the other one first",
        "is writing to it: wait for it, or stop it",
    ),
    (r": open it with read_only=True", ""),
    (r"its sidecar (\S+) may not be written", r"the folder \1 beside it may not be made or written"),
    (r"codec=(['\"])(\w+)\1", r"--codec \2"),
    (r"block_size=(\d+)", r"--block-size \1"),
    (r"block_size=", "--block-size"),
    (r"\bblock_size\b", "--block-size"),
    (r"as_offsets\(\)", "--offsets"),
    (r"repair the log first \(jitdb repair, or Log\.repair\(\)\)", "repair it first:"),
)


def in_options(message: str) -> str:
    """The library's words in those of the command line.

    >>> in_options("they look like bipf: pass codec='bipf'")
    'they look like bipf: pass --codec bipf'
    """
    for pattern, words in _OPTIONS:
        message = re.sub(pattern, words, message)
    return message


def complain(told: Told, debug: bool = False) -> None:
    """Write the error to standard error."""
    stream = sys.stderr
    if stream is None:
        return
    if debug and not isinstance(told.error, UsageError):
        import traceback

        traceback.print_exception(told.error, file=stream)
        return
    say(f"jitdb: {told.message}", stream)
    for hint in told.hints:
        say(f"  {hint}", stream)


def say(text: str, stream: TextIO | None = None) -> None:
    """One line on standard error. Whoever closed it does not want to know."""
    stream = sys.stderr if stream is None else stream
    if stream is None:
        return
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
    except BrokenPipeError:
        pass  # what is said there is no result


@contextmanager
def warnings_on_one_line(quiet: bool) -> Iterator[None]:
    """Show jitdb's warnings as `jitdb: warning: …`, those that differ only in the file they name once."""
    said: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, JitdbWarning):
            usual(message, category, filename, lineno, file, line)
            return
        text = in_options(str(message))
        kind = text.partition(": ")[2] or text
        if not quiet and kind not in said:
            said.add(kind)
            say(f"jitdb: warning: {text}", file)

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("always", JitdbWarning)
        warnings.showwarning = show
        yield
