"""Rows of Parquet and Arrow files, a batch at a time, through pyarrow.

What records have no word for is written as jitdb reads it: times and dates as text of RFC 3339, maps with text as keys
as maps, decimals as numbers. A null is no field.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, Final

from jitdb.cli.error_text import Failure
from jitdb.cli.input.formats import Batch, Compiled, EncodedBatch
from jitdb.cli.input.lines import Records, Source
from jitdb.errors import EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

    from jitdb.log.codecs.rows.column_encoder import ColumnEncoder

_BATCH: Final = 8_192  # rows


def arrow_batches(source: Source, name: str, compiled: Compiled) -> Iterator[Batch | EncodedBatch]:
    """The rows of a source. Raises Failure where pyarrow is missing, or the file is none."""
    try:
        import pyarrow as pa
    except ImportError:
        raise Failure(
            f"{source.name}: {name} is read by pyarrow, which is not installed", "pip install 'jitdb[arrow]'"
        ) from None
    last = 0
    coder = _Coder(compiled)
    with _seekable(source) as file:
        try:
            for batch in _read(file, name):
                for start in range(0, batch.num_rows, _BATCH):
                    some = batch.slice(start, _BATCH)
                    yield coder.encode(some, last) or _rows(some, last)
                    last += some.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise Failure(f"{source.name}, behind record {last:,}: this cannot be read as {name}: {reason}") from None


class _Coder:
    """Makes records of rows by the kernels that a build has, where it pays, and they know the log's codec."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._encoder: ColumnEncoder | None = None

    def encode(self, batch: pa.RecordBatch, last: int) -> EncodedBatch | None:
        """The records of a batch, behind record `last`; None where they are left to Python."""
        form, names = self._compiled(batch.nbytes), batch.schema.names
        if form is None or len(set(names)) < len(names):
            return None
        import numpy as np

        from jitdb.log.codecs import get_codec
        from jitdb.log.codecs.rows.column_encoder import ColumnEncoder

        codec, largest = form
        try:
            if self._encoder is None:
                self._encoder = ColumnEncoder(get_codec(codec), names)
            found = self._encoder.encode([_converted(column) for column in batch.columns], batch.num_rows, largest)
        except EncodeError:  # found again, and told
            return None
        if found is None:
            return None
        return EncodedBatch(*found, np.arange(last + 1, last + 1 + batch.num_rows), last + batch.num_rows)


def _read(file: IO[bytes], name: str) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if name == "parquet":
        from pyarrow import parquet

        yield from parquet.ParquetFile(file).iter_batches(_BATCH)
        return
    if file.read(6) == b"ARROW1":
        with pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
        return
    file.seek(0)
    with pa.ipc.open_stream(file) as stream:
        yield from stream


@contextmanager
def _seekable(source: Source) -> Iterator[IO[bytes]]:
    """The source as a file in which one can go back, as these formats need: what comes by a pipe is stored."""
    if source.is_plain:
        with open(source.path, "rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as stored:
        stored.writelines(source.blocks())
        stored.seek(0)
        yield stored


def _rows(batch: pa.RecordBatch, last: int) -> Batch:
    names = batch.schema.names
    columns = [_values(column) for column in batch.columns]
    values = [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]
    return Batch(Records(values, list(range(last + 1, last + 1 + len(values)))), last + len(values))


def _values(column: pa.Array) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_timestamp(kind):  # here, as Python has no nanoseconds
        zone = "Z" if kind.tz else ""
        utc = column.cast(pa.timestamp(kind.unit, "UTC")) if kind.tz else column
        column = pc.strftime(utc, format=f"%Y-%m-%dT%H:%M:%S{zone}")
    found = _converted(column)
    values: list[Any] = found if isinstance(found, list) else found.to_pylist()
    return values


def _converted(column: pa.Array) -> pa.Array | list[Any]:
    """The column of instants, or of values that records can hold."""
    import pyarrow as pa

    kind = column.type
    if _is_plain(kind) or pa.types.is_timestamp(kind):
        return column
    return [plain(value, kind) for value in column.to_pylist()]


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Python has its values as records do."""
    import pyarrow as pa

    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    return types.is_binary(kind) or any(test(kind) for test in tests)


def plain(value: Any, kind: pa.DataType | None = None) -> Any:
    """A value of a table as a record has it.

    >>> plain({"at": datetime.datetime(2026, 11, 1, 12), "n": [Decimal("1.5"), Decimal(7)], "no": None})
    {'at': '2026-11-01T12:00:00', 'n': [1.5, 7]}
    """
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
        return utc.isoformat() + ("Z" if value.tzinfo else "")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        is_whole = value == value.to_integral_value() and abs(value) < 1 << 63
        return int(value) if is_whole else float(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        import pyarrow as pa

        if kind is not None and pa.types.is_map(kind):
            return {key if isinstance(key, str) else str(plain(key)): plain(item) for key, item in value}
        return [plain(item) for item in value]
    return value
