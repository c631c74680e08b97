"""Kernels of dictionary-encoded columns: codes in the order in which they occur, keys as bytes and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.common.values import ABSENT, EXTENSION, FALSE, NULL, NUMBER, TRUE
from jitdb.indexes.hash_kernels import number_bits
from jitdb.indexes.kinds.kernels.places import number_of_places, place_at
from jitdb.indexes.numbering_kernels import copy_bytes
from jitdb.log.codecs.fields.sixteen import word_at

if TYPE_CHECKING:
    from jitdb.common.kernels import F64, I32, I64, U8, U32, I64Rows

NUMBER_KEY = 11  # bytes of a number's key: kind, hi, lo


@kernel
def relabel(codes: U32, fresh: U32, order: U32) -> int:
    """Number codes anew, in place, by where each occurs first, from 1 on; 0 stays 0. Gives how many there are.

    `fresh` has a 0 for each code. order[n - 1] becomes the old code of the new one n.
    """
    count = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if code != 0:
            if fresh[code] == 0:
                order[count] = code
                count += 1
                fresh[code] = count
            codes[i] = fresh[code]
    return count


@part
def code_at(codes, width, at):
    """The code of a place; `codes` has `width` bytes of each: 1, 2 or 4."""
    at *= np.uint64(width)
    code = np.uint64(codes[at])
    if width > 1:
        code |= np.uint64(codes[at + np.uint64(1)]) << np.uint64(8)
    if width > 2:
        code |= np.uint64(codes[at + np.uint64(2)]) << np.uint64(16)
        code |= np.uint64(codes[at + np.uint64(3)]) << np.uint64(24)
    return code


@kernel
def count_codes(codes: U8, width: int, begin: int, end: int, places: U32, counts: I64) -> None:
    """counts[code] += 1 for the code at each of these places; without any, for those from `begin` to `end`."""
    for i in range(number_of_places(begin, end, places)):
        at = place_at(begin, places, i)
        counts[code_at(codes, width, at)] += 1


@kernel
def select_codes(codes: U8, width: int, wanted: U8, first: int, seqs: U32, found: I64) -> None:
    """Write the records, the first of which is `first`, whose code is wanted (1), and how many there are."""
    size = np.int64(0)
    for at in range(codes.shape[0] // width):
        if wanted[code_at(codes, width, at)]:
            seqs[size] = first + at
            size += 1
    found[0] = size


@kernel
def count_in_runs(
    codes: U8, width: int, begin: int, end: int, places: U32, first: int, ends: I64, rows: I64, columns: I64,
    counts: I64Rows,
) -> None:  # fmt: skip
    """counts[row, column] += 1 for the code at each of these places, as count_codes() has them.

    first:   what the places are counted from
    ends:    where runs of records end, ascending; the last one behind all places
    rows:    of each run its row; -1: none, and its records are not counted
    columns: of each code its column
    """
    run = np.uint64(0)
    for i in range(number_of_places(begin, end, places)):
        at = place_at(begin, places, i)
        while first + np.int64(at) >= ends[run]:
            run += np.uint64(1)
        if rows[run] >= 0:
            counts[np.uint64(rows[run]), np.uint64(columns[code_at(codes, width, at)])] += 1


@kernel
def mark_codes(codes: U8, width: int, begin: int, end: int, places: U32, table: U32, masks: U32) -> None:
    """masks[i] |= table[code] for the code at each of these places; without any, for those from `begin` to `end`."""
    for i in range(number_of_places(begin, end, places)):
        at = place_at(begin, places, i)
        masks[np.uint64(i)] |= table[code_at(codes, width, at)]


@kernel
def add_counts(found: I64, numbers: U32, counts: I64) -> None:
    """counts[numbers[i]] += found[i] for each i."""
    for i in range(found.shape[0]):
        if found[i] != 0:
            counts[numbers[i]] += found[i]


@kernel
def write_keys(buf: U8, kind: U8, start: I32, length: I32, number: F64, ends: U32, heap: U8) -> None:
    """The keys of values (encoding KEYS), one behind the other; ends[i] is where that of value i ends."""
    for i in range(kind.shape[0]):
        size = np.int64(NUMBER_KEY) if kind[i] == NUMBER else np.int64(length[i]) + 1
        at = np.int64(ends[i]) - size
        heap[at] = kind[i]
        if kind[i] == NUMBER:
            bits = number_bits(number[i])
            for j in range(8):
                heap[at + 1 + j] = (bits >> (8 * j)) & 0xFF
            heap[at + 9] = np.int64(length[i]) & 0xFF
            heap[at + 10] = (np.int64(length[i]) >> 8) & 0xFF
        else:
            copy_bytes(buf, start[i], heap, at + 1, size - 1)


@part
def fits_kind(kind, size):
    """Whether a key of this kind (its first byte) may have so many bytes."""
    if kind == NUMBER:
        return size == NUMBER_KEY
    if kind == NULL or kind == FALSE or kind == TRUE:
        return size == 1
    return ABSENT < kind <= EXTENSION


@kernel
def are_keys(heap: U8, ends: I64) -> bool:
    """Whether what ends at `ends`, which ascend, are keys."""
    begin = np.int64(0)
    for i in range(ends.shape[0]):
        if not fits_kind(np.int64(heap[begin]), ends[i] - begin):
            return False
        begin = ends[i]
    return True


@kernel
def read_keys(heap: U8, ends: U32, kind: U8, start: I32, length: I32, number: F64) -> bool:
    """The columns of FieldValues of the keys that end at `ends`, which ascend. False where one is no key."""
    begin = np.int64(0)
    for i in range(ends.shape[0]):
        end = np.int64(ends[i])
        held = np.int64(heap[begin])
        if not fits_kind(held, end - begin):
            return False
        kind[i] = held
        start[i] = begin + 1
        length[i] = end - begin - 1
        if held == NUMBER:
            number[i] = np.uint64(word_at(heap, begin + 1)).view(np.float64)
            rest = np.int64(heap[begin + 9]) | (np.int64(heap[begin + 10]) << 8)
            length[i] = rest - 65536 if rest >= 32768 else rest
        begin = end
    return True


@kernel
def copy_keys(heap: U8, ends: I64, chosen: I64, target: U8, target_ends: I64, first: int) -> None:
    """Append the chosen keys, in their order, to those that end at target_ends[:first]."""
    at = np.int64(0) if first == 0 else np.int64(target_ends[first - 1])
    for i in range(chosen.shape[0]):
        key = chosen[i]
        begin = np.int64(0) if key == 0 else np.int64(ends[key - 1])
        size = np.int64(ends[key]) - begin
        copy_bytes(heap, begin, target, at, size)
        at += size
        target_ends[first + i] = at
