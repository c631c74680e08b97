"""What a task of a write does: rows of Arrow record batches as values for a codec, and these as records in a file.

docs/spark.md tells what becomes of which type. Decimals and intervals are refused: no codec has them, and rounding is
for the user to decide; but a variant's decimals are what JSON's fractions became, so they are numbers.

A file has of each record its length (u32, little-endian) and its bytes. job.py tells where it lies.
"""

from __future__ import annotations

import datetime
import decimal
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any, Final, TypeAlias

import pyarrow as pa

from jitdb.common import zlib
from jitdb.errors import JitdbError, QueryError
from jitdb.log.blocks.block_format import largest_record
from jitdb.log.codecs import Codec, get_codec
from jitdb.log.codecs.arrow_columns import is_variant
from jitdb.spark_ext.errors import SparkError, finding_codec

Convert: TypeAlias = Callable[[Any], Any] | None  # None: the value stays as it is

LENGTH: Final = struct.Struct("<I")
_WRITE_AT: Final = 4 << 20  # bytes that a task gathers before it writes


class RowEncoder:
    """Turns batches of one schema into values. Raises QueryError for a column that has no form in a record."""

    def __init__(self, schema: pa.Schema, keep_nulls: bool) -> None:
        self._names = list(schema.names)
        self._keep_nulls = keep_nulls
        self._converts = [converter(each.type, each.name, keep_nulls) for each in schema]

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

    codec, block_size: of the log that is there; or of the new one
    """

    path: str
    folder: str
    codec: str
    block_size: int
    overwrite: bool

    def find_codec(self) -> Codec:
        """Raises CodecError where this process knows no such codec."""
        with finding_codec(self.path):
            return get_codec(self.codec)


@dataclass(frozen=True, slots=True)
class Written:
    """What a task has written; no file where there were no rows."""

    partition: int
    name: str
    records: int
    bytes: int
    crc: int


def write_partition(target: Target, partition: int, attempt: str, values: Iterable[Any]) -> Written:
    """Encode and write the rows of a partition. What it wrote of them is removed if it fails.

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
    encode, largest = target.find_codec().encode, largest_record(target.block_size)
    records = size = crc = 0
    gathered = bytearray()
    with open(path, "xb", buffering=0) as file:
        for value in values:
            try:
                record = encode(value)
            except JitdbError as error:
                raise SparkError(
                    f"row {records:,} of its partition cannot be a {target.codec} record: {error}"
                ) from error
            if len(record) > largest:
                raise SparkError(
                    f"row {records:,} of its partition is a record of {len(record):,} bytes, and blocks "
                    f"of {target.block_size:,} bytes hold {largest:,} at most",
                    remedy="a new log can have larger ones (blockSize)",
                )
            gathered += LENGTH.pack(len(record))
            gathered += record
            records += 1
            if len(gathered) >= _WRITE_AT:
                size, crc = size + len(gathered), zlib.crc32(gathered, crc)
                _write(path, file, gathered)
                gathered.clear()
        size, crc = size + len(gathered), zlib.crc32(gathered, crc)
        _write(path, file, gathered)
        os.fsync(file.fileno())
    if not records:
        os.unlink(path)
    return records, size, crc


def _write(path: str, file: FileIO, data: bytearray) -> None:
    """All of it: a full disk cuts a write short, and only the next one fails."""
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        raise SparkError(f"it cannot be written: {error.strerror}", path=path) from error
