"""The locator of a codec that has none of its own: it decodes every record, in Python. Slow, and right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from jitdb.common.paths import Keys
from jitdb.common.values import ARRAY, MAP, UNDEFINED, kind_of, text_bytes, value_at, value_key
from jitdb.common.words import type_and_size
from jitdb.errors import DecodeError, QueryError
from jitdb.log.codecs.fields.constants import MAX_NESTING
from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NOTHING = value_key(UNDEFINED)


class Decoder(Protocol):
    """The part of a codec that this takes."""

    name: ClassVar[str]

    def decode(self, record: bytes) -> Any: ...

    def decode_at(self, record: bytes, position: int) -> Any: ...

    def is_valid(self, record: bytes) -> bool: ...


class DecodingLocator(Locator):
    """Finds the fields of decoded records."""

    def __init__(self, codec: Decoder, paths: Sequence[Keys]) -> None:
        self._codec = codec
        self._paths = paths

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        keys = [[_NOTHING] * len(records) for _ in self._paths]
        malformed = 0
        if not keys:
            return [], 0
        for number in records.live():
            try:
                value = self._codec.decode(records.record(number))
            except DecodeError:
                malformed += 1
                continue
            for row, path in zip(keys, self._paths, strict=True):
                row[number] = self._key(value_at(value, path), records, number)
        return [FieldValues.of_keys(row) for row in keys], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        keys = [_NOTHING] * len(records)
        for number in np.flatnonzero((positions >= 0) & (positions < records.lengths)).tolist():
            with suppress(DecodeError):
                value = self._codec.decode_at(records.record(number), int(positions[number]))
                keys[number] = self._key(value, records, number)
        return FieldValues.of_keys(keys)

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        is_valid = self._codec.is_valid
        return np.array([number for number in records.live() if not is_valid(records.record(number))], np.int64)

    def _key(self, value: Any, records: RecordBatch, number: int) -> bytes:
        """The key of a value found. Raises QueryError for what no other codec could hold, with the record's offset."""
        try:
            check_value(value)
            return value_key(value)
        except QueryError as error:
            where = "" if records.offsets is None else f"in the record at offset {int(records.offsets[number])} "
            raise QueryError(
                f"{where}the codec {self._codec.name!r} finds {type_and_size(value)}, which cannot be asked for "
                f"({error})"
            ) from None


class Fieldless(DecodingLocator):
    """Of records that have no fields, whatever is in them."""

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        return [FieldValues.of_keys([_NOTHING] * len(records)) for _ in self._paths], 0


def check_value(value: Any, levels: int = MAX_NESTING) -> None:
    """Raise QueryError for what has no key of its own: large integers, lone surrogates, endless nesting, other types.

    >>> check_value({"a": [1, 2**64]})
    Traceback (most recent call last):
        ...
    jitdb.errors.QueryError: an integer of 65 bits does not fit in 64
    """
    if isinstance(value, str):
        if not value.isascii():
            try:
                text_bytes(value)
            except UnicodeEncodeError:
                raise QueryError("the string has a lone surrogate and is not Unicode text") from None
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise QueryError(f"an integer of {value.bit_length()} bits does not fit in 64")
    elif value is not None and (kind := kind_of(value)) in (ARRAY, MAP):
        if levels == 0:
            raise QueryError(f"containers are nested deeper than {MAX_NESTING} levels")
        for part in value:
            check_value(part, levels - 1)
        if kind == MAP:
            for part in value.values():
                check_value(part, levels - 1)
