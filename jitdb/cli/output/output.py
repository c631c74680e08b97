"""Where results go: standard output, or a file. Always bytes, whatever the terminal's locale."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from jitdb.cli.failures import Failure
from jitdb.display.terminal import one_line

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
    show_lines(one_line(text, sys.stdout))


def show_lines(text: str) -> None:
    """Print text whose newlines are ours."""
    with named(STDOUT):
        print(text)


def show_json(value: Any) -> None:
    """Print it as JSON that a person can read, too."""
    import json

    show_lines(json.dumps(value, indent=2))


def columns(otherwise: int) -> int:
    """Of the terminal; where there is none, so many. Without shutil, which would take as long as a question."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns) or otherwise
    except (ValueError, OSError, AttributeError):
        return otherwise


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
    """Standard output, or the file at `path`, which is replaced when all is written; a new one can be read by those who
    can read all the logs, and whom the umask lets.

    Raises Failure when that is one of the logs, LogError where another user put it there.
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
    with _replacing(path, target, logs) as file:
        yield Output(file, path, False)


@contextmanager
def _replacing(path: str, target: str, logs: Sequence[str]) -> Iterator[BinaryIO]:
    """A file that takes the place of the one at `path`, which is `target`, when it is whole; until then that stays as
    it is. What is no file, such as a pipe, is written to.
    """
    is_there = os.path.exists(target)
    beside = None
    if not path.startswith("/dev/") and (os.path.isfile(target) or not is_there):
        beside = _make_beside(path, target, None if is_there else logs)
    if beside is None:
        with _compressing(path, open(path, "wb")) as file:
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
    """The name of a new file in the folder of the target; None where only the target can be written. It is for those
    who may read all the logs; without these it has the owner and permissions of the target.
    """
    from jitdb.log.io.osfile import Descriptor, fs

    if logs is None:
        os.close(os.open(path, os.O_WRONLY))  # what may not be written is not replaced, either
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:200]}.{os.getpid()}.part")
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # of a process of this number, that was killed
        if logs is None:
            with Descriptor(fs, beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) as fd:
                fs.share(fd, os.stat(target), is_log=True)
        else:
            fs.make_file(Path(beside), map(_status, logs))
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        return None  # if nothing can be written at all, opening the target tells why
    return beside


def _status(log: str) -> os.stat_result:
    """Of a log that is gone: that nobody may read it."""
    try:
        return os.stat(log)
    except OSError:
        return os.stat_result([0] * 10)


@contextmanager
def _compressing(path: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """The file, open as long as the context lasts; compressed if its name says so."""
    with file:
        if not path.endswith(".gz"):
            yield file
            return
        import gzip
        from typing import cast

        name = os.path.basename(path)
        with gzip.GzipFile(name, "wb", compresslevel=6, fileobj=file, mtime=0) as compressed:  # whatever the clock says
            yield cast(BinaryIO, compressed)
