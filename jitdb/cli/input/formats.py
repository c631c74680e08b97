"""What a source of an import is, NDJSON or rows of another format: by an option, by a file's name, or by looking."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from jitdb.cli.input.batches import Batch, Compiled, EncodedBatch, RowOptions, Tell
from jitdb.cli.input.delimiters import looks_like_csv
from jitdb.cli.input.lines import Records, Source
from jitdb.cli.input.uncompressed import without_ending

FORMATS: Final = ("auto", "ndjson", "json", "csv", "tsv", "parquet", "arrow")
LINED: Final = frozenset({"ndjson", "csv", "tsv"})

_OF_NAMES: Final = {
    "ndjson": "ndjson", "jsonl": "ndjson", "csv": "csv", "tsv": "tsv", "tab": "tsv", "parquet": "parquet",
    "pq": "parquet", "arrow": "arrow", "arrows": "arrow", "feather": "arrow", "ipc": "arrow",
}  # fmt: skip


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
    looks = not source.allow_prefix and looks_like_csv(head)
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
