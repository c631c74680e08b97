"""The work of `jitdb import`: lines go in batches from the sources to the log, and what was done is always known.

Ctrl-C is answered between two batches, never within one, so `done` is exact: all lines up to it are in the log. Where
the log cannot be written any more, what is in it is found out afterwards.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.error_text import Failure, UsageError, say
from jitdb.cli.input.lines import ARRAY_HINT, BadLine, LineReader, Records, is_array_of_records
from jitdb.cli.input.sources import Portion, Source, Unreadable
from jitdb.common.words import counted
from jitdb.engine.progress import Bar
from jitdb.errors import EncodeError, InvalidRecord, LogCorrupt, LogError, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.layout import MAX_BLOCK_SIZE, largest_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jitdb.log import Log
    from jitdb.log.codecs.json.transcode import Transcoded, Transcoder

_WORTH: Final = 1 << 14  # bytes: of fewer lines, json has the records before numpy is imported
_WORTH_COMPILING: Final = 100_000  # records, where numba is there and no build: it takes some seconds
_WORTH_AHEAD: Final = 1 << 22  # bytes of a file: for less, no thread is started
_MOST_BY_JSON: Final = 1024  # lines that json reads at once, between two passes of the kernel
_TOLD: Final = 10  # bad lines that --skip-bad tells of, each


@dataclass(slots=True)
class Done:
    """How far the import is."""

    records: int = 0
    skipped: int = 0
    source: int = 0  # the number of the current source
    line: int = 0  # of it: all up to it are in the log, or were passed over


class _Given(NamedTuple):
    """Records that were given to the log, and may not be on the disk yet."""

    source: int
    numbers: Sequence[int] | NDArray[np.int64]  # the line of each
    last: int  # the offset of the last one


class _Ready(NamedTuple):
    """Lines, and what a kernel made of the first of them, if it was there already."""

    portion: Portion
    turn: int  # of the two kernels
    transcoded: Transcoded | None


class LineFailure(Failure):
    """The import ended at a bad line.

    `mendable`: once it is mended, one can go on behind what was imported. `skippable`: the rest may be better.
    """

    def __init__(self, message: str, bad: BadLine) -> None:
        super().__init__(message, bad.hint)
        self.mendable = bad.mendable
        self.skippable = not (bad.hint and bad.mendable)  # what a whole file is instead of NDJSON is a hint, too


def _block_size_for(size: int) -> int:
    """The smallest power of two that does for a record of so many bytes.

    >>> _block_size_for(65_532), _block_size_for(65_533)
    (65536, 131072)
    """
    needed = 1 << (size - 1).bit_length()
    while largest_record(needed) < size:
        needed *= 2
    return needed


def shortened(text: str) -> str:
    """A reason that fits a line or two: the path of a deeply nested value may be thousands of characters.

    >>> len(shortened("a." * 1000 + "b: too deep"))
    201
    """
    return text if len(text) <= 201 else f"{text[:60]}…{text[-140:]}"


class Importer:
    """Imports sources into one log. `open_log` is called when the first records are there."""

    def __init__(
        self,
        open_log: Callable[[], Log],
        *,
        first_line: int,
        tagged: bool,
        skip_bad: bool,
        quiet: bool,
        may_grow: bool,
    ) -> None:
        """`first_line`: of the first source; those before it are in the log. `may_grow`: its blocks, if need be."""
        self._may_grow = may_grow
        self.done = Done(line=first_line - 1)
        self._open_log = open_log
        self._log: Log | None = None
        self._reader = LineReader(tagged)
        self._tagged = tagged
        self._kernels: tuple[Transcoder, Transcoder] | None = None  # for every other portion
        self._lines_by_json = 1  # behind one that the kernel leaves
        self._skip_bad = skip_bad
        self._quiet = quiet
        self._busy = False  # within a batch
        self._interrupted = False
        self._given: deque[_Given] = deque()
        self._before = -1  # the offset of the last record before those
        self._records_before = 0  # records that were imported up to there

    @property
    def log(self) -> Log:
        """The log, opened at the first need."""
        if self._log is None:
            self._log = self._open_log()
            self._before = self._log.since
        return self._log

    def close(self) -> None:
        """Make what was imported durable. Raises LogWriteFailed."""
        self._busy = True
        if self._log is not None:
            self._log.close()

    def end(self, error: BaseException) -> BaseException:
        """Close after an error; gives the one to tell of. `done` says what is in the log, whatever became of it.

        Raises LogWriteFailed where that cannot be found out.
        """
        try:
            self.close()
        except LogWriteFailed as failure:
            error = failure
        if isinstance(error, LogWriteFailed) and self._log is not None:
            try:
                self._find_out(self._log)
            except LogError as unread:
                error.add_note(f"what of the records is in the log is not known: {unread}")
                raise error from unread
        return error

    def _find_out(self, log: Log) -> None:
        """After a failed write: what of the records is in the log. Whoever opens it next sees the same."""
        from jitdb.log import Log

        with Log(log.path, read_only=True) as reader:
            found = sum(len(batch.offsets) for batch in reader.stream_batches(gt=self._before))
        self.done.records = self._records_before + found
        for source, numbers, _ in self._given:
            self.done.source = source
            self.done.line = int(numbers[-1] if found >= len(numbers) else numbers[found] - 1)
            if found < len(numbers):
                break
            found -= len(numbers)

    def add(self, place: int, source: Source, first_line: int, progress: bool | None) -> None:
        """Import the lines of an opened source from `first_line` on; `place` is its number.

        Raises Failure, LogError, KeyboardInterrupt.
        """
        self.done.source, self.done.line = place, first_line - 1
        total = source.size
        with Bar(f"importing {source.name}", total or 0, progress if total else False) as bar:
            try:
                for ready in self._ahead(source, self._from_line(source, first_line)):
                    self._take(source, ready)
                    bar(source.position())
            except Unreadable as broken:
                raise source.failure(broken) from broken.__cause__
        if first_line > source.taken + 1:
            lines_there = counted(source.taken, "line", "lines")
            raise UsageError(f"{source.name} has only {lines_there}: --from-line {first_line:,} is behind its end")

    def _from_line(self, source: Source, first_line: int) -> Iterator[Portion]:
        """The portions, without the lines before that one."""
        for portion in self._unwrapped(source):
            if source.taken < first_line - 1:
                portion, passed = portion.behind(first_line - 1 - source.taken)
                source.taken += passed
            yield portion

    def _unwrapped(self, source: Source) -> Iterator[Portion]:
        """The portions. Raises Failure when the only line of the source is an array of all its records."""
        for number, portion in enumerate(portions := source.portions()):
            if number == 0 and portion.is_one:
                lines, _ = portion.lines(portion.begin, 1)
                values = self._reader.read(lines, 1, stop_at_bad=True).values if lines[0].lstrip()[:1] == b"[" else []
                if values and is_array_of_records(values[0]):
                    following = next(portions, None)
                    if following is None:
                        found = f"this is one JSON array of {len(values[0]):,} records"
                        raise Failure(f"{source.name}: {found}", ARRAY_HINT)
                    yield portion
                    yield following
                    continue
            yield portion

    def _ahead(self, source: Source, portions: Iterator[Portion]) -> Iterator[_Ready]:
        """Each portion with what the kernel makes of it: of a file, while the one before goes to the log."""
        turns = cycle((0, 1))

        def get_ready() -> _Ready | None:
            portion, turn, kernels = next(portions, None), next(turns), self._kernels
            if portion is None:
                return None
            is_worth = kernels is not None and portion.end - portion.begin >= _WORTH
            return _Ready(portion, turn, kernels[turn].transcode(*portion) if kernels and is_worth else None)

        if (source.size or 0) < _WORTH_AHEAD:  # what a pipe has is imported before more is waited for
            yield from iter(get_ready, None)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            coming = thread.submit(get_ready)
            while (ready := coming.result()) is not None:
                coming = thread.submit(get_ready)
                yield ready

    def _take(self, source: Source, ready: _Ready) -> None:
        """Import lines: by the kernel, and those that it leaves by json."""
        portion, turn, transcoded = ready
        position = portion.begin
        while position < portion.end:
            most = portion.end  # that json reads: all
            if portion.end - position >= _WORTH:
                kernels = self._transcoders()
                if kernels is not None:
                    done = transcoded or kernels[turn].transcode(portion.data, position, portion.end)
                    transcoded, position = None, done.position
                    self._append_transcoded(source, done)
                if kernels is not None or self._log is None:
                    most = self._lines_by_json
            if position < portion.end:
                lines, position = portion.lines(position, most)
                self._batch(source, source.taken + 1, lines)
                source.taken += len(lines)

    def _append_transcoded(self, source: Source, done: Transcoded) -> None:
        self._busy = True
        try:
            if len(done.lengths):
                numbers = done.lines + (source.taken + 1)
                self._give(numbers, lambda: int(self.log.append_encoded(done.data, done.lengths)[-1]))
            source.taken += done.done
            self.done.line = source.taken
        finally:
            self._busy = False
        if self._interrupted:
            raise KeyboardInterrupt
        if done.is_left:  # where lines are often left, several are read at once
            often = done.done < self._lines_by_json
            self._lines_by_json = min(2 * self._lines_by_json, _MOST_BY_JSON) if often else 1

    def _transcoders(self) -> tuple[Transcoder, Transcoder] | None:
        """None before the log is open, for codecs that the kernel does not know, and where it does not pay."""
        if self._kernels is None and self._log is not None and self._log.codec.name in ("msgpack", "bipf"):
            from jitdb.common.kernels import WAY

            if WAY == "native" or (WAY == "numba" and self.done.records >= _WORTH_COMPILING):
                from jitdb.log.codecs.json.transcode import Transcoder

                largest = largest_record(self._log.block_size)
                one, other = (Transcoder(self._log.codec.name, largest, tagged=self._tagged) for _ in range(2))
                self._kernels = one, other
        return self._kernels

    def _batch(self, source: Source, first: int, lines: list[bytes]) -> None:
        found = self._reader.read(lines, first, stop_at_bad=not self._skip_bad)
        stopped = bool(found.bad) and not self._skip_bad
        self._busy = True
        try:
            refused = self._append(source, found)
            self.done.line = found.bad[0].number - 1 if stopped else first + len(lines) - 1
        finally:
            self._busy = False
        for bad in sorted([*refused, *found.bad], key=lambda bad: bad.number):
            self._refuse(source, bad)
        if self._interrupted:
            raise KeyboardInterrupt

    def _append(self, source: Source, found: Records) -> list[BadLine]:
        """Gives the lines to skip, which are no records of this log. Raises LineFailure for the first, if none are."""
        if not found.values:
            return []
        try:
            self._give(found.numbers, lambda: self.log.append_many(found.values)[-1])
        except (EncodeError, InvalidRecord):
            return self._one_by_one(source, found)  # none was appended; find out which it is
        return []

    def _one_by_one(self, source: Source, found: Records) -> list[BadLine]:
        refused = []
        for value, number in zip(found.values, found.numbers, strict=True):
            try:
                self._give_one(number, value)
            except (EncodeError, InvalidRecord) as error:
                too_large = isinstance(error, RecordTooLarge)
                bad = BadLine(number, self._reason(error), self._advice(error), mendable=not too_large)
                if not self._skip_bad:
                    self._refuse(source, bad)
                refused.append(bad)
            self.done.line = number
        return refused

    def _give_one(self, number: int, value: Any) -> None:
        try:
            self._give([number], partial(self.log.append, value))
        except RecordTooLarge as error:
            needed = _block_size_for(error.size)
            if not self._may_grow or needed > MAX_BLOCK_SIZE:
                raise
            self._grow(needed)
            self._give([number], partial(self.log.append, value))

    def _grow(self, block_size: int) -> None:
        """Put the log's records into larger blocks: a log of these takes its place."""
        from jitdb.log import Log
        from jitdb.log.io.filenames import LARGER
        from jitdb.log.io.osfile import fs

        log = self.log
        log.flush()
        # All are durable: should this fail, the records in whichever log is there by then tell how many they are.
        self._given.clear()
        self._before, self._records_before = -1, 0
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
        self._before, self._records_before = log.since, self.done.records
        self._kernels = None

    def _give(self, numbers: Sequence[int] | NDArray[np.int64], append: Callable[[], int]) -> None:
        """Append the records of these lines; `append` gives the offset of the last one."""
        log = self.log
        try:
            last = append()
        except LogWriteFailed:
            self._given.append(_Given(self.done.source, numbers, -1))  # a part of them may be written
            raise
        self.done.records += len(numbers)
        self._given.append(_Given(self.done.source, numbers, last))
        while self._given and self._given[0].last < log.durable_end:
            given = self._given.popleft()
            self._before = given.last
            self._records_before += len(given.numbers)

    def _reason(self, error: EncodeError | InvalidRecord) -> str:
        remedy = f"; {error.remedy.shell}" if error.remedy and not isinstance(error, RecordTooLarge) else ""
        return shortened(error.reason) + remedy

    def _advice(self, error: Exception) -> str:
        """Which block size would do for a record that is too large."""
        if not isinstance(error, RecordTooLarge):
            return ""
        needed = _block_size_for(error.size)
        if needed > MAX_BLOCK_SIZE:
            return f"no log holds it: the largest record has {largest_record(MAX_BLOCK_SIZE):,} bytes"
        return f"begin anew with another log and --block-size {needed}; a log keeps the block size it was made with"

    def _refuse(self, source: Source, bad: BadLine) -> None:
        """Pass over a bad line, or end with it."""
        told = f"{source.name}, line {bad.number:,}: {bad.reason}"
        if not self._skip_bad:
            self.done.line = bad.number - 1
            raise LineFailure(told, bad)
        self.done.skipped += 1
        if self._quiet:
            return
        if self.done.skipped <= _TOLD:
            say(f"jitdb: skipped {told}")
        elif self.done.skipped == _TOLD + 1:
            say("jitdb: further bad lines are skipped and counted, but not told of one by one")

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within this, Ctrl-C in the middle of a batch waits for its end; further ones do nothing.

        They would only cut short what makes the last word true: how far the import came, and how to go on.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            first, self._interrupted = not self._interrupted, True
            if first and not self._busy:
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
