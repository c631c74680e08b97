"""Telling people who wait that the scanner is being compiled, which happens once for an installation."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jitdb.cli.error_text import say
from jitdb.cli.opening import wanted_progress
from jitdb.engine.progress import interactive

if TYPE_CHECKING:
    from jitdb.engine.database import JITDB
    from jitdb.operators import Operation


class Compilation:
    """How long the compiler ran: `seconds`, and whether at all: `happened`."""

    def __init__(self) -> None:
        self.happened = False
        self.seconds = 0.0


@contextmanager
def compilation_watched(tell: Callable[[], object]) -> Iterator[Compilation]:
    """Call `tell` when numba begins to compile, once, which it does where there are no native kernels."""
    from jitdb.common.kernels import WAY

    found = Compilation()
    if WAY != "numba":
        yield found
        return
    from numba.core import event

    class Watch(event.Listener):
        # Events nest: a kernel that calls another is compiled around it.
        depth = 0
        begin = 0.0

        def on_start(self, _: Any) -> None:
            if not self.depth:
                self.begin = time.perf_counter()
            self.depth += 1
            if not found.happened:
                found.happened = True
                tell()

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if not self.depth:
                found.seconds += time.perf_counter() - self.begin

    with event.install_listener("numba:compile", Watch()):
        yield found


@contextmanager
def compilation_noted(db: JITDB, options: Namespace, *operations: Operation | None) -> Iterator[None]:
    """Tell somebody who looks, if these questions need a scan and it must be compiled first."""
    shown = wanted_progress(options) is None and interactive()
    if not shown or not any(db.explain(operation)["scan_bytes"] for operation in operations):
        yield
        return
    with compilation_watched(lambda: say("jitdb: compiling the scanner for this machine, once; it takes some seconds")):
        yield
