"""Kernels that group records by the numbers of their values, and write many small sets as portable roaring bitmaps at
once, byte for byte those of `roaring.dump`.

A field of three thousand values means three thousand bitmaps; one library call each would take longer than the scan.
The containers follow the rule of `run_optimize` on a set made of a list: a list up to 4,096 members, bits above, runs
where these take fewer bytes than that. Source of the format: https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jitdb.common.kernels import kernel, part
from jitdb.indexes.numbering_kernels import NO_RECORD

if TYPE_CHECKING:
    from jitdb.common.kernels import I64, U8, U32

_NO_RUNS = 12346
_RUNS = 12347
_LIST_MAX = 4096
_BITS_SIZE = 8192
_OFFSETS_FROM = 4  # containers


@part
def container_sizes(cardinality, runs):
    """The bytes of a container, and whether it holds runs."""
    plain = 2 * cardinality if cardinality <= _LIST_MAX else _BITS_SIZE
    as_runs = 2 + 4 * runs
    if as_runs < plain:
        return np.int64(as_runs), True
    return np.int64(plain), False


@part
def measure_container(members, start, stop):
    """One container of the ascending `members` from `start` on: where it ends, its cardinality and runs."""
    high = np.int64(members[start]) >> 16
    cardinality = np.int64(0)
    runs = np.int64(0)
    before = np.int64(-2)
    at = start
    while at < stop and (np.int64(members[at]) >> 16) == high:
        member = np.int64(members[at])
        if member != before:
            cardinality += 1
            if member != before + 1:
                runs += 1
            before = member
        at += 1
    return at, cardinality, runs


@kernel
def measure_sets(members: U32, begins: I64, sizes: I64, cardinalities: I64) -> None:
    """The bytes and members of each set; set i is members[begins[i] : begins[i + 1]], ascending, repeats allowed."""
    for number in range(sizes.shape[0]):
        at = begins[number]
        stop = begins[number + 1]
        body = np.int64(0)
        containers = np.int64(0)
        total = np.int64(0)
        any_runs = False
        while at < stop:
            at, cardinality, runs = measure_container(members, at, stop)
            size, has_runs = container_sizes(cardinality, runs)
            body += size
            containers += 1
            total += cardinality
            any_runs = any_runs or has_runs
        head = 8 + 8 * containers
        if any_runs:
            head = 4 + (containers + 7) // 8 + 4 * containers
            if containers >= _OFFSETS_FROM:
                head += 4 * containers
        sizes[number] = head + body
        cardinalities[number] = total


@part
def put(out, position, value, width):
    """Write an integer, little-endian; gives the position behind it."""
    for i in range(width):
        out[position + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return position + width


@part
def write_container(out, position, members, start, stop, cardinality, runs):
    """Write one container's body; gives the position behind it."""
    size, has_runs = container_sizes(cardinality, runs)
    bits = cardinality > _LIST_MAX and not has_runs
    if has_runs:
        position = put(out, position, runs, 2)
    elif bits:
        for i in range(_BITS_SIZE):
            out[position + i] = 0
    before = np.int64(-2)
    first = np.int64(-2)
    for at in range(start, stop):
        member = np.int64(members[at]) & 0xFFFF
        if member == before:
            continue
        if bits:
            out[position + (member >> 3)] |= np.uint8(1 << (member & 7))
        elif not has_runs:
            position = put(out, position, member, 2)
        elif member != before + 1:
            if first >= 0:
                position = put(out, position, before - first, 2)
            position = put(out, position, member, 2)
            first = member
        before = member
    if has_runs:
        position = put(out, position, before - first, 2)
    elif bits:
        position += size
    return position


@kernel
def write_sets(members: U32, begins: I64, sizes: I64, out: U8) -> None:
    """Write all sets one after the other; `sizes` are those of measure_sets."""
    base = np.int64(0)
    for number in range(sizes.shape[0]):
        start = begins[number]
        stop = begins[number + 1]
        containers = np.int64(0)
        any_runs = False
        at = start
        while at < stop:
            at, cardinality, runs = measure_container(members, at, stop)
            any_runs = any_runs or container_sizes(cardinality, runs)[1]
            containers += 1
        flags = base + 4
        position = flags
        if any_runs:
            put(out, base, _RUNS | (containers - 1) << 16, 4)
            position = flags + (containers + 7) // 8
            for i in range(flags, position):
                out[i] = 0
        else:
            put(out, base, _NO_RUNS, 4)
            position = put(out, flags, containers, 4)
        offsets = position + 4 * containers
        with_offsets = not any_runs or containers >= _OFFSETS_FROM
        body = offsets + 4 * containers if with_offsets else offsets
        at = start
        container = np.int64(0)
        while at < stop:
            after, cardinality, runs = measure_container(members, at, stop)
            position = put(out, position, np.int64(members[at]) >> 16, 2)
            position = put(out, position, cardinality - 1, 2)
            if with_offsets:
                offsets = put(out, offsets, body - base, 4)
            if container_sizes(cardinality, runs)[1]:
                out[flags + (container >> 3)] |= np.uint8(1 << (container & 7))
            body = write_container(out, body, members, at, after, cardinality, runs)
            container += 1
            at = after
        base += sizes[number]


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
    numbers: U32, bounds: I64, bases: I64, places: U32, owners: U32, lead: int, out: U32, nexts: I64
) -> None:  # fmt: skip
    """Sort the records of all pieces by the group of their number, places[base + number], stably.

    `owners` names the record of each entry; empty, entry i is of record lead + i. `nexts` is where each group begins in
    `out`, and becomes where it ends. Entries of NO_RECORD, or whose place is not below the groups, are left out.
    """
    owned = owners.shape[0] > 0
    for piece in range(bases.shape[0]):
        base = bases[piece]
        for i in range(bounds[piece], bounds[piece + 1]):
            if numbers[i] != NO_RECORD:
                place = np.int64(places[base + np.int64(numbers[i])])
                if place < nexts.shape[0]:
                    out[nexts[place]] = owners[i] if owned else np.uint32(lead + i)
                    nexts[place] += 1


@part
def word_of_two(data, at):
    """Two bytes as a number."""
    return np.int64(data[at]) | np.int64(data[at + 1]) << 8


@part
def size_of_container(data, at, stop, kind_is_runs, cardinality):
    """The bytes of a container; -1 if it does not end before `stop`."""
    size = _BITS_SIZE if cardinality > _LIST_MAX else 2 * cardinality
    if kind_is_runs:
        size = 2 + 4 * word_of_two(data, at) if at + 2 <= stop else -1
    return np.int64(size) if size >= 0 and at + size <= stop else np.int64(-1)


@part
def put_number(numbers, member, first, number):
    """Set the number of a member; False if it is outside."""
    place = member - first
    if place < 0 or place >= numbers.shape[0]:
        return False
    numbers[place] = number
    return True


@part
def number_container(data, at, size, is_runs, cardinality, base, first, number, numbers):
    """Set the number of each member of a container; False if one is outside."""
    is_inside = True
    if is_runs:
        for run in range(word_of_two(data, at)):
            begin = base + word_of_two(data, at + 2 + 4 * run)
            for member in range(begin, begin + word_of_two(data, at + 4 + 4 * run) + 1):
                is_inside &= put_number(numbers, member, first, number)
    elif cardinality <= _LIST_MAX:
        for place in range(at, at + size, 2):
            is_inside &= put_number(numbers, base + word_of_two(data, place), first, number)
    else:
        for place in range(size):
            byte = np.int64(data[at + place])
            for bit in range(8):
                if byte >> bit & 1:
                    is_inside &= put_number(numbers, base + 8 * place + bit, first, number)
    return is_inside


@kernel
def number_members(data: U8, ends: I64, given: U32, first: int, numbers: U32) -> int:
    """numbers[member - first] = given[i] for each member of set i, a portable bitmap that ends at data[ends[i]].

    Returns the number of the first set that is damaged or has a member outside `numbers`; -1 if all are sound.
    """
    begin = np.int64(0)
    for i in range(ends.shape[0]):
        stop = ends[i]
        if stop - begin < 8:
            return i
        cookie = word_of_two(data, begin)
        count = word_of_two(data, begin + 2) + 1
        flags = begin + 4
        heads = flags + (count + 7) // 8
        if cookie == _NO_RUNS:
            count = word_of_two(data, begin + 4) | word_of_two(data, begin + 6) << 16
            heads = begin + 8
        elif cookie != _RUNS:
            return i
        at = heads + 4 * count + (4 * count if cookie == _NO_RUNS or count >= _OFFSETS_FROM else 0)
        if count > 1 << 16 or at > stop:
            return i
        for container in range(count):
            base = word_of_two(data, heads + 4 * container) << 16
            cardinality = word_of_two(data, heads + 4 * container + 2) + 1
            is_runs = cookie == _RUNS and (data[flags + container // 8] >> (container % 8) & 1) == 1
            size = size_of_container(data, at, stop, is_runs, cardinality)
            if size < 0 or not number_container(data, at, size, is_runs, cardinality, base, first, given[i], numbers):
                return i
            at += size
        begin = stop
    return -1
