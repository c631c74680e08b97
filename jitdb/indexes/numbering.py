"""Numbering the values of a field while it is scanned: one table a worker, grown by doubling.

The kernel `number_values` does the work; a table holds the arrays that it needs and gives a number's value back as
its canonical key, made once. When a limit is passed, the table is *full*: the field has too many values for bitmaps, or
too large ones, and its records are known by the hashes of their values from then on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from os import urandom
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from jitdb.common.values import ARRAY, MAP, NUMBER, number_key, value_key
from jitdb.log.codecs.containers import container_key
from jitdb.log.codecs.fields.constants import KEYS
from jitdb.log.codecs.fields.located import FieldValues

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_PROBES: Final = 1 << 10  # slots that are looked at for a value; at most half are taken, so about 90 if luck is bad


class Limits(NamedTuple):
    """What a table takes: so many values, so many bytes of them in all, and of one array or map."""

    values: int
    value_bytes: int
    container_bytes: int


class NumberingTable:
    """Equal values get equal numbers, from 1 up. Without limits it is never full."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.filled = 1  # entry 0 means "no value"
        self.full = False
        self._limits = limits
        self._encoding = KEYS  # of arrays and maps: that of the values seen
        self._used = 0
        self._secret = np.frombuffer(urandom(24), np.uint64)  # keys of the hash that gives a value its slot
        self._keys: list[bytes] = [b"\0"]
        self._container_keys: dict[int, bytes] = {}  # by entry: decoding costs too much to do twice
        self._slots = np.zeros(1 << 9, np.int32)
        self._kind = np.zeros(1 << 8, np.uint8)
        self._start = np.zeros(1 << 8, np.int64)
        self._length = np.zeros(1 << 8, np.int32)
        self._number = np.zeros(1 << 8, np.float64)
        self._hash = np.zeros(1 << 8, np.uint64)
        self._arena = np.zeros(1 << 14, np.uint8)
        self._recent = np.zeros(0, np.uint64)  # see the kernel

    def number(self, values: FieldValues, states: NDArray[np.uint8]) -> NDArray[np.uint32] | None:
        """The number of each record's value (NO_VALUE, NO_RECORD where there is none), or None once full."""
        from jitdb.indexes import numbering_kernels as kernels

        if not len(self._recent):
            self._recent = np.zeros(3 * kernels.RECENT, np.uint64)
        count = len(values.kind)
        self._encoding = values.encoding
        out = np.empty(count, np.uint32)
        done = 0
        limits = self._limits
        largest = sys.maxsize if limits is None else limits.container_bytes
        while True:
            done, self.filled, self._used, crowded = kernels.number_values(
                values.buffer, values.kind, values.start, values.length, values.number, states, done, count,
                self._secret, MAX_PROBES, largest, self._slots, self.filled, self._used,
                self._kind, self._start, self._length, self._number, self._hash, self._arena, self._recent, out,
            )  # fmt: skip
            if done == count:
                return out
            if limits and (crowded or self.filled > limits.values or self._used > limits.value_bytes):
                self.full = True
                return None
            self._grow(int(values.length[done]), crowded)

    def reserve(self, values: int, payload: int) -> None:
        """Make room for so many values, of so many bytes together: of what is not used no memory is taken."""
        from jitdb.indexes import numbering_kernels as kernels

        for name in ("_kind", "_start", "_length", "_number", "_hash"):
            old = getattr(self, name)
            grown = np.zeros(max(len(old), self.filled + values), old.dtype)
            grown[: self.filled] = old[: self.filled]
            setattr(self, name, grown)
        self._slots = np.zeros(max(len(self._slots), 1 << (2 * (self.filled + values)).bit_length()), np.int32)
        kernels.refill_slots(self._slots, self._hash, self.filled)
        grown = np.zeros(max(len(self._arena), self._used + payload), np.uint8)
        grown[: self._used] = self._arena[: self._used]
        self._arena = grown

    def keys(self) -> list[bytes]:
        """The canonical key of every number; entry 0 is that of an absent field."""
        for entry in range(len(self._keys), self.filled):
            self._keys.append(self._container_keys.pop(entry, b"") or self._key(entry))
        return self._keys

    def distinct(self) -> int:
        """How many values there are for certain: arrays and maps may be the same value in other bytes."""
        kinds = self._kind[1 : self.filled]
        return int(np.count_nonzero((kinds != ARRAY) & (kinds != MAP)))

    def container_keys(self) -> Iterator[bytes]:
        """The keys of all arrays and maps, repeats among them; each is decoded when it is asked for."""
        for kind in (ARRAY, MAP):
            for entry in np.flatnonzero(self._kind[: self.filled] == kind).tolist():
                yield self._container_key(entry)

    @property
    def payload_bytes(self) -> int:
        """Of all values that were numbered."""
        return self._used

    def values(self) -> FieldValues:
        """The value of every number; entry 0 is unset. Arrays and maps are as they were seen."""
        # While a worker goes on: its arrays may be replaced by larger ones, never those that `filled` says are there.
        there = slice(self.filled)
        columns: tuple[Any, ...] = self._kind[there], self._start[there], self._length[there], self._number[there]
        return FieldValues(self._encoding, self._arena, *columns)

    def distinct_values(self) -> FieldValues:
        """The value of every number from 1 up, at its number less 1, arrays and maps as their keys (encoding KEYS)."""
        filled = self.filled  # a worker may go on
        kind, start = self._kind[1:filled], self._start[1:filled]
        length, number = self._length[1:filled], self._number[1:filled]
        buffer = self._arena
        containers = np.flatnonzero((kind == ARRAY) | (kind == MAP))
        if len(containers) and self._encoding != KEYS:
            keys = [self._container_key(entry) for entry in (containers + 1).tolist()]
            kind, start, length = kind.copy(), start.copy(), length.copy()
            sizes = np.fromiter(map(len, keys), np.int64, len(keys))
            kind[containers] = np.fromiter((key[0] for key in keys), np.uint8, len(keys))
            start[containers] = len(buffer) + np.cumsum(sizes) - sizes + 1
            length[containers] = sizes - 1
            buffer = np.concatenate([buffer, np.frombuffer(b"".join(keys), np.uint8)])
        return FieldValues(KEYS, buffer, kind, start.astype(np.int32), length, number)

    def _container_key(self, entry: int) -> bytes:
        if entry < len(self._keys):
            return self._keys[entry]
        key = self._container_keys.get(entry)
        if key is None:
            key = self._container_keys[entry] = self._key(entry)
        return key

    def _key(self, entry: int) -> bytes:
        kind = int(self._kind[entry])
        if kind == NUMBER:
            value = float(self._number[entry])
            return number_key(value, int(self._length[entry])) if value == value else value_key(value)
        start = int(self._start[entry])
        payload = self._arena[start : start + int(self._length[entry])].tobytes()
        if kind in (ARRAY, MAP):
            return container_key(self._encoding, kind, payload)
        return bytes([kind]) + payload

    def _grow(self, payload: int, crowded: bool) -> None:
        from jitdb.indexes import numbering_kernels as kernels

        if self.filled >= len(self._kind):
            for name in ("_kind", "_start", "_length", "_number", "_hash"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
            crowded = True
        if crowded:
            self._slots = np.zeros(2 * len(self._slots), np.int32)
            kernels.refill_slots(self._slots, self._hash, self.filled)
        if self._used + payload > len(self._arena):
            grown = np.zeros(max(2 * len(self._arena), self._used + payload), np.uint8)
            grown[: self._used] = self._arena[: self._used]
            self._arena = grown
