"""Telling how far a scan is: a status for programs, a bar for people who wait longer than a second."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, Final

PATIENCE: Final = 1.0  # seconds before a bar appears


@dataclass(frozen=True, slots=True)
class Status:
    """What the engine does now.

    state:   "idle" or "scanning"
    done, total: log bytes of the running (or last) scan
    indexes: names of the indexes that the scan brings up to date
    """

    state: str = "idle"
    done: int = 0
    total: int = 0
    indexes: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """How much of the scan is done, 0 to 100."""
        return 100.0 * self.done / self.total if self.total else 100.0


def interactive() -> bool:
    """Whether somebody looks: a terminal on standard error, or a notebook."""
    if "ipykernel" in sys.modules:
        return True
    return bool(sys.stderr and sys.stderr.isatty())


class Bar:
    """A progress bar that appears when the work takes longer than PATIENCE, and only where somebody looks.

    Use as a context manager; call with the bytes done so far.
    """

    def __init__(self, title: str, total: int, shown: bool | None = None) -> None:
        self._title = title
        self._total = total
        self._wanted = interactive() if shown is None else shown
        self._begin = time.monotonic()
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int) -> None:
        if not self._wanted:
            return
        if self._progress is None:
            if time.monotonic() - self._begin < PATIENCE:
                return
            self._open()
        self._progress.update(self._task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(self._title, total=self._total)
        self._progress.start()
