"""Where results go: standard output, or a file. Always bytes, whatever the terminal's locale.

An `Output` gathers lines; a `Pipe` is for those that come one by one: each is out at once, and a reader who has gone is
noticed.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import BinaryIO, Final

from jitdb.cli.error_text import Failure

STDOUT = "standard output"
_BUFFER = 1 << 16  # bytes gathered before they are written to a pipe or a file


@contextmanager
def named(name: str) -> Iterator[None]:
    """An OSError of a write does not say of which file: it gets `name`."""
    try:
        yield
    except OSError as error:
        if error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = name
        raise


def flush() -> None:
    """What was printed becomes visible, or an error."""
    if sys.stdout is not None:
        with named(STDOUT):
            sys.stdout.flush()


def show(text: str) -> None:
    """Print a line of results."""
    with named(STDOUT):
        print(text)


class Output:
    """Takes lines; counts them."""

    def __init__(self, stream: BinaryIO, name: str, flush: bool) -> None:
        self._stream = stream
        self._name = name
        self._flush = flush
        self.lines = 0

    def write(self, lines: Iterable[bytes]) -> None:
        """Write whole lines. On a terminal they appear at once."""
        gathered: list[bytes] = []
        held = 0
        try:
            for line in lines:
                gathered.append(line)
                held += len(line)
                if held >= _BUFFER:
                    full, gathered, held = gathered, [], 0
                    self._write(full)
        finally:  # what came before an error is written
            self._write(gathered)
            if self._flush:
                self._stream.flush()

    def _write(self, lines: list[bytes]) -> None:
        with named(self._name):
            self._stream.write(b"".join(lines))
        self.lines += len(lines)


@contextmanager
def output(path: str | None, log: str) -> Iterator[Output]:
    """Standard output, or the file at `path`, which is replaced. Raises Failure when that is the log itself."""
    if path is None or path == "-":
        if sys.stdout is None:
            raise Failure("there is no standard output to write to", "name a file with --output FILE")
        flush()
        stream = sys.stdout.buffer
        yield Output(stream, STDOUT, stream.isatty())
        with named(STDOUT):
            stream.flush()
        return
    if os.path.exists(path) and os.path.samefile(path, log):
        raise Failure(f"{path}: this is the log itself; choose another file for the output")
    from jitdb.cli.opening import exists

    folder = os.path.dirname(path)
    if folder and not exists(folder):
        raise Failure(f"{path}: there is no folder {folder}")
    _make_like(path, log)
    with _create(path) as file:
        out = Output(file, path, False)
        try:
            yield out
        except BaseException as error:
            error.add_note(f"{path} is not complete: it holds the first {out.lines:,} records")
            raise


def _make_like(path: str, log: str) -> None:
    """A new file is for those who may read the log, and for nobody else. One that is there stays as it is."""
    from jitdb.log.io.osfile import Descriptor, fs

    with suppress(FileExistsError), Descriptor(fs, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) as fd:
        fs.share(fd, os.stat(log))


def _create(path: str) -> BinaryIO:
    if path.endswith(".gz"):
        import gzip
        from typing import cast

        return cast(BinaryIO, gzip.open(path, "wb", compresslevel=6))
    return open(path, "wb")


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
