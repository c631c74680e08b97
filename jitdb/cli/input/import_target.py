"""The log that an import fills. How many records are in it is always known, even after a failed write.

Its blocks can grow: where a record needs larger ones, the records are copied into a log with larger blocks, which
replaces this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.errors import LogCorrupt, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.block_format import MAX_BLOCK_SIZE, block_size_for
from jitdb.log.codecs import Codec, get_codec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log import Log

WORTH: Final = 1 << 14  # bytes: of fewer lines, json has the records before numpy is imported
WORTH_COMPILING: Final = 100_000  # records, where numba is there and no build: it takes some seconds


@dataclass(slots=True)
class Done:
    """How far the import is."""

    records: int = 0
    skipped: int = 0
    source: int = 0  # the number of the current source
    line: int = 0  # all lines of that source up to this one are in the log, or were skipped
    unit: str = "line"  # or "record", of formats that have no lines


class _Given(NamedTuple):
    """Records that were given to the log, and may not be on the disk yet."""

    source: int
    numbers: Sequence[int] | NDArray[np.int64]  # the line of each
    last: int  # the offset of the last one


class Target:
    """A log that is opened when it is first needed. `done` says how far the import is; its blocks `may_grow`."""

    def __init__(
        self, open_log: Callable[[str], Log], done: Done, *, codec: str, has_bytes: bool, may_grow: bool
    ) -> None:
        """codec: of a new log; empty: json, or msgpack where its records have bytes, or may have (has_bytes)

        open_log: is given the name of that codec
        """
        self.undisturbed: Callable[[], AbstractContextManager[object]] = nullcontext  # what no Ctrl-C may interrupt
        self._open_log = open_log
        self._codec = codec
        self._has_bytes = has_bytes
        self._done = done
        self._may_grow = may_grow
        self._log: Log | None = None
        self._given: deque[_Given] = deque()
        self._before = -1  # the offset of the last record before those
        self._records_before = 0  # records that were imported up to there

    @property
    def is_open(self) -> bool:
        """Whether the log was needed already."""
        return self._log is not None

    @property
    def log(self) -> Log:
        """The log, opened at the first need."""
        if self._log is None:
            self._log = self._open_log(self.codec.name)
            self._before = self._log.since
        return self._log

    @property
    def codec(self) -> Codec:
        """That of the log, or that it will have."""
        if self._log is not None:
            return self._log.codec
        return get_codec(self._codec or ("msgpack" if self._has_bytes else "json"))

    def holds_bytes(self) -> None:
        """Let a new log be one of msgpack, unless a codec was named: JSON has no bytes."""
        self._has_bytes = True

    def is_framed(self, size: int) -> bool:
        """Whether kernels should frame `size` bytes: for the codec json, and where there are enough of them."""
        if size < WORTH or not self.codec.is_json:
            return False
        from jitdb.common.kernels import WAY

        return WAY == "native" or (WAY == "numba" and self._done.records >= WORTH_COMPILING)

    def close(self) -> None:
        """Make what was imported durable. Raises LogWriteFailed."""
        if self._log is not None:
            self._log.close()

    def give(self, numbers: Sequence[int] | NDArray[np.int64], append: Callable[[], int]) -> None:
        """Append the records of these lines; `append` gives the offset of the last one."""
        log = self.log
        try:
            last = append()
        except LogWriteFailed:
            self._given.append(_Given(self._done.source, numbers, -1))  # a part of them may be written
            raise
        self._done.records += len(numbers)
        self._given.append(_Given(self._done.source, numbers, last))
        while self._given and self._given[0].last < log.durable_end:
            given = self._given.popleft()
            self._before = given.last
            self._records_before += len(given.numbers)

    def give_one(self, number: int, value: Any) -> None:
        """Append the record of one line. Raises EncodeError, InvalidRecord."""
        try:
            self.give([number], partial(self.log.append, value))
        except RecordTooLarge as error:
            needed = block_size_for(error.size)
            if not self._may_grow or needed > MAX_BLOCK_SIZE or not self._grow(needed):
                raise
            self.give([number], partial(self.log.append, value))

    def find_out(self) -> None:
        """After a failed write, count the records in the log as the next reader will see them."""
        from jitdb.log import Log

        if self._log is None:
            return
        with Log(self._log.path, read_only=True) as reader:
            found = sum(len(batch.offsets) for batch in reader.stream_batches(gt=self._before))
        self._done.records = self._records_before + found
        for source, numbers, _ in self._given:
            self._done.source = source
            self._done.line = int(numbers[-1] if found >= len(numbers) else numbers[found] - 1)
            if found < len(numbers):
                break
            found -= len(numbers)

    def _grow(self, block_size: int) -> bool:
        """Copy the records into a log with larger blocks, which replaces this one. False where that is not possible:
        some records are deleted or damaged, or the log existed before and other programs may read it.
        """
        from jitdb.log import Log
        from jitdb.log.io.filenames import LARGER
        from jitdb.log.io.osfile import fs

        log = self.log
        log.flush()
        there = [(len(batch.offsets), bool(batch.deleted.any())) for batch in log.stream_batches()]
        before = sum(count for count, _ in there) - self._done.records  # that were there before this import
        if any(deleted for _, deleted in there) or (before and log.codec.has_other_readers):
            return False
        # All are durable: should this fail, the records in whichever log is there by then tell how many they are.
        self._given.clear()
        self._before, self._records_before = -1, -before
        folder = log.sidecar / LARGER  # which the next writer removes where this one is killed
        fs.mkdir(folder, 0o700)
        try:
            larger = folder / "log"
            with Log(larger, codec="raw", block_size=block_size) as fresh:
                for batch in log.stream_batches():
                    if batch.deleted.any():  # damaged: nobody deleted any
                        raise LogCorrupt("what was just written to it is damaged", path=log.path)
                    view, stops = batch.data.data, batch.starts + batch.lengths
                    pairs = zip(batch.starts.tolist(), stops.tolist(), strict=True)
                    fresh.append_many([bytes(view[start:stop]) for start, stop in pairs])
            log.replace_with(larger, log.codec.name)
        finally:
            fs.remove(folder)
        self._before, self._records_before = log.since, self._done.records
        return True
