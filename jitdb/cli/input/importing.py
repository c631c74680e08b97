"""The work of `jitdb import`: rows go in batches from the sources to the log, and what was done is always known.

Ctrl-C is answered between two batches, never within one, so `done` is exact: all rows up to it are in the log. Where
the log cannot be written any more, what is in it is found out afterwards (import_target.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.input.import_target import Done, Target
from jitdb.cli.input.input_batches import BadRow, Batch, RowOptions, Tell, shortened
from jitdb.cli.input.sources import Source, Unreadable
from jitdb.common.formats import without_ending
from jitdb.common.words import counted
from jitdb.engine.progress import Bar
from jitdb.errors import EncodeError, InvalidRecord, LogError, LogWriteFailed, RecordTooLarge
from jitdb.log.blocks.block_format import MAX_BLOCK_SIZE, block_size_for, largest_record

if TYPE_CHECKING:
    from jitdb.cli.signals import Ending
    from jitdb.log import Log

_TOLD: Final = 10  # bad lines that --skip-bad reports one by one

_LINED: Final = frozenset({"ndjson", "csv", "tsv"})

_OF_NAMES: Final = {
    "ndjson": "ndjson", "jsonl": "ndjson", "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet",
    "pq": "parquet", "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip


class LineFailure(Failure):
    """The import ended at a bad line.

    `mendable`: once it is mended, one can go on behind what was imported. `skippable`: the rest may be better.
    """

    def __init__(self, message: str, bad: BadRow) -> None:
        super().__init__(message, bad.hint)
        self.mendable = bad.mendable
        self.skippable = not (bad.hint and bad.mendable)  # what a whole file is instead of NDJSON is a hint, too


class Importer:
    """Imports sources into one log. `open_log` is called when the first records are there."""

    def __init__(
        self,
        open_log: Callable[[str], Log],
        *,
        codec: str,
        first_line: int,
        rows: RowOptions,
        may_grow: bool,
        ending: Ending,
        tell: Tell,
    ) -> None:
        """`codec`, `may_grow`: see Target. `first_line`: of the first source; those before it are in the log."""
        self.done = Done(line=first_line - 1)
        self.shape = ""  # of the log, in words, once it is closed; empty where none was made
        self.target = Target(open_log, self.done, codec=codec, has_bytes=rows.tagged, may_grow=may_grow)
        self.target.undisturbed = ending.undisturbed
        self._rows = rows
        self._may_grow = may_grow
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
        """Close after an error and return the error to report. Then `done` says what is in the log.

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
        source.unit = self.done.unit = "line" if name in _LINED else "record"
        if is_guessed:
            self._tell(f"{source.name} is taken for {name.upper()}; --format says otherwise")
        with Bar(f"importing {source.name}", total or 0, progress if total else False) as bar:
            try:
                for batch in batches(source, name, self._rows, first_line, self._tell, self.target):
                    self._put(source, batch)
                    bar(source.position())
            except Unreadable as broken:
                raise source.failure(broken.__cause__) from broken.__cause__
        if first_line > source.taken + 1:
            there = counted(source.taken, source.unit, f"{source.unit}s")
            raise UsageError(f"{source.name} has only {there}: --from-line {first_line:,} is behind its end")

    def _put(self, source: Source, batch: Batch) -> None:
        """Append the rows of a batch. Raises LineFailure for the first bad one."""
        source.taken = max(source.taken, batch.last)
        with self._ending.undisturbed():
            refused = self._append(source, batch)
            stopped = bool(batch.bad) and not self._skip_bad
            self.done.line = batch.bad[0].number - 1 if stopped else max(self.done.line, batch.last)
            for bad in sorted([*refused, *batch.bad], key=lambda bad: bad.number):
                self._refuse(source, bad)

    def _append(self, source: Source, batch: Batch) -> list[BadRow]:
        """Append the records; return the lines that this log cannot hold. Raises LineFailure for the first, unless they
        are skipped.
        """
        if not len(batch.numbers):
            return []
        log = self.target.log
        try:
            if batch.encoded is None:
                self.target.give(batch.numbers, lambda: log.append_many(batch.values)[-1])
            else:
                data, lengths = batch.encoded
                self.target.give(batch.numbers, lambda: int(log.append_encoded(data, lengths)[-1]))
        except (EncodeError, InvalidRecord):
            return self._one_by_one(source, batch)  # none was appended; find out which it is
        return []

    def _one_by_one(self, source: Source, batch: Batch) -> list[BadRow]:
        refused = []
        for number, value in batch.singly():
            try:
                self.target.give_one(number, value)
            except (EncodeError, InvalidRecord) as error:
                too_large = isinstance(error, RecordTooLarge)
                bad = BadRow(number, self._reason(error), self._advice(error), mendable=not too_large)
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
        if self.target.log.codec.has_other_readers and self._may_grow:
            return f"a log that JavaScript may read keeps its blocks: begin anew with --block-size {needed}"
        if self._may_grow:
            return f"its blocks cannot grow while records of it are deleted: jitdb compact {self.target.log.path}"
        return f"begin anew with another log and --block-size {needed}"

    def _refuse(self, source: Source, bad: BadRow) -> None:
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


# --- formats --------------------------------------------------------------------------------------------------------


def batches(
    source: Source, name: str, options: RowOptions, first: int, tell: Tell, target: Target
) -> Iterator[Batch]:  # fmt: skip
    """The rows of an opened source of this format, from this line, or record, on.

    `tell` gets notes about them. Raises Failure, Unreadable.
    """
    if name == "ndjson":
        from jitdb.cli.input.json_input import line_batches

        return line_batches(source, options, first, target)
    if name in ("csv", "tsv"):
        from jitdb.cli.input.csv_input import csv_batches

        return csv_batches(source, "\t" if name == "tsv" else "", options, first, tell, target)
    if name == "json":
        from jitdb.cli.input.json_input import array_batches

        found = array_batches(source, options.tagged, target)
    else:
        from jitdb.cli.input.arrow_input import arrow_batches

        found = arrow_batches(source, name, target)
    return (batch.behind(first - 1) for batch in found)


def format_of(source: Source, options: RowOptions) -> tuple[str, bool]:
    """The format of an opened source, and whether it is a guess by its first lines. Raises Failure."""
    if options.format != "auto":
        return options.format, False
    head = source.peek()
    found = _by_magic(head)
    if found:
        return found, False
    name = without_ending(source.path.lower()).rpartition(".")[2]
    if name in _OF_NAMES:
        return _OF_NAMES[name], False
    if _is_json(head.lstrip(), is_whole=source.size is not None):
        return "json", False
    from jitdb.cli.input.csv_input import looks_like_csv

    looks = not source.allow_prefix and looks_like_csv(head)
    return ("csv", True) if looks else ("ndjson", False)


def _is_json(head: bytes, is_whole: bool) -> bool:
    """Whether this is the beginning of JSON over several lines, or of one array of all records, and not of lines.

    is_whole: the source is a file, which has no more than it has now
    """
    first, newline, rest = head.partition(b"\n")
    if first[:1] not in (b"[", b"{"):
        return False
    is_of_records = first[:1] == b"[" and (first[1:].lstrip()[:1] == b"{" or b"".join(head.split()) == b"[]")
    if not newline:
        return is_of_records
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return first[:1] == b"[" or first.strip() == b"{"
    return is_of_records and is_whole and not rest.strip()


def _by_magic(head: bytes) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    return "arrow" if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) else ""
