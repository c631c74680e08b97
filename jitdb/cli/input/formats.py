"""What a source of an import is: NDJSON, or rows of another format; told by an option, by a file's name, or by looking.

Rows come in batches, with the number of each in its source: the line at which it begins, where the format has lines
(`is_lined`), else which record it is.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from jitdb.cli.failures import UsageError
from jitdb.cli.input.lines import Records, Source
from jitdb.cli.input.uncompressed import without_ending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMATS: Final = ("auto", "ndjson", "json", "csv", "tsv", "parquet", "arrow")
LINED: Final = frozenset({"ndjson", "csv", "tsv"})

_OF_NAMES: Final = {
    "ndjson": "ndjson", "jsonl": "ndjson", "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet",
    "pq": "parquet", "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip
_DELIMITERS: Final = ",\t;|"


class Batch(NamedTuple):
    """Some rows, and the number of the last one that they come to."""

    found: Records
    last: int


class EncodedBatch(NamedTuple):
    """Some rows as records of the log already, one behind the other, and the number of the last one."""

    data: NDArray[np.uint8]
    lengths: NDArray[np.int64]  # bytes of each
    numbers: NDArray[np.int64]
    last: int


# Of so many bytes, the codec that kernels write and the bytes of its largest record; None where they do not pay.
Compiled = Callable[[int], tuple[str, int] | None]


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How rows are taken.

    delimiter:   between two fields of CSV; empty: found in its first line
    columns:     of CSV without a first line that names them
    all_text:    fields of CSV stay text
    tagged:      what JSON lacks is written as `jitdb export` writes it
    stop_at_bad: nothing is read behind a row that is none
    """

    format: str = "auto"
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    all_text: bool = False
    tagged: bool = False
    stop_at_bad: bool = True


Tell = Callable[[str], object]


def format_of(source: Source, options: RowOptions) -> tuple[str, bool]:
    """The format of an opened source, and whether only a look at it told. Raises Failure."""
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
    looks = not source.allow_prefix and _looks_like_csv(head)
    return ("csv", True) if looks else ("ndjson", False)


def batches(
    source: Source, name: str, options: RowOptions, first: int, tell: Tell, compiled: Compiled
) -> Iterator[Batch | EncodedBatch]:
    """The rows of an opened source of this format, from this line, or record, on.

    `tell` is told what is worth knowing of them. Raises Failure, Unreadable.
    """
    if name in ("csv", "tsv"):
        from jitdb.cli.input.csv_rows import csv_batches

        delimiter = options.delimiter or ("\t" if name == "tsv" else "")
        return csv_batches(source, delimiter, options, first, tell, compiled)
    if name == "json":
        from jitdb.cli.input.json_array import array_batches

        return _behind(array_batches(source, options.tagged), first - 1)
    from jitdb.cli.input.arrow_rows import arrow_batches

    return _behind(arrow_batches(source, name, compiled), first - 1)


def _behind(found: Iterator[Batch | EncodedBatch], number: int) -> Iterator[Batch | EncodedBatch]:
    """The batches, without the records up to this one."""
    for batch in found:
        if isinstance(batch, EncodedBatch):
            begin = int(batch.numbers.searchsorted(number, side="right"))
            skipped = int(batch.lengths[:begin].sum())
            yield EncodedBatch(batch.data[skipped:], batch.lengths[begin:], batch.numbers[begin:], batch.last)
            continue
        records, last = batch
        begin = bisect_right(records.numbers, number)
        yield Batch(Records(records.values[begin:], records.numbers[begin:]) if begin else records, last)


def delimiter_of(line: str) -> str:
    """What stands between the fields of a line: of the usual signs the one that it has most of, outside of quotes.

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


def _is_json(head: bytes, is_whole: bool) -> bool:
    """Whether what begins so is JSON over several lines, or one array of all records, and no line that is a record.

    is_whole: nothing comes behind it that is not there yet
    """
    first, newline, rest = head.partition(b"\n")
    if first[:1] not in (b"[", b"{"):
        return False
    is_of_records = first[:1] == b"[" and first[1:].lstrip()[:1] == b"{"
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


def _looks_like_csv(head: bytes) -> bool:
    """Whether the first two lines are no JSON, and have as many fields, which are two or more."""
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or any("{" in line or line.lstrip()[0] == "[" for line in lines[:2]):  # text before JSON is none
        return False
    import csv

    sign = delimiter_of(lines[0])
    try:
        counts = {len(row) for row in islice(csv.reader(lines, delimiter=sign, strict=True), 2)}
    except csv.Error:
        return False
    return len(counts) == 1 and min(counts) > 1
