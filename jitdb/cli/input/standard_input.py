"""Standard input as a file that is asked, and removed then: `kubectl logs web | jitdb values - level`.

The engine reads a file several times, so what comes is copied to one in the folder for temporary files (TMPDIR), up to
half of the space that is free there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Final

from jitdb.cli.failures import Failure, UsageError, called, note
from jitdb.common.words import size_in_words

STDIN: Final = "-"  # in place of a log
_NAME: Final = "standard-input.ndjson"  # an empty one has no records
_PORTION: Final = 1 << 20  # bytes read at a time, at most


@contextmanager
def stdin_as_file(options: Namespace) -> Iterator[Namespace]:
    """The options to open the log with: those given, or with a file of all that standard input has.

    Raises Failure where there is none, or too much of it; UsageError where other logs are named, too.
    """
    if options.log != STDIN:
        yield options
        return
    with Copy(options) as copy:
        copy.take_all()
        yield copy.options


class Copy:
    """The file that standard input is copied to. A context manager, which removes it."""

    def __init__(self, options: Namespace) -> None:
        if options.more_logs:
            raise UsageError("- is standard input, and stands alone: it is one log", "leave the other logs out")
        if sys.stdin is None:
            raise Failure("there is no standard input to read")
        if sys.stdin.isatty():
            note(options, "reading standard input; Ctrl-D ends it")
        self._folder = tempfile.TemporaryDirectory(prefix="jitdb-")
        self._path = os.path.join(self._folder.name, _NAME)
        self._file = FileIO(self._path, "w")
        called[self._path] = "standard input"
        self._most = shutil.disk_usage(self._folder.name).free // 2
        self._size, self._last = 0, b"\n"
        self.error: OSError | Failure | None = None
        self.ended = threading.Event()
        self.options = Namespace(**{**vars(options), "log": self._path, "indexes": "none"})

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        called.pop(self._path, None)
        self._folder.cleanup()

    def take_all(self) -> None:
        """Copy until standard input ends. Raises Failure, OSError."""
        while data := os.read(sys.stdin.fileno(), _PORTION):
            self._take(data)

    def take_meanwhile(self) -> None:
        """Begin to copy beside the caller; `ended` is set behind the last byte, `error` where it failed."""
        threading.Thread(target=self._run, name="standard input", daemon=True).start()

    def _run(self) -> None:
        try:
            self.take_all()
            if self._last != b"\n":
                self._take(b"\n")  # a line that no newline ends is whole now
        except (OSError, Failure, ValueError) as error:  # ValueError: the file was closed, nobody asks any more
            self.error = error if isinstance(error, (OSError, Failure)) else None
        self.ended.set()

    def _take(self, data: bytes) -> None:
        self._size, self._last = self._size + len(data), data[-1:]
        if self._size > self._most:
            raise Failure(
                f"standard input has more than {size_in_words(self._most)}, half of what is free in "
                f"{tempfile.gettempdir()}",
                "name another folder: TMPDIR=FOLDER; or write a file, and ask that",
            )
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
