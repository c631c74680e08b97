"""Rows of CSV and TSV, as RFC 4180 and spreadsheets write them, by the standard library.

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
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from jitdb.cli.error_text import Failure
from jitdb.cli.input.formats import Batch, RowOptions, Tell, delimiter_of
from jitdb.cli.input.lines import LONGEST, BadLine, Records, Source
from jitdb.common.paths import format_path
from jitdb.common.words import counted

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


def csv_batches(source: Source, delimiter: str, options: RowOptions, first_line: int, tell: Tell) -> Iterator[Batch]:
    """The rows of a source, from this line on. Raises Failure for a first line that names no fields."""
    reader = _Reader(source, delimiter)
    rows = reader.rows()
    names = list(options.columns)
    if not names:
        head = next(rows, None)
        if head is None:
            return
        names = _names(source, head)
    sample = list(islice(rows, 0 if options.all_text else SAMPLE))
    columns = [_Column(name, column) for name, column in zip(names, _columns(sample, len(names)), strict=True)]
    if options.all_text:
        columns = [_Column(name, None) for name in names]
    wanted = (row for row in chain(sample, rows) if row.first >= first_line)
    del sample
    yield from _batched(wanted, columns, options.stop_at_bad)
    for column in columns:
        if column.misfits:
            them = counted(column.misfits, "value", "values")
            tell(
                f"{source.name}: {them} of {format_path((column.name,))} no {column.kind}, the first in line "
                f"{column.first_misfit:,}: kept as text (--all-text keeps all)"
            )


class _Reader:
    """The rows of a source, with their lines."""

    def __init__(self, source: Source, delimiter: str) -> None:
        self._source = source
        self._delimiter = delimiter
        self._faults: dict[int, str] = {}  # by line: of what is no UTF-8

    def rows(self) -> Iterator[_Row]:
        """All but blank lines. One that is no CSV has a fault."""
        csv.field_size_limit(LONGEST)
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            return
        delimiter = self._delimiter or delimiter_of(first)
        reader = csv.reader(_with(first, lines), delimiter=delimiter, strict=True)
        while True:
            begin = reader.line_num + 1
            try:
                fields = next(reader)
                fault = ""
            except StopIteration:
                return
            except csv.Error as error:
                fields, fault = [], f"not CSV: {error}"
            if self._faults:
                fault = "; ".join(told for line, told in self._faults.items() if line <= reader.line_num) or fault
                self._faults = {line: told for line, told in self._faults.items() if line > reader.line_num}
            if fields or fault:
                yield _Row(begin, reader.line_num, fields, fault)

    def _lines(self) -> Iterator[str]:
        number = 0
        for portion in self._source.portions():
            lines, _ = portion.lines(portion.begin, portion.end)
            for line in lines:
                number += 1
                try:
                    text = str(line, "utf-8")
                except UnicodeDecodeError as error:
                    self._faults[number] = f"not UTF-8: byte 0x{line[error.start]:02x} in column {error.start + 1}"
                    text = line.decode("latin-1")
                yield text + "\n"


def _with(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _names(source: Source, head: _Row) -> list[str]:
    """The names of the fields. Raises Failure."""
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
        self.kind, self._convert = "", None
        there = [value for value in values or () if value]
        kinds: tuple[tuple[str, Convert], ...] = (("numbers", _number), ("true or false", _word))
        for kind, convert in kinds:
            if (convert is _number and _are_plain(there)) or (
                there and all(convert(value) is not None for value in there)
            ):
                self.kind, self._convert = kind, convert
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
                self.first_misfit = self.first_misfit or rows[number].first
                self.misfits += 1
        return taken


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


def _batched(rows: Iterator[_Row], columns: Sequence[_Column], stop_at_bad: bool) -> Iterator[Batch]:
    names = [column.name for column in columns]
    while some := list(islice(rows, _BATCH)):
        found = Records()
        good: list[_Row] = []
        last = some[-1].last
        for row in some:
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
        yield Batch(found, last)
        if found.bad and stop_at_bad:
            return


_HINT: Final = "of a file in another encoding: iconv -f LATIN1 -t UTF-8 FILE | jitdb import --format csv - LOG"
