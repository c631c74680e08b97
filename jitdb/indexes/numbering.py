"""Numbers the values of a field while it is scanned: one table a worker, grown by doubling.

The kernel `number_values` does the work. A table holds its arrays, and gives the value of a number as its canonical
key. Beyond a limit the table is *full*: the field has too many values for bitmaps, or too large ones, and from then on
its records are indexed by hashes.
"""

from __future__ import annotations

import sys
from os import urandom
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.values import ARRAY, MAP, NUMBER, number_key, value_key
from jitdb.log.codecs.containers import container_key
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PROBES: Final = 1 << 10  # slots that are looked at for a value; at most half are taken, so bad luck takes about 90


class Limits(NamedTuple):
    """The most that a table takes: values, bytes of all of them, and bytes of one array or map."""

    values: int
    value_bytes: int
    container_bytes: int


def key_at(values: FieldValues, number: int) -> bytes:
    """The canonical key of one of the values, by its place."""
    kind = int(values.kind[number])
    if kind == NUMBER:
        value = float(values.number[number])
        return number_key(value, int(values.length[number])) if value == value else value_key(value)
    payload = values.payload(number)
    return container_key(values.encoding, kind, payload) if kind in (ARRAY, MAP) else bytes([kind]) + payload


class NumberingTable:
    """Equal values get equal numbers, from 1 up. Without limits it is never full."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.filled = 1  # entry 0 means "no value"
        self.payload_bytes = 0  # of all values that were numbered
        self._limits = limits
        self._encoding = KEYS  # of arrays and maps: that of the values seen
        self._secret = np.frombuffer(urandom(24), np.uint64)  # keys of the hash that gives a value its slot
        self._keys = {0: b"\0"}  # those that were made, by entry: decoding arrays and maps costs too much to do twice
        self._slots = np.zeros(1 << 9, np.int32)
        self._kind = np.zeros(1 << 8, np.uint8)
        self._start = np.zeros(1 << 8, np.int64)
        self._length = np.zeros(1 << 8, np.int32)
        self._number = np.zeros(1 << 8, np.float64)
        self._hash = np.zeros(1 << 8, np.uint64)
        self._arena = np.zeros(1 << 14, np.uint8)
        self._recent = np.zeros(0, np.uint64)  # see the kernel

    def find(self, values: FieldValues) -> NDArray[np.uint32]:
        """The number of each value (encoding KEYS, as all of the table), 0 where it has none yet."""
        found = self.number(values, np.zeros(len(values.kind), np.uint8), is_fixed=True)
        assert found is not None
        return found

    def number(
        self, values: FieldValues, states: NDArray[np.uint8], *, is_fixed: bool = False
    ) -> NDArray[np.uint32] | None:  # fmt: skip
        """The number of each record's value (NO_VALUE, NO_RECORD where there is none), or None once full. Values that
        are not there yet are not added if the table is fixed.
        """
        from jitdb.indexes import numbering_kernels as kernels

        if not len(self._recent):
            self._recent = np.zeros(3 * kernels.RECENT, np.uint64)
        count = len(values.kind)
        self._encoding = self._encoding if is_fixed else values.encoding
        out = np.empty(count, np.uint32)
        done = 0
        limits = self._limits
        largest = sys.maxsize if limits is None else limits.container_bytes
        while True:
            done, self.filled, self.payload_bytes, crowded = kernels.number_values(
                values.buffer, values.kind, values.start, values.length, values.number, states, done, count,
                is_fixed, self._secret, MAX_PROBES, largest, self._slots, self.filled, self.payload_bytes,
                self._kind, self._start, self._length, self._number, self._hash, self._arena, self._recent, out,
            )  # fmt: skip
            if done == count:
                return out
            if limits and (crowded or self.filled > limits.values or self.payload_bytes > limits.value_bytes):
                return None
            entries = 2 * len(self._kind) if self.filled >= len(self._kind) else 0
            slots = 2 * len(self._slots) if crowded or entries else 0
            end = self.payload_bytes + int(values.length[done])
            self._grow(entries, slots, max(2 * len(self._arena), end) if end > len(self._arena) else 0)

    def reserve(self, values: int, payload: int) -> None:
        """Make room for so many more values, of so many bytes together: untouched room costs no memory."""
        entries = self.filled + values
        self._grow(entries, 1 << (2 * entries).bit_length(), self.payload_bytes + payload)

    def _grow(self, entries: int, slots: int, arena: int) -> None:
        """Make room for so many, where there is less."""
        from jitdb.indexes import numbering_kernels as kernels

        for name in ("_kind", "_start", "_length", "_number", "_hash"):
            setattr(self, name, longer(getattr(self, name), entries))
        self._arena = longer(self._arena, arena)
        if slots > len(self._slots):
            self._slots = np.zeros(slots, np.int32)
            kernels.refill_slots(self._slots, self._hash, self.filled)

    def key(self, entry: int) -> bytes:
        """The canonical key of a number, made once."""
        found = self._keys.get(entry)
        if found is None:
            found = self._keys[entry] = key_at(self.values(), entry)
        return found

    def keys(self) -> list[bytes]:
        """The canonical key of every number; entry 0 is that of an absent field."""
        values = self.values()
        for entry in range(len(values.kind)):
            if entry not in self._keys:
                self._keys[entry] = key_at(values, entry)
        return [self._keys[entry] for entry in range(len(values.kind))]

    def distinct(self) -> int:
        """How many values there are for certain: arrays and maps may be the same value in other bytes."""
        return self.filled - 1 - len(self.containers())

    def containers(self) -> list[int]:
        """The numbers of all arrays and maps. Two may be of equal ones."""
        kinds = self._kind[: self.filled]
        return np.flatnonzero((kinds == ARRAY) | (kinds == MAP)).tolist()

    def values(self) -> FieldValues:
        """The value of every number; entry 0 is unset. Arrays and maps are as they were seen."""
        # While a worker goes on: its arrays may be replaced by larger ones, but what is below `filled` stays.
        there = slice(self.filled)
        columns: tuple[Any, ...] = self._kind[there], self._start[there], self._length[there], self._number[there]
        return FieldValues(self._encoding, self._arena, *columns)

    def distinct_values(self) -> FieldValues:
        """The value of every number from 1 up, at its number less 1, arrays and maps as their keys (encoding KEYS)."""
        _, buffer, *columns = self.values()
        kind, start, length, number = (np.asarray(column)[1:] for column in columns)
        containers = np.flatnonzero((kind == ARRAY) | (kind == MAP))
        if len(containers) and self._encoding != KEYS:
            keys = [self.key(entry) for entry in (containers + 1).tolist()]
            kind, start, length = kind.copy(), start.copy(), length.copy()
            sizes = np.fromiter(map(len, keys), np.int64, len(keys))
            kind[containers] = np.fromiter((key[0] for key in keys), np.uint8, len(keys))
            start[containers] = len(buffer) + np.cumsum(sizes) - sizes + 1
            length[containers] = sizes - 1
            buffer = np.concatenate([buffer, np.frombuffer(b"".join(keys), np.uint8)])
        return FieldValues(KEYS, buffer, kind, start.astype(np.int32), length, number)


def kept_numbers(numbers: NDArray[np.uint32], below: int) -> NDArray[Any]:
    """Numbers of a table below this one, and NO_RECORD, in few bytes each; the numbers are one more, NO_RECORD is 0.

    They wait until their span is whole, a number for each of a million records and field.
    """
    return (numbers + np.uint32(1)).astype(np.min_scalar_type(below))


def numbers_kept(kept: NDArray[Any]) -> NDArray[np.uint32]:
    """The numbers that were kept so."""
    return kept.astype(np.uint32) - np.uint32(1)


def longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The array, or where it is shorter another one that begins with it."""
    if len(array) >= size:
        return array
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
