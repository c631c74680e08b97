"""What a task of a write does: rows of Arrow record batches as values for a codec, and these as records in a file.

docs/spark.md tells what becomes of which type. Decimals and intervals are refused: no codec has them, and rounding is
for the user to decide; but a variant's decimals are what JSON's fractions became, so they are numbers.

Rows of numbers, text, dates and times become JSON or msgpack many at once (log/codecs/table_rows.py), all others value
by value.

A file has chunks of some thousand records: how many (u32, little-endian), the length of each (u32), and their bytes.
job.py tells where it lies.
"""

from __future__ import annotations

import datetime
import decimal
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jitdb.common import zlib
from jitdb.errors import JitdbError, QueryError
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.codecs.arrow_columns import is_variant
from jitdb.spark_ext.errors import SparkError, finding_codec

if TYPE_CHECKING:
    from numpy.typing import NDArray

Convert: TypeAlias = Callable[[Any], Any] | None  # None: the value stays as it is

U32: Final = np.dtype("<u4")  # of a file's numbers
_FIRST_DAY, _LAST_DAY = (each.toordinal() - 719_163 for each in (datetime.date.min, datetime.date.max))  # from 1970
_WRITE_AT: Final = 4 << 20  # bytes that a task gathers before it writes


class Encoded(NamedTuple):
    """Records, one behind the other, and the bytes of each (int64)."""

    data: NDArray[np.uint8]
    lengths: NDArray[np.int64]


class RowEncoder:
    """Turns batches of one schema into values. Raises QueryError for a column that has no form in a record."""

    def __init__(self, schema: pa.Schema, keep_nulls: bool) -> None:
        self._names = list(schema.names)
        self._keep_nulls = keep_nulls
        self._converts = [converter(each.type, each.name, keep_nulls) for each in schema]

    def rows(self, batch: pa.RecordBatch, codec: Codec) -> Iterator[Encoded | dict[str, Any]]:
        """The rows as records, many at once, where that can be; else as values() gives them."""
        if self._keep_nulls or not all(_is_flat(each.type) for each in batch.schema):
            yield from self.values(batch)
            return
        from jitdb.log.codecs.table_rows import BATCH, encoded_rows

        for start in range(0, batch.num_rows, BATCH):
            some = batch.slice(start, BATCH)
            columns = [_as_millis(column) for column in some.columns]
            is_usual = all(map(_is_of_this_era, columns))
            found = encoded_rows(pa.RecordBatch.from_arrays(columns, names=self._names), codec) if is_usual else None
            if found is None:
                yield from self.values(some)
            else:
                yield Encoded(*found)

    def values(self, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """A map a row. Raises SparkError for a date or a time that Python cannot hold."""
        columns = []
        for name, column, convert in zip(self._names, batch.columns, self._converts, strict=True):
            try:
                found = plain(column).to_pylist()
            except (ValueError, OverflowError) as error:
                raise SparkError(
                    f"the column {name!r} holds a date or a time that is not of the years 1 to 9999 ({error})",
                    remedy="cast it to string or long",
                ) from error
            columns.append(
                found if convert is None else [None if item is None else convert(item) for item in found]
            )  # fmt: skip
        names = self._names
        if self._keep_nulls:
            for row in zip(*columns, strict=True):
                yield dict(zip(names, row, strict=True))
            return
        for row in zip(*columns, strict=True):
            yield {name: value for name, value in zip(names, row, strict=True) if value is not None}


def plain(column: pa.Array) -> pa.Array:
    """The column with its times as whole numbers, which Python's own times would cost more and reach less far."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column


def _is_flat(kind: pa.DataType) -> bool:
    """Whether records have a word for each value, so that they need not be looked at one by one."""
    types = pa.types
    tests = (
        types.is_boolean, types.is_integer, types.is_floating, types.is_string, types.is_timestamp, types.is_date32,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _is_of_this_era(column: pa.Array) -> bool:
    """Whether all dates have four digits for their year, which are all that values() takes."""
    if not pa.types.is_date32(column.type):
        return True
    ends = pc.min_max(column.cast(pa.int32())).as_py()
    return ends["min"] is None or (ends["min"] >= _FIRST_DAY and ends["max"] <= _LAST_DAY)


def _as_millis(column: pa.Array) -> pa.Array:
    """A column whose instants are milliseconds, with fractions where there are any."""
    if not pa.types.is_timestamp(column.type):
        return column
    micros = plain(column)
    whole = pc.divide(micros, 1000)
    is_whole = pc.all(pc.equal(pc.multiply(whole, 1000), micros)).as_py() in (True, None)
    return whole if is_whole else pc.divide(micros.cast(pa.float64()), 1000.0)


def converter(kind: pa.DataType, name: str, keep_nulls: bool) -> Convert:
    """What turns a value of `to_pylist` into one for a codec. Raises QueryError."""
    if pa.types.is_timestamp(kind):
        return _millis
    if pa.types.is_date(kind):
        return datetime.date.isoformat
    if is_variant(kind):
        return _variant
    if pa.types.is_struct(kind):
        return _struct(kind, name, keep_nulls)
    if pa.types.is_map(kind):
        return _map(kind, name, keep_nulls)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(kind, name, keep_nulls)
    simple = (
        pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string,
        pa.types.is_binary, pa.types.is_large_binary, pa.types.is_null,
    )  # fmt: skip
    if any(is_it(kind) for is_it in simple):
        return None
    raise QueryError(
        f"the column {name!r} is of the type {kind}, which a record cannot hold", remedy="cast it to double or string"
    )


def _millis(value: Any) -> int | float:
    """Of microseconds, as plain() gives them; of a datetime, as they stand within structs and arrays."""
    if isinstance(value, datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo and datetime.UTC)
        value = (value - epoch) // datetime.timedelta(microseconds=1)
    whole, rest = divmod(int(value), 1000)
    return value / 1000 if rest else whole


def _variant(value: Any) -> Any:
    from pyspark.sql.types import VariantVal

    return _of_variant(VariantVal(value["value"], value["metadata"]).toPython())


def _of_variant(value: Any) -> Any:
    """Fractions in JSON are decimals in a variant: the nearest double is what JSON means by them."""
    if isinstance(value, dict):
        return {key: _of_variant(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_of_variant(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.datetime):
        return _millis(value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def _struct(kind: pa.DataType, name: str, keep_nulls: bool) -> Convert:
    fields = [kind.field(number) for number in range(kind.num_fields)]
    converts = {each.name: converter(each.type, f"{name}.{each.name}", keep_nulls) for each in fields}

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return {
            key: item if item is None or (inner := converts[key]) is None else inner(item)
            for key, item in value.items()
            if keep_nulls or item is not None
        }

    return convert


def _map(kind: pa.DataType, name: str, keep_nulls: bool) -> Convert:
    if not pa.types.is_string(kind.key_type):
        raise QueryError(f"the column {name!r} has keys of the type {kind.key_type}: a record's keys are text")
    inner = converter(kind.item_type, name, keep_nulls)

    def convert(value: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: item if item is None or inner is None else inner(item) for key, item in value}

    return convert


def _list(kind: pa.DataType, name: str, keep_nulls: bool) -> Convert:
    inner = converter(kind.value_type, f"{name}[]", keep_nulls)
    if inner is None:
        return None
    return lambda value: [None if item is None else inner(item) for item in value]


# --- the file --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The log that a job writes to. Can be pickled.

    folder: of the job; path and what JOB is called follow from it (job.py)
    codec, block_size: of the log that is there; or of the new one
    by: columns by which rows come into folders below the path, with a log in each (partitioned.py)
    """

    path: str
    folder: str
    codec: str
    block_size: int
    overwrite: bool
    by: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The path that the job was given."""
        return self.folder.rpartition(".spark-")[0]

    def find_codec(self) -> Codec:
        """Raises CodecError where this process knows no such codec."""
        with finding_codec(self.path):
            return get_codec(self.codec)


@dataclass(frozen=True, slots=True)
class Written:
    """What a task has written; no file where there were no rows.

    start:  the byte of the file from which on it lies there
    folder: for which it is, below the path of the job
    """

    partition: int
    name: str
    records: int
    bytes: int
    crc: int
    start: int = 0
    folder: str = ""


def write_partition(target: Target, partition: int, attempt: str, values: Iterable[Any]) -> Written:
    """Encode and write the rows of a partition, values or Encoded. What it wrote of them is removed if it fails.

    Raises SparkError for a row that no record can hold, or where the file cannot be written.
    """
    name = f"part-{partition:06d}-{attempt}"
    path = os.path.join(target.folder, name)
    try:
        done = _write_file(target, path, values)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(path)
        raise
    return Written(partition, name if done[0] else "", *done)


def _write_file(target: Target, path: str, values: Iterable[Any]) -> tuple[int, int, int]:
    records = size = crc = 0
    with open(path, "xb", buffering=0) as file:
        for chunk in chunks(target, values):
            head = np.array([len(chunk.lengths), *chunk.lengths], U32).tobytes()
            for part in (head, chunk.data.data):
                size, crc = size + len(part), zlib.crc32(part, crc)
                write_bytes(path, file, part)
            records += len(chunk.lengths)
        os.fsync(file.fileno())
    if not records:
        os.unlink(path)
    return records, size, crc


def chunks(target: Target, values: Iterable[Any]) -> Iterator[Encoded]:
    """The rows as records, some thousand at a time. Raises SparkError."""
    encode, largest = target.find_codec().encode, largest_record(target.block_size)
    gathered: list[bytes] = []
    records = held = 0
    for value in values:
        if isinstance(value, Encoded):
            if gathered:
                yield _joined(gathered)
                gathered, held = [], 0
            over = np.flatnonzero(value.lengths > largest)
            if len(over):
                raise _too_large(target, records + int(over[0]), int(value.lengths[over[0]]), largest)
            yield value._replace(data=value.data[: int(value.lengths.sum())])
            records += len(value.lengths)
            continue
        try:
            record = encode(value)
        except JitdbError as error:
            raise SparkError(f"row {records:,} of its partition cannot be a {target.codec} record: {error}") from error
        if len(record) > largest:
            raise _too_large(target, records, len(record), largest)
        gathered.append(record)
        records, held = records + 1, held + len(record)
        if held >= _WRITE_AT:
            yield _joined(gathered)
            gathered, held = [], 0
    if gathered:
        yield _joined(gathered)


def _joined(records: list[bytes]) -> Encoded:
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    return Encoded(np.frombuffer(b"".join(records), np.uint8), lengths)


def _too_large(target: Target, row: int, size: int, largest: int) -> SparkError:
    return SparkError(
        f"row {row:,} of its partition is a record of {size:,} bytes, and blocks of {target.block_size:,} bytes hold "
        f"{largest:,} at most",
        remedy="a new log can have larger ones (blockSize)",
    )


def write_bytes(path: str, file: FileIO, data: bytes | memoryview) -> None:
    """All of it: a full disk cuts a write short, and only the next one fails."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        raise SparkError(f"it cannot be written: {error.strerror}", path=path) from error
