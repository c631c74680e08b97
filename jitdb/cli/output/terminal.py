"""The console that tables are printed on."""

from __future__ import annotations

import sys
from typing import NoReturn

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """A reader who has had enough is no failure: rich would end the process with exit code 1."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output, in color where it is a terminal."""
    return _Console(file=sys.stdout, highlight=False)
