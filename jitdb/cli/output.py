"""Where results go: standard output, or a file. Always bytes, whatever the terminal's locale."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from jitdb.cli.complaints import Failure

_BUFFER = 1 << 16  # bytes gathered before they are written to a pipe or a file


class Output:
    """Takes lines; counts them."""

    def __init__(self, stream: BinaryIO, flush: bool) -> None:
        self._stream = stream
        self._flush = flush
        self.lines = 0

    def write(self, lines: Iterable[bytes]) -> None:
        """Write whole lines. On a terminal they appear at once."""
        count = 0
        gathered: list[bytes] = []
        held = 0
        for line in lines:
            gathered.append(line)
            held += len(line)
            count += 1
            if held >= _BUFFER:
                self._stream.write(b"".join(gathered))
                self.lines += count
                gathered, held, count = [], 0, 0
        self._stream.write(b"".join(gathered))
        self.lines += count
        if self._flush:
            self._stream.flush()


@contextmanager
def output(path: str | None, log: str) -> Iterator[Output]:
    """Standard output, or the file at `path`, which is replaced. Raises Failure when that is the log itself."""
    if path is None or path == "-":
        if sys.stdout is None:
            raise Failure("there is no standard output to write to", "name a file with --output FILE")
        sys.stdout.flush()
        stream = sys.stdout.buffer
        yield Output(stream, stream.isatty())
        stream.flush()
        return
    if os.path.exists(path) and os.path.samefile(path, log):
        raise Failure(f"{path}: this is the log itself; choose another file for the output")
    with _create(path) as file:
        out = Output(file, False)
        try:
            yield out
        except BaseException as error:
            error.add_note(f"{path} is not complete: it holds the first {out.lines:,} records")
            raise


def _create(path: str) -> BinaryIO:
    if path.endswith(".gz"):
        import gzip
        from typing import cast

        return cast(BinaryIO, gzip.open(path, "wb", compresslevel=6))
    return open(path, "wb")
