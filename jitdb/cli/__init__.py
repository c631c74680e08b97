"""The command line. `main` finds the command, runs it, and turns each error into one line and an exit code.

A command's module is imported when the command is typed: a count whose indexes are fresh should take no longer than
numpy needs to start. So nothing here imports numpy, rich or numba, and regular expressions are compiled late.

    0    done; also when a reader of the output has had enough (`jitdb query … | head`)
    1    failed: the log, the data or the disk
    2    the command line or an expression cannot be understood
    130  interrupted with Ctrl-C; while the program loads, the signal ends it (130 to a shell, too)
    143  ended with SIGTERM, of a command that runs until it is stopped (tail)
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module

from jitdb.cli.commands import COMMANDS, find_command
from jitdb.cli.failures import Diagnostic, complain, warnings_on_one_line
from jitdb.cli.output.output import flush
from jitdb.cli.signals import handlers_kept, none_lost
from jitdb.display.terminal import terminals_guarded

__all__ = ["main"]

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command (`sys.argv` by default) and return its exit code. Raises nothing that a user can cause."""
    if argv is None:
        # numpy's linear algebra is not used here, and would start a thread for each core.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # The values of a large answer live until it is shown: to look for cycles among them took a third of the time.
        gc.set_threshold(100_000, 50, 100)
        _prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    quiet = "--quiet" in arguments or "-q" in arguments
    handler = signal.getsignal(signal.SIGINT)
    is_alone = argv is None and handler in (signal.SIG_DFL, signal.SIG_IGN)  # see __main__.py
    hears = is_alone and handler is signal.SIG_DFL  # what a shell runs in the background ignores Ctrl-C
    if "_ARGCOMPLETE" in os.environ:
        from jitdb.cli.commands.completion import complete

        complete()
    with terminals_guarded(), warnings_on_one_line(quiet), none_lost(), handlers_kept(argv is not None):
        try:
            code = _done(arguments, debug, is_alone, hears)
            if hears:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to cut short
            return code
        except KeyboardInterrupt as interrupt:
            if argv is None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # its last message is not cut short
            complain(Diagnostic.of(interrupt), debug)
            return INTERRUPTED


def _tells_by_code(arguments: list[str]) -> bool:
    """Whether exit code 1 says that no record matches, as grep has it."""
    return ("--quiet" in arguments or "-q" in arguments) and not {"count", "query"}.isdisjoint(arguments[:2])


def _prepare_streams() -> None:
    """Keep the numbers of closed standard streams taken, or a log could get one and receive what libraries print. Let
    names of files be printed as they are.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(null, True)
    os.close(null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_utf8 = sys.stdout.encoding.lower() == "utf-8"
        sys.stdout.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def _done(arguments: list[str], debug: bool, is_alone: bool, hears: bool) -> int:
    """Run the command and return its exit code. Raises KeyboardInterrupt, on which the command has cleaned up."""
    try:
        run = _command(arguments, is_alone)
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run()
        flush()
        return code
    except SystemExit as done:  # argparse's way to end after --help
        return int(done.code or OK)
    except BrokenPipeError:
        _drop_output()
        return OK
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps it while it makes a class
            raise error.__cause__ from None
        told = Diagnostic.of(error)
        complain(told, debug)
        _drop_unwritable(error)
        return USAGE if told.usage or _tells_by_code(arguments) else FAILED


def _command(arguments: list[str], is_alone: bool) -> Callable[[], int]:
    early = [argument for argument in arguments[:1] if argument in ("--debug", "--quiet", "-q")]
    rest = arguments[len(early) :]
    if not rest or rest[0] not in COMMANDS:
        from jitdb.cli.help import what_to_show

        return what_to_show(rest)
    name, *rest = rest
    command = find_command(name)
    options = command.parser.read([*early, *rest])
    options.is_alone = is_alone
    if command.look is None:  # else it may do without
        import_module("numpy")  # while Ctrl-C still ends the process: numpy would turn it into an ImportError
    return lambda: command.run(options)


def _drop_output() -> None:
    """Keep Python from complaining at exit that nobody reads standard output any more."""
    try:
        target = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, target)
    os.close(null)


def _drop_unwritable(error: Exception) -> None:
    """After a failed write to standard output, drop the rest of its buffer: it would fail again at exit."""
    if isinstance(error, OSError):
        try:
            flush()
        except OSError:
            _drop_output()
