"""The work of `jitdb import`: lines go in batches from the sources to the log, and what was done is always known.

Ctrl-C is answered between two batches, never within one, so `done` is exact: all lines up to it are in the log. Where
the log cannot be written any more, what is in it is found out afterwards.
"""

from __future__ import annotations

import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.cli.complaints import Failure, UsageError, say
from jitdb.cli.lines import ARRAY_HINT, BadLine, LineReader, Records, is_array_of_records
from jitdb.errors import EncodeError, InvalidRecord, LogError, LogWriteFailed, RecordTooLarge
from jitdb.log.layout import MAX_BLOCK_SIZE, largest_record
from jitdb.progress import Bar
from jitdb.words import counted

if TYPE_CHECKING:
    from jitdb.cli.sources import Source
    from jitdb.log import Log

Batch = tuple[int, list[bytes]]  # the number of the first line, and the lines

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
    numbers: list[int]  # the line of each
    last: int  # the offset of the last one


class LineFailure(Failure):
    """The import ended at a bad line.

    `mendable`: once it is mended, one can go on behind what was imported. `skippable`: the rest may be better.
    """

    def __init__(self, message: str, bad: BadLine) -> None:
        super().__init__(message, bad.hint)
        self.mendable = bad.mendable
        self.skippable = not (bad.hint and bad.mendable)  # what a whole file is instead of NDJSON is a hint, too


def _fits_msgpack(text: str) -> bool:
    """Whether the integer that bipf refuses is one that msgpack holds."""
    bits = re.search(r"integer of (\d+) bits", text)
    return bits is None or int(bits[1]) <= 64


def shortened(text: str) -> str:
    """A reason that fits a line or two: the path of a deeply nested value may be thousands of characters.

    >>> len(shortened("a." * 1000 + "b: too deep"))
    201
    """
    return text if len(text) <= 201 else f"{text[:60]}…{text[-140:]}"


class Importer:
    """Imports sources into one log. `open_log` is called when the first records are there."""

    def __init__(
        self, open_log: Callable[[], Log], *, first_line: int, tagged: bool, skip_bad: bool, quiet: bool
    ) -> None:
        """`first_line`: of the first source; those before it are in the log."""
        self.done = Done(line=first_line - 1)
        self._open_log = open_log
        self._log: Log | None = None
        self._reader = LineReader(tagged)
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
            self.done.line = numbers[-1] if found >= len(numbers) else numbers[found] - 1
            if found < len(numbers):
                break
            found -= len(numbers)

    def add(self, place: int, source: Source, first_line: int, progress: bool | None) -> None:
        """Import the lines of an opened source from `first_line` on; `place` is its number.

        Raises Failure, LogError, KeyboardInterrupt.
        """
        self.done.source, self.done.line = place, first_line - 1
        total = source.size
        last = 0
        with Bar(f"importing {source.name}", total or 0, progress if total else False) as bar:
            for number, lines in self._unwrapped(source, source.batches()):
                last = number + len(lines) - 1
                if last >= first_line:
                    late = max(0, first_line - number)
                    self._batch(source, number + late, lines[late:])
                bar(source.position())
        if first_line > last + 1:
            lines_there = counted(last, "line", "lines")
            raise UsageError(f"{source.name} has only {lines_there}: --from-line {first_line:,} is behind its end")

    def _unwrapped(self, source: Source, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches. Raises Failure when the only line of the source is an array of all its records."""
        for number, lines in batches:
            if number == 1 and len(lines) == 1 and lines[0].lstrip().startswith(b"["):
                values = self._reader.read(lines, 1, stop_at_bad=True).values
                if not values or not is_array_of_records(values[0]):
                    yield number, lines
                    continue
                following = next(batches, None)
                if following is None:
                    raise Failure(f"{source.name}: this is one JSON array of {len(values[0]):,} records", ARRAY_HINT)
                yield number, lines
                if following is not None:
                    yield following
            else:
                yield number, lines

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
                self._give([number], partial(self.log.append, value))
            except (EncodeError, InvalidRecord) as error:
                too_large = isinstance(error, RecordTooLarge)
                bad = BadLine(number, self._reason(error), self._advice(error), mendable=not too_large)
                if not self._skip_bad:
                    self._refuse(source, bad)
                refused.append(bad)
            self.done.line = number
        return refused

    def _give(self, numbers: list[int], append: Callable[[], int]) -> None:
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

    def _reason(self, error: Exception) -> str:
        text = str(error).removeprefix(f"{self.log.path}: ").partition("; a log made with")[0]
        if "integer" in text:
            text = text.partition("; msgpack holds")[0] if not _fits_msgpack(text) else text
        return shortened(text)

    def _advice(self, error: Exception) -> str:
        """Which block size would do for a record that is too large."""
        if not isinstance(error, RecordTooLarge):
            return ""
        needed = 1 << (error.size - 1).bit_length()
        while largest_record(needed) < error.size:
            needed *= 2
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
