"""The work of `jitdb tail`: hand out what came, keep the place behind it, wait for more.

Only what was written out moves the place, and the place is saved after that: so nothing is left out, whatever ends
the program. A signal is answered between two lines: then nothing comes twice, either.
"""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.compiling import compilation_noted
from jitdb.cli.cursor_files import PlaceFile
from jitdb.cli.error_text import Failure
from jitdb.cli.output.notes import note_unknown_fields
from jitdb.cli.output.pipe import Pipe
from jitdb.cli.signals import Ending
from jitdb.errors import QueryError
from jitdb.log.source import LogSource

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from jitdb.engine.database import JITDB
    from jitdb.engine.reading.feed import Feed, Portion
    from jitdb.log.codecs import Codec
    from jitdb.operators import Operation

_LOOK: Final = 0.5  # seconds between looks whether somebody still reads, while nothing comes
_SAVE: Final = 0.25  # seconds between two savings of the place: each waits for the disk


def await_first(log: LogSource, pipe: Pipe) -> bool:
    """Wait while the file is empty and no log yet: it gets its name with the first record. Whether it was."""
    if _has_name(log):
        return False
    wake = threading.Event()
    unwatch = log.watch(wake.set)
    try:
        while not _has_name(log):
            wake.clear()
            while not wake.wait(_LOOK):
                pipe.check()
    finally:
        unwatch()
    return True


def _has_name(log: LogSource) -> bool:
    return log.durable_end > 0 or is_named(log)


def is_named(log: LogSource) -> bool:
    """Whether the log is the same one for the next process, too: cursors name it."""
    return log.identity_is_stored


def get_ready(db: JITDB, operation: Operation | None, options: Namespace) -> None:
    """Bring the indexes up to date; a word on fields that nobody has."""
    with compilation_noted(db, options, operation):
        db.prepare(_question(operation))
    if operation is not None and not options.quiet and not db.count(operation):
        note_unknown_fields(db, operation, options)


def load_scanner(db: JITDB, operation: Operation | None) -> None:
    """While there is nothing else to do: the first record that comes shall not wait half a second for that."""
    from jitdb.engine.database import JITDB

    if "jitdb.engine.building.scan" not in sys.modules and db.log.durable_end:
        JITDB(_FirstBlock(db.log), None, threads=1, progress=False).prepare(_question(operation))


def _question(operation: Operation | None) -> Operation:
    from jitdb.operators import everything

    return everything() if operation is None else operation


class _FirstBlock(LogSource):
    """A log as if it ended with its first block: soon scanned."""

    def __init__(self, log: LogSource) -> None:
        self._log = log
        self._end = min(log.durable_end, log.block_size)

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def codec(self) -> Codec:
        return self._log.codec

    @property
    def block_size(self) -> int:
        return self._log.block_size

    @property
    def durable_end(self) -> int:
        return self._end

    @property
    def identity(self) -> bytes:
        return self._log.identity

    @property
    def generation(self) -> int:
        return self._log.generation

    @property
    def identity_is_stored(self) -> bool:
        return False

    def read_blocks(self, start: int, stop: int, buffer: memoryview | NDArray[np.uint8]) -> int:
        return self._log.read_blocks(start, min(stop, self._end), buffer)


class Follower:
    """Writes what a feed gives, each record as a `line`, at most `limit` of them; keeps the place in `keeper`.

    `prepare` is called before it waits for the first time.
    """

    def __init__(
        self,
        log: LogSource,
        feed: Feed,
        pipe: Pipe,
        ending: Ending,
        *,
        line: Callable[[Any], bytes],
        limit: int | None,
        keeper: PlaceFile | None,
        prepare: Callable[[], None],
    ) -> None:
        self._log = log
        self._identity = log.identity
        self._feed = feed
        self._pipe = pipe
        self._keeper = keeper
        self._line = line
        self._left = limit
        self._ending = ending
        self._prepare: Callable[[], None] | None = prepare
        self._place: str | None = None  # behind what was written
        self._saved = float("-inf")  # when

    def run(self) -> None:
        """Go on until the limit. Raises KeyboardInterrupt, BrokenPipeError, Failure, LogError, OSError."""
        wake = threading.Event()
        self._note_place()
        self._save()  # what keeps it from being saved is told before anything is written
        unwatch = self._feed.watch(wake.set)
        try:
            while self._left != 0:
                wake.clear()
                portion = self._read()
                if portion is None:
                    self._note_place()
                else:
                    self._write(portion)
                self._save_in_time()
                if portion is None:
                    self._wait(wake)
        finally:
            unwatch()
            self._save()

    def _read(self) -> Portion | None:
        try:
            return self._feed.read()
        except QueryError as error:
            if self._log.identity == self._identity:
                raise
            raise Failure(
                f"{self._log.path}: another log has taken its place: it was truncated, replaced or repaired",
                "to see the records of that one, begin anew with --old",
            ) from error

    def _write(self, portion: Portion) -> None:
        lines = [self._line(record) for record in portion.data[: self._left]]
        with self._ending.undisturbed():
            count = self._pipe.write(lines, lambda: self._ending.asked)
            if count:
                self._place = portion.cursor(count)
            if self._left is not None:
                self._left -= count

    def _wait(self, wake: threading.Event) -> None:
        if self._prepare is not None:
            prepare, self._prepare = self._prepare, None
            prepare()
        while not wake.wait(_SAVE if self._is_unsaved else _LOOK):
            self._pipe.check()
            self._ending.check()
            self._save_in_time()

    # --- the place -------------------------------------------------------------------------------------------------

    def _note_place(self) -> None:
        """Nothing that was read is left to be written: the place is behind all that was looked at."""
        if self._keeper is not None:
            self._place = self._feed.cursor

    @property
    def _is_unsaved(self) -> bool:
        return self._keeper is not None and self._place != self._keeper.place

    def _save_in_time(self) -> None:
        if self._is_unsaved and time.monotonic() - self._saved >= _SAVE:
            self._save()

    def _save(self) -> None:
        if self._keeper is None or self._place is None:
            return
        with self._ending.undisturbed():
            self._pipe.sync()
            self._keeper.save(self._place)
            self._saved = time.monotonic()
