"""Rows of CSV and TSV, as RFC 4180 and spreadsheets write them. A kernel reads them for a log of the codec json; the
standard library reads what the kernel leaves, and all rows for other logs.

The first line names the fields; one such as `sep=;` before it, as Excel writes, the delimiter. Where each of the first
rows has one value more than there are names, as Event Viewer writes, it is `message` of that program, else such as
`column_3`. The first rows (SAMPLE of them) decide what a column holds: numbers, if all of its
values are numbers as JSON writes them, of no more than 64 bits, so neither `007` nor `1,5`; true and false, if all are
these words, in any case; else text. An empty field is left out of its record. A later value that does not fit its
column stays text, and a note counts these.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jitdb.cli.failures import Failure, UsageError
from jitdb.cli.input.input_batches import BadRow, Batch, RowOptions, Tell
from jitdb.cli.input.sources import LONGEST, Portion, Source, no_utf8
from jitdb.common.paths import format_path
from jitdb.common.words import counted
from jitdb.log.lines.formats.headers import SEP, name_of_more

if TYPE_CHECKING:
    from jitdb.cli.input.import_target import Target
    from jitdb.log.codecs.json.row_kernels import RowFramer

SAMPLE: Final = 10_000  # rows by which columns are decided
_BATCH: Final = 1_000  # rows
_DELIMITERS: Final = ",\t;|"

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
    source: Source, delimiter: str, options: RowOptions, first_line: int, tell: Tell, target: Target
) -> Iterator[Batch]:
    """The rows of a source, from this line on. Raises Failure for a first line that names no fields."""
    lines = _Lines(source)
    reader = _Reader(lines, options.delimiter or delimiter)
    names = list(options.columns)
    if not names:
        head = next(iter(reader.read(1)), None)
        if head is None:
            return
        names = _names(source, head)
    mark = lines.mark()
    sample = reader.read(_BATCH if options.all_text else SAMPLE)
    lines.back_to(mark)
    if not options.columns and _are_wider(sample, len(names)):
        names.append(name_of_more(names) or f"column_{len(names) + 1}")
    sample = [] if options.all_text else sample
    values = [None] * len(names) if options.all_text else _columns(sample, len(names))
    columns = [_Column(name, column) for name, column in zip(names, values, strict=True)]
    del sample, values
    framer: RowFramer | None = None
    most = _BATCH
    while True:
        portion = lines.portion() if lines.number + 1 >= first_line else None
        if portion and reader.delimiter.isascii() and target.is_framed(portion.end - portion.begin):
            framer = framer or _framer(reader.delimiter, columns, target)
            done = framer.frame(*portion, lines.number + 1)
            yield Batch.framed(done, lines.number + 1)
            lines.pass_over(done.position, done.done)
            if not done.is_left:
                continue
            most = min(2 * most, _BATCH) if done.done < most else 1  # where rows are often left, several at once
        some = reader.read(most)
        if not some:
            break
        if wanted := [row for row in some if row.first >= first_line]:
            batch = _batch(wanted, columns, options.stop_at_bad)
            yield batch
            if batch.bad and options.stop_at_bad:
                return
    for number, column in enumerate(columns):
        if framer is not None:
            column.note(int(framer.misfits[number]), int(framer.first_misfits[number]))
        if column.misfits:
            them = counted(column.misfits, "value", "values")
            tell(
                f"{source.name}: {them} of {format_path((column.name,))} no {column.kind}, the first in line "
                f"{column.first_misfit:,}: kept as text (--all-text keeps all)"
            )


def _framer(delimiter: str, columns: Sequence[_Column], target: Target) -> RowFramer:
    with target.undisturbed():
        from jitdb.log.codecs.json import row_kernels

    kinds: dict[Convert | None, int] = {None: row_kernels.TEXT, _number: row_kernels.NUMBER, _word: row_kernels.WORD}
    known = [(json.dumps(column.name, ensure_ascii=False), kinds[column.convert]) for column in columns]
    return row_kernels.RowFramer(delimiter, known, row_kernels.ALL if columns[0].keeps_empty else row_kernels.NONE)


class _Reader:
    """The rows of lines, by the standard library. The delimiter is found in the first one where none is given."""

    def __init__(self, lines: _Lines, delimiter: str) -> None:
        mark = lines.mark()
        first = next(lines, "")
        said = SEP.fullmatch(first.rstrip("\r\n"))
        self.delimiter = delimiter or (said[1] if said else delimiter_of(first))
        lines.back_to(mark)
        if said:
            next(lines)
        self._lines = lines
        csv.field_size_limit(LONGEST)
        self._rows = csv.reader(lines, delimiter=self.delimiter, strict=True)

    def read(self, count: int) -> list[_Row]:
        """The next `count` rows, or all that are left, without blank lines. A row that is not CSV has a fault."""
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


def _are_wider(rows: Sequence[_Row], count: int) -> bool:
    """Whether each row has one value more than there are names, and one of these values is not empty."""
    whole = [row.fields for row in rows if not row.fault]
    return count > 1 and bool(whole) and all(len(row) == count + 1 for row in whole) and any(row[-1] for row in whole)


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
        self.kind = ""
        self.convert: Convert | None = None
        there = [value for value in values or () if value]
        kinds: tuple[tuple[str, Convert], ...] = (("numbers", _number), ("true or false", _word))
        for kind, convert in kinds:
            if (convert is _number and _are_plain(there)) or (
                there and all(convert(value) is not None for value in there)
            ):
                self.kind, self.convert = kind, convert
                break

    def take(self, values: Sequence[str], rows: Sequence[_Row]) -> Sequence[Any]:
        """The values that stand in these rows; None for those that are no fields."""
        if self.convert is None:
            return values if self.keeps_empty else [value or None for value in values]
        there = [value for value in values if value]
        if self.convert is _number and _are_plain(there):
            numbers: list[Any] = json.loads(f"[{','.join(there)}]")  # all at once
            if len(there) == len(values):
                return numbers
            each = iter(numbers)
            return [next(each) if value else None for value in values]
        taken = [self.convert(value) if value else None for value in values]
        for number, (value, found_value) in enumerate(zip(values, taken, strict=True)):
            if value and found_value is None:
                taken[number] = value
                self.note(1, rows[number].first)
        return taken

    def note(self, count: int, first: int) -> None:
        """Count values that did not fit, the first of them in this line."""
        if count:
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
    found = Batch(rows[-1].last)
    good: list[_Row] = []
    for row in rows:
        fault = row.fault
        if not fault and len(row.fields) != len(names):
            them = counted(len(row.fields), "field", "fields")
            fault = f"{them}, where {len(names):,} are named: quotes around a field with the delimiter in it?"
        if not fault:
            good.append(row)
            continue
        found.bad.append(BadRow(row.first, fault, _HINT if "UTF-8" in fault else ""))
        if stop_at_bad:
            found.last = row.first - 1
            break
    taken = [column.take(values, good) for column, values in zip(columns, _columns(good, len(names)), strict=True)]
    found.values = [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*taken, strict=True)
    ]
    found.numbers = [row.first for row in good]
    return found


_HINT: Final = "of a file in another encoding: iconv -f LATIN1 -t UTF-8 FILE | jitdb import --format csv - LOG"


class _Lines:
    """The lines of a source, one by one as text, or as they lie. An iterator; what is no UTF-8 in them are faults."""

    def __init__(self, source: Source) -> None:
        self.number = 0  # of lines so far
        self._portions = source.portions()
        self._here: deque[Portion] = deque()  # what of the source is read, and not done
        self._since: list[Portion] | None = None  # all that is read since the mark
        self._faults: list[str] = []

    def portion(self) -> Portion | None:
        """The lines from here on that lie together; None at the end."""
        while not self._here:
            portion = next(self._portions, None)
            if portion is None:
                return None
            if self._since is not None:  # its bytes are gone when the next but one is read
                portion = portion.copy()
                self._since.append(portion)
            self._here.append(portion)
        return self._here[0]

    def pass_over(self, position: int, count: int) -> None:
        """Go on at this place of the portion, which is `count` lines further."""
        self.number += count
        portion = self._here[0]
        if position < portion.end:
            self._here[0] = portion._replace(begin=position)
        else:
            self._here.popleft()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        portion = self.portion()
        if portion is None:
            raise StopIteration
        stop = portion.data.index(b"\n", portion.begin)
        line = portion.data[portion.begin : stop + 1]
        self.pass_over(stop + 1, 1)
        try:
            return str(line, "utf-8")
        except UnicodeDecodeError as error:
            self._faults.append(no_utf8(line, error))
            return line.decode("latin-1")

    def take_faults(self) -> str:
        """What was not UTF-8 since the last call."""
        told = "; ".join(self._faults)
        self._faults.clear()
        return told

    def mark(self) -> int:
        """Note this place, to go back to it."""
        self._since = [portion.copy() for portion in self._here]
        self._here = deque(self._since)
        return self.number

    def back_to(self, number: int) -> None:
        """Go back to the last mark, whose line number this is."""
        assert self._since is not None
        self.number = number
        self._here, self._since = deque(self._since), None
        self._faults.clear()


def delimiter_of(line: str) -> str:
    """The delimiter of a line: the most frequent of the usual signs outside of quotes.

    >>> delimiter_of('"a,b";c;d'), delimiter_of("a")
    (';', ',')
    """
    bare = re.sub(r'"(?:[^"]|"")*"', "", line)
    return max(_DELIMITERS, key=bare.count)


def check_delimiter(text: str) -> str:
    r"""One character; `\t` is a tab. Raises UsageError."""
    delimiter = "\t" if text == "\\t" else text
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UsageError(f"import: --delimiter is one character, not {text!r}")
    return delimiter


def looks_like_csv(head: bytes) -> bool:
    """Whether the first two lines are no JSON, and have as many fields, which are two or more."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or any("{" in line or line.lstrip()[0] == "[" for line in lines[:2]):  # text before JSON is none
        return False
    said = SEP.fullmatch(lines[0].strip("\r\n"))
    sign = said[1] if said else delimiter_of(lines[0])
    lines = lines[1:] if said else lines
    try:
        counts = {len(row) for row in islice(csv.reader(lines, delimiter=sign, strict=True), 2)}
    except csv.Error:
        return False
    return len(counts) == 1 and min(counts) > 1
