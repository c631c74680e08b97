"""How far a scan is: a status for programs, a bar for people who wait longer than a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, cast

if TYPE_CHECKING:
    from jitdb.display.parts import Display

from jitdb.common.asyncio_bridge import in_notebook
from jitdb.display.cells import printable
from jitdb.display.terminal import Terminal

PATIENCE: Final = 1.0  # seconds before a bar appears
_REDRAW: Final = 0.1  # seconds between changes of a notebook's bar: each is a message to the browser
_STYLE: Final = (  # the color of the theme, in Jupyter and VS Code
    "accent-color: var(--jp-brand-color1, var(--vscode-progressBar-background, #3d73d8)); "
    "vertical-align: middle; width: 20em"
)


class IndexStatus(NamedTuple):
    """How far one index is. total: bytes of the log that it lacked when the scan began; done: of these, scanned."""

    name: str
    done: int = 0
    total: int = 0

    @property
    def percent(self) -> float:
        return percent(self.done, self.total)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.done:,} of {self.total:,} bytes>"


class Status(NamedTuple):
    """What the engine is doing.

    state:   "idle", "scanning", or "waiting" for another process (or database) that builds the same indexes
    done, total: log bytes of the running (or last) scan
    indexes: those that the scan brings up to date
    """

    state: str = "idle"
    done: int = 0
    total: int = 0
    indexes: tuple[IndexStatus, ...] = ()

    @property
    def percent(self) -> float:
        return percent(self.done, self.total)

    def _display(self) -> Display:
        from jitdb.common.words import size_in_words
        from jitdb.display.parts import Display
        from jitdb.display.sheet import Sheet

        rows = [[each.name, size_in_words(each.total), each.percent / 100] for each in self.indexes]
        bars = 2 if rows else None
        sheet = Sheet(["index", "to scan", "share"], rows, bars, {}, "")
        done = f"{size_in_words(self.done)} of {size_in_words(self.total)}, {self.percent:.0f} %" if self.total else ""
        return Display(self.state, done, [sheet])

    def __str__(self) -> str:
        from jitdb.display.text import text_of

        return text_of(self._display())

    def _repr_html_(self) -> str:
        from jitdb.display.html import html_of

        return html_of(self._display())


def percent(done: int, total: int) -> float:
    return 100.0 * done / total if total else 100.0


def interactive() -> bool:
    """Whether a person is watching: standard error is a terminal, or this is a notebook."""
    return in_notebook() or bool(sys.stderr and sys.stderr.isatty())


class Bar:
    """A progress bar that appears when the work takes longer than PATIENCE, if a person is watching.

    A context manager, to be called with the bytes that are done.
    """

    def __init__(self, title: str, total: int, shown: bool | None = None) -> None:
        self._title = title
        self._total = total
        self._wanted = interactive() if shown is None else shown
        self._begin = time.monotonic()
        self._drawn: _Terminal | _Notebook | None = None

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int) -> None:
        if not self._wanted:
            return
        if self._drawn is None:
            if time.monotonic() - self._begin < PATIENCE:
                return
            self._drawn = (_Notebook if in_notebook() else _Terminal)(self._title, self._total)
        self._drawn.update(done)

    def __exit__(self, *_: object) -> None:
        if self._drawn is not None:
            self._drawn.stop()


class _Terminal:
    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.file_proxy import FileProxy
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self._progress = Progress(
            *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._progress.add_task(printable(title), total=total)
        self._progress.start()
        self._before = sys.stderr
        if console.is_terminal:  # other output appears above the bar
            sys.stderr = cast(TextIO, Terminal(cast(TextIO, FileProxy(console, console.file))))

    def update(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def stop(self) -> None:
        self._progress.stop()
        sys.stderr = self._before


class _Notebook:
    """The bar below a cell: a line that changes and is gone at the end, without widgets or scripts."""

    def __init__(self, title: str, total: int) -> None:
        import IPython.display

        self._title = title
        self._total = max(total, 1)
        self._drawn = 0.0
        self._handle: Any = IPython.display.display(self._at(0), raw=True, display_id=True)

    def update(self, done: int) -> None:
        now = time.monotonic()
        if now - self._drawn >= _REDRAW:
            self._drawn = now
            self._handle.update(self._at(done), raw=True)

    def stop(self) -> None:
        self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _at(self, done: int) -> dict[str, str]:
        from html import escape

        percent = min(100 * done // self._total, 100)
        bar = "█" * (percent // 4) + "░" * (25 - percent // 4)
        far = f"{percent} % of {self._total / 1e6:,.0f} MB"
        gauge = f'<progress value="{percent}" max="100" style="{_STYLE}"></progress>'
        return {
            "text/plain": f"{self._title} {bar} {far}",
            "text/html": f'<div role="status">{escape(self._title)} {gauge} {far}</div>',
        }
