"""Fields by paths that go into arrays, for all codecs: a codec's locator finds the keys that a path begins with, and
the kernels that read located arrays and maps go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitdb.common.paths import Path, keys_before
from jitdb.common.values import ABSENT, UNDEFINED, values_at
from jitdb.log.codecs.containers import Steps, list_values
from jitdb.log.codecs.fields.located import FieldValues, Locator, RecordBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from jitdb.log.codecs.base import Buffer, Codec


def locator_of(codec: Codec, paths: Sequence[Path]) -> Locator:
    """What finds these fields, each of which leads to one value at most; the empty path is the whole record."""
    keys = [keys_before(path) for path in paths]
    return codec.locator(keys) if list(paths) == keys and () not in keys else PathLocator(codec, paths)


def values_in(codec: Codec, record: Buffer, path: Path) -> Iterator[Any]:
    """All that a path leads to in one record."""
    keys = keys_before(path)
    found = codec.find(record, keys)
    return iter(()) if found is UNDEFINED else values_at(found, path[len(keys) :])


class PathLocator(Locator):
    """Finds the fields of a codec's records, also those within arrays."""

    def __init__(self, codec: Codec, paths: Sequence[Path]) -> None:
        found = dict.fromkeys(keys_before(path) for path in paths)
        self._is_whole = found.pop((), True) is None  # whether a path begins within the record itself
        rows = {keys: row for row, keys in enumerate(found)}
        self._parts = [
            (rows.get(keys, -1), Steps.of(path[len(keys) :]) if path != keys else None)
            for path, keys in ((path, keys_before(path)) for path in paths)
        ]
        self._inner = codec.locator(list(found))

    def fields(self, records: RecordBatch) -> tuple[list[FieldValues], int]:
        found, malformed = self._inner.fields(records)
        if self._is_whole:
            whole = self._inner.values_at(records, np.zeros(len(records), np.int64))
            wrong = self._inner.invalid(records)
            whole.kind[wrong] = ABSENT
            malformed = len(wrong)
            found.append(whole)  # where the number -1 finds it
        return [found[row] if steps is None else _one_each(found[row], steps) for row, steps in self._parts], malformed

    def values_at(self, records: RecordBatch, positions: NDArray[np.int64]) -> FieldValues:
        return self._inner.values_at(records, positions)

    def invalid(self, records: RecordBatch) -> NDArray[np.int64]:
        return self._inner.invalid(records)


def _one_each(values: FieldValues, steps: Steps) -> FieldValues:
    """What a path that leads to one value finds in each of the values: an entry each."""
    found, owners = list_values(values, steps)
    kind = np.full(len(values.kind), ABSENT, np.uint8)
    start, length = np.zeros(len(kind), np.int32), np.zeros(len(kind), np.int32)
    number = np.zeros(len(kind))
    kind[owners], start[owners], length[owners], number[owners] = found.kind, found.start, found.length, found.number
    return FieldValues(values.encoding, values.buffer, kind, start, length, number)
