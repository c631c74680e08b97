"""The log that an import fills: how many of the records are in it is always known, whatever became of the disk.

Its blocks grow where a record needs larger ones: its records go into a log of these, which takes its place.

Lines come to it through a kernel that makes records of them: of a file, while those before go to the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.input.lines import Portion, Source
from jitdb.errors import LogCorrupt, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.block_format import MAX_BLOCK_SIZE, largest_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log import Log
    from jitdb.log.codecs.json.kernels import Transcoded, Transcoder


@dataclass(slots=True)
class Done:
    """How far the import is."""

    records: int = 0
    skipped: int = 0
    source: int = 0  # the number of the current source
    line: int = 0  # of it: all up to it are in the log, or were passed over
    unit: str = "line"  # or "record", of formats that have no lines


class _Given(NamedTuple):
    """Records that were given to the log, and may not be on the disk yet."""

    source: int
    numbers: Sequence[int] | NDArray[np.int64]  # the line of each
    last: int  # the offset of the last one


def block_size_for(size: int) -> int:
    """The smallest power of two that does for a record of so many bytes.

    >>> block_size_for(65_532), block_size_for(65_533)
    (65536, 131072)
    """
    needed = 1 << (size - 1).bit_length()
    while largest_record(needed) < size:
        needed *= 2
    return needed


WORTH: Final = 1 << 14  # bytes: of fewer lines, json has the records before numpy is imported
WORTH_COMPILING: Final = 100_000  # records, where numba is there and no build: it takes some seconds
WORTH_AHEAD: Final = 1 << 22  # bytes of a file: for less, no thread is started


class Target:
    """A log that is opened at the first need; `done` says how far the import is. `may_grow`: its blocks, if need be."""

    def __init__(self, open_log: Callable[[], Log], done: Done, *, may_grow: bool) -> None:
        self._open_log = open_log
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
            self._log = self._open_log()
            self._before = self._log.since
        return self._log

    def compiled(self, size: int | None = None) -> tuple[str, int] | None:
        """The log's codec, if kernels write it, and the bytes of its largest record; None before the log is open, and
        where they do not pay, for so many bytes.
        """
        if self._log is None or self._log.codec.name not in ("msgpack", "bipf") or (size is not None and size < WORTH):
            return None
        from jitdb.common.kernels import WAY

        if WAY != "native" and not (WAY == "numba" and self._done.records >= WORTH_COMPILING):
            return None
        return self._log.codec.name, largest_record(self._log.block_size)

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
        """After a failed write: what of the records is in the log. Whoever opens it next sees the same."""
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
        """Put the log's records into larger blocks: a log of these takes its place. False where it has to stay as it
        is: records of it are deleted, or damaged; or it was there before, and JavaScript may read it.
        """
        from jitdb.log import Log
        from jitdb.log.io.filenames import LARGER
        from jitdb.log.io.osfile import fs

        log = self.log
        log.flush()
        there = [(len(batch.offsets), bool(batch.deleted.any())) for batch in log.stream_batches()]
        before = sum(count for count, _ in there) - self._done.records  # that nobody imports now
        if any(deleted for _, deleted in there) or (before and log.codec.name == "bipf"):
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


class Ready(NamedTuple):
    """Lines, and what a kernel made of the first of them, if it was there already."""

    portion: Portion
    turn: int  # of the two kernels
    transcoded: Transcoded | None


class Transcoding:
    """The two kernels of an import, in turns."""

    def __init__(self, target: Target, *, tagged: bool) -> None:
        self._target = target
        self._tagged = tagged
        self._form: tuple[str, int] | None = None  # that the kernels are for
        self._kernels: tuple[Transcoder, Transcoder] | None = None

    def ahead(self, source: Source, portions: Iterator[Portion]) -> Iterator[Ready]:
        """Each portion with what the kernel makes of it: of a file, while the one before goes to the log."""
        turns = cycle((0, 1))

        def get_ready() -> Ready | None:
            portion, turn, kernels = next(portions, None), next(turns), self._kernels
            if portion is None:
                return None
            is_worth = kernels is not None and portion.end - portion.begin >= WORTH
            return Ready(portion, turn, kernels[turn].transcode(*portion) if kernels and is_worth else None)

        if (source.size or 0) < WORTH_AHEAD:  # what a pipe has is imported before more is waited for
            yield from iter(get_ready, None)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(get_ready)
            while (ready := coming.result()) is not None:
                coming = thread.submit(get_ready)
                yield ready

    def kernels(self) -> tuple[Transcoder, Transcoder] | None:
        """None where they do not pay."""
        form = self._target.compiled()
        if form is not None and self._form != form:
            from jitdb.log.codecs.json.kernels import Transcoder

            one, other = (Transcoder(*form, tagged=self._tagged) for _ in range(2))
            self._kernels, self._form = (one, other), form
        return self._kernels if form is not None else None
