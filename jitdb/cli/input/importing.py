"""The work of `jitdb import`: lines go in batches from the sources to the log, and what was done is always known.

Ctrl-C is answered between two batches, never within one, so `done` is exact: all lines up to it are in the log. Where
the log cannot be written any more, what is in it is found out afterwards (target.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.input.batches import Batch, EncodedBatch, RowOptions, Tell
from jitdb.cli.input.formats import LINED, batches, format_of
from jitdb.cli.input.lines import (
    ARRAY_HINT,
    BadLine,
    LineReader,
    Portion,
    Records,
    Source,
    Unreadable,
    is_array_of_records,
)
from jitdb.cli.input.target import WORTH, Done, Ready, Target, Transcoding, block_size_for
from jitdb.common.words import counted
from jitdb.engine.progress import Bar
from jitdb.errors import EncodeError, InvalidRecord, LogError, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.block_format import MAX_BLOCK_SIZE, largest_record

if TYPE_CHECKING:
    from jitdb.cli.signals import Ending
    from jitdb.log import Log
    from jitdb.log.codecs.json.kernels import Transcoded

_MOST_BY_JSON: Final = 1024  # lines that json reads at once, between two passes of the kernel
_TOLD: Final = 10  # bad lines that --skip-bad tells of, each


class LineFailure(Failure):
    """The import ended at a bad line.

    `mendable`: once it is mended, one can go on behind what was imported. `skippable`: the rest may be better.
    """

    def __init__(self, message: str, bad: BadLine) -> None:
        super().__init__(message, bad.hint)
        self.mendable = bad.mendable
        self.skippable = not (bad.hint and bad.mendable)  # what a whole file is instead of NDJSON is a hint, too


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
        rows: RowOptions,
        may_grow: bool,
        ending: Ending,
        tell: Tell,
    ) -> None:
        """`first_line`: of the first source; those before it are in the log. `may_grow`: its blocks, if need be."""
        self.done = Done(line=first_line - 1)
        self.shape = ""  # of the log, in words, once it is closed; empty where none was made
        self.target = Target(open_log, self.done, may_grow=may_grow)
        self._transcoding = Transcoding(self.target, tagged=rows.tagged)
        self._reader = LineReader(rows.tagged)
        self._rows = rows
        self._may_grow = may_grow
        self._lines_by_json = 1  # behind one that the kernel leaves
        self._skip_bad = not rows.stop_at_bad
        self._tell = tell
        self._ending = ending

    def close(self) -> None:
        """Make what was imported durable. Raises LogWriteFailed."""
        self._ending.ignore()
        if self.target.is_open and not self.shape:
            log = self.target.log
            self.shape = f"{log.codec.name}, blocks of {log.block_size:,} bytes"
        self.target.close()

    def end(self, error: BaseException) -> BaseException:
        """Close after an error; gives the one to tell of. `done` says what is in the log, whatever became of it.

        Raises LogWriteFailed where that cannot be found out.
        """
        try:
            self.close()
        except LogWriteFailed as failure:
            error = failure
        if isinstance(error, LogWriteFailed):
            try:
                self.target.find_out()
            except LogError as unread:
                error.add_note(f"what of the records is in the log is not known: {unread}")
                raise error from unread
        return error

    def add(self, place: int, source: Source, first_line: int, progress: bool | None) -> None:
        """Import the lines of an opened source from `first_line` on; `place` is its number.

        Raises Failure, LogError, KeyboardInterrupt.
        """
        self.done.source, self.done.line = place, first_line - 1
        total = source.size
        name, is_guessed = format_of(source, self._rows)
        source.unit = self.done.unit = "line" if name in LINED else "record"
        if is_guessed:
            self._tell(f"{source.name} is taken for {name.upper()}; --format says otherwise")
        with Bar(f"importing {source.name}", total or 0, progress if total else False) as bar:
            try:
                if name == "ndjson":
                    for ready in self._transcoding.ahead(source, self._from_line(source, first_line)):
                        self._take(source, ready)
                        bar(source.position())
                else:
                    found = batches(source, name, self._rows, first_line, self._tell, self.target.compiled)
                    for batch in found:
                        if isinstance(batch, Batch):
                            self._put(source, batch.found, batch.last)
                        else:
                            self._append_encoded(source, batch)
                        bar(source.position())
            except Unreadable as broken:
                raise source.failure(broken.__cause__) from broken.__cause__
        if first_line > source.taken + 1:
            there = counted(source.taken, source.unit, f"{source.unit}s")
            raise UsageError(f"{source.name} has only {there}: --from-line {first_line:,} is behind its end")

    def _from_line(self, source: Source, first_line: int) -> Iterator[Portion]:
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

    def _take(self, source: Source, ready: Ready) -> None:
        """Import lines: by the kernel, and those that it leaves by json."""
        portion, turn, transcoded = ready
        position = portion.begin
        while position < portion.end:
            most = portion.end  # that json reads: all
            if portion.end - position >= WORTH:
                kernels = self._transcoding.kernels()
                if kernels is not None:
                    done = transcoded or kernels[turn].transcode(portion.data, position, portion.end)
                    transcoded, position = None, done.position
                    self._append_transcoded(source, done)
                if kernels is not None or not self.target.is_open:
                    most = self._lines_by_json
            if position < portion.end:
                lines, position = portion.lines(position, most)
                self._batch(source, source.taken + 1, lines)

    def _append_transcoded(self, source: Source, done: Transcoded) -> None:
        first = source.taken + 1
        self._append_encoded(
            source, EncodedBatch(done.data, done.lengths, done.lines + first, source.taken + done.done)
        )
        if done.is_left:  # where lines are often left, several are read at once
            often = done.done < self._lines_by_json
            self._lines_by_json = min(2 * self._lines_by_json, _MOST_BY_JSON) if often else 1

    def _append_encoded(self, source: Source, batch: EncodedBatch) -> None:
        with self._ending.undisturbed():
            if len(batch.lengths):
                data, lengths = batch.data, batch.lengths
                self.target.give(batch.numbers, lambda: int(self.target.log.append_encoded(data, lengths)[-1]))
            source.taken = self.done.line = batch.last

    def _batch(self, source: Source, first: int, lines: list[bytes]) -> None:
        self._put(source, self._reader.read(lines, first, stop_at_bad=not self._skip_bad), first + len(lines) - 1)

    def _put(self, source: Source, found: Records, last: int) -> None:
        """Append what was found up to the line, or record, `last`. Raises LineFailure for the first bad one."""
        stopped = bool(found.bad) and not self._skip_bad
        source.taken = max(source.taken, last)
        with self._ending.undisturbed():
            refused = self._append(source, found)
            self.done.line = found.bad[0].number - 1 if stopped else max(self.done.line, last)
            for bad in sorted([*refused, *found.bad], key=lambda bad: bad.number):
                self._refuse(source, bad)

    def _append(self, source: Source, found: Records) -> list[BadLine]:
        """Gives the lines to skip, which are no records of this log. Raises LineFailure for the first, if none are."""
        if not found.values:
            return []
        try:
            self.target.give(found.numbers, lambda: self.target.log.append_many(found.values)[-1])
        except (EncodeError, InvalidRecord):
            return self._one_by_one(source, found)  # none was appended; find out which it is
        return []

    def _one_by_one(self, source: Source, found: Records) -> list[BadLine]:
        refused = []
        for value, number in zip(found.values, found.numbers, strict=True):
            try:
                self.target.give_one(number, value)
            except (EncodeError, InvalidRecord) as error:
                too_large = isinstance(error, RecordTooLarge)
                bad = BadLine(number, self._reason(error), self._advice(error), mendable=not too_large)
                if not self._skip_bad:
                    self._refuse(source, bad)
                refused.append(bad)
            self.done.line = number
        return refused

    def _reason(self, error: EncodeError | InvalidRecord) -> str:
        remedy = f"; {error.remedy.shell}" if error.remedy and not isinstance(error, RecordTooLarge) else ""
        return shortened(error.reason) + remedy

    def _advice(self, error: Exception) -> str:
        """Which block size would do for a record that is too large."""
        if not isinstance(error, RecordTooLarge):
            return ""
        needed = block_size_for(error.size)
        if needed > MAX_BLOCK_SIZE:
            return f"no log holds it: the largest record has {largest_record(MAX_BLOCK_SIZE):,} bytes"
        if self.target.log.codec.name == "bipf" and self._may_grow:
            return f"a log that JavaScript may read keeps its blocks: begin anew with --block-size {needed}"
        if self._may_grow:
            return f"its blocks cannot grow while records of it are deleted: jitdb compact {self.target.log.path}"
        return f"begin anew with another log and --block-size {needed}"

    def _refuse(self, source: Source, bad: BadLine) -> None:
        """Pass over a bad line, or end with it."""
        told = f"{source.name}, {source.unit} {bad.number:,}: {bad.reason}"
        if not self._skip_bad:
            self.done.line = bad.number - 1
            raise LineFailure(told, bad)
        self.done.skipped += 1
        if self.done.skipped <= _TOLD:
            self._tell(f"skipped {told}")
        elif self.done.skipped == _TOLD + 1:
            self._tell(f"further bad {source.unit}s are skipped and counted, but not told of one by one")
