"""Kernels that turn located values into prefixes and groups, while their bytes are in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel
from jitdb.common.values import ABSENT, ARRAY, MAP, NULL, NUMBER
from jitdb.indexes.hash_kernels import number_bits
from jitdb.indexes.kinds.seen import OTHERS
from jitdb.indexes.numbering_kernels import NO_RECORD

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I16, I32, I64, U8, U32, Bools


@kernel
def count_numbers(numbers: U32, bounds: I64, bases: I64, counts: I64) -> None:
    """How often each number occurs: counts[base + number], where piece p is numbers[bounds[p] : bounds[p + 1]]
    and has base bases[p]. NO_RECORD is passed over."""
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                counts[base + np.int64(numbers[i])] += 1


@kernel
def group_records(
    numbers: U32, bounds: I64, bases: I64, places: U32, groups: int, owners: U32, lead: int, out: U32, begins: I64
) -> None:  # fmt: skip
    """Sort the records of all pieces by the group of their number, places[base + number], stably.

    `owners` names the record of each entry; empty, entry i is of record lead + i. Fills `out` with the sorted records
    and `begins` with where each group begins and, one behind the last, where that ends; begins[groups + 1] is scratch.
    Entries of NO_RECORD, or whose place is not below `groups`, are left out.
    """
    begins[:] = 0
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                place = np.int64(places[base + np.int64(numbers[i])])
                if place < groups:
                    begins[place + 2] += 1
    for group in range(1, groups):
        begins[group + 1] += begins[group]
    # begins[group + 1] is where the group's next record goes: at the end, where the group ends.
    owned = owners.shape[0] > 0
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                place = np.int64(places[base + np.int64(numbers[i])])
                if place < groups:
                    out[begins[place + 1]] = owners[i] if owned else np.uint32(lead + i)
                    begins[place + 1] += 1


@kernel
def byte_prefixes(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int, skip: int, out: U32
) -> None:  # fmt: skip
    """Four bytes of each payload from byte `skip` on, as a big-endian u32 (so that prefixes sort as bytes do).

    Bytes past the payload's end count as zero; a number's payload is that of its key; null, booleans, arrays and
    maps have none.
    """
    for i in range(count):
        held = kind[i]
        prefix = np.int64(0)
        if held == NUMBER:
            bits = number_bits(number[i])
            for j in range(skip, skip + 4):
                byte = np.int64(0)
                if j < 8:
                    byte = (bits >> (8 * j)) & 0xFF
                elif j < 10:
                    byte = (np.int64(length[i]) >> (8 * (j - 8))) & 0xFF
                prefix = (prefix << 8) | byte
        elif held != ABSENT and held != ARRAY and held != MAP:
            at = np.int64(start[i])
            size = np.int64(length[i])
            for j in range(skip, skip + 4):
                prefix <<= 8
                if j < size:
                    prefix |= np.int64(buf[at + j])
        out[i] = np.uint32(prefix)


@kernel
def smallest_numbers(
    kind: U8, number: F64, length: I32, more: int, out_hi: F64, out_lo: I16
) -> int:  # fmt: skip
    """The number that each record holds in a field: hi and lo, or NaN and 0 where none does. With `more`, the smaller
    of that and of what `out_hi` and `out_lo` have already.

    Gives the bits of seen.py.
    """
    seen = np.int64(0)
    for i in range(kind.shape[0]):
        best = np.nan
        rest = np.int64(0)
        if more:
            best = out_hi[i]
            rest = np.int64(out_lo[i])
        if kind[i] == NUMBER:
            hi = number[i]
            lo = np.int64(length[i])
            if best != best or hi < best or (hi == best and lo < rest):
                best = hi
                rest = lo
        elif kind[i] != ABSENT and kind[i] != NULL:
            seen |= np.int64(OTHERS)
        out_hi[i] = best
        out_lo[i] = np.int16(rest)
    return seen


@kernel
def equal_payloads(
    buf: U8, kind: U8, start: I32, length: I32, number: F64, count: int,
    wanted_kind: int, payload: U8, size: int, whole: int, out: Bools,
) -> None:  # fmt: skip
    """Which values have this kind and this payload (`whole`), or a payload that begins with it.

    The payload of a number is that of its key: hi (f64) and lo (i16), little-endian.
    """
    bits = np.int64(0)
    rest = np.int64(0)
    if wanted_kind == NUMBER and size == 10:
        for j in range(8):
            bits |= np.int64(payload[j]) << (8 * j)
        rest = np.int64(payload[8]) | (np.int64(payload[9]) << 8)
    for i in range(count):
        same = kind[i] == wanted_kind
        if same and wanted_kind == NUMBER:
            same = size == 10 and number_bits(number[i]) == bits and (np.int64(length[i]) & 0xFFFF) == rest
        elif same:
            same = length[i] == size if whole else length[i] >= size
            if same:
                at = np.int64(start[i])
                for j in range(size):
                    if buf[at + j] != payload[j]:
                        same = False
                        break
        out[i] = same
