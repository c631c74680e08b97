"""Standard output for lines that come one by one: each is out at once, and a reader who has gone is noticed."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from jitdb.cli.error_text import Failure
from jitdb.cli.output.output import STDOUT, flush, named

_LOOK: Final = 100  # milliseconds between looks whether to stop, while the reader is slow
_PATIENCE: Final = 2.0  # seconds that a slow reader has for the rest of a line, when asked to stop


class Pipe:
    """Standard output, without a buffer of ours: what was written is known to the byte. Raises Failure without one."""

    def __init__(self) -> None:
        flush()
        try:
            self._fd = sys.stdout.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise Failure("there is no standard output to write to") from error
        self._room, self._end = select.poll(), select.poll()
        self._room.register(self._fd, select.POLLOUT)
        self._end.register(self._fd, 0)  # tells of errors only
        self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)

    def write(self, lines: Sequence[bytes], asked: Callable[[], bool]) -> int:
        """Write the lines, and give their number: fewer, but whole ones, when `asked` to stop meanwhile.

        A reader who then takes no more gets a part of a line, which does not count. Raises BrokenPipeError, OSError.
        """
        ends = list(accumulate(map(len, lines)))
        data = memoryview(b"".join(lines))
        done, stop, patience = 0, len(data), float("inf")
        with named(STDOUT):
            while done < stop and time.monotonic() < patience:
                if patience == float("inf") and asked():
                    whole = bisect_right(ends, done)
                    stop = ends[whole] if done > (ends[whole - 1] if whole else 0) else done
                    patience = time.monotonic() + _PATIENCE
                elif self._room.poll(_LOOK):
                    # So many bytes a pipe takes at once when it takes any: this never waits.
                    done += os.write(self._fd, data[done : min(stop, done + select.PIPE_BUF)])
        return bisect_right(ends, done)

    def check(self) -> None:
        """Raises BrokenPipeError when nobody reads any more."""
        if self._end.poll(0):
            raise BrokenPipeError

    def sync(self) -> None:
        """What was written into a file becomes durable."""
        if self._is_file:
            with named(STDOUT):
                os.fsync(self._fd)
