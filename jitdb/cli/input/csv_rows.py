"""Rows of CSV and TSV, as RFC 4180 and spreadsheets write them: by a kernel; what it leaves, by the standard library.

The first line names the fields. What a column holds is decided by its first rows (SAMPLE of them): numbers, where all
that is there are numbers as JSON writes them, of no more than 64 bits, so neither `007` nor `1,5`; true and false,
where all are these, in small letters or not; else text. An empty field is no field of the record. Further down, what
does not fit its column stays text, and is told of.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.failures import Failure
from jitdb.cli.input.batches import Batch, Compiled, EncodedBatch, RowOptions, Tell
from jitdb.cli.input.delimiters import delimiter_of
from jitdb.cli.input.lines import LONGEST, BadLine, Lines, Records, Source
from jitdb.common.paths import format_path
from jitdb.common.words import counted
from jitdb.log.codecs.rows.columns import NUMBER, TEXT, WORD, Column

if TYPE_CHECKING:
    from jitdb.log.codecs.json.kernels import Transcoded
    from jitdb.log.codecs.rows.csv_kernels import RowTranscoder

SAMPLE: Final = 10_000  # rows by which columns are decided
_BATCH: Final = 1_000  # rows

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN: Final = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,300})?"  # a number that json reads as what it is
_PLAINS: Final = re.compile(rf"{_PLAIN}(?:\n{_PLAIN})*")
_WORDS: Final = {"true": True, "false": False}

Convert = Callable[[str], Any]


class _Row(NamedTuple):
    first: int  # its lines
    last: int
    fields: list[str]
    fault: str  # what is wrong with it; empty if nothing is


def csv_batches(
    source: Source, delimiter: str, options: RowOptions, first_line: int, tell: Tell, compiled: Compiled
) -> Iterator[Batch | EncodedBatch]:
    """The rows of a source, from this line on. Raises Failure for a first line that names no fields."""
    lines = Lines(source)
    reader = _Reader(lines, delimiter)
    names = list(options.columns)
    if not names:
        head = next(iter(reader.read(1)), None)
        if head is None:
            return
        names = _names(source, head)
    mark = lines.mark()
    sample = [] if options.all_text else reader.read(SAMPLE)
    lines.back_to(mark)
    values = [None] * len(names) if options.all_text else _columns(sample, len(names))
    columns = [_Column(name, column) for name, column in zip(names, values, strict=True)]
    del sample, values
    coder = _Coder(columns, reader.delimiter, compiled)
    most = _BATCH
    while True:
        if lines.number + 1 >= first_line:
            while (done := coder.transcode(lines)) is not None:
                if len(done.lengths):
                    yield EncodedBatch(
                        done.data, done.lengths, done.lines + (lines.number + 1), lines.number + done.done
                    )
                lines.pass_over(done.position, done.done)
                if done.is_left:  # where rows are often left, several are read at once
                    most = min(2 * most, _BATCH) if done.done < most else 1
                    break
        some = reader.read(most)
        if not some:
            break
        if wanted := [row for row in some if row.first >= first_line]:
            batch = _batch(wanted, columns, options.stop_at_bad)
            yield batch
            if batch.found.bad and options.stop_at_bad:
                return
    coder.count_misfits()
    for column in columns:
        if column.misfits:
            them = counted(column.misfits, "value", "values")
            tell(
                f"{source.name}: {them} of {format_path((column.name,))} no {column.kind}, the first in line "
                f"{column.first_misfit:,}: kept as text (--all-text keeps all)"
            )


class _Reader:
    """The rows of lines, by the standard library. The delimiter is found in the first one where none is given."""

    def __init__(self, lines: Lines, delimiter: str) -> None:
        mark = lines.mark()
        self.delimiter = delimiter or delimiter_of(next(lines, ""))
        lines.back_to(mark)
        self._lines = lines
        csv.field_size_limit(LONGEST)
        self._rows = csv.reader(lines, delimiter=self.delimiter, strict=True)

    def read(self, count: int) -> list[_Row]:
        """So many more, or all that are left: all but blank lines. One that is no CSV has a fault."""
        found: list[_Row] = []
        while len(found) < count:
            begin = self._lines.number + 1
            try:
                fields = next(self._rows)
                fault = ""
            except StopIteration:
                break
            except csv.Error as error:
                fields, fault = [], f"not CSV: {error}"
            fault = self._lines.take_faults() or fault
            if fields or fault:
                found.append(_Row(begin, self._lines.number, fields, fault))
        return found


class _Coder:
    """Makes records of rows by the kernel that a build has, where it pays, and knows the log's codec."""

    def __init__(self, columns: Sequence[_Column], delimiter: str, compiled: Compiled) -> None:
        self._columns = columns
        self._delimiter = delimiter
        self._compiled = compiled
        self._form: tuple[str, int] | None = None  # that the kernel is for
        self._kernel: RowTranscoder | None = None

    def transcode(self, lines: Lines) -> Transcoded | None:
        """The records of lines that lie together, up to one that is left to Python; None where it does not pay."""
        portion = lines.portion()
        form = self._compiled(portion.end - portion.begin) if portion and self._delimiter.isascii() else None
        if portion is None or form is None:
            return None
        if form != self._form:  # blocks have grown
            from jitdb.log.codecs import get_codec
            from jitdb.log.codecs.rows.csv_kernels import RowTranscoder

            self.count_misfits()
            name, largest = form
            encode = get_codec(name).encode
            known = [Column(encode(column.name), column.holds) for column in self._columns]
            keeps_empty = all(column.keeps_empty for column in self._columns)
            self._kernel = RowTranscoder(name, largest, self._delimiter, known, keeps_empty=keeps_empty)
            self._form = form
        assert self._kernel is not None
        return self._kernel.transcode(*portion, lines.number + 1)

    def count_misfits(self) -> None:
        """Tell the columns of those that the kernel found."""
        if self._kernel is None:
            return
        for column, count, first in zip(
            self._columns, self._kernel.misfits.tolist(), self._kernel.first_misfits.tolist(), strict=True
        ):
            if count:
                column.note(count, first)


def _names(source: Source, head: _Row) -> list[str]:
    names = head.fields
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    fault = head.fault or (f"two columns are called {twice[0]!r}" if twice else "")
    if fault:
        raise Failure(
            f"{source.name}, line {head.first}: {fault}",
            "the first line names the fields; --columns NAMES names those of a file without such a line",
        )
    return names


class _Column:
    """What a column holds, as its first values decide (None: text, as it is)."""

    def __init__(self, name: str, values: Sequence[str] | None) -> None:
        self.name = name
        self.misfits = 0
        self.first_misfit = 0
        self.keeps_empty = values is None
        self.holds, self.kind, self._convert = TEXT, "", None
        there = [value for value in values or () if value]
        kinds: tuple[tuple[int, str, Convert], ...] = ((NUMBER, "numbers", _number), (WORD, "true or false", _word))
        for holds, kind, convert in kinds:
            if (convert is _number and _are_plain(there)) or (
                there and all(convert(value) is not None for value in there)
            ):
                self.holds, self.kind, self._convert = holds, kind, convert
                break

    def take(self, values: Sequence[str], rows: Sequence[_Row]) -> Sequence[Any]:
        """The values that stand in these rows; None for those that are no fields."""
        if self._convert is None:
            return values if self.keeps_empty else [value or None for value in values]
        there = [value for value in values if value]
        if self._convert is _number and _are_plain(there):
            numbers: list[Any] = json.loads(f"[{','.join(there)}]")  # all at once
            if len(there) == len(values):
                return numbers
            each = iter(numbers)
            return [next(each) if value else None for value in values]
        taken = [self._convert(value) if value else None for value in values]
        for number, (value, found_value) in enumerate(zip(values, taken, strict=True)):
            if value and found_value is None:
                taken[number] = value
                self.note(1, rows[number].first)
        return taken

    def note(self, count: int, first: int) -> None:
        """So many more values did not fit, the first of them in this line."""
        self.first_misfit = min(first, self.first_misfit or first)
        self.misfits += count


def _are_plain(values: Sequence[str]) -> bool:
    """Whether all are numbers that json reads as what they are."""
    text = "\n".join(values)
    return bool(_PLAINS.fullmatch(text)) and text.count("\n") == len(values) - 1  # none has a newline in it


def _number(text: str) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    if text.lstrip("-").isdigit():
        number = int(text) if len(text) <= 20 else 1 << 64
        return number if -(1 << 63) <= number < 1 << 64 else None
    value = float(text)
    return value if math.isfinite(value) else None


def _word(text: str) -> bool | None:
    return _WORDS.get(text.lower())


def _columns(rows: Sequence[_Row], count: int) -> Sequence[Sequence[str]]:
    whole = [row.fields for row in rows if not row.fault and len(row.fields) == count]
    return list(zip(*whole, strict=True)) if whole else [()] * count


def _batch(rows: Sequence[_Row], columns: Sequence[_Column], stop_at_bad: bool) -> Batch:
    """The records of rows; with `stop_at_bad`, of those before the first that is none."""
    names = [column.name for column in columns]
    found = Records()
    good: list[_Row] = []
    last = rows[-1].last
    for row in rows:
        fault = row.fault
        if not fault and len(row.fields) != len(names):
            them = counted(len(row.fields), "field", "fields")
            fault = f"{them}, where {len(names):,} are named: quotes around a field with the delimiter in it?"
        if fault:
            found.bad.append(BadLine(row.first, fault, _HINT if "UTF-8" in fault else ""))
            if stop_at_bad:
                last = row.first - 1
                break
            continue
        good.append(row)
    taken = [column.take(values, good) for column, values in zip(columns, _columns(good, len(names)), strict=True)]
    found.values = [
        dict(zip(names, row, strict=True))
        if None not in row
        else {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*taken, strict=True)
    ]
    found.numbers = [row.first for row in good]
    return Batch(found, last)


_HINT: Final = "of a file in another encoding: iconv -f LATIN1 -t UTF-8 FILE | jitdb import --format csv - LOG"
