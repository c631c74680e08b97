"""The loop of `jitdb tail`: write what came, keep the place after it, wait for more.

The place moves only after records were written, and is saved after that: so none is left out, however the program ends.
A signal takes effect between two lines: then none comes twice, either.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from jitdb.cli.failures import Failure
from jitdb.cli.opening import exists
from jitdb.cli.output.output import STDOUT, flush, named
from jitdb.cli.places import read_place, written
from jitdb.cli.signals import Ending
from jitdb.display.terminal import visible_bytes
from jitdb.errors import QueryError

if TYPE_CHECKING:
    from jitdb.log.source import LogSource
    from jitdb.operators.question import Feed, Portion

LOOK: Final = 0.5  # seconds between looks whether somebody still reads, while nothing comes
_ASK: Final = 100  # milliseconds between looks whether to stop, while the reader is slow
_PATIENCE: Final = 2.0  # seconds that a slow reader has for the rest of a line, when asked to stop
_LONGEST: Final = 1 << 28  # bytes of a file with a place: about 100,000 logs
_SAVE: Final = 0.25  # seconds between two savings of the place: each waits for the disk


class Pipe:
    """Standard output without a buffer, so that each byte written is known. Raises Failure without standard output."""

    def __init__(self, *, is_printable: bool = False) -> None:
        """is_printable: nothing in what is written acts on a terminal but what is meant to"""
        flush()
        try:
            self._fd = sys.stdout.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise Failure("there is no standard output to write to") from error
        self._room, self._end = select.poll(), select.poll()
        self._room.register(self._fd, select.POLLOUT)
        self._end.register(self._fd, 0)  # reports errors only
        self._is_guarded = sys.stdout.isatty() and not is_printable
        self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)

    def write(self, lines: Sequence[bytes], asked: Callable[[], bool]) -> int:
        """Write the lines and return their number. Once `asked` to stop, it ends after the current line; if the reader
        does not take the rest of that, it does not count. Raises BrokenPipeError, OSError.
        """
        if self._is_guarded:
            lines = list(map(visible_bytes, lines))
        ends = list(accumulate(map(len, lines)))
        data = memoryview(b"".join(lines))
        done, stop, patience = 0, len(data), float("inf")
        with named(STDOUT):
            while done < stop and time.monotonic() < patience:
                if patience == float("inf") and asked():
                    whole = bisect_right(ends, done)
                    stop = ends[whole] if done > (ends[whole - 1] if whole else 0) else done
                    patience = time.monotonic() + _PATIENCE
                elif self._room.poll(_ASK):
                    # A pipe that is ready takes this many bytes at once: the write never waits.
                    done += os.write(self._fd, data[done : min(stop, done + select.PIPE_BUF)])
        return bisect_right(ends, done)

    def check(self) -> None:
        """Raises BrokenPipeError if nobody reads any more."""
        if self._end.poll(0):
            raise BrokenPipeError

    def sync(self) -> None:
        """Make durable what was written, if it is a file."""
        if self._is_file:
            with named(STDOUT):
                os.fsync(self._fd)


class PlaceFile:
    """A file that keeps a place. `place` is what it holds; None while there is no such file."""

    def __init__(self, path: str, logs: Iterable[str]) -> None:
        """Raises Failure for a file that holds something else and must not be overwritten, such as one of the logs;
        LogError if another user planted it.
        """
        from jitdb.log.io.filenames import followed

        self._path = followed(path, is_written=True)
        self.name = path
        folder = os.path.dirname(path)
        if folder and not exists(folder):
            raise Failure(f"{path}: there is no folder {folder}")
        self.place = self._read(logs) if exists(path) else None

    def _read(self, logs: Iterable[str]) -> str:
        from jitdb.log.io.osfile import Descriptor, fs

        if any(exists(log) and os.path.samefile(self._path, log) for log in logs):
            raise Failure(f"{self.name}: this is a log itself; choose another file for the place")
        if not os.path.isfile(self._path):
            raise Failure(f"{self.name}: this is no file, and cannot keep a place")
        with Descriptor(fs, self._path, os.O_RDONLY) as fd:
            text = fs.read(fd, _LONGEST, 0).decode(errors="replace")
        found = read_place(text)
        if found is None:
            raise Failure(
                f"{self.name}: this holds no place in a log, as `jitdb tail --cursor` keeps it, or is damaged",
                "name another file, or remove this one to begin anew",
            )
        return found

    def save(self, place: str) -> None:
        """Write the place durably, unless it is there already. Raises OSError."""
        from jitdb.log.io.osfile import fs

        if place != self.place:
            try:
                fs.replace_file(self._path, written(place).encode())
            except OSError as error:  # it names the temporary file
                raise OSError(error.errno, error.strerror, self.name) from error
            self.place = place


class Follower:
    """Writes the records of a feed, at most `limit` of them; keeps the place in `keeper`.

    log:  the log of the feed; None for several
    line: makes the line of a record
    """

    def __init__(
        self,
        log: LogSource | None,
        feed: Feed,
        pipe: Pipe,
        ending: Ending,
        line: Callable[[Any], bytes],
        *,
        limit: int | None,
        keeper: PlaceFile | None,
    ) -> None:
        self._log = log
        self._identity = None if log is None else log.identity
        self._feed = feed
        self._pipe = pipe
        self._line = line
        self._keeper = keeper
        self._left = limit
        self._ending = ending
        self._place: str | None = None  # after what was written
        self._saved = float("-inf")  # when

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Go on until the limit, or until all is read once is_over().

        Raises KeyboardInterrupt, BrokenPipeError, Failure, LogError, OSError.
        """
        wake = threading.Event()
        self._note_place()
        self._save()  # an error of saving comes before anything is written
        unwatch = self._feed.watch(wake.set)
        try:
            while self._left != 0:
                wake.clear()
                is_last = is_over()
                portion = self._read()
                if portion is None:
                    self._note_place()
                else:
                    self._write(portion)
                self._save_in_time()
                if portion is None and is_last:
                    return
                if portion is None:
                    self._wait(wake, is_over)
        finally:
            unwatch()
            self._save()

    def _read(self) -> Portion | None:
        try:
            return self._feed.read()
        except QueryError as error:
            if self._log is None or self._log.identity == self._identity:
                raise
            raise Failure(
                f"{self._log.path}: another log has taken its place: it was truncated, replaced or repaired",
                "to see the records of that one, begin anew with --old",
            ) from error

    def _write(self, portion: Portion) -> None:
        lines = list(map(self._line, portion.data[: self._left]))
        with self._ending.undisturbed():
            count = self._pipe.write(lines, lambda: self._ending.asked)
            if count:
                self._place = portion.cursor(count)
            if self._left is not None:
                self._left -= count

    def _wait(self, wake: threading.Event, is_over: Callable[[], bool]) -> None:
        while not wake.wait(_SAVE if self._is_unsaved else LOOK) and not is_over():
            self._pipe.check()
            self._ending.check()
            self._save_in_time()

    # --- the place -------------------------------------------------------------------------------------------------

    def _note_place(self) -> None:
        """All that was read is written: the place is after all that was looked at."""
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
