"""Where results go: standard output or a file, in UTF-8 whatever the locale."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from jitdb.cli.failures import Failure
from jitdb.display.terminal import Terminal, one_line

STDOUT = "standard output"
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_BUFFER = 1 << 16  # bytes gathered before they are written to a pipe or a file


@contextmanager
def named(name: str) -> Iterator[None]:
    """Within this, an OSError of a write gets the name of the file, which the system leaves out."""
    try:
        yield
    except OSError as error:
        if error.filename is None and not isinstance(error, BrokenPipeError):
            error.filename = name
        raise


def flush() -> None:
    """Write out what was printed. Raises OSError, BrokenPipeError."""
    if sys.stdout is not None:
        with named(STDOUT):
            sys.stdout.flush()


def show(text: str) -> None:
    """Print a line of results."""
    show_lines(one_line(text, sys.stdout))


def show_lines(text: str) -> None:
    """Print text whose newlines are ours."""
    with named(STDOUT):
        print(text)


def has_colours() -> bool:
    """Whether standard output is a terminal with colours, and nobody said NO_COLOR."""
    return isinstance(sys.stdout, Terminal) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_painted(text: str, style: str) -> None:
    """Print a line whose characters are all printable, on a terminal in a style: the number of an escape sequence."""
    stream = sys.stdout
    if not (style and isinstance(stream, Terminal) and has_colours()):
        show_lines(text)
        return
    with named(STDOUT):
        stream.paint(f"\x1b[{style}m{text}\x1b[0m\n")


def show_json(value: Any) -> None:
    """Print it as JSON, indented for people."""
    import json

    show_lines(json.dumps(value, indent=2))


class Output:
    """Takes lines."""

    def __init__(self, stream: BinaryIO, name: str, flush: bool) -> None:
        self._stream = stream
        self._name = name
        self._flush = flush

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


@contextmanager
def output(path: str | None, logs: Sequence[str]) -> Iterator[Output]:
    """Standard output, or the file at `path`, which is replaced once all is written. Those who may read all the logs
    may read a new file, as far as the umask lets them.

    Raises Failure if it is one of the logs, LogError if another user planted it.
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
    from jitdb.cli.opening import exists
    from jitdb.log.io.filenames import followed

    target = path if path.startswith("/dev/") else os.fspath(followed(path, is_written=True))
    if os.path.exists(path) and any(os.path.exists(log) and os.path.samefile(path, log) for log in logs):
        itself = "the log itself" if len(logs) == 1 else "one of the logs"
        raise Failure(f"{path}: this is {itself}; choose another file for the output")
    folder = os.path.dirname(path)
    if folder and not exists(folder):
        raise Failure(f"{path}: there is no folder {folder}")
    try:
        with _replacing(path, target, logs) as file:
            yield Output(file, path, False)
    except OSError as error:
        if error.errno in _FORBIDDEN and error.filename == path:
            name = os.path.basename(path)
            error.add_note(f"you may not write there; name a file elsewhere, such as --output ~/{name}")
        raise


@contextmanager
def _replacing(path: str, target: str, logs: Sequence[str]) -> Iterator[BinaryIO]:
    """A file that replaces the one at `path` (`target`, without links) once it is whole; until then that one is
    unchanged. What is no file, such as a pipe, is written directly.
    """
    is_there = os.path.exists(target)
    beside = None
    if not path.startswith("/dev/") and (os.path.isfile(target) or not is_there):
        beside = _make_beside(path, target, None if is_there else logs)
    if beside is None:
        with _compressing(path, open(path, "wb")) as file:
            if file.isatty():  # /dev/stdout, for one
                yield cast(BinaryIO, Terminal(io.TextIOWrapper(file, "utf-8", write_through=True)))
            else:
                yield file
        return
    try:
        with named(path), _compressing(path, open(beside, "wb")) as file:
            yield file
        os.replace(beside, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        error.add_note(f"{path} {'stays as it was' if is_there else 'was not written'}")
        raise


def _make_beside(path: str, target: str, logs: Sequence[str] | None) -> str | None:
    """Make a file beside the target and return its name; None where only the target can be written. Those who may read
    all the logs may read it; without logs it has the owner and permissions of the target.
    """
    from jitdb.log.io.osfile import Descriptor, fs

    if logs is None:
        os.close(os.open(path, os.O_WRONLY))  # Raises OSError: what may not be written is not replaced, either
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:200]}.{os.getpid()}.part")
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # left by a killed process with our number
        if logs is None:
            with Descriptor(fs, beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) as fd:
                fs.share(fd, os.stat(target), is_log=True)
        else:
            fs.make_file(Path(beside), map(_status, logs))
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        return None  # opening the target then says why, if that fails, too
    return beside


def _status(log: str) -> os.stat_result:
    """The status of a log; of one that is gone, that nobody may read it."""
    try:
        return os.stat(log)
    except OSError:
        return os.stat_result([0] * 10)


@contextmanager
def _compressing(path: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """The open file, compressed if its name ends in .gz."""
    with file:
        if not path.endswith(".gz"):
            yield file
            return
        import gzip

        name = os.path.basename(path)
        with gzip.GzipFile(name, "wb", compresslevel=6, fileobj=file, mtime=0) as compressed:
            yield cast(BinaryIO, compressed)
