"""Where results go: standard output, or a file. Always bytes, whatever the terminal's locale."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

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

    def put(self, data: bytes) -> None:
        """Write these bytes."""
        with named(self._name):
            self._stream.write(data)

    def _write(self, lines: list[bytes]) -> None:
        with named(self._name):
            self._stream.write(b"".join(lines))
        self.lines += len(lines)


@contextmanager
def output(path: str | None, logs: Sequence[str]) -> Iterator[Output]:
    """Standard output, or the file at `path`, which is replaced, and is as open to others as the first of the logs.

    Raises Failure when that is one of the logs.
    """
    if path is None or path == "-":
        if sys.stdout is None:
            raise Failure("there is no standard output to write to", "name a file with --output FILE")
        flush()
        stream = sys.stdout.buffer
        yield Output(stream, STDOUT, stream.isatty())
        with named(STDOUT):
            stream.flush()
        return
    if os.path.exists(path) and any(os.path.exists(log) and os.path.samefile(path, log) for log in logs):
        itself = "the log itself" if len(logs) == 1 else "one of the logs"
        raise Failure(f"{path}: this is {itself}; choose another file for the output")
    from jitdb.cli.opening import exists

    folder = os.path.dirname(path)
    if folder and not exists(folder):
        raise Failure(f"{path}: there is no folder {folder}")
    _make_like(path, logs[0])
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
