"""What goes wrong in a magic, in the words of the command line: a cell that failed, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from jitdb.cli.failures import Diagnostic, Failure, warnings_on_one_line
from jitdb.errors import JitdbError

_TOLD = (JitdbError, Failure, OSError, MemoryError, ImportError)


class MagicFailed(Exception):
    """What IPython shows of an error: its message and what to do. The error itself is its cause."""

    def __init__(self, told: Diagnostic) -> None:
        super().__init__("\n".join((told.message, *(f"  {hint}" for hint in told.hints))))

    def _render_traceback_(self) -> list[str]:  # which IPython asks for, of whatever has it
        return [f"jitdb: {self}"]


class MagicInterrupted(MagicFailed, KeyboardInterrupt):
    """The same of a cell that was stopped."""


@contextmanager
def told_shortly(quiet: bool = False) -> Iterator[None]:
    """Within this, what a user can cause is told as a shell tells it; notes and warnings as lines below the cell.

    Raises MagicFailed.
    """
    try:
        with redirect_stderr(sys.stdout), warnings_on_one_line(quiet):
            yield
    except KeyboardInterrupt as interrupt:
        raise MagicInterrupted(Diagnostic.of(interrupt)) from interrupt
    except _TOLD as error:
        raise MagicFailed(Diagnostic.of(error)) from error
