"""Errors as users read them: one line, `jitdb: what happened`, and hints below it. --debug shows tracebacks.

Errors of the library bring their hint for a shell along (see Remedy).
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from jitdb.common.words import counted
from jitdb.display.terminal import one_line
from jitdb.errors import JitdbError, JitdbWarning, MalformedWarning, QueryError

if TYPE_CHECKING:
    from argparse import Namespace

_SHARED: Final = re.compile(r"(\S+\.so[.\d]*): cannot open shared object file")
_STDCXX: Final = "install libstdc++: apt-get install libstdc++6 (Debian, Ubuntu), dnf install libstdc++ (Fedora)"


called: Final[dict[str, str]] = {}  # what messages call a file of ours, by its path, which no user knows


class Failure(Exception):
    """A command cannot do its work, for a reason of the command line. `hint` says what to type next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        if hint:
            self.add_note(hint)


class UsageError(Failure):
    """The command line cannot be understood."""


class Diagnostic(NamedTuple):
    """An error as a user reads it."""

    error: BaseException
    message: str
    hints: tuple[str, ...]
    usage: bool  # the command line is wrong, not the data

    @classmethod
    def of(cls, error: BaseException) -> Diagnostic:
        """The words for an error. Its remedy and its notes become hints."""
        hints = tuple(getattr(error, "__notes__", ()))
        usage = isinstance(error, (QueryError, UsageError))
        if isinstance(error, (JitdbError, JitdbWarning)):
            remedy = (error.remedy.shell,) if error.remedy is not None and error.remedy.shell else ()
            return cls(error, located(error), remedy + hints, usage)
        if isinstance(error, Failure):
            return cls(error, str(error), hints, usage)
        if isinstance(error, KeyboardInterrupt):
            return cls(error, "interrupted", hints, usage)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename is not None else ""
            return cls(error, f"{where}{error.strerror or error}", hints, usage)
        if isinstance(error, MemoryError):
            return cls(error, "there is not enough memory for this", hints, usage)
        if isinstance(error, ImportError) and (found := _needed(error)):
            return cls(error, found[0], (*hints, found[1]), usage)
        report = "this is a mistake in jitdb: please report it, with what --debug shows"
        return cls(error, f"{type(error).__name__}: {error}", (*hints, report), usage)


def _needed(error: ImportError) -> tuple[str, str] | None:
    """What the machine lacks, and how to install it; None if the mistake is in jitdb."""
    shared = _SHARED.search(str(error))  # numpy says it within a longer text
    if shared is not None:
        hint = _STDCXX if shared[1].startswith("libstdc++") else "install the package of your system that has it"
        return f"the library {shared[1]}, which {error.name or 'a package of Python'} needs, is not there", hint
    package = (error.name or "jitdb").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package != "jitdb":
        return f"{package}, which this takes, is not installed", f"pip install {package}"
    return None


def located(error: JitdbError | JitdbWarning) -> str:
    """The file and the reason, without the remedy.

    >>> located(JitdbError("its blocks are of 4,096 bytes", path="a.log", remedy="leave it out"))
    'a.log: its blocks are of 4,096 bytes'
    """
    return error.reason if error.path is None else f"{error.path}: {error.reason}"


def complain(told: Diagnostic, debug: bool = False) -> None:
    """Write the error to standard error."""
    stream = sys.stderr
    if stream is None:
        return
    if debug and not isinstance(told.error, UsageError):
        import traceback

        traceback.print_exception(told.error, file=stream)
        return
    tell = _say_lines if isinstance(told.error, QueryError) else say  # it points at a place in an expression
    tell(f"jitdb: {told.message}", stream)
    for hint in told.hints:
        say(f"  {hint}", stream)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line on standard error, unless it is closed."""
    stream = sys.stderr if stream is None else stream
    if stream is None:
        return
    _say_lines(one_line(text, stream), stream)


def _say_lines(text: str, stream: TextIO) -> None:
    """Print text whose newlines are ours."""
    for path, name in called.items():
        text = text.replace(path, name)
    with suppress(BrokenPipeError):
        print(text, file=stream, flush=True)


def note(options: Namespace, text: str) -> None:
    """Print a note, unless --quiet is given, or the command has printed it already."""
    said: set[str] = vars(options).setdefault("said", set())
    if not options.quiet and text not in said:
        said.add(text)
        say(f"jitdb: {text}")


@contextmanager
def warnings_on_one_line(quiet: bool) -> Iterator[None]:
    """Print jitdb's warnings as `jitdb: warning: …`; of those that differ only in the file, the first.

    Of lines that are left out, the first file's warning is printed at once, and at the end their number in all others.
    """
    said: set[str] = set()
    lacking: dict[str, int] = {}  # the lines that are left out, by file

    def show(message: Warning | str, *rest: Any, **named: Any) -> None:
        if not isinstance(message, JitdbWarning):
            usual(message, *rest, **named)
        elif isinstance(message, MalformedWarning) and message.path is not None and lacking:
            lacking.setdefault(message.path, message.count)
        elif not quiet and message.reason not in said:
            if isinstance(message, MalformedWarning) and message.path is not None:
                lacking[message.path] = message.count
            said.add(message.reason)
            is_kept = message.path not in called  # standard input is gone when somebody would look into it
            remedy = f"; {message.remedy.shell}" if is_kept and message.remedy and message.remedy.shell else ""
            say(f"jitdb: warning: {located(message)}{remedy}")

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("always", JitdbWarning)
        warnings.showwarning = show
        yield
    _tell_others(lacking)


@contextmanager
def shown_texts(are_shown: bool) -> Iterator[None]:
    """Where lines of text beside JSON are shown, no warning says that they are left out."""
    with warnings.catch_warnings():
        if are_shown:
            warnings.filterwarnings("ignore", r"(?s).*\bwithout JSON\b", MalformedWarning)
        yield


def _tell_others(lacking: Mapping[str, int]) -> None:
    others = list(lacking.values())[1:]
    if others:
        lines, files = counted(sum(others), "line", "lines"), counted(len(others), "more file", "more files")
        say(f"jitdb: warning: {lines} of {files} left out, too: {list(lacking)[1]}{', …' if len(others) > 1 else ''}")
