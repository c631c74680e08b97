"""The command line. `main` finds the command, runs it, and turns whatever goes wrong into one line and an exit code.

Each command is a file of its own, imported when it is asked for: a count whose indexes are fresh should take no longer
than numpy needs to start, so nothing here imports numpy, rich or numba, and regular expressions wait for their use.

    0    done; also when a reader of the output has had enough (`jitdb query … | head`)
    1    failed: the log, the data or the disk
    2    the command line or an expression cannot be understood
    130  interrupted with Ctrl-C; while it is loaded, the signal ends it (130 to a shell, too)
    143  a command that goes on until it is told to end (tail) was ended with SIGTERM
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module

from jitdb.cli.commands import COMMANDS, module_of
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
    """Run one command (`sys.argv` by default); gives the exit code and never raises what a user can cause."""
    if argv is None:
        # numpy's linear algebra, which nothing here needs, would start a thread for each core
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        _prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    quiet = "--quiet" in arguments or "-q" in arguments
    is_alone = argv is None and signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # see __main__.py
    if "_ARGCOMPLETE" in os.environ:
        from jitdb.cli.completion import complete

        complete()
    with terminals_guarded(), warnings_on_one_line(quiet), none_lost(), handlers_kept(argv is not None):
        try:
            code = _done(arguments, debug, is_alone)
            if is_alone:
                signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left that could be cut short
            return code
        except KeyboardInterrupt as interrupt:
            if argv is None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends, and its last word is heard
            complain(Diagnostic.of(interrupt), debug)
            return INTERRUPTED


def _prepare_streams() -> None:
    """Standard streams that somebody closed stay so, and no log is opened in their place: what libraries write there
    would go into it. Names of files go out as they are.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(null, True)
    os.close(null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        is_utf8 = sys.stdout.encoding.lower() == "utf-8"
        sys.stdout.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def _done(arguments: list[str], debug: bool, is_alone: bool) -> int:
    """Run the command: its exit code. Raises KeyboardInterrupt, by which it leaves in order what it began."""
    try:
        run = _command(arguments, is_alone)
        if is_alone:
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
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 makes another error of it as a class is made
            raise error.__cause__ from None
        told = Diagnostic.of(error)
        complain(told, debug)
        _drop_unwritable(error)
        return USAGE if told.usage else FAILED


def _command(arguments: list[str], is_alone: bool) -> Callable[[], int]:
    early = [argument for argument in arguments[:1] if argument in ("--debug", "--quiet", "-q")]
    rest = arguments[len(early) :]
    if not rest or rest[0] not in COMMANDS:
        from jitdb.cli.help import what_to_show

        return what_to_show(rest)
    name, *rest = rest
    from jitdb.cli.parser import Program

    options = Program().parse_args([name, *early, *rest])
    options.is_alone = is_alone
    if name not in ("count", "values"):  # which may do without
        import_module("numpy")  # here, for all others need it, and it makes an ImportError of a Ctrl-C that it hears
    return lambda: int(module_of(name).run(options))


def _drop_output() -> None:
    """Nobody reads standard output any more: keep Python from complaining about that when it flushes at exit."""
    try:
        target = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # no stdout, or one that is no file
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, target)
    os.close(null)


def _drop_unwritable(error: Exception) -> None:
    """After a failed write to standard output the rest in its buffer would fail again at exit."""
    if isinstance(error, OSError):
        try:
            flush()
        except OSError:
            _drop_output()
